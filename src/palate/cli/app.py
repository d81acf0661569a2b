"""The commands, and the one place where errors become exit codes."""

import os
import sys
from typing import Any, NoReturn

import typer

from palate.cli import (
    annotate,
    audit,
    bon,
    build,
    correlate,
    data,
    evaluate,
    plan,
    ppo,
    regrade,
    report,
    retrieve,
    serve,
)
from palate.errors import PalateError, Stopped

app = typer.Typer(
    name="palate",
    help="Does your reward model know whose reward it is giving?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
)
app.command("eval")(evaluate.command)
app.command("report")(report.command)
app.command("regrade")(regrade.command)
app.command("retrieve")(retrieve.command)
app.command("plan")(plan.command)
app.command("build")(build.command)
app.command("bon")(bon.command)
app.command("serve")(serve.command)
app.add_typer(ppo.app, name="ppo")
app.command("correlate")(correlate.command)
data.app.command("audit")(audit.command)
app.add_typer(annotate.app, name="annotate")
app.add_typer(data.app, name="data")

# typer carries its own copy of click; this is the base of the usage errors of whichever it is.
UsageError: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")


@app.callback(invoke_without_command=True)
def _version(show: bool = typer.Option(False, "--version", help="Print the version and leave.")) -> None:
    if show:
        from importlib.metadata import version

        typer.echo(version("palate"))
        raise typer.Exit


def main() -> NoReturn:
    """Run the command line. Exit codes: 0 done, 1 a check failed, 2 bad usage or input, 3 stopped, can go on."""
    sys.exit(run(sys.argv[1:]))


def run(args: list[str]) -> int:
    """Run one command and return its exit code."""
    try:
        with typer.main.get_command(app).make_context("palate", args) as context:
            context.command.invoke(context)
        sys.stdout.flush()
    except typer.Exit as left:
        return left.exit_code
    except UsageError as error:
        error.show()
        return int(error.exit_code)
    except PalateError as error:
        typer.echo(f"error: {error}", err=True)
        return error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        typer.echo("stopped.", err=True)
        return Stopped.exit_code
    except BrokenPipeError:
        # Whoever read the output has enough; nothing is left to say, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        if error.filename is None:
            raise
        typer.echo(f"error: {error.filename}: {error.strerror}", err=True)
        return PalateError.exit_code
    return 0

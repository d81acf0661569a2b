"""The commands, and the one place where errors become exit codes."""

import sys
from typing import NoReturn

import typer

from palate.cli import data, evaluate, report, retrieve
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
app.command("retrieve")(retrieve.command)
app.add_typer(data.app, name="data")


@app.callback(invoke_without_command=True)
def _version(show: bool = typer.Option(False, "--version", help="Print the version and leave.")) -> None:
    if show:
        from importlib.metadata import version

        typer.echo(version("palate"))
        raise typer.Exit


def main() -> NoReturn:
    """Run the command line. Exit codes: 0 done, 1 a check failed, 2 bad usage or input, 3 stopped, can go on."""
    try:
        app()
    except PalateError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        typer.echo("stopped.", err=True)
        sys.exit(Stopped.exit_code)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    raise AssertionError("typer always exits")

"""`palate serve`."""

import typer


def command(
    model: str = typer.Option(..., help="The string of a scorer, as for eval: hf/…, likelihood/…, dpo/…, builtin/…"),
    view: str | None = typer.Option(
        None, help="question, history or plan: what each question has to come with. Default: as each is sent."
    ),
    host: str = typer.Option("127.0.0.1", help="Where to listen; beyond this machine only with a token."),
    port: int = typer.Option(8000, min=0, max=65535, help="0 takes a free one and tells it."),
    token_env: str | None = typer.Option(
        None, help="The variable with the token that every request has to bring. Default: PALATE_HTTP_KEY."
    ),
    timeout: float = typer.Option(60.0, min=0.1, help="Seconds that an answer may take from its arrival on."),
    queue: int = typer.Option(4096, min=1, help="Answers that may wait at once; beyond it 503 with Retry-After."),
    max_body: float = typer.Option(32.0, min=0.001, help="Largest request in MiB."),
) -> None:
    """Serve a reward model over HTTP, for trainers and for http/…; a failed score is an error, never a number."""
    from palate.rewards.http.options import KEY
    from palate.serve import Settings, serve

    settings = Settings(host, port, token_env or KEY, timeout, queue, int(max_body * 2**20))
    serve(model, view, settings, told=lambda line: typer.echo(line, err=True))

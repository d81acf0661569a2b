"""`palate annotate …`: people and what they said."""

import typer

from palate.cli import annotated

app = typer.Typer(help="Ask people which answer a user would prefer.", no_args_is_help=True, rich_markup_mode=None)
annotated.mount(app)

"""`palate correlate`."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from palate.cli.output import print_json, print_table
from palate.cli.recipe import from_recipe

if TYPE_CHECKING:
    from palate.correlate import Correlation


def command(
    benchmark: list[str] = typer.Option(
        ..., help="What predicts: a board, run folders or CSV (model,score[,low,high]). Repeatable."
    ),
    downstream: list[str] = typer.Option(
        ..., help="What is predicted: a board, a best-of-N curve, policy evaluations or CSV. Repeatable."
    ),
    metric: str | None = typer.Option(None, help="Metric of benchmarks that hold several; or path?metric=…&view=…"),
    statistic: list[str] = typer.Option(
        [],
        help="ndcg, rbo, weighted_tau, spearman or kendall; the verdict speaks of the first. Repeatable; default all.",
    ),
    gains: str = typer.Option("rank", help="Of NDCG: rank, rank0, exponential or raw."),
    persistence: float = typer.Option(0.9, help="Of RBO: how far down the list its user looks, 0 to 1."),
    strict: bool = typer.Option(False, "--strict", help="Refuse models that one side lacks."),
    probes: bool = typer.Option(False, "--probes", help="Count probes as models."),
    power: bool = typer.Option(False, "--power", help="How many models, items and samples would tell it from chance."),
    rho: float | None = typer.Option(None, help="With --power: the true correlation to find. Default: as estimated."),
    config: Path | None = typer.Option(
        None, is_eager=True, callback=from_recipe, help="A TOML file that sets options by their long names."
    ),
    out: Path = typer.Option(Path("correlate"), help="Folder for correlate.html and correlate.json."),
    json: bool = typer.Option(False, "--json", help="Print correlate.json."),
) -> None:
    """Does the benchmark predict? Rank agreement with downstream results, beside what chance gives."""
    from palate.correlate import correlate, power_of, write_correlation
    from palate.correlate.api import STATISTICS
    from palate.correlate.page import told
    from palate.errors import SpecError
    from palate.store import refuse_file

    refuse_file(out)
    if rho is not None and not power:
        raise SpecError("--rho needs --power.")
    found = correlate(
        benchmark,
        downstream,
        metric=metric,
        statistics=statistic or STATISTICS,
        gains=gains,
        persistence=persistence,
        strict=strict,
        probes=probes,
    )
    planned = power_of(found, rho) if power else None
    written = write_correlation(found, out, planned)
    if json:
        print_json(told(found, planned))
        return
    _tables(found)
    for sentence in found.verdict:
        typer.echo(sentence)
    if planned is not None:
        typer.echo(planned.sentence)
    typer.echo(f"Page: {written.page}\nFigures: {written.json}")


def _tables(found: "Correlation") -> None:
    from palate.correlate.words import TITLES
    from palate.evaluation.names import cut
    from palate.pages.numbers import chance, plain, span

    left = [("benchmark → downstream", "left"), ("statistic", "left"), ("n", "right")]
    names = ("value", "95 %", "by chance", "as well", "two-sided p")
    rows = [
        [f"{cut(r.benchmark, 30)} → {cut(r.downstream, 30)}", TITLES[r.statistic], str(r.n), plain(r.value, 3),
         span(r.ci95, 3), plain(r.expected, 3), chance(r.p_greater), chance(r.p_two_sided)]
        for r in found.rows
    ]  # fmt: skip
    print_table("Agreement", [*left, *((n, "right") for n in names)], rows)
    if found.comparisons:
        rows = [
            [f"{cut(c.a, 24)} − {cut(c.b, 24)} → {cut(c.downstream, 24)}", TITLES[c.statistic], str(c.n),
             plain(c.difference, 3, True), span(c.ci95, 3, True), chance(c.p), chance(c.least_p)]
            for c in found.comparisons
        ]  # fmt: skip
        apart = ("difference", "95 %", "p", "least p")
        print_table("Which benchmark agrees better", [*left, *((n, "right") for n in apart)], rows)
    for m in found.missing:
        typer.echo(f"missing: {cut(m.model)} in {cut(m.source)}: {cut(m.why, 120)}")
    for note in found.notes:
        typer.echo(f"note: {cut(note, 300)}")

"""`palate annotate agreement | report | import`: what became of what people said."""

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

import typer

from palate.cli.output import print_json, print_table, share
from palate.errors import DataError, SpecError
from palate.pages.numbers import interval, plain, span

if TYPE_CHECKING:
    from palate.annotate.agreement import Judged, Question

FILES = typer.Argument(None, help="Files of annotation rows.", show_default=False)
RUNS = typer.Option([], help="Run folders, or folders that hold some: which judge agrees with people? Repeatable.")
LEVELS = ("nominal", "ordinal", "interval")
SHOWN = 10
NAME, WIDTH = 22, 80


def mount(app: typer.Typer) -> None:
    """Put the commands on the group `palate annotate`."""
    app.command("agreement")(agreement)
    app.command("report")(report)
    app.command("import")(take)


def agreement(
    files: list[Path] | None = FILES,
    runs: list[Path] = RUNS,
    table: Path | None = typer.Option(None, help="Instead of rows: any table of labels (.csv, .jsonl, .json)."),
    item: list[str] = typer.Option([], help="Column of --table that names the item; repeat for several together."),
    annotator: str | None = typer.Option(None, help="Column that names who gave the label."),
    label: list[str] = typer.Option([], help="Column of the label; without --annotator one for each annotator."),
    level: str = typer.Option("nominal", help="What the labels of --table are: nominal, ordinal or interval."),
    order: str | None = typer.Option(None, help="Labels from low to high, as in bad,fair,good."),
    json: bool = typer.Option(False, "--json", help="Print everything as JSON."),
) -> None:
    """Show how far annotators agree: raw, Cohen, Fleiss, Krippendorff, with intervals; undefined says why."""
    if (table is None) == (not files):
        raise SpecError("give files of annotation rows, or --table.")
    if table is None and (item or annotator or label or order or level != "nominal"):
        raise SpecError("--item, --annotator, --label, --level and --order go with --table.")
    if table is not None and runs:
        raise SpecError("--runs goes with annotation rows, not with --table.")
    judges: list[Judged] = []
    if table is not None:
        found = [_of_table(table, item, annotator, label, level, order)]
    else:
        from palate.annotate.agreement import judged, questions
        from palate.annotate.reading import read_annotations

        said = read_annotations(files or [])
        found, judges = questions(said), judged(said, runs) if runs else []
    if json:
        listed = [asdict(j) | {"coverage": j.coverage} for j in judges]
        print_json({"agreement": [asdict(q) for q in found], "judges": listed})
        return
    for question in found:
        _print_question(question)
    _print_judges(judges)


def report(
    files: list[Path] = typer.Argument(..., help="Files of annotation rows."),
    out: Path = typer.Option(Path("people"), help="Folder for people.html and people.json."),
    runs: list[Path] = RUNS,
    data: str | None = typer.Option(None, help="The items' data string: users are then resampled as a whole."),
    json: bool = typer.Option(False, "--json", help="Print people.json."),
) -> None:
    """Write one page: are both answers equally good, does the rubric tell them apart, whom do people pick?"""
    from palate.annotate import words
    from palate.annotate.report import write_people

    made = write_people(files, out, runs, data)
    if json:
        typer.echo(made.numbers.read_text(encoding="utf-8"), nl=False)
        return
    typer.echo(f"{made.results.items} items, {made.results.annotators} annotators")
    for line in words.summary(made.results):
        for part in wrap(line, WIDTH, subsequent_indent="    ", break_on_hyphens=False):
            typer.echo(part)
    _print_judges(made.judges)
    typer.echo(f"Page: {made.page}\nNumbers: {made.numbers}")


def take(
    file: Path = typer.Argument(..., help="What Label Studio exported as JSON."),
    out: Path = typer.Argument(..., help="The .jsonl file of annotation rows to write; must not exist."),
) -> None:
    """Turn a Label Studio export, of tasks by `palate data export --to label-studio`, into annotation rows."""
    from palate.annotate.reading import read_annotations
    from palate.data.label_studio import read_rows
    from palate.data.written import new_file
    from palate.store import dump

    rows, skipped = read_rows(file)
    if not rows:
        raise DataError(f"{file}: no annotations in it.")
    with new_file(out, ".jsonl") as path:
        path.write_text("".join(dump(row) + "\n" for row in rows), encoding="utf-8")
        try:
            read_annotations([path])
        except DataError as bad:
            raise DataError(str(bad).replace(path.name, out.name), bad.problems) from None
    if skipped:
        typer.echo(f"{skipped} annotations were skipped by their annotators and left out", err=True)
    typer.echo(f"{len(rows)} rows written to {out}")


def _of_table(
    path: Path, item: list[str], annotator: str | None, label: list[str], level: str, order: str | None
) -> "Question":
    from palate.annotate.agreement import question_of
    from palate.annotate.tables import Columns, read_table
    from palate.errors import did_you_mean

    if level not in LEVELS:
        raise SpecError(f"--level '{level}': unknown.{did_you_mean(level, LEVELS)}")
    columns = Columns(tuple(item), annotator, tuple(label))
    names = [name.strip() for name in order.split(",")] if order else []
    ratings = read_table(path, columns, level, names)  # type: ignore[arg-type]
    return question_of(path.stem, ratings, level)  # type: ignore[arg-type]


def _print_question(question: "Question") -> None:
    from palate.annotate.words import NAMES
    from palate.evaluation.names import cut

    counts = f"{question.items} items, {question.annotators} annotators, {question.labels} labels"
    columns = [("", "left"), ("value", "right"), ("95 %", "right"), ("items", "right"), ("people", "right")]
    rows = [
        [NAMES[f.name], plain(f.value, 3), span(f.ci95, 3), str(f.items), str(f.annotators)] for f in question.figures
    ]
    print_table(f"{cut(question.name, 30)} ({question.level}): {counts}", columns, rows)
    _print_reasons((NAMES[f.name], f.value, f.reason) for f in question.figures)
    if not question.pairs:
        return
    weighted = "" if question.level == "nominal" else ", quadratic weights"
    pairs = question.pairs[:SHOWN]
    names = [f"{cut(p.first, NAME)}, {cut(p.second, NAME)}" for p in pairs]
    columns = [("", "left"), ("raw", "right"), ("kappa", "right"), ("95 %", "right"), ("items", "right")]
    rows = [
        [name, plain(p.raw.value, 3), plain(p.kappa.value, 3), span(p.kappa.ci95, 3), str(p.kappa.items)]
        for name, p in zip(names, pairs, strict=True)
    ]
    print_table(f"Cohen's kappa of pairs{weighted}", columns, rows)
    _print_reasons((name, p.kappa.value, p.kappa.reason) for name, p in zip(names, pairs, strict=True))
    if len(question.pairs) > SHOWN:
        typer.echo(f"… and {len(question.pairs) - SHOWN} more pairs that share fewer items (--json has all)\n")


def _print_reasons(figures: Iterable[tuple[str, float | None, str | None]]) -> None:
    """Say once for each reason whose value or interval it explains."""
    told: dict[str, list[str]] = {}
    for name, value, reason in figures:
        if reason:
            told.setdefault(f"undefined: {reason}" if value is None else reason, []).append(name)
    for reason, names in told.items():
        for line in wrap(f"{'; '.join(names)}: {reason}", WIDTH, break_on_hyphens=False):
            typer.echo(line)
    if told:
        typer.echo()


def _print_judges(judges: "Iterable[Judged]") -> None:
    from palate.evaluation.names import cut

    found = list(judges)
    if not found:
        return
    columns = [("", "left"), ("view", "left"), ("agrees", "right"), ("95 %", "right"), ("kappa", "right")]
    columns += [("unnamed", "right"), ("judged", "right")]
    rows = [
        [
            *(cut(j.model, 26), cut(j.view, 16), share(j.raw.value), interval(j.raw.ci95)),
            *(plain(j.kappa.value, 3), plain(j.unnamed.value, 3)),
            f"{j.covered}/{j.items}",
        ]
        for j in found
    ]
    print_table("Reward models against the people's majority", columns, rows)
    _print_reasons((f"{cut(j.model, 26)} {cut(j.view, 16)}", j.kappa.value, j.kappa.reason) for j in found)

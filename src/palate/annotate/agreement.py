"""How far the annotators agree, question by question, and how far judges agree with them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from palate.annotate.reading import CRITERIA, PREFERENCES, SCALE, Annotation
from palate.errors import RunError
from palate.evaluation.runs import read_record, read_rows, run_folders
from palate.metrics import (
    Figure,
    Level,
    PairFigures,
    Ratings,
    cohen_kappa,
    cohen_pairs,
    fleiss_kappa,
    krippendorff_alpha,
    raw_agreement,
    tabulate,
)
from palate.spec import short_model

PEOPLE = "people"
UNNAMED = "preference, sides unnamed"
SWAPPED: Mapping[str, str] = {"chosen": "rejected", "rejected": "chosen", "none": "none"}
SAID: Mapping[str, str] = {"correct": "chosen", "wrong": "rejected", "tie": "none"}


@dataclass(frozen=True, slots=True)
class Question:
    """What was asked, and how far the answers to it agree.

    `items`, `annotators` and `labels` count all that were given; each figure says how many it rests on.
    """

    name: str
    level: Level
    items: int
    annotators: int
    labels: int
    figures: tuple[Figure, ...]
    pairs: tuple[PairFigures, ...]


@dataclass(frozen=True, slots=True)
class Judged:
    """A run against the people's majority: of `items` with a majority, `covered` have a verdict.

    `unnamed` is Cohen's kappa with the sides unnamed, as in `questions`.
    """

    model: str
    view: str
    folder: str
    items: int
    covered: int
    raw: Figure
    kappa: Figure
    unnamed: Figure

    @property
    def coverage(self) -> float | None:
        """Share of the items with a majority that the run has a verdict on."""
        return self.covered / self.items if self.items else None


def question_of(name: str, ratings: Ratings, level: Level) -> Question:
    """Return all figures for one table of labels.

    Fleiss' and the raw figure treat labels as names at every level. Cohen's kappa is weighted by squared steps unless
    the level is nominal. An ordinal table of numbers gets the interval alpha beside the ordinal one.
    """
    alphas: list[Level] = [level]
    if level == "ordinal" and not any(isinstance(label, str) for label in ratings.labels):
        alphas.append("interval")
    figures = [raw_agreement(ratings), fleiss_kappa(ratings), *(krippendorff_alpha(ratings, a) for a in alphas)]
    pairs = cohen_pairs(ratings, "none" if level == "nominal" else "quadratic")
    given = int((ratings.codes >= 0).sum())
    return Question(name, level, ratings.item_count, ratings.active, given, tuple(figures), tuple(pairs))


def questions(annotations: Iterable[Annotation]) -> list[Question]:
    """Return agreement on the preference and on each criterion that was rated; attention items are left out.

    A criterion is a table with two units an item, its two answers; intervals resample items as a whole. The preference
    comes twice: as given, and with the sides unnamed. Most votes should be for the chosen answer, and where one label
    is that frequent chance agrees nearly as often as people do. But which answer is which was blind; so each item
    counts under both namings, and chance is what people give who cannot know.
    """
    kept = [a for a in annotations if not a.attention]
    found = []
    votes = [(a.item, a.annotator, a.preference) for a in kept if a.preference is not None]
    if votes:
        found.append(question_of("preference", tabulate(votes, PREFERENCES), "nominal"))
        found.append(replace(question_of(UNNAMED, unnamed(votes), "nominal"), labels=len(votes)))
    for name in CRITERIA:
        rows = [((a.item, side), a.annotator, value) for a in kept for side, value in a.ratings.get(name, {}).items()]
        if rows:
            owners = {unit: unit[0] for unit, _, _ in rows}
            found.append(question_of(name, tabulate(rows, SCALE, owners), "ordinal"))
    return found


def unnamed(votes: Sequence[tuple[str, str, str]]) -> Ratings:
    """Return the table of (item, annotator, preference) in which each item is there under both namings of its sides."""
    rows = [((item, False), who, label) for item, who, label in votes]
    rows += [((item, True), who, SWAPPED[label]) for item, who, label in votes]
    return tabulate(rows, PREFERENCES, {unit: unit[0] for unit, _, _ in rows})


def majorities(annotations: Iterable[Annotation]) -> dict[str, str | None]:
    """Return what most people said of each item: chosen, rejected or none (no difference); None without a majority."""
    votes: dict[str, Counter[str]] = {}
    for a in annotations:
        if a.preference is not None and not a.attention:
            votes.setdefault(a.item, Counter())[a.preference] += 1
    return {item: _first(count) for item, count in votes.items()}


def _first(votes: Counter[str]) -> str | None:
    (label, most), *rest = votes.most_common()
    return None if rest and rest[0][1] == most else label


def judged(annotations: Sequence[Annotation], paths: Sequence[Path]) -> list[Judged]:
    """Return how far the runs below `paths` agree with the people's majority, the best first.

    A verdict is a choice too: correct is the chosen answer, wrong the rejected one, a tie no difference. Outcomes are
    derived from the rows' scores, and rows that do not agree with themselves count as not judged.

    Raises:
        RunError: no run folder, or one that cannot be read.
    """
    most = {item: label for item, label in majorities(annotations).items() if label is not None}
    folders = sorted({f.resolve(): f for path in paths for f in run_folders(path)}.values())
    if not folders:
        raise RunError(f"no run folder in {', '.join(map(str, paths))}. Make some: palate eval --out runs")
    found = [_judged(folder, most) for folder in folders]
    return sorted(found, key=lambda j: (-(j.raw.value if j.raw.value is not None else -1.0), j.model, j.view))


def _judged(folder: Path, most: Mapping[str, str]) -> Judged:
    record, _ = read_record(folder)
    rows = {name: row for name, row in read_rows(folder).items() if name in most and row.follows}
    said = {name: SAID[row.derived] for name, row in rows.items() if row.derived is not None}
    labels = [(item, PEOPLE, label) for item, label in most.items()]
    model = short_model(record.model)
    name = f"run {model}"
    labels += [(item, name, label) for item, label in said.items()]
    if not said:
        nothing = Figure("raw", None, None, None, 0, 1, "no shared items")
        return Judged(model, record.config.view, folder.name, len(most), 0, nothing, nothing, nothing)
    both = cohen_kappa(tabulate(labels, PREFERENCES), PEOPLE, name)
    blind = cohen_kappa(unnamed(labels), PEOPLE, name).kappa
    return Judged(model, record.config.view, folder.name, len(most), len(said), both.raw, both.kappa, blind)

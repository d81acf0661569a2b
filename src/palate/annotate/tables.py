"""Any table of labels: a line a label, or a line an item with a column an annotator; CSV, JSONL or a JSON array."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palate.annotate.reading import objects
from palate.data.lines import BadLine, describe, iter_array, parse_object
from palate.data.problems import Problems, likely
from palate.errors import DataError, SpecError
from palate.metrics import Label, Level, Ratings, tabulate
from palate.metrics.agreement import MOST_LABELS

Cell = str | int | float
ADVICE = "Say which columns to read with --item, --annotator and --label."


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns to read.

    `item`: together they name the item. `annotator`: who labelled; None if each of `label` is an annotator's own.
    """

    item: tuple[str, ...]
    annotator: str | None
    label: tuple[str, ...]


def read_table(path: Path, columns: Columns, level: Level, order: Sequence[str] = ()) -> Ratings:
    """Return the labels of a table; an empty cell is a label that was not given.

    Args:
        path: `.csv`, `.jsonl` or `.json`.
        columns: which to read.
        level: ordinal and interval need an order: labels that are numbers, or for ordinal ones `order`.
        order: the labels from low to high.

    Raises:
        SpecError: columns that do not go together.
        DataError: what is wrong, by line.
    """
    if not columns.item or not columns.label:
        raise SpecError("a table needs --item and --label.")
    if columns.annotator is not None and len(columns.label) > 1:
        raise SpecError("with --annotator there is one --label; without it each --label is an annotator's column.")
    if len({*columns.item, *columns.label, columns.annotator}) < len(columns.item) + len(columns.label) + 1:
        raise SpecError("--item, --annotator and --label must be different columns.")
    problems = Problems()
    labels: list[tuple[Any, str, Cell]] = []
    taken: dict[tuple[Any, str], str] = {}
    for where, row in _rows(path, problems):
        try:
            found = list(_labels(row, columns))
        except ValueError as bad:
            problems.add(where, str(bad))
            continue
        for unit, name, _ in found:
            if (earlier := taken.setdefault((unit, name), where)) != where:
                problems.add(where, f"'{name}' labelled {' '.join(map(str, unit))} already in {earlier}")
        labels += found
    if problems.total:
        raise problems.error(path.name, ADVICE)
    return _ratings(path, labels, level, order)


def _ratings(path: Path, labels: Sequence[tuple[Any, str, Cell]], level: Level, order: Sequence[str]) -> Ratings:
    if not labels:
        raise DataError(f"{path}: no labels in it. {ADVICE}")
    numbers = {label: _number(label) for _, _, label in labels}
    texts = None in numbers.values()
    values: dict[Cell, Label] = {c: str(c) if texts or number is None else number for c, number in numbers.items()}
    scale: list[Label] | None = None
    if len(set(order)) < len(order):
        raise SpecError("--order names a label twice.")
    if order:
        known = {str(cell): value for cell, value in values.items()}
        scale = [known.get(name, name) for name in order]
        if missing := [str(cell) for cell, value in values.items() if value not in scale]:
            raise SpecError(f"--order lacks the labels {', '.join(sorted(missing))}.")
    if level != "nominal" and texts and (not order or level == "interval"):
        unordered = sorted(str(cell) for cell, number in numbers.items() if number is None)[:5]
        raise SpecError(
            f"--level {level} needs numbers or, for ordinal, --order; these are neither: {', '.join(unordered)}."
        )
    if len(set(values.values())) > MOST_LABELS:
        raise DataError(f"{path}: {len(set(values.values()))} different labels; at most {MOST_LABELS} can be compared.")
    return tabulate([(unit, name, values[label]) for unit, name, label in labels], scale)


def _number(cell: Cell) -> int | float | None:
    if not isinstance(cell, str):
        return cell
    try:
        value = float(cell)
    except ValueError:
        return None
    return (int(value) if value.is_integer() else value) if abs(value) < 1e15 else None


def _labels(row: Mapping[str, Any], columns: Columns) -> Iterator[tuple[Any, str, Cell]]:
    unit = tuple(_cell(row, name) for name in columns.item)
    if None in unit:
        raise ValueError(f"{columns.item[unit.index(None)]}: empty, so the item is not named")
    for column in columns.label:
        label = _cell(row, column)
        name = column if columns.annotator is None else _cell(row, columns.annotator)
        if name is None:
            raise ValueError(f"{columns.annotator}: empty, so nobody gave the label")
        if label is not None:
            yield unit, str(name), label


def _cell(row: Mapping[str, Any], name: str) -> Cell | None:
    """Return what stands in a column, None for an empty cell."""
    if name not in row:
        raise ValueError(f"no column '{name}'.{likely(name, list(row))}")
    value = row[name]
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int | float):
        raise ValueError(f"{name}: expected a text or a number, found {describe(value)}")
    return value.strip() if isinstance(value, str) else value


def _rows(path: Path, problems: Problems) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if not path.is_file():
        raise DataError(f"{path}: no such file.")
    if path.suffix == ".jsonl":
        yield from objects(path, problems)
    elif path.suffix == ".json":
        yield from _array(path)
    elif path.suffix == ".csv":
        yield from _csv(path)
    else:
        raise DataError(f"{path}: the ending '{path.suffix}' is not known. Known: .csv, .jsonl, .json.")


def _array(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    try:
        for number, text in enumerate(iter_array(path), 1):
            yield f"{path.name}, record {number}", parse_object(text.encode())
    except BadLine as bad:
        raise DataError(f"{path}: {bad}") from None


def _csv(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as handle:
            reader = csv.DictReader(handle, strict=True, restkey="", restval=None)
            names = reader.fieldnames or []
            if len(set(names)) < len(names):
                raise DataError(f"{path}: two columns have one name in {', '.join(names)}.")
            for row in reader:
                if "" in row and isinstance(row[""], list):
                    raise DataError(f"{path.name}, line {reader.line_num}: more cells than columns.")
                yield f"{path.name}, line {reader.line_num}", row
    except (csv.Error, UnicodeDecodeError) as bad:
        raise DataError(f"{path}: not readable as CSV in UTF-8 ({bad}).") from None

"""A table of labels: what each annotator said of each unit, with gaps where nobody was asked."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int64]
Counts = NDArray[np.float64]
Label = str | int | float
NOT_GIVEN = -1


@dataclass(frozen=True, slots=True)
class Ratings:
    """Labels as codes.

    `codes` is units × annotators, an index into `labels` or `NOT_GIVEN`. `labels` are in their order, which matters
    for ordinal and interval figures. `items` has for each unit the code of the item it belongs to: an item whose two
    answers are rated is one item with two units, and is resampled as a whole.
    """

    codes: Codes
    labels: tuple[Label, ...]
    annotators: tuple[str, ...]
    items: Codes

    def counts(self) -> Counts:
        """Return units × labels: how many annotators gave the unit each label."""
        found = np.zeros((len(self.codes), len(self.labels)))
        units, annotators = np.nonzero(self.codes != NOT_GIVEN)
        np.add.at(found, (units, self.codes[units, annotators]), 1)
        return found

    def pairable(self) -> "Ratings":
        """Return the units with two labels or more; only those can tell anything about agreement."""
        kept = (self.codes != NOT_GIVEN).sum(axis=1) >= 2
        return Ratings(self.codes[kept], self.labels, self.annotators, self.items[kept])

    @property
    def active(self) -> int:
        """How many annotators gave a label."""
        return int((self.codes != NOT_GIVEN).any(axis=0).sum())

    @property
    def item_count(self) -> int:
        """How many items the units belong to."""
        return len(np.unique(self.items))


def tabulate(
    rows: Iterable[tuple[Hashable, str, Label]],
    scale: Sequence[Label] | None = None,
    items: Mapping[Any, Hashable] | None = None,
) -> Ratings:
    """Return the table of (unit, annotator, label) rows.

    Args:
        rows: no unit and annotator twice.
        scale: all labels in their order; default is those that occur, sorted.
        items: the item each unit belongs to; default is that each unit is one.

    Raises:
        ValueError: a unit and annotator twice, or a label that is not on the scale.
    """
    found = list(rows)
    labels = tuple(scale) if scale is not None else tuple(sorted({label for _, _, label in found}, key=_place))
    where = {label: k for k, label in enumerate(labels)}
    units = {unit: k for k, unit in enumerate(dict.fromkeys(unit for unit, _, _ in found))}
    people = {name: k for k, name in enumerate(dict.fromkeys(name for _, name, _ in found))}
    codes = np.full((len(units), len(people)), NOT_GIVEN, dtype=np.int64)
    for unit, name, label in found:
        if label not in where:
            raise ValueError(f"the label {label!r} is not on the scale {', '.join(map(str, labels))}")
        place = units[unit], people[name]
        if codes[place] != NOT_GIVEN:
            raise ValueError(f"{name} labelled {unit} twice")
        codes[place] = where[label]
    owners: dict[Hashable, int] = {}
    own = [owners.setdefault(items[u] if items is not None else u, len(owners)) for u in units]
    return Ratings(codes, labels, tuple(people), np.array(own, dtype=np.int64))


def _place(label: Label) -> tuple[bool, float, str]:
    """Return what labels are sorted by: numbers by size, then texts."""
    return (True, 0.0, label) if isinstance(label, str) else (False, float(label), "")

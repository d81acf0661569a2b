"""Who sees which item, in what order, and which answer first. Pure and seeded; nobody ever loses an item."""

import hashlib
from collections.abc import Mapping, Sequence

from palate.annotate.fields import Side


def order(seed: int, *parts: str) -> bytes:
    """Return a hash that orders things at random, the same on every machine."""
    return hashlib.sha256("\0".join((str(seed), *parts)).encode()).digest()


def first_seat(seed: int, item: str, annotator: str) -> Side:
    """Return which answer this annotator sees as answer A of this item."""
    return "chosen" if order(seed, "seat", item, annotator)[0] % 2 == 0 else "rejected"


def share_out(
    items: Sequence[str],
    overlap: int,
    seed: int,
    held: Mapping[str, Sequence[str]],
    new: Sequence[str],
    finished: Mapping[str, int],
) -> dict[str, list[str]]:
    """Return the items of each new annotator; those in `held` keep theirs.

    Every item goes to `overlap` annotators, or to all if there are fewer, in loads that differ by one at most. Who
    comes later takes what is still short of annotators, and then an equal share of those that fewest have finished.

    Args:
        items: the ids of the study's items.
        overlap: how many annotators an item should have.
        seed: of the random order.
        held: the items of the annotators who are there already.
        new: the names to be added.
        finished: how many annotators have finished an item; absent means none.
    """
    assigned = dict.fromkeys(items, 0)
    for theirs in held.values():
        for item in theirs:
            assigned[item] += 1
    got: dict[str, list[str]] = {name: [] for name in new}
    for item in sorted(items, key=lambda i: order(seed, "item", i)):
        need = max(0, overlap - assigned[item])
        for name in sorted(new, key=lambda n: (len(got[n]), order(seed, "who", item, n)))[:need]:
            got[name].append(item)
            assigned[item] += 1
    fair = min(len(items), len(items) * overlap // (len(held) + len(new)))
    for name in new:
        mine = set(got[name])
        rest = [i for i in items if i not in mine] if len(mine) < fair else []
        rest.sort(key=lambda i: (finished.get(i, 0), assigned[i], order(seed, "more", i, name)))
        for item in rest[: fair - len(mine)]:
            got[name].append(item)
            assigned[item] += 1
    return got


def in_order(seed: int, annotator: str, items: Sequence[str], attention: Sequence[str]) -> list[str]:
    """Return an annotator's items in their own random order, the attention items spread evenly among them."""
    found = sorted(items, key=lambda i: order(seed, "order", annotator, i))
    checks = sorted(attention, key=lambda i: order(seed, "order", annotator, i))
    step = len(found) / (len(checks) or 1)
    for k, item in reversed(list(enumerate(checks))):
        jitter = order(seed, "place", annotator, item)[0] / 256
        found.insert(round((k + 0.25 + jitter / 2) * step), item)
    return found

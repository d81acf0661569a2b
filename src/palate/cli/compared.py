"""What `palate report --compare` prints, on 80 columns: the answer, what differs, and the items it rests on."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from palate.cli.output import points, share
from palate.evaluation.names import cut
from palate.report.agreement import Half, Pair, counts
from palate.report.compare import Comparison, Side

WIDTH = 80
SHOWN = 10
NONE = "–"


def compared_lines(found: Comparison) -> Iterator[str]:
    """Yield the lines of a comparison; none is wider than 80 signs, and none holds a sign that cannot be seen."""
    if found.other_model:
        yield "These are different models: their records differ in"
        yield f"  {', '.join(found.other_model)}."
    yield _summary(found)
    yield ""
    yield from _side("a", found.a)
    yield from _side("b", found.b)
    yield from _items(found)
    yield from _figures(found)
    yield from _differing("Configuration", found.config)
    yield from _differing("Environment", found.environment)
    yield from _pairs("Largest gaps", found.worst, len(found.worst))
    yield from _pairs("Flipped", found.flipped, SHOWN)
    yield from _pairs("Tie in one, decided in the other", found.tie_changed, SHOWN)
    yield from _pairs("Another status", found.status_differs, SHOWN)


def check_line(found: Comparison) -> str:
    """Return what the check against the tolerance came to."""
    assert found.tolerance is not None, "there is no check without a tolerance"
    told = f"within the tolerance of {found.tolerance:g}, none flipped, no other status"
    return f"disagree: {'; '.join(found.failures)}" if found.failures else f"agree: {told}"


def _summary(found: Comparison) -> str:
    what = "in the same order" if found.gaps else "with the same outcome"
    gap = f", largest gap {found.gaps.largest:.4g}" if found.gaps else ""
    return f"{found.same} of {len(found.scored)} pairs {what}, {len(found.flipped)} flipped{gap}"


def _side(name: str, side: Side) -> Iterator[str]:
    yield _row(f"{name}  {side.model}")
    yield _row(f"   {side.folder}")
    for remark in side.remarks:
        yield _row(f"   ! {remark}")


def _items(found: Comparison) -> Iterator[str]:
    yield _row(f"Items ({cut(found.data, 30)}, {cut(found.view, 30)})")
    yield f"  {len(found.pairs)} in both, {len(found.only_a)} only in a, {len(found.only_b)} only in b"
    yield f"  {len(found.scored)} scored by both, {len(found.status_differs)} with another status"
    for (one, other), count in counts(found.status_differs, "status").items():
        yield f"    {count}: {one} in a, {other} in b"
    if found.shown_differs:
        yield f"  {found.shown_differs} were shown other entries or fewer of them"


def _figures(found: Comparison) -> Iterator[str]:
    yield "Outcomes"
    changed = f"{len(found.flipped)} flipped, {_ties(len(found.tie_changed))}"
    yield f"  {found.same} the same ({share(found.share)}), {changed}"
    one, other = found.accuracy
    told = f"a {share(one)}, b {share(other)}, difference {points(found.difference)} points"
    yield f"  accuracy: {told if one is not None else found.reasons['accuracy']}"
    yield "Gaps"
    if found.gaps is None:
        yield f"  none: {found.reasons['gaps']}"
        return
    gaps = found.gaps
    yield f"  of a score: largest {gaps.largest:.6g}, median {gaps.median:.6g}"
    yield f"  of the margin: largest {gaps.margin_largest:.6g}, median {gaps.margin_median:.6g}"
    yield f"  exactly equal: {gaps.equal} of {gaps.scores} scores"


def _ties(count: int) -> str:
    return f"{count} {'tie' if count == 1 else 'ties'} in one run only"


def _differing(title: str, fields: Mapping[str, tuple[Any, Any]]) -> Iterator[str]:
    yield f"{title}: {'differs in' if fields else 'no difference'}"
    for name, values in fields.items():
        one, other = map(_value, values)
        line = f"  {cut(name)}: {one} | {other}"
        if len(line) <= WIDTH:
            yield line
        else:
            yield from (_row(f"  {name}"), _row(f"    a  {one}"), _row(f"    b  {other}"))


def _value(value: Any) -> str:
    if value is None:
        return NONE
    return cut(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), WIDTH)


def _pairs(title: str, pairs: Sequence[Pair], most: int) -> Iterator[str]:
    if not pairs:
        return
    yield title
    for pair in pairs[:most]:
        gap = "" if pair.gap is None else f"  gap {pair.gap:.6g}, of the margin {pair.margin_gap:.6g}"
        yield f"  {cut(pair.id, 30)}{gap}"
        yield _half("a", pair.a)
        yield _half("b", pair.b)
    if len(pairs) > most:
        yield f"  … and {len(pairs) - most} more (--json has all)"


def _half(name: str, half: Half) -> str:
    head = f"    {name}  {half.outcome or half.status}"
    if half.margin is None:
        return head
    return f"{head:<16}{half.chosen:.6g} against {half.rejected:.6g}, margin {half.margin:.6g}"


def _row(text: str) -> str:
    return cut(text, WIDTH)

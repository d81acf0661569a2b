"""Doing work that may stop at any moment: what is done stays done, what is missing is done next time."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from palate.store.rows import RowLog

Row = Mapping[str, Any]
Counted = Callable[[int, int, int], None]


def unfinished(log: RowLog, ids: Sequence[str], retry: Collection[str] = ()) -> list[str]:
    """Return the ids that have to be worked on: missing, `error`, `truncated` for the first time, or asked for.

    Args:
        log: the rows so far.
        ids: all ids of the work, in order.
        retry: further statuses to do again.
    """
    return [name for name in ids if _again(log.rows.get(name), log.tries[name], retry)]


def _again(row: Row | None, tries: int, retry: Collection[str]) -> bool:
    if row is None:
        return True
    status = row["status"]
    return status == "error" or status in retry or (status == "truncated" and tries < 2)


def drive(
    log: RowLog,
    todo: Sequence[str],
    step: Callable[[Sequence[str]], Iterable[Row]],
    seen: Callable[[Row], None],
) -> None:
    """Append what `step` yields for `todo`, one row at a time; this is the only writer.

    Args:
        log: where rows go.
        todo: ids to work on.
        step: turns ids into rows, in any order.
        seen: told of every row after it is safe.
    """
    with log:
        for row in _checked(step(todo), set(todo)):
            log.append(row)
            seen(row)


def _checked(rows: Iterable[Row], expected: set[str]) -> Iterator[Row]:
    for row in rows:
        assert row["id"] in expected, f"a row for {row['id']}, which was not asked for or came twice"
        expected.remove(row["id"])
        yield row
    assert not expected, f"no row for {sorted(expected)[:3]}"


def counting(seen: Counted | None, total: int, todo: int) -> Callable[[object], None]:
    """Return a `tell` for `drive` that counts on from what was done before.

    Args:
        seen: gets (done, of how many, done before), at once and after each row.
        total: of how many.
        todo: how many of them are not done yet.
    """
    done = before = total - todo
    if seen:
        seen(done, total, before)

    def tell(_: object) -> None:
        nonlocal done
        done += 1
        if seen:
            seen(done, total, before)

    return tell

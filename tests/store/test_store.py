"""Run folders: nothing is lost, nothing is done twice, and two processes do not meet."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palate.errors import RunError
from palate.store import RowLog, RunFolder, digest_of, drive, unfinished


def row(name: str, status: str = "ok") -> dict[str, str]:
    return {"id": name, "status": status}


def fill(path: Path, *rows: dict[str, str]) -> RowLog:
    log = RowLog(path)
    with log:
        for r in rows:
            log.append(r)
    return log


def test_the_last_line_of_an_id_wins(tmp_path: Path) -> None:
    fill(tmp_path / "rows", row("a", "error"), row("b"), row("a"))
    assert RowLog(tmp_path / "rows").rows == {"a": row("a"), "b": row("b")}


@given(cut=st.integers(0, 80))
def test_a_torn_tail_is_cut_and_the_rest_kept(cut: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("rows") / "rows"
    fill(path, row("a"), row("b"), row("ü\u2028"))
    whole = path.read_bytes()
    keep = min(cut, len(whole))
    path.write_bytes(whole[:keep])
    found = RowLog(path)
    assert len(found) == whole[:keep].count(b"\n")
    fill(path, row("z"))
    assert RowLog(path).rows["z"] == row("z")


def test_a_broken_line_in_the_middle_is_no_crash_of_ours(tmp_path: Path) -> None:
    (tmp_path / "rows").write_bytes(b'{"id": "a", "status": "ok"}\nnonsense\n{"id": "b", "status": "ok"}\n')
    with pytest.raises(RunError, match="line 2"):
        RowLog(tmp_path / "rows")


def test_what_is_unfinished(tmp_path: Path) -> None:
    log = fill(
        tmp_path / "rows", row("ok"), row("error", "error"), row("cut", "truncated"),
        row("twice", "truncated"), row("twice", "truncated"), row("long", "overlong"),
    )  # fmt: skip
    ids = ["ok", "error", "cut", "twice", "long", "new"]
    assert unfinished(log, ids) == ["error", "cut", "new"]
    assert unfinished(log, ids, retry=["overlong"]) == ["error", "cut", "long", "new"]


def test_drive_writes_each_row_before_it_is_told(tmp_path: Path) -> None:
    path, seen = tmp_path / "rows", []

    def check(found: object) -> None:
        seen.append(found)
        assert len(path.read_bytes().splitlines()) == len(seen)

    drive(RowLog(path), ["a", "b"], lambda names: [row(n) for n in reversed(names)], check)
    assert list(RowLog(path).rows) == ["b", "a"]


@pytest.mark.parametrize("rows", [["a"], ["a", "a"], ["a", "x"]])
def test_a_step_must_give_each_row_once(tmp_path: Path, rows: Sequence[str]) -> None:
    with pytest.raises(AssertionError):
        drive(RowLog(tmp_path / "rows"), ["a", "b"], lambda _: [row(n) for n in rows], lambda _: None)


def test_rows_are_strict_json(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Out of range"), RowLog(tmp_path / "rows") as log:
        log.append({"id": "a", "status": "ok", "chosen_score": float("nan")})


def test_a_second_process_is_kept_out(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from palate.store import RunFolder\n"
        "with RunFolder(Path(sys.argv[1])):\n  print('in', flush=True); sys.stdin.read()\n"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ
    )
    assert other.stdout is not None
    assert other.stdout.readline() == b"in\n"
    with pytest.raises(RunError, match="another process"), RunFolder(tmp_path):
        pass
    other.kill()
    other.wait()
    with RunFolder(tmp_path) as mine:
        assert mine.record() is None


def test_a_fresh_start_keeps_the_old_rows(tmp_path: Path) -> None:
    with RunFolder(tmp_path) as folder:
        for k in (1, 2):
            fill(folder.rows, row(str(k)))
            folder.write_record({"k": k})
            folder.set_aside()
    assert json.loads((tmp_path / "old-2-run.json").read_text()) == {"k": 2}
    assert "1" in (tmp_path / "old-1-rows.jsonl").read_text()
    assert not folder.rows.exists()


def test_a_digest_does_not_depend_on_order() -> None:
    assert digest_of({"a": 1, "b": [2, None]}) == digest_of({"b": [2, None], "a": 1}) != digest_of({"a": 1})


def test_an_unreadable_record_is_told(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(RunError, match="--fresh"):
        RunFolder(tmp_path).record()

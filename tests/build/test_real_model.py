"""A real small model writes pairs end to end. It is far too weak: the gates must reject most, and say why."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from palate import open_data
from palate.build import build
from palate.grading import ANSWER_GATES, PAIR_GATES
from palate.grading.judged import GATES
from smollm import serving_smollm

pytest.importorskip("py3langid")
pytest.importorskip("pyarrow")
pytestmark = [pytest.mark.llm, pytest.mark.xdist_group("llm")]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The base URL of the server while the tests of this file run."""
    with serving_smollm() as url:
        yield url


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_smollm_writes_pairs_and_the_gates_say_what_is_wrong_with_them(server: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    writer, judge = "smollm2?connections=2&max_tokens=160", "smollm2-as-judge?connections=2&max_tokens=80"
    built = build("sample", out, writer, judge, k=1, limit=3, tries=1, base_url=server, licence="cc-by-4.0")
    counts = built.record["counts"]
    assert counts["items read"] == counts["pairs tried"] == 3
    assert counts["pairs dropped"] >= 2
    rows = lines(out / ".build" / "rows.jsonl")
    for row in rows:
        checks = row["attempts"][-1]["checks"]
        bad = [c for c in checks if c["status"] not in ("pass", "unknown")]
        assert (row["status"] == "ok") == (not bad)
        assert all(c["reason"] for c in bad)
        assert {c["gate"] for c in checks} <= {"reply", *ANSWER_GATES, *PAIR_GATES, *GATES}
    calls = lines(out / ".build" / "calls.jsonl")
    assert len(calls) >= 6
    assert all(c["usage"]["prompt_tokens"] > 100 for c in calls if c["status"] == "ok")
    if built.items:
        assert len(open_data(str(out))) == built.items
    again = build("sample", out, writer, judge, k=1, limit=3, tries=1, base_url="http://127.0.0.1:9/v1")
    assert again.record["counts"] == counts
    assert len(lines(out / ".build" / "calls.jsonl")) == len(calls)


def test_aspects_that_smollm_makes_up_are_refused(server: str, tmp_path: Path) -> None:
    source = open_data("sample")
    item, key = source.get(source.ids[0]), source.key(source.ids[0])
    assert key is not None
    row = {"id": item.id, "user_id": item.user_id, "question": item.question, "narrative": key.narrative}
    data, out = tmp_path / "data.jsonl", tmp_path / "out"
    data.write_text(json.dumps(row) + "\n")
    model = "smollm2?connections=2&max_tokens=60&temperature=0"
    built = build(data, out, model, base_url=server, tries=1, keys_from_narratives=True)
    [found] = lines(out / ".build" / "keys.jsonl")
    for aspect in found["aspects"]:
        assert aspect["evidence"] in " ".join((key.narrative or "").split())
    assert (found["status"] == "ok") == bool(found["aspects"])
    assert built.record["counts"]["items skipped"] == (0 if found["aspects"] else 1)
    assert all(row["reason"] for row in lines(built.dropped))

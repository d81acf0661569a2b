"""Clean sets give no flag, each artefact is found by its own check, and figures are those of the built-in probes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import palate
from artefacts import ARTEFACTS, Artefact, clean_rows, single
from palate.audit import Audit, Check, audit
from palate.errors import DataError, RunError
from palate.store import dump
from rows import make_row

Audited = Callable[..., Audit]
BLIND = ("question", "history?user=none", "swapped")
SOLVED = ("solved_without_user", "solved_with_filler", "solved_with_another")


def check(found: Audit, name: str) -> Check:
    return next(c for c in found.checks if c.id == name)


def flags(found: Audit) -> set[str]:
    return {c.id for c in found.flagged}


@pytest.mark.parametrize("seed", range(6))
def test_a_clean_set_of_300_gives_no_flag(seed: int, write: Any, tmp_path: Path) -> None:
    data = write(*clean_rows(seed))
    other = write(*clean_rows(seed + 1000, items=50, twins=0), name="train.jsonl")
    palate.evaluate(data, "builtin/random", [*BLIND, "history"], tmp_path / "runs")
    found = audit(data, tmp_path / "runs", seed, against=[other])
    assert flags(found) == set()
    assert found.verdict == "ok"
    assert {c.id for c in found.checks if c.verdict == "undefined"} == {"kin"}
    assert (found.items, found.runs, found.against) == (300, 4, ("train",))


@pytest.mark.parametrize("artefact", ARTEFACTS, ids=lambda a: a.change.__name__)
def test_each_artefact_is_found_by_its_own_check(artefact: Artefact, audited: Audited) -> None:
    rows = clean_rows(0)
    artefact.change(rows)
    found = audited(rows)
    assert artefact.check in flags(found) <= {artefact.check} | artefact.also
    assert found.verdict == "flagged"


def test_the_worst_items_are_those_that_were_changed(audited: Audited) -> None:
    rows = clean_rows(1)
    row = single(rows)[4]
    row["profile"][3]["text"] += " " + row["rubric_aspects"][1]["reason"]
    found = audited(rows)
    assert len(found.support) == found.as_dict()["data"]["items"] == 300
    assert sum(found.support.values()) / 300 == pytest.approx(check(found, "inferability").whole.value, abs=0.01)
    worst = check(found, "leak_history").worst
    assert [w.item_id for w in worst] == [row["id"]]
    words = row["rubric_aspects"][1]["reason"].lower().replace(".", "")
    assert worst[0].text == f"reason in history: {words}"


def plant(data: Path, runs: Path, view: str, share: float) -> None:
    """Make a run under `view` in which the first of the items are right."""
    (made,) = palate.evaluate(data, "builtin/random", view, runs)
    rows = [json.loads(line) for line in (made.folder / "rows.jsonl").open()]
    order = {r["id"]: k for k, r in enumerate(rows)}
    for row in rows:
        right = order[row["id"]] < share * len(rows)
        row |= {"chosen_score": float(right), "rejected_score": float(not right)}
        row["outcome"] = "correct" if right else "wrong"
    (made.folder / "rows.jsonl").write_text("".join(dump(r) + "\n" for r in rows))


@pytest.mark.parametrize(("view", "name"), list(zip(BLIND, SOLVED, strict=True)))
def test_what_is_solved_without_the_own_user_is_flagged(view: str, name: str, write: Any, tmp_path: Path) -> None:
    data = write(*clean_rows(0, twins=0))
    plant(data, tmp_path / "runs", view, 0.7)
    found = audit(data, tmp_path / "runs")
    assert flags(found) == {name}
    assert check(found, name).whole.value == 0.7


def test_accuracy_lift_and_thirds_come_from_runs(write: Any, tmp_path: Path) -> None:
    data = write(*clean_rows(0))
    done = palate.evaluate(data, "builtin/lexical", [*BLIND, "history"], tmp_path / "runs")
    found = audit(data, tmp_path / "runs")
    question = check(found, "solved_without_user").whole
    assert question.value == done.run("builtin/lexical", "question").metrics["accuracy"]
    (drop,) = [p for p in check(found, "solved_with_another").parts if not p.judged]
    contrast = next(c for c in done.contrasts if c.kind == "swap_drop")
    assert (drop.value, drop.ci95) == (contrast.difference.value, contrast.difference.ci95)
    thirds = [p for p in check(found, "inferability").parts if p.name.endswith("third")]
    whole = done.run("builtin/lexical", "history").metrics["accuracy"]
    assert [p.n for p in thirds] == [100, 100, 100]
    assert sum(p.value or 0 for p in thirds) / 3 == pytest.approx(whole)


@pytest.mark.parametrize("data", ["sample", "rows"])
def test_the_probes_are_the_built_in_reward_models(data: str, write: Any, tmp_path: Path) -> None:
    if data == "rows":
        data = str(write(*(make_row(k, chosen=f"A{k % 3 * ' longer'} bean stew, {k}!") for k in range(40))))
    done = palate.evaluate(data, [f"builtin/{n}" for n in ("length", "style", "lexical")], "question", tmp_path)
    found = audit(data)
    for run in done:
        assert check(found, run.model.partition("/")[2]).whole.value == run.metrics["accuracy"]


@pytest.mark.shared
def test_public_pairs_show_that_the_longer_answer_won(shared: Path) -> None:
    found = audit(shared / "se_beer_pairs/se_beer_lampqa_like.jsonl")
    length = check(found, "length")
    assert round(length.whole.value or 0, 3) == 0.719
    assert length.verdict == "flagged"
    assert check(found, "inferability").verdict == "undefined"


def test_a_domain_solved_by_length_is_flagged_though_the_whole_is_even(audited: Audited) -> None:
    even = [make_row(k, chosen=f"Beans {k:03d}.", rejected=f"Roast {k:03d}.") for k in range(200)]
    rows = even + [make_row(k, domain="tiny", chosen=f"Many words of {k}.", rejected="No.") for k in range(200, 212)]
    length = check(audited(rows), "length")
    assert length.whole.verdict == "ok"
    assert [(p.name, p.value, p.verdict) for p in length.parts] == [("food", 0.5, "ok"), ("tiny", 1.0, "flagged")]
    assert (length.verdict, length.reason) == ("flagged", "in tiny")


def test_a_figure_beyond_its_threshold_that_chance_explains_is_ok_and_says_so(audited: Audited) -> None:
    few = [make_row(k, chosen=f"Beans, and more beans {k}.", rejected=f"Roast {k}.") for k in range(3)]
    length = check(audited(few), "length")
    assert (length.whole.value, length.verdict) == (1.0, "ok")
    assert length.reason == "beyond, but chance is not ruled out"
    assert check(audited(few), "near_equal").reason is None


def test_users_and_texts_in_other_data_are_found_by_kind(write: Any) -> None:
    rows = clean_rows(3, items=40, twins=0)
    other = clean_rows(4, items=40, twins=0)
    other[0]["user_id"] = rows[0]["user_id"]
    other[1]["question"] = rows[1]["question"].upper()
    other[2]["rejected"] = rows[2]["chosen"]
    other[3]["profile"][0]["text"] = rows[3]["profile"][9]["text"]
    found = audit(write(*rows), against=[write(*other, name="train.jsonl")])
    splits = check(found, "splits")
    assert splits.verdict == "flagged"
    assert splits.whole.value == 4
    assert {p.name: p.value for p in splits.parts} == {"user": 1, "question": 1, "answer": 1, "post": 1}
    assert [w.item_id for w in splits.worst] == [rows[k]["id"] for k in range(4)]


def test_faults_are_counted_and_the_rest_is_audited(write: Any) -> None:
    data = write(*clean_rows(0, items=20), make_row(1, chosen=" "), make_row(2, chosen="Soup.", rejected="Soup. "))
    found = audit(data)
    records = check(found, "records")
    assert (found.items, records.whole.value, records.whole.n) == (20, 2, 22)
    assert records.worst[0].item_id == "data.jsonl, line 21"
    assert "blank" in records.worst[0].text
    left_out = audit(palate.open_data(f"{data}?invalid=skip"))
    assert check(left_out, "records").whole.value == 2


def test_judges_that_are_kin_to_the_writer_are_flagged(write: Any, tmp_path: Path) -> None:
    data = write(*(r | {"generator": "Qwen2.5-72B"} for r in clean_rows(0, items=40)))
    (made,) = palate.evaluate(data, "builtin/random", "history", tmp_path / "runs")
    record = json.loads((made.folder / "run.json").read_text())
    record["config"]["model"] |= {"family": "judge", "id": "qwen3-8b"}
    record["environment"] |= {"base_url": "http://host/?key=sk-TEST-abc123"}
    (made.folder / "run.json").write_text(json.dumps(record))
    found = audit(data, tmp_path / "runs")
    assert (check(found, "kin").verdict, check(found, "kin").parts[0].name) == ("flagged", "judge/qwen3-8b")
    assert "sk-TEST" not in dump(found.as_dict())


def test_data_without_pairs_keys_users_or_twins_says_so(audited: Audited) -> None:
    bare = [{"id": str(k), "question": f"What about number {k}?"} for k in range(5)]
    found = audited(bare)
    reasons = {c.id: c.reason for c in found.checks if c.verdict == "undefined"}
    assert reasons["length"] == reasons["near_equal"] == "no pairs of chosen and rejected answers"
    assert reasons["leak_answer"] == "no item has a key"
    assert reasons["users"] == "no user ids"
    assert reasons["twins"] == "no item names a twin"
    assert flags(found) == {"cold_start"}
    assert all(c.whole.value is None for c in found.checks if c.verdict == "undefined")


def test_an_item_without_key_or_an_aspect_without_evidence_is_no_obstacle(audited: Audited) -> None:
    rows = clean_rows(0, items=40, twins=0)
    del rows[0]["rubric_aspects"], rows[0]["narrative"]
    del rows[1]["rubric_aspects"][0]["evidence"]
    found = audited(rows)
    assert check(found, "leak_history").whole.n == 39
    assert flags(found) == set()


def test_the_same_seed_gives_the_same_figures_in_another_process(write: Any) -> None:
    import subprocess
    import sys

    data = write(*clean_rows(2, items=60))
    code = "import sys, json; from palate.audit import audit; print(json.dumps(audit(sys.argv[1]).as_dict()))"
    one, other = (
        subprocess.run([sys.executable, "-c", code, str(data)], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    )
    assert one == other
    assert json.loads(one)["checks"]


def test_bad_input_is_one_message(write: Any, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no file or folder"):
        audit(tmp_path / "nowhere.jsonl")
    with pytest.raises(DataError, match="empty"):
        audit(write())
    data = write(*clean_rows(0, items=4))
    with pytest.raises(RunError, match="no such folder"):
        audit(data, tmp_path / "runs")
    palate.evaluate("sample", "builtin/length", "question", tmp_path / "runs")
    with pytest.raises(RunError, match=r"no run on data \(1 on other data\)"):
        audit(data, tmp_path / "runs")

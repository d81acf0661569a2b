"""`export_data`: what comes back through `open_data` is what went out, and what a form cannot hold is told."""

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from palate.data import Dataset, label_studio, open_data
from palate.data.export import FORMS, export_data
from palate.errors import DataError, SpecError
from palate.records import Message, Query
from palate.retrieval import make_retriever
from palate.views import Looker, NoContext, View
from rows import make_row


def asker(data: Dataset, view: str = "question") -> Callable[[str], Query]:
    looker = Looker(data, make_retriever("bm25"))

    def asked(name: str) -> Query:
        query = looker.query(name, View.parse(view))
        assert not isinstance(query, NoContext)
        return query

    return asked


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


CHAT = [
    {"role": "user", "content": "Tea?"},
    {"role": "assistant", "content": "When?"},
    {"role": "user", "content": "At noon."},
]


@pytest.fixture
def data(write: Any) -> Dataset:
    """Two questions and a conversation, of which one has a history of choices."""
    earlier = [{"id": "c", "text": "Yes.", "rejected": "No.", "prompt": "Tea?", "date": "2024-01"}]
    chat = make_row(3, question=None, messages=CHAT, profile=earlier, mood="calm", rubric_aspects=None)
    return open_data(str(write(make_row(1), make_row(2, category="soup", persona="A cook."), chat)))


@pytest.mark.parametrize("form", ["rewardbench", "trl"])
def test_chat_forms_come_back_with_ids_turns_and_answers(data: Dataset, tmp_path: Path, form: str) -> None:
    made = export_data(data, tmp_path / "out.jsonl", form, asker(data))
    again = open_data(str(tmp_path / "out.jsonl"))
    assert made.count == len(again) == 3
    for name in data.ids:
        assert again.get(name).messages == data.get(name).messages
        assert again.answers(name) == data.answers(name)
        assert again.key(name) is None
        assert again.get(name).domain == ("food" if form == "rewardbench" else "all")
    expected = {"user_id": 3, "profile": 3, "category": 1, "persona": 1, "mood": 1, "rubric_aspects": 2, "narrative": 3}
    assert made.lost == expected | ({"domain": 3} if form == "trl" else {})


def test_the_fields_are_those_of_the_forms(data: Dataset, tmp_path: Path) -> None:
    export_data(data, tmp_path / "rb.jsonl", "rewardbench", asker(data))
    export_data(data, tmp_path / "trl.jsonl", "trl", asker(data))
    one, *_, chat = rows_of(tmp_path / "rb.jsonl")
    assert set(one) == {"id", "prompt", "chosen", "rejected", "subset"}
    assert (one["prompt"], chat["prompt"]) == ("What should I cook on day 1?", CHAT)
    one, *_, chat = rows_of(tmp_path / "trl.jsonl")
    assert set(one) == {"id", "prompt", "chosen", "rejected"}
    assert chat["prompt"] == CHAT
    assert one["rejected"] == [{"role": "assistant", "content": make_row(1)["rejected"]}]


@pytest.mark.parametrize("form", ["rewardbench", "trl"])
def test_a_prompt_with_the_history_is_what_a_model_reads(data: Dataset, tmp_path: Path, form: str) -> None:
    asked = asker(data, "history?k=1")
    made = export_data(data, tmp_path / "out.jsonl", form, asked)
    again = open_data(str(tmp_path / "out.jsonl"))
    for name in data.ids:
        assert again.get(name).messages == asked(name).messages
    assert "profile" not in made.lost
    assert made.lost["posts that are not among the best"] == 2
    assert made.lost["profile[].date"] == 1
    assert "profile[].rejected" not in made.lost


def test_lamp_qa_comes_back_whole_where_it_has_the_fields(write: Any, tmp_path: Path) -> None:
    rows = [make_row(k, user_id=None, domain=None, category="soup") for k in (1, 2)]
    data = open_data(str(write(*rows)))
    bare = export_data(data, tmp_path / "bare.jsonl", "lamp-qa", asker(data))
    assert bare.lost == {"chosen, rejected": 2, "rubric_aspects": 2, "narrative": 2}
    assert "rubric" not in (tmp_path / "bare.jsonl").read_text()
    keyed = export_data(data, tmp_path / "keyed.jsonl", "personalized-rewardbench", asker(data), with_keys=True)
    assert keyed.lost == {}
    again = open_data(str(tmp_path / "keyed.jsonl"))
    for name in data.ids:
        assert again.get(name) == data.get(name)
        assert again.key(name) == data.key(name)
        assert again.answers(name) == data.answers(name)


def test_what_lamp_qa_has_no_place_for_is_told(data: Dataset, tmp_path: Path) -> None:
    made = export_data(data, tmp_path / "out.jsonl", "lamp-qa", asker(data), with_keys=True)
    told = {"turns before the question": 1, "profile[].date": 1, "profile[].prompt": 1, "profile[].rejected": 1}
    assert told.items() <= made.lost.items()
    assert (made.lost["user_id"], made.lost["chosen, rejected"]) == (3, 3)
    assert not {"rubric_aspects", "rubric_aspects[].evidence", "narrative", "category"} & set(made.lost)


def test_the_rubric_goes_nowhere_unasked(data: Dataset, tmp_path: Path) -> None:
    for form, target in FORMS.items():
        out = tmp_path / f"{form}{target.ending}"
        export_data(data, out, form, asker(data, "history"))
        assert "They have plenty" not in out.read_text()
        assert "many of them, number" not in out.read_text()


def test_refused(data: Dataset, write: Any, tmp_path: Path) -> None:
    def export(out: str, form: str, **options: bool) -> None:
        export_data(data, tmp_path / out, form, asker(data), **options)

    with pytest.raises(SpecError, match="Did you mean 'trl'"):
        export("out.jsonl", "trll")
    with pytest.raises(SpecError, match="no place for rubrics"):
        export("out.jsonl", "rewardbench", with_keys=True)
    with pytest.raises(DataError, match=r"must end in \.json\."):
        export("out.jsonl", "label-studio")
    with pytest.raises(DataError, match="item 'q3': it has no rubric"):
        export("out.json", "label-studio", with_keys=True)
    export("out.jsonl", "trl")
    before = (tmp_path / "out.jsonl").read_bytes()
    with pytest.raises(DataError, match="exists already"):
        export("out.jsonl", "trl")
    assert (tmp_path / "out.jsonl").read_bytes() == before
    samples = open_data(str(write({"id": "a", "question": "Tea?", "responses": ["Yes."]}, name="n.jsonl")))
    with pytest.raises(DataError, match="needs a chosen and a rejected answer"):
        export_data(samples, tmp_path / "new.jsonl", "trl", asker(samples))
    assert {p.name for p in tmp_path.iterdir()} == {"data.jsonl", "n.jsonl", "out.jsonl"}


def said(task: dict[str, Any], data: Dataset) -> list[dict[str, Any]]:
    """Return the results of somebody who gives the chosen answer a 5, the other a 2, and picks the chosen one."""
    fields = task["data"]
    chosen = next(a.text for a in data.answers(fields["item_id"]) if a.role == "chosen")
    best = "a" if fields["answer_a"] == chosen else "b"
    names = label_studio.GENERAL if fields["step"] == 1 else ("fit",)
    results = [
        {
            "from_name": f"{name}_{seat}",
            "to_name": f"answer_{seat}",
            "type": "rating",
            "value": {"rating": 5 if seat == best else 2},
        }
        for name in names
        for seat in "ab"
    ]
    if fields["step"] == 1:
        pick = {
            "from_name": "preference",
            "to_name": "question",
            "type": "choices",
            "value": {"choices": [best.upper()]},
        }
        note = {"from_name": "comment", "to_name": "question", "type": "textarea", "value": {"text": ["Kind."]}}
        results += [pick, note]
    return results


def annotated(tasks: list[dict[str, Any]], data: Dataset, **changes: Any) -> list[dict[str, Any]]:
    """Return tasks as Label Studio exports them, done by one person."""
    extra = {"id": 7, "task": 1, "was_cancelled": False, "ground_truth": False, "result_count": 8}
    when = {"created_at": "2026-03-09T22:16:08.728353Z", "updated_at": "2026-03-09T22:20:00Z", "lead_time": 8.5}
    return [
        task
        | {"id": k, "predictions": [], "project": 1}
        | {"annotations": [{**extra, **when, "completed_by": 10, "result": said(task, data), **changes}]}
        for k, task in enumerate(tasks, 1)
    ]


@pytest.mark.parametrize("step", [1, 2])
def test_label_studio_there_and_back(tmp_path: Path, step: int) -> None:
    data = open_data("sample")
    view = "history" if step == 1 else "question"
    made = export_data(data, tmp_path / "t.json", "label-studio", asker(data, view), with_keys=step == 2)
    tasks = json.loads((tmp_path / "t.json").read_text())
    assert made.files == (tmp_path / "t.json", tmp_path / "t.xml")
    (tmp_path / "done.json").write_text(json.dumps(annotated(tasks, data)))
    rows, skipped = label_studio.read_rows(tmp_path / "done.json")
    assert (len(rows), skipped) == (60, 0)
    for row in rows:
        assert (row["annotator"], row["step"], row["attention"], row["passed"]) == ("10", step, False, None)
        assert row["started"] == "2026-03-09T22:16:00.228353+00:00"
        if step == 1:
            assert (row["preference"], row["comment"]) == ("chosen", "Kind.")
        for name in label_studio.GENERAL if step == 1 else ("fit",):
            assert row[name] == {"chosen": 5, "rejected": 2}
        assert ("fit" in row) == (step == 2)
    firsts = [row["seats"][0] for row in rows]
    assert 20 < firsts.count("chosen") < 40


def test_the_configuration_fits_the_tasks(tmp_path: Path) -> None:
    data = open_data("sample")
    for step in (1, 2):
        out = tmp_path / f"{step}.json"
        export_data(data, out, "label-studio", asker(data, "history"), with_keys=step == 2)
        fields = json.loads(out.read_text())[0]["data"]
        tags = list(ET.fromstring(out.with_suffix(".xml").read_text()).iter())
        texts = {t.get("name"): t.get("value") for t in tags if t.tag == "Text"}
        assert all(value == f"${name}" and name in fields for name, value in texts.items())
        controls = {t.get("name"): t.get("toName") for t in tags if t.get("toName")}
        assert set(controls.values()) <= set(texts)
        names = label_studio.GENERAL if step == 1 else ("fit",)
        assert {f"{n}_{seat}" for n in names for seat in "ab"} == {n for n in controls if n and n[-2:] in ("_a", "_b")}
        assert ("rubric" in fields) == (step == 2)
        assert not {"chosen", "rejected", "narrative"} & set(fields)


def test_what_people_left_open_is_absent(tmp_path: Path) -> None:
    data = open_data("sample")
    looker = asker(data, "history")
    task = label_studio.task(looker("art-01a"), data.answers("art-01a"), None)
    results = [
        {"from_name": "factuality_a", "value": {"rating": 0}},
        {"from_name": "relevance_a", "value": {"rating": 4}},
        {"from_name": "preference", "value": {"choices": ["no difference"]}},
        {"from_name": "mood", "value": {"choices": ["calm", "glad"]}},
    ]
    done = [*annotated([task], data, result=results, lead_time=None), *annotated([task], data, was_cancelled=True)]
    (tmp_path / "done.json").write_text(json.dumps(done))
    (row,), skipped = label_studio.read_rows(tmp_path / "done.json")
    assert skipped == 1
    assert row["relevance"] == {label_studio.seats("art-01a")[0]: 4}
    assert (row["preference"], row["comment"]) == ("none", None)
    assert not {"factuality", "helpfulness", "started"} & set(row)


def test_bad_exports_are_told_by_task(tmp_path: Path) -> None:
    data = open_data("sample")
    task = label_studio.task(asker(data)("art-01a"), data.answers("art-01a"), None)
    faults: list[Any] = [
        {
            "result": [
                {"from_name": "fit_a", "value": {"rating": 9}},
                {"from_name": "relevance_b", "value": {"rating": 9}},
            ]
        },
        {"result": [{"from_name": "preference", "value": {"choices": ["C"]}}]},
        {"created_at": "yesterday"},
        {"completed_by": {"first_name": "Ann"}},
    ]
    done = [row for fault in faults for row in annotated([task], data, **fault)]
    path = tmp_path / "done.json"
    path.write_text(json.dumps([*done, {"data": {"text": "of another project"}, "annotations": []}]))
    with pytest.raises(DataError) as caught:
        label_studio.read_rows(path)
    assert caught.value.problems == (
        "done.json, task 1: relevance_b: expected a rating of 1 to 5, found 9",
        "done.json, task 2: preference: expected A, B or 'no difference', found 'C'",
        "done.json, task 3: created_at: expected a date and time, found 'yesterday'",
        "done.json, task 4: completed_by: neither 'email' nor 'id' tells who it was",
        "done.json, task 5: data.item_id: the required field is missing. Found: text.",
        "done.json, task 5: data.step: the required field is missing. Found: text.",
    )
    path.write_text('{"data": 1}')
    with pytest.raises(DataError, match="expected a JSON array"):
        label_studio.read_rows(path)


def test_a_conversation_and_its_persons_are_readable_in_a_task(data: Dataset) -> None:
    query = replace(asker(data)("q3"), turns=tuple(Message(**m) for m in CHAT))  # type: ignore[arg-type]
    fields = label_studio.task(query, data.answers("q3"), None)["data"]
    assert fields["question"] == "user: Tea?\n\nassistant: When?\n\nuser: At noon."
    assert fields["history"] == "(nothing)"

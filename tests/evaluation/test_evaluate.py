"""The main job as one call: figures, resume, limits, protocols."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import palate
from palate.errors import PalateError, RunError, Stopped
from palate.evaluation import Evaluation, Progress
from palate.records import Group, Score
from palate.rewards.baselines import Baseline
from palate.store import RowLog
from rows import make_row

VIEWS = ["question", "history", "swapped", "history?user=none", "oracle"]


def run(data: str | Path, *models: str, views: Any = "question", **options: Any) -> Evaluation:
    return palate.evaluate(str(data), models or "builtin/length", views, **options)


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]


def test_the_sample_is_half_for_whoever_does_not_read_the_user(tmp_path: Path) -> None:
    found = run("sample", "builtin/length", "builtin/style", views=VIEWS, out=tmp_path)
    for one in found:
        assert (one.metrics["accuracy"], one.metrics["both_right"]) == (0.5, 0.0)
    question = run("sample", "builtin/lexical", out=tmp_path).runs[0]
    assert (question.metrics["accuracy"], question.metrics["both_right"]) == (0.5, 0.0)


def test_the_contract_of_the_folder(write: Any, tmp_path: Path) -> None:
    data = write(*(make_row(k) for k in range(1, 5)))
    one = run(data, views="history", out=tmp_path / "runs").runs[0]
    assert one.folder.name.startswith("builtin_length--history--data--")
    record = json.loads((one.folder / "run.json").read_text())
    assert record["status"] == "complete"
    assert one.folder.name.endswith(record["digest"][:8])
    assert record["config"]["retriever"]["id"] == "bm25"
    assert record["config"]["k"] == 10
    first = rows(one.folder)[0]
    assert first == {
        "id": "q1", "status": "ok", "outcome": "wrong", "chosen_score": 39.0, "rejected_score": 51.0,
        "shown": {"posts": ["p1-1", "p1-2"], "dropped": 0}, "notes": [],
    }  # fmt: skip
    metrics = json.loads((one.folder / "metrics.json").read_text())
    counts = "n scored coverage correct wrong ties accuracy strict_accuracy ci95 ci_method both_right"
    assert {*counts.split(), "by_domain", "by_user", "by_history_size"} <= metrics.keys()
    assert metrics["reasons"]["both_right"] == "no twins"


def test_a_finished_run_is_not_done_again(write: Any, tmp_path: Path) -> None:
    data = write(*(make_row(k) for k in range(1, 5)))
    first = run(data, out=tmp_path / "runs").runs[0]
    before = (first.folder / "rows.jsonl").stat().st_mtime_ns
    seen: list[Progress] = []
    again = run(data, out=tmp_path / "runs", seen=seen.append).runs[0]
    assert (first.folder / "rows.jsonl").stat().st_mtime_ns == before
    assert [(p.done, p.before) for p in seen] == [(4, 4)]
    assert again.metrics == first.metrics


def test_raising_the_limit_extends_the_run(write: Any, tmp_path: Path) -> None:
    data = write(*(make_row(k) for k in range(1, 7)))
    assert run(data, out=tmp_path / "runs", limit=2).runs[0].metrics["n"] == 2
    seen: list[Progress] = []
    found = run(data, out=tmp_path / "runs", limit=5, seen=seen.append).runs[0]
    assert [p.done for p in seen] == [2, 3, 4, 5]
    assert found.metrics["n"] == 5
    assert len(rows(found.folder)) == 5
    assert len(list((tmp_path / "runs").iterdir())) == 1


def test_fresh_starts_anew_and_keeps_the_old(write: Any, tmp_path: Path) -> None:
    data = write(make_row(1))
    run(data, out=tmp_path / "runs")
    found = run(data, out=tmp_path / "runs", fresh=True).runs[0]
    assert (found.folder / "old-1-rows.jsonl").exists()
    assert len(rows(found.folder)) == 1


def test_another_text_is_another_run(write: Any, tmp_path: Path) -> None:
    run(write(make_row(1)), out=tmp_path / "runs")
    run(write(make_row(1, chosen="Something else.")), out=tmp_path / "runs")
    assert len(list((tmp_path / "runs").iterdir())) == 2


def test_a_folder_of_another_configuration_is_refused(write: Any, tmp_path: Path) -> None:
    data = write(make_row(1))
    folder = run(data, out=tmp_path / "runs").runs[0].folder
    record = json.loads((folder / "run.json").read_text())
    record["config"]["view"] = "history"
    (folder / "run.json").write_text(json.dumps(record))
    with pytest.raises(RunError, match="another view"):
        run(data, out=tmp_path / "runs")


class Flaky:
    """Wraps a scorer: some answers fail the first time, or the user presses Ctrl-C after a while."""

    def __init__(self, inner: Any, fail: str = "", stop_after: int = 10**9) -> None:
        self.inner, self.fail, self.stop_after = inner, fail, stop_after

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def score(self, groups: Iterable[Group]) -> Iterator[Score]:
        for k, score in enumerate(self.inner.score(groups)):
            if k == self.stop_after:
                raise KeyboardInterrupt
            failed = self.fail and score.answer_id.startswith(self.fail)
            yield Score(score.answer_id, "error", None, "the server was away") if failed else score


def use(monkeypatch: pytest.MonkeyPatch, **faults: Any) -> None:
    length = Baseline("builtin/length", lambda _, a: float(len(a.text)), {})
    monkeypatch.setattr("palate.evaluation.api.open_model", lambda *_, **__: Flaky(length, **faults))


def test_failed_items_are_told_kept_out_and_done_again(
    write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write(*(make_row(k) for k in range(1, 5)))
    use(monkeypatch, fail="q3")
    m = run(data, out=tmp_path / "runs").runs[0].metrics
    assert (m["n"], m["scored"], m["coverage"], m["status"]) == (4, 3, 0.75, {"ok": 3, "error": 1})
    use(monkeypatch)
    seen: list[Progress] = []
    found = run(data, out=tmp_path / "runs", seen=seen.append).runs[0]
    assert [p.done for p in seen] == [3, 4]
    assert found.metrics["coverage"] == 1.0


def test_interrupted_work_goes_on(write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = write(*(make_row(k) for k in range(1, 7)))
    whole = run(data, out=tmp_path / "whole").runs[0]
    use(monkeypatch, stop_after=5)
    with pytest.raises(Stopped, match="goes on"):
        run(data, out=tmp_path / "runs")
    folder = next((tmp_path / "runs").iterdir())
    assert json.loads((folder / "run.json").read_text())["status"] == "stopped"
    assert len(rows(folder)) == 2
    use(monkeypatch)
    found = run(data, out=tmp_path / "runs").runs[0]
    assert found.metrics == whole.metrics
    assert RowLog(folder / "rows.jsonl").rows == RowLog(whole.folder / "rows.jsonl").rows


def test_donors_are_averaged_over_draws(write: Any, tmp_path: Path) -> None:
    data = write(*(make_row(k) for k in range(1, 5)))
    found = run(data, "builtin/lexical", views="swapped?draws=3", out=tmp_path / "runs").runs[0]
    shown = found.rows["q1"]["shown"]
    assert len(set(shown["donors"])) == 3
    assert len(shown["draws"]) == 3
    singles = [
        run(data, "builtin/lexical", views="swapped", out=tmp_path / "runs").runs[0].rows["q1"]["chosen_score"],
        found.rows["q1"]["chosen_score"],
    ]
    assert all(s is not None for s in singles)


def test_history_sizes_cold_start_and_columns(write: Any, tmp_path: Path) -> None:
    sizes = (0, 0, 2, 5, 12)
    data = write(
        *(
            make_row(k, basis="vote" if k < 2 else "own", profile=[{"text": f"post {n}"} for n in range(size)])
            for k, size in enumerate(sizes)
        )
    )
    m = run(data, "builtin/lexical", views="history", out=tmp_path / "runs", by=["basis"]).runs[0].metrics
    assert {name: g["n"] for name, g in m["by_history_size"].items()} == {"0": 2, "1-3": 1, "4-9": 1, "10-29": 1}
    assert m["cold_start"] == 2
    assert m["coverage"] == 1.0
    assert {name: g["n"] for name, g in m["by"]["basis"].items()} == {"vote": 2, "own": 3}


def test_per_user_figures(write: Any, tmp_path: Path) -> None:
    longer = {"chosen": "Much the longer answer.", "rejected": "Short."}
    rows = [make_row(k, user_id=f"u{k // 3}", **(longer if k < 3 else {})) for k in range(6)]
    m = run(write(*rows), out=tmp_path / "runs").runs[0].metrics
    assert m["by_user"] == {"u0": {"n": 3, "scored": 3, "accuracy": 1.0}, "u1": {"n": 3, "scored": 3, "accuracy": 0.0}}
    assert m["users"]["median"] == 0.5
    assert m["ci_method"] == "wilson over users (few)"


def test_a_record_without_user_is_a_user_of_its_own(write: Any, tmp_path: Path) -> None:
    rows = [make_row(k, user_id=f"u{k % 12}") for k in range(36)]
    whole = run(write(*rows), out=tmp_path / "runs").runs[0].metrics
    found = run(write(*rows, make_row(99, user_id=None)), out=tmp_path / "runs")
    assert whole["ci_method"] == found.runs[0].metrics["ci_method"] == "wilson over users (all alike)"
    assert len(found.runs[0].metrics["by_user"]) == 12
    assert found.data.notes == ("1 items name no user: each counts as a user of its own",)


def test_without_users_items_are_the_unit(write: Any, tmp_path: Path) -> None:
    found = run(write(*(make_row(k, user_id=None) for k in range(4))), out=tmp_path / "runs")
    assert found.runs[0].metrics["reasons"]["by_user"] == "no user ids"
    assert found.runs[0].metrics["ci_method"] == "wilson"
    assert "no user ids" in found.data.notes[0]


def test_contrasts(tmp_path: Path) -> None:
    found = run("sample", "builtin/lexical", "builtin/length", views=VIEWS, out=tmp_path)
    by_kind = {(c.kind, c.model, c.view, c.other_model, c.other_view): c.difference for c in found.contrasts}
    accuracy = {v: found.run("builtin/lexical", v).metrics["accuracy"] for v in VIEWS}
    lift = by_kind["lift", "builtin/lexical", "history", "builtin/lexical", "history?user=none"]
    assert lift.value == pytest.approx(accuracy["history"] - accuracy["history?user=none"])
    drop = by_kind["swap_drop", "builtin/lexical", "history", "builtin/lexical", "swapped"]
    assert drop.value == pytest.approx(accuracy["history"] - accuracy["swapped"])
    gain = by_kind["gain", "builtin/lexical", "oracle", "builtin/lexical", "question"]
    assert gain.value == pytest.approx(accuracy["oracle"] - 0.5)
    assert by_kind["model", "builtin/length", "history", "builtin/lexical", "history"].common == 60
    assert "users" in lift.method


def test_the_paper_protocol_fixes_retriever_and_k() -> None:
    with pytest.raises(PalateError, match="ranks with dense or stored"):
        run("sample", views="history", protocol="paper", retriever="bm25")
    with pytest.raises(PalateError, match="k = 10"):
        run("sample", views="history?k=5", protocol="paper", retriever="stored/x")
    with pytest.raises(PalateError, match="Did you mean 'paper'"):
        run("sample", protocol="papr")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": ["categry"]}, "Did you mean 'category'"),
        ({"retry": ["trunkated"]}, "Did you mean 'truncated'"),
        ({"limit": 0}, "at least 1"),
        ({"views": []}, "at least one view"),
    ],
)
def test_bad_usage(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(PalateError, match=message):
        run("sample", out=tmp_path / "runs", **options)
    assert not (tmp_path / "runs").exists()


def test_data_without_pairs_is_refused(write: Any, tmp_path: Path) -> None:
    with pytest.raises(PalateError, match="chosen and a rejected"):
        run(write(make_row(1, chosen=None, rejected=None)), out=tmp_path / "runs")


@pytest.mark.shared
def test_real_questions_give_the_figures_computed_independently(shared: Path, tmp_path: Path) -> None:
    beer = run(shared / "se_beer_pairs" / "se_beer_lampqa_like.jsonl", out=tmp_path, by=["pair_basis"]).runs[0].metrics
    coffee = run(shared / "se_coffee_pairs" / "se_coffee_lampqa_like.jsonl", out=tmp_path).runs[0].metrics
    assert (beer["n"], round(beer["accuracy"], 4), beer["cold_start"]) == (397, 0.7191, 190)
    assert (coffee["n"], round(coffee["accuracy"], 4)) == (78, 0.6538)
    assert sorted(g["n"] for g in beer["by"]["pair_basis"].values()) == [136, 261]


@pytest.mark.shared
def test_real_histories_under_every_view(shared: Path, tmp_path: Path) -> None:
    beer = shared / "se_beer_pairs" / "se_beer_lampqa_like.jsonl"
    for one in run(beer, "builtin/lexical", views=["history", "swapped", "history?user=none"], out=tmp_path):
        assert one.metrics["coverage"] == 1.0
        assert one.metrics["by_history_size"]["0"]["n"] == 190
    prism = run(shared / "prism_pairs" / "prism_lampqa_like.jsonl", "builtin/lexical", views="history", out=tmp_path)
    assert prism.runs[0].metrics["users"]["users"] == 64


def test_scores_of_a_group_may_come_in_any_order(write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = write(*(make_row(k) for k in range(1, 9)))
    straight = run(data, out=tmp_path / "a").runs[0]

    class Backwards(Flaky):
        def score(self, groups: Iterable[Group]) -> Iterator[Score]:
            yield from reversed(list(self.inner.score(groups)))

    length = Baseline("builtin/length", lambda _, a: float(len(a.text)), {})
    monkeypatch.setattr("palate.evaluation.api.open_model", lambda *_, **__: Backwards(length))
    turned = run(data, out=tmp_path / "b").runs[0]
    assert dict(turned.rows) == dict(straight.rows)
    assert replace(turned, folder=straight.folder).metrics == straight.metrics


def test_lift_and_swap_drop_are_about_items_with_a_history(write: Any, tmp_path: Path) -> None:
    data = write(*(make_row(k, **({"profile": []} if k < 5 else {})) for k in range(20)))
    found = run(data, "builtin/lexical", views=["question", "history", "swapped"], out=tmp_path / "runs")
    assert {c.kind: c.difference.n for c in found.contrasts} == {"swap_drop": 15, "gain": 20}


def test_a_smaller_limit_leaves_the_larger_run_as_it_is(write: Any, tmp_path: Path) -> None:
    data = write(*(make_row(k) for k in range(1, 9)))
    whole = run(data, out=tmp_path / "runs").runs[0]
    part = run(data, out=tmp_path / "runs", limit=3).runs[0]
    assert part.metrics["n"] == 3
    for name in ("metrics.json", "run.json"):
        assert json.loads((whole.folder / name).read_text()) == dict(whole.metrics if name[0] == "m" else whole.record)


def test_options_are_part_of_the_digest_and_paths_are_not(write: Any, tmp_path: Path) -> None:
    data = write(make_row(1))
    copied = tmp_path / "copy.jsonl"
    copied.write_bytes(data.read_bytes())
    one, other = (run(path, "builtin/random?seed=1", out=tmp_path / "runs").runs[0] for path in (data, copied))
    assert one.record["digest"] == other.record["digest"]
    seeded = run(data, "builtin/random?seed=2", out=tmp_path / "runs").runs[0]
    assert seeded.record["digest"] != one.record["digest"]


class Broken(Flaky):
    """A scorer that gives NaN for one answer and forgets another."""

    def score(self, groups: Iterable[Group]) -> Iterator[Score]:
        for score in self.inner.score(groups):
            if score.answer_id == "q1#chosen":
                yield replace(score, value=float("nan"))
            elif score.answer_id != "q2#rejected":
                yield score


def test_what_is_no_number_is_an_error_of_its_item(write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    length = Baseline("builtin/length", lambda _, a: float(len(a.text)), {})
    monkeypatch.setattr("palate.evaluation.api.open_model", lambda *_, **__: Broken(length))
    found = run(write(*(make_row(k) for k in (1, 2, 3))), out=tmp_path / "runs").runs[0]
    assert {i: r["status"] for i, r in found.rows.items()} == {"q1": "error", "q2": "error", "q3": "ok"}
    assert "nan" in found.rows["q1"]["notes"][0]
    assert "no number" in found.rows["q2"]["notes"][0]


def test_posts_without_a_finite_similarity_are_counted(
    write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("palate.retrieval.bm25.Bm25.scores", lambda *_: [float("nan"), 1.0])
    found = run(write(make_row(1)), "builtin/lexical", views="history", out=tmp_path / "runs").runs[0]
    assert found.rows["q1"]["shown"] == {"posts": ["p1-2", "p1-1"], "dropped": 0, "lost": 1}
    assert found.metrics["lost_posts"] == {"items": 1, "posts": 1}


def test_too_many_draws(write: Any, tmp_path: Path) -> None:
    with pytest.raises(PalateError, match="more than the 10 nearest"):
        run(write(make_row(1)), views="swapped?draws=11")
    found = run(
        write(*(make_row(k) for k in (1, 2))), "builtin/lexical", views="swapped?draws=2", out=tmp_path / "runs"
    )
    assert "1 draws instead of 2" in found.runs[0].rows["q1"]["notes"][0]


def test_columns_of_later_records_count(write: Any, tmp_path: Path) -> None:
    found = run(write(make_row(1), make_row(2, source="web")), out=tmp_path / "runs", by="source").runs[0]
    assert {g: m["n"] for g, m in found.metrics["by"]["source"].items()} == {"(none)": 1, "web": 1}

"""On two workers of a real cluster: the numbers of a run without one, whatever happens to the workers."""

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from conftest import workers_below
from models import TinyModels
from palate.cluster import joined
from palate.cluster.pool import Pool
from palate.cluster.spread import RankWork, ScoreWork
from palate.cluster.worker import Reply
from palate.errors import ModelError
from palate.evaluation import Evaluation, evaluate
from palate.records import Message
from palate.retrieval import make_retriever
from palate.rewards import open_model
from palate.rewards.classifier import Classifier
from palate.views import Budget

pytestmark = [pytest.mark.ray, pytest.mark.hf, pytest.mark.xdist_group("ray")]

ONE_BY_ONE = "&batch=1"


def same(whole: Evaluation, other: Evaluation, retried: int = 0) -> None:
    """Check that two evaluations came to the same, in one line a row."""
    for one, two in zip(whole, other, strict=True):
        assert one.folder.name == two.folder.name
        assert (one.folder / "metrics.json").read_bytes() == (two.folder / "metrics.json").read_bytes()
        assert one.rows.keys() == two.rows.keys()
        assert len((two.folder / "rows.jsonl").read_text().splitlines()) == len(two.rows)
        for name, row in one.rows.items():
            found = two.rows[name]
            assert found["shown"] == row["shown"]
            assert found["status"] == "ok"
            assert found["chosen_score"] == pytest.approx(row["chosen_score"], abs=1e-5)
            assert found["rejected_score"] == pytest.approx(row["rejected_score"], abs=1e-5)


def test_scores_and_dense_rankings_are_those_of_one_process(cluster: str, tiny: TinyModels, tmp_path: Path) -> None:
    model, retriever = f"hf/{tiny()}", f"dense/{tiny('bert')}"
    args = {"models": model, "views": "history", "retriever": retriever, "limit": 12}
    whole = evaluate("sample", out=tmp_path / "whole", **args)  # type: ignore[arg-type]
    spread = evaluate("sample", out=tmp_path / "spread", ray=cluster, **args)  # type: ignore[arg-type]
    same(whole, spread)
    environment = spread.runs[0].record["environment"]
    assert environment["ray"]["workers"] == 2
    assert environment["device"] == "cpu"
    assert environment["attention_kernel"] == whole.runs[0].record["environment"]["attention_kernel"]


def test_a_killed_worker_costs_nothing_and_nothing_is_said(
    cluster: str, tiny: TinyModels, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    model, options = f"hf/{tiny()}", {"views": "history?k=3", "limit": 24}
    whole = evaluate("sample", model, out=tmp_path / "whole", **options)  # type: ignore[arg-type]
    at_first: list[int] = []
    at_last: list[int] = []

    def kill_one(progress: Any) -> None:
        if progress.done and not at_first:
            at_first.extend(workers_below(os.getpid()))
            os.kill(at_first[0], signal.SIGKILL)
        if progress.done == progress.total:
            at_last.extend(workers_below(os.getpid()))

    out = tmp_path / "spread"
    capfd.readouterr()
    spread = evaluate("sample", model, out=out, ray=cluster + ONE_BY_ONE, seen=kill_one, **options)  # type: ignore[arg-type]
    assert capfd.readouterr() == ("", "")
    same(whole, spread)
    assert len(at_first) == 2
    assert at_first[0] not in at_last
    assert set(at_last) - set(at_first), "the killed worker's batches went to a new one"


def test_a_model_that_fails_on_the_workers_is_one_message(
    cluster: str, tiny: TinyModels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from palate.cli.app import run

    # The driver knows what the model holds without its weights, so that only the workers find out.
    monkeypatch.setattr(Classifier, "budget", Budget(2048, 1024, _characters))
    model = f"hf/{tiny(causal=True)}"
    code = run(["eval", "--model", model, "--limit", "4", "--out", str(tmp_path / "runs"), "--ray", cluster])
    said = capsys.readouterr()
    assert code == 2
    assert "so its scores would be random numbers" in said.err
    assert "So says the worker on" in said.err
    assert "Traceback" not in said.err
    assert "ray::" not in said.err
    assert said.out == ""
    assert not list((tmp_path / "runs").iterdir())


def _characters(messages: Sequence[Message]) -> int:
    return sum(len(m.content) for m in messages) // 4


def test_other_weights_under_the_same_name_are_refused(tiny: TinyModels) -> None:
    model, encoder = f"hf/{tiny()}", f"dense/{tiny('bert')}"
    for work, known in ((ScoreWork, open_model(model).identity), (RankWork, make_retriever(encoder).identity)):
        text = model if work is ScoreWork else encoder
        work(text, known).open()
        with pytest.raises(ModelError, match="not the same there: another weights"):
            work(text, {**known, "weights": "0" * 64}).open()


class Doubler:
    """Doubles numbers; some of them are not to its liking."""

    def __init__(self, deadly: Sequence[int] = (), hated: Sequence[int] = (), *, marks: Path | None = None) -> None:
        self.deadly, self.hated, self.marks = set(deadly), set(hated), marks

    def open(self) -> None:
        if -1 in self.hated:
            raise ModelError("numbers are not doubled here.")

    def do(self, requests: Sequence[int]) -> list[int]:
        for number in requests:
            if self.marks:
                with (self.marks / str(number)).open("a") as mark:
                    mark.write("x")
            if number in self.deadly:
                os.kill(os.getpid(), signal.SIGKILL)
            if number in self.hated:
                raise RuntimeError(f"{number} is odd\nin its way")
        return [2 * number for number in requests]

    def environment(self) -> dict[str, Any]:
        return {"pid": os.getpid()}


def by_value() -> None:
    """Send workers the classes of this file themselves, since they do not have the file."""
    from ray import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])


def replies(text: str, work: Doubler, numbers: Sequence[int]) -> dict[tuple[int, ...], Reply]:
    by_value()
    with joined(text) as cluster:
        assert cluster is not None
        found: dict[tuple[int, ...], Reply] = {}
        for names, reply in Pool(cluster, work, "numbers").run((n, n) for n in numbers):
            assert tuple(names) not in found
            found[tuple(names)] = reply
    return found


def test_a_batch_that_kills_its_worker_or_raises_is_told_and_the_rest_is_done(cluster: str, tmp_path: Path) -> None:
    numbers = range(24)
    found = replies(cluster + ONE_BY_ONE, Doubler([7], [13], marks=tmp_path), numbers)
    assert set(found) == {(n,) for n in numbers}
    assert found[7,] == Reply(note="its worker was killed 3 times")
    assert found[13,].note == "RuntimeError: 13 is odd"
    assert all(found[n,].results == [2 * n] and found[n,].note is None for n in numbers if n not in (7, 13))
    assert (tmp_path / "7").read_text() == "xxx"


def test_windows_and_batches_lose_nothing(cluster: str) -> None:
    found = replies(cluster + "&window=12&batch=3", Doubler(), range(23))
    assert sorted(n for names in found for n in names) == list(range(23))
    assert max(map(len, found)) <= 3
    assert all(reply.results == [2 * n for n in names] for names, reply in found.items())


def test_workers_that_never_live_end_the_run(cluster: str) -> None:
    with pytest.raises(ModelError, match="workers were killed before any of them finished"):
        replies(cluster + ONE_BY_ONE, Doubler(range(40)), range(40))


def test_requests_are_drawn_a_window_ahead_and_no_further(cluster: str) -> None:
    drawn: list[int] = []

    def numbers() -> Any:
        for n in range(30):
            drawn.append(n)
            yield n, n

    by_value()
    with joined(cluster + "&window=10") as joined_cluster:
        assert joined_cluster is not None
        stream = Pool(joined_cluster, Doubler(), "numbers").run(numbers())
        next(stream)
        assert len(drawn) == 10
        stream.close()  # type: ignore[attr-defined]

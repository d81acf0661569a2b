"""The string of `--ray`: what it means, and which workers come of it on which machines."""

import socket
import sys
from pathlib import Path

import pytest

from palate.cluster import Place, joined
from palate.cluster.place import Crew, Machine
from palate.cluster.spread import merged
from palate.errors import ClusterError, MissingExtra, SpecError
from palate.evaluation import evaluate

TWO_CORES = [Machine(2, 0)]
FARM = [Machine(64, 8), Machine(64, 8)]


@pytest.mark.parametrize(
    ("text", "machines", "crew"),
    [
        ("local", TWO_CORES, Crew(1, 2, 0)),
        ("local?workers=2", TWO_CORES, Crew(2, 1, 0)),
        ("local?cpus=1", TWO_CORES, Crew(2, 1, 0)),
        ("auto", [Machine(8, 0), Machine(4, 0)], Crew(3, 4, 0)),
        ("auto?workers=3", [Machine(8, 0), Machine(4, 0)], Crew(3, 4, 0)),
        ("auto", FARM, Crew(16, 1, 1)),
        ("auto?gpus=4", FARM, Crew(4, 1, 4)),
        ("auto?gpus=0.5&cpus=2", FARM, Crew(32, 2, 0.5)),
        ("auto?gpus=0.1&workers=80", [Machine(100, 8)], Crew(80, 1, 0.1)),
        ("10.0.0.1:6379?workers=3", FARM, Crew(3, 1, 1)),
        ("auto?gpus=0", FARM, Crew(2, 64, 0)),
        ("auto", [Machine(0, 0), Machine(16, 0)], Crew(1, 16, 0)),
    ],
)
def test_workers(text: str, machines: list[Machine], crew: Crew) -> None:
    assert Place.parse(text).crew(machines) == crew


@pytest.mark.parametrize(
    ("text", "machines", "message"),
    [
        ("local?gpus=1", TWO_CORES, "no machine of the cluster has 1 CPU and 1 GPU"),
        ("auto?gpus=9", FARM, "9 GPUs, which each worker asks for"),
        ("auto?gpus=4&workers=5", FARM, "5 workers of 1 CPU and 4 GPUs each do not fit, 4 do"),
        ("local?workers=3", TWO_CORES, "3 workers of 1 CPU each do not fit, 2 do"),
        ("auto?cpus=65", FARM, "65 CPUs"),
        ("auto", [], "no machine"),
    ],
)
def test_workers_that_would_wait_for_ever(text: str, machines: list[Machine], message: str) -> None:
    with pytest.raises(ClusterError, match=message):
        Place.parse(text).crew(machines)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("locl", "expected local, auto"),
        ("10.0.0.1", "expected local, auto"),
        ("ray://10.0.0.1:10001", "does not run through Ray Client"),
        ("local?worker=2", "Did you mean 'workers'"),
        ("local?workers=0", "from 1 up"),
        ("local?gpus=1.5", "a share of one"),
        ("auto?batch=many", "whole number"),
    ],
)
def test_a_bad_string(text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        Place.parse(text)


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"palate\[ray\]"):
        evaluate("sample", "builtin/length", "question", tmp_path, ray="local")


@pytest.mark.ray
def test_nobody_at_the_address(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        text = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ClusterError, match=f"nobody answers at {text}"):
            evaluate("sample", "builtin/length", "question", tmp_path, ray=text)
    assert not list(tmp_path.iterdir())


def test_without_a_string_there_is_no_cluster() -> None:
    with joined(None) as cluster:
        assert cluster is None


def test_what_workers_tell_of_themselves_as_one() -> None:
    one = {"device": "cuda", "notes": ["a"], "ends": {"first": [1]}}
    other = {"device": "cpu", "notes": ["a", "b"], "ends": {"first": [2]}, "more": "x"}
    found = merged([one, other])
    assert found == {"device": "cpu, cuda", "notes": ["a", "b"], "ends": {"first": [1]}, "more": "x"}

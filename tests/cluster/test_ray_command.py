"""`palate eval --ray local` as a user meets it: killed, stopped, gone on with, and silent about Ray."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from palate.evaluation import evaluate
from rows import make_row

pytestmark = [pytest.mark.ray, pytest.mark.xdist_group("ray")]

# The command itself, with a model that loads no torch, since three starts of it on driver and workers take minutes.
LIGHT = """
from palate.cluster import spread
from palate.cli import main
spread.SPREAD = ("builtin",)
main()
"""
ITEMS = 120


def started(args: list[str], cwd: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", LIGHT, *args]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=cwd, stdout=pipe, stderr=pipe, text=True, start_new_session=True)


def rows(folder: Path) -> int:
    return sum(p.read_bytes().count(b"\n") for p in folder.glob("*/rows.jsonl"))


def until(process: "subprocess.Popen[str]", folder: Path, count: int) -> None:
    while rows(folder) < count:
        assert process.poll() is None, process.communicate()
        time.sleep(0.005)


def test_killed_then_stopped_then_finished(write: Any, tmp_path: Path) -> None:
    data, model = str(write(*(make_row(k) for k in range(ITEMS)))), "builtin/lexical"
    args = ["eval", "--data", data, "--model", model, "--view", "history", "--out", "runs", "--json"]
    args += ["--ray", "local?workers=2&batch=1"]

    killed = started(args, tmp_path)
    until(killed, tmp_path / "runs", 2)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    before = rows(tmp_path / "runs")

    stopped = started(args, tmp_path)
    until(stopped, tmp_path / "runs", before + 2)
    os.killpg(stopped.pid, signal.SIGINT)
    out, err = stopped.communicate()
    assert stopped.returncode == 3, err
    assert out == ""
    assert f"{before} done before" in err
    assert "The same command goes on from here." in err
    assert "Traceback" not in err
    before = rows(tmp_path / "runs")

    finished = started(args, tmp_path)
    out, err = finished.communicate()
    assert finished.returncode == 0, err
    assert 4 <= before < ITEMS
    assert [line for line in err.splitlines() if "--data--" not in line] == []
    whole = evaluate(data, model, "history", tmp_path / "whole").runs[0]
    assert json.loads(out)["runs"][0]["metrics"] == json.loads((whole.folder / "metrics.json").read_text())
    assert rows(tmp_path / "runs") == ITEMS
    assert json.loads((tmp_path / "runs" / whole.folder.name / "run.json").read_text())["environment"]["ray"]

"""The command line as a user meets it: real processes, exit codes, one message for one mistake."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from rows import make_row

PALATE = [sys.executable, "-m", "palate"]


def palate(*args: str | Path, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PALATE, *map(str, args)], cwd=cwd, capture_output=True, text=True, env={**os.environ, **env}, check=False
    )


def test_help_names_every_command(tmp_path: Path) -> None:
    found = palate("--help", cwd=tmp_path)
    assert found.returncode == 0
    assert all(name in found.stdout for name in ("eval", "retrieve", "data"))


def test_eval_prints_a_table_and_where_the_runs_are(tmp_path: Path) -> None:
    found = palate("eval", "--model", "builtin/length", "--view", "question", "--view", "swapped", cwd=tmp_path)
    assert found.returncode == 0, found.stderr
    assert "50.0 %" in found.stdout
    assert "Run folders: runs/" in found.stdout
    assert re.search(r"builtin/length\*\s+swapped\s+60\s+100.0 %", found.stdout)


def test_json_is_strict_and_alone_on_standard_output(tmp_path: Path) -> None:
    found = palate("eval", "--model", "builtin/length", "--view", "oracle", "--limit", "1", "--json", cwd=tmp_path)

    def refuse(name: str) -> None:
        raise AssertionError(name)

    result = json.loads(found.stdout, parse_constant=refuse)
    assert result["runs"][0]["metrics"]["n"] == 1
    assert result["runs"][0]["metrics"]["both_right"] is None


def test_min_coverage_is_a_check(write: Any, tmp_path: Path) -> None:
    data = write(make_row(1), make_row(2, rubric_aspects=None))
    args = ("eval", "--data", data, "--model", "builtin/length", "--view", "oracle")
    assert palate(*args, cwd=tmp_path).returncode == 0
    found = palate(*args, "--min-coverage", "0.8", cwd=tmp_path)
    assert found.returncode == 1
    assert "50.0 %" in found.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("eval", "--model", "builtin/lenght"), "Did you mean 'length'"),
        (("eval", "--model", "builtin/length", "--view", "histroy"), "Did you mean 'history'"),
        (("eval", "--model", "builtin/length", "--data", "nothing.jsonl"), "no file or folder 'nothing.jsonl'"),
        (("eval", "--model", "builtin/length", "--data", "sampel"), "Did you mean 'sample'"),
        (("eval", "--model", "builtin/length", "--protocol", "papr"), "Did you mean 'paper'"),
        (("eval",), "Missing option '--model'"),
        (("evla",), "eval"),
        (("data", "show", "sample", "--item", "art-01"), "Did you mean 'art-01"),
        (("eval", "--model", "builtin/length", "--by", "domian"), "Did you mean 'domain'"),
        (("eval", "--model", "builtin/length", "--retriever", "bm"), "unknown"),
    ],
)
def test_a_mistake_is_one_message_and_code_2(args: tuple[str, ...], message: str, tmp_path: Path) -> None:
    found = palate(*args, cwd=tmp_path)
    assert found.returncode == 2
    assert message in found.stderr
    assert "Traceback" not in found.stderr
    assert not (tmp_path / "runs").exists()


def test_a_missing_extra_is_named_with_its_install_line(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name in ('torch', 'transformers'): raise ImportError(name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "from palate.cli import main; main()"
    )
    model = tmp_path / "m"
    model.mkdir()
    (model / "config.json").write_text('{"max_position_embeddings": 64}')
    (model / "w.bin").write_bytes(b"")
    for args in (
        ["--model", f"hf/{model}"],
        ["--model", "builtin/length", "--view", "history", "--retriever", f"dense/{model}"],
    ):
        found = subprocess.run(
            [sys.executable, "-c", script, "eval", *args], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert found.returncode == 2, found.stderr
        assert "pip install 'palate[hf]'" in found.stderr


def test_importing_the_package_and_asking_for_help_loads_nothing_heavy(tmp_path: Path) -> None:
    heavy = "torch transformers datasets scipy sklearn numpy pydantic"
    script = (
        "import sys, palate\nsys.argv = ['palate', '--help']\nfrom palate.cli import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        f"print([m for m in '{heavy}'.split() if m in sys.modules], file=sys.stderr)"
    )
    found = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert found.stderr.strip() == "[]"


def many(tmp_path: Path, count: int) -> Path:
    path = tmp_path / "many.jsonl"
    posts = [{"id": str(n), "text": f"Note {n}: " + "beans rice herbs stew bread " * 40} for n in range(20)]
    with path.open("w") as handle:
        for k in range(count):
            handle.write(json.dumps(make_row(k, profile=posts, user_id=f"u{k % 50}")) + "\n")
    return path


def test_kill_9_and_again_gives_the_metrics_of_an_unbroken_run(tmp_path: Path) -> None:
    data = many(tmp_path, 1500)
    args = ["eval", "--data", str(data), "--model", "builtin/lexical", "--view", "history"]
    whole = palate(*args, "--out", "whole", "--json", cwd=tmp_path)
    broken = subprocess.Popen(
        [*PALATE, *args, "--out", "broken"], cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = list(tmp_path.glob("broken/*/rows.jsonl"))
        if found and found[0].read_bytes().count(b"\n") > 100:
            break
    broken.send_signal(signal.SIGKILL)
    broken.wait()
    done = found[0].read_bytes().count(b"\n")
    assert 100 < done < 1500
    again = palate(*args, "--out", "broken", "--json", cwd=tmp_path)
    assert f"{done} done before" in again.stderr
    first, second = (json.loads(r.stdout)["runs"][0]["metrics"] for r in (whole, again))
    assert first == second
    assert found[0].read_bytes().count(b"\n") == 1500


def test_ctrl_c_stops_with_code_3_and_a_way_on(tmp_path: Path) -> None:
    data = many(tmp_path, 1500)
    args = ["eval", "--data", str(data), "--model", "builtin/lexical", "--view", "history"]
    process = subprocess.Popen([*PALATE, *args], cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    while not list(tmp_path.glob("runs/*/rows.jsonl")):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 3
    assert b"goes on from here" in err
    assert b"Traceback" not in err


def terminal(command: list[str], cwd: Path, columns: int) -> str:
    """Run `command` on a terminal of that width and return what it showed."""
    main, side = pty.openpty()
    env = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm"}
    process = subprocess.Popen(command, cwd=cwd, stdout=side, stderr=side, stdin=side, env=env, close_fds=True)
    os.close(side)
    shown = b""
    try:
        while part := os.read(main, 65536):
            shown += part
    except OSError:
        pass
    process.wait()
    os.close(main)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())


def test_a_narrow_terminal_loses_nothing(tmp_path: Path) -> None:
    args = ["eval", "--model", "builtin/length", "--view", "history", "--view", "history?user=none"]
    shown = terminal([*PALATE, *args], tmp_path, 40)
    flat = " ".join(shown.split())
    assert "builtin/length* · history?user=none n 60, coverage 100.0 %, accuracy 50.0 %" in flat
    wide = terminal([*PALATE, *args], tmp_path, 150)
    assert re.search(r"builtin/length\*\s+history\?user=none\s+60", wide)


def test_retrieve_and_reuse(tmp_path: Path) -> None:
    found = palate("retrieve", "--retriever", "recency", "--k", "4", "--out", "ranks", cwd=tmp_path)
    assert found.returncode == 0, found.stderr
    first = json.loads((tmp_path / "ranks" / "rankings.jsonl").read_text().splitlines()[0])
    assert len(first["posts"]) == 4
    args = ("eval", "--model", "builtin/lexical", "--view", "history?k=4", "--json")
    stored = json.loads(palate(*args, "--retriever", "stored/ranks", cwd=tmp_path).stdout)["runs"][0]
    live = json.loads(palate(*args, "--retriever", "recency", cwd=tmp_path).stdout)["runs"][0]
    assert stored["metrics"] == live["metrics"]
    deeper = palate(
        "eval", "--model", "builtin/lexical", "--view", "history", "--retriever", "stored/ranks", cwd=tmp_path
    )
    assert deeper.returncode == 2
    assert "hold 4 posts" in deeper.stderr


def test_data_commands(write: Any, tmp_path: Path) -> None:
    bad = write(make_row(1), "", '{"id": "x"', name="bad.jsonl")
    found = palate("data", "check", bad, cwd=tmp_path)
    assert found.returncode == 1
    assert "line 2" in found.stdout
    assert "line 3" in found.stdout
    assert palate("data", "check", "sample", cwd=tmp_path).returncode == 0
    shown = palate("data", "show", "sample", "--view", "swapped", cwd=tmp_path)
    assert "This person asks" in shown.stdout
    other = write({"q": "Why?", "good": "Because.", "bad": "So."}, name="other.jsonl")
    maps = ("--map", "question=q", "--map", "chosen=good", "--map", "rejected=bad")
    assert palate("data", "convert", other, "new.jsonl", *maps, cwd=tmp_path).returncode == 0
    assert (
        palate(
            "eval", "--data", "new.jsonl", "--model", "builtin/length", "--view", "question", cwd=tmp_path
        ).returncode
        == 0
    )
    assert palate("data", "convert", other, "new.jsonl", *maps, cwd=tmp_path).returncode == 2


def test_data_audit_leaves_with_one_if_a_check_is_flagged(write: Any, tmp_path: Path) -> None:
    clean = palate("data", "audit", "sample", cwd=tmp_path)
    assert (clean.returncode, clean.stderr) == (0, "audit: 60 items\n")
    assert "0 flagged" in clean.stdout
    assert (tmp_path / "audit" / "audit.html").is_file()
    rows = [make_row(k, chosen=f"A rather long answer, number {k}.", rejected=f"No {k}.") for k in range(12)]
    found = palate("data", "audit", write(*rows), "--out", "out", "--json", cwd=tmp_path)
    assert found.returncode == 1
    told = json.loads(found.stdout)
    assert told == json.loads((tmp_path / "out" / "audit.json").read_text())
    length = next(c for c in told["checks"] if c["id"] == "length")
    assert (length["value"], length["verdict"]) == (1.0, "flagged")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("nowhere.jsonl",), "no file or folder"),
        (("sample", "--runs", "nowhere"), "nowhere: no such folder"),
        (("sample", "--against", "nowhere.jsonl"), "no file or folder"),
        (("sample", "--out", "taken"), "taken"),
    ],
)
def test_data_audit_refuses_bad_input_in_one_message(args: tuple[str, ...], message: str, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    found = palate("data", "audit", *args, cwd=tmp_path)
    assert (found.returncode, found.stdout) == (2, "")
    assert message in found.stderr
    assert found.stderr.count("\n") == 1


def test_version(tmp_path: Path) -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", palate("--version", cwd=tmp_path).stdout)

"""`palate annotate` as a user meets it: links, messages, exit codes, what is written where."""

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from annotators import Person, served
from palate.annotate.serve import listen
from palate.errors import PalateError
from rows import make_row

MAKE = ("--data", "sample", "--annotators", "ana,ben", "--limit", "4", "--out", "study")


def annotate(*args: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "palate", "annotate", *map(str, args)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=60)


def test_serve_status_export(tmp_path: Path, write: Any) -> None:
    checks = write(make_row(1, id="check", expected="rejected"), name="checks.jsonl")
    with served(*MAKE, "--attention", checks, "--port", "0", cwd=tmp_path) as (process, links):
        assert list(links) == ["ana", "ben"]
        assert all(link.startswith("http://127.0.0.1:") for link in links.values())
        with httpx.Client() as client:
            ana = Person(client, links["ana"])
            for number in range(1, 6):
                ana.finish(number)
            ana.finish(1, 2)
        shown = annotate("status", "study", cwd=tmp_path)
        assert shown.returncode == 0
        assert "1 of 1" in shown.stdout or "0 of 1" in shown.stdout
        ana_status, ben_status = json.loads(annotate("status", "study", "--json", cwd=tmp_path).stdout)
        assert (ana_status["items"], ana_status["done"], ana_status["checked"]) == (5, 1, 1)
        assert (ben_status["items"], ben_status["done"], ben_status["begun"]) == (5, 0, 0)
        wrote = annotate("export", "study", "--out", "rows.jsonl", cwd=tmp_path)
        assert wrote.returncode == 0
        assert "6 rows written to rows.jsonl" in wrote.stderr
        assert "14 steps were not begun" in wrote.stderr
        assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == 6
        assert len(annotate("export", "study", "--out", "-", cwd=tmp_path).stdout.splitlines()) == 6
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 3
    told = (tmp_path / "serve-errors.txt").read_text()
    assert "study: 4 items, 2 annotators, overlap 3, 1 attention items" in told
    assert "each item has 2" in told
    assert "Traceback" not in told
    tokens = [link.rpartition("/")[2] for link in links.values()]
    assert not any(token in path.read_text("latin-1") for path in tmp_path.rglob("*.*") for token in tokens)


def test_more_annotators_come_with_more_names(tmp_path: Path) -> None:
    with served(*MAKE, "--port", "0", cwd=tmp_path) as (_, first):
        pass
    with served("--out", "study", "--annotators", "cy", "--port", "0", cwd=tmp_path) as (_, then):
        assert list(then) == ["ana", "ben", "cy"]
        assert all(then[n].rpartition("/")[2] == link.rpartition("/")[2] for n, link in first.items())


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("serve",), "A new one needs --data"),
        (("serve", "--data", "sample"), "needs --annotators"),
        (("serve", "--data", "sampel", "--annotators", "ana"), "Did you mean 'sample'"),
        (("serve", "--data", "sample", "--annotators", "ana,ana"), "named twice"),
        (("serve", "--data", "sample", "--annotators", "ana", "--overlap", "0"), "--overlap"),
        (("status", "study"), "no study"),
        (("export", "study"), "no study"),
    ],
)
def test_a_mistake_is_one_message_and_code_2(args: tuple[str, ...], message: str, tmp_path: Path) -> None:
    found = annotate(*args, cwd=tmp_path)
    assert found.returncode == 2
    assert message in found.stderr
    assert "Traceback" not in found.stderr
    assert not (tmp_path / "study").exists()


def test_another_configuration_or_a_taken_port(tmp_path: Path) -> None:
    with served(*MAKE, "--port", "0", cwd=tmp_path):
        twice = annotate("serve", "--out", "study", "--port", "0", cwd=tmp_path)
        assert twice.returncode == 2
        assert "another process is working in this folder" in twice.stderr
    other = annotate("serve", *MAKE, "--seed", "7", cwd=tmp_path)
    assert other.returncode == 2
    assert "seed: the study has 0, wanted is 7" in other.stderr
    with socket.create_server(("127.0.0.1", 0)) as taken:
        found = annotate("serve", *MAKE, "--port", str(taken.getsockname()[1]), cwd=tmp_path)
    assert found.returncode == 2
    assert "cannot be served on (Address already in use). Choose another --host or --port." in found.stderr


def test_a_host_that_others_reach_is_warned_of(tmp_path: Path) -> None:
    with served(*MAKE, "--host", "0.0.0.0", "--port", "0", cwd=tmp_path) as (_, links):
        assert links["ana"].startswith(f"http://{socket.gethostname()}:")
    assert "warning: 0.0.0.0 can be reached from other machines" in (tmp_path / "serve-errors.txt").read_text()
    with served(*MAKE, "--port", "0", cwd=tmp_path):
        pass
    assert (tmp_path / "serve-errors.txt").read_text().count("warning") == 1


def test_without_the_extra_the_install_line_is_told(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'fastapi': raise ImportError(name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "from palate.cli import main; main()"
    )
    command = [sys.executable, "-c", script, "annotate", "serve", *MAKE]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert found.returncode == 2
    assert "pip install 'palate[web]'" in found.stderr
    assert not (tmp_path / "study").exists()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_replies_do_not_wait_for_an_acknowledgement(host: str) -> None:
    with listen(host, 0) as opened, socket.create_connection(opened.getsockname()), opened.accept()[0] as accepted:
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_host_that_is_none() -> None:
    with pytest.raises(PalateError, match=r"no\.such\.host\.invalid:0: cannot be served on"):
        listen("no.such.host.invalid", 0)

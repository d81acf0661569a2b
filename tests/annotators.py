"""Studies for tests, and annotators who work through their forms over HTTP."""

import html
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

STEP_ONE = {
    **dict.fromkeys(("factuality_a", "relevance_a", "helpfulness_a"), "4"),
    **dict.fromkeys(("factuality_b", "relevance_b", "helpfulness_b"), "2"),
    "preference": "a",
    "comment": "",
}
STEP_TWO = {"fit_a": "5", "fit_b": "1"}
TOKEN = re.compile(r'name="form_token" value="([^"]+)"')


class Person:
    """One annotator with an HTTP client and their link."""

    def __init__(self, client: Any, base: str) -> None:
        self.client = client
        self.base = base
        self._form_token: str | None = None

    @property
    def form_token(self) -> str:
        if self._form_token is None:
            found = TOKEN.search(self.page(1).text)
            assert found
            self._form_token = html.unescape(found[1])
        return self._form_token

    def page(self, number: int, step: int = 1) -> Any:
        return self.client.get(f"{self.base}/item/{number}/{step}")

    def post(self, number: int, step: int, act: str, fields: dict[str, str], **headers: str) -> Any:
        data = {"form_token": self.form_token, **fields}
        return self.client.post(f"{self.base}/item/{number}/{step}/{act}", data=data, headers=headers)

    def save(self, number: int, step: int = 1, **fields: str) -> Any:
        return self.post(number, step, "save", fields, Accept="application/json")

    def finish(self, number: int, step: int = 1, **fields: str) -> Any:
        return self.post(number, step, "finish", (STEP_ONE if step == 1 else STEP_TWO) | fields)


def free_port() -> int:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


@contextmanager
def served(*args: str | Path, cwd: Path) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """Serve a study as users do; yields the process and each annotator's link. Killed at the end."""
    command = [sys.executable, "-m", "palate", "annotate", "serve", *map(str, args)]
    errors = (cwd / "serve-errors.txt").open("a+")
    process = subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, stderr=errors, text=True)
    try:
        assert process.stdout
        links: dict[str, str] = {}
        count = None
        while count is None or len(links) < count:
            line = process.stdout.readline()
            assert line, (cwd / "serve-errors.txt").read_text()
            name, link = line.rstrip("\n").split("\t")
            links[name] = link
            told = re.findall(r", (\d+) annotators", (cwd / "serve-errors.txt").read_text())
            count = int(told[-1]) if told else None
        yield process, links
    finally:
        process.kill()
        process.wait()
        assert process.stdout
        process.stdout.close()
        errors.close()


def wait_until(true: Any, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)

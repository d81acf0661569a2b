"""Studies behind an in-process client."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from annotators import Person
from palate.annotate import Study, Wanted, open_study
from palate.annotate.web import create_app


class Desk:
    """An open study and its annotators."""

    def __init__(self, study: Study, client: TestClient) -> None:
        self.study = study
        self.client = client

    def person(self, name: str) -> Person:
        return Person(self.client, f"/a/{self.study.links.token(name)}")

    def seats(self, name: str, number: int) -> list[str]:
        task = self.study.book.task(self.study.book.annotators()[name], number)
        assert task
        return ["chosen", "rejected"] if task.first == "chosen" else ["rejected", "chosen"]

    def item(self, name: str, number: int) -> str:
        task = self.study.book.task(self.study.book.annotators()[name], number)
        assert task
        return task.item


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Callable[..., Desk]]:
    """Open a study: data, names and whatever `Wanted` takes."""
    with ExitStack() as stack:

        def opened(data: Any = "sample", names: str = "ana", folder: str = "study", **wanted: Any) -> Desk:
            study = stack.enter_context(open_study(tmp_path / folder, Wanted(str(data), **wanted), names.split(",")))
            client = stack.enter_context(TestClient(create_app(study), follow_redirects=False))
            return Desk(study, client)

        yield opened

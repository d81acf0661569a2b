"""A small cluster on this machine, one at a time."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from models import TinyModels
from palate.cluster.join import quietly

STORE = 100 * 2**20


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> TinyModels:
    return TinyModels(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """Start a cluster of two CPUs that this process is in; return the string that joins it with two workers."""
    with quietly() as ray:
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=60, object_store_memory=STORE)
    yield "local?workers=2"
    ray.shutdown()


def workers_below(parent: int) -> list[int]:
    """Return the process ids of the map workers among the descendants of `parent`."""
    parents, names = {}, {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                stat = (folder / "stat").read_text()
                names[int(folder.name)] = (folder / "cmdline").read_bytes().split(b"\0")[0].decode()
                parents[int(folder.name)] = int(stat.rpartition(")")[2].split()[1])
            except OSError:
                continue
    found = []
    for pid, name in names.items():
        above = pid
        while above in parents and above != parent:
            above = parents[above]
        if above == parent and "MapWorker" in name:
            found.append(pid)
    return found

"""Joining a cluster, or starting one on this machine, without a word from Ray on the terminal."""

import logging
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from palate.cluster.place import LOCAL, Crew, Machine, Place
from palate.errors import ClusterError, MissingExtra

WAIT = 10.0
_SILENT = logging.CRITICAL + 1
# Read by Ray when it is imported or started: no usage figures sent, and none of the raylet's messages on standard
# output, where they would end up in the middle of --json.
_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_BACKEND_LOG_LEVEL": "fatal",
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",
}
# Ray asks a host that does not answer twenty times, half a minute each.
_JOINING = {"RAY_NUM_REDIS_GET_RETRIES": "2"}


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster that this process is in, and the workers to start there."""

    place: Place
    crew: Crew
    version: str


@contextmanager
def joined(text: str | None) -> Iterator[Cluster | None]:
    """Join the cluster that a `--ray` string names and leave it at the end; with None there is none.

    A process that is in a cluster already stays in it.

    Raises:
        SpecError: a string that cannot be read.
        ClusterError: no such cluster, or one that cannot hold the workers.
        MissingExtra: without the extra `ray`.
    """
    if text is None:
        yield None
        return
    place = Place.parse(text)
    with quietly({} if place.address == LOCAL else _JOINING) as ray:
        ours = not ray.is_initialized()
        if ours:
            _start(ray, place)
    try:
        machines = [_machine(node["Resources"]) for node in ray.nodes() if node["Alive"]]
        yield Cluster(place, place.crew(machines), ray.__version__)
    finally:
        if ours:
            ray.shutdown()


@contextmanager
def quietly(more: dict[str, str] | None = None) -> Iterator[Any]:
    """Give Ray, imported so that it keeps to itself, to a block that starts it.

    Args:
        more: further variables that Ray shall find while it starts.

    Raises:
        MissingExtra: without the extra `ray`.
    """
    with _environment(_ENVIRONMENT | (more or {})):
        ray = _import()
        with _without_stderr():
            yield ray


def _import() -> Any:
    try:
        import ray
        import ray.data
    except ImportError:
        raise MissingExtra("--ray", "ray") from None
    logging.getLogger("ray.data").setLevel(_SILENT)
    return ray


def _start(ray: Any, place: Place) -> None:
    _knock(place)
    options: dict[str, Any] = {"address": place.address, "log_to_driver": False, "logging_level": _SILENT}
    if place.address == LOCAL:
        options["include_dashboard"] = False
    try:
        ray.init(**options)
    except (ConnectionError, RuntimeError, ValueError, OSError, AssertionError, ray.exceptions.RayError) as bad:
        first = str(bad).strip().partition("\n")[0]
        raise ClusterError(
            f"ray '{place.text}': the cluster cannot be joined from this machine: {first}\n"
            "It must be running (`ray start`), with this machine as one of its own. If it asks for a token, Ray reads "
            "it from RAY_AUTH_TOKEN, with RAY_AUTH_MODE=token."
        ) from None


def _knock(place: Place) -> None:
    """Find out quickly whether anybody is at the address."""
    if place.host is None:
        return
    try:
        socket.create_connection(place.host, WAIT).close()
    except OSError as bad:
        raise ClusterError(
            f"ray '{place.text}': nobody answers at {place.address} ({bad.strerror or bad}).\n"
            "The address is that of the head's own port, as `ray start --head` prints it, often 6379."
        ) from None


def _machine(resources: dict[str, float]) -> Machine:
    return Machine(resources.get("CPU", 0.0), resources.get("GPU", 0.0))


@contextmanager
def _environment(wanted: dict[str, str]) -> Iterator[None]:
    """Set variables that are not set otherwise for as long as the block takes."""
    new = {name: value for name, value in wanted.items() if name not in os.environ}
    os.environ.update(new)
    try:
        yield
    finally:
        for name in new:
            del os.environ[name]


@contextmanager
def _without_stderr() -> Iterator[None]:
    """Keep back what Ray's native part writes to standard error while it starts, which no setting turns off."""
    sys.stderr.flush()
    kept, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nothing)

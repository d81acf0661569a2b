"""The string of `--ray`: which cluster, and what workers to start in it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import floor

from palate.errors import ClusterError, SpecError
from palate.spec import Spec

LOCAL, AUTO = "local", "auto"
BATCH, WINDOW = 32, 4096
_PORT = re.compile(r"(\[[0-9A-Fa-f:]+\]|[^:/\s]+):(\d{1,5})")
_SHARE = re.compile(r"\d+|0?\.\d+")
_CLIENT = "ray://"


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine of a cluster: what Ray may hand out there."""

    cpus: float
    gpus: float


@dataclass(frozen=True, slots=True)
class Crew:
    """How many workers, and the CPUs and GPUs that each reserves."""

    workers: int
    cpus: int
    gpus: float


@dataclass(frozen=True, slots=True)
class Place:
    """`local`, `auto` or `host:port`, with options.

    - `workers`: how many; by default as many as fit.
    - `gpus`: of each worker, which may be a share such as 0.5; by default 1 if the cluster has any.
    - `cpus`: of each worker; by default 1 beside a GPU, else all of the smallest machine's, or as many as let all
      `workers` start.
    - `batch`: groups, or items to rank, that a worker gets at once, at most.
    - `window`: how many of them go through one set of workers.
    """

    text: str
    address: str
    workers: int | None = None
    gpus: float | None = None
    cpus: int | None = None
    batch: int = BATCH
    window: int = WINDOW

    @classmethod
    def parse(cls, text: str) -> "Place":
        """Read a string such as `local`, `auto?workers=8` or `10.0.0.1:6379?gpus=2`.

        Raises:
            SpecError: an unknown form, option or value, or an address of Ray Client.
        """
        spec = Spec.parse(text, "ray", revisions=False)
        if spec.head.startswith(_CLIENT):
            raise SpecError(
                f"ray '{text}': Ray Data does not run through Ray Client.\nStart palate on a machine of the cluster "
                "(or with `ray job submit`) and use --ray auto."
            )
        if spec.head not in (LOCAL, AUTO) and not _PORT.fullmatch(spec.head):
            raise SpecError(f"ray '{text}': expected local, auto or <host>:<port>.")
        spec.only(("workers", "gpus", "cpus", "batch", "window"), "ray")
        return cls(
            text,
            spec.head,
            spec.whole("workers", None, "ray", least=1),
            _gpus(spec),
            spec.whole("cpus", None, "ray", least=1),
            spec.whole("batch", BATCH, "ray", least=1),
            spec.whole("window", WINDOW, "ray", least=1),
        )

    @property
    def host(self) -> tuple[str, int] | None:
        """Host and port, if they were given."""
        found = _PORT.fullmatch(self.address)
        return (found[1].strip("[]"), int(found[2])) if found else None

    def crew(self, machines: Sequence[Machine]) -> Crew:
        """Return the workers to start on these machines.

        Raises:
            ClusterError: they do not fit, so that some would wait for ever.
        """
        gpus = self.gpus if self.gpus is not None else float(any(m.gpus >= 1 for m in machines))
        cpus = self.cpus or (1 if gpus else _cores(machines, self.workers))
        room = sum(_holds(m, cpus, gpus) for m in machines)
        asked = f"{cpus} CPU{'s' * (cpus > 1)}" + (f" and {gpus:g} GPU{'s' * (gpus > 1)}" if gpus else "")
        has = " + ".join(f"{m.cpus:g} CPU, {m.gpus:g} GPU" for m in machines[:8]) or "no machine"
        if not room:
            raise ClusterError(
                f"ray '{self.text}': no machine of the cluster has {asked}, which each worker asks for (it has {has})."
            )
        if self.workers and self.workers > room:
            raise ClusterError(
                f"ray '{self.text}': {self.workers} workers of {asked} each do not fit, {room} do (it has {has})."
            )
        return Crew(self.workers or room, cpus, gpus)


def _gpus(spec: Spec) -> float | None:
    text = spec.options.get("gpus")
    if text is not None and not _SHARE.fullmatch(text):
        raise SpecError(f"ray '{spec}': gpus must be a whole number or a share of one such as 0.5, not '{text}'.")
    return None if text is None else float(text)


def _cores(machines: Sequence[Machine], workers: int | None) -> int:
    """Return the CPUs of a worker without a GPU: the most that let all of them start."""
    sizes = [floor(m.cpus) for m in machines if m.cpus >= 1]
    if workers is None:
        return min(sizes, default=1)
    return next((c for c in range(max(sizes, default=1), 1, -1) if sum(s // c for s in sizes) >= workers), 1)


def _holds(machine: Machine, cpus: int, gpus: float) -> int:
    room = floor(machine.cpus / cpus)
    return min(room, floor(machine.gpus / gpus + 1e-9)) if gpus else room

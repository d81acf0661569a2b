"""The reward function that verl calls. It needs the standard library alone, so this one file works anywhere.

verl loads the file by its path (`reward.custom_reward_function.path`) and calls `compute_score` for each answer. The
function asks Palate's reward server (`POST /score`) and returns the number that came back for that very answer. What
fails is never a number: it raises `RewardFailed`, and what verl does then is its trainer's matter:

- verl's trainer (`trainer.use_v1=True`) leaves the answer out of the step and pads the batch with rows whose loss mask
  is zero. That is `mask`. Under `stop` the first failure closes this function for good: every later call raises at
  once, and verl ends the run at the first batch without a single reward.
- verl's older trainer (`trainer.use_v1=False`) stops at the first exception, under `stop` and `mask` alike.

Settings are read from the keywords that verl passes on (`reward.custom_reward_function.reward_kwargs`), else from the
environment: PALATE_REWARD_URL, PALATE_ON_FAILURE (stop or mask), PALATE_REWARD_TIMEOUT (seconds for one answer, all
tries together), PALATE_MAX_FAILURE_RATE (share of failures that ends a run under `mask`), PALATE_HTTP_KEY (a token).
"""

import http.client
import itertools
import json
import math
import os
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

TIMEOUT = 120.0
MAX_FAILURE_RATE = 0.1
FEWEST_CALLS = 50
MOST_BYTES = 64 * 1024 * 1024
AT_ONCE = 256
LONGEST_ID = 900
FIRST_WAIT = 0.5
LONGEST_WAIT = 20.0
BUSY = (429, 502, 503, 504)
MODES = ("stop", "mask")

_ids = itertools.count(1)


class RewardFailed(RuntimeError):
    """There is no reward for an answer. Not a `TimeoutError`, which some of verl's managers turn into 0.0."""


class Counts:
    """How many answers were asked about in this process, how many got no reward, and whether that ended the run."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.asked = 0
        self.failed = 0
        self.retries = 0
        self.closed: str | None = None

    def ask(self, n: int) -> None:
        """Count `n` answers; raise if the function was closed."""
        with self._lock:
            if self.closed:
                raise RewardFailed(f"no reward is asked for any more: {self.closed}")
            self.asked += n

    def retry(self) -> None:
        """Count one more try of a request."""
        with self._lock:
            self.retries += 1

    def fail(self, n: int, why: str, mode: str, most: float) -> None:
        """Count `n` failures, tell them on standard error, and close the function if they are too many."""
        with self._lock:
            self.failed += n
            share = self.failed / self.asked
            if mode == "stop":
                self.closed = self.closed or f"the first failure stops the run ({why})"
            elif self.asked >= FEWEST_CALLS and share > most:
                told = f"{self.failed} of {self.asked} answers got no reward, more than {most:.0%}"
                self.closed = self.closed or f"{told} ({why})"
            text = f"palate: no reward ({why}); {self.failed} of {self.asked} answers failed so far ({share:.1%})"
        print(text, file=sys.stderr, flush=True)

    @property
    def share(self) -> float:
        """The share of answers without a reward."""
        return self.failed / self.asked if self.asked else 0.0


counts = Counts()


def compute_score(
    data_source: str | None = None,
    solution_str: str | None = None,
    ground_truth: Any = None,
    extra_info: Mapping[str, Any] | None = None,
    url: str | None = None,
    on_failure: str | None = None,
    timeout: float | None = None,
    max_failure_rate: float | None = None,
    **kwargs: Any,
) -> dict[str, float]:
    """Return `{"score": reward, "failed_share": share}` for one answer.

    `solution_str` is the answer; `extra_info` tells what it answers: `question` with the `history` or the `plan` that
    the policy was shown, or `messages`, as `palate ppo prepare` writes them. `data_source` and `ground_truth` are
    verl's and not read. There is no `acc` in the result: verl would count answers that failed as 0 in it.

    Raises:
        RewardFailed: no reward, and why.
        ValueError: the call itself is wrong; the message names what is missing.
    """
    settings = _settings(url, on_failure, timeout, max_failure_rate)
    score = _scores([solution_str], [extra_info], settings)[0]
    return {"score": score, "failed_share": counts.share}


def compute_scores(
    data_sources: Iterable[str] | None = None,
    solution_strs: Iterable[str] | None = None,
    ground_truths: Any = None,
    extra_infos: Iterable[Mapping[str, Any] | None] | None = None,
    url: str | None = None,
    on_failure: str | None = None,
    timeout: float | None = None,
    max_failure_rate: float | None = None,
    **kwargs: Any,
) -> list[dict[str, float]]:
    """Return one dictionary an answer, in order, as verl's manager `batch` wants them.

    That manager cannot leave an answer out, so one failure raises for the whole batch, whatever `on_failure` says.

    Raises:
        RewardFailed: no reward for an answer, and why.
        ValueError: the call itself is wrong.
    """
    settings = _settings(url, on_failure, timeout, max_failure_rate)
    answers = list(solution_strs if solution_strs is not None else [])
    infos = list(extra_infos if extra_infos is not None else [None] * len(answers))
    if len(infos) != len(answers):
        raise ValueError(f"compute_scores: {len(answers)} answers but {len(infos)} extra_infos.")
    found: list[float] = []
    for start in range(0, len(answers), AT_ONCE):
        found += _scores(answers[start : start + AT_ONCE], infos[start : start + AT_ONCE], settings)
    return [{"score": score, "failed_share": counts.share} for score in found]


def _settings(
    url: str | None, on_failure: str | None, timeout: float | None, max_failure_rate: float | None
) -> tuple[str, str, float, float]:
    address = url or os.environ.get("PALATE_REWARD_URL")
    if not address:
        raise ValueError("compute_score: the reward server's address is missing; set PALATE_REWARD_URL.")
    mode = on_failure or os.environ.get("PALATE_ON_FAILURE") or "stop"
    if mode not in MODES:
        raise ValueError(f"compute_score: PALATE_ON_FAILURE is '{mode}', not stop or mask.")
    seconds = _number("PALATE_REWARD_TIMEOUT", timeout, TIMEOUT)
    most = _number("PALATE_MAX_FAILURE_RATE", max_failure_rate, MAX_FAILURE_RATE)
    return address.rstrip("/") + "/score", mode, seconds, most


def _number(name: str, given: float | None, default: float) -> float:
    text: Any = given if given is not None else os.environ.get(name, default)
    try:
        value = float(text)
    except (TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value) or value <= 0:
        raise ValueError(f"compute_score: {name} is {text!r}, not a number above 0.")
    return value


def _scores(answers: Sequence[Any], infos: Sequence[Any], settings: tuple[str, str, float, float]) -> list[float]:
    address, mode, seconds, most = settings
    items = [_item(answer, info) for answer, info in zip(answers, infos, strict=True)]
    counts.ask(len(items))
    try:
        found = _read(_ask(address, {"items": items}, seconds), items)
    except (RewardFailed, TimeoutError) as bad:
        counts.fail(len(items), str(bad), mode, most)
        raise RewardFailed(str(bad)) from None
    failed = [one for one in found if isinstance(one, RewardFailed)]
    if failed:
        counts.fail(len(failed), str(failed[0]), mode, most)
        raise failed[0]
    return [one for one in found if isinstance(one, float)]


def _item(answer: Any, info: Any) -> dict[str, Any]:
    """Return the wire's item of one answer."""
    if not isinstance(answer, str):
        raise ValueError(f"compute_score: solution_str has to be the answer's text, not {type(answer).__name__}.")
    if info is None:
        raise ValueError(f"compute_score: extra_info is None. {_NEEDED}")
    if not isinstance(info, dict):
        raise ValueError(f"compute_score: extra_info has to be a dict, not {type(info).__name__}. {_NEEDED}")
    item: dict[str, Any] = {
        "id": f"{str(info.get('item_id') or 'answer')[:LONGEST_ID]}@{next(_ids)}",
        "response": answer,
    }
    if info.get("messages") is not None:
        item["messages"] = [{"role": str(m["role"]), "content": str(m["content"])} for m in info["messages"]]
        return item
    if not info.get("question"):
        there = ", ".join(map(str, info)) or "nothing"
        raise ValueError(f"compute_score: extra_info has no 'question' and no 'messages', but {there}. {_NEEDED}")
    item["question"] = str(info["question"])
    for name in ("history", "plan"):
        if info.get(name) is not None:
            item[name] = [str(text) for text in info[name]]
    return item


_NEEDED = "It needs 'question' with 'history' or 'plan', or 'messages', as palate ppo prepare writes them."


def _read(reply: Any, items: Sequence[Mapping[str, Any]]) -> list[float | RewardFailed]:
    """Return the score of each item, in their order, or why there is none."""
    rows = reply.get("results") if isinstance(reply, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise RewardFailed("the server's reply has no list of results")
    ids = [item["id"] for item in items]
    by_id = {str(row.get("id")): row for row in rows}
    if len(rows) != len(ids) or set(by_id) != set(ids):
        raise RewardFailed(f"asked for {ids[:3]}, the server replied about {list(by_id)[:3]}")
    return [_score(by_id[name]) for name in ids]


def _score(row: Mapping[str, Any]) -> float | RewardFailed:
    status, score = row.get("status"), row.get("score")
    if status != "ok":
        return RewardFailed(f"item {row['id']}: {status}: {row.get('error')}")
    if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score):
        return RewardFailed(f"item {row['id']}: the server gave {score!r}, which is not a reward")
    return float(score)


def _ask(address: str, body: Any, seconds: float) -> Any:
    """Post `body` until there is a reply or the time for it is over; only what may pass is tried again."""
    data = json.dumps(body).encode()
    end, wait = time.monotonic() + seconds, FIRST_WAIT
    while True:
        try:
            return _parsed(_within(end - time.monotonic(), lambda: _post(address, data, seconds)))
        except urllib.error.HTTPError as bad:
            why, asked = f"HTTP {bad.code}: {_head(bad)}", _retry_after(bad)
            if bad.code not in BUSY:
                raise RewardFailed(why) from None
        except TimeoutError:
            raise RewardFailed(f"no reply from {address} within {seconds:g} s") from None
        except (OSError, http.client.HTTPException) as bad:
            why, asked = f"{address}: {getattr(bad, 'reason', bad)}", None
        pause = asked if asked is not None else wait
        wait = min(2 * wait, LONGEST_WAIT)
        if time.monotonic() + pause >= end:
            raise RewardFailed(f"{why}; given up after {seconds:g} s")
        counts.retry()
        time.sleep(pause)


def _within(seconds: float, work: Callable[[], bytes]) -> bytes:
    """Return what `work` returns; a call that hangs is left to its own thread, and does not hold this one."""
    values: list[bytes] = []
    errors: list[Exception] = []

    def run() -> None:
        try:
            values.append(work())
        except (OSError, http.client.HTTPException, ValueError) as bad:
            errors.append(bad)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(max(0.0, seconds))
    if errors:
        raise errors[0]
    if not values:
        raise TimeoutError
    return values[0]


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: a token must not go elsewhere, and a redirected POST loses its body."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        """Return no other request."""


_opener = urllib.request.build_opener(_Stay)


def _post(address: str, data: bytes, seconds: float) -> bytes:
    headers = {"Content-Type": "application/json"}
    if os.environ.get("PALATE_HTTP_KEY"):
        headers["Authorization"] = "Bearer " + os.environ["PALATE_HTTP_KEY"]
    asked = urllib.request.Request(address, data=data, headers=headers, method="POST")
    with _opener.open(asked, timeout=seconds) as reply:
        raw: bytes = reply.read(MOST_BYTES + 1)
        if reply.length and len(raw) <= MOST_BYTES:
            raise http.client.IncompleteRead(raw, reply.length)
    return raw


def _parsed(raw: bytes) -> Any:
    if len(raw) > MOST_BYTES:
        raise RewardFailed(f"the server's reply is longer than {MOST_BYTES} bytes")
    try:
        return json.loads(raw, parse_constant=_refuse)
    except ValueError as bad:
        raise RewardFailed(f"the server's reply is not strict JSON: {bad}") from None


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def _head(bad: urllib.error.HTTPError) -> str:
    try:
        return bad.read(300).decode(errors="replace").strip()
    except OSError:
        return str(bad.reason)


def _retry_after(bad: urllib.error.HTTPError) -> float | None:
    try:
        seconds = float(bad.headers.get("Retry-After", ""))
    except (TypeError, ValueError):
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None

"""What `/metrics` tells, in the form of Prometheus. Its memory does not grow with what is asked."""

from collections.abc import Callable

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from palate.records import STATUSES

SECONDS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Meters:
    """Counters of one server."""

    def __init__(self) -> None:
        self._registry = r = CollectorRegistry()
        self._requests = Counter("palate_requests", "Requests by path and HTTP status.", ["path", "code"], registry=r)
        self._items = Counter("palate_items", "Answers by what became of them.", ["status"], registry=r)
        self._timeouts = Counter("palate_timeouts", "Answers without a score in their time (errors).", registry=r)
        self._dropped = Counter("palate_dropped_posts", "Context entries dropped so that it fits.", registry=r)
        self._cut = Counter("palate_items_with_dropped_posts", "Answers whose context was shortened.", registry=r)
        self._stripped = Counter("palate_stripped_ends", "End tokens of other models taken off answers.", registry=r)
        self._left = Counter("palate_leftover_tokens", "Chat-template tokens left inside answers.", registry=r)
        self._groups = Counter("palate_groups", "Groups given to the model.", registry=r)
        self._sizes = Histogram("palate_batch_answers", "Answers in a call.", buckets=SIZES, registry=r)
        self._seconds = Histogram("palate_request_seconds", "Time of scoring requests.", buckets=SECONDS, registry=r)
        for status in STATUSES:
            self._items.labels(status)

    def watch(self, pending: Callable[[], float], hung: Callable[[], float], healthy: Callable[[], float]) -> None:
        """Tell also of what is going on at the moment."""
        for name, told, of in (
            ("palate_items_pending", "Answers that wait or are scored.", pending),
            ("palate_hung_threads", "Scoring threads that hang and were replaced.", hung),
            ("palate_healthy", "1 if answers are scored.", healthy),
        ):
            Gauge(name, told, registry=self._registry).set_function(of)

    def request(self, path: str, code: int) -> None:
        """Count a reply."""
        self._requests.labels(path, str(code)).inc()

    def took(self, seconds: float) -> None:
        """Note how long a request for scores took."""
        self._seconds.observe(seconds)

    def batch(self, groups: int, answers: int) -> None:
        """Count a call of the model."""
        self._groups.inc(groups)
        self._sizes.observe(answers)

    def item(self, status: str, *, late: bool, dropped: int, stripped: int, left: int) -> None:
        """Count an answer."""
        self._items.labels(status).inc()
        self._timeouts.inc(late)
        self._dropped.inc(dropped)
        self._cut.inc(dropped > 0)
        self._stripped.inc(stripped)
        self._left.inc(left)

    @property
    def page(self) -> tuple[bytes, str]:
        """The text and its type."""
        return generate_latest(self._registry), CONTENT_TYPE_LATEST

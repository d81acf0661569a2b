"""Who and what the figures hang on: domains, users, sizes of histories."""

from collections import Counter
from collections.abc import Collection

from palate.audit.base import WORST, Check, Figure, Worst, undefined
from palate.data import Entry
from palate.evaluation.measure import LARGEST, SIZES, size_of

SMALLEST_DOMAIN = 0.05
LARGEST_USER = 0.10
COLD = 0.10
WHY_DOMAIN = (
    "A domain with under a twentieth of the items hangs on a handful of them but weighs a full share in the macro mean."
)
WHY_USER = "One user with more than a tenth of the items decides figures that are meant to be about many users."
WHY_COLD = "Where the history is empty nothing can be read, so the item is no test of reading the user."


def balance(entries: Collection[Entry]) -> list[Check]:
    """Return the checks of domains, users and histories."""
    total = len(entries)
    domains = Counter(e.domain for e in entries)
    smallest = min(domains.values()) / total
    parts = _shares(domains, total) if len(domains) > 1 else ()
    few = tuple(Worst(d, f"{n} of {total} items") for d, n in sorted(domains.items(), key=lambda x: x[1])[:WORST])
    low = Figure("smallest domain", total, smallest) if len(domains) > 1 else undefined("domains", "only one domain")
    title = "Share of the smallest domain"
    checks = [
        Check("domains", "balance", title, "share", low, WHY_DOMAIN, SMALLEST_DOMAIN, None, parts, few if parts else ())
    ]
    return [*checks, _users(entries), _histories(entries)]


def _users(entries: Collection[Entry]) -> Check:
    users = Counter(e.user_id for e in entries if e.user_id is not None)
    total = len(entries)
    whole = undefined("largest user", "no user ids")
    worst: tuple[Worst, ...] = ()
    if users:
        whole = Figure("largest user", total, max(users.values()) / total)
        worst = tuple(Worst(str(u), f"{n} of {total} items") for u, n in users.most_common(WORST) if n > 1)
    title = "Share of the largest user"
    return Check("users", "balance", title, "share", whole, WHY_USER, high=LARGEST_USER, worst=worst)


def _histories(entries: Collection[Entry]) -> Check:
    total = len(entries)
    sizes = Counter(size_of(e) for e in entries)
    ordered = {name: sizes[name] for _, name in (*SIZES, (0, LARGEST)) if name in sizes}
    cold = [e.id for e in entries if not e.posts]
    whole = Figure("items", total, len(cold) / total)
    parts = tuple(Figure(f"{f.name} posts", f.n, f.value, judged=False) for f in _shares(ordered, total))
    worst = tuple(Worst(i, "no posts") for i in cold[:WORST])
    return Check("cold_start", "balance", "Items without a history", "share", whole, WHY_COLD, None, COLD, parts, worst)


def _shares(counts: dict[str, int] | Counter[str], total: int) -> tuple[Figure, ...]:
    return tuple(Figure(name, n, n / total, judged=False) for name, n in counts.items())

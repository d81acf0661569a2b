"""`look`: an item seen through a view becomes a query. The only place where a context section is written.

All views share one template; only the context section differs. The answer key can enter through `oracle` alone.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files

from palate.llm import load_prompt
from palate.records import Block, Context, Item, Key, Message, Post, Query
from palate.views.view import View

VIEW = load_prompt("palate.views", "view", ("heading", "entries", "question"))
HEADINGS = {
    "posts": "What this person has written before, the most relevant first:",
    "plan": "What this person probably wants from the answer:",
    "rubric": "What this person wants from the answer:",
}
NOTHING = "(nothing)"


def look(
    item: Item,
    view: View,
    *,
    posts: Sequence[Post] | None = None,
    plan: Sequence[str] | None = None,
    key: Key | None = None,
    donors: tuple[str, ...] = (),
    lost: int = 0,
) -> Query:
    """Return the query that `view` makes of `item`.

    Filler is named after the entry it stands for; a planned aspect is its own name.

    Exactly the material that the view reads has to be given: ranked posts for `history`, aspects for `plan`,
    the key for `oracle`, nothing for `question`. Under `user=other` it is the donor's; under `user=none` it is the
    own material, of which only the lengths are used. `lost` counts posts that retrieval could not place.

    Raises:
        TypeError: other material than the view reads.
    """
    given = {name for name, value in (("posts", posts), ("plan", plan), ("key", key)) if value is not None}
    wanted = {"question": set(), "history": {"posts"}, "plan": {"plan"}, "oracle": {"key"}}[view.name]
    if given != wanted:
        raise TypeError(f"view '{view.name}' reads {sorted(wanted) or 'nothing'}, not {sorted(given) or 'nothing'}")
    context = _context(view, posts, plan, key, donors)
    if context is not None and lost:
        context = replace(context, lost=lost)
    return Query(item.id, str(view), item.messages, render(item.messages, context), context)


def render(turns: tuple[Message, ...], context: Context | None) -> tuple[Message, ...]:
    """Return chat turns with the context section in front of the first user turn."""
    if context is None:
        return turns
    entries = "\n\n".join(f"[{k}] {b.text}" for k, b in enumerate(context.blocks, 1)) or NOTHING
    first = next(k for k, turn in enumerate(turns) if turn.role == "user")
    text = VIEW.fill(heading=HEADINGS[context.kind], entries=entries, question=turns[first].content)
    return (*turns[:first], Message("user", text), *turns[first + 1 :])


def filler(length: int, start: int) -> str:
    """Return neutral text of `length` characters, shorter by at most a word, that begins at sentence `start`."""
    sentences = _sentences()
    text, k = "", start
    while len(text) < length:
        text += (" " if text else "") + sentences[k % len(sentences)]
        k += 1
    cut = text.rfind(" ", 0, length + 1) if len(text) > length else length
    return text[: cut if cut > 0 else length]


def _context(
    view: View,
    posts: Sequence[Post] | None,
    plan: Sequence[str] | None,
    key: Key | None,
    donors: tuple[str, ...],
) -> Context | None:
    if posts is not None:
        return _filled(Context("posts", view.user, tuple(Block(p.id, post_text(p)) for p in posts), donors))
    if plan is not None:
        return _filled(Context("plan", view.user, tuple(Block(a, a) for a in plan), donors))
    if key is not None:
        blocks = tuple(Block(str(k), _aspect(a.aspect, a.reason, a.evidence)) for k, a in enumerate(key.aspects))
        return _filled(Context("rubric", view.user, blocks, donors))
    return None


def _filled(context: Context) -> Context:
    if context.user != "none":
        return context
    blocks = tuple(Block(f"filler:{b.id}", filler(len(b.text), 7 * k)) for k, b in enumerate(context.blocks))
    return replace(context, blocks=blocks)


def post_text(post: Post) -> str:
    """Return a post as it is shown; an earlier choice shows what was preferred over what."""
    if post.rejected is None:
        return post.text
    asked = f"Asked: {post.prompt}\n" if post.prompt else ""
    return f"{asked}Preferred: {post.text}\nOver: {post.rejected}"


def _aspect(aspect: str, reason: str, evidence: str) -> str:
    parts = [
        aspect.rstrip("."),
        *([reason] if reason else []),
        *([f"In their words: {evidence}"] if evidence else []),
    ]
    return ". ".join(p.rstrip(".") for p in parts) + "."


@cache
def _sentences() -> tuple[str, ...]:
    text = (files("palate.views") / "prompts" / "filler.txt").read_text(encoding="utf-8")
    return tuple(line for line in text.splitlines() if line)


def _digests() -> dict[str, str]:
    import hashlib

    rest = repr((HEADINGS, NOTHING, _sentences())).encode()
    return {"view": VIEW.digest, "view_parts": hashlib.sha256(rest).hexdigest()[:16]}


PROMPT_DIGESTS = _digests()

"""Rendering: jinja2 with escaping on and nothing undefined; data for scripts as JSON that cannot end the script."""

import base64
import gzip
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape


def render_page(package: str, template: str, values: Mapping[str, Any]) -> str:
    """Return the page that `template` of `package` makes of `values`; `base.html` is the kit's."""
    style, script = (_asset(name) for name in ("style.css", "kit.js"))
    return _environment(package).get_template(template).render(style=style, kit=script, **values)


def json_block(name: str, value: Any) -> Markup:
    """Return `value` as a JSON script element with the id `name`."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    safe = text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return Markup(f'<script type="application/json" id="{escape(name)}">{safe}</script>')


def packed_block(name: str, value: Any) -> Markup:
    """Return `value` as gzipped JSON in base64, for data that is only read when somebody asks for it."""
    raw = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    text = base64.b64encode(gzip.compress(raw, 6, mtime=0)).decode()
    return Markup(f'<script type="text/plain" id="{escape(name)}">{text}</script>')


def percent(value: float | None, digits: int = 1) -> str:
    """Return a share as `71.9 %`, a missing one as a dash."""
    return "–" if value is None else f"{100 * value:.{digits}f} %"


def points(value: float | None) -> str:
    """Return a difference of shares in percentage points, signed with a true minus."""
    return "–" if value is None else f"{100 * value:+.1f}".replace("-", "\u2212")


def interval(ci: Any, signed: bool = False) -> str:
    """Return an interval in per cent or points."""
    if ci is None:
        return "–"
    low, high = (points(v) if signed else f"{100 * v:.1f}" for v in ci)
    return f"{low} … {high}" if signed else f"{low}–{high}"


@cache
def _environment(package: str) -> Environment:
    loader = ChoiceLoader([PackageLoader(package, "templates"), PackageLoader("palate.pages", "templates")])
    env = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    env.filters.update(percent=percent, points=points, interval=interval)
    return env


@cache
def _asset(name: str) -> Markup:
    return Markup((files("palate.pages") / "templates" / name).read_text(encoding="utf-8"))

"""Rendering: jinja2 with escaping on and nothing undefined; data for scripts as JSON that cannot end the script."""

import base64
import gzip
import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from palate.pages.numbers import interval, percent, points

if TYPE_CHECKING:
    from jinja2 import Environment

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
NO_SCRIPT = "'none'"


def render_page(package: str, template: str, values: Mapping[str, Any], script: str | None = None) -> str:
    """Return the page that `template` of `package` makes of `values`; `base.html` is the kit's.

    The only scripts that the page lets run are the kit's and the file `script` of `package`, by their hashes; without
    `script` there is none at all.
    """
    scripts = [asset("palate.pages", "kit.js"), asset(package, script)] if script else []
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in scripts)
    page = {"style": asset("palate.pages", "style.css"), "scripts": scripts}
    page["policy"] = Markup(f"{POLICY}; script-src {hashes or NO_SCRIPT}")
    return environment(package).get_template(template).render(**page, **values)


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


@cache
def environment(package: str) -> "Environment":
    """Return the environment of `package`'s own templates and the kit's: escaping on, nothing undefined."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    loader = ChoiceLoader([PackageLoader(package, "templates"), PackageLoader("palate.pages", "templates")])
    env = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    env.filters.update(percent=percent, points=points, interval=interval)
    return env


@cache
def asset(package: str, name: str) -> Markup:
    """Return a style or script of `package`'s templates."""
    text = (files(package) / "templates" / name).read_text(encoding="utf-8")
    assert "</script" not in text, "it would end the script element"
    return Markup(text)

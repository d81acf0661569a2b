"""The pages of a study. Each annotator has one link; every page works without JavaScript."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Path, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.exceptions import HTTPException

from palate.annotate.book import Incomplete, Locked, Task
from palate.annotate.fields import CRITERIA, FIELDS, LONGEST_COMMENT, SCALE, SEATS, BadField, read_fields
from palate.annotate.guard import Guard
from palate.annotate.study import Study
from palate.pages import asset, environment

FORM_TOKEN = "form_token"
PER_PAGE = 200
MOST_FIELDS = 24
STYLE = asset("palate.pages", "style.css") + asset("palate.annotate", "annotate.css")
SCRIPT = asset("palate.annotate", "annotate.js")
STATIC = {"annotate.css": (STYLE, "text/css"), "annotate.js": (SCRIPT, "text/javascript")}
VERSION = hashlib.sha256((STYLE + SCRIPT).encode()).hexdigest()[:12]
STRANGER = "This link is not one of this study. Ask whoever sent it to you for the right one."


@dataclass(frozen=True, slots=True)
class Visitor:
    """Whoever holds a link: number, name, where their pages are, and the token of their forms."""

    id: int
    name: str
    base: str
    form_token: str


@dataclass(frozen=True, slots=True)
class Opened:
    """One step of one item of a visitor."""

    visitor: Visitor
    task: Task
    step: int

    @property
    def url(self) -> str:
        """The address of its page."""
        return f"{self.visitor.base}/item/{self.task.number}/{self.step}"


def create_app(study: Study) -> FastAPI:
    """Return the application that serves `study`."""
    app = FastAPI(title="Palate", docs_url=None, redoc_url=None, openapi_url=None)
    app.add_middleware(Guard)
    app.add_exception_handler(HTTPException, _failed)
    app.add_exception_handler(RequestValidationError, _unknown)
    _add_pages(app, study)
    _add_forms(app, study)
    return app


def _visitor(study: Study) -> Any:
    known = study.book.annotators()

    def visitor(token: str) -> Visitor:
        name = study.links.who(token)
        if name is None:
            raise HTTPException(404, STRANGER)
        return Visitor(known[name], name, f"/a/{token}", study.links.form_token(name))

    return visitor


def _opened(study: Study, visitor: Any) -> Any:
    def opened(
        who: Annotated[Visitor, Depends(visitor)],
        number: Annotated[int, Path(ge=1, le=10**9)],
        step: Annotated[int, Path(ge=1, le=2)],
    ) -> Opened:
        task = study.book.task(who.id, number)
        if task is None or step > task.steps:
            raise HTTPException(404, "You have no such item.")
        return Opened(who, task, step)

    return opened


def _add_pages(app: FastAPI, study: Study) -> None:
    visitor = _visitor(study)
    opened = _opened(study, visitor)

    @app.get("/static/{name}")
    def static(name: str) -> Response:
        if name not in STATIC:
            raise HTTPException(404, "No such file.")
        text, kind = STATIC[name]
        return Response(str(text), media_type=kind, headers={"Cache-Control": "max-age=31536000, immutable"})

    @app.get("/a/{token}")
    def instructions(who: Annotated[Visitor, Depends(visitor)]) -> Response:
        about = {"k": study.config["k"], "checks": study.config["attention"] is not None}
        return _page("instructions.html", study, who, about)

    @app.get("/a/{token}/next")
    def following(who: Annotated[Visitor, Depends(visitor)]) -> Response:
        return RedirectResponse(_next(study, who), 303)

    @app.get("/a/{token}/done")
    def done(who: Annotated[Visitor, Depends(visitor)]) -> Response:
        return _page("done.html", study, who, {})

    @app.get("/a/{token}/items")
    def items(who: Annotated[Visitor, Depends(visitor)], start: int = 1) -> Response:
        total = study.book.progress(who.id).total
        start = max(1, min(start, total))
        start -= (start - 1) % PER_PAGE
        found = study.book.numbers(who.id, start, PER_PAGE)
        return _page(
            "items.html", study, who, {"items": found, "starts": range(1, total + 1, PER_PAGE), "start": start}
        )

    @app.get("/a/{token}/item/{number}/{step}")
    def item(at: Annotated[Opened, Depends(opened)], said: str = "") -> Response:
        try:
            study.book.begin(at.task, at.step)
        except Locked:
            return RedirectResponse(f"{at.visitor.base}/item/{at.task.number}/1", 303)
        return _item_page(study, at, note=NOTES.get(said))


NOTES = {"saved": "Saved.", "correct": "You can change your answers now. Finish the step again when you are done."}


def _add_forms(app: FastAPI, study: Study) -> None:
    visitor = _visitor(study)
    opened = _opened(study, visitor)

    async def form(request: Request, who: Annotated[Visitor, Depends(visitor)]) -> dict[str, str]:
        return await _read_form(request, study, who)

    @app.post("/a/{token}/item/{number}/{step}/save")
    def save(request: Request, at: Annotated[Opened, Depends(opened)], sent: Annotated[Any, Depends(form)]) -> Response:
        try:
            study.book.save(at.task, at.step, read_fields(at.step, sent))
        except (BadField, Locked) as bad:
            return _refused(request, study, at, bad)
        return JSONResponse({"saved": sorted(sent)}) if _wants_json(request) else _see(f"{at.url}?said=saved")

    @app.post("/a/{token}/item/{number}/{step}/finish")
    def finish(
        request: Request, at: Annotated[Opened, Depends(opened)], sent: Annotated[Any, Depends(form)]
    ) -> Response:
        try:
            done = study.book.finish(at.task, at.step, read_fields(at.step, sent))
        except (BadField, Locked, Incomplete) as bad:
            return _refused(request, study, at, bad)
        if at.step < at.task.steps and not done:
            return _see(f"{at.visitor.base}/item/{at.task.number}/2")
        return _see(_next(study, at.visitor))

    @app.post("/a/{token}/item/{number}/{step}/correct")
    def correct(
        request: Request, at: Annotated[Opened, Depends(opened)], sent: Annotated[Any, Depends(form)]
    ) -> Response:
        try:
            study.book.correct(at.task, at.step)
        except Locked as bad:
            return _refused(request, study, at, bad)
        return _see(f"{at.url}?said=correct")


async def _read_form(request: Request, study: Study, who: Visitor) -> dict[str, str]:
    """Return the fields of a form that was made for this annotator, its token taken off."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise HTTPException(415, "A form is expected.")
    pairs = (await request.form(max_fields=MOST_FIELDS)).multi_items()
    found = {str(name): str(value) for name, value in pairs}
    if not study.links.is_form_of(who.name, found.pop(FORM_TOKEN, "")):
        raise HTTPException(403, "This form is not one of yours. Open the page again and repeat what you did.")
    names = [name for name, _ in pairs]
    if twice := [name for name in found if names.count(name) > 1]:
        raise HTTPException(422, f"{twice[0][:40]}: given twice.")
    return found


def _next(study: Study, who: Visitor) -> str:
    number = study.book.next_number(who.id)
    if number is None:
        return f"{who.base}/done"
    task = study.book.task(who.id, number)
    assert task is not None, "it was found by its number"
    state = study.book.state(task)
    return f"{who.base}/item/{number}/{next(s for s in state if state[s].open)}"


def _item_page(
    study: Study, at: Opened, *, note: str | None = None, problem: str | None = None, status: int = 200
) -> Response:
    sheet, state = study.book.sheet(at.task.item), study.book.state(at.task)
    first_chosen = at.task.first == "chosen"
    texts = (sheet.chosen, sheet.rejected) if first_chosen else (sheet.rejected, sheet.chosen)
    values = {
        "at": at,
        "sheet": sheet,
        "answers": list(zip(SEATS, texts, strict=True)),
        "criteria": CRITERIA[at.step],
        "scale": SCALE,
        "has_comment": "comment" in FIELDS[at.step],
        "longest_comment": LONGEST_COMMENT,
        "given": state[at.step].values,
        "state": state,
        "open": state[at.step].open,
        "rubric_seen": at.step == 1 and at.task.steps == 2 and state[2].started is not None,
        "note": note,
        "problem": problem,
    }
    return _page("item.html", study, at.visitor, values, status)


def _refused(request: Request, study: Study, at: Opened, bad: BadField | Locked | Incomplete) -> Response:
    status = 409 if isinstance(bad, Locked) else 422
    if _wants_json(request):
        field = bad.field if isinstance(bad, BadField) else None
        return JSONResponse({"error": str(bad), "field": field}, status)
    if isinstance(bad, Locked) and at.step == 2 and study.book.state(at.task)[1].open:
        at = Opened(at.visitor, at.task, 1)
    return _item_page(study, at, problem=str(bad), status=status)


def _page(template: str, study: Study, who: Visitor | None, values: Mapping[str, Any], status: int = 200) -> Response:
    progress = study.book.progress(who.id) if who else None
    made = environment("palate.annotate").get_template(template)
    return HTMLResponse(made.render(who=who, progress=progress, version=VERSION, **values), status)


def _wants_json(request: Request) -> bool:
    return "application/json" in request.headers.get("accept", "")


def _see(url: str) -> Response:
    return RedirectResponse(url, 303)


def _failed(request: Request, bad: Exception) -> Response:
    assert isinstance(bad, HTTPException), "it is registered for these"
    return _message(request, bad.status_code, str(bad.detail))


def _unknown(request: Request, bad: Exception) -> Response:
    return _message(request, 404, "There is no such page.")


def _message(request: Request, status: int, text: str) -> Response:
    if _wants_json(request):
        return JSONResponse({"error": text, "field": None}, status)
    values = {"who": None, "progress": None, "version": VERSION, "text": text}
    return HTMLResponse(environment("palate.annotate").get_template("message.html").render(**values), status)

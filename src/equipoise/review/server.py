"""The local page of `equipoise review`: findings, their images, and access."""

from __future__ import annotations

import math
import secrets
import socket
from collections import OrderedDict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property, partial
from http import HTTPStatus
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, get_args
from urllib.parse import urlencode

from equipoise.audits.gallery import Hidden, small_jpeg
from equipoise.core import (
    ConfigError,
    EquipoiseError,
    Fields,
    Finding,
    Integers,
    MissingExtraError,
    Verdict,
    record,
)
from equipoise.core.writing import FULL
from equipoise.evidence import ImageError, Pictures, decode, read_pictures, tidy
from equipoise.report.blocks import Role, Span, distinct
from equipoise.report.concluding import in_order
from equipoise.report.overview import badge_of
from equipoise.report.page_verdicts import with_page_verdicts
from equipoise.report.rendering import asset, page_style, templates
from equipoise.report.text import visible
from equipoise.report.titles import spans_of
from equipoise.report.words import (
    compared_groups,
    heading,
    headline,
    sentence,
    shown_verdict,
)
from equipoise.review.causes_page import CausesPages
from equipoise.review.coding import check_codes
from equipoise.review.examples import HIDE, ORDERS, Examples, Selection, ShownImage
from equipoise.review.requests import PLACE, parse_number, parse_whole_number
from equipoise.review.thumbnails import find_pictures, index_pictures

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

Report = Callable[[Exception, str], object]
"""Takes an unexpected error, and the method and path of its request."""
COOKIE = "equipoise_review"
_POLICY = (
    "default-src 'none'; img-src 'self'; style-src 'self'; script-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    b"content-security-policy": _POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    # Without a referrer browsers hide the origin of forms, too.
    b"referrer-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"cache-control": b"no-store",
}
_ASSETS = {"review.css": "text/css", "review.js": "text/javascript"}
# Images of each group on the first page.
_FIRST_IMAGES = 8
# Pixels of the longer side of a thumbnail and of a large picture; bytes of thumbnails that are
# kept in memory.
_SMALL, _LARGE, _CACHE_BYTES = 240, 1200, 64 << 20


class Guard:
    """Serves only requests with the right host, origin and token.

    Parameters
    ----------
    app : ASGI application
    host : str
        Address with its port, as the browser names it.
    token : str
        Sent once in the address, and then in a cookie.
    report : callable, optional
        Reports unexpected errors, which get status 500. By default they are raised.
    """

    def __init__(self, app: ASGIApp, host: str, token: str, report: Report | None = None) -> None:
        self.app, self.report = app, report
        port = host.rpartition(":")[2]
        self.hosts = {host, f"localhost:{port}"}
        self.token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 403 to every request from another page."""
        from starlette.requests import Request
        from starlette.responses import PlainTextResponse, RedirectResponse

        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        request = Request(scope)
        headers = request.headers
        origins = {f"http://{host}" for host in self.hosts}
        token = request.query_params.get("token", "")
        answer: ASGIApp = self.app
        # Browsers name the origin of every form; of a page that is opened they don't.
        allowed = origins if request.method == "POST" else {"", *origins}
        if headers.get("host") not in self.hosts or headers.get("origin", "") not in allowed:
            answer = PlainTextResponse("This page is not served here.", HTTPStatus.FORBIDDEN)
        elif token and self._is_token(token):
            # Two slashes would start the name of another host.
            path = f"/{request.url.path.lstrip('/')}"
            redirect = RedirectResponse(path, HTTPStatus.SEE_OTHER)
            redirect.set_cookie(self._name, self.token, httponly=True, samesite="strict")
            answer = redirect
        elif token or not self._is_token(request.cookies.get(self._name, "")):
            answer = PlainTextResponse(
                "Open the address that `equipoise review` printed.", HTTPStatus.FORBIDDEN
            )

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] += _HEADERS.items()
            await send(message)

        try:
            await answer(scope, receive, send_with_headers)
        except Exception as error:
            if self.report is None:
                raise
            self.report(error, f"{request.method} {request.url.path}")

    @property
    def _name(self) -> str:
        # Cookies don't keep ports apart.
        return f"{COOKIE}_{min(self.hosts).rpartition(':')[2]}"

    def _is_token(self, token: str) -> bool:
        return secrets.compare_digest(token.encode(), self.token.encode())


class Thumbnails:
    """Small pictures of a run's images, made on demand; the latest are kept in memory.

    Parameters
    ----------
    examples : Examples
    folder : Path, optional
        Folder of the files, by image id, in place of the run's paths.
    limit : int
        Bytes to keep.
    """

    def __init__(
        self, examples: Examples, folder: Path | None = None, limit: int = _CACHE_BYTES
    ) -> None:
        self.examples = examples
        self.folder = folder
        self.limit = limit
        self.size = 0
        self._cache: OrderedDict[tuple[int | str | None, ...], bytes] = OrderedDict()
        self._lock = Lock()

    def get(
        self, place: int, side: int, *, hide: Hidden | None = None, view: str = "", label: str = ""
    ) -> bytes:
        """Return a JPEG without metadata.

        Parameters
        ----------
        place : int
            Row of the image in the run.
        side : int
            Longer side in pixels.
        hide : "faces", "outside", "all" or None
            Area to blur.
        view : str
            "crop" for the crop that the model sees; otherwise the whole image with its box.
        label : str
            Label of the boxes to draw, where the data have boxes and the image is no crop.

        Raises
        ------
        OSError, ImageError
            If the file can't be read.
        """
        key = place, side, hide, view, label if self.examples.has_boxes else ""
        with self._lock:
            if key in self._cache:
                self._cache.move_to_end(key)
                return self._cache[key]
        data, crop = self._read(place)
        if crop is not None and view == "crop":
            blur = None if hide == "outside" else hide
            thumbnail = small_jpeg(decode(data, crop=crop), side, blur)
        else:
            boxes = self.examples.boxes(place, label) if crop is None else [tuple(crop.tolist())]
            thumbnail = small_jpeg(decode(data), side, hide, boxes)
        with self._lock:
            self._cache[key] = thumbnail
            self.size += len(thumbnail)
            while self.size > self.limit:
                self.size -= len(self._cache.popitem(last=False)[1])
        return thumbnail

    def _read(self, place: int) -> tuple[bytes, Integers | None]:
        picture = read_pictures(self.examples.run, [place])
        crop = picture.crop(0)
        if self.folder is None:
            return picture.read(0), crop
        if picture.ids[0] not in self._places:
            raise OSError(f"there is no file for {picture.ids[0]!r}")
        return self._pictures.read(self._places[picture.ids[0]]), crop

    @cached_property
    def _pictures(self) -> Pictures:
        return find_pictures(self.examples.run, self.folder)

    @cached_property
    def _places(self) -> dict[str, int]:
        return index_pictures(self._pictures)


@record
class ReviewPage:
    """The pages of a run.

    Attributes
    ----------
    examples : Examples
    thumbnails : Thumbnails
    """

    examples: Examples
    thumbnails: Thumbnails

    @cached_property
    def findings(self) -> list[Finding]:
        """Findings that compare groups, the most serious first."""
        return [
            finding
            for finding in in_order(with_page_verdicts(self.examples.result))
            if finding.by_group
        ]

    def index(self, request: Request) -> Response:
        """List the findings."""
        query, rows = request.query_params, self._list_findings()
        model, verdict = query.get("model", ""), query.get("verdict", "")
        matching = [
            row for row in rows if model in ("", row["model"]) and verdict in ("", row["verdict"])
        ]
        hide = query.get("hide", "") if query.get("hide", "") in HIDE else ""
        first = self._read_first(matching[0]["place"], hide) if matching else {}
        return self.render(
            "index", findings=matching[:_MOST_FINDINGS], n_findings=len(matching),
            choices={"model": distinct(rows, "model"), "verdict": distinct(rows, "verdict")},
            filters={"model": model, "verdict": verdict}, images=len(self.examples),
            hide=hide, hidden=self._list_areas(), **first,
        )  # fmt: skip

    def _read_first(self, place: int, hide: str) -> Fields:
        """Return the first images of each group behind a finding."""
        finding = self.findings[place]
        outcome = next(iter(self.examples.outcomes(finding)), "")
        chosen = Selection(outcome=outcome, hide=hide, size=_FIRST_IMAGES)
        return {
            "place": place, "outcome": outcome, "title_spans": _title_of(finding),
            "roles": _roles_of(finding),
            "columns": [*self.examples.select(finding, chosen)],
            "address": partial(_build_query, replace(chosen, size=0)),
            "picture": partial(_build_picture_address, chosen), "side": _SMALL,
        }  # fmt: skip

    def _list_areas(self) -> dict[str, str]:
        """Return the areas that can be blurred, with their names."""
        boxes = self.examples.has_crops or self.examples.has_boxes
        return {value: name for value, name in HIDE.items() if boxes or value != "outside"}

    def _list_findings(self) -> list[Fields]:
        """Return a row for each number: of several tests the first, in the place of the last."""
        rows: dict[tuple[str, str], Fields] = {}
        for place, finding in enumerate(self.findings):
            row: Fields = {
                "place": place,
                "sentence": sentence(finding),
                "heading": heading(finding),
                "verdict": shown_verdict(finding),
                "badge": badge_of(finding),
                "model": finding.model,
            }
            key = row["heading"], row["sentence"]
            rows[key] = rows.pop(key, row)
        return [*rows.values()]

    def show_finding(self, request: Request) -> Response:
        """Show the images behind a finding, side by side by group."""
        place = request.path_params["place"]
        chosen = self._read_selection(place, request)
        if chosen is None:
            return _refuse()
        finding = self.findings[place]
        columns = [*self.examples.select(finding, chosen)]
        return self.render(
            "finding", finding=finding, title_spans=_title_of(finding), heading=heading(finding),
            mark=badge_of(finding), examples=self.examples, orders=ORDERS,
            hidden=self._list_areas(), chosen=chosen, columns=columns, roles=_roles_of(finding),
            address=partial(_build_query, chosen),
            picture=partial(_build_picture_address, chosen), place=place,
            side=_SMALL, last=len(self.findings) - 1,
        )  # fmt: skip

    def show_image(self, request: Request) -> Response:
        """Show one image of a finding, with links to its neighbours on the page."""
        place, image = request.path_params["place"], request.path_params["image"]
        chosen = self._read_selection(place, request)
        if chosen is None:
            return _refuse()
        finding = self.findings[place]
        names, images = list[str](), list[ShownImage]()
        for group in self.examples.select(finding, chosen):
            names += [group.name] * len(group.images)
            images += group.images
        places = [neighbour.place for neighbour in images]
        if image not in places:
            return _refuse()
        position = places.index(image)
        neighbours = [None, *places, None]
        return self.render(
            "image", sentence=sentence(finding), group=names[position], image=images[position],
            place=place, chosen=chosen, address=_build_query(chosen), before=neighbours[position],
            after=neighbours[position + 2], picture=partial(_build_picture_address, chosen),
        )  # fmt: skip

    def _read_selection(self, place: int, request: Request) -> Selection | None:
        """Return the selection of an address; None if it is invalid."""
        if place >= len(self.findings):
            return None
        finding, examples, query = self.findings[place], self.examples, request.query_params
        outcomes = examples.outcomes(finding)
        outcome = query.get("outcome", "") or next(iter(outcomes), "")
        choices: dict[str, Container[str]] = {
            "outcome": outcomes, "label": examples.labels(finding, outcome),
            "group": examples.groups(finding), "cause": examples.causes(), "order": ORDERS,
            "hide": HIDE, "view": ("crop",),
        }  # fmt: skip
        settings = {"order": ORDERS[0], **query, "outcome": outcome}
        texts: Fields = {name: settings[name] for name in choices if settings.get(name)}
        if any(text not in choices[name] for name, text in texts.items()):
            return None
        low, high = parse_number(query.get("low", "")), parse_number(query.get("high", ""))
        page = parse_whole_number(query.get("page", "0"))
        invalid = (query.get("low") and low is None) or (query.get("high") and high is None)
        if page is None or invalid:
            return None
        return Selection(low=low, high=high, page=max(0, page), **texts)

    def send_image(self, request: Request) -> Response:
        """Return a picture of the run by its place."""
        from starlette.responses import Response

        place, size = request.path_params["place"], request.path_params["size"]
        query = request.query_params
        number = query.get("finding", "")
        hide: Hidden | None = {name: name for name in get_args(Hidden)}.get(query.get("hide", ""))
        valid = size in _SIDES and query.get("hide", "") in HIDE
        if place >= len(self.examples) or not valid:
            return _refuse()
        label = ""
        if number:
            finding = parse_whole_number(number)
            if finding is None or not 0 <= finding < len(self.findings):
                return _refuse()
            label = self.findings[finding].subject
        try:
            content = self.thumbnails.get(
                place, _SIDES[size], hide=hide, view=query.get("view", ""), label=label
            )
        except (ImageError, OSError):
            return Response(status_code=HTTPStatus.NOT_FOUND)
        return Response(content, media_type="image/jpeg")

    def show_error(self, request: Request, error: Exception) -> Response:
        """Show what failed, and whether an answer was lost."""
        number = getattr(error.__cause__ or error, "errno", None)
        status = HTTPStatus.INTERNAL_SERVER_ERROR
        if number in FULL:
            status = HTTPStatus.INSUFFICIENT_STORAGE
        posted = request.method == "POST"
        problem = "Your answer was not kept" if posted else "This page can't be shown"
        return self.render("problem", status=status, problem=problem, reason=str(error), back="")

    def render(self, name: str, *, status: int = HTTPStatus.OK, **values: Any) -> Response:
        """Return the page of a template."""
        from starlette.responses import HTMLResponse

        template = templates("equipoise.review", visible).get_template(f"{name}.html.j2")
        title = self.examples.run.resolve().name
        return HTMLResponse(template.render(title=title, **values), status)


# Findings of one page, and sides of pictures by the name in an address.
_MOST_FINDINGS = 300
_SIDES = {"small": _SMALL, "large": _LARGE}


def _title_of(finding: Finding) -> tuple[Span, ...]:
    """Return the sentence of a finding as a title, with its groups marked."""
    if finding.verdict is Verdict.NOT_ESTIMABLE or math.isnan(finding.value):
        return (Span(sentence(finding)),)
    return spans_of(headline(finding), [*_roles_of(finding)] or ["", ""])


def _roles_of(finding: Finding) -> dict[str, Role]:
    """Return the roles of the two groups that a finding compares."""
    groups = compared_groups(finding)
    return {groups[0].group: "worse", groups[1].group: "other"} if groups else {}


def _build_query(chosen: Selection, **changes: str | float | None) -> str:
    """Return the query of a selection with some changes."""
    values, usual = asdict(replace(chosen, **changes)), asdict(Selection())  # type: ignore[arg-type]
    return "?" + urlencode({name: value for name, value in values.items() if value != usual[name]})


def _build_picture_address(chosen: Selection, size: str, image: int, place: int) -> str:
    """Return the address of a picture of a finding."""
    query = [("hide", chosen.hide), ("view", chosen.view), ("finding", str(place))]
    return f"/image/{size}/{image}?" + urlencode([(name, text) for name, text in query if text])


def _refuse() -> Response:
    from starlette.responses import PlainTextResponse

    return PlainTextResponse("This page doesn't exist.", HTTPStatus.FORBIDDEN)


def _answer_disconnect(request: Request, error: Exception) -> Response:  # noqa: ARG001 - a handler's signature
    """Answer a client that has disconnected."""
    from starlette.responses import Response

    return Response(status_code=HTTPStatus.BAD_REQUEST)


def _send_asset(request: Request) -> Response:
    from starlette.responses import Response

    name = request.path_params["name"]
    if name not in _ASSETS:
        return _refuse()
    read = page_style if name.endswith(".css") else asset
    return Response(read("equipoise.review", name), media_type=_ASSETS[name])


def application(
    run: Path,
    host: str,
    token: str,
    folder: Path | None = None,
    codes: Sequence[str] = (),
    report: Report | None = None,
) -> ASGIApp:
    """Return the web application of a run.

    Parameters
    ----------
    run : Path
    host : str
        Address and port that it is served at, such as "127.0.0.1:8000".
    token : str
        Token that the first address must have.
    folder : Path, optional
        Folder of the images, where the run's own paths no longer hold.
    codes : sequence of str
        Codes of the coding form, in addition to `equipoise.review.coding.CODES`.
    report : callable, optional
        See `Guard`.

    Raises
    ------
    RunError
        If it is no run, or has no images.
    ConfigError
        If a code repeats, or reads like several codes.
    MissingExtraError
        If Starlette is not installed.
    """
    try:
        from starlette.applications import Starlette
        from starlette.convertors import CONVERTOR_TYPES, IntegerConvertor
        from starlette.requests import ClientDisconnect
        from starlette.routing import Route
    except ImportError as error:
        raise MissingExtraError("starlette", "review") from error
    examples = Examples.of(run)
    page = ReviewPage(examples, Thumbnails(examples, folder))
    causes = CausesPages(examples, page.findings, check_codes(codes), page.render, _refuse)
    CONVERTOR_TYPES["place"] = type("Place", (IntegerConvertor,), {"regex": PLACE})()
    routes = [
        Route("/causes", causes.show_overview),
        Route("/causes/{place:place}", causes.show_subject),
        Route("/code/{place:place}", causes.show_form, methods=["GET"]),
        Route("/code/{place:place}", causes.save, methods=["POST"]),
        Route("/", page.index),
        Route("/finding/{place:place}", page.show_finding),
        Route("/finding/{place:place}/{image:place}", page.show_image),
        Route("/image/{size}/{place:place}", page.send_image),
        Route("/assets/{name}", _send_asset),
        Route("/{rest:path}", lambda _: _refuse()),
    ]
    handlers: Mapping[Any, Any] = {
        EquipoiseError: page.show_error, OSError: page.show_error,
        ClientDisconnect: _answer_disconnect,
    }  # fmt: skip
    return Guard(Starlette(routes=routes, exception_handlers=handlers), host, token, report)


def serve(
    run: Path,
    *,
    port: int = 0,
    folder: Path | None = None,
    codes: Sequence[str] = (),
    report: Report | None = None,
) -> Iterator[str]:
    """Yield the address, then serve a run on this machine alone until interrupted.

    Parameters
    ----------
    run : Path
    port : int
        0 for any free port.
    folder, codes, report
        See `application`.
    """
    try:
        import uvicorn
    except ImportError as error:
        raise MissingExtraError("uvicorn", "review") from error
    if folder is not None:
        find_pictures(run, folder)  # a wrong folder is refused now, not image by image
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError as error:
            raise ConfigError(
                f"--port {port}: {error.strerror}. To do: leave --port out, for any free port"
            ) from None
        host = f"127.0.0.1:{listener.getsockname()[1]}"
        token = secrets.token_urlsafe(24)
        app = application(run, host, token, folder, codes, report)
        tidy(run)
        yield f"http://{host}/?token={token}"
        config = uvicorn.Config(app, log_level="error", access_log=False, lifespan="off")
        uvicorn.Server(config).run(sockets=[listener])

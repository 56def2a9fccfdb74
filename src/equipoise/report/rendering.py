"""The page of a run as one HTML file that loads nothing."""

import base64
import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from equipoise.core import AuditResult
from equipoise.report import appendix
from equipoise.report.appendix import gallery
from equipoise.report.blocks import (
    Block,
    Card,
    Chart,
    Fold,
    Grid,
    Page,
    Rows,
    Section,
    Span,
    Summary,
)
from equipoise.report.by_group import (
    FILE,
    MOST_CELLS,
    as_csv,
    group_file,
    group_table,
)
from equipoise.report.deferred import block_to_json, deferred_blocks
from equipoise.report.next_steps import Place
from equipoise.report.overview import all_findings, cards, models
from equipoise.report.page_verdicts import with_page_verdicts
from equipoise.report.plots import CONFIG
from equipoise.report.result import first_screen, page_title, shared_page
from equipoise.report.text import interval, number, unbroken, visible
from equipoise.report.titles import plain_title

if TYPE_CHECKING:
    from jinja2 import Environment

DIGITS = 5
MOST_DOWNLOADED = 400_000
"""Characters of a table that a page offers as a file; larger ones lie beside it only."""


def render(result: AuditResult, page: Page | None = None, place: Place | None = None) -> str:
    """Return a result as one HTML document that loads nothing.

    Parameters
    ----------
    result : AuditResult
    page : Page, optional
        The page of the result's kind of audit; what all kinds share unless given.
    place : Place, optional
        Where the run lies, for the commands of its next steps.

    Returns
    -------
    str
        HTML with its style, scripts and data inside, under a content security policy that allows
        nothing else. Labels are escaped; invisible characters are spelled out.

    Examples
    --------
    >>> import equipoise, polars as pl
    >>> from equipoise import report
    >>> people = pl.DataFrame(
    ...     {
    ...         "gender": ["women", "men"] * 60,
    ...         "label": [1, 1, 0, 0] * 30,
    ...         "pred": [0, 1, 0, 0] * 30,
    ...     }
    ... )
    >>> result = equipoise.audit(people, target="label", pred="pred", groups="gender")
    >>> report.render(result)[:15]
    '<!doctype html>'
    """
    from markupsafe import Markup

    page = page or shared_page(result)
    summary = first_screen(result, page, place)
    title_spans = plain_title(summary)
    front, back = _sections(result, page, summary.chart)
    style = page_style("equipoise.report", "report.css")
    library = asset("equipoise.report", "vega-bundle.min.js")
    program = asset("equipoise.report", "report.js")
    charts = [*filter(None, [summary.chart])]
    for section in (*front, *back):
        charts += _charts(section.blocks)
    places = {id(chart): place for place, chart in enumerate(charts)}
    downloads = _downloads(result, page)
    deferred = deferred_blocks(front, back)
    deferred_places, deferred_texts = _distinct(map(block_to_json, deferred))
    place_of = dict(zip(map(id, deferred), deferred_places, strict=True))
    template = templates("equipoise.report", _shown).get_template("report.html.j2")
    return template.render(
        title=title_spans,
        sentence=_whole_sentence(summary, title_spans),
        run=page_title(result, page),
        dated=result.manifest.started[:10],
        trust=appendix.trust(result),
        summary=summary,
        reading=appendix.reading(summary),
        front=front,
        back=back,
        notice=result.manifest.versions.get("equipoise", ""),
        downloads=downloads,
        pictured=any(section.id == "gallery" for section in back),
        chart_id=lambda chart: places[id(chart)],
        deferred_id=lambda block: place_of.get(id(block), -1),
        # The package's own files and JSON with its markup escaped; no text of the user's is here.
        style=Markup(style),  # noqa: S704
        library=Markup(library),  # noqa: S704
        program=Markup(program),  # noqa: S704
        data=Markup(script_json(_page_data(charts, downloads, deferred_texts))),  # noqa: S704
        policy=content_policy(style, library, program),
    )


def _whole_sentence(summary: Summary, title_spans: Sequence[Span]) -> str:
    """Return the sentence of the first statement where the title has only a part of it."""
    sentence = summary.statements[0].text
    return "" if sentence == "".join(span.text for span in title_spans) else sentence


def _sections(
    result: AuditResult, page: Page, first_chart: Chart | None
) -> tuple[list[Section], list[Section]]:
    """Return the open sections and the folded sections."""
    judged = with_page_verdicts(result, page.leads)
    front = [
        group_table(judged, page.by_group, MOST_CELLS),
        *(make(judged) for make in page.front),
        cards(result, page.leads, first_chart, judged=page.judged),
    ]
    back = [
        *(make(judged) for make in page.sections),
        models(judged),
        gallery(result),
        all_findings(judged.findings) if page.judged else None,
        appendix.data(result, page.facts(result), page.subjects),
        appendix.limitations(result),
        appendix.failures(result),
        appendix.settings(result),
        appendix.provenance(result),
    ]
    return [*filter(None, front)], [*filter(None, back)]


def _charts(blocks: Iterable[Block]) -> Iterator[Chart]:
    for block in blocks:
        if isinstance(block, Chart):
            yield block
        elif isinstance(block, Card | Fold):
            if isinstance(block, Card) and block.chart:
                yield block.chart
            yield from _charts(block.blocks)
        elif isinstance(block, Grid):
            yield from block.charts


def _downloads(result: AuditResult, page: Page) -> dict[str, str]:
    """Return files that the page itself holds, by name, where they are small enough."""
    table = group_file(with_page_verdicts(result, page.leads), page.by_group)
    if table is None:
        return {}
    text = as_csv(table)
    return {f"{FILE}.csv": text} if len(text) <= MOST_DOWNLOADED else {}


def _distinct(values: Iterable[Any]) -> tuple[list[int], list[str]]:
    """Return JSON texts without repeats, and the place of each value among them."""
    texts: dict[str, int] = {}
    places = [texts.setdefault(_json(value), len(texts)) for value in values]
    return places, [*texts]


def _page_data(
    charts: Iterable[Chart], downloads: Mapping[str, str], deferred: Iterable[str]
) -> str:
    """Return charts and deferred tables as one JSON text, each distinct one once."""
    specs: dict[str, int] = {}
    data: dict[str, int] = {}
    places = []
    for chart in charts:
        spec = specs.setdefault(_json(chart.spec), len(specs))
        rows = data.setdefault(_json(_columns(chart.rows)), len(data))
        places.append({"spec": spec, "data": {"rows": rows}})
    return (
        f'{{"config":{_json(CONFIG)},"specs":[{",".join(specs)}],"data":[{",".join(data)}],'
        f'"charts":{_json(places)},"tables":[{",".join(deferred)}],"files":{json.dumps(dict(downloads))}}}'
    )


def _columns(rows: Rows) -> dict[str, Any]:
    if not rows:
        return {"fields": [], "rows": []}
    fields = [*rows[0]]
    return {"fields": fields, "rows": [[row[field] for field in fields] for row in rows]}


def _json(value: Any) -> str:
    return json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _plain(value: Any) -> Any:
    """Round numbers, turn non-finite ones to null, and spell out hidden characters."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [*map(_plain, value)]
    return value


def script_json(text: str) -> str:
    """Escape what could end the script element or start a comment in it."""
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def content_policy(style: str, *scripts: str) -> str:
    """Return a content security policy that allows a style, scripts and pictures as data alone."""
    allowed = " ".join(map(_hash, scripts))
    return (
        f"default-src 'none'; script-src {allowed}; style-src {_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


@cache
def asset(package: str, name: str) -> str:
    """Return the text of a file that pages of a package carry with them."""
    return files(package).joinpath("assets", name).read_text(encoding="utf-8").strip()


def page_style(package: str, name: str) -> str:
    """Return the style that all pages share, and a page's own."""
    return f"{asset('equipoise.report', 'family.css')}\n{asset(package, name)}"


@cache
def templates(package: str, display: Callable[[str], str]) -> "Environment":
    """Return the templates of a package and of reports, which escape and display all texts."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader

    def finalize(value: Any) -> Any:
        if not isinstance(value, str) or hasattr(value, "__html__"):
            return value
        return display(value)

    packages = dict.fromkeys((package, "equipoise.report"))
    loader = ChoiceLoader([PackageLoader(name, "assets") for name in packages])
    environment = Environment(
        loader=loader, autoescape=True, finalize=finalize, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals |= {"number": number, "interval": interval}
    return environment


def _shown(text: str) -> str:
    return unbroken(visible(text))

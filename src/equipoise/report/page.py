"""The page: sections gathered, escaped and put into one file that loads nothing."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from equipoise.core import AuditResult
from equipoise.report.asking import models_of
from equipoise.report.blocks import SYMBOLS, Badge, Block, Card, Chart, Fold, Grid, Rows, Section
from equipoise.report.comparison import compares
from equipoise.report.sections.tables import mitigates, rows
from equipoise.report.sections.verdicts import TITLE, told_by_model
from equipoise.report.text import listed, visible
from equipoise.report.voices import voices
from equipoise.report.voices.mitigation import told_first

DIGITS = 5


def render(result: AuditResult) -> str:
    """Return a result as one HTML document that loads nothing from anywhere.

    Parameters
    ----------
    result : AuditResult
        Sections whose tables it lacks are left out.

    Returns
    -------
    str
        HTML with its style, scripts and data inside, under a content security policy that
        allows nothing else. Labels are escaped; invisible characters are spelled out.
    """
    from jinja2 import Environment, PackageLoader
    from markupsafe import Markup

    def shown(value: Any) -> Any:
        return (
            visible(value) if isinstance(value, str) and not hasattr(value, "__html__") else value
        )

    environment = Environment(
        loader=PackageLoader("equipoise.report", "assets"),
        autoescape=True,
        finalize=shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    sections = _sections(result)
    style, library, program = (
        _asset(name) for name in ("report.css", "vega-bundle.min.js", "report.js")
    )
    data = PageData()
    data.gather([block for section in sections for block in section.blocks])
    return environment.get_template("report.html.j2").render(
        sections=sections,
        title=_title(result),
        tally=_tally(result),
        tallied="Recipes by conclusion" if mitigates(result) else TITLE,
        notice=result.manifest.versions.get("equipoise", ""),
        chart_id=data.chart_id,
        # The package's own files and JSON with its markup escaped; no text of the user's is here.
        style=Markup(style),  # noqa: S704
        library=Markup(library),  # noqa: S704
        program=Markup(program),  # noqa: S704
        data=Markup(_script_json(data.content())),  # noqa: S704
        policy=_policy(style, library, program),
    )


def _sections(result: AuditResult) -> list[Section]:
    found = (section(result) for section in section_functions())
    return [section for section in found if section is not None]


def section_functions() -> tuple[Callable[[AuditResult], Section | None], ...]:
    """Return the functions that make the sections, in the order of the page."""
    from equipoise.report.sections import (
        augmentation,
        classes,
        differences,
        failures,
        findings,
        gallery,
        hidden,
        models,
        overview,
        planted,
        planted_scenes,
        provenance,
        summary,
        verdicts,
    )

    return (
        verdicts.verdicts,
        planted.planted,
        planted_scenes.planted_scenes,
        summary.summary,
        augmentation.augmentation,
        overview.asked,
        findings.findings,
        *(section for spoken in voices() for section in spoken.sections()),
        findings.evidence,
        models.models,
        differences.differences,
        differences.changes,
        differences.ranking,
        differences.disagreements,
        classes.effect_sizes,
        classes.accuracy_and_effect,
        hidden.hidden,
        gallery.gallery,
        classes.sweep,
        overview.limits,
        failures.failures,
        provenance.choices,
        provenance.provenance,
        overview.reading,
    )


def _title(result: AuditResult) -> str:
    chosen = result.manifest.resolved.get("report")
    # A comparison keeps the configuration of an audit, whose title is not its own.
    if not compares(result) and isinstance(chosen, Mapping) and chosen.get("title"):
        return str(chosen["title"])
    if "augmentation" in result.tables:
        return "Training on changed faces"
    models = models_of(result)
    if not models:
        return "Audit"
    if mitigates(result):
        return f"Mitigation by {listed(models) if len(models) <= 3 else f'{len(models)} recipes'}"
    what = "Comparison" if compares(result) else "Audit"
    return f"{what} of {listed(models) if len(models) <= 3 else f'{len(models)} models'}"


def _tally(result: AuditResult) -> list[tuple[str, str, str, int]]:
    """Return the counts of the head; none where a section counts them model by model."""
    if told_by_model(result):
        return []
    if mitigates(result):
        told = told_first(rows(result, "mitigation_recipes"))
        said = Counter(row["conclusion"] for row in told)
        return [("", "no-verdict", f"recipe{'s'[: n > 1]}: {word}", n) for word, n in said.items()]
    verdicts = [finding.verdict for finding in result.findings]
    badges = [Badge(verdict, compares(result)) for verdict in SYMBOLS if verdict in verdicts]
    return [(one.symbol, one.slug, one.word, verdicts.count(one.verdict)) for one in badges]


class PageData:
    """The charts' data and specifications, each distinct one kept once."""

    def __init__(self) -> None:
        self._specs: dict[str, int] = {}
        self._data: dict[str, int] = {}
        self._charts: list[dict[str, Any]] = []
        self._ids: dict[int, int] = {}

    def gather(self, blocks: list[Block] | tuple[Block, ...]) -> None:
        """Take in every chart of the blocks."""
        for block in blocks:
            if isinstance(block, Chart):
                self._add(block)
            elif isinstance(block, Card | Fold):
                self.gather(block.blocks)
            elif isinstance(block, Grid):
                self.gather(block.charts)

    def _add(self, chart: Chart) -> None:
        spec = self._specs.setdefault(_json(chart.spec), len(self._specs))
        data = {
            name: self._data.setdefault(_json(_columns(rows)), len(self._data))
            for name, rows in chart.data.items()
        }
        self._ids[id(chart)] = len(self._charts)
        self._charts.append({"spec": spec, "data": data})

    def chart_id(self, chart: Chart) -> int:
        """Return the place of a chart on the page."""
        return self._ids[id(chart)]

    def content(self) -> str:
        """Return everything as one JSON text."""
        from equipoise.report.charts import CONFIG

        specs, data = (f"[{','.join(kept)}]" for kept in (self._specs, self._data))
        return (
            f'{{"config":{_json(CONFIG)},"specs":{specs},"data":{data},'
            f'"charts":{_json(self._charts)}}}'
        )


def _columns(rows: Rows) -> dict[str, Any]:
    fields = list(rows[0]) if rows else []
    return {"fields": fields, "rows": [[row[field] for field in fields] for row in rows]}


def _json(value: Any) -> str:
    return json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _plain(value: Any) -> Any:
    """Round numbers, make those that JSON lacks null, and spell out invisible characters."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _script_json(text: str) -> str:
    """Escape what could end the script element or start a comment in it."""
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _policy(style: str, *scripts: str) -> str:
    allowed = " ".join(_hash(script) for script in scripts)
    return (
        f"default-src 'none'; script-src {allowed}; style-src {_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


@cache
def _asset(name: str) -> str:
    return files("equipoise.report").joinpath("assets", name).read_text(encoding="utf-8").strip()

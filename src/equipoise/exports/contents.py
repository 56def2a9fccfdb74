"""What forms of export share: identifiers, numbers and sentences of a run."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import PurePath
from typing import Any
from urllib.parse import quote
from uuid import UUID

import pyarrow as pa

from equipoise import __version__
from equipoise.core import Facts, Fields, Finding, NullHypothesis
from equipoise.core.conclusion import Conclusion
from equipoise.core.files import decode_json
from equipoise.core.finding import SCHEMA, as_row, findings_from_table
from equipoise.core.plain_json import number_from_json, plain
from equipoise.exports import Run
from equipoise.metrics.spec import spec_of_finding
from equipoise.report.page_verdicts import with_page_verdicts
from equipoise.report.result import first_screen
from equipoise.report.words import models_of, unit_note

NO_COMPLIANCE = "These are measurements. They state no conformity with any law, standard or policy."
"""What each form says that could be taken for a certificate."""


def as_json(document: Facts) -> str:
    """Return a document as JSON, with a line at its end."""
    return json.dumps(plain(document), ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def identifier(run: Run, *names: str) -> str:
    """Return a UUID of something in a run: the same for the same run and names."""
    manifest = run.result.manifest
    digests = [str(facts.get("sha256", "")) for facts in manifest.inputs.values()]
    text = json.dumps([manifest.started, manifest.seed, digests, plain(manifest.config), *names])
    return str(UUID(bytes=sha256(text.encode()).digest()[:16], version=4))


def path_segment(name: str) -> str:
    """Return a name as one segment of a path, never `.`, `..` or empty.

    Examples
    --------
    >>> from equipoise.exports.contents import path_segment
    >>> path_segment("vit/b"), path_segment(".."), path_segment("")
    ('vit%2Fb', '%2E%2E', 'unknown')
    """
    segment = quote(name or "unknown", safe="")
    return segment if segment.strip(".") else segment.replace(".", "%2E")


def started(run: Run) -> datetime:
    """Return when the audit began, in UTC."""
    time = datetime.fromisoformat(run.result.manifest.started)
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


def timestamp(run: Run) -> str:
    """Return when the audit began, as RFC 3339 has it."""
    return started(run).replace(microsecond=0).isoformat()


def version(run: Run) -> str:
    """Return the version of equipoise that measured."""
    return run.result.manifest.versions.get("equipoise", __version__)


def models(run: Run) -> list[str]:
    """Return the models of a run, as its configuration names them; a data set has none."""
    named = run.result.manifest.resolved.get("models") or {}
    return [name for name in models_of(run.result) if name in named]


def findings_of(run: Run, model: str) -> Iterator[tuple[int, Finding]]:
    """Yield the findings of a model as measured, with their places in the run."""
    for place, finding in enumerate(run.result.findings):
        if finding.model == model:
            yield place, finding


def shown_findings(run: Run) -> tuple[Finding, ...]:
    """Return the findings of a run with the verdicts that the report shows."""
    return with_page_verdicts(run.result).findings


def stated(run: Run, conclusion: Conclusion) -> Finding:
    """Return the finding that states a conclusion, with the conclusion's own numbers.

    A conclusion at equal classes, or about several models, has others than its finding: then the
    finding's tests and ratio are left out.
    """
    finding = run.result.findings[conclusion.finding]
    if (conclusion.model, conclusion.size) == (finding.model, finding.value):
        return replace(finding, verdict=conclusion.verdict)
    return replace(
        finding, model=conclusion.model, value=conclusion.size, ci_low=conclusion.low,
        ci_high=conclusion.high, n=conclusion.n, verdict=conclusion.verdict, chance=math.nan,
        chance_low=math.nan, chance_high=math.nan, p_value=math.nan, q_value=math.nan, ratio=None,
        p_at_most=False, q_at_most=False,
    )  # fmt: skip


def title_of(conclusion: Conclusion, finding: Finding) -> str:
    """Return the title of a conclusion's number, with the models or the basis of it."""
    text = metric_title(finding)
    if conclusion.at_equal_mix is not None:
        return f"{text} at equal mix of classes"
    if conclusion.standings and not conclusion.model:
        models = ", ".join(standing.model for standing in conclusion.standings)
        return f"{text}, difference between models ({models})"
    return text


def metric_title(finding: Finding) -> str:
    """Return the title of a metric, with how groups compare in it."""
    return spec_of_finding(finding).label + unit_note(finding)


def about(finding: Finding) -> str:
    """Return the class or concept, groups and version of a finding."""
    parts = {
        "": finding.subject,
        "groups": finding.groups,
        "group": finding.group,
        "within": finding.within_value or finding.within,
        "tested within": "each class" if finding.null is NullHypothesis.WITHIN_CLASS else "",
        "version": "" if finding.version == "default" else finding.version,
    }
    return "; ".join(f"{name} {text}".strip() for name, text in parts.items() if text)


def sentences(run: Run) -> list[str]:
    """Return the first statements of the report, a sentence or two each."""
    summary = first_screen(run.result, run.result.shown_page)
    texts = (f"{row.text} {row.certainty}".strip() for row in summary.statements)
    words = (str(row.badge.word) if row.badge else "" for row in summary.statements)
    return [f"{word}: {text}" if word else text for word, text in zip(words, texts, strict=True)]


def limitations(run: Run) -> list[str]:
    """Return the warnings and notes of a run."""
    return [*dict.fromkeys((*run.result.manifest.warnings, *run.result.manifest.notes))]


def data_sets(run: Run) -> list[str]:
    """Return the files that the run read, by name without their folders."""
    return [PurePath(path).name for path in run.result.manifest.inputs]


def known(numbers: Mapping[str, float]) -> dict[str, float]:
    """Return the numbers that are finite."""
    return {name: value for name, value in numbers.items() if math.isfinite(value)}


def as_texts(finding: Finding) -> dict[str, str]:
    """Return the fields of a finding that differ from their defaults, as texts.

    A field that holds no text is JSON; see `finding_of_texts`.
    """
    row = as_row(finding)
    defaults = Finding.__dataclass_fields__
    return {
        name: value if isinstance(value, str) else json.dumps(plain(value), ensure_ascii=False)
        for name, value in row.items()
        if value is not None and not _is_default(value, defaults[name].default)
    }


def _is_default(value: object, default: object) -> bool:
    if isinstance(value, float) and math.isnan(value):
        return True
    return value == default or (value == [] and default == ())


def finding_of_texts(texts: Mapping[str, str]) -> Finding:
    """Return the finding whose fields `as_texts` wrote."""
    row = {field.name: _field(field, texts.get(field.name)) for field in SCHEMA}
    return findings_from_table(pa.Table.from_pylist([row], schema=SCHEMA))[0]


def _field(field: pa.Field, text: str | None) -> Any:
    """Return a field of a row of findings; its default where there is no text."""
    if text is None:
        default = Finding.__dataclass_fields__[field.name].default
        return math.nan if default is MISSING else default
    if pa.types.is_string(field.type):
        return text
    value = decode_json(text)
    if pa.types.is_floating(field.type):
        return number_from_json(value)
    if field.name == "by_group":
        return [*map(_with_numbers, value)]
    return value


def _with_numbers(group: Fields) -> Fields:
    numbers = {name: number_from_json(group[name]) for name in ("value", "low", "high")}
    return {**group, **numbers}

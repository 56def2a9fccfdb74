"""How the report speaks of audits of concepts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from equipoise.core import AuditResult
from equipoise.report.asking import doing, groups_of, models_of
from equipoise.report.blocks import Section
from equipoise.report.names import title
from equipoise.report.text import count, listed, plural, source
from equipoise.report.voices import Voice


def _question(result: AuditResult) -> str:
    asked = (
        f"{doing('Do', models_of(result))} recognise {plural(len(_concepts(result)), 'concept')} "
        f"equally well in images of different {listed(groups_of(result))}"
    )
    versions = len(_rows(result, "versions")) - 1
    return (
        f"{asked}, and would {plural(versions, 'other choice')} say the same?"
        if (versions > 0)
        else f"{asked}?"
    )


def _concepts(result: AuditResult) -> list[str]:
    return list(
        dict.fromkeys(row["concept"] for row in _rows(result, "concepts") if row["concept"])
    )


def _rows(result: AuditResult, name: str) -> list[dict[str, Any]]:
    table = result.tables.get(name)
    if table is None:
        return []
    wanted = [one for one in ("concept", "version", "metric") if one in table.column_names]
    found: list[dict[str, Any]] = table.select(wanted).to_pylist()
    return found


def _facts(result: AuditResult) -> tuple[tuple[str, str], ...]:
    config = result.manifest.resolved
    images = result.manifest.counts.get("images", {})
    choices = config.get("choices", {})
    n = images.get("images", 0) if isinstance(images, Mapping) else 0
    metrics = list(dict.fromkeys(row["metric"] for row in _rows(result, "concepts")))
    versions = [row["version"] for row in _rows(result, "versions")]
    return (
        ("Images", f"{count(n)}, from {_table(config)}"),
        ("Concepts", listed(_concepts(result), 12)),
        ("Metrics", listed([title(one) for one in metrics])),
        ("Prevalence", _PREVALENCE.get(choices.get("prevalence", ""), "")),
        ("Versions", listed(versions, 12) if len(versions) > 1 else ""),
    )


def _table(config: Mapping[str, Any]) -> str:
    data = config.get("data", {})
    return source(data if isinstance(data, Mapping) else {})


_PREVALENCE = {
    "weighted": "held fixed by weights in the baseline, so that a difference is not one of "
    "how many images of a group show a concept",
    "hall": "held fixed by samples in the baseline",
    "observed": "as the data have it in the baseline: a difference may be one of how many images "
    "of a group show a concept",
}


def _sections() -> tuple[Callable[[AuditResult], Section | None], ...]:
    from equipoise.report.sections import concepts, concepts_plots

    return (
        concepts.versions,
        concepts.robust,
        concepts_plots.side_by_side,
        concepts_plots.prevalence,
        concepts_plots.order,
    )


VOICE = Voice(
    question=_question,
    parts="concepts",
    facts=_facts,
    sections=_sections,
)

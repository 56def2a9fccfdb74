"""How the report speaks of audits of associations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from equipoise.core import AuditResult
from equipoise.report.asking import doing, groups_of, models_of
from equipoise.report.blocks import Section
from equipoise.report.text import count, listed
from equipoise.report.voices import Voice

_OF_IMAGES = ("predicted_label_weat", "label_concentration", "trend", "gender_difference")
_MODALITIES = (
    "II: images with images; ITP: texts of the target with images of the groups; ITA: images of "
    "the target with texts of the groups; TT: texts with texts"
)


def _question(result: AuditResult) -> str:
    asking = doing("Do", models_of(result))
    asked = _measures(result)
    pairs = {tuple(one["attributes"]) for one in asked if one["metric"] not in _OF_IMAGES}
    if pairs:
        sides = " or of ".join(f"{first} and {second}" for first, second in sorted(pairs))
        return (
            f"{asking} place what people do and words for it closer to one of {sides} than to the "
            "other?"
        )
    return f"{asking} place images of different {listed(groups_of(result))} alike to words?"


def _measures(result: AuditResult) -> list[Mapping[str, Any]]:
    found = result.manifest.resolved.get("measure", ())
    return [one for one in found if isinstance(one, Mapping)]


def _facts(result: AuditResult) -> tuple[tuple[str, str], ...]:
    data = result.manifest.resolved.get("data", {})
    tables = [
        f"{name}: {count(result.manifest.counts.get(name, {}).get('rows', 0))} {one['kind']}s"
        for name, one in (data.items() if isinstance(data, Mapping) else ())
    ]
    targets = [name for one in _measures(result) for part in _targets(one) for name in part]
    versions = {part for finding in result.findings for part in finding.version.split(", ")}
    shown = bool(versions & {"II", "ITP", "ITA", "TT"})
    return (
        ("Items", "; ".join(tables)),
        ("Targets", listed(list(dict.fromkeys(targets)), 12)),
        ("In brackets", _MODALITIES if shown else ""),
    )


def _targets(asked: Mapping[str, Any]) -> list[list[str]]:
    given = asked.get("targets")
    return [*given.values()] if isinstance(given, Mapping) else []


def _sections() -> tuple[Callable[[AuditResult], Section | None], ...]:
    from equipoise.report.sections import associations, associations_outside, associations_parts

    return (
        associations.leaning,
        associations_parts.parts,
        associations_parts.amplification,
        associations_parts.further,
        associations_parts.totals,
        associations_outside.regions,
        associations_outside.figures,
        associations_outside.labels,
        associations.sets,
    )


VOICE = Voice(
    question=_question,
    parts="targets or regions",
    facts=_facts,
    sections=_sections,
)

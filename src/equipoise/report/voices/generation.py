"""How the report speaks of audits of generation."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from equipoise.core import AuditResult
from equipoise.report.blocks import Section
from equipoise.report.text import count, listed
from equipoise.report.voices import Voice

_FILTERS = ("similarity", "content", "attributes")


def _question(result: AuditResult) -> str:
    groups = dict.fromkeys(
        finding.groups for finding in result.findings if finding.metric == "rejection_gap"
    )
    if not groups:
        return "How many of the generated sets are kept?"
    return (
        f"Do filters of generated sets reject images of groups of {listed([*groups])} equally "
        "often?"
    )


def _facts(result: AuditResult) -> tuple[tuple[str, str], ...]:
    resolved = result.manifest.resolved
    filters = resolved.get("filters", {})
    filters = filters if isinstance(filters, Mapping) else {}
    on = [name for name in _FILTERS if filters.get(name)]
    off = [name for name in _FILTERS if not filters.get(name)]
    return (
        ("Images", _images(result)),
        ("Made by", _maker(resolved.get("generator"))),
        ("Filters", listed(on) if on else "none"),
        ("Off", listed(off)),
        ("Compared", "images of one set with each other: all else of them is alike"),
        ("Chance", "the images of a set exchange their groups"),
    )


def _images(result: AuditResult) -> str:
    table = result.tables.get("stages")
    if table is None:
        return ""
    rows = table.to_pylist()
    last = [row for row in rows if row["attributes"] == rows[-1]["attributes"]]
    asked, kept = last[0], last[-1]
    return (
        f"{count(asked['images_before'])} in {count(asked['sets_before'])} sets asked for, "
        f"{count(kept['images_after'])} in {count(kept['sets_after'])} sets kept"
    )


def _maker(generator: object) -> str:
    return str(generator.get("model", "")) if isinstance(generator, Mapping) else ""


def _sections() -> tuple[Callable[[AuditResult], Section | None], ...]:
    from equipoise.report.sections import generation

    return (generation.stages, generation.rejections, generation.thresholds, generation.subjects)


VOICE = Voice(
    question=_question,
    parts="checks",
    facts=_facts,
    sections=_sections,
)

"""How the report speaks of audits of diversity."""

from __future__ import annotations

from collections.abc import Callable

from equipoise.core import AuditResult
from equipoise.report.asking import groups_of
from equipoise.report.blocks import Section
from equipoise.report.text import count, listed, source
from equipoise.report.voices import Voice


def _question(result: AuditResult) -> str:
    groups = listed(groups_of(result))
    return f"Are image sets that differ in {groups} equally diverse, and do they lie apart?"


def _facts(result: AuditResult) -> tuple[tuple[str, str], ...]:
    sizes = result.tables.get("group_sizes")
    sets = 0 if sizes is None else len(sizes)
    data = result.manifest.resolved.get("data", {})
    table = source(data if isinstance(data, dict) else {})
    images = sum(sizes.column("n").to_pylist()) if sizes is not None else 0
    return (
        ("Images", f"{count(images)} in {count(sets)} sets, from {table}"),
        ("Distance", "1 − cosine of the embeddings"),
    )


def _sections() -> tuple[Callable[[AuditResult], Section | None], ...]:
    from equipoise.report.sections import diversity

    return (diversity.diversity,)


VOICE = Voice(
    question=_question,
    parts="pairs of sets",
    facts=_facts,
    sections=_sections,
)

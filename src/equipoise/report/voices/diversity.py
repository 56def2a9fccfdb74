"""How the report speaks of audits of diversity."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

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
    titles=MappingProxyType(
        {
            "iss_intra": "Diversity within a set (ISS intra)",
            "iss_cross": "Distance between sets (ISS cross)",
            "iss_difference": "Difference in diversity",
            "mean_distance": "Mean distance",
        }
    ),
    frames=MappingProxyType(
        {
            ("iss_intra", True): (
                "Two images of {subject} lie at a mean distance of {value} in {model} (ISS intra)."
            ),
            ("iss_cross", False): (
                "In {model}, images of different sets by {groups} lie at a mean distance of "
                "{value} (ISS cross)."
            ),
            ("iss_cross", True): (
                "In {model}, {subject}: images of different sets by {groups} lie at a mean "
                "distance of {value} (ISS cross)."
            ),
            ("iss_difference", False): (
                "In {model}, the diversity of sets by {groups} differs by {value}."
            ),
            ("iss_difference", True): "In {model}, {subject}: diversity differs by {value}.",
            ("mean_distance", True): (
                "In {model}, {subject}: images of the one lie at a mean distance of {value} from "
                "those of the other."
            ),
        }
    ),
    harm=MappingProxyType({"iss_difference": "either", "iss_intra": "lower"}),
    facts=_facts,
    sections=_sections,
)

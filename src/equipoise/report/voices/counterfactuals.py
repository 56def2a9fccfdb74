"""How the report speaks of audits of counterfactual sets: as of retrieval, by subject."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from equipoise.core import AuditResult
from equipoise.report.asking import doing, models_of
from equipoise.report.blocks import Section
from equipoise.report.text import count, listed, source
from equipoise.report.voices import Voice, retrieval


def _question(result: AuditResult) -> str:
    crossed = sorted({f.groups for f in result.findings}, key=lambda one: -one.count(" × "))
    return (
        f"Among images that differ in {crossed[0]} alone, whom {doing('do', models_of(result))} "
        "show first for a prompt that names no attribute?"
    )


def _facts(result: AuditResult) -> tuple[tuple[str, str], ...]:
    data = result.manifest.resolved.get("data", {})
    data = data if isinstance(data, dict) else {}
    n = max((one.n for one in result.findings if one.model and one.groups), default=0)
    sets, subject = data.get("sets", "set"), data.get("subject", "subject")
    return (
        ("Images", f"{count(n)}, from {source(data)}"),
        ("Each prompt ranks", f"the images of its own {subject}"),
        ("Chance", f"the members of a {sets} exchange their groups; beside it, a random order"),
        ("Prompts", _prompts(result)),
    )


def _prompts(result: AuditResult) -> str:
    """Say what neutral prompts are: a table, or prefixes with each subject."""
    queries = result.manifest.resolved.get("queries")
    if isinstance(queries, dict):
        return f"of {queries.get('table')}; those of one subject are averaged"
    prefixes = result.manifest.resolved.get("prefixes")
    if isinstance(prefixes, list):
        return f"each subject after {listed([f'“{one}”' for one in prefixes])}, averaged"
    return f"each subject after the prefixes of {prefixes}, averaged"


def _sections() -> tuple[Callable[[AuditResult], Section | None], ...]:
    from equipoise.report.sections import counterfactuals, counterfactuals_quality

    return (
        counterfactuals.subjects,
        counterfactuals.marginals,
        counterfactuals.proportions,
        counterfactuals_quality.quality,
        counterfactuals_quality.people,
    )


VOICE: Voice = replace(
    retrieval.VOICE,
    question=_question,
    parts="subjects",
    foremost=("max_skew", "ndkl", "retrieval_mad"),
    facts=_facts,
    sections=_sections,
)

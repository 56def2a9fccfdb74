"""How the report speaks of audits of retrieval."""

from __future__ import annotations

from collections.abc import Callable

from equipoise.core import AuditResult
from equipoise.report.asking import doing, groups_of, models_of
from equipoise.report.blocks import Section
from equipoise.report.text import count, listed, source
from equipoise.report.voices import OWN_PREFERENCES, Voice


def _question(result: AuditResult) -> str:
    groups, asking = listed(groups_of(result)), doing("do", models_of(result))
    return f"Of images that differ in {groups}, whom {asking} show first?"


def _facts(result: AuditResult) -> tuple[tuple[str, str], ...]:
    data = result.manifest.resolved.get("data", {})
    data = data if isinstance(data, dict) else {}
    n = max((finding.n for finding in result.findings), default=0)
    subject, sets = data.get("subject"), data.get("sets")
    ranked = f"the images of its own {subject}" if subject else "all images"
    chance = (
        f"the members of a {sets} exchange their groups" if sets else "a random order of the pool"
    )
    return (
        ("Images", f"{count(n)}, from {source(data)}"),
        ("Each query ranks", ranked),
        ("Chance", chance),
    )


def _sections() -> tuple[Callable[[AuditResult], Section | None], ...]:
    from equipoise.report.sections import retrieval

    return (retrieval.curves, retrieval.queries)


VOICE = Voice(
    question=_question,
    parts="queries",
    foremost=("max_skew", "ndkl", "retrieval_mad"),
    caveat=(
        f"{OWN_PREFERENCES}A ranking shows a preference whatever its size, so the number of "
        "disparities does not tell strong ones from weak ones. Read the excess over chance, and "
        "how far apart the similarities themselves are."
    ),
    facts=_facts,
    sections=_sections,
)

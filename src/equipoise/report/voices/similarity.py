"""How the report speaks of audits of similarity."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from equipoise.core import AuditResult
from equipoise.report.asking import doing, groups_of, models_of
from equipoise.report.blocks import Section
from equipoise.report.text import count, listed, number, source
from equipoise.report.voices import OWN_PREFERENCES, Voice


def _question(result: AuditResult) -> str:
    return (
        f"{doing('Do', models_of(result))} find images that differ in {listed(groups_of(result))} "
        "equally similar to a concept?"
    )


def _facts(result: AuditResult) -> tuple[tuple[str, str], ...]:
    data = result.manifest.resolved.get("data", {})
    data = data if isinstance(data, Mapping) else {}
    n = max((finding.n for finding in result.findings), default=0)
    subject, sets, unit = (data.get(name) for name in ("subject", "sets", "unit"))
    over = f"the images of its own {subject}" if subject else "all images"
    held = f"images of one {sets} with each other" if sets else "images of groups as they are"
    chance = (
        f"the members of a {sets} exchange their groups" if sets else "images exchange their groups"
    )
    return (
        ("Images", f"{count(n)}, from {source(data)}"),
        ("Each concept is held against", over),
        ("Compared", held),
        ("Resampled together", f"images of one {unit}" if unit else ""),
        ("Chance", chance),
        ("Logits", _scales(result)),
    )


def _scales(result: AuditResult) -> str:
    """Say what makes a logit of a similarity in each model, as far as it is known."""
    models = result.manifest.resolved.get("models", {})
    said = result.manifest.models
    scales = {
        name: one.get("scale") or said.get(name, {}).get("scale")
        for name, one in (models.items() if isinstance(models, Mapping) else ())
        if isinstance(one, Mapping)
    }
    known = [f"{name}: similarity times {number(one)}" for name, one in scales.items() if one]
    return "; ".join(known)


def _sections() -> tuple[Callable[[AuditResult], Section | None], ...]:
    from equipoise.report.sections import similarity

    return (similarity.effects, similarity.hypotheses)


VOICE = Voice(
    question=_question,
    parts="concepts",
    foremost=("favourite_gap", "logit_gap", "similarity_gap"),
    caveat=(
        f"{OWN_PREFERENCES}Read the size of a gap, and whether gaps follow what was declared "
        "before."
    ),
    facts=_facts,
    sections=_sections,
)

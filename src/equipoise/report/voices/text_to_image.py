"""How the report speaks of audits of text-to-image models."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from equipoise.core import AuditResult
from equipoise.report.asking import groups_of, models_of
from equipoise.report.blocks import Section
from equipoise.report.text import count, listed
from equipoise.report.voices import Voice

_AGAINST = " against "
_STATES = {"image": "made"}


def _question(result: AuditResult) -> str:
    painters = listed(models_of(result))
    pairs = [one for one in groups_of(result) if _AGAINST in one]
    shown = [one for one in groups_of(result) if _AGAINST not in one]
    asked = [f"show groups of {listed(shown)} equally often"] if shown else []
    if pairs:
        sides = [f"to {one.replace(_AGAINST, ' as to ')}" for one in pairs]
        asked.append(f"lean as much {listed(sides)}")
    return f"Do images that {painters} made of neutral prompts {', and '.join(asked)}?"


def _facts(result: AuditResult) -> tuple[tuple[str, str], ...]:
    resolved, counts = result.manifest.resolved, result.manifest.counts
    made = resolved.get("generators", {})
    states = {name: counts.get(name, {}) for name in (made if isinstance(made, Mapping) else ())}
    images = "; ".join(f"{name}: {_became(one)}" for name, one in states.items() if one)
    models = resolved.get("models", {})
    looked = listed([*models]) if isinstance(models, Mapping) else ""
    labelled = [
        one["of"]
        for one in resolved.get("shares", ())
        if isinstance(one, Mapping) and one.get("labelled")
    ]
    return (
        ("Images asked for, by what became of them", images),
        ("Looked at by", looked),
        ("Corrected by labelled images", listed(labelled)),
    )


def _became(states: Mapping[str, int]) -> str:
    return ", ".join(f"{count(n)} {_STATES.get(one, one)}" for one, n in sorted(states.items()))


def _sections() -> tuple[Callable[[AuditResult], Section | None], ...]:
    from equipoise.report.sections import text_to_image, text_to_image_shares

    return (
        text_to_image_shares.shares,
        text_to_image.leaning,
        text_to_image.plane,
        text_to_image.components,
        text_to_image_shares.guidance,
        text_to_image.encoders,
    )


VOICE = Voice(
    question=_question,
    parts="targets",
    foremost=("share_mad", "share_gap", "mcas", "xmcas"),
    facts=_facts,
    sections=_sections,
)

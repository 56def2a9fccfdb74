"""How the report speaks of audits of text-to-image models."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from equipoise.core import AuditResult
from equipoise.report.asking import groups_of, models_of
from equipoise.report.blocks import Section
from equipoise.report.text import count, listed
from equipoise.report.voices import Voice
from equipoise.report.voices import associations as beside

_TITLES = {
    "share_mad": "Inequality of shares",
    "share_gap": "Difference from outside shares",
    "corrected_share": "Corrected share",
    "raw_share": "Share as said",
    "share_difference": "Difference of one share",
}
_FRAMES = {
    ("share_mad", True): (
        "In images of “{subject}” by {model}{version}, differences of the shares of {groups} from "
        "equal ones sum to {points}."
    ),
    ("share_mad", False): (
        "In images of neutral prompts by {model}{version}, differences of the shares of {groups} "
        "from equal ones sum to {points}, on average over prompts."
    ),
    ("share_gap", True): (
        "Among images of “{subject}” by {model}{version}, a share of {groups} is up to {points} "
        "from what it is outside."
    ),
    ("mcas", True): (
        "Images and prompt of “{subject}” by {model}{version} have an MCAS of {value} ({groups})."
    ),
}
_TAKEN = ("diffusion_bias", "bias_amplification", "xmcas", "association_score", "score_summary")
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
    titles=_TITLES,
    frames={
        key: text.replace("{model}", "{model}{version}")
        for key, text in beside.VOICE.frames.items()
        if key[0] in _TAKEN
    }
    | _FRAMES,
    harm=dict.fromkeys(("mcas", "xmcas", "association_score", "score_summary"), "either"),
    facts=_facts,
    sections=_sections,
)

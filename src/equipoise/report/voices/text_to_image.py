"""How the report speaks of audits of text-to-image models."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from equipoise.core import AuditResult
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
        "Among images of “{subject}” by {model}{version}, shares of {groups} lie {points} from "
        "equal, summed over classes."
    ),
    ("share_mad", False): (
        "Over all neutral prompts of {model}{version}, shares of {groups} lie {points} from equal "
        "on average, summed over classes."
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


def _question(result: AuditResult) -> str:
    models = list(dict.fromkeys(finding.model for finding in result.findings))
    verb = "Does" if len(models) == 1 else "Do"
    pairs = [one for one in _groups(result) if " against " in one]
    asked = [one for one in _groups(result) if " against " not in one]
    if asked:
        lean = f", and lean to none of {listed(pairs)}" if pairs else ""
        return (
            f"{verb} images that {listed(models)} made of neutral prompts show all alike in "
            f"{listed(asked)}{lean}?"
        )
    return f"{verb} images that {listed(models)} made of neutral prompts lean to {listed(pairs)}?"


def _groups(result: AuditResult) -> list[str]:
    return list(dict.fromkeys(finding.groups for finding in result.findings))


def _facts(result: AuditResult) -> tuple[tuple[str, str], ...]:
    resolved, counts = result.manifest.resolved, result.manifest.counts
    made = resolved.get("generators", {})
    states = {name: counts.get(name, {}) for name in (made if isinstance(made, Mapping) else ())}
    images = "; ".join(
        f"{name}: {', '.join(f'{count(n)} {state}' for state, n in sorted(one.items()))}"
        for name, one in states.items()
        if one
    )
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

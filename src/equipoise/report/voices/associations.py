"""How the report speaks of audits of associations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from equipoise.core import AuditResult
from equipoise.report.asking import doing, groups_of, models_of
from equipoise.report.blocks import Section
from equipoise.report.text import count, listed
from equipoise.report.voices import Voice

_TITLES = {
    "association_score": "Association score",
    "weat": "WEAT effect size",
    "sc_weat": "SC-WEAT effect size",
    "differential_association": "Differential association",
    "mcas": "MCAS",
    "xmcas": "xMCAS",
    "diffusion_bias": "Diffusion bias",
    "bias_amplification": "Bias amplification",
    "offset": "Offset of xMCAS",
    "score_summary": "Mean score",
    "total_absolute_association": "Total absolute association",
    "encoder_difference": "Difference of encoders",
    "predicted_label_weat": "WEAT of predicted labels",
    "label_concentration": "Label concentration",
    "label_skewness": "Skewness of label counts",
    "label_kurtosis": "Kurtosis of label counts",
    "trend": "Trend",
    "gender_difference": "Gender difference",
    "alignment": "Alignment with the hypothesis",
    "correlation": "Correlation",
}
_FRAMES = {
    ("association_score", True): (
        "For {model}, “{subject}” has an association score of {value} ({groups})."
    ),
    ("mcas", True): "For {model}, “{subject}” has an MCAS of {value} ({groups}).",
    ("sc_weat", True): "For {model}, “{subject}” has an effect size of {value} ({groups}).",
    ("weat", True): "For {model}, {subject} has an effect size of {value} ({groups}).",
    ("differential_association", True): (
        "For {model}, {subject} differ in association by {value} ({groups})."
    ),
    ("diffusion_bias", True): (
        "For {model}, the association of “{subject}” differs by {value} in size between images "
        "and texts ({groups})."
    ),
    ("bias_amplification", True): (
        "For {model}, the association of “{subject}” between images and texts is {value} times "
        "that of its texts ({groups})."
    ),
    ("xmcas", True): (
        "For {model}, “{subject}” has an angle of {value}\u00a0rad, {degrees} ({groups})."
    ),
    ("total_absolute_association", False): (
        "For {model}, the sizes of all targets' associations add up to {value} ({groups})."
    ),
    ("encoder_difference", True): (
        "The targets' associations add up to {value} more with {model} ({groups}; {subject})."
    ),
    ("predicted_label_weat", True): (
        "For {model}, the labels of both groups of {groups} have an effect size of {value} "
        "({subject})."
    ),
    ("label_concentration", False): (
        "How far labels pile up on a few differs by {points} between groups of {groups} with "
        "{model}."
    ),
    ("trend", False): (
        "For {model}, images lie {value} closer to positive than to negative words, over all "
        "regions and groups of {groups}."
    ),
    ("trend", True): (
        "For {model}, images of {subject} lie {value} closer to positive than to negative words."
    ),
    ("gender_difference", False): (
        "For {model}, groups of {groups} differ by {value} in similarity to all words together."
    ),
    ("gender_difference", True): (
        "For {model}, groups of {groups} in {subject} differ by {value} in similarity to all words "
        "together."
    ),
    ("correlation", True): "For {model}, {subject} correlate with r = {value} ({groups}).",
    ("alignment", True): (
        "For {model}, {subject} agree by {value} in the direction that was declared ({groups})."
    ),
    ("score_summary", True): "For {model}, the mean of {subject}, is {value} ({groups}).",
}
_EITHER = (
    "association_score",
    "sc_weat",
    "differential_association",
    "mcas",
    "xmcas",
    "offset",
    "score_summary",
    "predicted_label_weat",
    "correlation",
)
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
    titles=_TITLES,
    frames=_FRAMES,
    harm={**dict.fromkeys(_EITHER, "either"), "trend": "lower"},
    facts=_facts,
    sections=_sections,
)

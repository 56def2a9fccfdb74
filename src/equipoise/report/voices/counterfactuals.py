"""How the report speaks of audits of counterfactual sets: as of retrieval, by subject."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType

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


_QUALITY = {
    ("frechet_distance", False): (
        "In the features of {model}, the images lie at a Fréchet distance of {value} from the "
        "reference images."
    ),
    ("frechet_distance_extrapolated", False): (
        "In the features of {model}, the Fréchet distance from the reference images tends to "
        "{value} as both sets grow."
    ),
    ("image_similarity", False): (
        "In the features of {model}, images of a set have a mean cosine of {value}."
    ),
    ("pose_similarity", False): "Poses of the images of a set have a mean cosine of {value}.",
    ("background_similarity", False): (
        "Backgrounds of the images of a set have a mean cosine of {value}."
    ),
    ("inception_score", False): "By the classifier's probabilities the Inception score is {value}.",
    ("label_error_gap", False): (
        "How often people find an error in an image differs by up to {points} between groups of "
        "{groups}."
    ),
    ("label_error_gap", True): (
        "How often people say “{subject}” of an image differs by up to {points} between groups of "
        "{groups}."
    ),
    ("detector_precision", False): (
        "Of the images in which the attribute was detected, {share} show it to people."
    ),
    ("detector_recall", False): (
        "Of the images that show their attribute to people, it was detected in {share}."
    ),
    ("confusable_subjects", False): (
        "{share} of the subjects have a prompt that {model} cannot tell from another subject's."
    ),
    ("subject_accuracy", False): (
        "{model} finds the own subject's prompt closest for {share} of the images."
    ),
}

VOICE: Voice = replace(
    retrieval.VOICE,
    question=_question,
    parts="subjects",
    foremost=("max_skew", "ndkl", "retrieval_mad"),
    titles=MappingProxyType(
        {
            **retrieval.VOICE.titles,
            "frechet_distance": "Fréchet distance",
            "frechet_distance_extrapolated": "Fréchet distance, extrapolated",
            "inception_score": "Inception score",
            "image_similarity": "Similarity within sets",
            "pose_similarity": "Similarity of poses",
            "background_similarity": "Similarity of backgrounds",
            "label_error_gap": "Errors that people see",
            "label_error_rate": "Errors that people see",
            "detector_precision": "Precision of the detector",
            "detector_recall": "Recall of the detector",
            "confusable_subjects": "Subjects of one text",
            "subject_accuracy": "Accuracy of subjects",
        }
    ),
    frames=MappingProxyType(
        {
            **{
                (metric, one): text.replace("queries", "subjects")
                for (metric, one), text in retrieval.VOICE.frames.items()
            },
            **_QUALITY,
        }
    ),
    groups_worse=MappingProxyType({"label_error_gap": "higher"}),
    facts=_facts,
    sections=_sections,
)

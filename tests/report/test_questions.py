"""The question that each kind's report asks, of one model and of several: its verb agrees."""

from dataclasses import replace

import pytest

from equipoise.core import AuditResult
from equipoise.report.asking import doing, groups_of, models_of
from equipoise.report.voices import KINDS, voice
from report import synthetic

# Where a kind's findings are of something, or of some groups, that its question names.
ABOUT = {
    "activations": {"subject": "face"},
    "generation": {"metric": "rejection_gap"},
}
ASKED = {
    "counterfactuals": (
        "Among images that differ in gender alone, whom does a show first for a prompt that names "
        "no attribute?",
        "Among images that differ in gender alone, whom do a and b show first for a prompt that "
        "names no attribute?",
    ),
    "associations": (
        "Does a place images of different gender alike to words?",
        "Do a and b place images of different gender alike to words?",
    ),
    "retrieval": (
        "Of images that differ in gender, whom does a show first?",
        "Of images that differ in gender, whom do a and b show first?",
    ),
    "similarity": (
        "Does a find images that differ in gender equally similar to a concept?",
        "Do a and b find images that differ in gender equally similar to a concept?",
    ),
    "concepts": (
        "Does a recognise 0 concepts equally well in images of different gender?",
        "Do a and b recognise 0 concepts equally well in images of different gender?",
    ),
    "diversity": (
        "Are image sets that differ in gender equally diverse, and do they lie apart?",
        "Are image sets that differ in gender equally diverse, and do they lie apart?",
    ),
    "answers": (
        "Does a answer as often, and with the same words, whatever the gender?",
        "Do a and b answer as often, and with the same words, whatever the gender?",
    ),
    "text_to_image": (
        "Do images that a made of neutral prompts show groups of gender equally often?",
        "Do images that a and b made of neutral prompts show groups of gender equally often?",
    ),
    "generation": (
        "Do filters of generated sets reject images of groups of gender equally often?",
        "Do filters of generated sets reject images of groups of gender equally often?",
    ),
    "activations": (
        "Does a look as much at the face in images of every group of gender?",
        "Do a and b look as much at the face in images of every group of gender?",
    ),
    "mitigation": (
        "Does a lower the disparities of subjects not learned from, and at what price?",
        "Do a and b lower the disparities of subjects not learned from, and at what price?",
    ),
}


def result(kind: str, models: str, **about: str) -> AuditResult:
    given = {"audit": kind, "groups": "gender", **ABOUT.get(kind, {}), **about}
    found = tuple(synthetic.finding(model=model, **given) for model in models)
    return AuditResult(found, synthetic.manifest(), {})


@pytest.mark.parametrize("kind", KINDS)
def test_verbs_agree_with_one_model_and_with_two(kind: str) -> None:
    spoken = voice(kind)
    assert spoken is not None
    assert spoken.question(result(kind, "a")) == ASKED[kind][0]
    assert spoken.question(result(kind, "ab")) == ASKED[kind][1]


def test_images_of_prompts_lean_and_show() -> None:
    spoken = voice("text_to_image")
    assert spoken is not None
    leaning = result("text_to_image", "ab", groups="men against women")
    asked = "Do images that a and b made of neutral prompts"
    assert spoken.question(leaning) == f"{asked} lean as much to men as to women?"
    shown = result("text_to_image", "a", groups="gender")
    both = replace(leaning, findings=leaning.findings + shown.findings)
    assert spoken.question(both) == (
        f"{asked} show groups of gender equally often, and lean as much to men as to women?"
    )


def test_without_a_filter_no_groups_are_asked_for() -> None:
    spoken = voice("generation")
    assert spoken is not None
    kept = result("generation", "a", metric="kept_share", groups="")
    assert spoken.question(kept) == "How many of the generated sets are kept?"


def test_findings_of_no_model_and_of_no_groups_are_not_named() -> None:
    known = result("retrieval", "a")
    none = synthetic.finding(model="", groups="")
    mixed = replace(known, findings=(none, *known.findings, none))
    assert (models_of(mixed), groups_of(mixed)) == (["a"], ["gender"])
    assert doing("Do", models_of(mixed)) == "Does a"

"""Recipes on subjects that they have not seen, at a small size."""

import math

import numpy as np

from equipoise.cli.mitigation_world import CAPTION_TEMPLATES, retrieval_set, zero_shot_set
from equipoise.mitigate import MatchedPrompts, PromptEnsemble, cross_fit
from equipoise.mitigate.measuring import Test
from equipoise.planted.scenes.embed import load_clip
from equipoise.planted.scenes.sets import render_balanced
from mitigate.scenes import LEARNED, TEXTS, WITHHELD, sets, test_data

SUBJECTS = (*LEARNED, *WITHHELD)


def test_every_subject_is_withheld_once_and_every_recipe_told(clip):
    assessment = cross_fit(
        clip,
        (PromptEnsemble(), MatchedPrompts(said=CAPTION_TEMPLATES)),
        TEXTS,
        sets().of(SUBJECTS),
        test_data(),
        floor=load_clip("null"),
        count=2,
    )
    assert sorted(name for split in assessment.splits for name in split.withheld) == sorted(
        SUBJECTS
    )
    assert {outcome.recipe for outcome in assessment.outcomes} == {
        "prompt_ensemble",
        "matched_prompts",
    }
    for values in (
        *assessment.before.bias.values(),
        *assessment.after["matched_prompts"].bias.values(),
    ):
        assert values.keys() == {*SUBJECTS}
        assert not any(math.isnan(value) for value in values.values())
    matched = [
        row for row in assessment.rows if row.recipe == "matched_prompts" and row.role == "bias"
    ]
    assert len(matched) == 4
    gap = next(row for row in matched if (row.measure, row.about) == ("logit_gap", "frame"))
    assert gap.difference < 0
    assert gap.floor < gap.after


def test_accuracy_and_recall_are_asked_of_some_and_found_among_all(clip):
    scenes = render_balanced(1, seed=1)
    test = Test(test_data().images, TEXTS, (zero_shot_set(scenes),), (retrieval_set(scenes),))
    utility = test.measure(clip, only=WITHHELD[:1]).utility
    assert len(utility["accuracy", "scenes"]) == 12
    assert np.mean([*utility["accuracy", "scenes"].values()]) > 0.8
    for direction in ("text", "image"):
        recalls = [utility[f"{direction}_recall_at_{k}", "scenes"] for k in (1, 5, 10)]
        by_k = [np.mean([*values.values()]) for values in recalls]
        assert by_k == sorted(by_k)
        assert len(recalls[0]) == 12

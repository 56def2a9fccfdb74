"""The planted CLIP models over worlds of scenes: what leads, and preferences on the whole."""

import math
from dataclasses import asdict
from functools import cache

import numpy as np
import polars as pl
import pytest

from equipoise import audits
from equipoise.cli.runs import page_of
from equipoise.core import Verdict
from equipoise.metrics import systematic_preference
from equipoise.planted.scenes.embed import embed_images, load_clip, neutral_queries
from equipoise.planted.scenes.render import HUES, SUBJECTS
from equipoise.planted.scenes.sets import render_sets
from equipoise.planted.scenes.variants import BIASED
from equipoise.report.summary import summarize
from equipoise.stats import Permutation

WORLDS, SETS = 40, 6

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("preference worlds")]


def disparities(name, *, declared=False, relabelled=False):
    """Count worlds of resampled sets in which the report on a model starts with a disparity."""
    clip, scenes = load_clip(name), render_sets(SETS, seed=5)
    scores = embed_images(clip, scenes.images) @ neutral_queries(clip).T
    table = pl.DataFrame(scenes.table()).with_columns(pl.DataFrame(scores, schema=[*SUBJECTS]))
    sets, count = table.partition_by("set"), 0
    planted = pl.DataFrame([asdict(favourite) for favourite in BIASED.favourites])
    hypothesis = {"table": planted, "concept": "subject", "favours": "hue"}
    for world in range(WORLDS):
        rng = np.random.default_rng(world)
        resampled = []
        for start in range(0, len(sets), SETS):
            # Of one subject: its preferences stay, and the hue that it prefers is any.
            hues = dict(zip(HUES, rng.permutation(HUES).tolist(), strict=True))
            for place in rng.integers(start, start + SETS, SETS).tolist():
                scene_set = sets[place].with_columns(set=pl.lit(f"set {len(resampled)}"))
                resampled.append(
                    scene_set.with_columns(pl.col("hue").replace(hues)) if relabelled else scene_set
                )
        images = pl.concat(resampled).with_row_index("id")
        config = {
            "audit": "retrieval",
            "data": {
                "images": {"table": images.with_columns(pl.col("id").cast(str)), "id": "id"},
                "groups": ["hue"], "subject": "subject", "sets": "set",
            },
            "models": {"m": {"scores": {"file": images.select(*SUBJECTS)}}},
            "ranking": {"k": 12, "curves": False}, "metrics": ["max_skew"],
            "resampling": {"replicates": 100, "permutations": 200},
            "hypotheses": [hypothesis] if declared else [],
        }  # fmt: skip
        result = audits.run(audits.parse_config(config))
        page = page_of(result)
        (first,) = summarize(result, page.leads).statements
        count += first.finding.verdict == Verdict.DISPARITY
    return count


def test_a_model_without_bias_leads_with_a_disparity_by_chance_alone():
    assert disparities("null", relabelled=True) <= 5


def test_planted_favourites_that_are_declared_lead_and_others_do_not():
    assert disparities("biased", declared=True) >= 36
    assert disparities("null", declared=True) <= 5


@cache
def drawn(name, seed, sets=20):
    """The factors of fresh sets, and the logit of each image for the prompt of its subject."""
    clip, scenes = load_clip(name), render_sets(sets, seed=seed)
    logits = clip.info.scale * embed_images(clip, scenes.images) @ neutral_queries(clip).T
    return scenes.table(), logits[np.arange(len(scenes)), scenes.factors.subject]


def preferences(name, seed, attribute, k, resampling=None, groups=None):
    table, logits = drawn(name, seed)
    groups = table[attribute] if groups is None else groups
    columns = {"queries": table["subject"], "sets": table["set"]}
    return systematic_preference(logits, groups, k=k, resampling=resampling, rng=seed, **columns)


@pytest.mark.parametrize("k", [12, pytest.param(100, marks=pytest.mark.slow(whole=True))])
@pytest.mark.parametrize("attribute", ["hue", "frame"])
def test_a_favourite_of_each_subject_is_no_preference_on_the_whole(attribute, k):
    """Each subject keeps the null model's preference; the value that it prefers is any."""
    p, worlds = [], 150
    table, _ = drawn("null", 5)
    names, codes = np.unique(table[attribute], return_inverse=True)
    subject = np.unique(table["subject"], return_inverse=True)[1]
    for world in range(worlds):
        rng = np.random.default_rng(world)
        dealt = rng.permuted(np.tile(np.arange(len(names)), (len(SUBJECTS), 1)), axis=1)
        groups = names[dealt[subject, codes]]
        estimate = preferences("null", 5, attribute, k, Permutation(400, resolution=0.01), groups)
        p.append(estimate.p_value)
    assert np.mean(np.array(p) <= 0.05) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / worlds)


@pytest.mark.slow(whole=True)
def test_the_null_model_prefers_the_same_on_other_scenes_by_little():
    """On seeds that were not looked at before: its lists show a preference that is real."""
    shares, logits = [], []
    for seed in range(101, 107):
        for attribute in ("hue", "frame"):
            estimate = preferences("null", seed, attribute, 100)
            by_group = {
                part.subject: part.value for part in estimate.parts if part.subject not in SUBJECTS
            }
            shares += [
                (name, value) for name, value in by_group.items() if name in ("cyan", "level")
            ]
        table, scores = drawn("null", seed)
        logits += [scores[table["hue"] == "cyan"].mean() - scores.mean()]
        logits += [scores[table["frame"] == "level"].mean() - scores.mean()]
        biased = preferences("biased", seed, "frame", 100)
        # Favourites of its subjects cancel.
        assert biased.value < 0.035
    assert all(-0.07 < value < -0.02 for _, value in shares)
    assert len(shares) == 12
    assert np.abs(logits).max() < 0.04

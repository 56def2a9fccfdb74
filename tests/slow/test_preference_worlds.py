"""Reports on the planted CLIP models: what leads over 40 worlds of resampled scenes."""

from dataclasses import asdict

import numpy as np
import polars as pl
import pytest

from equipoise import audits
from equipoise.cli.runs import page_of
from equipoise.core import Verdict
from equipoise.planted.scenes.embed import embed_images, load_clip, neutral_queries
from equipoise.planted.scenes.render import HUES, SUBJECTS
from equipoise.planted.scenes.sets import render_sets
from equipoise.planted.scenes.variants import BIASED
from equipoise.report.summary import summarize

WORLDS, SETS = 40, 6

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("preference worlds")]


def disparities(name, *, declared=False, relabelled=False):
    """Count worlds of resampled sets in which the report on a model starts with a disparity."""
    clip, scenes = load_clip(name), render_sets(SETS, seed=5)
    scores = embed_images(clip, scenes.images) @ neutral_queries(clip).T
    table = pl.DataFrame(scenes.table()).with_columns(pl.DataFrame(scores, schema=[*SUBJECTS]))
    sets, found = table.partition_by("set"), 0
    planted = pl.DataFrame([asdict(one) for one in BIASED.favourites])
    hypothesis = {"table": planted, "concept": "subject", "favours": "hue"}
    for world in range(WORLDS):
        rng = np.random.default_rng(world)
        drawn = []
        for start in range(0, len(sets), SETS):
            # Of one subject: its preferences stay, and the hue that it prefers is any.
            hues = dict(zip(HUES, rng.permutation(HUES).tolist(), strict=True))
            for place in rng.integers(start, start + SETS, SETS).tolist():
                one = sets[place].with_columns(set=pl.lit(f"set {len(drawn)}"))
                drawn.append(one.with_columns(pl.col("hue").replace(hues)) if relabelled else one)
        images = pl.concat(drawn).with_row_index("id")
        config = {
            "audit": "retrieval",
            "data": {
                "images": {"table": images.with_columns(pl.col("id").cast(str)), "id": "id"},
                "groups": ["hue"], "subject": "subject", "sets": "set",
            },
            "models": {"m": {"scores": {"file": images.select(*SUBJECTS)}}},
            "ranking": {"k": 12, "curves": False, "similarity": False, "measures": ["max_skew"]},
            "resampling": {"replicates": 100, "permutations": 200},
            "hypotheses": [hypothesis] if declared else [],
        }  # fmt: skip
        result = audits.run(audits.parse_config(config))
        page = page_of(result)
        (first,) = summarize(result, page.leads).statements
        found += first.finding.verdict == Verdict.DISPARITY
    return found


def test_a_model_without_bias_leads_with_a_disparity_by_chance_alone():
    assert disparities("null", relabelled=True) <= 5


def test_planted_favourites_that_are_declared_lead_and_others_do_not():
    assert disparities("biased", declared=True) >= 36
    assert disparities("null", declared=True) <= 5

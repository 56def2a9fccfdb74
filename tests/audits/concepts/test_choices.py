"""Design choices on data whose truth is known: explained, real, and switching disparities."""

from functools import cache

import numpy as np
import polars as pl
import pytest

from audits.concepts.worlds import frame, run, tables, values
from concept_worlds import world
from equipoise.core import Verdict

CONCEPTS, REAL, SWITCHING = 24, 22, 23
FIXED = ("weighted", "sampled")


@cache
def planted():
    """Groups differ in prevalence only, but for one real and one switching concept."""
    scores, labels, group = world(
        7, n=3000, concepts=CONCEPTS, prevalence=(0.4, 0.15), shift={REAL: 1.0}
    )
    rng = np.random.default_rng(1)
    large = rng.random(len(group)) < 0.3
    hurt = (group == "b") ^ large
    scores[:, SWITCHING] -= 1.6 * (hurt & labels[:, SWITCHING])
    data = tables(scores, labels, group, large=large.astype(int))
    return run(
        values(
            data,
            choices={"prevalence": "observed", "min_positives": 20},
            versions={
                "weighted": {"prevalence": "weighted"},
                "sampled": {"prevalence": "hall"},
                "large": {"where": {"large": {"min": 1}}, "prevalence": "weighted"},
            },
            metrics=["average_precision", "auroc"],
            resampling={"replicates": 200, "permutations": 400, "seed": 3},
        )
    )


def choices(**place):
    place = {"baseline": "baseline"} | place
    chosen = frame(planted(), "choices").filter(pl.col("concept") != "", **place)
    return chosen.filter(metric="average_precision") if "metric" not in place else chosen


def test_the_baseline_finds_disparities_where_only_prevalence_differs():
    rows = choices(version="weighted").filter(~pl.col("concept").is_in([str(REAL), str(SWITCHING)]))
    assert rows["baseline_significant"].mean() > 0.9
    judged = [
        finding.verdict
        for finding in planted().findings
        if finding.version == "baseline"
        and finding.metric == "average_precision"
        and finding.subject
    ]
    assert judged.count(Verdict.DISPARITY) > 0.9 * CONCEPTS


@pytest.mark.parametrize("version", FIXED)
def test_fixed_prevalence_explains_them(version):
    rows = choices(version=version).filter(~pl.col("concept").is_in([str(REAL), str(SWITCHING)]))
    assert rows["significant"].mean() <= 0.05
    effects = rows.filter("baseline_significant")["effect"]
    assert (effects == "explains").mean() > 0.9


@pytest.mark.parametrize("version", FIXED)
def test_a_real_disparity_stays(version):
    rows = choices(version=version, concept=str(REAL))
    assert rows["significant"].all()
    assert rows["effect"][0] in ("stays", "shrinks")


def test_a_switching_disparity_switches():
    assert choices(version="large", concept=str(SWITCHING))["effect"].to_list() == ["switches"]


def test_the_real_one_alone_is_robust_in_auroc():
    robust = frame(planted(), "robust").filter(metric="auroc", robust=True)
    concluded = robust.filter(pl.col("conclusion") != "", pl.col("concept") != "")
    assert concluded["concept"].to_list() == [str(REAL)]
    assert concluded["conclusion"].to_list() == ["a"]

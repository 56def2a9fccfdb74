"""The audit of similarity: planted disparities are detected, and unusual input is noted."""

import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from equipoise import audits
from equipoise.core import DataError, Family, NullHypothesis, Verdict
from equipoise.metrics import similarity_gap

ROOT = Path(__file__).resolve().parents[3]
CONCEPTS = ("chef", "nurse", "pilot")
N = 180


def table():
    """Sets of six images, three of each gender, in which all races meet both genders."""
    return pl.DataFrame(
        {
            "image": [f"i{k:03d}" for k in range(N)],
            "gender": ["man", "woman"] * (N // 2),
            "race": ["a", "a", "b", "b", "c", "c"] * (N // 6),
            "job": [CONCEPTS[k // (N // 3)] for k in range(N)],
            "set": [f"s{k // 6:02d}" for k in range(N)],
            "person": [f"p{k // 12:02d}" for k in range(N)],
        }
    )


def images(seed=0):
    """Return vectors: men point along the first axis, and images of a set are similar."""
    rng = np.random.default_rng(seed)
    shared = np.repeat(rng.standard_normal((N // 6, 6)), 6, axis=0)
    vectors = shared + 0.3 * rng.standard_normal((N, 6))
    vectors[:, 0] = np.where(np.arange(N) % 2 == 0, 1.0, -1.0)
    return vectors


def prompts():
    """Return prompts: chef points to men, nurse to women, pilot to neither."""
    vectors = np.random.default_rng(1).standard_normal((3, 6))
    vectors[:, 0] = (1.5, -1.0, 0.0)
    return vectors


def query_table():
    return pl.DataFrame({"query": CONCEPTS})


def embedded(**more):
    return {"images": {"file": images()}, "queries": {"file": prompts()}, **more}


def data(**more):
    return {"images": {"table": table(), "id": "image"}, "groups": ["gender"], **more}


def values(**changes):
    config = {
        "audit": "similarity",
        "data": data(),
        "queries": {"table": query_table(), "id": "query"},
        "models": {"m": embedded(scale=10.0)},
        "resampling": {"replicates": 100, "permutations": 200, "seed": 3},
    }
    return {**config, **changes}


def run(**changes):
    return audits.run(audits.parse_config(values(**changes)))


def by_metric(result, version="default"):
    return {(f.metric, f.subject): f for f in result.findings if f.version == version}


def test_the_favoured_group_is_named_with_its_odds():
    findings = by_metric(run(data=data(sets="set")))
    chef = findings["logit_gap", "chef"]
    assert chef.verdict == Verdict.DISPARITY
    assert chef.direction == (
        f"“man” is favoured over “woman”: in a softmax, odds of {math.exp(chef.value):.2f} to 1 "
        "where all else is equal"
    )
    assert findings["logit_gap", "nurse"].direction.startswith("“woman” is favoured over “man”")


def test_gaps_are_in_scores_where_no_scale_is_known():
    gap = by_metric(run())["logit_gap", "chef"]
    result = run(models={"m": embedded()})
    alone = by_metric(result)["similarity_gap", "chef"]
    assert alone.family is Family.LEAF
    assert alone.value == pytest.approx(gap.value / 10)
    assert alone.direction == "“man” is favoured over “woman”"
    assert any(note.startswith("m: the logit scale is unknown") for note in result.manifest.notes)


def test_of_two_groups_the_gap_alone_is_tested():
    mad = by_metric(run())["normalized_similarity_mad", "chef"]
    assert (mad.family, mad.reason) == (
        Family.DESCRIPTIVE,
        "of two groups it is their gap in standard deviations: logit_gap is tested",
    )
    alone = run(metrics=["normalized_similarity_mad"])
    assert by_metric(alone)["normalized_similarity_mad", "chef"].verdict == Verdict.DISPARITY
    assert "logit_gap" not in {f.metric for f in alone.findings}
    assert "group_effects" in alone.tables


def test_within_sets_both_nulls_stand_side_by_side():
    result = run(data=data(sets="set"))
    primary = by_metric(result)["logit_gap", "chef"]
    plain = by_metric(run())["logit_gap", "chef"]
    assert primary.null is NullHypothesis.WITHIN_SETS
    assert primary.value == pytest.approx(plain.value)
    assert primary.chance < 0.9 * plain.chance
    pool_finding = by_metric(result, "null: pool order")["logit_gap", ""]
    assert pool_finding.verdict == Verdict.NONE
    assert not [note for note in result.manifest.notes if "counterfactual sets" in note]
    assert any("the rest may cause a gap" in note for note in run().manifest.notes)


def test_each_concept_is_compared_over_its_own_images():
    findings = by_metric(run(data=data(subject="job")))
    vectors = images()[: N // 3] / np.linalg.norm(images()[: N // 3], axis=1, keepdims=True)
    text = prompts()[0] / np.linalg.norm(prompts()[0])
    gender = table()["gender"].to_numpy()[: N // 3]
    alone = similarity_gap(vectors @ text, gender, scale=10.0, resampling=None)
    assert findings["logit_gap", "chef"].value == pytest.approx(alone.value, rel=1e-9)
    assert findings["logit_gap", "chef"].n == N // 3


def test_the_table_has_effects_and_normalised_similarities():
    rows = run(data=data(groups=["race", "gender"])).tables["group_effects"].to_pylist()
    chef = {r["group"]: r for r in rows if (r["groups"], r["concept"]) == ("gender", "chef")}
    assert chef["man"]["effect"] == pytest.approx(-chef["woman"]["effect"])
    assert chef["man"]["chance_high"] < chef["man"]["low"] < chef["man"]["high"]
    assert chef["man"]["normalised"] == pytest.approx(-chef["woman"]["normalised"])
    assert {r["unit"] for r in rows} == {"logit"}
    assert {r["concept"] for r in rows} == {"", *CONCEPTS}


def stereotypes(**columns):
    return pl.DataFrame({"job": CONCEPTS, **columns})


def test_preferences_are_compared_with_declared_groups():
    declared = stereotypes(who=["man", "woman", "man"], much=[0.5, 0.9, 0.1])
    hypothesis = {"table": declared, "concept": "job", "favours": "who", "value": "much"}
    result = run(hypotheses=[hypothesis])
    findings = by_metric(result)
    gap, rank = findings["favourite_gap", "who"], findings["alignment", "much"]
    assert gap.value > 0
    assert gap.direction == "groups that the column “who” declares lead"
    assert gap.family is Family.COMPOSITE
    assert rank.value == pytest.approx(1.0)
    points = {r["concept"]: r for r in result.tables["hypotheses"].to_pylist()}
    assert points["nurse"]["favourite"] == "woman"
    assert points["nurse"]["preference"] == pytest.approx(findings["logit_gap", "nurse"].value)
    against = stereotypes(who=["woman", "man", "woman"])
    turned = run(hypotheses=[{"table": against, "concept": "job", "favours": "who"}])
    assert by_metric(turned)["favourite_gap", "who"].direction == (
        "groups that the column “who” declares trail"
    )


def test_numbers_alone_speak_for_one_group():
    shares = stereotypes(men=[0.8, 0.1, 0.9])
    hypothesis = {"table": shares, "concept": "job", "value": "men", "first": "man"}
    findings = by_metric(run(hypotheses=[hypothesis]))
    assert ("favourite_gap", "men") not in findings
    # From women to men: nurse, pilot, chef; by the shares nurse, chef, pilot.
    assert findings["alignment", "men"].value == pytest.approx(0.5)
    signs = stereotypes(lean=[1.0, -1.0, 0.0])
    hypothesis = {"table": signs, "concept": "job", "value": "lean", "first": "man"}
    mean = by_metric(run(hypotheses=[{**hypothesis, "statistic": "mean"}]))["alignment", "lean"]
    assert mean.value > 0


def test_equal_scores_are_below_the_threshold():
    flat = pl.DataFrame({name: np.ones(N) for name in CONCEPTS})
    findings = by_metric(run(models={"m": {"scores": {"file": flat}, "scale": 10.0}}, queries=None))
    assert findings["logit_gap", "chef"].value == 0.0
    assert findings["logit_gap", "chef"].verdict == Verdict.BELOW_THRESHOLD
    assert findings["normalized_similarity_mad", "chef"].reason == "all scores are equal"


@pytest.mark.parametrize("step", [audits.plan, audits.run])
@pytest.mark.parametrize(
    ("columns", "more", "message"),
    [
        ({"who": ["man", "robot", "man"]}, {"favours": "who"}, "'robot', declared for 'nurse'"),
        ({"much": ["1", "a lot", "2"]}, {"value": "much", "first": "man"}, "'much', row 2"),
    ],
)
def test_a_hypothesis_that_cannot_be_used(step, columns, more, message):
    hypothesis = {"table": stereotypes(**columns), "concept": "job", **more}
    config = audits.parse_config(values(hypotheses=[hypothesis]))
    with pytest.raises(DataError, match=message):
        step(config)


def test_a_set_of_several_units_is_refused():
    split = {"table": table().with_columns(person=pl.col("image")), "id": "image"}
    with pytest.raises(DataError, match="set 's00' has images of several units") as raised:
        run(data={"images": split, "groups": ["gender"], "sets": "set", "unit": "person"})
    assert (raised.value.column, raised.value.row) == ("person", 2)


def test_the_plan_states_the_smallest_detectable_gap():
    config = audits.parse_config(values(data=data(subject="job")))
    planned = audits.plan(config)
    model, comparison = planned.details["models"][0], planned.details["comparisons"][0]
    assert (model["concepts"], model["scale"]) == (3, 10.0)
    assert comparison["smallest_groups"] == [30, 30]
    assert comparison["detectable_gap_in_sd"] == pytest.approx(2.8 * math.sqrt(2 / 30))
    assert planned.tests == sum(finding.tested for finding in audits.run(config).findings)

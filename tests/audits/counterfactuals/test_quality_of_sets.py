"""The section on quality: what people say, reference images, poses, subjects told apart."""

import math
import re

import numpy as np
import polars as pl
import pytest

from equipoise import audits
from equipoise.core import ConfigError, Verdict
from equipoise.core.finding import Family
from equipoise.metrics import (
    confusable_subjects,
    detector_precision,
    frechet_distance,
    inception_score,
    label_errors,
    set_similarity,
    subject_accuracy,
)
from equipoise.report.words import sentence

SUBJECTS = ("chef", "nurse", "pilot")
RACES, GENDERS = ("a", "b", "c"), ("man", "woman")
LABELLED = 144


def table(sets=12):
    rows = [
        {"subject": subject, "set": f"{subject}{number}", "race": race, "gender": gender}
        for subject in SUBJECTS
        for number in range(sets)
        for race in RACES
        for gender in GENDERS
    ]
    return pl.DataFrame(rows).with_row_index("image").cast({"image": pl.String})


def images():
    rng = np.random.default_rng(0)
    shared = np.repeat(rng.standard_normal((36, 6)), 6, axis=0)
    return shared + 0.3 * rng.standard_normal((216, 6)) + 1.5 * np.repeat(prompts(), 72, axis=0)


def prompts():
    """Chef and nurse are one to the model."""
    found = np.eye(6)[[0, 0, 1]]
    found[1, 2] = 0.1
    return found


def people(**changes):
    """Labels of some images, of which those of women are wrong more often."""
    rng = np.random.default_rng(5)
    gender = table()["gender"].to_numpy()[:LABELLED]
    wrong = rng.random(LABELLED) < np.where(gender == "woman", 0.6, 0.05)
    kinds = rng.choice(["wrong attribute", "out of frame"], LABELLED)
    found = np.where(rng.random(LABELLED) < 0.8, "yes", "no")
    return pl.DataFrame(
        {
            "image": table()["image"][:LABELLED],
            "said": np.where(wrong, kinds, "good"),
            "found": found,
        }
    ).with_columns(**changes)


def asked(**changes):
    given = {"table": people(), "id": "image", "label": "said", "detected": "found"}
    return {"labels": {**given, **changes}}


def values(quality, **changes):
    model = {"images": {"file": images()}, "queries": {"file": prompts()}}
    queries = pl.DataFrame({"prompt": SUBJECTS})
    return {
        "audit": "counterfactuals",
        "data": {"images": {"table": table(), "id": "image"}, "groups": [["race", "gender"]]},
        "queries": {"table": queries, "id": "prompt"},
        "models": {"m": {**model, **changes}},
        "ranking": {"marginals": False, "curves": False},
        "quality": quality,
        "resampling": {"replicates": 60, "permutations": 200, "seed": 3},
    }


def run(quality, **changes):
    return audits.run(audits.parse_config(values(quality, **changes)))


def one(result, metric, subject=""):
    return next(f for f in result.findings if (f.metric, f.subject) == (metric, subject))


@pytest.fixture(scope="module")
def result():
    rng = np.random.default_rng(9)
    reference = {"table": pl.DataFrame({"id": [f"r{n}" for n in range(80)]}), "id": "id"}
    pose, layout = images() @ np.diag([1, 1, 0, 0, 1, 1]), images() + 4.0
    quality = asked() | {
        "reference": reference, "pose": {"file": pose}, "background": {"file": layout},
    }  # fmt: skip
    return run(quality, reference={"file": rng.standard_normal((80, 6))})


def test_findings_are_what_the_functions_give(result):
    frame, rng = table(), np.random.default_rng(9)
    subjects, sets = (frame[name].to_numpy() for name in ("subject", "set"))
    alike = set_similarity(images(), sets, strata=subjects, resampling=None).value
    assert one(result, "image_similarity").value == pytest.approx(alike)
    posed = set_similarity(images() @ np.diag([1, 1, 0, 0, 1, 1]), sets, resampling=None).value
    assert one(result, "pose_similarity").value == pytest.approx(posed)
    behind = set_similarity(images() + 4.0, sets, centred=True, resampling=None).value
    assert one(result, "background_similarity").value == pytest.approx(behind)
    apart = frechet_distance(images(), rng.standard_normal((80, 6)), resampling=None).value
    assert one(result, "frechet_distance").value == pytest.approx(apart)
    assert not math.isnan(one(result, "frechet_distance_extrapolated").value)
    told = subject_accuracy(images(), prompts(), subjects, names=SUBJECTS, resampling=None)
    assert one(result, "subject_accuracy").value == pytest.approx(told.value)
    same = confusable_subjects(prompts(), SUBJECTS).value
    assert one(result, "confusable_subjects").value == same == pytest.approx(2 / 3)


def test_what_is_no_comparison_of_groups_has_no_verdict(result):
    for metric in (
        "image_similarity", "pose_similarity", "background_similarity", "frechet_distance",
        "frechet_distance_extrapolated", "confusable_subjects", "subject_accuracy",
        "detector_precision", "detector_recall",
    ):  # fmt: skip
        found = one(result, metric)
        assert (found.family, found.verdict) == (Family.DESCRIPTIVE, Verdict.NONE)
        assert found.reason
    assert one(result, "image_similarity").chance < one(result, "image_similarity").ci_low


def test_errors_that_people_see_are_tested_by_group(result):
    found = one(result, "label_error_gap")
    groups = {name: table()[name].to_numpy()[:LABELLED] for name in ("race", "gender")}
    plain = label_errors(people()["said"].to_numpy(), groups, resampling=None)
    assert found.value == pytest.approx(plain.value)
    assert found.verdict == Verdict.DISPARITY
    assert found.model == ""
    assert found.family is Family.COMPOSITE
    assert "highest for" in found.direction
    assert "woman" in found.direction.rsplit("highest", 1)[1]
    kinds = [f for f in result.findings if f.metric == "label_error_gap" and f.subject]
    assert {f.subject for f in kinds} == {"wrong attribute", "out of frame"}
    assert all(f.family is Family.LEAF for f in kinds)
    assert sentence(found).startswith("Gap of errors that people see is ")
    rows = result.tables["people"].to_pylist()
    rate = next(r for r in rows if r["error"] == "any error" and not r["group"])
    assert rate["value"] == pytest.approx((people()["said"] != "good").mean())
    assert len({r["group"] for r in rows if r["error"] == "out of frame"}) == 7


def test_the_detector_is_held_against_people(result):
    said, found = (people()[name].to_numpy() for name in ("said", "found"))
    plain = detector_precision(found == "yes", said == "good", resampling=None).value
    assert one(result, "detector_precision").value == pytest.approx(plain)
    rows = result.tables["people"].to_pylist()
    own = [r for r in rows if r["metric"] == "detector_precision" and r["group"]]
    assert sum(r["n"] for r in own) == int((found == "yes").sum())
    wider = run(asked(discernible=["good", "out of frame"], yes=["yes", "no"]))
    shown = np.isin(said, ["good", "out of frame"]).mean()
    assert one(wider, "detector_precision").value == pytest.approx(shown)


def test_subjects_that_are_not_told_apart_are_listed(result):
    rows = {r["subject"]: r for r in result.tables["subjects_told_apart"].to_pylist()}
    assert {name for name, row in rows.items() if row["told_apart"]} == {"pilot"}
    assert (rows["chef"]["nearest"], rows["nurse"]["nearest"]) == ("nurse", "chef")
    assert rows["chef"]["cosine"] == pytest.approx(1 / math.sqrt(1.01))
    assert rows["chef"]["taken_for"] == "nurse"
    told = run({"confusable": 0.999, "margin": 0.0}).tables["subjects_told_apart"].to_pylist()
    assert all(row["nearest"] == "" for row in told)


def test_the_inception_score_is_of_a_classifiers_probabilities():
    rows = np.random.default_rng(1).dirichlet([0.3, 0.3, 0.3], 216)
    given = pl.DataFrame({"image": table()["image"], **dict(zip("xyz", rows.T, strict=True))})
    found = one(run({"probabilities": {"file": given[:-1], "id": "image"}}), "inception_score")
    expected = inception_score(rows[:-1], resampling=None).value
    assert found.value == pytest.approx(expected)
    assert (found.model, found.verdict, found.n) == ("", Verdict.NONE, 215)
    assert found.ci_low < found.value < found.ci_high


@pytest.mark.parametrize(
    ("quality", "model", "message"),
    [
        (
            {"reference": {"folder": "photographs"}},
            {},
            "models.m.reference: required, and missing: the embeddings of the images of",
        ),
        (
            {},
            {"reference": {"file": "x.npy"}},
            "models.m.reference: the images it embeds are not named; expected 'quality.reference'",
        ),
    ],
)
def test_errors_of_the_section(quality, model, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        audits.parse_config(values(quality, **model))

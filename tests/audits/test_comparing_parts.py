"""Parts of one subject: averaged before subjects are paired, never pairs of their own."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from audits.comparisons import check_paired
from equipoise import audits
from equipoise.core import AuditResult

EXAMPLES = Path(__file__).parents[2] / "examples"
HUES, FRAMES = ("red", "blue", "green"), ("level", "upright")


def run_of(example):
    return audits.run(
        audits.load_config(EXAMPLES / example / "audit.yaml"), base=EXAMPLES / example
    )


@pytest.fixture(scope="module")
def planted():
    return run_of("counterfactuals")


def sized(levels, groups):
    return [
        {"groups": groups, "group": ", ".join(one), "levels": [*one], "n": 9, "usable": True}
        for one in levels
    ]


def made(
    planted, numbers, *, queries = (),
    hues = HUES, **other,
):  # fmt: skip
    """A run with NDKL over frames within hues: a number per part, by its name."""
    own = next(f for f in planted.findings if f.metric == "ndkl" and f.version == "within hue")
    place = {"groups": "frame", "version": "within hue", "model": "one"} | other
    found = [
        replace(own, subject=name, value=value, **place) for name, value in numbers.items()
    ]  # fmt: skip
    asked = [
        replace(own, subject=name, groups="hue × frame", version="default", model="one")
        for name in queries
    ]
    rows = sized([(hue, frame) for hue in hues for frame in FRAMES], "hue × frame")
    table = pa.Table.from_pylist(rows)
    return AuditResult((*found, *asked), planted.manifest, {"group_sizes": table})


def compared(one, two, version="within hue"):
    result = audits.compare_results({"a": one, "b": two})
    return next(f for f in result.findings if f.version == version)


def test_the_parts_of_a_subject_are_averaged_before_subjects_are_paired(
    planted,
):
    rng = np.random.default_rng(4)
    names = [f"s{index}" for index in range(8)]
    numbers = rng.uniform(0, 1, (2, 8, 3)) + rng.uniform(0, 1, (2, 8, 1))
    runs = [
        made(planted, {
            f"{name} | {hue}": table[row, column]
            for row, name in enumerate(names) for column, hue in enumerate(HUES)
        })
        for table in numbers
    ]  # fmt: skip
    found = compared(*runs)
    before, after = numbers.mean(axis=2)
    assert found.n == 8
    assert found.method == "Student's t over 8 subjects, paired, 24 parts averaged by subject"
    check_paired(found, before, after)


def test_parts_and_subjects_that_one_model_lacks_are_counted_apart(planted):
    numbers = {f"s{index} | {hue}": 0.5 for index in range(8) for hue in HUES}
    fewer = {name: value for name, value in numbers.items() if not name.startswith("s0")}
    fewer["s1 | red"] = math.nan
    found = compared(made(planted, numbers), made(planted, fewer))
    assert found.n == 7
    assert [(one.reason, one.count) for one in found.excluded] == [
        ("subjects without a number in both", 1),
        ("parts of subjects without a number in both", 1),
    ]


def test_parts_whose_subject_is_not_known_are_not_tested(planted):
    """Of "cat | dog | red" nobody knows whether the query is "cat" or "cat | dog"."""
    run = made(planted, {f"cat | dog {index} | red": 0.5 for index in range(8)})
    found = compared(run, run)
    assert math.isnan(found.p_value)
    assert math.isnan(found.ci_low)
    assert "cannot be told apart" in found.reason


def test_parts_of_one_ranking_are_one_subject(planted):
    """Scores without queries: pools are called by what is held fixed alone."""
    run = made(planted, dict.fromkeys(("6", "7", "8"), 0.5), hues=("6", "7", "8"))
    found = compared(run, run)
    assert (found.n, math.isnan(found.p_value)) == (1, True)


def test_the_example_has_eight_subjects_whatever_is_held_fixed(planted):
    result = audits.compare_results({"counterfactuals": planted})
    tested = [f for f in result.findings if not math.isnan(f.p_value)]
    assert {f.version for f in tested} == {"default", "within frame", "within hue"}
    assert {f.n for f in tested} == {8}
    # Of 8 pairs no p of flipped signs is smaller.
    assert min(f.p_value for f in tested) >= 2 / 2**8


def test_pairs_of_sets_of_one_concept_are_one_subject():
    found = run_of("diversity")
    result = audits.compare_results({"a": found, "b": found})
    own = next(f for f in result.findings if f.metric == "iss_difference")
    assert own.n == 2

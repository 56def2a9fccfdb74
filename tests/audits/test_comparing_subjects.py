"""Runs of kinds other than predictions, compared subject by subject."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import ttest_rel

from audits.comparisons import check_paired
from equipoise import audits
from equipoise.core import AuditResult, DataError, Family, Verdict

EXAMPLES = Path(__file__).parents[2] / "examples"


def run_of(example, **resampling):
    base = EXAMPLES / example
    config = audits.load_config(base / "audit.yaml")
    resampling = config.resampling.model_copy(update=resampling)
    return audits.run(config.model_copy(update={"resampling": resampling}), base=base)


@pytest.fixture(scope="module")
def before():
    return run_of("similarity")


def shrunk(result, by):
    """The same audit of a model whose numbers are smaller."""

    def smaller(finding):
        is_disparity = finding.verdict is Verdict.DISPARITY
        verdict = Verdict.BELOW_THRESHOLD if is_disparity else finding.verdict
        return replace(finding, value=finding.value * by, verdict=verdict)

    return AuditResult(tuple(map(smaller, result.findings)), result.manifest, result.tables)


def gaps(result, groups):
    return np.array([
        abs(finding.value) for finding in result.findings
        if finding.metric == "logit_gap" and finding.groups == groups and finding.subject
        and finding.family is not Family.DESCRIPTIVE
    ])  # fmt: skip


def test_the_mean_difference_over_subjects_its_interval_and_its_test(before):
    after = shrunk(before, 0.4)
    result = audits.compare_results({"before": before, "after": after})
    finding = next(f for f in result.findings if (f.metric, f.groups) == ("logit_gap", "gender"))
    first, second = gaps(before, "gender"), gaps(after, "gender")
    assert finding.n == len(first) == 12
    check_paired(finding, first, second)
    parameters = finding.parameters
    assert parameters["worse"] == parameters["model_a"] == "before: embedder"
    assert finding.model == "after: embedder − before: embedder"
    assert finding.unit == "subject"
    conclusion, *_ = result.conclusions
    assert conclusion.worse == "before: embedder"
    assert (conclusion.compared_on, conclusion.compared_over) == (12, "subjects")
    assert [standing.better_on for standing in conclusion.standings] == [12, 0]


def test_changes_of_each_disparity_are_listed(before):
    result = audits.compare_results({"before": before, "after": shrunk(before, 0.4)})
    rows = result.tables["changes"].to_pylist()
    went = [row for row in rows if row["change"] == "went"]
    disparities = [
        f for f in before.findings
        if f.verdict is Verdict.DISPARITY and (f.subject or f.metric == "favourite_gap")
    ]  # fmt: skip
    assert len(went) == len(disparities) > 0
    assert not [row for row in rows if row["change"] in ("came", "stayed")]


def test_groups_and_single_numbers_are_no_subjects(before):
    groups = before.tables["group_sizes"]["group"].to_pylist()
    template = next(f for f in before.findings if f.metric == "logit_gap" and f.subject)
    for names in (groups, [""]):
        findings = tuple(replace(template, subject=name) for name in names)
        # Findings about the images are of no model.
        result = AuditResult(
            (*findings, replace(template, model="")), before.manifest, before.tables
        )
        (finding,) = audits.compare_results({"a": result, "b": result}).findings
        assert finding.model == "b: embedder − a: embedder"
        assert finding.family is Family.DESCRIPTIVE
        assert finding.reason


def test_incomparable_runs_are_refused(before):
    with pytest.raises(DataError, match="one model only"):
        audits.compare_results({"a": before})
    other = AuditResult(
        tuple(replace(f, metric=f"other_{f.metric}") for f in before.findings),
        before.manifest,
        before.tables,
    )
    with pytest.raises(DataError, match="no measure of the same"):
        audits.compare_results({"a": before, "b": other})


def few(before, values, metric="logit_gap"):
    """A run with one measure of as many subjects."""
    template = next(f for f in before.findings if f.metric == "logit_gap" and f.subject)
    numbers = {f"s{index}": value for index, value in enumerate(values)}
    return AuditResult(
        with_values(template, numbers, metric=metric), before.manifest, before.tables
    )


def with_values(finding, numbers, **changes):
    """The finding with the number of each subject."""
    return tuple(
        replace(finding, subject=name, value=value, **changes) for name, value in numbers.items()
    )


@pytest.mark.parametrize("n_subjects", [2, 5, 6])
def test_fewer_than_six_subjects_are_not_tested(before, n_subjects):
    """Of 5 pairs the smallest p of flipped signs is 2 / 32, of 6 it is 2 / 64."""
    first, second = np.zeros(n_subjects), np.linspace(0.4, 0.6, n_subjects)
    result = audits.compare_results({"a": few(before, first), "b": few(before, second)})
    (finding,) = result.findings
    assert finding.value == pytest.approx(0.5)
    if n_subjects == 6:
        assert finding.p_value == pytest.approx(2 / 64)
        return
    assert finding.family is Family.DESCRIPTIVE
    assert math.isnan(finding.p_value)
    assert math.isnan(finding.ci_low)
    assert finding.reason


@pytest.mark.parametrize(
    ("metric", "limit"),
    [("correlation", 1.0), ("concept_difference", 1.0), ("iss_cross", 2.0), ("logit_gap", None)],
)
def test_an_interval_stays_within_the_largest_possible_difference(before, metric, limit):
    span = limit or 1.0
    first = span * np.array([0.0, 0.0, 0.0, 1.0, 1.0, 1.0])
    runs = {"a": few(before, first, metric), "b": few(before, span - first, metric)}
    (finding,) = audits.compare_results(runs).findings
    test = ttest_rel(span - first, first).confidence_interval()
    assert test.high > span
    expected = [test.low, test.high] if limit is None else [-limit, limit]
    np.testing.assert_allclose([finding.ci_low, finding.ci_high], expected, rtol=1e-12)


HUES = ("red", "blue", "green")


@pytest.fixture(scope="module")
def planted():
    return run_of("counterfactuals", replicates=20, permutations=99)


def ndkl_run(planted, numbers):
    """A run with NDKL over frames within hues: a number per subject and hue."""
    template = next(f for f in planted.findings if f.metric == "ndkl" and f.version == "within hue")
    findings = tuple(
        replace(
            template, subject=f"{subject} | {hue}", part_of=subject, within_value=hue, value=value,
            groups="frame", model="one",
        )
        for (subject, hue), value in numbers.items()
    )  # fmt: skip
    rows = [{"groups": "frame", "group": name} for name in ("level", "upright")]
    tables = {"group_sizes": pa.Table.from_pylist(rows)}
    return AuditResult(findings, planted.manifest, tables)


def comparison_of(first, two):
    return audits.compare_results({"a": first, "b": two}).findings[0]


def test_the_parts_of_a_subject_are_averaged_before_subjects_are_paired(planted):
    rng = np.random.default_rng(4)
    names = [f"s{index}" for index in range(8)]
    numbers = rng.uniform(0, 1, (2, 8, 3)) + rng.uniform(0, 1, (2, 8, 1))
    runs = [
        ndkl_run(planted, {
            (name, hue): table[row, column]
            for row, name in enumerate(names) for column, hue in enumerate(HUES)
        })
        for table in numbers
    ]  # fmt: skip
    finding = comparison_of(*runs)
    before, after = numbers.mean(axis=2)
    assert finding.n == 8
    assert finding.method == "Student's t over 8 subjects, paired, 24 parts averaged by subject"
    check_paired(finding, before, after)


def test_parts_and_subjects_that_one_model_lacks_are_counted(planted):
    numbers = {(f"s{index}", hue): 0.5 for index in range(8) for hue in HUES}
    fewer = {place: value for place, value in numbers.items() if place[0] != "s0"}
    fewer["s1", "red"] = math.nan
    finding = comparison_of(ndkl_run(planted, numbers), ndkl_run(planted, fewer))
    assert finding.n == 7
    assert [exclusion.count for exclusion in finding.excluded] == [4]


def test_names_of_queries_may_have_the_mark_of_a_part(planted):
    names = [f"cat | dog {index}" for index in range(8)]
    rng = np.random.default_rng(5)
    numbers = rng.uniform(0, 1, (2, 8, 2))
    runs = [
        ndkl_run(planted, {
            (name, hue): table[row, column]
            for row, name in enumerate(names) for column, hue in enumerate(HUES[:2])
        })
        for table in numbers
    ]  # fmt: skip
    finding = comparison_of(*runs)
    assert finding.n == 8
    check_paired(finding, *numbers.mean(axis=2))


def test_changes_between_predicted_groups_have_no_verdict(before):
    resolved = {**before.manifest.resolved, "group_sources": {"gender": {"source": "machine"}}}
    after = shrunk(before, 0.4)
    after = replace(after, manifest=replace(after.manifest, resolved=resolved))
    result = audits.compare_results({"before": before, "after": after})
    of_gender = [f for f in result.findings if f.groups == "gender"]
    assert of_gender
    assert np.isnan([(f.p_value, f.ci_low) for f in of_gender]).all()
    assert any(note.startswith("gender: ") for note in result.manifest.notes)

"""Each fact is tested once."""

import numpy as np
import polars as pl
import pytest

from audits import comparisons
from equipoise import audits
from equipoise.core import Family


def run(kinds):
    groups = {"groups": ["place", ["place", "kind"]]}
    return audits.run(comparisons.run(comparisons.images(kinds=kinds), "poor", data=groups)[0])


def pick(result, metric, subject):
    (finding,) = [
        candidate
        for candidate in result.findings
        if (candidate.metric, candidate.groups, candidate.subject) == (metric, "place", subject)
        and candidate.aggregate != "against_rest"
    ]
    return finding


def test_a_mirrored_gap_is_the_gap_it_names_and_is_not_tested():
    result = run(3)
    mirrors = {
        "true_negative_rate": "false_positive_rate",
        "false_negative_rate": "true_positive_rate",
        "selection_rate": "demographic_parity",
    }
    for mirror, original in mirrors.items():
        mirrored, tested = pick(result, mirror, "dog"), pick(result, original, "dog")
        assert mirrored.value == tested.value or abs(mirrored.value - tested.value) < 1e-12
        assert (mirrored.family, tested.family) == (Family.FOLD, Family.LEAF)
        assert (mirrored.q_value, mirrored.verdict) == (tested.q_value, tested.verdict)
        assert mirrored.reason.startswith(
            f"the same fact as {original} difference of dog, which is tested"
        )


@pytest.mark.parametrize("kinds", [2, 3])
def test_an_attribute_that_splits_no_class_adds_no_test_within_classes(kinds):
    frame = comparisons.images(kinds=kinds)
    half = pl.Series(np.arange(len(frame)) % 2).cast(pl.String)
    groups = {"groups": ["place", ["place", "kind"], "half", ["place", "half"]]}
    config, _ = comparisons.run(frame.with_columns(half=half), "poor", data=groups)
    all_findings = audits.run(config).findings
    compared = [
        finding
        for finding in all_findings
        if finding.aggregate not in ("against_rest", "worst_group")
    ]
    findings = {(finding.metric, finding.subject, finding.groups): finding for finding in compared}
    gap = next(f for f in all_findings if f.compared_to == "overall" and f.groups == "place × kind")
    metrics = [("true_positive_rate", "dog"), ("cramers_v", "dog"), ("effect_size_mean", "")]
    for metric, subject in [*metrics, *([("equalized_odds", "cat")] if kinds == 2 else [])]:
        split, tested = (findings[metric, subject, by] for by in ("place × kind", "place"))
        assert split.value == pytest.approx(tested.value, abs=1e-12)
        assert (split.family, split.q_value, split.verdict) == (
            Family.FOLD, tested.q_value, tested.verdict,
        )  # fmt: skip
        for by in ("half", "place × half"):
            assert findings[metric, subject, by].family is not Family.FOLD
    assert gap.family is Family.COMPOSITE

"""Rare errors of a target of two classes are compared by their ratio, too."""

import json
import math

import numpy as np
import polars as pl
import pytest

from equipoise import report
from equipoise.audits import parse_config, run
from equipoise.core import Aggregate, Verdict
from equipoise.report.words import headline, ranked, shown_verdict
from equipoise.stats import score_ratio

POSITIVES = 1000


def pairs(false_matches, n=5000, classes=("no", "yes"), repeats=1):
    """Return pairs of faces, where each group has some false matches among n pairs of two people.

    One in twenty pairs of the same person is missed in each group.
    """
    tables = []
    for group, wrong in false_matches.items():
        truth = np.repeat([*classes], [n, *[POSITIVES] * (len(classes) - 1)])
        prediction = truth.copy()
        prediction[:wrong] = classes[-1]
        prediction[n : n + POSITIVES // 20] = classes[0]
        tables.append(pl.DataFrame({"group": group, "truth": truth, "prediction": prediction}))
    table = pl.concat(tables).with_row_index("unit")
    return pl.concat([table] * repeats).with_row_index("id")


def audit(table, positive="yes", **data):
    if positive:
        data["positive"] = positive
    return run(parse_config({
        "audit": "predictions",
        "data": {"table": table, "id": "id", "target": "truth", "groups": ["group"], **data},
        "models": {"m": {"table": table, "prediction": "prediction"}},
        "resampling": {"replicates": 100, "permutations": 999},
    }))  # fmt: skip


def gap(result, metric="false_positive_rate", subject="yes"):
    (finding,) = [
        finding
        for finding in result.findings
        if (finding.metric, finding.aggregate) == (metric, Aggregate.DIFFERENCE)
        and (finding.subject, finding.compared_to) == (subject, "")
    ]
    return finding


def ends(finding):
    return finding.ratio.low, finding.ratio.high


def score_ends(*counts):
    ratio = score_ratio(*counts)
    return float(ratio.low), float(ratio.high)


@pytest.fixture(scope="module")
def planted():
    return audit(pairs({"A": 5, "B": 50}))


def test_ten_times_as_many_errors_are_a_disparity_and_lead(planted):
    finding, (conclusion, *_) = gap(planted), planted.conclusions
    assert finding.value < finding.threshold
    assert finding.ratio.value == pytest.approx(10.0)
    assert ends(finding) == pytest.approx(score_ends(50, 5000, 5, 5000))
    assert finding.ratio.decides
    assert finding.verdict is conclusion.verdict is Verdict.DISPARITY
    assert (conclusion.metric, conclusion.group, conclusion.other) == (finding.metric, "B", "A")
    assert conclusion.ratio == finding.ratio


def test_errors_that_are_rare_in_one_group_have_a_ratio_that_leads():
    # As of face matchers: 4.9 and 0.2 %, of all pairs 2.6 %.
    result = audit(pairs({"A": 245, "B": 10}))
    finding, (conclusion, *_) = gap(result), result.conclusions
    assert finding.by_ratio
    assert finding.ratio.value == pytest.approx(24.5)
    assert finding.verdict is conclusion.verdict is Verdict.DISPARITY
    assert (conclusion.metric, conclusion.group, conclusion.other) == (finding.metric, "A", "B")


def test_errors_that_are_frequent_in_all_groups_together_have_no_ratio():
    assert gap(audit(pairs({"A": 600, "B": 50}))).ratio is None


def test_of_several_groups_each_rare_one_counts():
    finding = gap(audit(pairs({"A": 250, "B": 240, "C": 12, "D": 10})))
    assert finding.by_ratio
    assert finding.verdict is Verdict.DISPARITY


def test_surfaces_show_the_ratio_and_both_counts(planted, tmp_path):
    finding = gap(planted)
    sentence, table_verdict = headline(finding), shown_verdict(finding)
    assert all(text in sentence for text in ("10 times", "50 of 5\u202f000", "5 of 5\u202f000"))
    assert "10" in table_verdict
    report.write(planted, tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8").replace("\u00a0", " ")
    assert sentence.split(" for ")[0] in page
    first = json.loads((tmp_path / "conclusions.json").read_text(encoding="utf-8"))[0]
    assert first["verdict"] == "disparity"
    assert first["ratio"]["value"] == pytest.approx(10.0)
    assert repr(report.read(tmp_path).conclusions) == repr(planted.conclusions)
    assert gap(report.read(tmp_path)).ratio == finding.ratio


def test_a_ratio_without_errors_in_the_other_group_is_infinite(tmp_path):
    result = audit(pairs({"A": 0, "B": 50}))
    finding = gap(result)
    assert finding.ratio.value == finding.ratio.high == math.inf
    assert finding.ratio.low > 10
    assert finding.verdict is Verdict.DISPARITY
    assert "at least" in headline(finding)
    report.write(result, tmp_path)
    assert repr(report.read(tmp_path).conclusions) == repr(result.conclusions)


def test_a_ratio_that_may_be_small_is_real_and_uncertain():
    finding = gap(audit(pairs({"A": 25, "B": 48})))
    assert finding.ratio.low < 1.25 < finding.ratio.value
    assert finding.q_value <= 0.05
    assert finding.verdict is Verdict.DETECTED


def test_equal_rates_stay_too_small_to_matter():
    finding = gap(audit(pairs({"A": 24, "B": 26})))
    assert finding.ratio is not None
    assert not finding.by_ratio
    assert finding.verdict is Verdict.BELOW_THRESHOLD


def test_of_several_groups_the_interval_holds_for_all_pairs():
    finding = gap(audit(pairs({"A": 5, "B": 50, "C": 6, "D": 8})))
    assert ends(finding) == pytest.approx(score_ends(50, 5000, 5, 5000, 1 - 0.05 / 6))


def test_a_group_against_all_others_is_judged_in_points():
    result = audit(pairs({"A": 5, "B": 50, "C": 6}))
    rest = [f for f in result.findings if f.aggregate is Aggregate.AGAINST_REST]
    assert rest
    assert not any(finding.ratio for finding in rest)


def test_an_effect_size_that_only_the_cause_makes_is_no_conclusion_of_its_own():
    # Without the errors of B, they are too few for an effect size.
    result = audit(pairs({"A": 2, "B": 110, "C": 3}))
    real = [conclusion.metric for conclusion in result.conclusions if conclusion.real]
    assert real == ["false_positive_rate"]


def test_both_classes_have_the_ratio_of_one_fact():
    result = audit(pairs({"A": 5, "B": 50}), positive=None)
    wrong, right = gap(result), gap(result, "true_positive_rate", "no")
    assert wrong.ratio == right.ratio
    assert wrong.ratio.value == pytest.approx(10.0)
    assert wrong.verdict is right.verdict is Verdict.DISPARITY


@pytest.mark.parametrize(
    ("false_matches", "options"),
    [
        ({"A": 100, "B": 150}, {}),
        ({"A": 5, "B": 50}, {"classes": ("no", "maybe", "yes")}),
    ],
)
def test_frequent_errors_and_several_classes_have_no_ratio(false_matches, options):
    positive = None if options else "yes"
    result = audit(pairs(false_matches, **options), positive=positive)
    assert gap(result).ratio is None


def test_other_metrics_have_no_ratio(planted):
    with_ratio = {finding.metric for finding in planted.findings if finding.ratio is not None}
    assert with_ratio == {"false_positive_rate", "true_negative_rate", "accuracy"}


def test_rows_that_repeat_by_unit_count_once():
    single, repeated = (
        gap(audit(pairs({"A": 5, "B": 50}, repeats=repeats), **options))
        for repeats, options in ((1, {}), (4, {"unit": "unit"}))
    )
    assert repeated.ratio.value == pytest.approx(single.ratio.value)
    np.testing.assert_allclose(ends(repeated), ends(single), rtol=0.05)


def test_verdicts_by_points_come_before_those_by_ratio(planted):
    finding = gap(planted)
    verdicts = [other for other in ranked(planted.findings) if other.verdict is finding.verdict]
    by_points = [other.by_ratio for other in verdicts]
    assert by_points == sorted(by_points)

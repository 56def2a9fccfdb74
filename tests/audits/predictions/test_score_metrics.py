"""Scores in audits of predictions: findings, calibration, thresholds at a rate, causes, plans."""

import numpy as np
import polars as pl
import pytest

import equipoise
from equipoise import audits, report
from equipoise.audits.labels.predictions.scores import threshold_at_rate
from equipoise.core import Aggregate, ConfigError, Verdict
from equipoise.metrics.registry import metrics_of
from equipoise.metrics.scores import ScoreMetric

NAMES = [*metrics_of(ScoreMetric, "predictions")]
PROBABILITIES = [name for name, m in metrics_of(ScoreMetric, "predictions").items()
                 if m.probabilities]  # fmt: skip


def people(n=1600, *, off=2.5, seed=0):
    """People with probabilities of being hired; those of women may be off."""
    rng = np.random.default_rng(seed)
    sex = np.array(["f", "m"] * (n // 2))
    logit = rng.normal(size=n) * 1.5
    truth = rng.random(n) < 1.0 / (1.0 + np.exp(-logit))
    logit = logit + off * (sex == "f")
    return pl.DataFrame({
        "id": [f"i{k:04d}" for k in range(n)], "sex": sex,
        "hired": np.where(truth, "yes", "no"), "score": 1.0 / (1.0 + np.exp(-logit)),
    })  # fmt: skip


TABLE = people()


def run(table=TABLE, plan=False, scores=None, **model):
    values = {
        "audit": "predictions",
        "data": {"table": table, "id": "id", "target": "hired", "groups": ["sex"],
                 "positive": "yes"},
        "models": {"m": {"table": table, "score": "score", "threshold": 0.5} | model},
        "resampling": {"permutations": 300, "replicates": 200},
    }  # fmt: skip
    if scores is not None:
        values["metrics"] = scores
    config = audits.parse_config(values)
    return audits.plan(config) if plan else audits.run(config)


@pytest.fixture(scope="module")
def result():
    return run()


def gap(result, metric):
    (finding,) = (
        finding for finding in result.findings
        if (finding.metric, finding.aggregate) == (metric, Aggregate.DIFFERENCE)
    )  # fmt: skip
    return finding


@pytest.mark.parametrize("name", NAMES)
def test_audits_report_what_the_metric_gives(result, name):
    truth = (TABLE["hired"] == "yes").to_numpy().astype(int)
    metric = metrics_of(ScoreMetric, "predictions")[name]
    estimate = metric.difference(truth, TABLE["score"].to_numpy(), TABLE["sex"], resampling=None)
    finding = gap(result, name)
    assert finding.value == pytest.approx(estimate.value)
    assert finding.subject == "yes"
    assert finding.by_group[0].group == "f"
    assert finding.verdict is not Verdict.NONE
    assert finding.ci_low <= finding.value <= finding.ci_high
    (level,) = (
        f for f in result.findings if (f.metric, f.aggregate) == (name, Aggregate.VALUE)
    )  # fmt: skip
    assert level.verdict is Verdict.NONE


def test_planted_miscalibration_is_a_disparity_with_the_group_that_is_worse_off(result):
    finding = gap(result, "expected_calibration_error")
    assert finding.verdict is Verdict.DISPARITY
    assert str(finding.direction).startswith("worse for f")
    assert gap(result, "auroc").verdict is not Verdict.DISPARITY


def test_tables_hold_each_group_beside_a_calibrated_model(result):
    bins = pl.DataFrame(result.tables["calibration"])
    assert bins["n"].sum() == len(TABLE)
    women = bins.filter(group="f")
    assert (women["mean_score"] > women["high"]).mean() > 0.5
    beside = pl.DataFrame(result.tables["calibrated"]).filter(metric="expected_calibration_error")
    values = {row["group"]: row for row in beside.to_dicts()}
    assert values["f"]["value"] > values["f"]["calibrated_high"]
    assert values["m"]["value"] <= values["m"]["calibrated_high"]


def test_the_report_draws_calibration(result, tmp_path):
    report.write(result, tmp_path, result.shown_page)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Scores as probabilities" in page
    assert report.read(tmp_path).tables["calibration"].num_rows


def test_scores_that_are_no_probabilities_are_named_in_a_note():
    result = run(TABLE.with_columns(score=pl.col("score") * 10))
    measured = {finding.metric for finding in result.findings}
    assert {*NAMES} - measured == {*PROBABILITIES}
    assert "calibration" not in result.tables
    assert any("aren't probabilities" in note for note in result.manifest.notes)


def test_metrics_of_scores_can_be_switched_off_and_have_options():
    result = run(scores={"auroc": False, "expected_calibration_error": {"bins": 5}})
    assert "auroc" not in {finding.metric for finding in result.findings}
    assert gap(result, "expected_calibration_error").parameters["bins"] == 5


@pytest.mark.parametrize(
    "scores", [{"auroc": {"bins": 3}}, {"auc": True}, {"ece": {"bins": "many"}}, {"scores": False}]
)
def test_unknown_metrics_and_options_are_refused(scores):
    (name,) = scores
    with pytest.raises(ConfigError, match=rf"metrics\.{name}: "):
        run(scores=scores)


def test_plans_count_the_tests_of_scores():
    off = dict.fromkeys(NAMES, False)
    with_scores, without = (run(plan=True, scores=scores) for scores in ({}, off))
    assert with_scores.tests == without.tests + len(NAMES)


RATES = [0.1, 0.01]


@pytest.mark.parametrize("rate", RATES)
def test_a_threshold_keeps_to_a_false_positive_rate(rate):
    result = run(threshold={"false_positive_rate": rate})
    scores = TABLE["score"].to_numpy()
    negative = (TABLE["hired"] == "no").to_numpy()
    threshold = result.tables["threshold_verdicts"].to_pylist()[0]["threshold"]
    assert (scores[negative] >= threshold).mean() <= rate
    # Any lower score would let more through.
    below = scores[scores < threshold].max()
    assert (scores[negative] >= below).mean() > rate
    (note,) = (note for note in result.manifest.notes if "count as yes" in note)
    assert ("too few" in note) == (negative.sum() * rate < 10)


def test_of_equal_scores_none_is_left_when_all_are_too_many():
    assert threshold_at_rate(np.ones(50), np.ones(100), 0.01) > 1.0


@pytest.mark.parametrize("threshold", [{"false_positive_rate": 0.0}, {"rate": 0.1}, "fpr"])
def test_other_rates_are_refused(threshold):
    with pytest.raises(ConfigError, match="threshold"):
        run(threshold=threshold)


def test_one_call_takes_a_rate():
    options = {"target": "hired", "score": "score", "groups": "sex", "positive": "yes"}
    result = equipoise.audit(TABLE, threshold="fpr=0.1", **options)
    section = result.manifest.resolved["models"]["score"]
    assert section["threshold"] == {"false_positive_rate": 0.1}
    for threshold in ("fpr=low", "half"):
        with pytest.raises(ConfigError) as caught:
            equipoise.audit(TABLE, threshold=threshold, **options)
        assert caught.value.key == "threshold"

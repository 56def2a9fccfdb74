"""Scores of a binary target: the threshold, curves over it, and where verdicts hold."""

import numpy as np
import polars as pl
import pytest

from equipoise import audits
from equipoise.audits.labels.predictions.config import CostConfig
from equipoise.audits.labels.predictions.scores import choose_threshold
from equipoise.core import ConfigError, DataError, Verdict
from equipoise.metrics.registry import metrics_of
from equipoise.metrics.scores import ScoreMetric

RNG = np.random.default_rng(4)
N = 1200
GROUP, POSITIVE = RNG.choice(["f", "m"], N), RNG.random(N) < 0.4
# Women of the class have lower scores.
SCORE = np.round(RNG.normal(size=N) + POSITIVE * (1.6 - 0.9 * (GROUP == "f")), 2)
TABLE = pl.DataFrame({
    "id": [f"i{k:04d}" for k in range(N)], "sex": GROUP,
    "hired": np.where(POSITIVE, "yes", "no"), "score": SCORE,
})  # fmt: skip


def run(table=TABLE, positive="yes", metrics=None, **model):
    data = {"table": table, "id": "id", "target": "hired", "groups": ["sex"]}
    data |= {} if positive is None else {"positive": positive}
    values = {
        "audit": "predictions", "data": data, "resampling": {"permutations": 300},
        "models": {"m": {"table": table, "score": "score"} | model},
        "metrics": metrics or {},
    }  # fmt: skip
    return audits.run(audits.parse_config(values))


def loss(threshold, rule, costs):
    called = threshold <= SCORE
    false, missed = (called & ~POSITIVE).sum(), (~called & POSITIVE).sum()
    return {
        "balanced_accuracy": false / (~POSITIVE).sum() + missed / POSITIVE.sum(),
        "prevalence": abs(int(called.sum()) - int(POSITIVE.sum())),
        "cost": costs.false_positive * false + costs.false_negative * missed,
    }[rule]


@pytest.mark.parametrize("rule", ["balanced_accuracy", "prevalence", "cost"])
def test_a_rule_chooses_the_best_of_all_scores(rule):
    costs = CostConfig(false_positive=1.0, false_negative=5.0)
    chosen = choose_threshold(SCORE, POSITIVE, rule, costs)
    losses = {score: loss(score, rule, costs) for score in np.unique(SCORE).tolist()}
    best = min(losses.values())
    assert chosen == max(score for score, value in losses.items() if value == pytest.approx(best))


def test_a_score_with_a_threshold_gives_the_findings_of_labels():
    labelled = TABLE.with_columns(
        pred=pl.when(pl.col("score") >= 0.5).then(pl.lit("yes")).otherwise(pl.lit("no"))
    )
    labels_alone = dict.fromkeys(metrics_of(ScoreMetric, "predictions"), False)
    scored = run(threshold=0.5, metrics=labels_alone)
    plain = run(labelled, score=None, prediction="pred")
    assert repr(scored.findings) == repr(plain.findings)
    assert any("0.500 or more count as yes" in note for note in scored.manifest.notes)
    assert "threshold_curves" not in plain.tables


def test_curves_are_the_rates_of_each_group():
    result = run(threshold=0.5, costs={"false_positive": 2})
    curves = pl.DataFrame(result.tables["threshold_curves"])
    for threshold in curves["threshold"].unique().sort().to_list()[:-5:25]:
        for group in "fm":
            in_group, called = group == GROUP, threshold <= SCORE
            expected = {
                "selection_rate": called[in_group].mean(),
                "true_positive_rate": called[in_group & POSITIVE].mean(),
                "false_positive_rate": called[in_group & ~POSITIVE].mean(),
                "precision": POSITIVE[in_group & called].mean(),
                "cost": (
                    2 * (called & ~POSITIVE)[in_group] + (~called & POSITIVE)[in_group]
                ).mean(),
            }
            rows = curves.filter(threshold=threshold, group=group)
            values = dict(rows.select("metric", "value").iter_rows())
            assert values == pytest.approx(expected)
            rates = rows.filter(pl.col("metric") != "cost")
            assert ((rates["low"] <= rates["value"]) & (rates["value"] <= rates["high"])).all()


def test_a_planted_difference_holds_around_the_threshold_and_not_at_its_ends():
    rows = run().tables["threshold_verdicts"].to_pylist()
    verdicts = {row["metric"]: row for row in rows}
    recall = verdicts["true_positive_rate"]
    assert recall["verdict"] == Verdict.DISPARITY
    assert recall["least"] < recall["low"] < recall["threshold"] < recall["high"] < recall["most"]
    assert verdicts["false_positive_rate"]["verdict"] != Verdict.DISPARITY


def test_rows_without_a_score_are_unanswered():
    holes = TABLE.with_columns(
        score=pl.when(pl.int_range(pl.len()) % 10 == 0).then(None).otherwise("score")
    )
    result = run(holes)
    states = {row["state"]: row["count"] for row in result.tables["states"].to_pylist()}
    assert states == {"answered": N - N // 10, "missing": N // 10}


@pytest.mark.parametrize(
    ("model", "error", "key"),
    [
        ({"prediction": "hired"}, ConfigError, "score"),
        ({"score": None, "prediction": "hired", "threshold": 0.5}, ConfigError, "threshold"),
        ({"threshold": "best"}, ConfigError, "threshold"),
        ({"positive": None}, ConfigError, "data.positive"),
        ({"score": "sex"}, DataError, "sex"),
    ],
)
def test_incomplete_score_settings_are_refused(model, error, key):
    with pytest.raises(error, match=key):
        run(**model)

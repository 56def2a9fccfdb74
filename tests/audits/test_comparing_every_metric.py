"""Comparisons of runs of every kind that measure one metric, or a few."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml

import equipoise
from audits.comparisons import compare, images, pick, run
from equipoise import audits
from equipoise.core import Family, Verdict
from equipoise.discovery import KINDS
from equipoise.metrics.spec import SPECS

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
QUICK = {"replicates": 20, "permutations": 40}


def scored(n=160):
    rng = np.random.default_rng(5)
    truth, place = rng.integers(0, 2, n), rng.integers(0, 2, n)
    signal = 0.3 * truth + rng.random(n) * 0.6
    return pl.DataFrame({
        "id": [f"i{index}" for index in range(n)], "y": truth.astype(str),
        "g": np.array(["a", "b"])[place], "good": signal,
        "bad": np.where(place == 1, rng.random(n), signal),
    })  # fmt: skip


def config_of(kind, metrics):
    """A config with two models, or a model that is compared with itself, and a list of metrics."""
    if kind != "predictions":
        values = yaml.safe_load((EXAMPLES / kind / "audit.yaml").read_text())
    else:
        rows = scored()
        values = {
            "audit": "predictions",
            "data": {"table": rows, "id": "id", "target": "y", "groups": ["g"], "positive": "1"},
            "models": {name: {"table": rows, "score": name} for name in ("bad", "good")},
        }
    values["resampling"] = values.get("resampling", {}) | QUICK
    values.pop("gate", None)
    return values | ({"metrics": metrics} if metrics else {})


def result_of(kind, metrics=()):
    config = audits.parse_config(config_of(kind, metrics))
    return audits.run(config, base=EXAMPLES / kind)


def check_named(compared, metric):
    """A metric has findings, or a note that says why it has none."""
    label = SPECS[metric].label
    notes = [note for note in compared.manifest.notes if note.startswith("Not compared")]
    has_findings = metric in {finding.metric for finding in compared.findings}
    assert has_findings or any(label in note for note in notes), metric


@pytest.mark.parametrize("kind", KINDS)
def test_runs_of_any_kind_with_one_metric_are_compared(kind):
    whole = result_of(kind)
    names = sorted({finding.metric for finding in whole.findings if finding.model})
    assert names
    section = type(audits.parse_config(config_of(kind, ())).metrics)
    listed = [name for name in names if name in {*section.switched(), *section.parts()}]
    for metric in {listed[0], listed[len(listed) // 2], listed[-1]} if listed else ():
        result = result_of(kind, [metric])
        if metric in {finding.metric for finding in result.findings if finding.model}:
            check_named(equipoise.compare(result, result_of(kind, [metric])), metric)


@pytest.mark.parametrize("metrics", [
    ["auroc"], ["precision"], ["selection_rate"], ["false_negative_rate"], ["average_odds"],
    ["auroc", "true_positive_rate"], ["expected_calibration_error", "brier_score"],
])  # fmt: skip
def test_any_list_of_metrics_of_predictions_is_compared(metrics):
    compared = equipoise.compare(result_of("predictions", metrics))
    assert {finding.metric for finding in compared.findings} >= {*metrics}
    for metric in metrics:
        check_named(compared, metric)


def test_scores_have_the_numbers_of_both_models_and_the_reason():
    result = result_of("predictions", ["auroc"])
    compared = equipoise.compare(result)
    values = {
        finding.model: finding.value for finding in result.findings
        if finding.metric == "auroc" and not finding.groups
    }  # fmt: skip
    (finding,) = (f for f in compared.findings if f.metric == "auroc" and not f.groups)
    assert finding.value == values["good"] - values["bad"] > 0
    assert finding.parameters["worse"] == "bad"
    assert finding.family is Family.DESCRIPTIVE
    assert "scores" in finding.reason
    (note,) = (n for n in compared.manifest.notes if n.startswith("Not compared: AUROC"))
    assert "scores" in note


def precision_at_equal_prevalence(frame, model, kind, place):
    """Precision for a kind in a place that had the prevalence of all rows, counted row by row."""
    rows, prevalence = frame.filter(place=place), (frame["kind"] == kind).mean()
    is_kind = rows["kind"] == kind
    predicted = (rows[model] == kind).cast(float)
    right, wrong = predicted.filter(is_kind).mean(), predicted.filter(~is_kind).mean()
    return prevalence * right / (prevalence * right + (1 - prevalence) * wrong)


def test_a_rate_is_compared_in_each_group_with_paired_draws():
    frame = images()
    compared = compare(run(frame, "poor", "good", metrics=["precision"]))
    changes = [f for f in compared.findings if f.group]
    assert {(f.subject, f.group) for f in changes} == {
        (kind, place) for kind in ("cat", "dog", "owl") for place in "xy"
    }
    for finding in changes:
        first, second = (
            precision_at_equal_prevalence(frame, model, finding.subject, finding.group)
            for model in ("poor", "good")
        )
        assert finding.value == pytest.approx(second - first, abs=1e-12)
        assert finding.ci_low <= finding.value <= finding.ci_high
        assert finding.verdict is Verdict.DISPARITY
        assert finding.parameters["worse"] == "poor"
    gap = pick(compared, "precision", aggregate="difference")
    assert gap.family is Family.DESCRIPTIVE
    assert "each group" in gap.reason


def test_the_changes_of_a_rate_are_quiet_where_models_are_alike():
    """Of 60 pairs of equally good models, about 5 % of the changes over all rows are found."""
    rng = np.random.default_rng(0)
    n_found = n_tested = 0
    for _ in range(60):
        frame = images(240, kinds=2, seed=int(rng.integers(1 << 30)))
        truth = frame["kind"].to_numpy()
        other = np.where(truth == "cat", "dog", "cat")
        alike = frame.with_columns(
            pl.Series(name, np.where(rng.random(240) < 0.2, other, truth)) for name in "ab"
        )
        compared = compare(run(alike, "a", "b", metrics=["precision"]))
        tested = [f for f in compared.findings if not f.groups]
        n_tested += len(tested)
        n_found += sum(f.p_value < 0.05 for f in tested)
    assert n_tested == 120
    assert 0 < n_found <= 14


def test_rates_that_another_number_compares_are_not_repeated():
    compared = compare(run(images(), "poor", "good"))
    metrics = {finding.metric for finding in compared.findings}
    assert "precision" in metrics
    assert not metrics & {"false_negative_rate", "true_negative_rate", "average_odds"}
    assert "false_negative_rate" in {
        f.metric for f in compare(run(images(), "poor", "good", metrics=["fnr"])).findings
    }

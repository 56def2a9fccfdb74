"""The section `metrics:`: names, aliases, lists and options of every kind."""

from pathlib import Path

import pytest

from equipoise.audits import load_config, parse_config
from equipoise.core import Aggregate, ConfigError
from equipoise.core.finding import Fact

VALUES = {
    "audit": "predictions",
    "data": {"table": "t.csv", "id": "id", "target": "kind", "groups": ["g"]},
    "models": {"m": {"table": "t.csv", "prediction": "pred"}},
}
RATE = "true_positive_rate"


def switches(metrics, **changes):
    config = parse_config(VALUES | {"metrics": metrics} | changes)
    again = parse_config(VALUES | changes | {"metrics": config.resolved["metrics"]})
    assert again.metrics == config.metrics
    return config.metrics


@pytest.mark.parametrize("name", ["tpr", "recall", "Recall", RATE])
def test_a_metric_is_switched_by_any_of_its_names(name):
    off = switches({name: False})
    assert [*off.model_extra] == [RATE]
    for aggregate in (Aggregate.VALUE, Aggregate.DIFFERENCE, Aggregate.AGAINST_REST):
        assert not off.reports(Fact(RATE, aggregate))
    assert off.reports(Fact("false_positive_rate", Aggregate.VALUE))


@pytest.mark.parametrize("name", ["equal_opportunity", "recall_difference"])
def test_a_name_of_a_comparison_switches_this_alone(name):
    off = switches({name: False})
    assert not off.reports(Fact(RATE, Aggregate.DIFFERENCE))
    assert off.reports(Fact(RATE, Aggregate.VALUE))


def test_an_alias_sets_options():
    assert switches({"eo": {"aggregate": "mean"}}).measured["equalized_odds"] == {
        "aggregate": "mean"
    }
    assert switches({"ece": {"bins": 5}}).measured["expected_calibration_error"] == {"bins": 5}


def test_a_list_switches_the_others_off_and_keeps_its_order():
    alone = switches(["skewsize", "dp", "auroc"])
    assert [*alone.measured] == ["skewsize", "demographic_parity", "auroc"]
    assert alone.measured["skewsize"]["min_expected"] == 5.0
    assert switches({"only": ["dp"], "auroc": False}).measured == {"demographic_parity": {}}


def test_a_list_may_have_some_of_the_rates():
    alone = switches(["tpr", "accuracy"])
    assert [*alone.measured] == ["rates", "accuracy"]
    assert alone.reports(Fact(RATE, Aggregate.DIFFERENCE))
    assert not alone.reports(Fact("false_positive_rate", Aggregate.DIFFERENCE))
    everything = switches(["tpr", "rates"])
    assert everything.reports(Fact("false_positive_rate", Aggregate.DIFFERENCE))


@pytest.mark.parametrize(
    ("metrics", "expected"),
    [
        ({"tprr": False}, "metrics.tprr: .* did you mean 'tpr'"),
        ({"max_skew": False}, "metrics.max_skew: .* audits of retrieval, counterfactuals"),
        ({"scores": False}, "metrics.scores: 'scores' isn't a metric of audits of predictions"),
        ({"tpr": True, "recall": False}, "metrics.recall: .* given already"),
        ({"tpr": {"k": 3}}, "metrics.tpr: unknown option 'k'"),
        ({"ece": {"bins": "x"}}, "metrics.ece: bins: given 'x'"),
        ({"dp": 3}, "metrics.dp: given 3; expected true, false or"),
        (
            ["skewsiz"],
            r"metrics\[0\]: 'skewsiz' isn't a metric of audits of predictions; .* 'skewsize'",
        ),
        (["cramers_v"], r"metrics\[0\]: 'cramers_v' has no switch of its own here\. Allowed: "),
        (["tpr", RATE], "metrics: .* more than once"),
        ([], "metrics.only: an empty list"),
        ({"only": 3}, "metrics.only: given 3"),
        (["dp", "demographic_parity"], "metrics: .* more than once"),
    ],
)
def test_a_wrong_name_or_option_is_one_error_that_names_its_key(metrics, expected):
    with pytest.raises(ConfigError, match=f"configuration: {expected}"):
        switches(metrics)


def test_an_error_names_the_line(tmp_path):
    text = (
        "audit: predictions\n"
        "data: {table: t.csv, id: id, target: kind, groups: [g]}\n"
        "models: {m: {table: t.csv, prediction: pred}}\n"
        "metrics:\n"
        "  hit_rate: false\n"
        "  tprr: false\n"
        "gate:\n"
        "  - {metric: fprr, max: 0.1}\n"
    )
    path = Path(tmp_path / "c.yaml")
    path.write_text(text)
    with pytest.raises(ConfigError, match="line 6: metrics.tprr: .*\n.*line 8: gate.0..metric: "):
        load_config(path)


@pytest.mark.parametrize(
    ("rule", "metric", "of"),
    [
        ({"metric": "fpr"}, "false_positive_rate", None),
        ({"metric": "equal_opportunity"}, "true_positive_rate", "difference"),
        ({"metric": "worst_group_accuracy"}, "accuracy", "worst_group"),
        ({"metric": "acc", "of": "difference"}, "accuracy", "difference"),
    ],
)
def test_a_gate_takes_names_of_the_field(rule, metric, of):
    config = parse_config(VALUES | {"gate": [rule | {"max": 0.1}]})
    (parsed,) = config.gate
    assert (parsed.metric, parsed.of) == (metric, of)
    (resolved,) = config.resolved["gate"]
    assert (resolved["metric"], resolved["of"]) == (metric, of)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"gate": [{"metric": "equal_opportunity", "of": "value", "max": 1}]}, r"gate\[0\]\.of: "),
        ({"gate": [{"metric": "disparate_impact", "min": 0.8}]}, r"gate\[0\]\.metric: .*no ratio"),
        ({"gate": [{"metric": "tpr", "of": "ratio", "min": 0.8}]}, r"gate\[0\]\.of: .*no ratio"),
        ({"metrics": {"disparate_impact": False}}, r"metrics\.disparate_impact: .*no ratio"),
        ({"testing": {"thresholds": {"recall_ratio": 1}}}, r"thresholds\.recall_ratio: .*no ratio"),
        ({"testing": {"thresholds": {"tprr": 1}}}, r"testing\.thresholds\.tprr: .* 'tpr'"),
        ({"testing": {"thresholds": {"tpr": 1, RATE: 2}}}, "testing.thresholds.true_positive_"),
    ],
)
def test_a_wrong_name_elsewhere_is_one_error_that_names_its_key(changes, expected):
    with pytest.raises(ConfigError, match=expected):
        parse_config(VALUES | changes)


def test_thresholds_take_names_of_the_field():
    testing = parse_config(VALUES | {"testing": {"thresholds": {"tpr": 0.2}}}).testing
    assert testing.thresholds == {RATE: 0.2}


@pytest.mark.parametrize(("name", "suggests"), [("rmse", False), ("maes", True)])
def test_only_a_name_of_about_the_same_length_is_suggested(name, suggests):
    values = VALUES | {"audit": "regression", "metrics": {name: False}}
    with pytest.raises(ConfigError) as caught:
        parse_config(values)
    assert ("did you mean" in str(caught.value)) is suggests

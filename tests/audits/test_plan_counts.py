"""A plan says how often chance breaches a rule of a gate."""

import numpy as np
import polars as pl
import pytest

from equipoise import audits, report


def gated(rules, **data):
    """Return a config of two models that are right for 85 % of twelve groups, with gate rules."""
    rng, n = np.random.default_rng(3), 1200
    label = rng.integers(0, 2, n)
    wrong = {name: rng.random(n) < 0.15 for name in ("first", "second")}
    predicted = {name: np.where(flip, 1 - label, label) for name, flip in wrong.items()}
    group = [f"g{place}" for place in np.arange(n) % 12]
    table = pl.DataFrame({
        "id": range(n), "scene": np.arange(n) // 2, "g": group, "label": label, **predicted,
    })  # fmt: skip
    return audits.parse_config({
        "audit": "predictions",
        "data": {"table": table, "id": "id", "target": "label", "groups": ["g"], **data},
        "models": {name: {"table": table, "prediction": name} for name in predicted},
        "gate": rules, "resampling": {"replicates": 100, "permutations": 999},
    })  # fmt: skip


@pytest.mark.parametrize("data", [{}, {"unit": "scene"}])
def test_a_plan_says_how_often_chance_breaches_a_gate_as_the_check_does(data):
    worst = {"metric": "accuracy", "of": "worst_group", "min": 0.8}
    config = gated([worst, {"metric": "accuracy", "of": "difference", "max": 0.2}], **data)
    rules = [rule.as_rule for rule in config.gate]
    checks = report.gate(audits.run(config), rules).checks
    planned = audits.plan(config).values["gate"]
    assert [(row["rule"], row["model"], row["groups"]) for row in planned] == [
        (str(check.rule), check.finding.model, "g") for check in checks
    ]
    assert [row["breached_by_chance"] for row in planned] == pytest.approx(
        [check.alarms for check in checks]
    )
    assert planned[0]["breached_by_chance"] > 0.3


def test_a_plan_says_nothing_of_rules_on_no_extreme():
    rules = [
        {"metric": "accuracy", "min": 0.8}, {"verdict": "disparity"},
        {"metric": "accuracy", "of": "worst_group", "min": 0.8, "on": "whole"},
        {"worse_than": "runs/last"},
    ]  # fmt: skip
    assert "gate" not in audits.plan(gated(rules)).values

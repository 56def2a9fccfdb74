"""A plan counts the tests that the run then has, of every model."""

import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from equipoise import audits, report
from equipoise.discovery import KINDS
from equipoise.report.appendix import trust
from equipoise.report.text import plural

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(params=[*KINDS, "review"])
def example(request, tmp_path):
    """Return the config of an example; `examples/review` makes its data first."""
    if request.param == "predictions":
        return EXAMPLES / "predictions.yaml"
    if request.param != "review":
        return EXAMPLES / request.param / "audit.yaml"
    folder = shutil.copytree(EXAMPLES / "review", tmp_path / "review")
    subprocess.run([sys.executable, str(folder / "make.py")], check=True)
    return folder / "audit.yaml"


def few_draws(config):
    """Return a config whose run has as many tests, and takes few draws for each."""
    few = {"replicates": 20, "permutations": 99}
    return config.model_copy(update={"resampling": config.resampling.model_copy(update=few)})


def test_plan_and_run_of_an_example_have_the_same_tests(example):
    config = few_draws(audits.load_config(example))
    planned = audits.plan(config, base=example.parent)
    result = audits.run(config, base=example.parent)
    tested = Counter(finding.model for finding in result.findings if finding.tested)
    assert Counter(planned.tests_by_model) == tested
    assert planned.tests == max(tested.values()) > 0
    assert plural(planned.tests, "test") in trust(result)


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

"""Ratios of rare errors: quiet where groups are alike, and loud where one has ten times as many."""

import numpy as np
import polars as pl
import pytest
from scipy import stats

from equipoise.audits import parse_config, run
from equipoise.core import Aggregate, Verdict

pytestmark = pytest.mark.slow

WORLDS, PLANTED, ALPHA, ROWS = 200, 20, 0.05, 4000


def audit(false_positive_rates, seed):
    """Return the result of a binary model with these false positive rates, one for each group."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(len(false_positive_rates)), ROWS)
    positive = rng.random(len(group)) < 0.3
    rate = np.asarray(false_positive_rates)[group]
    wrong = rng.random(len(group)) < np.where(positive, 0.01, rate)
    table = pl.DataFrame({
        "id": np.arange(len(group)),
        "group": group.astype(str),
        "truth": positive.astype(int),
        "prediction": (positive ^ wrong).astype(int),
    })  # fmt: skip
    return run(parse_config({
        "audit": "predictions",
        "data": {"table": table, "id": "id", "target": "truth", "groups": ["group"],
                 "positive": "1"},
        "models": {"m": {"table": table, "prediction": "prediction"}},
        "resampling": {"replicates": 20, "permutations": 999, "seed": seed},
    }))  # fmt: skip


def false_positives(result):
    (finding,) = [
        finding
        for finding in result.findings
        if (finding.metric, finding.aggregate) == ("false_positive_rate", Aggregate.DIFFERENCE)
    ]
    return finding


@pytest.mark.slow(whole=True)
@pytest.mark.parametrize("groups", [2, 4])
def test_a_fair_model_with_rare_errors_is_quiet(groups):
    disparities, departures = 0, 0
    for seed in range(WORLDS):
        result = audit([0.01] * groups, seed)
        disparities += any(
            conclusion.verdict is Verdict.DISPARITY for conclusion in result.conclusions
        )
        ratio = false_positives(result).ratio
        departures += ratio is not None and ratio.low > 1.0
    most = stats.binom.isf(0.001, WORLDS, ALPHA)
    assert disparities <= most
    # The interval holds for the pair of groups that was picked.
    assert departures <= most


@pytest.mark.parametrize("rates", [(0.002, 0.02), (0.002, 0.002, 0.02, 0.002)])
def test_ten_times_as_many_errors_are_found_and_lead(rates):
    found = 0
    for seed in range(PLANTED):
        result = audit(rates, seed)
        (first, *_) = result.conclusions
        finding = false_positives(result)
        found += (first.verdict, first.metric, first.group) == (
            Verdict.DISPARITY, "false_positive_rate", f"group {np.argmax(rates)}",
        ) and finding.ratio.low <= 10.0 <= finding.ratio.high  # fmt: skip
    assert found >= 0.9 * PLANTED

"""Synthetic comparisons: models whose faults are known, on the same images."""

from functools import cache

import numpy as np
import polars as pl
import pytest
from scipy.stats import permutation_test, ttest_rel

from equipoise import audits

KINDS = np.array(["cat", "dog", "owl"])


def images(n=600, kinds=3, seed=0):
    """Images with the answers of a good model, of a poor one, and of one that fails place y."""
    rng = np.random.default_rng(seed)
    truth, place = rng.integers(0, kinds, n), rng.integers(0, 2, n)
    other = (truth + 1 + rng.integers(0, max(kinds - 1, 1), n)) % kinds
    wrong = {
        "good": rng.random(n) < 0.05,
        "poor": rng.random(n) < 0.35,
        "skewed": rng.random(n) < np.where(place == 1, 0.4, 0.0),
    }
    answers = {name: KINDS[np.where(mask, other, truth)] for name, mask in wrong.items()}
    return pl.DataFrame(
        {
            "id": [f"i{index:04d}" for index in range(n)],
            "kind": KINDS[truth],
            "place": np.array(["x", "y"])[place],
            "scene": [f"s{index // 4}" for index in range(n)],
            **answers,
        }
    )


def run(frame, *models, **more):
    """A run as `compare` reads it: its configuration and its predictions."""
    data = {"table": frame, "id": "id", "target": "kind", "groups": ["place"]}
    values = {
        "audit": "predictions",
        "data": data | more.pop("data", {}),
        "models": {name: {"table": frame, "prediction": name} for name in models},
        "resampling": {"replicates": 400, "seed": 3} | more.pop("resampling", {}),
    }
    config = audits.parse_config(values | more)
    return config, audits.prepare(config).data


def compare(*runs):
    return audits.compare(dict(zip("abc", runs, strict=False)))


@cache
def usual():
    return compare(run(images(), "poor", "good"))


def pick(result, metric, subject="", groups="place", aggregate=None):
    is_overall = metric == "accuracy" and aggregate is None
    place = (metric, subject, "" if is_overall else groups)
    findings = [
        finding
        for finding in result.findings
        if (finding.metric, finding.subject, finding.groups) == place
        and aggregate in (None, finding.aggregate)
    ]
    assert len(findings) == 1, place
    return findings[0]


def check_paired(finding, before, after):
    """Compare a paired difference, its interval and its p-value with scipy's."""
    assert finding.value == pytest.approx((after - before).mean(), abs=1e-12)
    test = ttest_rel(after, before).confidence_interval()
    np.testing.assert_allclose([finding.ci_low, finding.ci_high], [test.low, test.high], rtol=1e-12)
    flips = permutation_test(
        (after - before,), lambda x, axis: x.mean(axis=axis), permutation_type="samples",
        vectorized=True, n_resamples=np.inf,
    )  # fmt: skip
    assert finding.p_value == pytest.approx(flips.pvalue, abs=1e-12)


def share_right(frame, model):
    """The model's accuracy, counted row by row."""
    right = frame[model].to_numpy() == frame["kind"].to_numpy()
    return float(right.mean())

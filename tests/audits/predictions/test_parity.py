"""Parity against the labels: a report starts with parity only where the model adds to it."""

import numpy as np
import pyarrow as pa
import pytest

from equipoise import audits
from equipoise.report.summary import summarize

LEADS = ("demographic_parity", "selection_rate")


def rows(base_rates, right, n=800, seed=0):
    """Rows of groups with their own base rates, and a model that is right at given rates."""
    rng = np.random.default_rng(seed)
    groups = np.repeat([*base_rates], n)
    truth = rng.random(len(groups)) < np.repeat([*base_rates.values()], n)
    known = rng.random(len(groups)) < np.where(truth, right, 1.0)
    said = np.where(known, truth, ~truth)
    return groups, truth, said


def findings(groups, truth, said, units=None, **config):
    words = np.array(["no", "yes"])
    table = pa.table({
        "id": [*map(str, range(len(groups)))], "group": groups, "truth": words[truth.astype(int)],
        "said": words[said.astype(int)],
    })  # fmt: skip
    data = {"id": "id", "target": "truth", "groups": ["group"]}
    if units is not None:
        table = table.append_column("unit", pa.array([*map(str, units)]))
        data["unit"] = "unit"
    settled = {
        "audit": "predictions",
        "data": {"table": table, **data},
        "models": {"m": {"table": table, "prediction": "said"}},
        "resampling": {"replicates": 50, "permutations": 199},
    }
    return audits.run(audits.parse_config(settled | config))


def parity(result):
    places = [("demographic_parity", "difference"), ("selection_rate", "against_rest")]
    return [one for one in result.findings if (one.metric, one.aggregate) in places]


BASE = {"a": 0.3, "b": 0.5, "c": 0.7}


def test_a_model_that_repeats_the_labels_is_not_blamed_for_them():
    result = findings(*rows(BASE, right=1.0))
    found = parity(result)
    assert any(one.verdict == "disparity" for one in found)
    assert not any(one.leads for one in found)
    (statement,) = summarize(result, LEADS).statements
    assert statement.finding is None or statement.finding.metric not in LEADS


def test_parity_leads_where_it_is_required():
    found = parity(findings(*rows(BASE, right=1.0), parity="required"))
    assert all(one.leads for one in found)


def test_parity_leads_where_the_model_adds_to_the_labels():
    groups, truth, said = rows(BASE, right=0.95)
    rng = np.random.default_rng(1)
    said |= (groups == "c") & (rng.random(len(groups)) < 0.4)
    leading = {one.group for one in parity(findings(groups, truth, said)) if one.leads}
    assert "c" in leading


def test_the_added_difference_is_paired_over_rows():
    groups, truth, said = rows({"a": 0.3, "b": 0.5, "c": 0.6}, right=0.8)
    result = findings(groups, truth, said)
    own = next(
        one for one in parity(result) if (one.group, one.subject) == ("a", "no") and one.tested
    )
    known = own.parameters
    inside = groups == "a"
    label = truth[inside].mean() - truth[~inside].mean()
    shown = said[inside].mean() - said[~inside].mean()
    assert known["labels"] == pytest.approx(-label)
    assert known["added"] == pytest.approx(abs(shown) - abs(label))
    apart = said.astype(float) - truth
    rng = np.random.default_rng(2)
    drawn = []
    for _ in range(1000):
        some = rng.integers(0, len(groups), len(groups))
        mine = groups[some] == "a"
        drawn.append(apart[some][~mine].mean() - apart[some][mine].mean())
    low, high = np.quantile(drawn, [0.025, 0.975])
    assert known["added_low"] == pytest.approx(low, abs=0.012)
    assert known["added_high"] == pytest.approx(high, abs=0.012)


def test_units_that_differ_in_size_have_a_jackknife_interval():
    rng = np.random.default_rng(5)
    sizes = rng.integers(1, 9, 300)
    units = np.repeat(np.arange(300), sizes)
    groups = np.repeat(rng.choice(["a", "b", "c"], 300), sizes)
    truth = rng.random(len(units)) < np.where(groups == "a", 0.35, 0.6)
    # The rows of a unit err together.
    wrong = np.repeat(rng.random(300) < 0.25, sizes) & (rng.random(len(units)) < 0.9)
    said = np.where(wrong, groups != "a", truth)
    found = parity(findings(groups, truth, said, units))
    own = next(one for one in found if (one.group, one.subject) == ("a", "no") and one.tested)
    known = own.parameters

    def value(kept):
        mine = (groups == "a") & kept
        p, t = (one[mine].mean() - one[(groups != "a") & kept].mean() for one in (said, truth))
        return abs(p) - abs(t)

    left = np.array([value(units != unit) for unit in range(300)])
    half = 1.96 * np.sqrt(299 / 300 * ((left - left.mean()) ** 2).sum())
    assert known["added"] == pytest.approx(value(units >= 0))
    assert known["added_high"] - known["added"] == pytest.approx(half, rel=0.05)

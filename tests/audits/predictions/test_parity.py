"""Parity against the labels: a report starts with parity only where the model adds to it."""

import numpy as np
import pyarrow as pa
import pytest

from equipoise import audits
from equipoise.metrics.labels.comparisons import OTHERS
from equipoise.report.summary import summarize

LEADS = ("demographic_parity", "selection_rate")


def rows(base_rates, right, n=800, seed=0):
    """Rows of groups with their own base rates, and a model that is right at given rates."""
    rng = np.random.default_rng(seed)
    groups = np.repeat([*base_rates], n)
    truth = rng.random(len(groups)) < np.repeat([*base_rates.values()], n)
    correct = rng.random(len(groups)) < np.where(truth, right, 1.0)
    predicted = np.where(correct, truth, ~truth)
    return groups, truth, predicted


def findings(groups, truth, predicted, units=None, **config):
    words = np.array(["no", "yes"])
    table = pa.table({
        "id": [*map(str, range(len(groups)))], "group": groups, "truth": words[truth.astype(int)],
        "said": words[predicted.astype(int)],
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
    return [finding for finding in result.findings if (finding.metric, finding.aggregate) in places]


BASE = {"a": 0.3, "b": 0.5, "c": 0.7}


def test_a_model_that_repeats_the_labels_is_not_blamed_for_them():
    result = findings(*rows(BASE, right=1.0))
    gaps = parity(result)
    assert any(finding.verdict == "disparity" for finding in gaps)
    assert not any(finding.leads for finding in gaps)
    (statement,) = summarize(result, LEADS).statements
    assert statement.finding is None or statement.finding.metric not in LEADS


def test_parity_leads_where_it_is_required():
    gaps = parity(findings(*rows(BASE, right=1.0), parity="required"))
    assert all(finding.leads for finding in gaps)


def test_parity_leads_where_the_model_adds_to_the_labels():
    groups, truth, predicted = rows(BASE, right=0.95)
    rng = np.random.default_rng(1)
    predicted |= (groups == "c") & (rng.random(len(groups)) < 0.4)
    leading = {
        finding.group for finding in parity(findings(groups, truth, predicted)) if finding.leads
    }
    assert "c" in leading


@pytest.mark.parametrize(("shares", "other"), [({"a": 0.3, "b": 0.7}, None), (BASE, OTHERS)])
def test_two_groups_are_each_others_rest(shares, other):
    texts = [gap.beside for gap in parity(findings(*rows(shares, right=0.9)))]
    assert all(texts)
    assert all((OTHERS in text) is (other == OTHERS) for text in texts)


def test_what_a_model_adds_has_a_sign():
    rows_of = {"a": (48, 61), "b": (52, 50)}
    groups = np.repeat([*rows_of], 1000)
    truth, predicted = (
        np.concatenate([np.arange(1000) < 10 * n for n in shares])
        for shares in zip(*rows_of.values(), strict=True)
    )
    (finding,) = (
        candidate
        for candidate in parity(findings(groups, truth, predicted, parity="added"))
        if (candidate.metric, candidate.subject) == ("demographic_parity", "yes")
    )
    parameters = finding.parameters
    assert parameters["labels"] == pytest.approx(-0.04)
    assert parameters["predictions"] == pytest.approx(0.11)
    assert parameters["added"] == pytest.approx(0.15)
    assert finding.leads


def test_the_added_difference_is_paired_over_rows():
    groups, truth, predicted = rows({"a": 0.3, "b": 0.5, "c": 0.6}, right=0.8)
    result = findings(groups, truth, predicted)
    finding = next(
        candidate
        for candidate in parity(result)
        if (candidate.group, candidate.subject) == ("a", "no") and candidate.tested
    )
    parameters = finding.parameters
    inside = groups == "a"
    label = truth[inside].mean() - truth[~inside].mean()
    predicted_gap = predicted[inside].mean() - predicted[~inside].mean()
    assert parameters["labels"] == pytest.approx(-label)
    assert parameters["added"] == pytest.approx(abs(predicted_gap) - abs(label))
    errors = predicted.astype(float) - truth
    rng = np.random.default_rng(2)
    replicates = []
    for _ in range(1000):
        sample = rng.integers(0, len(groups), len(groups))
        mine = groups[sample] == "a"
        replicates.append(errors[sample][~mine].mean() - errors[sample][mine].mean())
    low, high = np.quantile(replicates, [0.025, 0.975])
    assert parameters["added_low"] == pytest.approx(low, abs=0.012)
    assert parameters["added_high"] == pytest.approx(high, abs=0.012)


def test_units_that_differ_in_size_have_a_jackknife_interval():
    rng = np.random.default_rng(5)
    sizes = rng.integers(1, 9, 300)
    units = np.repeat(np.arange(300), sizes)
    groups = np.repeat(rng.choice(["a", "b", "c"], 300), sizes)
    truth = rng.random(len(units)) < np.where(groups == "a", 0.35, 0.6)
    # The rows of a unit err together.
    wrong = np.repeat(rng.random(300) < 0.25, sizes) & (rng.random(len(units)) < 0.9)
    predicted = np.where(wrong, groups != "a", truth)
    gaps = parity(findings(groups, truth, predicted, units))
    finding = next(
        candidate
        for candidate in gaps
        if (candidate.group, candidate.subject) == ("a", "no") and candidate.tested
    )
    parameters = finding.parameters

    def value(mask):
        mine = (groups == "a") & mask
        p, t = (
            classes[mine].mean() - classes[(groups != "a") & mask].mean()
            for classes in (predicted, truth)
        )
        return abs(p) - abs(t)

    jackknife = np.array([value(units != unit) for unit in range(300)])
    half = 1.96 * np.sqrt(299 / 300 * ((jackknife - jackknife.mean()) ** 2).sum())
    assert parameters["added"] == pytest.approx(value(units >= 0))
    assert parameters["added_high"] - parameters["added"] == pytest.approx(half, rel=0.05)

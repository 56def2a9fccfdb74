"""Each group against all others: an independent count, validity, and what a rare group hides."""

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from equipoise import audits
from equipoise.core import Family, Verdict
from equipoise.metrics import count
from equipoise.metrics.labels.comparisons import AgainstRest
from equipoise.metrics.labels.rates import rates_of_classes
from equipoise.stats.intervals import wilson


def test_shares_intervals_and_p_follow_from_the_table_of_a_group_and_the_rest():
    successes, n = np.array([30.0, 80.0, 5.0]), np.array([100.0, 160.0, 40.0])
    comparison = AgainstRest.of(successes, n)
    for place in range(3):
        group_counts = [successes[place], n[place] - successes[place]]
        rest_counts = [successes.sum() - successes[place], n.sum() - n[place]]
        rest_counts[1] -= rest_counts[0]
        tails = [
            stats.fisher_exact([group_counts, rest_counts], side)[1] for side in ("less", "greater")
        ]
        assert comparison.p_value[place] == pytest.approx(min(1.0, 2 * min(tails)))
        value = group_counts[0] / sum(group_counts) - rest_counts[0] / sum(rest_counts)
        assert comparison.difference.value[place] == pytest.approx(value)
        # Newcombe's method 10, from the Wilson intervals of both shares.
        low = value - np.hypot(
            group_counts[0] / sum(group_counts) - wilson(group_counts[0], sum(group_counts))[0],
            comparison.rest.high[place] - comparison.rest.value[place],
        )
        assert comparison.difference.low[place] == pytest.approx(low)


def test_chance_is_what_rows_that_exchange_their_groups_show():
    rng = np.random.default_rng(0)
    groups, right = np.repeat([0, 1, 2], (60, 200, 140)), rng.random(400) < 0.4
    n = np.bincount(groups)
    coverage = []
    for _ in range(4000):
        hits = np.bincount(rng.permutation(groups), weights=right)
        coverage.append(hits / n - (right.sum() - hits) / (400 - n))
    comparison = AgainstRest.of(np.bincount(groups, weights=right), n.astype(float))
    assert np.quantile(coverage, 0.975, axis=0) == pytest.approx(comparison.chance_high, abs=0.012)
    assert np.quantile(coverage, 0.025, axis=0) == pytest.approx(comparison.chance_low, abs=0.012)


@pytest.mark.parametrize("within", [True, False])
def test_numbers_beyond_chance_have_a_small_p(within):
    rng = np.random.default_rng(3)
    outside, p = [], []
    for _ in range(60):
        groups = rng.integers(0, 3, 300)
        truth = rng.integers(0, 2, 300)
        predicted = (rng.random(300) < 0.3 + 0.1 * (groups == 0)).astype(int)
        counts = count(truth, predicted, groups)
        if within:
            rate = rates_of_classes()["false_positive_rate"]
            comparison = AgainstRest.within_classes(counts, rate)
        else:
            n = np.bincount(groups).astype(float)
            comparison = AgainstRest.of(np.bincount(groups, weights=predicted), n)
        value = comparison.difference.value
        inside = (comparison.chance_low - 1e-12 <= value) & (
            value <= comparison.chance_high + 1e-12
        )
        outside.append(~inside)
        p.append(comparison.p_value)
    assert np.array_equal(np.array(outside), np.array(p) <= 0.05)
    assert 0 < np.mean(outside) < 1


def test_a_group_without_rows_or_alone_has_no_numbers():
    comparison = AgainstRest.of(np.array([3.0, 0.0]), np.array([9.0, 0.0]))
    assert np.isnan(comparison.p_value).all()
    assert np.isnan(comparison.difference.value).all()


def people(sizes, rates, seed=0):
    """Rows of groups that get the label yes at their own rates."""
    rng = np.random.default_rng(seed)
    groups = np.repeat([*sizes], [*sizes.values()])
    rates = np.repeat([*rates.values()], [*sizes.values()])
    predicted = np.where(rng.random(len(groups)) < rates, "yes", "no")
    truth = np.where(rng.random(len(groups)) < 0.5, "yes", "no")
    return pa.table({
        "id": [*map(str, range(len(groups)))], "group": groups, "truth": truth, "said": predicted,
    })  # fmt: skip


def audited(rows, **data):
    section = {"table": rows, "id": "id", "target": "truth", "groups": ["group"]}
    config = {
        "audit": "predictions",
        "data": section | data,
        "models": {"model": {"table": rows, "prediction": "said"}},
        "resampling": {"replicates": 50, "permutations": 199},
    }
    return audits.run(audits.parse_config(config)).findings


WITHIN = ("false_positive_rate", "precision", "negative_predictive_value")


def leaves(findings, metric="selection_rate"):
    return {
        finding.group: finding
        for finding in findings
        if finding.metric == metric and finding.aggregate == "against_rest" and finding.tested
    }


def test_a_rare_group_hides_no_difference_between_large_ones():
    sizes = {"women": 1890, "men": 2041, "few": 37}
    findings = leaves(audited(people(sizes, {"women": 0.42, "men": 0.51, "few": 0.46})))
    assert {*findings} == {*sizes}
    assert findings["women"].verdict is findings["men"].verdict is Verdict.DISPARITY
    assert findings["women"].value * findings["men"].value < 0
    assert findings["few"].verdict is Verdict.INCONCLUSIVE
    assert findings["women"].family is Family.LEAF
    assert "women" in findings["women"].direction


def test_two_groups_have_no_leaf_and_small_groups_take_no_part():
    two = {"women": 400, "men": 400}
    rates = {"women": 0.4, "men": 0.5}
    assert not leaves(audited(people(two, rates)))
    small = audited(people(two | {"few": 9}, rates | {"few": 0.9}))
    assert not leaves(small)


def test_rows_that_repeat_by_unit_count_as_fewer():
    rows = people({"a": 300, "b": 300, "c": 300}, {"a": 0.4, "b": 0.5, "c": 0.5})
    all_rows = pa.concat_tables([rows] * 4)
    ids = [*map(str, range(len(all_rows)))]
    units = pa.array([*map(str, [*range(len(rows))] * 4)])
    repeated = all_rows.set_column(0, "id", pa.array(ids)).append_column("unit", units)
    once = leaves(audited(rows))
    four = leaves(audited(repeated, unit="unit"))
    for group, finding in once.items():
        assert four[group].value == pytest.approx(finding.value)
        width, wide = finding.ci_high - finding.ci_low, four[group].ci_high - four[group].ci_low
        assert wide == pytest.approx(width, rel=0.4)
        assert "design effect" in four[group].method
        assert "design effect" not in finding.method


def test_rates_within_classes_are_valid_where_groups_differ_in_their_classes():
    rng, groups = np.random.default_rng(1), np.repeat([0, 1, 2], (300, 300, 90))
    mixes = np.array([[0.2, 0.5, 0.7], [0.2, 0.3, 0.9]]).T
    truth = (rng.random(690)[:, None] > np.column_stack([mixes[groups, 0], mixes[groups, 1]])).sum(
        1
    )
    # Class 1 is taken for class 2 far more often than class 0 is.
    wrong = np.array([[0.9, 0.98], [0.1, 0.7], [0.1, 0.2]])[truth]
    p_values = {name: [] for name in WITHIN}
    for _ in range(300):
        n_right = (rng.random(690)[:, None] > wrong).sum(axis=1)
        counts = count(truth, n_right, groups)
        for rate in (rate for rate in rates_of_classes().values() if rate.name in WITHIN):
            p_values[rate.name].append(AgainstRest.within_classes(counts, rate).p_value)
    for name, p in p_values.items():
        assert (np.array(p) <= 0.05).mean() <= 0.06, name


def test_every_rate_of_many_classes_is_compared_within_the_limit():
    rng = np.random.default_rng(2)
    groups, truth = rng.integers(0, 3, 19_800), rng.integers(0, 110, 19_800)
    wrong = rng.random(19_800) < np.where(groups == 2, 0.4, 0.2)
    predicted = np.where(wrong, rng.integers(0, 110, 19_800), truth)
    ids = [*map(str, range(19_800))]
    findings = audited(pa.table({"id": ids, "group": groups, "truth": truth, "said": predicted}))
    for metric in (*WITHIN, "true_positive_rate", "selection_rate"):
        group_findings = [
            finding
            for finding in findings
            if finding.metric == metric and finding.aggregate == "against_rest" and finding.subject
        ]
        assert len(group_findings) == 60, metric


def test_exact_p_values_are_valid():
    rng = np.random.default_rng(1)
    n = np.array([40.0, 25.0, 200.0])
    hits = np.stack([rng.binomial(n.astype(int), 0.3) for _ in range(2000)]).astype(float)
    p = AgainstRest.of(hits, np.broadcast_to(n, hits.shape)).p_value
    for level in (0.01, 0.05, 0.2):
        assert ((p <= level).mean(axis=0) <= level + 0.012).all()

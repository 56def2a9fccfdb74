"""Areas under the curve and p-values of units, beside scipy's and by enumeration."""

import numpy as np
import pytest
from scipy import stats

from equipoise.core import InputError
from equipoise.mitigate import selectivity


def of_scipy(values, member):
    peer = stats.mannwhitneyu(values[member], values[~member], method="asymptotic")
    return peer.statistic / (member.sum() * (~member).sum()), peer.pvalue


@pytest.mark.parametrize("ties", [False, True])
def test_it_is_the_statistic_of_mann_and_whitney(ties):
    rng = np.random.default_rng(0)
    values = rng.standard_normal((60, 7))
    values[:20, 2] += 1.0
    if ties:
        values = np.round(values, 0)
    member = np.arange(60) < 20
    responses = selectivity(values, np.where(member, "a", "b"))
    auroc, p = of_scipy(values, member)
    np.testing.assert_allclose(responses.auroc, [auroc, 1.0 - auroc])
    np.testing.assert_allclose(responses.p_value, [p, p])
    assert responses.groups == ("a", "b")
    assert responses.strongest()[0] == (2, 0)


def test_few_images_without_ties_have_an_exact_p():
    values = np.array([[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]])
    responses = selectivity(values, ["a", "a", "a", "b", "b", "b"])
    assert responses.auroc[0, 0] == 0.0
    assert responses.p_value[0, 0] == pytest.approx(2 / 20)


def test_q_values_count_every_unit_and_group():
    rng = np.random.default_rng(1)
    groups = rng.choice(["a", "b", "c"], 300)
    values = rng.standard_normal((300, 400))
    responses = selectivity(values, groups)
    assert responses.auroc.shape == (3, 400)
    assert (responses.q_value <= 0.05).sum() <= 2
    assert 0.03 < (responses.p_value <= 0.05).mean() < 0.07
    values[:, 5] += groups == "c"
    again = selectivity(values, groups)
    assert again.q_value[2, 5] < 1e-6
    assert again.strongest()[0] == (5, 2)


def test_a_unit_of_the_subject_is_not_one_of_the_group_within_subjects():
    rng = np.random.default_rng(2)
    subject = rng.integers(2, size=400)
    group = np.where(rng.random(400) < 0.2 + 0.6 * subject, "men", "women")
    values = np.column_stack([3.0 * subject, (group == "men") + 0.0])
    values += rng.standard_normal(values.shape)
    plain = selectivity(values, group)
    within = selectivity(values, group, within=subject)
    assert plain.q_value[0, 0] < 1e-6
    assert within.q_value[0, 0] > 0.05
    assert within.q_value[0, 1] < 1e-6
    assert within.auroc[0, 1] == pytest.approx(stats.norm.cdf(1 / np.sqrt(2)), abs=0.06)


def test_a_stratum_with_one_group_takes_no_part():
    values = np.array([[1.0], [2.0], [9.0], [8.0]])
    responses = selectivity(values, ["a", "b", "a", "a"], within=["x", "x", "y", "y"])
    assert responses.auroc[0, 0] == 0.0
    nothing = selectivity(values, ["a", "b", "a", "b"], within=["x", "y", "x", "y"])
    assert np.isnan(nothing.auroc).all()
    assert np.isnan(nothing.q_value).all()


@pytest.mark.parametrize(
    ("values", "groups", "more"),
    [
        (np.ones((3, 2)), ["a", "b"], {}),
        (np.ones(3), ["a", "b", "a"], {}),
        (np.full((2, 1), np.nan), ["a", "b"], {}),
        (np.ones((2, 1)), ["a", "a"], {}),
        (np.ones((2, 1)), ["a", "b"], {"within": ["x"]}),
    ],
)
def test_arguments_are_checked(values, groups, more):
    with pytest.raises(InputError):
        selectivity(values, groups, **more)

"""A number of sets of vectors as a metric."""

import math

import numpy as np
import pytest

from equipoise import metrics as m
from equipoise.core import InputError
from equipoise.metrics import registry
from equipoise.stats import Bootstrap

RNG = np.random.default_rng(5)
FEW = Bootstrap(60, 200, resolution=0.02)


def cloud(n, axis):
    return RNG.normal(size=(n, 6)) + 2 * np.eye(6)[axis]


@pytest.fixture
def declared():
    names = []

    def declare(statistic, name="a_number_of_sets", **fields):
        names.append(name)
        text = dict.fromkeys(("definition", "direction", "reference"), "a test")
        spec = m.MetricSpec(name=name, kinds=("associations",), range=(-4.0, 4.0), **text, **fields)
        return m.metric(spec, form=m.VectorMetric)(statistic)

    yield declare
    for name in names:
        registry.remove(name)


def mean_score(targets, a, b):
    return (targets @ a.T).mean() - (targets @ b.T).mean()


def mean_contrast(x, y, a, b):
    return mean_score(x, a, b) - mean_score(y, a, b)


def test_it_agrees_with_the_metric_of_the_same_number(declared):
    sets = cloud(30, 0), cloud(20, 0), cloud(25, 1)
    form = declared(mean_score, harm="either")(*sets, resampling=Bootstrap(400, 400))
    known = m.association_score(*sets, resampling=Bootstrap(400, 400))
    assert form.value == pytest.approx(known.value)
    assert form.p_value == pytest.approx(known.p_value, abs=0.01)
    low, high = form.interval().low, form.interval().high
    assert (low, high) == pytest.approx((known.interval().low, known.interval().high), abs=0.06)
    assert form.chance.low < 0 < form.chance.high < form.value


def test_members_of_two_targets_exchange(declared):
    metric = declared(mean_contrast, harm="either")
    a, b = cloud(8, 0), cloud(8, 1)
    different = metric(cloud(12, 0), cloud(12, 1), a, b, resampling=FEW)
    same = metric(cloud(12, 0), cloud(12, 0), a, b, resampling=FEW)
    assert different.p_value < 0.02 < same.p_value
    assert metric.spec.targets == "two"


def test_units_are_drawn_and_exchanged_together(declared):
    metric = declared(mean_score, harm="either")
    first, second = cloud(4, 0), cloud(4, 0)
    repeated = np.repeat(first, 10, axis=0), np.repeat(second, 10, axis=0)
    units = {name: [f"{name} {i // 10}" for i in range(40)] for name in "ab"}
    alone = metric(cloud(20, 0), *repeated, resampling=FEW)
    together = metric(cloud(20, 0), *repeated, units=units, resampling=FEW)
    assert together.p_value > alone.p_value
    widths = [e.interval().high - e.interval().low for e in (alone, together)]
    assert widths[1] > 1.5 * widths[0]


def test_sets_that_are_fixed_do_not_vary(declared):
    metric = declared(mean_score)
    sets = cloud(5, 0), cloud(5, 0), cloud(5, 1)
    all_fixed = metric(*sets, fixed=("targets", "a", "b"), resampling=FEW)
    assert math.isnan(all_fixed.interval().low)
    assert metric(*sets, resampling=None).chance is None


@pytest.mark.parametrize("number", [np.ones(2), math.inf])
def test_a_function_returns_a_finite_number(declared, number):
    with pytest.raises(InputError, match="a_number_of_sets"):
        declared(lambda targets, a, b: number)(*(cloud(5, 0) for _ in range(3)))


def test_a_number_that_is_not_defined_has_a_reason(declared):
    estimate = declared(lambda targets, a, b: math.nan)(*(cloud(5, 0) for _ in range(3)))
    assert not estimate.estimable
    assert estimate.reason


def test_the_sets_are_the_parameters(declared):
    with pytest.raises(InputError, match="targets, a, b"):
        declared(mean_score)(cloud(5, 0), cloud(5, 0))
    with pytest.raises(InputError, match="only"):
        declared(lambda only: 0.0, "another")(cloud(5, 0))

"""A metric has no value outside its range: its interval would be cut off."""

import numpy as np
import pytest

from equipoise import metrics
from equipoise.audits import config as audit_config
from equipoise.audits.findings import UncorrectedFinding, conclude
from equipoise.core import Aggregate, PluginError
from equipoise.metrics import registry
from equipoise.metrics.spec import make_estimate, spec_for, spec_of
from report.synthetic import finding

RNG = np.random.default_rng(5)
N = 90
GROUPS = RNG.choice(["a", "b"], N)
TRUTH, SCORES = RNG.integers(0, 2, N), RNG.random(N)
SETS = RNG.normal(size=(3, 8, 4))


@pytest.fixture
def declare():
    """Register a metric of a form; it is removed in the end."""
    names = []

    def registered(form, statistic, name="doubled", **fields):
        text = {"definition": "Twice a number.", "direction": "Either.", "reference": "a test"}
        spec = metrics.MetricSpec(
            name=name, kinds=("predictions",), harm="either", **text, **fields
        )
        metric = metrics.metric(spec, form=form)(statistic)
        names.append(name)
        return metric

    yield registered
    for name in names:
        registry.remove(name)


FORMS = {
    "counts": (metrics.CountMetric, lambda counts, tables: np.full(len(tables), -2.0)),
    "scores": (metrics.ScoreMetric, lambda y, score, weights: np.full(weights.shape[1], -2.0)),
    "numbers": (metrics.NumberMetric, lambda y_true, y_pred: np.full(len(y_true), -2.0)),
    "rows": (metrics.RowMetric, lambda rows: np.full(len(rows), -2.0)),
    "rankings": (metrics.RankingMetric, lambda ranked: np.full(ranked.codes.shape[:2], -2.0)),
    "vectors": (metrics.VectorMetric, lambda targets, a, b: -2.0),
    "estimates": (None, lambda: make_estimate("doubled", -2.0, {"a": 1}, "none")),
}
CALLS = {
    "counts": (TRUTH, TRUTH, GROUPS),
    "scores": (TRUTH, SCORES, GROUPS),
    "numbers": (SCORES, SCORES, GROUPS),
    "rows": (SCORES, GROUPS),
    "rankings": (SCORES, GROUPS),
    "vectors": SETS,
    "estimates": (),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_value_outside_the_range_is_refused(declare, form):
    options = {"k": 5} if form == "rankings" else {}
    with pytest.raises(PluginError) as refused:
        declare(*FORMS[form])(*CALLS[form], **options)
    assert (refused.value.noun, refused.value.name) == ("metric", "doubled")
    assert "`range`" in str(refused.value)


@pytest.mark.parametrize("form", FORMS)
def test_a_value_in_the_declared_range_has_an_interval_around_it(declare, form):
    options = {"k": 5} if form == "rankings" else {}
    estimate = declare(*FORMS[form], range=(-2.0, 2.0))(*CALLS[form], **options)
    assert estimate.value == -2.0
    ends = estimate.interval()
    assert np.isnan(ends.low) or ends.low <= -2.0 <= ends.high


def test_replicates_outside_the_range_are_refused_where_the_value_is_inside(declare):
    def signed_gap(counts, tables):
        shares = tables[:, counts.prediction == 1].sum(axis=1) / tables.sum(axis=1)
        return shares[:, 0] - shares[:, 1]

    groups, labels = np.repeat(["a", "b"], 50), np.tile([0, 1], 50)
    gap = declare(metrics.CountMetric, signed_gap)
    assert gap(labels, labels, groups, resampling=None).value == 0.0
    with pytest.raises(PluginError) as refused:
        gap(labels, labels, groups)
    assert refused.value.name == "doubled"


def test_a_finding_outside_the_range_has_no_verdict():
    beyond = finding(metric="accuracy_difference", value=-1.5, ci_low=-1.6, ci_high=-1.4)
    with pytest.raises(PluginError) as refused:
        conclude([UncorrectedFinding(beyond, "either")], audit_config.TestingConfig())
    assert refused.value.name == "accuracy_difference"


def test_comparisons_have_the_range_that_follows_from_that_of_the_level(declare):
    declare(None, len, rate=True, range=(-2.0, 3.0))
    ranges = {aggregate: spec_for("doubled", aggregate).range for aggregate in Aggregate}
    assert ranges == {
        Aggregate.VALUE: (-2.0, 3.0),
        Aggregate.DIFFERENCE: (0.0, 5.0),
        Aggregate.AGAINST_REST: (-5.0, 5.0),
        Aggregate.RATIO: (0.0, float("inf")),
        Aggregate.WORST_GROUP: (-2.0, 3.0),
    }
    assert spec_for("doubled", None, "", "before").range == (-5.0, 5.0)


def test_a_range_with_a_condition_limits_neither_values_nor_intervals(declare):
    declare(None, len, range=(0.0, 1.0), range_note="for cosines")
    spec = spec_of("doubled")
    spec.check_values([-3.0, 3.0])
    assert spec.possible(-3.0, 3.0) == (-3.0, 3.0)


def test_rounding_and_missing_values_are_inside_every_range(declare):
    declare(None, len)
    spec_of("doubled").check_values([-1e-12, 1.0 + 1e-12, float("nan")])
    with pytest.raises(PluginError):
        spec_of("doubled").check_values([0.5, 1.0 + 1e-6])

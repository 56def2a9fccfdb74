"""A rate is a share: denominators count each row at most once, numerators rows of these."""

from functools import partial

import numpy as np
import pytest

from equipoise import metrics
from equipoise.core import PluginError
from equipoise.metrics import registry
from equipoise.metrics.labels.rate import Rate

TWO = ("rows of the class", "rows of others")


def declare(terms, **options):
    """Register a rate and remove it."""
    spec = metrics.MetricSpec(
        name="a_rate", kinds=("predictions",), definition="A rate.", direction="Lower: worse.",
        harm="lower", reference="a test",
    )  # fmt: skip
    rate = metrics.metric(spec, form=partial(metrics.RateMetric.of, **options))(terms)
    registry.remove("a_rate")
    return rate


@pytest.mark.parametrize(
    ("terms", "counts"),
    [
        (lambda c: (2 * c["both"], c["truth"] + c["prediction"]), "2 and 2"),  # F1
        (lambda c: (5 * c["both"], 4 * c["truth"] + c["prediction"]), "5 and 5"),  # F2
        (lambda c: (c["truth"], c["both"]), "1 and 0"),
        (lambda c: (c["both"], 2 * c["truth"]), "1 and 2"),
        (lambda c: (-c["both"], c["truth"]), "-1 and 1"),
        (lambda c: (c["wrong"], c["truth"]), "1 and 0"),
    ],
)
def test_terms_that_count_rows_otherwise_are_refused(terms, counts):
    with pytest.raises(PluginError) as refused:
        declare(terms)
    assert (refused.value.noun, refused.value.name) == ("metric", "a_rate")
    assert f"counts {counts} in" in str(refused.value)
    assert "CountMetric" in str(refused.value)


def test_two_shares_of_the_same_rows_are_refused():
    def shares(cells):
        return (cells["both"], cells["truth"]), (cells["both"], cells["prediction"])

    with pytest.raises(PluginError) as refused:
        declare(shares, bases=TWO)
    assert "CountMetric" in str(refused.value)


@pytest.mark.parametrize(
    "terms",
    [
        lambda c: (np.minimum(c["both"], 3), c["truth"]),
        lambda c: (c["both"] ** 2, c["truth"]),
        lambda c: (c["both"], np.ones_like(c["truth"])),
    ],
)
def test_terms_that_are_no_sums_of_cells_are_refused(terms):
    with pytest.raises(PluginError) as refused:
        declare(terms)
    assert "CountMetric" in str(refused.value)


@pytest.mark.parametrize(
    "terms",
    [
        lambda c: (c["boths"], c["truth"]),
        lambda c: c["both"],
        lambda c: (c["both"], 1),
        lambda c: 0.5,
        lambda c: None,
        lambda c: (c["both"], c["truth"], c["total"]),
        lambda c: ((c["both"], c["truth"]), (c["wrong"], c["others"])),
    ],
)
def test_what_is_no_pair_of_cells_is_refused_with_the_cells(terms):
    with pytest.raises(PluginError) as refused:
        declare(terms)
    assert refused.value.name == "a_rate"
    assert "both, truth, prediction, total" in str(refused.value)


@pytest.mark.parametrize(
    ("terms", "options"),
    [
        (lambda c: (c["both"], c["truth"] + c["prediction"] - c["both"]), {}),  # Jaccard index
        (lambda c: (c["right"], c["total"]), {}),
        (lambda c: (c["wrong"], c["prediction"]), {}),
        (lambda c: ((c["both"], c["truth"]), (c["wrong"], c["others"])), {"bases": TWO}),
    ],
)
def test_shares_of_separate_rows_are_rates(terms, options):
    assert isinstance(declare(terms, **options).rate, Rate)


def test_a_form_with_options_is_named_without_them():
    def share(cells):
        return cells["both"], cells["truth"]

    spec = metrics.SPECS["true_positive_rate"]
    named = metrics.MetricSpec(
        name="a_rate", kinds=spec.kinds, definition="A rate.", direction="Lower.", harm="lower",
        reference="a test",
    )  # fmt: skip
    rate = metrics.metric(named, form=metrics.RateMetric)(share)
    registry.remove("a_rate")
    assert isinstance(rate.rate, Rate)

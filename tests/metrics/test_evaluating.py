"""Several metrics at once: by name, alias or variant, each as it is by itself."""

import numpy as np
import pytest

from equipoise import metrics as m
from equipoise.core import InputError
from equipoise.metrics import registry
from equipoise.stats import Bootstrap
from equipoise.stats.draws import TableSampler

RNG = np.random.default_rng(5)
GROUP = RNG.choice(["women", "men"], 240)
AGE = RNG.integers(20, 60, 240).astype(float)
ESTIMATED = AGE + np.where(GROUP == "women", 3.0, 0.0) + RNG.normal(size=240)
LABEL = RNG.choice(["a", "b"], 240)
PREDICTED = np.where(RNG.random(240) < 0.8, LABEL, "a")
QUICK = Bootstrap(100, 100, resolution=0.5)


def numbers(estimate):
    return estimate.value, estimate.interval(), estimate.chance, estimate.p_value, estimate.n


@pytest.fixture
def shares():
    """Two metrics of count tables."""

    def register(name, aliases=()):
        record = m.MetricSpec(
            name=name, kinds=("predictions",), definition="How often.", direction="Higher: more.",
            reference="an example", aliases=aliases,
        )  # fmt: skip

        @m.metric(record, form=m.CountMetric)
        def share(counts, tables, *, of: int = 1):
            right = tables[:, counts.truth == counts.prediction].sum(axis=(1, 2))
            return right / tables.sum(axis=(1, 2)) / of

        return share

    yield register("share_right", ("hits", "Right-Share")), register("share_right_too")
    for name in ("share_right", "share_right_too"):
        registry.remove(name)


def test_each_estimate_is_that_of_its_function(shares):
    metric, other = shares
    result = m.evaluate(
        LABEL, PREDICTED, GROUP, ["hits", "right share", "share_right_too"], resampling=QUICK, rng=4
    )
    assert [*result] == ["hits", "right share", "share_right_too"]
    for name, function in zip(result, (metric, metric, other), strict=True):
        expected = function(LABEL, PREDICTED, GROUP, resampling=QUICK, rng=4)
        assert numbers(result[name]) == numbers(expected)


def test_a_metric_of_counts_has_options(shares):
    metric, _ = shares
    whole = metric(LABEL, PREDICTED, GROUP, resampling=None)
    half = m.evaluate(LABEL, PREDICTED, GROUP, {"hits": {"of": 2}}, resampling=None)["hits"]
    assert half.value == pytest.approx(whole.value / 2)
    assert (whole.params, half.params) == ({"of": 1}, {"of": 2})
    with pytest.raises(InputError):
        metric(LABEL, PREDICTED, GROUP, off=2)


def test_tables_are_drawn_once_for_all(shares, monkeypatch):
    metric, other = shares
    blocks = []
    bootstrap = TableSampler.bootstrap
    monkeypatch.setattr(
        TableSampler, "bootstrap", lambda *rows: blocks.append(rows) or bootstrap(*rows)
    )
    m.evaluate(LABEL, PREDICTED, GROUP, ["share_right", "share_right_too"], resampling=QUICK)
    assert len(blocks) == 1
    metric(LABEL, PREDICTED, GROUP, resampling=QUICK)
    other(LABEL, PREDICTED, GROUP, resampling=QUICK)
    assert len(blocks) == 3


def test_a_name_may_say_how_groups_compare_and_have_options():
    names = {"mean_error_difference": {}, "share_within_tolerance": {"tolerance": 2.0}}
    result = m.evaluate(AGE, ESTIMATED, GROUP, names, resampling=QUICK)
    expected = (
        m.mean_error.difference(AGE, ESTIMATED, GROUP, resampling=QUICK),
        m.share_within_tolerance(AGE, ESTIMATED, GROUP, tolerance=2.0, resampling=QUICK),
    )
    assert [*map(numbers, result.values())] == [*map(numbers, expected)]


def test_frames_have_each_metric_and_each_group_once():
    result = m.evaluate(AGE, ESTIMATED, GROUP, ["mean_error", "mean_error_difference"])
    assert result.overall["metric"].to_list() == [*result]
    assert result.overall["value"].to_list() == [estimate.value for estimate in result.values()]
    assert result.overall["p_value"].to_list() == [None, result["mean_error_difference"].p_value]
    assert result.by_group.select("metric", "group").rows() == [
        ("mean_error", "men"),
        ("mean_error", "women"),
    ]
    assert dict(result.by_group.select("group", "n").iter_rows()) == result["mean_error"].n
    assert [mark.value for mark in result.plot().marks] == result.by_group["value"].to_list()
    assert result["mean_error"].__repr__() in repr(result)
    assert "<svg" in result._repr_html_()


@pytest.mark.parametrize(
    ("truth", "metrics"),
    [
        (AGE, "ndkl"),
        (AGE, "nonsense"),
        (LABEL, "mean_error"),
        (AGE, {"share_within_tolerance": {"tolerant": 1}}),
    ],
)
def test_what_does_not_fit_is_refused(truth, metrics):
    with pytest.raises(InputError):
        m.evaluate(truth, ESTIMATED, GROUP, metrics)


@pytest.fixture
def of_class():
    """Calls of a metric of one class that takes no weights."""
    calls = []
    record = m.MetricSpec(
        name="share_of_class", kinds=("predictions",), definition="How often.", of_class=True,
        direction="Higher: more.", reference="an example",
    )  # fmt: skip

    @m.metric(record)
    def share_of_class(y_true, y_pred, groups, *, positive, units=None):
        calls.append((positive, units))
        return m.accuracy(y_true, y_pred, groups, resampling=None)

    yield calls
    registry.remove("share_of_class")


def test_a_metric_gets_the_keywords_that_it_takes(of_class, shares):
    units = [*range(240)]
    names = ["share_of_class", "share_right"]
    m.evaluate(LABEL, PREDICTED, GROUP, names, positive="a", units=units, resampling=QUICK)
    assert of_class == [("a", units)]
    for options in ({}, {"positive": "a", "weights": np.ones((240, 1))}):
        with pytest.raises(InputError):
            m.evaluate(LABEL, PREDICTED, GROUP, names, resampling=QUICK, **options)


def test_numbers_with_decimals_are_no_labels(shares):
    with pytest.raises(InputError) as refusal:
        m.evaluate(AGE + 0.5, ESTIMATED, GROUP, "share_right")
    assert "mean_error" in str(refusal.value)
    with pytest.raises(InputError) as refusal:
        m.evaluate(LABEL, PREDICTED, GROUP, "mean_error")
    assert "share_right_too" in str(refusal.value)


@pytest.mark.parametrize(
    "name",
    [name for form in (m.RateMetric, m.NumberMetric) for name in registry.metrics_of(form)],
)
@pytest.mark.parametrize("comparison", ["difference", "ratio", "worst_group"])
def test_a_comparison_by_name_is_that_of_the_metric(name, comparison):
    metric = m.function_of(name)
    method = getattr(metric, comparison, None)
    numbers = isinstance(metric, m.NumberMetric)
    rows = ([20.0, 30.5, 40.0] * 80, [21.0, 30.0, 44.0] * 80) if numbers else (LABEL, PREDICTED)
    options = {"positive": "a"} if metric.spec.of_class else {}
    try:
        expected = method(*rows, GROUP, resampling=None, **options)
    except (TypeError, InputError):
        return  # Of other data, or of none of these comparisons.
    (estimate,) = m.evaluate(
        *rows, GROUP, [f"{name}.{comparison}"], resampling=None, **options
    ).values()
    assert estimate.value == pytest.approx(expected.value, nan_ok=True)
    assert estimate.compared_to == expected.compared_to


@pytest.mark.parametrize(
    ("alias", "metric", "comparison"),
    [
        ("equal opportunity", m.true_positive_rate, "difference"),
        ("predictive equality", m.false_positive_rate, "difference"),
        ("average odds difference", m.average_odds, "difference"),
        ("aod", m.average_odds, "difference"),
        ("disparate impact", m.selection_rate, "ratio"),
        ("tpr", m.true_positive_rate, "__call__"),
    ],
)
def test_an_alias_of_a_comparison_is_one(alias, metric, comparison):
    expected = getattr(metric, comparison)(LABEL, PREDICTED, GROUP, positive="a", resampling=None)
    (estimate,) = m.evaluate(LABEL, PREDICTED, GROUP, alias, positive="a", resampling=None).values()
    assert (estimate.value, estimate.aggregate) == (expected.value, expected.aggregate)


@pytest.mark.parametrize("metrics", [None, 5, [None], [3], {"accuracy": True}, {"accuracy": ["k"]}])
def test_metrics_that_are_no_names_are_refused(metrics):
    with pytest.raises(InputError, match="metrics"):
        m.evaluate(LABEL, PREDICTED, GROUP, metrics)


@pytest.mark.parametrize("metric", [m.accuracy, m.true_positive_rate, m.precision])
def test_a_rate_of_true_classes_needs_them(metric):
    with pytest.raises(InputError, match="y_true"):
        metric(None, PREDICTED, GROUP)
    with pytest.raises(InputError, match="typo"):
        metric(LABEL, PREDICTED, GROUP, typo=1)


def test_a_group_may_be_a_number():
    place = [int(gender == "women") for gender in GROUP]
    against = m.accuracy.against_rest(LABEL, PREDICTED, place, group=1, resampling=None)
    assert against.value == m.accuracy.against_rest(
        LABEL, PREDICTED, GROUP, group="women", resampling=None
    ).value  # fmt: skip


def test_a_metrics_own_name_is_no_other_quantity():
    gap = m.evaluate(LABEL, PREDICTED, GROUP, ["accuracy.difference"], resampling=None)
    expected = m.accuracy.difference(LABEL, PREDICTED, GROUP, resampling=None)
    assert gap["accuracy.difference"].value == expected.value > 0
    with pytest.raises(InputError, match=r"write 'accuracy\.difference'"):
        m.evaluate(LABEL, PREDICTED, GROUP, ["accuracy_difference"])

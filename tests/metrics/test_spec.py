"""Every metric has one whole record."""

from dataclasses import FrozenInstanceError, fields
from string import Formatter
from typing import get_args

import pytest

from equipoise.audits.associations.config import MeasureConfig
from equipoise.core import Aggregate, InputError, PluginError
from equipoise.discovery import KINDS
from equipoise.metrics import SPECS, metric
from equipoise.metrics.record_checks import MEASUREMENT_KEYS, check_record
from equipoise.metrics.registry import remove
from equipoise.metrics.spec import MetricSpec, Unit, spec_for, spec_of

OPTIONAL = {
    "compared_to",
    "range_note",
    "null_kind",
    "neutral",
    "fold",
    "mirror",
    "within_class",
    "rest_metric",
    "symbol",
    "verdict_title",
    "general_words",
    "basis",
    "observed_in",
    "observed_clause",
    "state",
    "profile",
    "clause",
    "pair_clause",
    "errors",
    "error_clause",
    "expectation",
    "group_label",
    "group_metric",
    "of_whole",
    "threshold",
    "threshold_reason",
    "bands",
    "errata",
}


def whole(spec):
    return [name for name in (f.name for f in fields(spec)) if name not in OPTIONAL]


@pytest.mark.parametrize("spec", SPECS.values(), ids=lambda spec: spec.name)
def test_records_are_whole(spec):
    assert SPECS[spec.name] is spec
    check_record(spec, "equipoise", SPECS.has)
    assert all(str(getattr(spec, name)).strip() for name in whole(spec))
    assert spec.unit in get_args(Unit)
    assert {*spec.kinds} <= {*KINDS, "mitigation", "review"}
    assert spec.direction.lower().startswith(f"{spec.harm or 'neither'}:")
    assert (spec.threshold is None) == (not spec.threshold_reason)
    assert spec.range[0] < spec.range[1]
    assert spec.range_text
    assert spec.bounds is None or spec.bounds[0] < spec.bounds[1]
    assert [*spec.bands.values()] == sorted(spec.bands.values())
    names = ("title", "model", "subject", "value", "size", "groups", "direction", "about", "of")
    fields = dict.fromkeys((*names, "k", "group", "share", "n", "expected"), "")
    assert spec.sentence.format(**fields | {"value": "1"})
    assert bool(spec.clause.format(**fields)) == bool(spec.clause)
    assert bool(spec.error_clause.format(**fields)) == bool(spec.errors)
    assert {"share", "group"} <= {name for _, name, *_ in Formatter().parse(spec.part)}
    assert "debias" not in spec.definition.lower()


def test_a_record_cannot_be_changed_or_registered_twice():
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'threshold'"):
        SPECS["phi"].threshold = 0.0
    with pytest.raises(InputError, match="'phi'"):
        metric(SPECS["phi"])(lambda: None)


@pytest.fixture
def label_change():
    """A metric of a user whose name ends as a change did."""
    record = MetricSpec(
        name="label_change", title="Labels that changed", kinds=("predictions",), unit="share",
        definition="Share of labels that changed.", direction="Higher: more labels changed.",
        reference="tests", threshold=0.3, threshold_reason="a test", range=(0.0, 0.5),
    )  # fmt: skip
    metric(record)(lambda: None)
    yield record
    remove(record.name)


def test_a_name_is_looked_up_as_it_is(label_change):
    assert spec_of("label_change") is label_change
    assert spec_of("amplification_change").range == (-2.0, 2.0)
    assert spec_of("accuracy_change").kinds == ()


def test_records_of_comparisons_are_derived_from_typed_fields(label_change):
    change = spec_for("label_change", None, "", "before")
    assert (change.name, change.title) == ("label_change", "Change of labels that changed")
    gap = spec_for("true_positive_rate", Aggregate.DIFFERENCE)
    assert (gap.name, gap.unit, gap.harm) == ("true_positive_rate", "points", "higher")
    assert spec_for("accuracy", Aggregate.DIFFERENCE, "overall").title == "Accuracy gap to all rows"
    assert spec_for("accuracy", Aggregate.AGAINST_REST).harm == "either"
    assert spec_for("label_change", Aggregate.DIFFERENCE).threshold == 0.3


RECORD = {
    "name": "share", "kinds": ("predictions",), "definition": "A share.", "direction": "Higher.",
    "reference": "tests",
}  # fmt: skip


@pytest.mark.parametrize(
    ("field", "value", "choice"),
    [
        ("kinds", "predictions", "tuple"),
        ("kinds", ["predictions"], "tuple"),
        ("aliases", "hits", "tuple"),
        ("symbol", None, "text"),
        ("rate", 1, "True"),
        ("harm", "lowest", "lower"),
        ("unit", "percent", "share"),
        ("aggregate", "difference", "Aggregate.DIFFERENCE"),
        ("null_kind", "rows", "NullHypothesis.ROWS"),
        ("comparison_aliases", {"difference": ("gap",)}, "Aggregate.DIFFERENCE"),
        ("targets", "both", "two"),
        ("threshold", "0.05", "number"),
        ("threshold", float("nan"), "number"),
        ("threshold", True, "number"),
        ("range", None, "two numbers"),
        ("range", (0.0, 1.0, 2.0), "two numbers"),
        ("bands", {"huge": 0.5}, "large"),
        ("range", (1.0, 0.0), "smaller"),
        ("name", "", "letter"),
        ("name", "my metric!", "letter"),
        ("name", "share.value", "letter"),
        ("name", "Share", "lower-case"),
        ("name", "lambda", "keyword"),
        ("name", "only", "'only'"),
        ("definition", " ", "text"),
        ("direction", "", "text"),
        ("direction", "Lower: worse.", "Higher"),
        ("reference", "", "text"),
        ("threshold", -1.0, "0"),
        ("threshold", 1.5, "width"),
        ("neutral", 5.0, "range"),
        ("bands", {"small": 0.5, "large": 0.1}, "rise"),
        ("sentence", "{title} {foo}", "{value}"),
        ("sentence", "{title", "{value}"),
        ("sentence", "{} is {value}", "{value}"),
        ("clause", "{nosuch} is", "{groups}"),
        ("part", "{value} of {group}", "{share}"),
    ],
)
def test_a_value_that_a_field_does_not_have_is_refused(field, value, choice):
    with pytest.raises(PluginError) as refused:
        metric(MetricSpec(**RECORD | {field: value}))(lambda: None)
    assert refused.value.noun == "metric"
    assert refused.value.name == (value if field == "name" else "share")
    assert f"{field}: given {value!r}; expected " in str(refused.value)
    assert choice in str(refused.value).partition("expected")[2]
    assert not SPECS.has("share")


@pytest.mark.parametrize(
    ("field", "name"),
    [
        ("by_default", "answers"),
        ("observed_in", "answers"),
        ("needs", "foo"),
        ("takes", "foo"),
        ("combines", "nosuch"),
        ("fold", "nosuch"),
        ("mirror", "nosuch"),
        ("rest_metric", "nosuch"),
        ("group_metric", "nosuch"),
    ],
)
def test_a_name_that_does_not_exist_is_refused(field, name):
    kind_of_field = type(getattr(MetricSpec(**RECORD), field))
    with pytest.raises(PluginError) as refused:
        metric(MetricSpec(**RECORD | {field: name if kind_of_field is str else (name,)}))(len)
    assert (refused.value.noun, refused.value.name) == ("metric", "share")
    assert f"{field}: given {name!r}; expected " in str(refused.value)


def test_a_form_that_is_none_is_refused():
    with pytest.raises(PluginError) as refused:
        metric(MetricSpec(**RECORD), form="count")(len)
    assert refused.value.name == "share"


def test_keys_of_measurements_are_those_of_the_schema():
    assert {*MeasureConfig.model_fields} == {*MEASUREMENT_KEYS, "metric", "version"}


def test_a_kind_that_does_not_exist_is_refused_when_the_metric_is_declared():
    with pytest.raises(PluginError, match="kinds: given 'prediction'; .* mean 'predictions'"):
        metric(MetricSpec(**RECORD | {"kinds": ("prediction",)}))(lambda: None)
    assert not SPECS.has("share")


def test_a_metric_may_be_of_a_kind_of_a_plugin_and_of_reviews():
    KINDS.add("colours", "colours")
    record = MetricSpec(**RECORD | {"kinds": ("colours", "review")})
    try:
        metric(record)(lambda: None)
    finally:
        KINDS.remove("colours")
        remove("share")


def test_a_threshold_in_points_is_not_that_of_a_ratio():
    ratio = spec_for("selection_rate", Aggregate.RATIO)
    assert (ratio.threshold, ratio.threshold_reason) == (None, "")
    assert spec_for("selection_rate", Aggregate.DIFFERENCE).threshold == 0.05


def test_a_basis_ends_titles_but_not_where_values_are_as_observed():
    precision = spec_of("precision")
    assert precision.title == "Precision at equal prevalence"
    difference = spec_for("precision", Aggregate.DIFFERENCE)
    assert difference.title == "Precision difference at equal prevalence"
    observed = difference.in_audit("concepts")
    assert (observed.title, observed.group_label) == ("Precision difference", "precision")
    assert observed.clause.startswith("When {model} predicts")
    assert difference.in_audit("predictions") is difference

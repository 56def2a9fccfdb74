"""Metrics are found by the names that the field has for them."""

import pytest

from equipoise import metrics
from equipoise.core import Aggregate, InputError, PluginError
from equipoise.metrics import SPECS, registry
from equipoise.metrics.naming import find_records, full_name, search
from equipoise.metrics.registry import metric
from equipoise.metrics.spec import MetricSpec, aliases_of


@pytest.fixture
def register():
    """A function that registers a metric until the test ends."""
    names = []

    def registered(name, *aliases, harm="higher"):
        record = MetricSpec(
            name=name, aliases=aliases, kinds=("predictions",), definition="A share of rows.",
            direction=f"{harm.title()}: worse.", reference="an example", rate=True, harm=harm,
        )  # fmt: skip
        metric(record)(len)
        names.append(name)

    yield registered
    for name in names:
        registry.remove(name)


@pytest.mark.parametrize(
    ("name", "aggregate"),
    [
        ("caught", Aggregate.VALUE),
        ("Sensitive Share", Aggregate.VALUE),
        ("sensitive-share", Aggregate.VALUE),
        ("caught_difference", Aggregate.DIFFERENCE),
        ("sensitive_share_ratio", Aggregate.RATIO),
        ("worst_group_caught", Aggregate.WORST_GROUP),
        ("caught_worst_group", Aggregate.WORST_GROUP),
        ("caught_group_min", Aggregate.WORST_GROUP),
        ("caught_against_rest", Aggregate.AGAINST_REST),
        ("caught.difference", Aggregate.DIFFERENCE),
        ("sensitive_share.worst_group", Aggregate.WORST_GROUP),
    ],
)
def test_a_name_an_alias_or_a_variant_is_found(register, name, aggregate):
    register("caught", "Sensitive share", harm="lower")
    (record,) = find_records(name)
    assert (record.name, record.aggregate) == ("caught", aggregate)


def test_the_name_of_a_metric_is_of_no_other_metrics_comparison(register):
    register("caught")
    register("caught_difference")
    (record,) = find_records("caught_difference")
    assert record.name == "caught_difference"
    (of_groups,) = find_records("caught.difference")
    assert (of_groups.name, of_groups.aggregate) == ("caught", Aggregate.DIFFERENCE)
    assert find_records(full_name(of_groups)) == [of_groups]


def test_every_registered_name_is_of_one_quantity():
    assert all([record.name for record in find_records(name)] == [name] for name in SPECS)


def test_the_worst_group_is_at_the_end_that_is_worse(register):
    register("caught", harm="lower")
    register("missed", harm="higher")
    assert find_records("missed_group_max")
    assert find_records("missed_group_min") == find_records("caught_group_max") == []
    assert find_records("caught_mean") == []


def test_an_alias_belongs_to_one_metric(register):
    register("caught", "sensitive_share")
    for name, aliases in (("second", ["Sensitive Share"]), ("sensitive share", [])):
        with pytest.raises(PluginError):
            register(name, *aliases)
        assert not SPECS.has(name)
    with pytest.raises(PluginError):
        register("third", "accuracy")


def test_a_removed_metric_leaves_its_aliases(register):
    register("caught", "sensitive_share")
    registry.remove("caught")
    assert find_records("sensitive_share") == []
    register("caught", "another")
    assert aliases_of("caught") == ("another",)


@pytest.mark.parametrize("name", SPECS)
def test_every_metric_is_found_by_its_title(name):
    assert name in [spec.name for spec in search(SPECS[name].title)]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("equal odds", "equalized_odds"),
        ("odds equalized", "equalized_odds"),
        ("false positves", "false_positive_rate"),
        ("TPR", "true_positive_rate"),
        ("demographic", "demographic_parity"),
    ],
)
def test_words_in_any_order_or_spelling_find_a_metric(text, name):
    assert search(text)[0].name == name


def test_words_of_no_record_find_nothing():
    assert search("zzzzzz") == search("") == []


def test_aliases_are_searched(register):
    register("caught", "sensitive_share")
    assert search("sensitive")[0].name == "caught"


@pytest.mark.parametrize(
    ("alias", "attribute"),
    [("tpr", "true_positive_rate"), ("disparate_impact", "selection_rate.ratio"), ("tprr", None)],
)
def test_an_alias_is_no_attribute_but_leads_to_it(alias, attribute):
    with pytest.raises(AttributeError) as error:
        getattr(metrics, alias)
    assert error.value.name == alias
    assert (repr(attribute) in str(error.value)) == (attribute is not None)
    assert not hasattr(metrics, alias)


@pytest.mark.parametrize("name", ["cramers_v", "auroc", "mean_error", "true_positive_rate"])
def test_a_call_with_other_arguments_says_what_the_metric_takes(name):
    with pytest.raises(InputError, match=name):
        metrics.function_of(name)(*[["a", "b"]] * 9)

"""Which measures an audit makes, and what they say of their numbers."""

import polars as pl
import pytest

from equipoise import audits, metrics
from equipoise.audits.findings import fact_of
from equipoise.core import Aggregate, IntervalKind
from equipoise.metrics import registry
from equipoise.metrics.labels.metric import measures_of, switches_about
from equipoise.metrics.measure import Topic
from tests.audits.comparisons import images, run

SWITCHES = {
    "skewsize": {"min_expected": 0.0},
    "effect_sizes": {"min_expected": 0.0},
    "rates": {},
    "equalized_odds": {"aggregate": "mean"},
    "demographic_parity": {},
    "accuracy": {},
    "accuracy_gap": {},
    "worst_group_accuracy": {},
}


@pytest.fixture(scope="module")
def counts():
    frame = images()
    return metrics.count(frame["kind"], frame["skewed"], frame["place"])


@pytest.fixture
def most_wrong():
    """A metric of count tables that code adds: the share of wrong rows."""

    @metrics.metric(
        metrics.MetricSpec(
            name="share_of_wrong",
            kinds=("predictions",),
            definition="Share of rows that are predicted wrongly.",
            direction="Higher: more rows are wrong.",
            reference="a test",
            unit="share",
        ),
        form=metrics.CountMetric,
    )
    def share_of_wrong(counts, tables):
        return tables[:, counts.truth != counts.prediction].sum(axis=(1, 2)) / tables.sum(
            axis=(1, 2)
        )

    yield share_of_wrong
    registry.remove("share_of_wrong")


def test_measures_are_those_switched_on_by_topic(counts):
    names = [type(measure).__name__ for measure in measures_of(counts, SWITCHES, "answers")]
    later = ["DemographicParity", "EqualizedOdds", "Rates", "Rates", "EffectSizes", "SkewSize"]
    assert names == ["Accuracy"] * 6 + later
    assert measures_of(counts, {}, "answers") == []
    options = SWITCHES | {"equalized_odds": {"aggregate": "max"}}
    odds = (measures_of(counts, switches, "answers")[7] for switches in (SWITCHES, options))
    assert [measure.aggregate for measure in odds] == ["mean", "max"]


def test_groups_that_determine_the_target_have_no_measure_within_classes():
    frame = images()
    counts = metrics.count(frame["kind"], frame["skewed"], frame["kind"])
    measures = measures_of(counts, {"accuracy": {}}, "answers")
    assert [measure.null for measure in measures] == ["rows"]


def test_facts_name_the_numbers_that_findings_have(counts):
    """Of each measure that models are compared in, number by number."""
    config, _ = run(images(), "skewed", metrics={
        "effect_sizes": {"min_expected": 0}, "skewsize": {"min_expected": 0},
        "equalized_odds": {"aggregate": "mean"},
    })  # fmt: skip
    findings = audits.run(config).findings
    values = {fact_of(finding): finding.value for finding in findings if finding.groups}
    for measure in measures_of(counts, SWITCHES, "answers"):
        numbers = measure(counts, counts.observed)[0]
        for fact, number in zip(measure.facts(counts), numbers, strict=False):
            assert values[fact] == pytest.approx(number), fact


def test_extremes_are_of_rates_whose_changes_are_findings(counts):
    for measure in measures_of(counts, SWITCHES, "answers"):
        facts = measure.facts(counts)
        if facts:
            compares = facts[0].aggregate in (Aggregate.DIFFERENCE, Aggregate.WORST_GROUP)
            assert (measure.extreme is not None) == compares, facts[0]


def test_gaps_of_classes_are_columns_of_their_table():
    config, _ = run(images(), "poor", metrics={"demographic_parity": False})
    table = pl.DataFrame(audits.run(config).tables["classes"])
    assert {*switches_about(Topic.GAPS)} <= {*table.columns}
    assert table["demographic_parity"].is_nan().all()
    assert table["equalized_odds"].is_finite().all()


@pytest.mark.usefixtures("most_wrong")
def test_a_metric_of_one_function_is_compared_and_not_tested():
    frame = images()
    result = audits.compare({"a": run(frame, "poor", "good")})
    (finding,) = (finding for finding in result.findings if finding.metric == "share_of_wrong")
    wrong = [float((frame[name] != frame["kind"]).mean()) for name in ("poor", "good")]
    assert finding.value == pytest.approx(wrong[1] - wrong[0])
    assert finding.ci_low < finding.value < finding.ci_high
    assert finding.interval is IntervalKind.SPREAD
    assert not finding.tested
    ranking = pl.DataFrame(result.tables["ranking"]).filter(metric="share_of_wrong")
    assert dict(ranking.select("model", "rank").iter_rows()) == {"poor": 2, "good": 1}

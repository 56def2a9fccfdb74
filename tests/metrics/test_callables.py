"""Each metric gives by its name the number that an audit of the same data reports."""

import json
from functools import cache, partial

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from equipoise import audits
from equipoise import metrics as m
from equipoise.cli.app import app
from equipoise.core import Aggregate, InputError
from equipoise.metrics.registry import remove
from equipoise.report import GateRule, gate
from equipoise.stats import Bootstrap

FEW = {"resampling": Bootstrap(40, 200, 0.95, 0.005)}
N = 600
RNG = np.random.default_rng(9)
IDS = [f"i{row:03d}" for row in range(N)]
GROUP = RNG.choice(["men", "women", "others"], N, p=[0.4, 0.4, 0.2])
TRUTH = RNG.choice(["cat", "dog", "owl"], N)
HIT = RNG.random(N) < np.where(GROUP == "men", 0.8, 0.6)
LABEL = np.where(HIT, TRUTH, RNG.choice(["cat", "dog", "owl"], N))
SECOND = RNG.choice(["cat", "dog", "owl"], N)
ANSWER = np.where(RNG.random(N) < 0.15, "unknown", LABEL)
ANSWER = np.where(RNG.random(N) < 0.1, "", ANSWER)
SIZE = np.where(RNG.random(N) < 0.2, "", "large")
ROWS = pl.DataFrame({
    "id": IDS, "g": GROUP, "truth": TRUTH, "label": LABEL, "second": SECOND, "answer": ANSWER,
    "size": SIZE,
})  # fmt: skip
DRAWN = {"resampling": {"replicates": 40, "permutations": 200}}
LABELLED = {"table": ROWS, "id": "id", "target": "truth", "groups": ["g"]}
EFFECTS = ["cramers_v", "phi"]
CONFIGS = {
    "predictions": {
        "data": LABELLED, "models": {"m": {"table": ROWS, "top": ["label", "second"]}},
        "metrics": {"mistake_rate": {"of": ["cat"], "top": 3}},
    },
    "answers": {"data": LABELLED, "models": {"m": {"table": ROWS, "answer": "answer"}}},
    "dataset": {
        "data": {"images": {"table": ROWS, "id": "id"}, "groups": ["g"], "labels": ["size"]},
        "reference": {"shares": {"g": {"men": 0.5, "women": 0.3, "others": 0.2}}},
    },
}  # fmt: skip
ROW = TRUTH, LABEL, GROUP
TOP = TRUTH, np.stack([LABEL, SECOND], 1), GROUP
ANSWERED = np.isin(ANSWER, ["cat", "dog", "owl"])
GIVEN = np.where(ANSWERED, ANSWER, None)
STATES = np.where(ANSWERED, "answered", np.where(ANSWER == "unknown", "refused", "empty"))
REFERENCE = {"men": 0.5, "women": 0.3, "others": 0.2}
VALUE, DIFFERENCE = Aggregate.VALUE, Aggregate.DIFFERENCE
RATES = (
    "true_positive_rate", "false_positive_rate", "true_negative_rate", "false_negative_rate",
    "precision", "negative_predictive_value", "selection_rate",
)  # fmt: skip
TESTED = ("true_positive_rate", "false_positive_rate", "precision")
# By name: the call, and the kind, aggregate, subject and group of the finding.
CASES = {
    **{name: (partial(getattr(m, name), *ROW, positive="dog"), "predictions", VALUE, "dog", "")
       for name in RATES},
    **{f"{name} difference": (partial(getattr(m, name).difference, *ROW, positive="dog"),
                              "predictions", DIFFERENCE, "dog", "")
       for name in (*RATES, "average_odds")},
    **{f"{name} against rest": (partial(getattr(m, name).against_rest, *ROW, positive="dog",
                                        group="men"),
                                "predictions", Aggregate.AGAINST_REST, "dog", "men")
       for name in TESTED},
    "accuracy": (partial(m.accuracy, *ROW), "predictions", VALUE, "", ""),
    "accuracy difference": (partial(m.accuracy.difference, *ROW), "predictions", DIFFERENCE, "",
                            ""),
    "accuracy worst group": (partial(m.accuracy.worst_group, *ROW), "predictions",
                             Aggregate.WORST_GROUP, "", ""),
    "accuracy against rest": (partial(m.accuracy.against_rest, *ROW, group="men"), "predictions",
                              Aggregate.AGAINST_REST, "", "men"),
    "demographic_parity": (partial(m.demographic_parity, *ROW), "predictions", DIFFERENCE, "", ""),
    "equalized_odds": (partial(m.equalized_odds, *ROW), "predictions", DIFFERENCE, "", ""),
    "hit_rate": (partial(m.hit_rate, *TOP, k=2), "predictions", VALUE, "", ""),
    "hit_rate difference": (partial(m.hit_rate.difference, *TOP, k=2), "predictions", DIFFERENCE,
                            "", ""),
    "mistake_rate difference": (partial(m.mistake_rate.difference, *ROW, of="cat", label="dog"),
                                "predictions", DIFFERENCE, "cat | dog", ""),
    "unanswered_rate difference": (partial(m.unanswered_rate.difference, TRUTH, GIVEN, GROUP),
                                   "answers", DIFFERENCE, "", ""),
    "right_rate difference": (partial(m.right_rate.difference, TRUTH, GIVEN, GROUP), "answers",
                              DIFFERENCE, "", ""),
    "wrong_rate difference": (partial(m.wrong_rate.difference, TRUTH, GIVEN, GROUP), "answers",
                              DIFFERENCE, "", ""),
    "refused_rate difference": (partial(m.refused_rate.difference, STATES, GROUP), "answers",
                                DIFFERENCE, "", ""),
    "empty_rate difference": (partial(m.empty_rate.difference, STATES, GROUP), "answers",
                              DIFFERENCE, "", ""),
    "answer_gap": (partial(m.answer_gap, GIVEN, GROUP, subject="dog"), "answers", DIFFERENCE,
                   "dog", ""),
    "missing_rate difference": (partial(m.missing_rate.difference, SIZE, GROUP), "dataset",
                                DIFFERENCE, "size", ""),
    "representation_gap": (partial(m.representation_gap, {"g": GROUP}, REFERENCE), "dataset",
                           VALUE, "", ""),
    "representation": (partial(m.representation, {"g": GROUP}, REFERENCE, subject="men"),
                       "dataset", VALUE, "men", "men"),
}  # fmt: skip


@cache
def audited(kind):
    config = {"audit": kind, **CONFIGS[kind], **DRAWN}
    return audits.run(audits.parse_config(config)).findings


@pytest.mark.parametrize("name", CASES)
def test_the_number_is_that_of_the_audit(name):
    call, kind, aggregate, subject, group = CASES[name]
    estimate = call(**FEW)
    (finding,) = [
        finding
        for finding in audited(kind)
        if (finding.metric, finding.aggregate) == (estimate.metric, aggregate)
        and (finding.subject, finding.group, finding.compared_to) == (subject, group, "")
        and finding.parameters.get("null") in (None, estimate.params.get("null"), "rows")
    ]
    ends, chance = estimate.interval(), estimate.chance
    assert estimate.aggregate is aggregate
    assert (estimate.value, ends.low, ends.high) == pytest.approx(
        (finding.value, finding.ci_low, finding.ci_high), rel=1e-9, abs=1e-12
    )
    if finding.p_value is not None and not np.isnan(finding.p_value):
        assert (chance.mean, estimate.p_value) == pytest.approx(
            (finding.chance, finding.p_value), rel=1e-9, abs=1e-12
        )


@pytest.mark.parametrize("name", TESTED)
def test_a_rate_has_four_comparisons_of_groups(name):
    rate = partial(getattr(m, name), *ROW, positive="cat")
    shares = {group.group: group.value for group in rate(**FEW).parts[0].by_group}
    high, low = max(shares.values()), min(shares.values())
    rate = getattr(m, name)
    worst = high if rate.spec.harm == "higher" else low
    of_cat = partial(dict, positive="cat", **FEW)
    expected = {"difference": high - low, "ratio": low / high, "worst_group": worst}
    for method, value in expected.items():
        estimate = getattr(rate, method)(*ROW, **of_cat())
        ends = estimate.interval()
        assert estimate.value == pytest.approx(value)
        assert ends.low <= value <= ends.high
        assert 0.0 < estimate.p_value <= 1.0
    against = rate.against_rest(*ROW, group="men", **of_cat())
    ends = against.interval()
    assert ends.low <= against.value <= ends.high
    assert against.interval(0.5).low >= ends.low


def test_rates_without_groups_are_of_all_rows():
    whole = m.selection_rate(None, LABEL, positive="dog", **FEW)
    assert whole.value == pytest.approx((LABEL == "dog").mean())
    assert whole.n == {"all": N}


def test_a_rate_of_a_users_own_is_measured_by_audits():
    @m.metric(
        m.MetricSpec(
            name="missed", kinds=("predictions",), unit="share", of_class=True,
            definition="Share of all rows that are of a class and predicted as another.",
            direction="Higher: more rows are missed.", reference="an example",
        ),
        form=partial(m.RateMetric.of, bases=("rows",)),
    )  # fmt: skip
    def missed(cells):
        return cells["missed"], cells["total"]

    config = {"audit": "predictions", **CONFIGS["predictions"], **DRAWN}
    try:
        gap = missed.difference(*ROW, positive="dog", **FEW)
        result = audits.run(
            audits.parse_config(config | {"testing": {"thresholds": {"missed": 0}}})
        )
        switched = config["metrics"] | {"missed": False}
        off = audits.run(audits.parse_config(config | {"metrics": switched}))
        checks = gate(result, [GateRule("missed", of="difference", max=0.0)]).checks
        card = CliRunner().invoke(app, ["metrics", "missed", "--json"]).output
        findings = result.findings
        (finding,) = [
            finding
            for finding in findings
            if (finding.metric, finding.subject) == ("missed", "dog")
            and finding.aggregate is DIFFERENCE
        ]
    finally:
        remove("missed")
    assert (finding.value, finding.p_value) == pytest.approx((gap.value, gap.p_value))
    assert finding.ci_low == pytest.approx(gap.interval().low)
    assert finding.threshold == 0
    assert {check.outcome for check in checks} == {"breached"}
    assert json.loads(card)["missed"]["unit"] == "share"
    assert "missed" not in {finding.metric for finding in off.findings}
    assert {finding.metric for finding in off.findings} >= {"true_positive_rate"}


def test_other_comparisons_and_missing_groups_are_input_errors():
    columns = ["a", "b"] * 40, ["a", "a", "b", "b"] * 20, ["women", "men"] * 40
    with pytest.raises(InputError, match='compared_to=.all.: expected "" or "overall"'):
        m.accuracy.difference(*columns, compared_to="all")
    with pytest.raises(InputError, match="group='': expected one of"):
        m.accuracy.against_rest(*columns)

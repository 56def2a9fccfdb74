"""The audit of predictions on small tables: what it measures, counts, leaves out and repeats."""

import numpy as np
import polars as pl
import pytest

from audits import comparisons
from audits.comparisons import KINDS
from equipoise import audits
from equipoise.core import DataError, Family, Verdict

NAMES = {"kind": "label", "place": "group", "skewed": "answer", "poor": "second"}


def images(n=900):
    """Images of three classes; of group y, a model gets two in five wrong."""
    return comparisons.images(n).rename(NAMES)


def configured(frame, *, model=None, **more):
    data = {"table": frame, "id": "id", "target": "label", "groups": ["group"]}
    values = {
        "audit": "predictions",
        "data": data | more.pop("data", {}),
        "models": {"m": {"table": frame, "prediction": "answer"} | (model or {})},
        "resampling": {"replicates": 200},
    }
    return audits.parse_config(values | more)


def run(frame, **more):
    return audits.run(configured(frame, **more))


def pick(result, metric, subject="", version="default", aggregate=None):
    findings = [
        finding
        for finding in result.findings
        if (finding.metric, finding.subject, finding.version) == (metric, subject, version)
        and aggregate in (None, finding.aggregate)
    ]
    assert findings, f"no finding {metric} {subject} {version}"
    return findings[0]


def without_order(result):
    return [
        (
            finding.metric,
            finding.subject,
            repr(finding.value),
            repr(finding.ci_low),
            finding.q_value,
        )
        for finding in result.findings
        if not np.isnan(finding.q_value)
    ]


def test_order_of_rows_does_not_matter():
    frame = images()
    shuffled = frame.sample(fraction=1.0, shuffle=True, seed=3)
    for more in ({}, {"data": {"unit": "scene"}}):
        assert without_order(run(frame, **more)) == without_order(run(shuffled, **more))


def test_states_are_counted_and_a_group_refused_more_often_is_a_finding():
    frame = images().with_columns(
        answer=pl.when((pl.col("group") == "y") & (pl.int_range(pl.len()) % 3 == 0))
        .then(pl.lit("I cannot help"))
        .otherwise(pl.col("answer"))
    )
    result = run(frame, model={"refused": ["I cannot help"]})
    refused = int((frame["answer"] == "I cannot help").sum())
    unanswered = pick(result, "unanswered_rate", "unanswered")
    assert unanswered.verdict is Verdict.DISPARITY
    assert any(f"m: {refused} labelled rows were refused" in note for note in result.manifest.notes)
    states = {row["state"]: row["count"] for row in result.tables["states"].to_pylist()}
    assert states == {"answered": 900 - refused, "refused": refused}
    assert pick(result, "accuracy").n == 900 - refused


def test_top_labels_and_probabilities_are_versions_of_their_own():
    top = run(images(), model={"prediction": None, "top": ["answer", "second"]})
    assert pick(top, "skewsize", version="default, top 2").family is Family.DESCRIPTIVE
    assert pick(top, "hit_rate").value > pick(top, "accuracy").value
    assert pick(top, "hit_rate", aggregate="difference").threshold == 0.05

    frame = images().with_columns(
        [pl.when(pl.col("answer") == name).then(0.8).otherwise(0.1).alias(name) for name in KINDS]
    )
    soft = run(frame, model={"probabilities": {name: name for name in KINDS}})
    mean = pick(soft, "effect_size_mean", version="default, probabilities")
    assert 0 < mean.value < pick(soft, "effect_size_mean").value


@pytest.mark.parametrize("groups", ["label", "scene"])
def test_a_plan_refuses_the_same_configs_as_the_audit(groups):
    frame = images(60)
    config = configured(frame, data={"groups": [groups]})
    for step in (audits.plan, audits.run):
        with pytest.raises(
            DataError, match=f"groups {groups}: fewer than two groups have 30 or more rows"
        ):
            step(config)


def test_texts_that_mean_missing_are_noted_when_they_are_groups():
    group = pl.when(pl.int_range(pl.len()) < 60).then(pl.lit("nan")).otherwise(pl.lit("x"))
    frame = images().with_columns(group=group)
    for notes in (run(frame).manifest.notes, audits.plan(configured(frame)).notes):
        assert any(note.startswith("group: 'nan' is taken for a group") for note in notes)


@pytest.mark.parametrize(("groups", "classes"), [(1_001, 2), (2, 20_001)])
def test_too_many_groups_or_classes_are_refused_by_plan_and_run(groups, classes):
    place = np.arange(2 * max(groups, classes))
    names = {"id": place, "group": place % groups, "kind": place % classes}
    table = pl.DataFrame(
        {name: [f"{name}{code}" for code in codes] for name, codes in names.items()}
    )
    data = {"table": table, "id": "id", "target": "kind", "groups": ["group"], "min_group_size": 1}
    models = {"m": {"table": table, "prediction": "kind"}}
    config = audits.parse_config({"audit": "predictions", "data": data, "models": models})
    for act in (audits.plan, audits.run):
        with pytest.raises(DataError) as caught:
            act(config)
        assert f"at most {1_000 if groups > 2 else 20_000:,}" in caught.value.expected
        assert caught.value.fix

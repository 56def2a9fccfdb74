"""Claims of a source are judged by intervals of findings, on findings that are planted."""

from dataclasses import replace

import pyarrow as pa
import pytest
from pydantic import TypeAdapter, ValidationError

from audits.planted_findings import effect, level
from equipoise.core import Aggregate, AuditResult, IntervalKind, Verdict
from equipoise.studies import claims as recorded_claims
from equipoise.studies.conditions import Mark, StudyClaim, mark_of
from equipoise.studies.quantities import (
    MISSING,
    SEVERAL,
    UNDEFINED,
    AnyQuantity,
    merged,
)
from equipoise.studies.repetition import Repetition
from report.synthetic import NAN, finding, manifest

HOLDS, FAILS, OPEN = Mark


def run_of(*findings, **facts):
    return Repetition(AuditResult(findings, manifest(**facts)))


def judged(condition, *findings, **facts):
    """Return the mark of a claim with one condition, and its comparisons."""
    claim = StudyClaim.model_validate({"of": "C", "holds": [condition]})
    comparisons = [*claim.comparisons(run_of(*findings, **facts))]
    return mark_of(comparisons), comparisons


V = {"metric": "cramers_v"}
HIGH, LOW, WIDE = effect("a", 0.7), effect("b", 0.1), effect("c", 0.5, 0.45)


@pytest.mark.parametrize(
    ("condition", "mark"),
    [
        ({"finding": {**V, "subject": "a"}, "at_least": 0.3}, HOLDS),
        ({"finding": {**V, "subject": "b"}, "at_least": 0.3}, FAILS),
        ({"finding": {**V, "subject": "c"}, "at_least": 0.3}, OPEN),
        ({"finding": {**V, "subject": "b"}, "at_most": 0.3}, HOLDS),
        ({"finding": {**V, "subject": "a"}, "at_most": 0.3}, FAILS),
        ({"finding": {**V, "subject": "c"}, "at_most": 0.3}, OPEN),
        ({"finding": {**V, "subject": "a"}, "above": {**V, "subject": "b"}}, HOLDS),
        ({"finding": {**V, "subject": "b"}, "above": {**V, "subject": "a"}}, FAILS),
        ({"finding": {**V, "subject": "a"}, "above": {**V, "subject": "c"}}, OPEN),
        ({"finding": {**V, "subject": "c"}, "includes": 0.3}, HOLDS),
        ({"finding": {**V, "subject": "a"}, "includes": 0.3}, FAILS),
        ({"finding": {**V, "subject": "a"}, "excludes": 0.3}, HOLDS),
        ({"finding": {**V, "subject": "c"}, "excludes": 0.3}, FAILS),
        (
            {"finding": {**V, "subject": "a"}, "opposite_to": {**V, "subject": "a", "times": -1}},
            HOLDS,
        ),
        ({"finding": {**V, "subject": "a"}, "opposite_to": {**V, "subject": "a"}}, FAILS),
        ({"finding": {**V, "subject": "a"}, "opposite_to": {**V, "subject": "z"}}, OPEN),
        ({"order": [{**V, "subject": "a"}, {**V, "subject": "b"}]}, HOLDS),
        ({"order": [{**V, "subject": "b"}, {**V, "subject": "a"}]}, FAILS),
        ({"order": [{**V, "subject": "a"}, {**V, "subject": "c"}]}, OPEN),
        ({"alike": [{**V, "subject": "a"}, {**V, "subject": "a"}], "within": 0.2}, HOLDS),
        ({"alike": [{**V, "subject": "a"}, {**V, "subject": "b"}], "within": 0.1}, FAILS),
        ({"alike": [{**V, "subject": "a"}, {**V, "subject": "c"}], "within": 0.1}, OPEN),
        ({"finding": {**V, "subject": "b", "times": 100}, "at_least": 4}, HOLDS),
        ({"finding": {**V, "subject": "b", "times": -1}, "at_most": 0}, HOLDS),
        ({"finding": {**V, "subject": "b", "times": -1, "absolute": True}, "at_most": 0}, FAILS),
    ],
)
def test_bounds_and_orders_are_judged_by_intervals(condition, mark):
    assert judged(condition, HIGH, LOW, WIDE)[0] is mark


def test_parameters_tell_findings_of_one_place_apart():
    of_precision, of_rate = (
        effect("a", value, parameters={"metric": metric, "replicates": 250})
        for metric, value in (("precision", 0.7), ("rate", 0.1))
    )
    for metric, mark in (("precision", HOLDS), ("rate", FAILS), ("recall", OPEN)):
        condition = {"finding": {**V, "parameters": {"metric": metric}}, "at_least": 0.3}
        assert judged(condition, of_precision, of_rate)[0] is mark


def test_an_order_of_three_needs_each_step():
    places = [{**V, "subject": subject} for subject in "acb"]
    mark, comparisons = judged({"order": places}, HIGH, LOW, WIDE)
    assert (mark, len(comparisons)) == (OPEN, 2)
    assert judged({"order": places}, HIGH, LOW, effect("c", 0.4))[0] is HOLDS


def test_a_claim_needs_every_condition_and_one_refutes_it():
    claim = {"of": "C", "holds": [
        {"finding": {**V, "subject": "a"}, "at_least": 0.3},
        {"finding": {**V, "subject": "c"}, "at_least": 0.3},
    ]}  # fmt: skip
    run = run_of(HIGH, LOW, WIDE)
    assert mark_of([*StudyClaim.model_validate(claim).comparisons(run)]) is OPEN
    claim["holds"].append({"finding": {**V, "subject": "b"}, "at_least": 0.3})
    assert mark_of([*StudyClaim.model_validate(claim).comparisons(run)]) is FAILS
    assert mark_of([]) is OPEN


@pytest.mark.parametrize(
    ("planted", "reason"),
    [
        ((), MISSING),
        ((HIGH, effect("a", 0.2)), SEVERAL),
        ((effect("a", NAN),), UNDEFINED),
        ((effect("a", 0.7, NAN),), "interval"),
        ((effect("a", 0.7, interval=IntervalKind.SPREAD),), "interval"),
        ((effect("a", 0.7, interval=IntervalKind.NONE),), "interval"),
    ],
)
def test_what_cannot_be_told_says_why(planted, reason):
    condition = {"finding": {**V, "subject": "a"}, "at_least": 0.3}
    mark, [comparison] = judged(condition, *planted)
    assert mark is OPEN
    assert reason in comparison.reason
    # The other side is checked, too.
    condition = {"finding": {**V, "subject": "b"}, "above": {**V, "subject": "a"}}
    mark, [comparison] = judged(condition, LOW, *planted)
    assert mark is OPEN
    assert reason in comparison.reason


def with_verdicts(*verdicts):
    return [effect(str(place), 0.4, verdict=verdict) for place, verdict in enumerate(verdicts)]


REAL, NONE, OPEN_VERDICT = Verdict.DISPARITY, Verdict.BELOW_THRESHOLD, Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("are", "share", "verdicts", "mark"),
    [
        ("disparity", "all", (REAL, Verdict.DETECTED), HOLDS),
        ("disparity", "all", (REAL, NONE), FAILS),
        ("disparity", "all", (REAL, OPEN_VERDICT), OPEN),
        ("disparity", "any", (REAL, OPEN_VERDICT), HOLDS),
        ("disparity", "any", (NONE, NONE), FAILS),
        ("disparity", "any", (NONE, OPEN_VERDICT), OPEN),
        ("disparity", "most", (REAL, REAL, OPEN_VERDICT), HOLDS),
        ("disparity", "most", (REAL, NONE), FAILS),
        ("disparity", "most", (REAL, OPEN_VERDICT, NONE), OPEN),
        ("none", "all", (NONE, NONE), HOLDS),
        ("none", "all", (NONE, REAL), FAILS),
        ("none", "all", (NONE, Verdict.NOT_ESTIMABLE), OPEN),
        ("none", "most", (NONE, NONE, REAL), HOLDS),
        ("disparity", "all", (), OPEN),
    ],
)
def test_verdicts_are_counted(are, share, verdicts, mark):
    condition = {"verdicts": V, "are": are, "share": share}
    assert judged(condition, *with_verdicts(*verdicts))[0] is mark


def pairs(n, slope, noise):
    """Return findings of two metrics of n subjects, which go together by a slope."""
    for place in range(n):
        wiggle = noise * (-1) ** (place * (place + 1) // 2)
        yield effect(f"s{place}", place / n)
        yield finding(metric="precision", subject=f"s{place}", groups="", model="m",
                      value=slope * place / n + wiggle)  # fmt: skip


CORRELATION = {"correlation": [V, {"metric": "precision", "aggregate": "difference"}]}


@pytest.mark.parametrize(
    ("n", "slope", "mark"), [(40, 1, HOLDS), (40, -1, FAILS), (6, 0.2, OPEN), (3, 1, OPEN)]
)
def test_correlations_over_subjects_have_an_interval(n, slope, mark):
    condition = {**CORRELATION, "at_least": 0.3}
    assert judged(condition, *pairs(n, slope, 0.2))[0] is mark


def test_a_correlation_is_that_of_numpy_and_fisher():
    import numpy as np

    planted = [*pairs(30, 1, 0.2)]
    _, [comparison] = judged({**CORRELATION, "at_most": 1}, *planted)
    first, second = ([f.value for f in planted if f.metric == name]
                     for name in ("cramers_v", "precision"))  # fmt: skip
    r = np.corrcoef(first, second)[0, 1]
    assert comparison.left.value == pytest.approx(r)
    ends = np.tanh(np.arctanh(r) + np.array([-1, 1]) * 1.959964 / np.sqrt(27))
    assert (comparison.left.low, comparison.left.high) == pytest.approx(tuple(ends), abs=1e-6)


def test_correlations_over_models_pair_the_models():
    planted = [
        replace(planted_finding, model=planted_finding.subject, subject="")
        for planted_finding in pairs(40, 1, 0.2)
    ]  # fmt: skip
    condition = {**CORRELATION, "over": "model", "at_least": 0.3}
    assert judged(condition, *planted)[0] is HOLDS
    assert judged({**CORRELATION, "at_least": 0.3}, *planted)[0] is OPEN


@pytest.mark.parametrize(
    ("bound", "mark"), [({"at_least": 2}, HOLDS), ({"at_least": 4}, FAILS), ({"at_least": 3}, OPEN)]
)
def test_counts_have_the_interval_of_their_members(bound, mark):
    planted = (effect("a", 0.7), effect("b", 0.8), effect("c", 0.5, 0.4), effect("d", 0.1))
    condition = {"count": V, "reaching": 0.5, **bound}
    got, [comparison] = judged(condition, *planted)
    assert got is mark
    assert (comparison.left.low, comparison.left.value, comparison.left.high) == (2, 3, 3)


def test_a_count_of_all_is_exact():
    _, [comparison] = judged({"count": V, "at_least": 2}, HIGH, LOW, effect("d", NAN))
    assert (comparison.left.value, comparison.mark) == (2, HOLDS)


@pytest.mark.parametrize(
    ("moves", "mark"),
    [
        ((0.2, 0.22, 0.24, 0.2), HOLDS),
        ((0.0, 0.01, 0.0, 0.01), FAILS),
        ((0.0, 0.3, -0.1, 0.4), OPEN),
    ],
)
def test_changes_are_averaged_over_subjects(moves, mark):
    planted = [effect(f"s{place}", 0.3, version="old") for place in range(len(moves))]
    planted += [effect(f"s{place}", 0.3 + move, version="new") for place, move in enumerate(moves)]
    condition = {"change": [{**V, "version": "new"}, {**V, "version": "old"}], "at_least": 0.1}
    assert judged(condition, *planted)[0] is mark


def test_sizes_of_changes_leave_their_signs_out():
    moves = 6 * (0.2, -0.21)
    planted = [effect(f"s{place}", 0.3, version="old") for place in range(len(moves))]
    planted += [effect(f"s{place}", 0.3 + move, version="new") for place, move in enumerate(moves)]
    change = {"change": [{**V, "version": "new"}, {**V, "version": "old"}]}
    assert judged({**change, "at_least": 0.15}, *planted)[0] is FAILS
    assert judged({**change, "absolute": True, "at_least": 0.15}, *planted)[0] is HOLDS


def test_a_mean_has_the_mean_ends_and_percents_go_from_end_to_end():
    planned = [effect("a", 0.6, 0.02, model=m) for m in ("x", "y")]
    planned += [effect("a", 0.3, 0.1, model="z"), effect("a", 0.0, 0.1, model="zero")]
    run = run_of(*planned)
    read = TypeAdapter(AnyQuantity).validate_python
    fields = {**V, "subject": "a"}
    pair = [{**fields, "model": m} for m in ("x", "z")]
    mean = read({"mean_of": pair}).read(run)
    assert (mean.value, mean.low, mean.high) == pytest.approx((0.45, 0.39, 0.51))
    percent = read({"percent_above": [{"mean_of": pair}, pair[0]]}).read(run)
    ends = [100 * (a / b - 1) for a, b in ((0.45, 0.6), (0.39, 0.62), (0.51, 0.58))]
    assert (percent.value, percent.low, percent.high) == pytest.approx(ends)
    undefined = read({"percent_above": [pair[0], {**fields, "model": "zero"}]}).read(run)
    assert undefined.missing == UNDEFINED
    lacking = read({"mean_of": [pair[0], {**fields, "model": "nobody"}]}).read(run)
    assert lacking.missing == MISSING


def test_fields_of_a_column_enter_the_findings_of_nested_numbers():
    row = {"percent_above": [{"mean_of": [{"model": "x"}, {"model": "y"}]}, {"model": "z"}]}
    cell = merged({**row, "times": 1}, {**V, "subject": "a", "times": 100})
    inner = {**V, "subject": "a"}
    models = [{**inner, "model": name} for name in "xyz"]
    assert cell == {"times": 1, "percent_above": [{"mean_of": models[:2]}, models[2]]}


def test_the_names_with_the_largest_numbers_are_listed():
    rows = [
        {"model": "x", "label": name, "count": n}
        for name, n in zip("abcd", (1, 3, 3, 2), strict=True)
    ]
    table = pa.Table.from_pylist([*rows, {"model": "y", "label": "e", "count": 9}])
    run = Repetition(AuditResult((), manifest(), {"labels": table}))
    top = {"top": 3, "table": "labels", "column": "label", "by": "count"}
    read = TypeAdapter(AnyQuantity).validate_python
    assert read({**top, "row": {"model": "x"}}).read(run).text == "b, c, d"
    assert read({**top, "row": {"model": "z"}}).read(run).missing == MISSING
    assert merged({"model": "x"}, {**top, "row": {"group": "g"}})["row"] == {
        "model": "x", "group": "g"
    }  # fmt: skip


def test_a_spread_of_groups_decides_only_where_a_claim_allows_it():
    planned = effect("a", 0.7, by_group=(level("red", 0.9),))
    planned = replace(planned, interval=IntervalKind.SPREAD)
    condition = {"finding": {**V, "level": "red"}, "at_least": 0.5}
    assert judged(condition, planned)[0] is OPEN
    condition["finding"]["spread"] = True
    assert judged(condition, planned)[0] is HOLDS


def test_counts_of_the_record_are_exact():
    counts = {"images": {"rows": 108}}
    assert judged({"recorded": "images.rows", "at_least": 100}, counts=counts)[0] is HOLDS
    assert judged({"recorded": "images.rows", "at_most": 100}, counts=counts)[0] is FAILS
    assert judged({"recorded": "images.kept", "at_most": 100}, counts=counts)[0] is OPEN


def test_a_level_and_a_parameter_are_numbers_of_a_finding():
    parts = (level("red", 0.9), level("blue", 0.2))
    planted = effect("a", 0.7, by_group=parts, parameters={"k": 5})
    assert judged({"finding": {**V, "level": "red"}, "at_least": 0.5}, planted)[0] is HOLDS
    assert judged({"finding": {**V, "level": "blue"}, "at_least": 0.5}, planted)[0] is FAILS
    assert judged({"finding": {**V, "level": "green"}, "at_least": 0.5}, planted)[0] is OPEN
    assert judged({"finding": {**V, "parameter": "k"}, "at_least": 5}, planted)[0] is OPEN


def test_a_claim_of_another_configuration_is_open_and_says_so():
    claim = StudyClaim.model_validate({
        "of": "C", "run": {"audit": "concepts"},
        "holds": [{"finding": {**V, "subject": "a"}, "at_least": 0.3}],
    })  # fmt: skip
    here, elsewhere = run_of(HIGH, resolved={"audit": "concepts"}), run_of(HIGH)
    assert mark_of([*claim.comparisons(here)]) is HOLDS
    assert mark_of([*claim.comparisons(elsewhere)]) is OPEN
    assert claim.reason(elsewhere)
    assert not claim.reason(here)


@pytest.mark.parametrize(
    "claim",
    [
        {"of": "C"},
        {"of": "C", "holds": [{"finding": V}]},
        {"of": "C", "holds": [{"order": [V]}]},
        {"of": "C", "holds": [{"finding": {"metrc": "cramers_v"}, "at_least": 1}]},
        {"of": "C", "holds": [{"verdicts": V, "are": "large"}]},
    ],
)
def test_a_claim_without_a_complete_condition_is_refused(claim):
    with pytest.raises(ValidationError):
        StudyClaim.model_validate(claim)


def test_marks_are_recorded_with_their_numbers():
    classes = {
        "without class 0": "square",
        "without class 1": "ellipse",
        "without class 2": "heart",
    }
    planted = [
        effect(shape, 0.7 if shape == removed else 0.02, 0.01, model=model)
        for model, removed in classes.items()
        for shape in classes.values()
    ]
    strengths = {"unbiased": 0.02, "mild": 0.25, "medium": 0.5}
    planted += [effect("ellipse", value, 0.01, model=model) for model, value in strengths.items()]
    planted += [
        effect(
            shape,
            0.3,
            model=model,
            metric=metric,
            aggregate=Aggregate.DIFFERENCE,
            verdict=Verdict.DISPARITY,
        )
        for metric in ("demographic_parity", "equalized_odds")
        for model in classes
        for shape in classes.values()
    ]
    result = AuditResult((*planted,), manifest(resolved={"study": "skewsize-dsprites"}))
    judged_result = recorded_claims.with_claims(result)
    rows = judged_result.tables["claims"].to_pylist()
    marks = {row["claim"]: row["mark"] for row in rows}
    assert {marks["S2"], marks["S3"]} == {"holds"}
    compared = judged_result.tables["claim_comparisons"].to_pylist()
    assert {row["claim"] for row in compared} >= {"S2", "S3"}
    first = compared[0]
    assert (first["left_value"], first["relation"], first["right_value"]) == (0.7, "at least", 0.3)
    assert recorded_claims.count_marks(judged_result)[HOLDS] >= 2
    # The same models with the removed classes exchanged refute the claim.
    exchanged = {"without class 0": "without class 1", "without class 1": "without class 0"}
    planted = [replace(f, model=exchanged.get(f.model, f.model)) for f in planted]
    rows = recorded_claims.with_claims(replace(result, findings=(*planted,))).tables["claims"]
    assert rows.to_pylist()[0]["mark"] == "doesn't"


def test_a_run_of_no_study_has_no_claims():
    result = AuditResult((HIGH,), manifest())
    assert recorded_claims.with_claims(result) is result
    assert recorded_claims.count_marks(result) == {}

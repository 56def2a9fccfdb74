"""Conclusions on choices from the tables of any kind of audit."""

import math

import pyarrow as pa
import pytest

from equipoise.core import AuditResult, Manifest, Verdict
from equipoise.report.choice_effects import (
    chart_of_choices,
    conclusions_of_choices,
    table_of_every_step,
    table_of_steps,
    with_effects,
)
from equipoise.report.choice_words import choices_certainty, choices_sentence
from equipoise.report.concluding import conclusions_of
from equipoise.report.summary import summarize
from report.synthetic import finding, group_values

# What becomes of nine differences in each of two steps.
SUBJECTS = "abcdefgh"
FIRST = ("stays", "stays", "stays", "surfaces", "absent", "absent", "lost power", "stays")
SECOND = (
    "explains", "switches", "magnifies", "surfaces", "absent", "not estimable", "lost power",
    "shrinks",
)  # fmt: skip
STEPS = (("one", "two", ["boxes"], "boxes are large"), ("two", "three", ["terms"], "terms differ"))


def effect_rows(effects, baseline, version, metric="accuracy", pairs=(("women", "men"),)):
    return [
        {
            "model": "m", "groups": "gender", "metric": metric, "baseline": baseline,
            "version": version, "concept": subject, "group_a": first, "group_b": second,
            "baseline_value": 0.1, "baseline_low": 0.05, "baseline_high": 0.15,
            "value": math.nan if effect == "not estimable" else -0.2, "low": -0.3, "high": -0.1,
            "change": -0.3, "effect": effect,
        }
        for subject, effect in zip(SUBJECTS, effects, strict=True)
        for first, second in pairs
    ]  # fmt: skip


def tables(rows, steps=STEPS):
    names = ("baseline", "version", "choices", "change")
    step_rows = [dict(zip(names, step, strict=True)) for step in steps]
    return {"choices": pa.Table.from_pylist(rows), "steps": pa.Table.from_pylist(step_rows)}


PLANTED = (*effect_rows(FIRST, "one", "two"), *effect_rows(SECOND, "two", "three"))


def findings():
    parts = group_values({("women",): (30, 100), ("men",): (60, 100)})
    common = {
        "model": "m",
        "metric": "accuracy",
        "compared_to": "",
        "groups": "gender",
        "by_group": parts,
    }
    return (
        finding(**common, version="one"),
        finding(**common, version="three", verdict=Verdict.NONE),
        finding(**common, version="two", subject="a"),
    )


def test_effects_are_counted_by_step():
    (conclusion,) = conclusions_of_choices(tables(PLANTED), findings())
    first, second = conclusion.steps
    assert (first.compared, first.found, first.changed, first.unclear) == (8, 6, 1, 1)
    assert (second.compared, second.found, second.changed, second.unclear) == (7, 6, 3, 1)
    assert (second.surfaces, second.explains, second.switches) == (1, 1, 1)
    assert (second.magnifies, second.shrinks) == (1, 1)
    # The choice that changes most leads, and the finding is that of the last version.
    assert conclusion.leading_step == second
    assert (conclusion.size, conclusion.n, conclusion.finding) == (0.5, 6, 1)
    assert (
        choices_sentence(conclusion) == "3 of 6 conclusions on accuracy change when terms differ."
    )


def test_a_single_choice_leads_before_several_at_once():
    both = ("one", "three", ["boxes", "terms"], "boxes are large and terms differ")
    rows = [*PLANTED, *effect_rows(SECOND, "one", "three")]
    (conclusion,) = conclusions_of_choices(tables(rows, (*STEPS, both)), findings())
    assert conclusion.leading_step.choices == ("terms",)
    assert "one → three: 3 of 6" in choices_certainty(conclusion)
    # Where no step is of a single choice, the one that changes most leads.
    (alone,) = conclusions_of_choices(
        tables(effect_rows(SECOND, "one", "three"), (both,)), findings()
    )
    assert alone.leading_step.choices == ("boxes", "terms")


@pytest.mark.parametrize("missing", ["choices", "steps"])
def test_without_tables_there_are_no_conclusions(missing):
    rest = {name: table for name, table in tables(PLANTED).items() if name != missing}
    assert [*conclusions_of_choices(rest, findings())] == []
    assert [*conclusions_of_choices(tables(PLANTED), ())] == []


def test_only_the_compared_groups_of_a_disparity_say_what_becomes_of_it():
    pairs = (("women", "others"), ("others", "men"))
    stating = findings()[2:]
    stated = conclusions_of(stating)
    (same,) = with_effects(stated, tables(PLANTED), stating)
    assert (same.effect, same.change) == ("explains", "terms differ")
    rows = effect_rows(SECOND, "two", "three", pairs=pairs)
    (other,) = with_effects(stated, tables(rows), stating)
    assert (other.effect, other.change) == ("", "")


def result_of(rows):
    manifest = Manifest({}, {}, {}, "", False, {}, {}, 0, "2026-01-01", 1.0, {})
    run_findings = findings()
    conclusions = (
        *conclusions_of_choices(tables(rows), run_findings),
        *conclusions_of(run_findings),
    )
    return AuditResult(run_findings, manifest, tables(rows), conclusions)


def test_the_chart_has_a_mark_for_each_version_and_skips_what_has_no_number():
    result = result_of(PLANTED)
    record = chart_of_choices(result, result.conclusions[0])
    by_label = {}
    for mark in record.marks:
        by_label.setdefault(mark.label, []).append(mark)
    assert [mark.name for mark in by_label["a"]] == ["one", "two", "three"]
    assert {mark.name for mark in by_label.get("f", ())} <= {"one", "two"}
    assert [*by_label][:3] == ["a", "b", "d"]
    # Less accuracy is worse: below 0 for the first group.
    assert record.sides == ("← worse for women", "worse for men →")
    assert record.zero


def test_several_pairs_of_groups_are_named_in_rows():
    pairs = (("women", "men"), ("women", "others"))
    rows = [
        *effect_rows(FIRST, "one", "two", pairs=pairs),
        *effect_rows(SECOND, "two", "three", pairs=pairs),
    ]
    result = result_of(rows)
    record = chart_of_choices(result, result.conclusions[0])
    assert {"a: women − men", "a: women − others"} <= {mark.label for mark in record.marks}
    assert record.sides == ("", "")


def test_tables_have_a_row_for_each_step():
    result = result_of([*PLANTED, *effect_rows(FIRST, "one", "two", "hit_rate")])
    (conclusion, *_) = result.conclusions
    assert [row[1:] for row in table_of_steps(conclusion).rows] == [
        ("1", "0", "0", "0"), ("1", "1", "2", "1"),
    ]  # fmt: skip
    assert len(table_of_every_step(result).rows) == 2
    assert summarize(result, ()).table is not None


def test_nothing_found_is_said():
    rows = effect_rows(["absent"] * len(SUBJECTS), "one", "two")
    (conclusion,) = conclusions_of_choices(tables(rows, STEPS[:1]), findings())
    assert conclusion.n == 0
    assert math.isnan(conclusion.size)
    assert choices_certainty(conclusion) == ""
    assert "accuracy" in choices_sentence(conclusion)

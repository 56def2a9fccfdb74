"""Conclusions that hold in every version, apart from those that some version cannot judge."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest

from audits.concepts.worlds import frame, run, tables, values
from concept_worlds import world
from equipoise.core import AuditResult, Verdict
from equipoise.report import render
from equipoise.report.blocks import Fold, Table, Words
from equipoise.report.sections import concepts, concepts_plots
from equipoise.report.words_robust import counted, held, unknowns, without_baseline

PLACE = {"model": "m", "groups": "gender", "metric": "average_precision"}


def robust(concept: str, *, conclusion: str = "a", known: int = 3, agreeing: int = 3) -> Any:
    pair = {"concept": concept, "group_a": "a", "group_b": "b"}
    share = agreeing / known
    return PLACE | pair | {
        "conclusion": conclusion, "versions": known, "agreeing": agreeing, "share": share
    }  # fmt: skip


def choice(concept: str, version: str, **changes: Any) -> dict[str, Any]:
    base = {
        "concept": concept, "group_a": "a", "group_b": "b", "version": version,
        "effect": "not estimable", "baseline_value": 0.2, "value": np.nan, "low": np.nan,
        "high": np.nan, "significant": False, "baseline_reason": "",
        "reason": "b: 28 positives, fewer than 30",
    }  # fmt: skip
    return PLACE | base | changes


def test_where_a_conclusion_holds() -> None:
    choices = [
        choice("some", "strict"),
        choice("some", "large", reason="b: no rows"),
        choice("alone", "strict"),
        choice("two alone", "strict"),
        choice("two alone", "x"),
        choice("every", "strict", effect="stays", reason=""),
    ]
    rows = [
        robust("every"), robust("some"), robust("alone", known=1, agreeing=1),
        robust("two alone", known=1, agreeing=1),
    ]  # fmt: skip
    every, some, alone, two = held(rows, choices)
    assert every.where == "in all 3 versions"
    assert some.where == (
        "in all 3 of 5 versions that can be estimated; 2 cannot: “strict” (b: 28 positives, fewer "
        "than 30), “large” (b: no rows)"
    )
    assert alone.where == (
        "in the baseline alone; the other version cannot be estimated: “strict” (b: 28 positives, "
        "fewer than 30)"
    )
    assert two.where == (
        "in the baseline alone; none of 2 others can be estimated: “strict” and “x” (b: 28 "
        "positives, fewer than 30)"
    )
    assert [one.robust for one in (every, some, alone, two)] == [True, False, False, False]


def test_long_lists_of_reasons_are_cut() -> None:
    choices = [choice("c", f"v{n}", reason=f"b: {n} positives, fewer than 30") for n in range(5)]
    (one,) = held([robust("c", known=2, agreeing=2)], choices)
    assert one.where.endswith("“v2” (b: 2 positives, fewer than 30), others (2 more reasons)")


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (
            [robust("a"), robust("b", agreeing=2), robust("c", conclusion="")],
            "Of 2 significant differences of the baseline, 1 holds in every version; of 1 that are "
            "not significant, 1 is so in every version.",
        ),
        (
            [robust("a"), robust("some"), robust("alone", known=1, agreeing=1)],
            "Of 3 significant differences of the baseline, 1 holds in every version, 1 in all that "
            "can be estimated (not all can) and 1 in no other, as none can be estimated; of 0 "
            "that are not significant, 0 are so in every version.",
        ),
        (
            [robust("some", conclusion="")],
            "Of 0 significant differences of the baseline, 0 hold in every version; of 1 that are "
            "not significant, 0 are so in every version and 1 in all that can be estimated (not "
            "all can).",
        ),
        # One that a version contradicts holds nowhere, whatever others cannot be estimated.
        (
            [robust("some", agreeing=2)],
            "Of 1 significant difference of the baseline, 0 hold in every version; of 0 that are "
            "not significant, 0 are so in every version.",
        ),
    ],
)
def test_what_is_not_judged_is_counted_apart(rows: list[Any], told: str) -> None:
    choices = [choice("some", "strict"), choice("alone", "strict"), choice("alone", "x")]
    assert counted(held(rows, choices)) == told


def test_a_baseline_that_is_not_estimable_concludes_nothing() -> None:
    lost = {"baseline_value": np.nan, "baseline_reason": "b: 28 positives, fewer than 30"}
    seen = {"value": -0.2, "low": -0.3, "high": -0.1, "significant": True, "reason": ""}
    panel = [
        choice("c", "loose", **lost, **seen),
        choice("c", "few", **lost),
        choice("d", "few", **lost),
    ]
    assert unknowns(panel) == [
        "c: not estimable in the baseline (b: 28 positives, fewer than 30); under “loose” 0.20 "
        "[0.10, 0.30], worse for a, significant.",
        "d: not estimable in the baseline (b: 28 positives, fewer than 30), nor in any other "
        "version.",
    ]
    assert [*without_baseline(panel)] == [
        "Not estimable in the baseline, which concludes nothing of it: c (b: 28 positives, fewer "
        "than 30) and d (b: 28 positives, fewer than 30)."
    ]


def test_runs_from_before_the_reasons_are_read() -> None:
    old = {k: v for k, v in choice("c", "strict").items() if not k.endswith("reason")}
    (one,) = held([robust("c") | {"robust": True}], [old])
    assert not one.robust
    assert one.where == "in all 3 of 4 versions that can be estimated; 1 cannot: “strict”"
    assert unknowns([old]) == ["c: not estimable under “strict”."]


@cache
def planted() -> AuditResult:
    """Chef and nurse have a disparity; group b shows nurse 28 times, and is rare in large boxes."""
    scores, labels, group = world(8, n=2000, prevalence=(0.3, 0.3), shift={0: 1.0, 1: 1.0})
    shown = np.flatnonzero((group == "b") & labels[:, 1])[28:]
    labels[shown, 1] = False
    scores[shown, 1] -= 1.2
    small = (group == "a") | (np.cumsum(group == "b") <= 20)
    data = tables(scores, labels, group, box=np.where(small, 1, 0))
    return run(
        values(
            data,
            models={"m": {"file": data["scores"]}, "n": {"file": data["scores"]}},
            choices={"prevalence": "observed", "min_positives": 20},
            versions={
                "strict": {"min_positives": 30},
                "large": {"where": {"box": {"min": 1}}},
                "fixed": {"prevalence": "weighted"},
            },
            resampling={"replicates": 100, "permutations": 500, "seed": 1},
        )
    )


def told(section: Any) -> list[str]:
    found: list[str] = []
    for block in section.blocks:
        inner = block.blocks if isinstance(block, Fold) else (block,)
        found += [text for one in inner if isinstance(one, Words) for text in one.items]
    return found


def test_a_version_that_drops_a_concept_or_a_group_confirms_nothing() -> None:
    row = frame(planted(), "robust").filter(model="m", concept="nurse").to_dicts()[0]
    assert row["conclusion"] == "a"
    assert (row["versions"], row["not_estimable"], row["agreeing"]) == (2, 2, 2)
    assert not row["robust"]
    assert not frame(planted(), "robust")["robust"].any()
    said = told(concepts.robust(planted()))
    assert (
        "nurse: worse for b than for a, in all 2 of 4 versions that can be estimated; 2 cannot: "
        "“strict” (b: 28 positives, fewer than 30), “large” (b: 20 rows, fewer than 30)." in said
    )
    assert (
        "chef: worse for b than for a, in all 3 of 4 versions that can be estimated; 1 cannot: "
        "“large” (b: 20 rows, fewer than 30)." in said
    )
    counts = next(text for text in said if text.startswith("Of "))
    assert counts.startswith(
        "Of 2 significant differences of the baseline, 0 hold in every version and 2 in all that "
        "can be estimated (not all can); "
    )
    assert not any("in all 4 versions" in text for text in said)


def test_what_cannot_be_estimated_is_said_beside_what_changes() -> None:
    said = told(concepts.versions(planted()))
    assert said[0] == (
        "3 other choices beside the baseline: of 30 comparisons of a version with it, "
        f"{said[0].split('with it, ')[1].split(' come')[0]} come to another conclusion or another "
        "size, and 12 cannot be made."
    )
    assert said[-2:] == [
        "Nothing is estimable under “large” (b: 20 rows, fewer than 30).",
        "nurse: not estimable under “strict” (b: 28 positives, fewer than 30).",
    ]
    order = told(concepts_plots.order(planted()))
    assert any(
        "mean over concepts, chef, nurse, guitar and bicycle under “large”" in text
        for text in order
    )


def test_nothing_changes_only_where_it_can_be_estimated() -> None:
    found = frame(planted(), "choices").filter(pl.col("version") == "large")
    alone = replace(planted(), tables=planted().tables | {"choices": found.to_arrow()})
    said = told(concepts.versions(alone))
    assert "No other choice changes a conclusion or a size where it can be estimated." in said


def test_the_table_has_what_cannot_be_estimated_in_a_column() -> None:
    section = concepts.robust(planted())
    assert section is not None
    (table,) = (block for block in section.blocks if isinstance(block, Table))
    place = [column.title for column in table.columns].index("Not estimable")
    shown = {row[0]: (row[place - 1], row[place]) for row in table.rows}
    assert shown["nurse"] == ("2 of 2", "2")
    assert shown["chef"] == ("3 of 3", "1")


def test_findings_and_the_page_say_it_too() -> None:
    found = {
        one.subject: one
        for one in planted().findings
        if one.model == "m" and one.version == "baseline"
    }
    assert found["nurse"].reason.endswith(
        "cannot be estimated in strict, large (b: 28 positives, fewer than 30 / b: 20 rows, fewer "
        "than 30)"
    )
    assert "in strict the mean is over 3 concepts, not 4: without nurse" in found[""].reason
    assert found["nurse"].verdict is Verdict.DISPARITY
    page = re.sub(r"<[^>]+>", " ", render(planted()))
    assert "A version that cannot be estimated agrees with nothing." in page
    assert "in all 2 of 4 versions that can be estimated; 2 cannot" in page


@cache
def three() -> AuditResult:
    """A version drops one of three groups from one concept."""
    scores, labels, _ = world(3, n=3000, concepts=4, prevalence=(0.3, 0.3))
    group = np.random.default_rng(2).choice(["a", "b", "c"], 3000)
    scores[:, 0] -= 1.5 * ((group == "b") & labels[:, 0])
    rare = np.flatnonzero((group == "c") & labels[:, 0])[40:]
    labels[rare, 0] = False
    data = tables(scores, labels, group)
    return run(values(data, versions={"strict": {"min_positives": 60}}))


def test_of_several_groups_the_pairs_that_lack_one_are_named() -> None:
    rows = {
        (row["group_a"], row["group_b"]): row
        for row in frame(three(), "robust").filter(concept="chef").to_dicts()
    }
    assert [rows[pair]["not_estimable"] for pair in (("a", "b"), ("a", "c"), ("b", "c"))] == [
        0, 1, 1
    ]  # fmt: skip
    assert rows["a", "b"]["robust"]
    said = told(concepts.versions(three()))
    assert "chef (b and c): not estimable under “strict” (c: 40 positives, fewer than 60)." in said
    conclusions = told(concepts.robust(three()))
    assert "chef: worse for b than for a, in all 2 versions." in conclusions
    assert (
        "chef: worse for b than for c, in the baseline alone; the other version cannot be "
        "estimated: “strict” (c: 40 positives, fewer than 60)." in conclusions
    )

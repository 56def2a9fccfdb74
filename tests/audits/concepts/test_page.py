"""The page of an audit of concepts: the example's as text, and what versions can't estimate."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from audits.concepts.worlds import frame, run, tables, values
from concept_worlds import world
from equipoise import audits
from equipoise.audits.concepts.page import PAGE
from equipoise.core import AuditResult, Verdict
from equipoise.report import render
from equipoise.report.blocks import Table
from page_text import check_snapshot, page_text

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "concepts"
SECTIONS = {make.__name__: make for make in PAGE.sections}


@cache
def example() -> AuditResult:
    return audits.run(audits.load_config(EXAMPLE / "audit.yaml"), base=EXAMPLE)


def section(name: str, result: AuditResult) -> Any:
    made = SECTIONS[name](result)
    assert made is not None
    return made


def test_the_page_of_the_example() -> None:
    check_snapshot(Path(__file__).with_name("page.txt"), page_text(render(example(), PAGE)))


def test_of_false_positives_the_higher_rate_is_worse() -> None:
    scores, labels, group = world(3, n=900, prevalence=(0.3, 0.3))
    scores[:, 0] += 1.5 * ((group == "b") & ~labels[:, 0])
    versions = {"observed": {"prevalence": "observed"}}
    data = tables(scores, labels, group)
    result = run(values(data, metrics=["false_positive_rate"], versions=versions))
    table = next(b for b in section("robust", result).blocks if isinstance(b, Table))
    assert ("chef", "worse for b than for a") in [row[:2] for row in table.rows]


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


def test_a_version_that_drops_a_concept_or_a_group_confirms_nothing() -> None:
    row = frame(planted(), "robust").filter(model="m", concept="nurse").to_dicts()[0]
    assert row["conclusion"] == "a"
    assert (row["versions"], row["not_estimable"], row["agreeing"]) == (2, 2, 2)
    assert not frame(planted(), "robust")["robust"].any()
    found = {
        one.subject: one
        for one in planted().findings
        if one.model == "m" and one.version == "baseline"
    }
    assert found["nurse"].verdict is Verdict.DISPARITY


@pytest.mark.parametrize(("pair", "left"), [("ab", 0), ("ac", 1), ("bc", 1)])
def test_of_several_groups_the_pairs_that_lack_one_are_named(pair: str, left: int) -> None:
    row = frame(three(), "robust").filter(concept="chef", group_a=pair[0], group_b=pair[1])
    assert row["not_estimable"].to_list() == [left]


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

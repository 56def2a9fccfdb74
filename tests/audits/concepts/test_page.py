"""The page of an audit of concepts: the example's as text, and what versions can't estimate."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from audits.concepts.worlds import frame, run, tables, values
from concept_worlds import world
from equipoise import audits
from equipoise.audits.concepts.page import PAGE
from equipoise.core import AuditResult, Verdict
from equipoise.report import render
from equipoise.report.blocks import Table, Words
from page_text import check_snapshot, page_text
from report.drawn import charts

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "concepts"
SECTIONS = {make.__name__: make for make in PAGE.sections}


@cache
def example() -> AuditResult:
    return audits.run(audits.load_config(EXAMPLE / "audit.yaml"), base=EXAMPLE)


def section(name: str, result: AuditResult) -> Any:
    made = SECTIONS[name](result)
    assert made is not None
    return made


def statements(name: str, result: AuditResult) -> list[str]:
    return [t for b in section(name, result).blocks if isinstance(b, Words) for t in b.items]


def test_the_page_of_the_example() -> None:
    check_snapshot(Path(__file__).with_name("page.txt"), page_text(render(example(), PAGE)))


def test_a_symbol_for_every_concept_and_version() -> None:
    data = charts(section("versions", example()).blocks)[0].data["rows"]
    assert len(data) == 7 * 6
    symbols = {(cell["row"], cell["column"]): cell["symbol"] for cell in data}
    assert symbols["nurse", "large boxes"] == "⇄"
    assert symbols["guitar", "adults only"] == "×"
    assert symbols["chef", "observed prevalence"] == "+"
    assert symbols["chef", "large boxes"] == "–"
    assert symbols["wheelchair", "baseline"] == "●"
    assert data[0]["row"] == "mean over concepts"


def test_effects_are_counted_by_version() -> None:
    blocks = section("versions", example()).blocks
    table = next(block for block in blocks if isinstance(block, Table))
    titles = [column.title for column in table.columns]
    (large,) = (row for row in table.rows if row[0] == "large boxes")
    cells = dict(zip(titles, map(str, large), strict=True))
    assert (cells["⇄ switches"], cells["– not estimable"]) == ("1", "1")
    assert sum(int(cell) for name, cell in cells.items() if name != "Version") == 6


def test_a_plot_for_each_concept_has_a_row_for_each_version() -> None:
    plots = {one.title: one for one in charts(section("side_by_side", example()).blocks)[:7]}
    nurse = plots["nurse: Female − Male"].data["rows"]
    assert [point["label"] for point in nurse][:2] == ["● baseline", "● observed prevalence"]
    assert [point["value"] > 0 for point in nurse] == [False] * 4 + [True, False]
    # What can't be estimated has no row.
    assert len(plots["chef: Female − Male"].data["rows"]) == 5


def test_the_metric_stands_beside_prevalence() -> None:
    value, share = charts(section("prevalence", example()).blocks)[:2]
    assert [one["label"] for one in value.data["rows"]] == [
        one["label"] for one in share.data["rows"]
    ]
    chef = [one["value"] for one in share.data["rows"] if one["label"] == "chef"]
    assert max(chef) - min(chef) > 0.25


def test_results_without_tables_have_no_sections() -> None:
    empty = replace(example(), tables={})
    assert [make(empty) for make in PAGE.sections] == 5 * [None]
    assert 'id="prevalence"' not in render(empty, PAGE)


def test_names_from_the_data_are_escaped() -> None:
    hostile = "<script>alert(1)</script>"
    changed = dict(example().tables)
    for name in ("choices", "robust", "concept_groups", "concepts", "model_order"):
        table = changed[name]
        place = table.column_names.index("concept")
        cells = [hostile if one == "nurse" else one for one in table["concept"].to_pylist()]
        changed[name] = table.set_column(place, "concept", pa.array(cells, pa.string()))
    page = render(replace(example(), tables=changed), PAGE)
    assert hostile not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


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
    table = next(b for b in section("robust", planted()).blocks if isinstance(b, Table))
    shown = {(row[0], row[4]): row for row in table.rows}
    assert shown["nurse", "m"][1:4] == ("worse for b than for a", "2 of 2", "2")
    assert shown["chef", "m"][1:4] == ("worse for b than for a", "3 of 3", "1")
    assert shown["nurse", "m"][-1] == (
        "strict (b: 28 positives, fewer than 30); large (b: 20 rows, fewer than 30)"
    )
    assert statements("robust", planted())[1].endswith(
        ": 0 the same in every version, 2 in all that can be estimated, 0 with no version that can."
    )


def test_versions_that_cannot_be_estimated_are_named_with_the_reason() -> None:
    texts = statements("versions", planted())
    assert texts[0].endswith("12 can't be estimated.")
    assert "In “strict” (b: 28 positives, fewer than 30): nurse." in texts
    every = "mean over concepts, chef, nurse, guitar and bicycle"
    assert f"In “large” (b: 20 rows, fewer than 30): {every}." in texts
    order = statements("order", planted())
    assert f"Under “large”, no order for {every}: not estimable." in order


def test_findings_say_it_too() -> None:
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


@pytest.mark.parametrize(("pair", "left"), [("ab", 0), ("ac", 1), ("bc", 1)])
def test_of_several_groups_the_pairs_that_lack_one_are_named(pair: str, left: int) -> None:
    row = frame(three(), "robust").filter(concept="chef", group_a=pair[0], group_b=pair[1])
    assert row["not_estimable"].to_list() == [left]
    texts = " ".join(statements("versions", three()))
    assert (f"chef: {pair[0]} − {pair[1]}" in texts.split("Not estimable")[1]) == bool(left)
    groups = [one.group for one in three().findings[0].by_group]
    assert len(groups) == 2
    page = render(three(), PAGE)
    table = page[page.index('id="groups"') : page.index('id="findings"')]
    assert all(f">{group}</th>" in table for group in "abc")


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

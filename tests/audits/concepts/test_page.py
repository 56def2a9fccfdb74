"""The page of an audit of concepts: the example's as text, and what versions can't estimate."""

from functools import cache
from pathlib import Path

from audits.concepts.worlds import run, tables, values
from concept_worlds import world
from equipoise import audits
from equipoise.audits.concepts.page import PAGE
from equipoise.report import render
from equipoise.report.blocks import Table
from page_text import check_snapshot, page_text

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "concepts"
SECTIONS = {make.__name__: make for make in PAGE.sections}


@cache
def example():
    return audits.run(audits.load_config(EXAMPLE / "audit.yaml"), base=EXAMPLE)


def section(name, result):
    made = SECTIONS[name](result)
    assert made is not None
    return made


def test_the_page_of_the_example():
    check_snapshot(Path(__file__).with_name("page.txt"), page_text(render(example(), PAGE)))


def test_of_false_positives_the_higher_rate_is_worse():
    scores, labels, group = world(3, n=900, prevalence=(0.3, 0.3))
    scores[:, 0] += 1.5 * ((group == "b") & ~labels[:, 0])
    versions = {"observed": {"prevalence": "observed"}}
    data = tables(scores, labels, group)
    result = run(values(data, metrics=["false_positive_rate"], versions=versions))
    table = next(b for b in section("robust", result).blocks if isinstance(b, Table))
    assert ("chef", "worse for b than for a") in [row[:2] for row in table.rows]

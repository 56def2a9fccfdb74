"""Verdicts are counted model by model where a run has several models."""

from dataclasses import replace

import pytest

from equipoise.core import AuditResult, Verdict
from equipoise.report import render
from equipoise.report.blocks import Table
from equipoise.report.sections.verdicts import verdicts
from report.synthetic import finding, manifest
from report.synthetic_large import comparison

SAID = (
    ("null", Verdict.NONE), ("null", Verdict.BELOW_THRESHOLD), ("biased", Verdict.DISPARITY),
    ("", Verdict.DISPARITY), ("biased", Verdict.DISPARITY), ("extra", Verdict.INCONCLUSIVE),
)  # fmt: skip
HEAD = '<ul class="tally" aria-label="Findings by verdict">'


def result(*models: str, declared: tuple[str, ...] = ("biased", "null", "unused")) -> AuditResult:
    found = tuple(finding(model=model, verdict=said) for model, said in SAID if model in models)
    names = {"models": {name: {} for name in declared}} if declared else {}
    return AuditResult(found, replace(manifest(), resolved=names), {})


def told(of: AuditResult) -> Table:
    section = verdicts(of)
    assert section is not None
    assert (section.id, section.title) == ("verdicts", "Findings by verdict")
    (table,) = section.blocks
    assert isinstance(table, Table)
    return table


def test_models_come_as_declared_then_others_then_findings_of_no_model() -> None:
    table = told(result("biased", "null", "extra", ""))
    assert [column.title for column in table.columns] == [
        "Model", "▲ disparity", "◆ inconclusive", "▽ below threshold", "– no verdict",
    ]  # fmt: skip
    assert [column.numeric for column in table.columns] == [False, True, True, True, True]
    assert table.rows == (
        ("biased", "2", "0", "0", "0"),
        ("null", "0", "0", "1", "1"),
        ("extra", "0", "1", "0", "0"),
        ("no model", "1", "0", "0", "0"),
    )


def test_models_that_nothing_declares_come_in_the_order_of_findings() -> None:
    assert [row[0] for row in told(result("biased", "null", declared=())).rows] == [
        "null",
        "biased",
    ]


def test_the_counts_of_several_models_are_the_first_section_and_not_added_up() -> None:
    page = render(result("biased", "null"))
    assert HEAD not in page
    assert page.index('<section id="verdicts"') < page.index('<section id="summary"')


@pytest.mark.parametrize("models", [("biased",), ("biased", "")])
def test_the_counts_of_one_model_stay_in_the_head(models: tuple[str, ...]) -> None:
    assert verdicts(result(*models)) is None
    assert HEAD in render(result(*models))


def test_pairs_of_models_have_one_count() -> None:
    assert verdicts(comparison()) is None
    assert HEAD in render(comparison())

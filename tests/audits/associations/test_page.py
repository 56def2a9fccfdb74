"""The page of an audit of associations."""

from pathlib import Path

import pytest

from equipoise import audits
from equipoise.audits.associations.page import PAGE
from equipoise.core import AuditResult
from equipoise.report import render
from page_text import check_snapshot, page_text

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "associations" / "audit.yaml"


@pytest.fixture(scope="module")
def result() -> AuditResult:
    config = audits.load_config(EXAMPLE)
    few = config.resampling.model_copy(update={"replicates": 20, "permutations": 99})
    return audits.run(config.model_copy(update={"resampling": few}), base=EXAMPLE.parent)


def test_the_page_of_the_example(result: AuditResult) -> None:
    check_snapshot(Path(__file__).with_name("page.txt"), page_text(render(result, PAGE)))


def test_tables_of_charts_have_their_source(result: AuditResult) -> None:
    titles = {section.id for make in PAGE.sections if (section := make(result)) is not None}
    assert titles == {
        "scores", "mcas", "amplification", "further", "totals", "regions", "external", "labels",
        "sets",
    }  # fmt: skip
    empty = AuditResult((), result.manifest, {})
    assert not [make for make in PAGE.sections if make(empty) is not None]

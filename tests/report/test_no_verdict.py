"""A value without a verdict is shown with what that means."""

from dataclasses import replace

import pytest

from equipoise.core import AuditResult, Verdict
from equipoise.report.blocks import Heading, Table, Words
from equipoise.report.sections.findings import findings
from equipoise.report.sections.models import models
from report.synthetic import faces, finding, manifest

SAID = (
    "A value without a verdict is described, not judged: it says neither that there is a "
    "disparity nor that there is none. Its reason says why, and names what is tested in its "
    "place, if anything is."
)


def words_after_headings(result: AuditResult) -> dict[str, str]:
    section = findings(result)
    assert section is not None
    return {
        block.text: " ".join(after.items)
        for block, after in zip(section.blocks, section.blocks[1:], strict=False)
        if isinstance(block, Heading) and isinstance(after, Words)
    }


def test_values_without_a_verdict_are_explained_where_they_are_listed() -> None:
    described = finding(verdict=Verdict.NONE, reason="logit_gap is tested")
    found = words_after_headings(AuditResult((finding(), described), manifest(), {}))
    assert found == {"Described without a verdict (1)": SAID}


def test_the_changes_of_a_mitigation_have_words_of_their_own() -> None:
    change = replace(finding(verdict=Verdict.NONE), audit="mitigation")
    recipes = faces().tables["states"]
    result = AuditResult((change,), manifest(), {"mitigation_recipes": recipes})
    assert words_after_headings(result) == {}


@pytest.mark.parametrize("place", [0, 1])
def test_models_side_by_side_say_why_a_value_has_no_symbol(place: int) -> None:
    section = models(faces())
    assert section is not None
    table = [block for block in section.blocks if isinstance(block, Table)][place]
    assert table.caption.endswith("the verdict's symbol, none where described only")

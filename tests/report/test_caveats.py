"""In short says before any counting of disparities what every trained model has."""

from dataclasses import replace

import pytest

from equipoise.core import AuditResult, Verdict
from equipoise.report.blocks import Section, Words
from equipoise.report.sections.summary import summary
from report.synthetic import faces, finding, manifest

RULE = (
    "A trained model has small preferences of its own, whatever it was trained on: with images "
    "enough any of them has a small p. "
)
METRICS = {"retrieval": "ndkl", "counterfactuals": "ndkl", "similarity": "logit_gap"}


def short(audit: str, verdict: Verdict) -> Section:
    one = replace(finding(metric=METRICS[audit], subject="nurse"), audit=audit, verdict=verdict)
    section = summary(AuditResult((one,), manifest(), {}))
    assert section is not None
    return section


@pytest.mark.parametrize(
    ("audit", "advice"),
    [
        ("retrieval", "A ranking shows a preference whatever its size"),
        ("counterfactuals", "A ranking shows a preference whatever its size"),
        ("similarity", "Read the size of a gap"),
    ],
)
def test_disparities_are_told_with_the_caveat(audit: str, advice: str) -> None:
    statements, caveat = short(audit, Verdict.DISPARITY).blocks
    assert isinstance(statements, Words)
    assert isinstance(caveat, Words)
    assert caveat.style == "note"
    (text,) = caveat.items
    assert text.startswith(RULE + advice)


@pytest.mark.parametrize("audit", METRICS)
def test_without_a_disparity_there_is_nothing_to_add(audit: str) -> None:
    assert len(short(audit, Verdict.BELOW_THRESHOLD).blocks) == 1


def test_rates_of_groups_have_no_such_caveat() -> None:
    section = summary(faces())
    assert section is not None
    assert len(section.blocks) == 1

"""Findings about the answers to all images: one answer to nearly all, and expected shares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from equipoise.audits.findings import Place, UncorrectedFinding, whole
from equipoise.audits.labels.designs import LabelDesign
from equipoise.core import Family
from equipoise.core.sentences import Sentence
from equipoise.core.wording import percent, shortened
from equipoise.data.resolver import NO_CLASS
from equipoise.metrics.labels.answer_levels import answer_level, dominant_answer

if TYPE_CHECKING:
    from equipoise.stats import Resampling


def one_answer(design: LabelDesign, place: Place) -> Iterator[UncorrectedFinding]:
    """Yield the finding that a model gives one answer to nearly all images, where it does."""
    truth = design.target if (design.target.codes >= 0).any() else None
    estimate = dominant_answer(design.label, truth, units=design.units)
    if estimate.chance is None or not estimate.value >= estimate.chance.mean:
        return
    answer, n_same = str(estimate.params["answer"]), estimate.params["count"]
    if answer in NO_CLASS:
        return
    counted = f"{n_same} of {sum(estimate.n.values())}"
    yield whole(estimate, place, Family.COMPOSITE).changed(
        direction=Sentence(f"“{shortened(answer)}” for {percent(estimate.value)} ({counted})")
    )


def expected_answers(
    design: LabelDesign,
    place: Place,
    expected: Mapping[str, float],
    resampling: Resampling | None,
    seed: int,
) -> Iterator[UncorrectedFinding]:
    """Yield how far answers to all images depart from the expected shares."""
    if not any(design.label.equals(answer).any() for answer in expected):
        return
    estimate = answer_level(
        design.label, expected, units=design.units, resampling=resampling, rng=seed
    )
    shares = tuple(part.by_group[0] for part in estimate.parts)
    yield whole(estimate, place, Family.COMPOSITE, by_group=shares, shows="share of answers")

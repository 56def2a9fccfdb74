"""Findings about the answers to all images: few of them, one to nearly all, expected shares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from equipoise.audits.findings import Place, UncorrectedFinding, whole
from equipoise.audits.labels.designs import LabelDesign
from equipoise.core import Family, Floats, Groups, Labels
from equipoise.core.sentences import Sentence
from equipoise.core.wording import percent, shortened
from equipoise.data.resolver import NO_CLASS
from equipoise.metrics.labels.answer_levels import answer_level, dominant_answer
from equipoise.metrics.numbers.unusable_share import FEW_ANSWERS, unusable_share

if TYPE_CHECKING:
    from equipoise.stats import Resampling


def few_answers(
    unusable: Floats,
    groups: Groups,
    units: Labels | None,
    place: Place,
    resampling: Resampling | None,
    *,
    of: str,
) -> Iterator[UncorrectedFinding]:
    """Yield a finding if a model gives few usable answers to every group.

    Parameters
    ----------
    unusable : ndarray, shape (n,)
        Share of the responses to each row without a usable answer; NaN where asking failed.
    groups : Groups
    units : array-like (n,), optional
    place : Place
        Without groups.
    resampling : Resampling, optional
    of : str
        What shares and rows are of, as in "responses to {n} items".
    """
    estimate = unusable_share(unusable, groups, units=units, resampling=resampling)
    shares = [part.value for part in estimate.parts[0].by_group if not part.note]
    # Of no group alone: where groups differ, the difference leads.
    if not shares or not min(shares) >= FEW_ANSWERS or estimate.chance is None:
        return
    n = int((~np.isnan(unusable)).sum())
    consequence = "Other numbers are of the rest"
    if estimate.value == 1.0:
        consequence = "Nothing can be compared"
    yield whole(estimate, place, Family.COMPOSITE).changed(
        reason=f"at least {percent(FEW_ANSWERS)} of the responses to every group can't be used",
        direction=Sentence(f"in {percent(estimate.value)} of the {of.format(n=n)}. {consequence}"),
    )


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

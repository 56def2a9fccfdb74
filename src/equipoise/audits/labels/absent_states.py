"""Shares of rows without an answer, over all rows, and gaps of 0 in states that no row has."""

from collections.abc import Iterable

import numpy as np

from equipoise.audits.findings import (
    Place,
    UncorrectedFinding,
    direction,
    parts,
    whole,
    without_verdict,
)
from equipoise.audits.labels.designs import LabelDesign
from equipoise.core import Booleans, Family, Groups, Labels
from equipoise.data import Coded
from equipoise.metrics.labels import count
from equipoise.metrics.labels.answer_rates import unanswered_rate
from equipoise.metrics.labels.rates import DemographicParity
from equipoise.metrics.measure import measure
from equipoise.metrics.numbers.means import mean_value
from equipoise.metrics.registry import name_of
from equipoise.stats import Resampling

UNANSWERED = name_of(unanswered_rate)
_STATE, _OTHER = "(state)", "(other)"
_NO_ROWS = "none of them is in this state, so there is nothing to test"


def counted_rows(design: LabelDesign) -> Booleans:
    """Return the rows with a true class; all of them where there are no true classes."""
    if design.target.vocabulary:
        return design.target.codes >= 0
    return np.ones(len(design.target.codes), np.bool_)


def unanswered_share(
    design: LabelDesign, place: Place, resampling: Resampling | None
) -> UncorrectedFinding:
    """Return the share of all rows without an answer, which compares no groups."""
    answered = design.labels.coded_state.take(design.rows).equals("answered")
    values = np.where(counted_rows(design), ~answered, np.nan)
    share = mean_value(UNANSWERED, values, units=design.units, resampling=resampling)
    return whole(share, place, Family.DESCRIPTIVE)


def absent_gaps(
    metrics: Iterable[str],
    counted: Booleans,
    groups: Groups,
    units: Labels | None,
    place: Place,
    resampling: Resampling | None,
) -> list[UncorrectedFinding]:
    """Return gaps of 0 between groups, untested, in the shares of states that no row has.

    Parameters
    ----------
    metrics : iterable of str
        Shares of states that no row has.
    counted : ndarray of bool, shape (n,)
        Rows that count.
    groups : Groups
        Of the rows.
    units : array-like (n,) or None
    place, resampling
        Of the measurement.
    """
    names = [*metrics]
    if not names:
        return []
    codes = np.where(counted, 0, -1).astype(np.int32)
    state, answered = Coded(codes, (_STATE,)), Coded(codes, (_OTHER,))
    counts = count(state, answered, groups, units=units)
    estimate = measure(counts, [DemographicParity()], resampling, 0)[0]
    gaps = [draft for draft in parts(estimate, place) if draft.finding.subject == _STATE]
    return [
        without_verdict(draft, _NO_ROWS).changed(
            metric=metric, subject="", direction=direction(metric, "", draft.finding.by_group)
        )
        for metric in names
        for draft in gaps
    ]

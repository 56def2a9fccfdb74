"""Cells that may explain disparities: how many hits they lack or have beyond other groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from equipoise.audits.cells import Cell, Outcomes
from equipoise.core import Booleans, Floats
from equipoise.stats.additivity import departures

_LOG_ODDS = 2 * np.log(20.0)
"""Of two causes, that a group is better off has to be twenty times as likely as the other."""


@dataclass(frozen=True)
class Candidate:
    """A cell, how many hits it lacks against the other groups, and the z-score of that.

    Attributes
    ----------
    cell : Cell
    lacking : float
        Negative where the cell has more hits than its share.
    score : float
        Positive on both sides.
    """

    cell: Cell
    lacking: float
    score: float

    @property
    def likelihood(self) -> float:
        """Twice the logarithm of how likely the cell is to be the cause, up to a constant."""
        return self.score**2 - (_LOG_ODDS if self.lacking < 0 else 0.0)

    def holds(self, part: Candidate) -> bool:
        """Whether the rows beside a part of an intersection lack at least half as many."""
        cell, inner = self.cell, part.cell
        levels = {*zip(cell.groups.attributes, cell.levels, strict=True)}
        inner_levels = {*zip(inner.groups.attributes, inner.levels, strict=True)}
        if cell.subject != inner.subject or not levels < inner_levels or cell.n <= inner.n:
            return False
        other_share = (self.lacking - part.lacking) / (cell.n - inner.n)
        return bool(2 * other_share * np.sign(part.lacking) >= abs(part.lacking) / inner.n)


def likeliest(candidates: Sequence[Candidate]) -> Candidate:
    """Return the likeliest cell; of an intersection, the attribute that differs throughout.

    A group that is better off than the others is the cause only if that is far likelier than that
    a group is worse off. Of two groups, the one that is worse off is.
    """
    best = max(candidates, key=lambda candidate: candidate.likelihood)
    wider = [candidate for candidate in candidates if candidate.holds(best)]
    return max(wider, key=lambda candidate: candidate.likelihood, default=best)


def candidates_of(outcomes: Outcomes, level: float) -> Iterator[Candidate]:
    """Yield cells with how much less often, or more often, they are right than other groups.

    Intersections are cells only where they depart from what their attributes add up to.
    """
    usable = outcomes.groups.usable[:, None]
    right, rows = np.where(usable, outcomes.right, 0.0), np.where(usable, outcomes.rows, 0.0)
    lacking, variance = lacking_of(right, rows)
    scores = scores_of(lacking, variance)
    beyond, beyond_as_a_whole = _beyond_attributes(outcomes, right, rows, lacking, level)
    for group, subject in np.argwhere((variance > 0) & beyond).tolist():
        cell = Cell(outcomes.groups, group, outcomes.classes[subject], int(rows[group, subject]))
        yield Candidate(cell, float(lacking[group, subject]), abs(float(scores[group, subject])))
    cutoff = NormalDist().inv_cdf(1 - level / scores.size)
    together = scores_of(lacking.sum(axis=1), variance.sum(axis=1))
    for group in np.flatnonzero(variance.any(axis=1) & beyond_as_a_whole).tolist():
        sign = np.sign(together[group])
        alone = sign * scores[group] >= cutoff
        if _lacks_as_a_whole(sign * lacking[group], rows[group], alone):
            cell = Cell(outcomes.groups, group, "", int(rows[group].sum()))
            yield Candidate(cell, float(lacking[group].sum()), abs(float(together[group])))


def lacking_of(right: Floats, rows: Floats) -> tuple[Floats, Floats]:
    """Return how many hits groups lack against all, along the first axis, and the variance.

    The variance is that of a hypergeometric count.
    """
    all_right, all_rows = right.sum(axis=0), rows.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = all_right / all_rows
        lacking = rows * share - right
        variance = rows * share * (1 - share) * (all_rows - rows) / np.maximum(all_rows - 1, 1)
    return np.nan_to_num(lacking), np.nan_to_num(variance)


def scores_of(lacking: Floats, variance: Floats) -> Floats:
    """Return by how many standard errors groups lack hits."""
    scores: Floats = lacking / np.sqrt(np.where(variance > 0, variance, np.inf))
    return scores


def _beyond_attributes(
    outcomes: Outcomes, right: Floats, rows: Floats, lacking: Floats, level: float
) -> tuple[Booleans, Booleans]:
    """Return which cells and groups depart from what their attributes add up to, if several."""
    if len(outcomes.groups.attributes) < 2:
        return np.ones(rows.shape, bool), np.ones(len(rows), bool)
    cutoff = NormalDist().inv_cdf(1 - level / rows.size)
    # With half a hit and half a miss more, no share has an error of 0.
    share = (right + 0.5) / (rows + 1.0)
    variance = rows * share * (1 - share)
    columns = [*zip(lacking.T, variance.T, rows.T, strict=True)]
    columns.append((lacking.sum(axis=1), variance.sum(axis=1), rows.sum(axis=1)))
    signs, beyond = np.sign(np.column_stack([column[0] for column in columns])), []
    for hits, spread, n in columns:
        size = np.where(n > 0, n, 1.0)
        beyond.append(departures(outcomes.groups.levels, hits / size, spread / size**2, n))
    same_side = np.column_stack(beyond) * signs >= cutoff
    return same_side[:, :-1], same_side[:, -1]


def _lacks_as_a_whole(lacking: Floats, rows: Floats, alone: Booleans) -> bool:
    """Whether a group lacks hits in all its classes, rather than in those that do so alone.

    The other classes lack at least half as many of their rows.
    """
    if alone.all() or not alone.any() or not rows[~alone].any():
        return True
    share, other_share = (lacking[side].sum() / rows[side].sum() for side in (alone, ~alone))
    return bool(2 * other_share >= share)

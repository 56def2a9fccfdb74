"""How well a unit tells a group from the others: the area under its ROC curve, with a test."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from equipoise.core.errors import InputError
from equipoise.core.groups import Groups
from equipoise.core.labels import encode
from equipoise.stats.chance import benjamini_hochberg

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

# Members of the smaller side up to which p is exact, where no activations are equal.
_EXACT = 8
_UNITS_AT_ONCE = 1024


@dataclass(frozen=True, eq=False)
class Selectivity:
    """How units respond to groups.

    Attributes
    ----------
    groups : tuple of str
        Each against all others; of two groups the first against the second alone, which says the
        same of both.
    auroc : ndarray of float64, shape (groups, units)
        Probability that a unit is more active on an image of the group than on one of the others,
        ties counted half: 0.5 says nothing, above 0.5 it responds to the group, below to the
        others. NaN where images cannot be compared.
    p_value, q_value : ndarray of float64, shape (groups, units)
        Two-sided; corrected over all units and groups together.
    names : tuple of str
        All groups, those without a row as well.
    """

    groups: tuple[str, ...]
    auroc: Floats = field(repr=False)
    p_value: Floats = field(repr=False)
    q_value: Floats = field(repr=False)
    names: tuple[str, ...]

    @property
    def strength(self) -> Floats:
        """How far each unit is from saying nothing, in its strongest group; shape (units,)."""
        away = np.abs(self.auroc - 0.5)
        return np.asarray(np.where(np.isnan(away), -1.0, away).max(axis=0))


def selectivity(activations: npt.ArrayLike, groups: Any, *, within: Any = None) -> Selectivity:
    """Measure how well each unit tells groups apart.

    Parameters
    ----------
    activations : array-like, shape (n, units)
        Of each unit on each image.
    groups : array-like (n,), mapping of attribute to labels, or Groups
        Images without a group take no part.
    within : array-like (n,), optional
        What images are only compared within, such as their subject or their counterfactual set, so
        that a unit that responds to that is not taken for one that responds to the group.

    Returns
    -------
    Selectivity
        P-values by Mann and Whitney's test: normal, with the variance that equal activations leave
        and a correction for continuity; exact where a side has at most 8 images, no activations
        are equal and nothing is held fixed. With `within`, statistics and variances are summed over
        strata (van Elteren's test with equal weights).

    Raises
    ------
    InputError
        When shapes do not fit, an activation is not finite, or fewer than two groups have images.

    References
    ----------
    Mann & Whitney 1947; van Elteren 1960; Benjamini & Hochberg 1995.
    """
    values, found = np.asarray(activations, dtype=np.float64), Groups.of(groups)
    if values.ndim != 2 or len(values) != len(found.codes):
        raise InputError(
            f"activations: shape {values.shape} for {len(found.codes)} labels; expected (n, units)"
        )
    if not np.isfinite(values).all():
        raise InputError("activations: a number is not finite; leave out its image")
    present = np.flatnonzero(found.counts > 0)
    if len(present) < 2:
        raise InputError("groups: fewer than two have images; expected two or more to tell apart")
    strata = _strata(within, found)
    tested = present[:1] if len(present) == 2 else present
    shape = (len(tested), values.shape[1])
    auroc, p = np.empty(shape), np.empty(shape)
    for row, code in enumerate(tested.tolist()):
        for start in range(0, shape[1], _UNITS_AT_ONCE):
            part = slice(start, start + _UNITS_AT_ONCE)
            auroc[row, part], p[row, part] = _tested(values[:, part], found.codes == code, strata)
    q = benjamini_hochberg(p.ravel()).reshape(shape)
    names = tuple(found.names[code] for code in present.tolist())
    return Selectivity(tuple(found.names[code] for code in tested.tolist()), auroc, p, q, names)


def _strata(within: Any, groups: Groups) -> list[npt.NDArray[np.int64]]:
    """Return the rows of each stratum: all that have a group, where nothing is held fixed."""
    known = groups.codes >= 0
    if within is None:
        return [np.flatnonzero(known)]
    codes, names = encode(within, what="within")
    if len(codes) != len(known):
        raise InputError(f"within: {len(codes)} labels for {len(known)} images; expected one each")
    return [np.flatnonzero(known & (codes == code)) for code in range(len(names))]


def _tested(
    values: Floats, member: Bools, strata: list[npt.NDArray[np.int64]]
) -> tuple[Floats, Floats]:
    """Return AUROC and p of each unit, each (units,)."""
    above, pairs, variance = (np.zeros(values.shape[1]) for _ in range(3))
    ties = False
    for rows in strata:
        inside = member[rows]
        ones, others = int(inside.sum()), int((~inside).sum())
        if not ones or not others:
            continue
        counted, spread, tied = _counted(values[rows], inside)
        above, pairs, variance = above + counted, pairs + ones * others, variance + spread
        ties = ties or tied
    with np.errstate(invalid="ignore", divide="ignore"):
        auroc = np.where(pairs > 0, above / pairs, np.nan)
        # Half a pair, of a statistic that counts pairs.
        beyond = np.maximum(np.abs(above - pairs / 2.0) - 0.5, 0.0) / np.sqrt(variance)
    p = np.asarray(np.where(variance > 0, 2.0 * special.ndtr(-beyond), 1.0))
    if len(strata) == 1 and not ties:
        rows = strata[0]
        inside = member[rows]
        if min(inside.sum(), (~inside).sum()) <= _EXACT:
            found = stats.mannwhitneyu(values[rows][inside], values[rows][~inside], method="exact")
            p = np.asarray(found.pvalue)
    return auroc, np.where(pairs > 0, np.minimum(p, 1.0), np.nan)


def _counted(values: Floats, inside: Bools) -> tuple[Floats, Floats, bool]:
    """Return pairs in which the group is more active, their variance, and whether any are equal."""
    n, ones = len(values), int(inside.sum())
    others = n - ones
    ranks = stats.rankdata(values, axis=0)
    above = ranks[inside].sum(axis=0) - ones * (ones + 1) / 2.0
    # What equal activations take from the sum of squared ranks is a twelfth of Σ(t³ − t).
    ties = 12.0 * (n * (n + 1) * (2 * n + 1) / 6.0 - (ranks**2).sum(axis=0))
    left = (n + 1) - ties / (n * (n - 1))
    return above, ones * others / 12.0 * np.maximum(left, 0.0), bool((ties > 0.5).any())


def strongest(found: Selectivity) -> Iterator[tuple[int, int]]:
    """Yield units with the group they respond to, the most selective first: (unit, place in names).

    Of units that are equally selective, the first comes first.
    """
    away = np.where(np.isnan(found.auroc), 0.5, found.auroc) - 0.5
    for unit in np.argsort(-found.strength, kind="stable").tolist():
        row = int(np.abs(away[:, unit]).argmax())
        if len(found.names) == 2:
            yield unit, 0 if away[row, unit] >= 0.0 else 1
        else:
            # Of several groups, a unit belongs to the one that it responds to most.
            yield unit, int(away[:, unit].argmax())

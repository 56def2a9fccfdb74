"""Tests of how well components tell groups apart."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from equipoise.core import (
    Booleans,
    Floats,
    GroupLabels,
    Groups,
    InputError,
    Integers,
    Labels,
    encode,
    record,
    unwarned,
)
from equipoise.stats.chance import benjamini_hochberg

_UNITS_AT_ONCE = 1024
# Members of the smaller side up to which p is exact, where no activations are equal.
_EXACT = 8


@record
class Selectivity:
    """Responses of units to groups.

    Attributes
    ----------
    groups : tuple of str
        Groups with images, each against all others.
    auroc : ndarray of float64, shape (groups, units)
        Probability that a unit is more active on an image of the group than on one of the others,
        ties counted half: 0.5 says nothing, above 0.5 it responds to the group, below to the
        others. NaN where images cannot be compared.
    p_value, q_value : ndarray of float64, shape (groups, units)
        Two-sided; corrected over all units and groups together.
    """

    groups: tuple[str, ...]
    auroc: Floats
    p_value: Floats
    q_value: Floats

    def numbers(self, group: int, unit: int) -> dict[str, float]:
        """Return the AUROC, p and q of a unit's response to a group."""
        return {
            "auroc": float(self.auroc[group, unit]),
            "p_value": float(self.p_value[group, unit]),
            "q_value": float(self.q_value[group, unit]),
        }

    def strongest(self) -> list[tuple[int, int]]:
        """Return units with the index of their group, the strongest first.

        Of units that are equally selective, the first comes first.
        """
        lean = np.nan_to_num(self.auroc - 0.5)
        strength = np.where(np.isnan(self.auroc), -1.0, np.abs(lean)).max(axis=0)
        order = np.argsort(-strength, kind="stable")
        return [*zip(order.tolist(), lean.argmax(axis=0)[order].tolist(), strict=True)]


def selectivity(
    activations: npt.ArrayLike, groups: GroupLabels, *, within: Labels | None = None
) -> Selectivity:
    """Measure how well each unit tells groups apart.

    Parameters
    ----------
    activations : array-like, shape (n, units)
        Of each unit on each image.
    groups : array-like (n,), mapping of attribute to labels, or Groups
        Images without a group take no part.
    within : array-like (n,), optional
        Strata within which alone images are compared, such as their subject or their
        counterfactual set, so that a unit that responds to that is not taken for one that responds
        to the group.

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
    values, grouped = np.asarray(activations, dtype=np.float64), Groups.of(groups)
    codes = grouped.codes
    if values.ndim != 2 or len(values) != len(codes):
        raise InputError(
            f"activations: shape {values.shape} for {len(codes)} labels; expected (n, units)"
        )
    if not np.isfinite(values).all():
        raise InputError("activations: a number is not finite; leave out its image")
    present = np.flatnonzero(grouped.counts > 0).tolist()
    if len(present) < 2:
        raise InputError("groups: fewer than two have images; expected two or more to tell apart")
    strata = [np.flatnonzero(codes >= 0)]
    if within is not None:
        labels, names = encode(within, what="within")
        if len(labels) != len(codes):
            raise InputError(f"within: {len(labels)} labels for {len(codes)} images")
        strata = [np.flatnonzero((codes >= 0) & (labels == code)) for code in range(len(names))]
    # Of two groups, the first against the second says the same of both.
    tested = present[:1] if len(present) == 2 else present
    auroc, p = np.empty((2, len(tested), values.shape[1]))
    for row, code in enumerate(tested):
        for start in range(0, values.shape[1], _UNITS_AT_ONCE):
            part = slice(start, start + _UNITS_AT_ONCE)
            auroc[row, part], p[row, part] = _test_units(values[:, part], codes == code, strata)
    if len(present) == 2:
        auroc, p = np.concatenate([auroc, 1.0 - auroc]), np.concatenate([p, p])
    q = benjamini_hochberg(p.ravel()).reshape(p.shape)
    return Selectivity(tuple(grouped.names[code] for code in present), auroc, p, q)


def _test_units(
    values: Floats, member: Booleans, strata: Sequence[Integers]
) -> tuple[Floats, Floats]:
    """Return AUROC and p of each unit, each (units,)."""
    above, variance = np.zeros((2, values.shape[1]))
    pairs, ties = 0, False
    for rows in strata:
        inside = member[rows]
        members, n = int(inside.sum()), len(inside)
        if not 0 < members < n:
            continue
        ranks = stats.rankdata(values[rows], axis=0)
        above += ranks[inside].sum(axis=0) - members * (members + 1) / 2.0
        # Equal activations take a twelfth of Σ(t³ − t) from the sum of squared ranks.
        equal = 12.0 * (n * (n + 1) * (2 * n + 1) / 6.0 - (ranks**2).sum(axis=0))
        tie_factor = np.maximum((n + 1) - equal / (n * (n - 1)), 0.0)
        variance += members * (n - members) / 12.0 * tie_factor
        pairs += members * (n - members)
        ties = ties or bool((equal > 0.5).any())
    if not pairs:
        return np.full_like(above, np.nan), np.full_like(above, np.nan)
    with unwarned():
        # Half a pair, of a statistic that counts pairs.
        beyond = np.maximum(np.abs(above - pairs / 2.0) - 0.5, 0.0) / np.sqrt(variance)
    p = np.where(variance > 0, 2.0 * special.ndtr(-beyond), 1.0)
    if len(strata) == 1 and not ties:
        inside = member[strata[0]]
        first, second = values[strata[0]][inside], values[strata[0]][~inside]
        if min(len(first), len(second)) <= _EXACT:
            p = np.asarray(stats.mannwhitneyu(first, second, method="exact").pvalue)
    return above / pairs, np.minimum(p, 1.0)

"""Intersections against the sum of their attributes: what a group has beyond main effects."""

from collections.abc import Sequence

import numpy as np

from equipoise.core import Booleans, Floats, Strings

_SATURATED = 1e-9


def departures(
    levels: Sequence[Strings], values: Floats, variances: Floats, weights: Floats
) -> Floats:
    """Return how far each group departs from what its attributes add up to, in standard errors.

    Main effects are fitted by weighted least squares. The studentised residual of a group is its
    departure from the sum that the other groups predict.

    Parameters
    ----------
    levels : sequence of tuple of str
        Per group, its label in each attribute.
    values, variances : ndarray, shape (groups,)
        Value of each group and the variance of its error.
    weights : ndarray, shape (groups,)
        Weight of each group in the fit, such as its rows; groups with weight 0 take no part.

    Returns
    -------
    ndarray, shape (groups,)
        Negative where a group is below the sum; 0 for groups that take no part, and where the
        other groups say nothing of the sum.

    Examples
    --------
    >>> groups = [("man", "dark"), ("man", "light"), ("woman", "dark"), ("woman", "light")]
    >>> import numpy as np
    >>> error, rows = np.full(4, 0.0001), np.full(4, 1000.0)
    >>> departures(groups, np.array([0.85, 0.95, 0.75, 0.85]), error, rows).round(1) + 0.0
    array([0., 0., 0., 0.])
    >>> departures(groups, np.array([0.95, 0.95, 0.75, 0.95]), error, rows).round(1)
    array([ 10., -10., -10.,  10.])
    """
    result = np.zeros(len(values))
    usable = (weights > 0) & np.isfinite(values) & np.isfinite(variances)
    if usable.any():
        result[usable] = _departures_of_usable(levels, usable, values, variances, weights)
    return result


def _departures_of_usable(
    levels: Sequence[Strings],
    usable: Booleans,
    values: Floats,
    variances: Floats,
    weights: Floats,
) -> Floats:
    columns = zip(
        *(labels for labels, used in zip(levels, usable, strict=True) if used), strict=True
    )
    root = np.sqrt(weights[usable])
    dummies = [np.asarray(column)[:, None] == np.asarray(sorted({*column})) for column in columns]
    # The pseudo-inverse takes care of the sums of dummies, which are the same for all attributes.
    weighted = np.hstack([np.ones((usable.sum(), 1)), *dummies]) * root[:, None]
    residual_maker = np.eye(len(root)) - weighted @ np.linalg.pinv(weighted)
    # In the scale of the values, rather than that of the weighted fit.
    maker = residual_maker * root / root[:, None]
    residuals = maker @ values[usable]
    spread = np.sqrt(maker**2 @ variances[usable])
    certain = np.diag(residual_maker) > _SATURATED
    scores: Floats = np.where(
        certain & (spread > 0), residuals / np.where(spread > 0, spread, 1.0), 0.0
    )
    return scores

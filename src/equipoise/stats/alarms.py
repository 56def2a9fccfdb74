"""How often extremes of groups that are alike go beyond a limit, from the groups' sizes.

Every group has rows of its own, and the same true share. Sizes that are no whole numbers, such as
rows divided by a design effect, are rounded.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from equipoise.core import Floats, floats

# Standard deviations beyond which a count is not expected.
_FAR = 8.0
# Terms of an exact sum, a second of work.
_MOST_TERMS = 5e6
# A share is below a limit only by more than rounding.
_ROUNDING = 1e-9


def lowest_below(limit: float, sizes: Floats, share: float) -> float:
    """Return the probability that the lowest of several groups' shares is below a limit.

    Parameters
    ----------
    limit : float
    sizes : ndarray, shape (groups,)
        Rows of each group.
    share : float
        True share of every group, in [0, 1].
    """
    n = _whole(sizes)
    below = _at_most(np.ceil(limit * n - _ROUNDING) - 1.0, n, share)
    return float(-np.expm1(np.log1p(-np.minimum(below, 1.0 - 1e-16)).sum()))


def range_above(limit: float, sizes: Floats, share: float) -> float:
    """Return the probability that the largest minus the smallest share is above a limit.

    See `lowest_below` for the parameters. The sum is over the group with the smallest share, of
    several the first, and over its counts; of very many counts, shares are taken as normal.
    """
    n = _whole(sizes)
    spread = np.sqrt(n * share * (1.0 - share))
    if len(n) * (2.0 * _FAR * spread).sum() > _MOST_TERMS:
        return _range_of_normals_above(limit, spread / n)
    within = 0.0
    for place, size in enumerate(n.tolist()):
        reach = _FAR * math.sqrt(size * share * (1.0 - share)) + _FAR
        first = max(0.0, math.floor(size * share - reach))
        last = min(size, math.floor(size * share + reach))
        counts = np.arange(first, last + 1.0)[:, None]
        smallest, sizes = counts / size, np.delete(n, place)
        fewest = np.ceil(smallest * sizes - _ROUNDING)
        # An earlier group has a larger share, a later one may have the same.
        equal = np.abs(fewest - smallest * sizes) <= _ROUNDING
        fewest += equal & (np.arange(len(sizes)) < place)
        highest = np.floor((smallest + limit) * sizes + _ROUNDING)
        inside = _at_most(highest, sizes, share) - _at_most(fewest - 1.0, sizes, share)
        mass = _at_most(counts, size, share) - _at_most(counts - 1.0, size, share)
        within += float((mass[:, 0] * np.clip(inside, 0.0, 1.0).prod(axis=1)).sum())
    return min(max(1.0 - within, 0.0), 1.0)


def _range_of_normals_above(limit: float, spread: Floats) -> float:
    """Return the probability that independent normals of one mean have a range above a limit."""
    smallest = np.linspace(-_FAR * spread.max(), _FAR * spread.max(), 4001)[:, None]
    z = smallest / spread
    density = np.exp(-(z**2) / 2.0) / (spread * math.sqrt(2.0 * math.pi))
    inside = np.maximum(special.ndtr((smallest + limit) / spread) - special.ndtr(z), 1e-300)
    all_inside = np.exp(np.log(inside).sum(axis=1))
    within = ((density / inside).sum(axis=1) * all_inside).sum() * float(
        np.diff(smallest[:2, 0])[0]
    )
    return float(min(max(1.0 - within, 0.0), 1.0))


def _whole(sizes: Floats) -> Floats:
    return np.maximum(np.rint(floats(sizes)), 1.0)


def _at_most(count: Floats, n: Floats | float, share: float) -> Floats:
    """Return the probability that a binomial count is at most some count."""
    n = np.broadcast_to(n, np.broadcast_shapes(np.shape(count), np.shape(n)))
    count = np.clip(np.broadcast_to(count, n.shape), -1.0, n)
    inside = special.bdtr(np.clip(count, 0.0, n), n.astype(int), share)
    return floats(np.where(count < 0.0, 0.0, np.where(count >= n, 1.0, inside)))

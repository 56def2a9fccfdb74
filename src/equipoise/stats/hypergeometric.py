"""Tails and quantiles of the hypergeometric distribution.

Without loading `scipy.stats`, which takes a third of a second.
"""

import numpy as np
from scipy import special

from equipoise.core import Booleans, Floats

# A sum ends at terms that are this small beside it, and above this the tail is 0 in float64.
_NEGLIGIBLE, _ENDLESS = 2.0**-62, 1e300
# Terms that are held at once, and the fewest of one number.
_HELD, _FEWEST = 1 << 18, 64


def tails(
    successes: Floats, n_drawn: Floats, marked: Floats, total: Floats
) -> tuple[Floats, Floats]:
    """Return P(X <= k) and P(X >= k), exact to about 12 digits.

    X counts the marked rows among `n_drawn` rows of `total`, drawn without replacement.

    Parameters
    ----------
    successes, drawn, marked, total : ndarray
        Whole numbers of one shape; k = `successes` is possible.

    Returns
    -------
    lower, upper : ndarray
        In [0, 1]; 0 below the least positive number.
    """
    # Beyond float64 a sum is infinite, and the other tail is 0.
    with np.errstate(over="ignore", invalid="ignore"):
        above = _ratios(successes, n_drawn, marked, total)
        below = _ratios(n_drawn - successes, n_drawn, total - marked, total)
    # All probabilities sum to 1, so P(X = k) needs no factorial.
    return 1.0 / (1.0 + (above - 1.0) / below), 1.0 / (1.0 + (below - 1.0) / above)


def central(n_drawn: Floats, marked: Floats, total: Floats, beyond: float) -> tuple[Floats, Floats]:
    """Return the smallest and the largest number that neither tail makes unlikely.

    The smallest k with P(X <= k) > `beyond`, and the largest with P(X >= k) > `beyond`; see
    `tails`.

    Parameters
    ----------
    n_drawn, marked, total : ndarray
        Whole numbers of one shape.
    beyond : float
        Probability of a tail, below 0.5.
    """
    return (
        _smallest(n_drawn, marked, total, beyond),
        n_drawn - _smallest(n_drawn, total - marked, total, beyond),
    )


def _smallest(n_drawn: Floats, marked: Floats, total: Floats, beyond: float) -> Floats:
    """Return the smallest k with P(X <= k) > `beyond`, by steps from the normal quantile."""
    least, most = np.maximum(n_drawn + marked - total, 0.0), np.minimum(n_drawn, marked)
    mean = n_drawn * marked / total
    others = (total - n_drawn) / np.maximum(total - 1.0, 1.0)
    spread = np.sqrt(mean * (1.0 - marked / total) * others)
    place = np.clip(np.rint(mean + special.ndtri(beyond) * spread), least, most)

    def likely(k: Floats, among: Booleans) -> Booleans:
        """Return whether P(X <= k) > `beyond` among these, False elsewhere."""
        result = np.zeros(k.shape, bool)
        arguments = (array[among] for array in np.broadcast_arrays(k, n_drawn, marked, total))
        result[among] = tails(*arguments)[0] > beyond
        return result

    rising = place < most
    while (rising := rising & (place < most) & ~likely(place, rising)).any():
        place = place + rising
    falling = place > least
    while (falling := falling & (place > least) & likely(place - 1.0, falling)).any():
        place = place - falling
    return place


def _ratios(successes: Floats, n_drawn: Floats, marked: Floats, total: Floats) -> Floats:
    """Return P(X >= k) / P(X = k), as a sum of products of the ratios of neighbours."""
    start, n, n_marked, n_total = (array.ravel() for array in (successes, n_drawn, marked, total))
    sums, last, place = np.ones(start.shape), np.ones(start.shape), start.astype(np.float64)
    unfinished = np.flatnonzero(start < np.minimum(n, n_marked))
    n_terms = _FEWEST
    while len(unfinished):
        # Most sums end soon.
        n_terms = min(2 * n_terms, max(_HELD // len(unfinished), _FEWEST))
        steps = np.arange(n_terms)
        k, n_other = (
            place[unfinished, None] + steps,
            (n_total - n - n_marked)[unfinished, None] + 1.0,
        )
        ratio = np.maximum(n[unfinished, None] - k, 0.0) * np.maximum(
            n_marked[unfinished, None] - k, 0.0
        )
        terms = np.cumprod(ratio / ((k + 1.0) * (n_other + k)), axis=1) * last[unfinished, None]
        sums[unfinished] += np.nansum(terms, axis=1)
        last[unfinished], place[unfinished] = terms[:, -1], place[unfinished] + len(steps)
        unfinished = unfinished[
            (last[unfinished] > _NEGLIGIBLE * sums[unfinished]) & (sums[unfinished] < _ENDLESS)
        ]
    return sums.reshape(successes.shape)

"""The least mean width that an interval of a paired change can have.

An interval covers a wrong value exactly where the test of that value accepts. Its mean width is the
integral over all values of how often they are accepted, and no test accepts less often than the
most powerful (Pratt 1961, JASA 56, 549-567). The bound is of all intervals that cover with the
level, randomised ones too. It holds the other share fixed, so that it is the lower one of several.
"""

from functools import lru_cache

import numpy as np
from scipy import stats

STEPS, NEGLIGIBLE = 200, 1e-9


def least_width(gain, loss, n, level):
    """Return the least mean width for shares of rows that only one of two answers has."""
    return sum(_one_side(*map(float, pair), n, level) for pair in ((gain, loss), (loss, gain)))


@lru_cache(maxsize=1000)
def _one_side(gain, loss, n, level):
    """Return the part of the width where the change is above the truth."""
    gains = np.arange(int(stats.binom.isf(NEGLIGIBLE, n, gain)) + 1)[:, None]
    losses = np.arange(int(stats.binom.isf(NEGLIGIBLE, n, loss)) + 1)[None]
    same = n - gains - losses
    possible = same >= 0
    truth = stats.multinomial.pmf(
        np.stack([*np.broadcast_arrays(gains, losses, same)], axis=-1)[possible],
        n, [gain, loss, 1.0 - gain - loss],
    )  # fmt: skip
    most = min(gain + (40.0 + 10.0 * np.sqrt(n * gain)) / n, 1.0 - gain - loss)
    shifts = most * np.linspace(0.0, 1.0, STEPS + 1)[1:-1] ** 2
    accepted = []
    for shift in shifts:
        ratio = (
            gains * np.log(gain / (gain + shift))
            + same * np.log((1.0 - gain - loss) / (1.0 - gain - loss - shift))
        )[possible]
        order = np.argsort(-ratio)
        sizes, powers = (
            np.r_[0.0, np.cumsum(mass[order])] for mass in (truth * np.exp(-ratio), truth)
        )
        accepted.append(1.0 - np.interp(1.0 - level, sizes, powers))
    # Acceptance falls with the shift: its value at the far end of each step is a lower bound.
    return float((np.diff(np.r_[0.0, shifts]) * accepted).sum())

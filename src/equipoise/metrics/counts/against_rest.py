"""Each group's share of rows against that of all other groups together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special, stats

from equipoise.core import Floats
from equipoise.metrics.counts.rates import Cells, Rate, divide
from equipoise.metrics.counts.table import Counts
from equipoise.stats.intervals import Scored, normal, scored

OTHERS = "all other groups"
_BAND = 0.025


@dataclass(frozen=True, eq=False)
class AgainstRest:
    """Shares of groups against the rest, arrays (..., groups); NaN where one side has no rows.

    Attributes
    ----------
    rest : Scored
        The share of all other groups with its Wilson interval.
    difference : Scored
        The group's share minus that of the rest, with Newcombe's interval.
    chance : ndarray
        Half the width of the middle 95 % of the difference when rows exchange their groups: a
        normal band around 0 with the exact variance.
    p_value : ndarray
        Exact, two-sided: twice the smaller tail of the hypergeometric distribution; of rates
        within classes by the side of the interval that is closer to chance.
    mean : ndarray
        Middle of the band: what the groups' own shares of the true classes make.
    null : str
        How rows are exchanged.
    """

    rest: Scored
    difference: Scored
    chance: Floats
    p_value: Floats
    mean: Floats
    null: str = "; exact (hypergeometric)"

    @classmethod
    def of(cls, successes: Floats, n: Floats, level: float = 0.95) -> AgainstRest:
        """Compare every group with all others pooled.

        Parameters
        ----------
        successes, n : ndarray, shape (..., groups)
            Whole counts; 0 of 0 where a group takes no part.
        level : float
            Confidence level of the intervals, in (0, 1).
        """
        rest, rest_n = all_others(successes), all_others(n)
        own, others = scored(successes, n, level), scored(rest, rest_n, level)
        total, every = successes + rest, n + rest_n
        drawn = stats.hypergeom(every, total, n)
        with np.errstate(divide="ignore", invalid="ignore"):
            tails = np.minimum(drawn.cdf(successes), drawn.sf(successes - 1.0))
            band = -special.ndtri(_BAND) * drawn.std() * (1.0 / n + 1.0 / rest_n)
        known = (n > 0) & (rest_n > 0)
        chance, p = (np.where(known, one, np.nan) for one in (band, np.minimum(2.0 * tails, 1.0)))
        return cls(others, own.minus(others), chance, p, np.zeros_like(p))

    @classmethod
    def within_classes(cls, counts: Counts, rate: Rate, level: float = 0.95) -> AgainstRest:
        """Compare a rate whose groups are exchangeable within true classes, (classes, groups)."""
        kept, cells = rate.large(counts) & counts.groups.usable, Cells.of(counts, counts.observed)
        pairs = rate.effective(counts)
        alone = [(np.where(kept, hits, 0.0), np.where(kept, n, 0.0)) for hits, n in pairs]
        rest = [(all_others(hits), all_others(n)) for hits, n in alone]
        own, others = (rate.scored(some, level, cells) for some in (alone, rest))
        found = own.minus(others)
        # Each true class gets its labels equally often in every group that is compared.
        among = kept[counts.prediction]
        size = cells["truth"][0][counts.truth] * among
        share = divide((counts.table * among).sum(axis=1), size.sum(axis=1))
        table = np.nan_to_num(size * share[:, None])[None]
        alike = {
            "both": counts.hits(table), "prediction": counts.by_prediction(table),
            "truth": cells["truth"] * kept, "total": cells["total"] * kept,
        }  # fmt: skip
        rests = {name: all_others(each) for name, each in alike.items()}
        one, other = cells.like(**alike), cells.like(**rests)
        mean = (rate.shares(one) - rate.shares(other))[0]
        side = np.where(found.value > mean, found.value - found.low, found.high - found.value)
        p = 2.0 * special.ndtr(-normal(level) * divide(np.abs(found.value - mean), side))
        how = " within each true class; the interval inverted"
        return cls(others, found, (found.high - found.low) / 2.0, p, mean, how)


def all_others(counts: Floats) -> Floats:
    """Return the sums over all other groups, (..., groups)."""
    return np.asarray(counts.sum(axis=-1, keepdims=True) - counts)

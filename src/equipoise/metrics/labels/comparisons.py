"""Groups compared with others: each with all others, the best, the worst or a reference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import special

from equipoise.core import (
    Floats,
    floats,
    record,
    unwarned,
)
from equipoise.metrics.labels.rate import Cells, Rate
from equipoise.metrics.labels.table import Counts
from equipoise.stats import hypergeometric
from equipoise.stats.intervals import Scored, divide, normal, scored

OTHERS = "all other groups"
_BEYOND = 0.025


@record
class AgainstRest:
    """Shares of groups against the rest, arrays (..., groups); NaN where one side has no rows.

    Attributes
    ----------
    rest : Scored
        The share of all other groups with its Wilson interval.
    difference : Scored
        The group's share minus that of the rest, with Newcombe's interval.
    chance_low, chance_high : ndarray
        Middle 95 % of the difference when rows exchange their groups: beyond it `p_value` is at
        most 0.05.
    p_value : ndarray
        Exact, two-sided: twice the smaller tail of the hypergeometric distribution; of rates
        within classes by the side of the interval that is closer to chance.
    mean : ndarray
        Mean of the difference then: what the groups' own shares of the true classes make.
    null : str
        How rows are exchanged.
    """

    rest: Scored
    difference: Scored
    chance_low: Floats
    chance_high: Floats
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
        rest_successes, rest_n = all_others(successes), all_others(n)
        group_shares, rest_shares = (
            scored(successes, n, level),
            scored(rest_successes, rest_n, level),
        )
        total, n_all = successes + rest_successes, n + rest_n
        tails = np.minimum(*hypergeometric.tails(successes, n, total, n_all))
        defined, p = (n > 0) & (rest_n > 0), np.minimum(2.0 * tails, 1.0)
        with unwarned():
            low, high = (
                np.where(defined, least / n - (total - least) / rest_n, np.nan)
                for least in hypergeometric.central(n, total, n_all, _BEYOND)
            )
        difference, p = group_shares.minus(rest_shares), np.where(defined, p, np.nan)
        return cls(rest_shares, difference, low, high, p, np.zeros_like(p))

    def of_class(self, place: int) -> AgainstRest:
        """Return the comparisons of one class, (1, groups)."""
        part = slice(place, place + 1)
        return replace(
            self, rest=self.rest[part], difference=self.difference[part],
            chance_low=self.chance_low[part], chance_high=self.chance_high[part],
            p_value=self.p_value[part], mean=self.mean[part],
        )  # fmt: skip

    @classmethod
    def within_classes(cls, counts: Counts, rate: Rate, level: float = 0.95) -> AgainstRest:
        """Compare a rate of groups exchangeable within classes, (classes, groups)."""
        compared, cells = (
            rate.large(counts) & counts.groups.usable,
            Cells.of(counts, counts.observed),
        )
        pairs = rate.effective(counts)
        group_pairs = [
            (np.where(compared, hits, 0.0), np.where(compared, n, 0.0)) for hits, n in pairs
        ]
        rest_pairs = [(all_others(hits), all_others(n)) for hits, n in group_pairs]
        group_rates = rate.scored(group_pairs, level, cells)
        rest_rates = rate.scored(rest_pairs, level, cells)
        difference = group_rates.minus(rest_rates)
        # Each true class gets its labels equally often in every group that is compared.
        in_comparison = compared[counts.prediction]
        size = cells["truth"][0][counts.truth] * in_comparison
        share = divide((counts.table * in_comparison).sum(axis=1), size.sum(axis=1))
        table = np.nan_to_num(size * share[:, None])[None]
        expected_cells = {
            "both": counts.hits(table), "prediction": counts.by_prediction(table),
            "truth": cells["truth"] * compared, "total": cells["total"] * compared,
        }  # fmt: skip
        expected_rest = {name: all_others(weights) for name, weights in expected_cells.items()}
        group_expected = rate.shares(Cells(cells.compared, cells.whole, **expected_cells))
        rest_expected = rate.shares(Cells(cells.compared, cells.whole, **expected_rest))
        mean = (group_expected - rest_expected)[0]
        half_width = np.where(
            difference.value > mean,
            difference.value - difference.low,
            difference.high - difference.value,
        )
        p = 2.0 * special.ndtr(-normal(level) * divide(np.abs(difference.value - mean), half_width))
        null_text = " within each true class; the interval inverted"
        # On the other side of chance, the other half of the interval would be inverted.
        z = normal(1.0 - 2.0 * _BEYOND) / normal(level)
        return cls(
            rest_rates, difference, mean - z * (difference.high - difference.value),
            mean + z * (difference.value - difference.low), p, mean, null_text,
        )  # fmt: skip


def all_others(counts: Floats) -> Floats:
    """Return the sums over all other groups, (..., groups)."""
    return floats(counts.sum(axis=-1, keepdims=True) - counts)

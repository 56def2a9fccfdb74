"""Metrics: arrays in, an `Estimate` out.

Every function returns one `Estimate` with its interval, chance level and sample sizes, and takes
`resampling=` (a `stats` object, or None for the value alone) and `rng=` (a seed). See docs/metrics.
"""

from equipoise.metrics.accuracy import accuracy, accuracy_gap, worst_group_accuracy
from equipoise.metrics.cards import CARDS, Card
from equipoise.metrics.comparisons import rate_comparisons
from equipoise.metrics.contingency import cramers_v, phi, tschuprows_t
from equipoise.metrics.counts import Counts, count
from equipoise.metrics.effect_sizes import band_counts, bands, effect_sizes
from equipoise.metrics.hits import hit_rate
from equipoise.metrics.measure import measure
from equipoise.metrics.odds import equalized_odds
from equipoise.metrics.pairs import accuracy_difference
from equipoise.metrics.parity import demographic_parity
from equipoise.metrics.rates import rates
from equipoise.metrics.skewsize import mev_sweep, skewsize

__all__ = [
    "CARDS",
    "Card",
    "Counts",
    "accuracy",
    "accuracy_difference",
    "accuracy_gap",
    "band_counts",
    "bands",
    "count",
    "cramers_v",
    "demographic_parity",
    "effect_sizes",
    "equalized_odds",
    "hit_rate",
    "measure",
    "mev_sweep",
    "phi",
    "rate_comparisons",
    "rates",
    "skewsize",
    "tschuprows_t",
    "worst_group_accuracy",
]

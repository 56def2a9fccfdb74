"""How effect sizes are distributed over classes, and what they are correlated with."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from equipoise.core import Estimate, Floats, IntervalKind, NullHypothesis
from equipoise.metrics.building import UNTESTED, count_estimate, ends_of, explain_undefined
from equipoise.metrics.counts.effect_sizes import EffectSizes
from equipoise.metrics.counts.table import Counts
from equipoise.metrics.measure import Draws, Measure
from equipoise.metrics.spec import BANDS, WILSON, Band, MetricSpec, register
from equipoise.stats.intervals import divide

BAND_METRICS: Mapping[Band, str] = {name: f"{name}_effect_share" for name in BANDS}
"""Metric of the share of classes in each band of effect sizes."""

CORRELATES: Mapping[str, str] = {
    "accuracy": "effect_accuracy_correlation",
    "equalized_odds": "effect_odds_correlation",
    "gap": "effect_gap_correlation",
    "demographic_parity": "effect_parity_correlation",
}
"""Metric of the correlation of effect sizes with another number of the classes."""


@dataclass(frozen=True)
class BandShare(Measure):
    """Share of classes whose effect size lies in a band, of those that can be estimated.

    Attributes
    ----------
    effects : EffectSizes
    band : str
    """

    null = None
    resamples = True

    effects: EffectSizes
    band: Band

    def __call__(self, counts: Counts, tables: Floats) -> Floats:
        """Return the share of each table, shape (r, 1)."""
        chi_squares = self.effects.chi_square(counts, tables)
        sizes = chi_squares.effect_sizes(self.effects.statistic)
        lower, place = [*BANDS.values(), np.inf], [*BANDS].index(self.band)
        inside = (sizes >= lower[place]) & (sizes < lower[place + 1])
        return divide(inside.sum(axis=1), (~np.isnan(sizes)).sum(axis=1))[:, None]

    def estimate(self, counts: Counts, draws: Draws) -> Estimate:
        """Turn the numbers into the estimate."""
        method = "none: a resampling spread needs Bootstrap()"
        if draws.boot is not None:
            method = (
                f"resampling spread: percentiles of {len(draws.boot)} bootstrap replicates over "
                f"{counts.unit}s; not a confidence interval"
            )
        return count_estimate(
            BAND_METRICS[self.band],
            counts,
            draws,
            method=method,
            interval_kind=IntervalKind.SPREAD,
            ends=ends_of(draws.boot, 0),
            chance_test=UNTESTED,
            no_chance="descriptive: classes are counted, not tested together",
            params=self.effects.params,
            reason=explain_undefined(draws.observed[0], "no class can be estimated"),
        )


_band = partial(
    MetricSpec,
    kinds=("predictions",),
    unit="share",
    harm=None,
    chance="none: descriptive",
    interval="resampling spread: bootstrap percentiles, no confidence interval",
    reference="Albuquerque et al. 2024, SkewSize, Figure 4; Cohen 1988",
)
_correlation = partial(
    MetricSpec,
    kinds=("predictions",),
    range=(-1.0, 1.0),
    harm="either",
    null_kind=NullHypothesis.NORMAL,
    null="classes are independent and both numbers normal",
    chance="none drawn: p, among the parameters, from the t distribution with n − 2 degrees",
    interval="Fisher's z",
    reference="Albuquerque et al. 2024, SkewSize, Figure 5; Fisher 1921",
    symbol="r",
)
_CORRELATED = {
    "accuracy": "accuracy",
    "equalized_odds": "equalized odds",
    "gap": "the accuracy gap",
    "demographic_parity": "demographic parity",
}
_ENDS = (*map("{:g}".format, BANDS.values()), "")


def _limits(place: int) -> str:
    low, high = _ENDS[place], _ENDS[place + 1]
    return f"between {low} and {high}" if high else f"of at least {low}"


register(
    MetricSpec(
        name="mistake_rate",
        kinds=("predictions",),
        unit="share",
        rate=True,
        harm=None,
        group_label="share of images with the wrong label",
        definition="Share of the images of a class that get a particular wrong label.",
        direction="Neither: it says which label a group gets. Descriptive.",
        chance="none: descriptive, of the class's most frequent wrong labels",
        interval=WILSON,
        reference="Albuquerque et al. 2024, SkewSize, Figure 3",
    ),
    *(
        _band(
            name=name,
            title=f"Classes with a {level} effect",
            definition=(
                f"Share of classes with an effect size {_limits(place)}, of the classes that can "
                "be estimated."
            ),
            direction="Neither: it describes how effect sizes are distributed over classes.",
        )
        for place, (level, name) in enumerate(BAND_METRICS.items())
    ),
    *(
        _correlation(
            name=name,
            title=f"Correlation of effect size and {_CORRELATED[other]}",
            definition=(
                f"Pearson's correlation of the effect size with {_CORRELATED[other]}, over classes."
            ),
            direction="Either: near 0 the effect size says something else. Descriptive.",
        )
        for other, name in CORRELATES.items()
    ),
)

"""How differently groups are mistaken: an effect size per class, and their mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.estimate import Estimate
from equipoise.metrics.building import against_chance, known_mean, sizes
from equipoise.metrics.chi_square import Formulation, Statistic
from equipoise.metrics.class_effects import Classes, EffectTables
from equipoise.metrics.counts import Counts, count
from equipoise.metrics.measure import DEFAULT, Draws, measure
from equipoise.metrics.spec import (
    BANDS,
    COHEN,
    EFFECT_PARAMETERS,
    Band,
    MetricSpec,
    make_estimate,
    register,
)
from equipoise.stats.resampling import Resampling

Floats = npt.NDArray[np.float64]


def effect_sizes(  # noqa: PLR0913 - the public signature
    y_true: Any,
    y_pred: Any,
    groups: Any,
    *,
    statistic: Statistic = "cramers_v",
    min_expected: float = 5.0,
    yates: bool = False,
    formulation: Formulation = "separation",
    weights: Any = None,
    units: Any = None,
    resampling: Resampling | None = DEFAULT,
    rng: int = 0,
) -> Estimate:
    """Mean over classes of how strongly the predicted label depends on the group.

    Parameters
    ----------
    y_true, y_pred, groups, weights, units
        See `equipoise.metrics.counts.count`.
    statistic : str
        "cramers_v", "phi", "tschuprows_t", or one of them with "_corrected" (Bergsma 2013).
    min_expected : float
        Per class, labels whose smallest expected count over the non-empty groups is below this
        are dropped, in one pass that every replicate repeats; 0 keeps all.
    yates : bool
        Continuity correction of 2×2 tables, as the listing of Albuquerque et al. has.
    formulation : "separation", "sufficiency" or "independence"
        One table per true class (of groups by predicted labels), one per predicted label (of
        groups by true classes), or one of all rows (of groups by predicted labels).
    resampling : Bootstrap, Permutation, Exact or None
        None gives the values alone; parts then have no interval.
    rng : int
        Seed.

    Returns
    -------
    Estimate
        At least 0, higher is worse; V and T are at most 1. Chance: groups permuted within the
        true class, within the predicted label, or over all rows. `.by` has one row per class
        with its own interval (inversion of a noncentral chi-square matched to the class's table)
        and chance level; the interval of the mean holds however effects are spread over the
        classes, see `equipoise.metrics.effect_intervals.MeanEffect`. Its
        `by_group` are each group's rows and share of wrong predictions, its `n` the class's
        rows before labels were dropped. A class with one label or one group is NaN with the
        reason, left out of the mean and counted in `.excluded`.

    Raises
    ------
    InputError
        When shapes do not fit, no row is complete, or a parameter is none of the above.

    References
    ----------
    Albuquerque et al. 2024, "SkewSize", eq. 3 and appendix D.3.
    """
    counts = count(y_true, y_pred, groups, weights=weights, units=units)
    effects = EffectSizes(statistic, min_expected, yates, formulation)
    return measure(counts, [effects], resampling, rng)[0]


@dataclass(frozen=True)
class EffectSizes(EffectTables):
    """The measure behind `effect_sizes`; its parameters are documented there."""

    def replicated(self, counts: Counts) -> bool:  # noqa: ARG002 - the form of a Measure
        """Intervals are closed forms."""
        return False

    def __call__(self, counts: Counts, tables: Floats) -> Floats:
        """Return the mean of each table, then the numbers of its classes."""
        values, others = self.numbers(counts, tables)
        return np.concatenate([known_mean(values)[:, None], values, others], axis=1)

    def estimate(self, counts: Counts, draws: Draws) -> Estimate:
        """Turn the numbers into the estimate."""
        classes = Classes.of(self, counts, draws)
        held = against_chance(draws, 0, "higher")
        value = float(draws.observed[0])
        return make_estimate(
            metric="effect_sizes",
            value=value,
            n=sizes(counts.groups),
            method=classes.method,
            params=self.params | {"classes": int(classes.estimable.sum())},
            **held.fields(""),
            by=classes.table,
            excluded=classes.excluded(),
            unit=counts.unit,
            reason="no class can be estimated; see the parts" if math.isnan(value) else "",
            ends=classes.mean_ends(),
        )


def bands(values: Sequence[float] | Floats) -> tuple[Band | None, ...]:
    """Return the band of each effect size, None for NaN.

    Parameters
    ----------
    values : sequence of float, shape (classes,)
        negligible < 0.1 <= small < 0.3 <= medium < 0.5 <= large.
    """
    names = tuple(BANDS)
    array = np.asarray(values, dtype=np.float64)
    places = np.searchsorted(list(BANDS.values())[1:], array, side="right")
    return tuple(
        None if math.isnan(value) else names[place]
        for value, place in zip(array.tolist(), places.tolist(), strict=True)
    )


def band_counts(values: Sequence[float] | Floats) -> dict[Band, int]:
    """Return the number of effect sizes in each band, empty bands included; NaN is left out."""
    array = np.asarray(values, dtype=np.float64)
    places = np.searchsorted(list(BANDS.values())[1:], array[~np.isnan(array)], side="right")
    return dict(zip(BANDS, np.bincount(places, minlength=len(BANDS)).tolist(), strict=True))


_effect = partial(
    MetricSpec,
    kinds=("predictions",),
    group_label="share of wrong predictions",
    groups_harm="higher",
    threshold=0.1,
    threshold_reason=COHEN,
    bands=BANDS,
    parameters=EFFECT_PARAMETERS,
    reference="Albuquerque et al. 2024, SkewSize, eq. 3 and appendix D.3; Cramér 1946, chapter 21",
    direction="Higher: groups of one class get different labels.",
    chance="above 0, more so for few rows and many labels",
)
register(
    _effect(
        name="effect_sizes",
        title="Effect sizes",
        definition=(
            "Cramér's V (or another statistic) of group by predicted label per true class. The "
            "value is the mean over classes that can be estimated."
        ),
        interval="noncentral χ² per class; inversion of the expected mean",
        null=(
            "groups are exchangeable within each true class; by formulation, within each predicted "
            "label or over all rows"
        ),
    )
)
register(
    _effect(
        name="effect_size_mean",
        title="Mean effect size",
        definition="Mean of the effect sizes over classes that can be estimated.",
        interval="inversion of the expected mean, over equal and uneven effects",
        null="that of the effect sizes",
    )
)

"""SkewSize: the skewness of the effect sizes of classes, with what must stand beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from equipoise.core.estimate import Estimate, no_ends
from equipoise.metrics.building import ends_of, known_mean, sizes
from equipoise.metrics.chi_square import Formulation, Statistic
from equipoise.metrics.class_effects import Classes, EffectTables
from equipoise.metrics.counts import Counts, count
from equipoise.metrics.effect_sizes import EffectSizes, band_counts
from equipoise.metrics.measure import DEFAULT, Draws, measure
from equipoise.metrics.spec import EFFECT_PARAMETERS, MetricSpec, make_estimate, register
from equipoise.stats.chance import band
from equipoise.stats.resampling import Resampling

Floats = npt.NDArray[np.float64]

NO_CHANCE = (
    "SkewSize is descriptive: it describes the shape of the effect sizes, not their level, so "
    "chance tables have no value it could be held against; theirs is among the parameters"
)
NO_TEST = (
    "SkewSize is descriptive: the models' values are set side by side, their difference is not "
    "tested, and its interval is a resampling spread"
)

# Spread of effect sizes, relative to the largest, that is rounding: all are equal.
_EQUAL = 1e-12


def skewsize(  # noqa: PLR0913 - the public signature
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
    """Fisher-Pearson skewness of the effect sizes of all classes.

    Parameters
    ----------
    y_true, y_pred, groups, statistic, min_expected, yates, formulation, weights, units
        As in `equipoise.metrics.effect_sizes.effect_sizes`.
    resampling : Bootstrap, Permutation, Exact or None
        None gives the value alone; only Bootstrap gives a resampling spread.
    rng : int
        Seed.

    Returns
    -------
    Estimate
        Any real number; lower is worse (many classes with large effects, few with small ones).
        Descriptive: no p-value, no chance level, and its interval is the spread of replicates,
        which is no confidence interval. `.params` holds what it must be read with:
        "mean_effect_size", "band_shares", and "chance_skewsize", "chance_low", "chance_high":
        the SkewSize of tables of the same sizes with exchangeable groups. `.by` has one row per
        class, as in `effect_sizes`. NaN with fewer than three classes, or equal effect sizes.

    Raises
    ------
    InputError
        When shapes do not fit, no row is complete, or a parameter is none of those documented.

    Notes
    -----
    Equation 4 as printed lacks the factors 1/n of the moments, which makes it g1 / sqrt(n); the
    published values are g1, and so is this.

    References
    ----------
    Albuquerque et al. 2024, "SkewSize", section 3.
    """
    counts = count(y_true, y_pred, groups, weights=weights, units=units)
    one = SkewSize(statistic, min_expected, yates, formulation)
    return measure(counts, [one], resampling, rng)[0]


@dataclass(frozen=True)
class SkewSize(EffectTables):
    """The measure behind `skewsize`; its parameters are documented there."""

    def replicated(self, counts: Counts) -> bool:  # noqa: ARG002 - the form of a Measure
        """The resampling spread is that of bootstrap replicates."""
        return True

    def __call__(self, counts: Counts, tables: Floats) -> Floats:
        """Return the skewness of each table, then the numbers of its classes."""
        values, others = self.numbers(counts, tables)
        return np.concatenate([skewness(values)[:, None], values, others], axis=1)

    def estimate(self, counts: Counts, draws: Draws) -> Estimate:
        """Turn the numbers into the estimate."""
        classes = Classes.of(self, counts, draws)
        # Replicates may have classes enough where the data have not: no number, no interval.
        known = not np.isnan(draws.observed[0])
        return make_estimate(
            metric="skewsize",
            value=float(draws.observed[0]),
            n=sizes(counts.groups),
            method=_method(counts, draws),
            params=self.params | _beside(classes, draws),
            no_chance=NO_CHANCE,
            by=classes.table,
            excluded=classes.excluded(),
            unit=counts.unit,
            reason="" if known else no_skewness(int(classes.estimable.sum())),
            ends=ends_of(draws.boot, 0) if known else no_ends,
        )


def skewness(values: Floats) -> Floats:
    """Return g1 = m3 / m2^(3/2) of each row, central moments with 1/n.

    Parameters
    ----------
    values : ndarray, shape (r, classes)
        NaN entries are left out. NaN is returned where fewer than three are left or all are
        equal, as `scipy.stats.skew` does for equal ones.
    """
    known = ~np.isnan(values)
    many = known.sum(axis=1)
    filled = np.where(known, values, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        apart = np.where(known, filled - known_mean(values)[:, None], 0.0)
        # Scaled, so that powers of small effect sizes keep their digits.
        widest = np.abs(apart).max(axis=1, initial=0.0)
        scaled = apart / widest[:, None]
        second, third = (scaled**2).sum(axis=1) / many, (scaled**3).sum(axis=1) / many
        g1 = third / second**1.5
    uneven = widest > _EQUAL * np.abs(filled).max(axis=1, initial=0.0)
    return np.where((many >= 3) & uneven, g1, np.nan)


def _method(counts: Counts, draws: Draws) -> str:
    if draws.boot is None:
        return "none: a resampling spread needs Bootstrap()"
    return (
        f"resampling spread: percentiles of {len(draws.boot)} bootstrap replicates over "
        f"{counts.unit}s; not a confidence interval"
    )


def _beside(classes: Classes, draws: Draws) -> dict[str, Any]:
    """Return what SkewSize must be read with."""
    many = int(classes.estimable.sum())
    counted = band_counts(classes.values)
    beside: dict[str, Any] = {
        "classes": many,
        "mean_effect_size": float(known_mean(classes.values[None])[0]) if many else None,
        "band_shares": {name: n / many if many else None for name, n in counted.items()},
    }
    chance = None
    if draws.null is not None and not np.isnan(draws.null[:, 0]).all():
        chance = band(draws.null[:, 0], method=draws.null_text, weights=draws.weights)
    return beside | {
        "chance_skewsize": chance.mean if chance else None,
        "chance_low": chance.low if chance else None,
        "chance_high": chance.high if chance else None,
    }


def no_skewness(classes: int) -> str:
    """Say why that many estimable classes have no skewness."""
    if classes < 3:
        counted = "1 class" if classes == 1 else f"{classes} classes"
        return f"{counted} can be estimated; skewness needs at least 3"
    return "all effect sizes are equal"


def mev_sweep(
    counts: Counts,
    values: Sequence[float] = (0, 1, 2, 5, 10),
    *,
    statistic: Statistic = "cramers_v",
    yates: bool = False,
    formulation: Formulation = "separation",
) -> pa.Table:
    """Return what the aggregates become under several minimum expected counts.

    Parameters
    ----------
    counts : Counts
    values : sequence of float
        Minimum expected counts.
    statistic, yates, formulation
        As in `equipoise.metrics.effect_sizes.effect_sizes`.

    Returns
    -------
    pyarrow.Table
        One row per value: min_expected, skewsize, mean_effect_size, classes (estimable),
        not_estimable, columns_dropped, rows_dropped.

    Raises
    ------
    InputError
        When a value is negative.

    References
    ----------
    Albuquerque et al. 2024, "SkewSize", Table 7.
    """
    rows = [
        _at(counts, EffectSizes(statistic, float(value), yates, formulation)) for value in values
    ]
    return pa.Table.from_pylist(rows, schema=_SWEEP)


_SWEEP = pa.schema(
    [
        ("min_expected", pa.float64()),
        ("skewsize", pa.float64()),
        ("mean_effect_size", pa.float64()),
        ("classes", pa.int64()),
        ("not_estimable", pa.int64()),
        ("columns_dropped", pa.int64()),
        ("rows_dropped", pa.int64()),
    ]
)


def _at(counts: Counts, effects: EffectSizes) -> dict[str, float]:
    classes = Classes.of(effects, counts, Draws(effects(counts, counts.observed)[0]))
    return {
        "min_expected": effects.min_expected,
        "skewsize": float(skewness(classes.values[None])[0]),
        "mean_effect_size": float(known_mean(classes.values[None])[0]),
        "classes": int(classes.estimable.sum()),
        "not_estimable": int((~classes.estimable).sum()),
        "columns_dropped": round(classes.labels_dropped.sum()),
        "rows_dropped": round(classes.rows_dropped.sum()),
    }


register(
    MetricSpec(
        name="skewsize",
        title="SkewSize",
        kinds=("predictions",),
        range="any real number",
        harm="lower",
        definition=(
            "Skewness g1 = m3 / m2^(3/2) of the effect sizes of all classes. It ignores their "
            "level: read it beside their mean."
        ),
        direction="Lower: many classes have large effects. Descriptive.",
        chance="none: descriptive; the value for exchangeable groups is among the parameters",
        interval="resampling spread: bootstrap percentiles, no confidence interval",
        parameters=EFFECT_PARAMETERS,
        reference="Albuquerque et al. 2024, SkewSize, eq. 4 with the 1/n of its listing and tables",
        errata=(
            "Eq. 4 as printed lacks the 1/n of the moments and gives g1/sqrt(n). The listing and "
            "the published values are g1."
        ),
    )
)

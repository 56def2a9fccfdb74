"""Association of groups and labels in one contingency table: Cramér's V, phi, Tschuprow's T."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.estimate import Estimate
from equipoise.core.groups import Groups
from equipoise.metrics.chi_square import Statistic
from equipoise.metrics.class_effects import Classes
from equipoise.metrics.counts import Counts
from equipoise.metrics.effect_sizes import EffectSizes
from equipoise.metrics.measure import DEFAULT, Draws, measure
from equipoise.metrics.spec import BANDS, COHEN, EFFECT_PARAMETERS, MetricSpec, register
from equipoise.stats.draws import TableSampler
from equipoise.stats.resampling import Resampling

Floats = npt.NDArray[np.float64]

_FRACTIONS = "the table holds fractions: only whole counts of rows can be permuted"
_CORRECTION = "; corrected for bias as Bergsma 2013"


def cramers_v(
    table: Any,
    *,
    yates: bool = False,
    bias_corrected: bool = False,
    resampling: Resampling | None = DEFAULT,
    rng: int = 0,
) -> Estimate:
    """Cramér's V = sqrt(χ² / (n (min(groups, labels) - 1))) of a table of counts.

    Parameters
    ----------
    table : array-like, shape (groups, labels)
        Counts; empty rows and columns are dropped.
    yates : bool
        Continuity correction where the table is 2×2, as `scipy.stats.chi2_contingency`.
    bias_corrected : bool
        Bergsma's correction: 0 is as likely to be passed from above as from below under
        independence. Its interval is that of the uncorrected V.
    resampling : Bootstrap, Permutation, Exact or None
        None gives the value alone.
    rng : int
        Seed.

    Returns
    -------
    Estimate
        In [0, 1], higher is a stronger association. Interval: inversion of a noncentral
        chi-square matched to the table (`equipoise.stats.association_interval`), which can reach
        0 and is not [0, 0] where χ² is 0; without continuity correction. Chance: tables with the
        same margins. `.params` has "chi2", "df" and "chance_chi2", the exact mean
        n / (n - 1) · df under the null. NaN
        where only one group or one label is not empty.

    Raises
    ------
    InputError
        When the table is not two-dimensional, holds NaN or a negative count, or is empty.

    References
    ----------
    Cramér 1946, "Mathematical Methods of Statistics", chapter 21; Bergsma 2013, "A
    bias-correction for Cramér's V and Tschuprow's T".
    """
    statistic: Statistic = "cramers_v_corrected" if bias_corrected else "cramers_v"
    return _measure(table, statistic, yates, resampling, rng, "Cramér 1946, chapter 21")


def phi(
    table: Any,
    *,
    yates: bool = False,
    bias_corrected: bool = False,
    resampling: Resampling | None = DEFAULT,
    rng: int = 0,
) -> Estimate:
    """Phi = sqrt(χ² / n) of a table of counts.

    Parameters
    ----------
    table, yates, bias_corrected, resampling, rng
        As in `cramers_v`.

    Returns
    -------
    Estimate
        In [0, sqrt(min(groups, labels) - 1)], higher is a stronger association; otherwise as
        `cramers_v`.

    Raises
    ------
    InputError
        As `cramers_v`.

    References
    ----------
    Cramér 1946, chapter 21.
    """
    statistic: Statistic = "phi_corrected" if bias_corrected else "phi"
    return _measure(table, statistic, yates, resampling, rng, "Cramér 1946, chapter 21")


def tschuprows_t(
    table: Any,
    *,
    yates: bool = False,
    bias_corrected: bool = False,
    resampling: Resampling | None = DEFAULT,
    rng: int = 0,
) -> Estimate:
    """Tschuprow's T = sqrt(χ² / (n sqrt((groups - 1)(labels - 1)))) of a table of counts.

    Parameters
    ----------
    table, yates, bias_corrected, resampling, rng
        As in `cramers_v`.

    Returns
    -------
    Estimate
        In [0, 1], 1 only in square tables; otherwise as `cramers_v`.

    Raises
    ------
    InputError
        As `cramers_v`.

    References
    ----------
    Tschuprow 1939, "Principles of the Mathematical Theory of Correlation".
    """
    statistic: Statistic = "tschuprows_t_corrected" if bias_corrected else "tschuprows_t"
    return _measure(table, statistic, yates, resampling, rng, "Tschuprow 1939")


def _measure(
    table: Any,
    statistic: Statistic,
    yates: bool,
    resampling: Resampling | None,
    rng: int,
    reference: str,
) -> Estimate:
    array = _valid(table)
    counts = _counts(array)
    effects = EffectSizes(statistic, 0.0, yates, "independence")
    whole = bool((array == np.floor(array)).all())
    found = measure(counts, [effects], resampling if whole else None, rng)[0]
    classes = Classes.of(effects, counts, Draws(effects(counts, counts.observed)[0]))
    corrected = statistic.removesuffix("_corrected") != statistic
    names = [f"row {index + 1}" for index in range(len(array))]
    return replace(
        found,
        metric=statistic,
        n=dict(zip(names, np.rint(array.sum(axis=1)).astype(int).tolist(), strict=True)),
        params={"yates": yates, "bias_corrected": corrected} | _chi_square(classes),
        no_chance="" if whole else _FRACTIONS,
        by=None,
        excluded={},
        reason="" if found.by is None else str(found.by["reason"][0]),
        reference=reference + (_CORRECTION if corrected else ""),
    )


def _valid(table: Any) -> Floats:
    try:
        array = np.asarray(table, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError("table: expected numbers in rows of one length") from error
    if array.ndim != 2:
        raise InputError(f"table: shape {array.shape}; expected (groups, labels)")
    bad = np.argwhere(~(np.isfinite(array) & (array >= 0)))
    if len(bad):
        row, column = bad[0]
        raise InputError(
            f"table, row {row + 1}, column {column + 1}: {array[row, column]:g}; expected finite "
            "counts of at least 0"
        )
    if not array.any():
        raise InputError("table: no counts; expected at least one row")
    return array


def _counts(array: Floats) -> Counts:
    """Return the table as counts of one class whose labels are the columns."""
    names = tuple((f"row {index + 1}",) for index in range(len(array)))
    # One row stands for each group that is not empty: the table itself holds the counts.
    present = np.flatnonzero(array.sum(axis=1)).astype(np.int32)
    labels = np.arange(array.shape[1])
    return Counts(
        groups=Groups(("group",), names, present),
        classes=tuple(f"column {index + 1}" for index in labels),
        truth=np.zeros_like(labels),
        prediction=labels,
        sampler=TableSampler(np.ascontiguousarray(array.T)),
        excluded={},
        unit="row",
    )


def _chi_square(classes: Classes) -> dict[str, Any]:
    observed = classes.observed
    n, df = float(observed.n[0, 0]), float(observed.df[0, 0])
    chi2 = None if df == 0 else float(observed.chi2[0, 0])
    # Of tables with these margins; without continuity correction.
    chance = n / (n - 1.0) * df if df and n > 1 else math.nan
    return {"chi2": chi2, "df": int(df), "chance_chi2": None if math.isnan(chance) else chance}


_table = partial(
    MetricSpec,
    kinds=("predictions",),
    group_label="share of wrong predictions",
    groups_harm="higher",
    threshold=0.1,
    threshold_reason=COHEN,
    bands=BANDS,
    parameters={**EFFECT_PARAMETERS, "bias_corrected": "Bergsma's correction: off"},
    direction="Higher: groups of one class get different labels.",
    chance="above 0, more so for few rows and many labels",
    interval=(
        "inversion of the noncentral χ²; divided by the design effect for units of repeated rows"
    ),
    null="groups are exchangeable within each true class; of a table, over all rows",
)
_corrected = partial(
    _table,
    reference="Bergsma 2013",
    chance="near 0",
    interval="that of the statistic without correction",
)
register(
    _table(
        name="cramers_v",
        title="Cramér's V",
        symbol="V",
        kinds=("predictions", "answers"),
        definition=(
            "sqrt(χ² / (n · (min(groups, labels) − 1))) of a table of groups by labels, without "
            "empty rows and columns."
        ),
        reference="Cramér 1946, chapter 21; Albuquerque et al. 2024, eq. 3",
        errata=(
            "The listing of Albuquerque et al. applies Yates' correction to 2×2 tables; eq. 3 does "
            "not. yates=True reproduces the listing."
        ),
    )
)
register(
    _corrected(
        name="cramers_v_corrected",
        title="Cramér's V, corrected for bias",
        symbol="Ṽ",
        definition=(
            "V after (groups − 1)(labels − 1) / (n − 1) is taken from χ² / n, not below 0, and "
            "both sizes are reduced."
        ),
    )
)
register(
    _table(
        name="phi",
        title="Phi",
        symbol="φ",
        range="[0, sqrt(min(groups, labels) − 1)]",
        definition="sqrt(χ² / n) of a table of groups by labels.",
        reference="Cramér 1946, chapter 21",
    )
)
register(
    _corrected(
        name="phi_corrected",
        title="Phi, corrected for bias",
        range="[0, sqrt(min(groups, labels) − 1)]",
        definition=(
            "Phi after (groups − 1)(labels − 1) / (n − 1) is taken from χ² / n, not below 0."
        ),
    )
)
register(
    _table(
        name="tschuprows_t",
        title="Tschuprow's T",
        symbol="T",
        range="[0, 1], 1 in square tables only",
        definition=(
            "sqrt(χ² / (n · sqrt((groups − 1)(labels − 1)))) of a table of groups by labels."
        ),
        reference="Tschuprow 1939",
    )
)
register(
    _corrected(
        name="tschuprows_t_corrected",
        title="Tschuprow's T, corrected for bias",
        definition=(
            "T after (groups − 1)(labels − 1) / (n − 1) is taken from χ² / n, not below 0, and "
            "both sizes are reduced."
        ),
    )
)

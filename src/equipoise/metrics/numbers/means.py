"""Means of numbers of rows: of all, of each group, and how groups differ."""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from equipoise.core import (
    Aggregate,
    Ends,
    Estimate,
    Floats,
    GroupLabels,
    Groups,
    GroupValue,
    InputError,
    Labels,
    NullHypothesis,
    Part,
    Variant,
    encode,
    floats,
    no_ends,
    record,
)
from equipoise.core.arguments import real_numbers
from equipoise.core.types import Facts
from equipoise.discovery import refused
from equipoise.metrics.building import group_rows, sizes, too_small
from equipoise.metrics.labels import fill_labels, name_unit
from equipoise.metrics.labels.comparisons import OTHERS
from equipoise.metrics.measure import DEFAULT, NO_INTERVAL
from equipoise.metrics.rankings.similarity import similarity_gap
from equipoise.metrics.spec import SPECS, make_estimate, spec_for
from equipoise.stats import Resampling
from equipoise.stats.intervals import wilson
from equipoise.stats.resampling import level_of
from equipoise.stats.streams import Seed

NO_NUMBER = "rows without a number"
_ROWS = "rows exchange their groups"
_UNITS = "units of one group exchange theirs as one, rows do within units of several"


@record
class RowValues:
    """Numbers of rows in groups.

    Attributes
    ----------
    values : ndarray of float64, shape (n,)
    groups : Groups
    units : ndarray of int, shape (n,), or None
        Unit of each row; -1: a unit of its own.
    unit : str
        What is independent: "row" or "unit".
    shares : bool
        Whether each number is 0 or 1, or a share itself, so that means are shares.
    excluded : mapping of str to int
        Rows that have no number, by reason.
    """

    values: Floats
    groups: Groups
    units: ArrayLike | None
    unit: str
    shares: bool
    excluded: Facts

    @classmethod
    def of(
        cls,
        values: ArrayLike,
        groups: GroupLabels | None,
        units: Labels | None,
        *,
        shares: bool = False,
        name: str = "values",
    ) -> "RowValues":
        """Check numbers, and leave out rows without one.

        Numbers of rows that are `shares` themselves have means that are shares, as 0 and 1 have.
        Errors call the numbers `name`.

        Raises
        ------
        InputError
            When a number is infinite, or lengths differ.
        """
        numbers = real_numbers(values, name)
        if np.isinf(numbers).any():
            raise InputError(f"{name}: shape {numbers.shape}; expected finite numbers, (n,)")
        row_groups = Groups.of(fill_labels(groups, len(numbers)))
        codes = None if units is None else encode(units, subject="units")[0]
        for subject, labels in (("groups", row_groups.codes), ("units", codes)):
            if labels is not None and len(labels) != len(numbers):
                raise InputError(
                    f"{subject}: {len(labels)} labels for {len(numbers)} rows of {name}; "
                    "expected one each"
                )
        known = ~np.isnan(numbers)
        kept = numbers[known]
        return cls(
            kept,
            row_groups.take(np.flatnonzero(known)),
            None if codes is None else codes[known],
            name_unit(units),
            bool(((kept >= 0.0) & (kept <= 1.0)).all() if shares else _is_binary(kept)),
            {NO_NUMBER: len(numbers) - len(kept)},
        )

    def mean(self, code: int | None = None) -> float:
        """Return the mean of a group, of all rows without one; NaN without rows."""
        return _mean(self._of(code)[0])

    def error(self, code: int | None = None) -> tuple[float, int]:
        """Return the standard error of a mean over units, and its degrees of freedom."""
        freedom, variance = _between_units(*self._of(code))
        return math.sqrt(variance) if freedom else math.nan, freedom

    def independent(self, code: int | None = None) -> float:
        """Return how many independent rows would give a share the same error over units."""
        values, units = self._of(code)
        freedom, variance = _between_units(values, units)
        mean, n_units = _mean(values), freedom + 1
        spread = mean * (1.0 - mean)
        ratio = spread / variance * n_units / freedom if variance > 0.0 else n_units
        # Shares of rows vary less than 0 and 1 do.
        return min(ratio, len(values)) if _is_binary(values) else ratio

    def ends(self, code: int | None = None) -> Ends:
        """Return the ends of the interval of a mean at each level.

        Shares have Wilson's interval of as many rows as are independent, other numbers Student's
        with the variance between units (Liang & Zeger 1986); none for one unit.
        """
        values, units = self._of(code)
        freedom, variance = _between_units(values, units)
        mean = _mean(values)
        if freedom < 1:
            return no_ends

        def of_share(level: float) -> tuple[float, float]:
            independent = self.independent(code)
            low, high = wilson(mean * independent, independent, level)
            return float(low), float(high)

        def of_mean(level: float) -> tuple[float, float]:
            half = float(special.stdtrit(freedom, (1.0 + level) / 2.0)) * math.sqrt(variance)
            return mean - half, mean + half

        return of_share if self.shares else of_mean

    def by_group(self, level: float) -> tuple[GroupValue, ...]:
        """Return the mean of every group with its interval."""
        codes = range(len(self.groups))
        ends = np.array([self.ends(code)(level) for code in codes]).reshape(-1, 2)
        counts = self.groups.counts
        notes = np.select(
            [counts == 0, ~self.groups.usable], ["no rows", too_small(self.groups)], ""
        )
        values = floats([self.mean(code) for code in codes])
        low, high = ends.T
        return group_rows(self.groups, counts, values, low, high, notes.tolist())

    def against_rest(self, part: Part, level: float) -> tuple[GroupValue, ...]:
        """Return the means behind a difference: of all groups, or of one and of all others."""
        if part.aggregate is not Aggregate.AGAINST_REST:
            return self.by_group(level)
        groups = self.groups
        code = groups.names.index(part.by_group[0].group)
        compared = np.isin(groups.codes, np.flatnonzero(groups.usable))
        codes = np.where(compared, groups.codes != code, -1).astype(np.int32)
        levels = (groups.levels[code], (OTHERS,))
        two = replace(groups, levels=levels, codes=codes, min_size=1)
        return replace(self, groups=two).by_group(level)

    def _of(self, code: int | None) -> tuple[Floats, np.ndarray | None]:
        """Return the numbers of a group, or of all rows, and their units; None without units."""
        rows = np.ones(len(self.values), bool) if code is None else self.groups.codes == code
        if self.units is None:
            return self.values[rows], None
        units = np.asarray(self.units)
        alone = -1 - np.arange(len(units))
        return self.values[rows], np.where(units < 0, alone, units)[rows]


def _is_binary(values: Floats) -> bool:
    return bool(np.isin(values, (0.0, 1.0)).all())


def _is_share(metric: str) -> bool:
    spec = spec_for(metric)
    return spec.unit == "share" and spec.range == (0.0, 1.0)


def _mean(values: Floats) -> float:
    return float(np.sort(values).mean()) if len(values) else math.nan


def _between_units(values: Floats, units: np.ndarray | None) -> tuple[int, float]:
    """Return the degrees of freedom and the variance of a mean over independent units.

    Without units, each row is one.
    """
    sums, n_units = values - _mean(values), len(values)
    if units is not None:
        _, places = np.unique(units, return_inverse=True)
        n_units = int(places.max(initial=-1)) + 1
        # Sorted sums, so that the order of rows changes nothing.
        order = np.lexsort((values, places))
        sums = floats(np.bincount(places[order], weights=sums[order], minlength=n_units))
    if n_units < 2:
        return 0, math.nan
    spread = float(np.sort(sums**2).sum())
    return n_units - 1, spread * n_units / (n_units - 1) / len(values) ** 2


def mean_value(
    metric: str,
    values: ArrayLike,
    groups: GroupLabels | None = None,
    *,
    units: Labels | None = None,
    params: Facts | None = None,
    resampling: Resampling | None = DEFAULT,
) -> Estimate:
    """Mean of numbers of rows, with that of every group.

    Parameters
    ----------
    metric : str
        Registered name of what the mean is.
    values : array-like, shape (n,)
        A number for each row; NaN where there is none.
    groups : array-like (n,), mapping of attribute to labels, or Groups, optional
    units : array-like (n,), optional
        Unit of each row, such as the person shown.
    params : mapping, optional
        What decides the numbers.
    resampling : Bootstrap, Permutation or None
        None gives the value alone.

    Returns
    -------
    Estimate
        Interval: Student's t with the variance between rows or units, of shares Wilson's of as
        many rows as are independent. `.by` has one part, with the mean of each group.

    Raises
    ------
    InputError
        When a number is infinite, or lengths differ.
    """
    rows = RowValues.of(values, groups, units, shares=_is_share(metric))
    level = level_of(resampling)
    value, ends = rows.mean(), rows.ends() if resampling is not None else no_ends
    low, high = ends(level)
    n = len(rows.values)
    closed = "Wilson, units by their design effect" if rows.shares else "Student's t over units"
    part = Part(metric, "", value, low, high, n=n, by_group=rows.by_group(level))
    return make_estimate(
        metric, value, sizes(rows.groups),
        closed.replace("unit", rows.unit) if resampling is not None else NO_INTERVAL,
        aggregate=Aggregate.VALUE, params=params or {}, no_chance="a mean compares no groups",
        by=[part], excluded=rows.excluded, unit=rows.unit,
        reason="" if n else "no row has a number", ends=ends,
    )  # fmt: skip


def mean_difference(
    metric: str,
    values: ArrayLike,
    groups: GroupLabels,
    *,
    units: Labels | None = None,
    params: Facts | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Largest difference between groups in the mean of numbers of rows.

    Parameters
    ----------
    metric, values, groups, units, params
        See `mean_value`.
    resampling : Bootstrap, Permutation or None
        None gives the value alone.
    rng : int or Generator
        Seed.

    Returns
    -------
    Estimate
        0 or above, higher is worse. Interval: simultaneous intervals of all pairs of groups over
        rows or units. Chance and p: rows exchange their groups, units of one group theirs as one.
        `.by` has the value with the mean of each group; with three groups or more also each
        group's mean minus that of all others (aggregate "against_rest").

    Raises
    ------
    InputError
        As `mean_value`; or fewer than two rows have a number.

    References
    ----------
    Hothorn, Bretz & Westfall 2008, Biometrical Journal 50, 346-363 (simultaneous intervals).
    """
    rows = RowValues.of(values, groups, units, shares=_is_share(metric))
    if len(rows.values) < 2:
        problem, place = "fewer than two rows have a number", SPECS.places.get(metric)
        if place is None or place.is_built_in:
            raise InputError(f"values: {problem}")
        raise refused(f"in {place}, {problem}", "mend the metric, or switch it off", place)
    units_of_rows = None if rows.units is None else _named_units(rows.units)
    gap = similarity_gap(
        rows.values, rows.groups, units=units_of_rows, resampling=resampling, rng=rng
    )
    spec = spec_for(metric, Aggregate.DIFFERENCE)
    parts = [*parts_of_gap(gap, spec.name, rows, level_of(resampling))]
    return replace(
        gap, metric=metric, aggregate=Aggregate.DIFFERENCE, reference=spec.reference, by=parts,
        params=params or {}, harm="higher", unit=rows.unit, limits=spec.limits,
        null=NullHypothesis.ROWS if rows.units is None else NullHypothesis.UNITS,
        null_drawn=f"{_ROWS if rows.units is None else _UNITS}; "
        f"{gap.null_drawn.partition('; ')[2]}".rstrip("; "),
        excluded={reason: n for reason, n in {**rows.excluded, **gap.excluded}.items() if n},
    )  # fmt: skip


def parts_of_gap(gap: Estimate, metric: str, rows: RowValues, level: float) -> Iterator[Part]:
    """Yield the main parts of a gap between means as those of a metric, with groups' means."""
    for part in gap.parts:
        if part.metric == gap.metric and part.variant is Variant.MAIN:
            low, high = spec_for(metric, part.aggregate).possible(part.low, part.high)
            by_group = rows.against_rest(part, level)
            yield replace(part, metric=metric, subject="", low=low, high=high, by_group=by_group)


def _named_units(units: ArrayLike) -> list[str]:
    """Return names of units; rows without one are units of their own."""
    codes = np.asarray(units).tolist()
    return [f"row {place}" if code < 0 else f"unit {code}" for place, code in enumerate(codes)]

"""Metrics of rows with a number each, such as items with the share of their answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from equipoise.core import Estimate, Floats, GroupLabels, InputError, Labels, floats, record
from equipoise.core.arguments import real_numbers
from equipoise.metrics.measure import DEFAULT
from equipoise.metrics.numbers.means import mean_difference, mean_value
from equipoise.metrics.spec import MetricSpec
from equipoise.stats import Resampling
from equipoise.stats.streams import Seed


@record
class RowMetric:
    """A function of numbers of rows as a metric.

    Call it for the mean over all rows, or its `difference` for the largest between groups.

    Attributes
    ----------
    spec : MetricSpec
    row_numbers : callable
        From an array with a row for each item to a number of each, shape (n,); NaN: none.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> m.outcome_share([1, 0, 1, 1] * 30, ["women", "men"] * 60)
    <outcome_share 0.750 [0.666, 0.819]; n = 120 in 2 groups>
    >>> m.outcome_share.difference([1, 0, 1, 1] * 30, ["women", "men"] * 60).value
    0.5
    """

    spec: MetricSpec
    row_numbers: Callable[[Floats], Floats]

    @classmethod
    def of(cls, spec: MetricSpec, row_numbers: Callable[[Floats], Floats]) -> RowMetric:
        """Make a metric of numbers of rows: groups have a mean, which they are compared in."""
        return cls(replace(spec, rate=True, rest_metric=spec.name), row_numbers)

    def numbers(self, rows: ArrayLike) -> Floats:
        """Return the number of each row.

        Raises
        ------
        InputError
            When the function gives another number of rows.
        """
        columns = real_numbers(rows, "rows", dimensions=None)
        values = floats(self.row_numbers(columns))
        if values.shape != columns.shape[:1]:
            raise InputError(
                f"metric {self.spec.name!r}: gave numbers of shape {values.shape} for "
                f"{len(columns)} rows. To do: return one number for each row"
            )
        self.spec.check_values(values)
        return values

    def __call__(
        self,
        rows: ArrayLike,
        groups: GroupLabels | None = None,
        *,
        units: Labels | None = None,
        resampling: Resampling | None = DEFAULT,
    ) -> Estimate:
        """Return the mean over all rows, with that of each group; see `equipoise.metrics`."""
        return mean_value(
            self.spec.name, self.numbers(rows), groups, units=units, resampling=resampling
        )

    def difference(
        self,
        rows: ArrayLike,
        groups: GroupLabels,
        *,
        units: Labels | None = None,
        resampling: Resampling | None = DEFAULT,
        rng: Seed = 0,
    ) -> Estimate:
        """Return the largest difference between groups in the mean; see `equipoise.metrics`."""
        return mean_difference(
            self.spec.name, self.numbers(rows), groups, units=units, resampling=resampling, rng=rng
        )


def in_unit_interval(rows: Floats) -> Floats:
    """Return shares of rows unchanged.

    Raises
    ------
    InputError
        When one is no share, or there is more than one column.
    """
    if rows.ndim != 1 or not ((rows >= 0.0) & (rows <= 1.0) | np.isnan(rows)).all():
        raise InputError(f"rows: shape {rows.shape}; expected numbers from 0 to 1, (n,)")
    return rows

"""Metrics of predicted numbers: a number for each row, of which groups have a mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from equipoise.core import (
    Estimate,
    Floats,
    GroupLabels,
    InputError,
    Labels,
    floats,
    record,
)
from equipoise.core.arguments import check_lengths, real_numbers
from equipoise.metrics.documenting import Form
from equipoise.metrics.measure import DEFAULT
from equipoise.metrics.numbers.means import mean_difference, mean_value
from equipoise.metrics.registry import OptionTypes, check_options, defaults_of, options_of
from equipoise.metrics.spec import MetricSpec
from equipoise.stats import Resampling
from equipoise.stats.streams import Seed

RowNumbers = Callable[..., Floats]
"""From true and predicted numbers, and options by name, to a number of each row; NaN: none."""
Defaults = Callable[[Floats], Mapping[str, float]]
"""From true numbers to the options that a user doesn't set."""


def no_options(y_true: Floats) -> Mapping[str, float]:  # noqa: ARG001 - the form of `Defaults`
    """Return the options of a metric that has none."""
    return {}


@record
class NumberMetric(Form):
    """A function of true and predicted numbers as a metric.

    Call it for the mean over all rows, or its `difference` for the largest between groups.

    Attributes
    ----------
    spec : MetricSpec
    row_numbers : callable
        From true and predicted numbers, each of shape (n,), and options to numbers (n,).
    defaults : callable
        From the true numbers to the options that aren't set.
    in_unit : bool
        Whether its numbers are in the unit of the target, so that a difference matters by the
        target's spread where no threshold is set.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> age, estimated = [20, 30, 40, 50] * 30, [21, 30, 44, 50] * 30
    >>> m.mean_absolute_error(age, estimated, ["women", "men"] * 60)
    <mean_absolute_error 1.250 [0.952, 1.548]; n = 120 in 2 groups>
    >>> round(m.mean_absolute_error.difference(age, estimated, ["women", "men"] * 60).value, 2)
    2.5
    """

    spec: MetricSpec
    row_numbers: RowNumbers
    defaults: Defaults
    in_unit: bool

    @classmethod
    def of(
        cls,
        spec: MetricSpec,
        row_numbers: RowNumbers,
        *,
        defaults: Defaults = no_options,
        in_unit: bool = False,
    ) -> NumberMetric:
        """Make a metric of numbers of rows: groups have a mean, which they are compared in."""
        full_spec = replace(spec, rate=True, rest_metric=spec.name)
        return cls(full_spec, row_numbers, defaults, in_unit)

    @property
    def options(self) -> OptionTypes:
        """Types of its options, by name."""
        return options_of(self.row_numbers)

    def numbers(
        self, y_true: ArrayLike, y_pred: ArrayLike, options: Mapping[str, float]
    ) -> tuple[Floats, dict[str, float]]:
        """Return the number of each row, and all options.

        Raises
        ------
        InputError
            When an option is unknown, lengths differ, or the function gives other numbers.
        """
        truth, prediction = real_numbers(y_true, "y_true"), real_numbers(y_pred, "y_pred")
        check_options(self.spec.name, options, self.options)
        check_lengths({"y_true": len(truth), "y_pred": len(prediction)})
        all_options = {**defaults_of(self.row_numbers), **self.defaults(truth), **options}
        values = floats(self.row_numbers(truth, prediction, **all_options))
        if values.shape != truth.shape:
            raise InputError(
                f"metric {self.spec.name!r}: gave numbers of shape {values.shape} for "
                f"{len(truth)} rows. To do: return one number for each row"
            )
        if np.isinf(values).any():
            raise InputError(
                f"metric {self.spec.name!r}: gave an infinite number for row "
                f"{int(np.isinf(values).argmax())}. To do: return finite numbers, NaN for none"
            )
        self.spec.check_values(values)
        return values, all_options

    def __call__(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        groups: GroupLabels | None = None,
        *,
        units: Labels | None = None,
        resampling: Resampling | None = DEFAULT,
        **options: float,
    ) -> Estimate:
        """Return the mean over all rows, with that of each group; see `equipoise.metrics`."""
        values, params = self.numbers(y_true, y_pred, options)
        return mean_value(
            self.spec.name, values, groups, units=units, params=params, resampling=resampling
        )

    def difference(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        groups: GroupLabels,
        *,
        units: Labels | None = None,
        resampling: Resampling | None = DEFAULT,
        rng: Seed = 0,
        **options: float,
    ) -> Estimate:
        """Return the largest difference between groups in the mean; see `equipoise.metrics`."""
        values, params = self.numbers(y_true, y_pred, options)
        return mean_difference(
            self.spec.name, values, groups, units=units, params=params, resampling=resampling,
            rng=rng,
        )  # fmt: skip

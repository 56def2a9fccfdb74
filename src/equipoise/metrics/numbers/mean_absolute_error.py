"""How far predicted numbers are from the truth."""

from functools import partial

import numpy as np

from equipoise.core import Floats
from equipoise.metrics.numbers.metric import NumberMetric
from equipoise.metrics.registry import metric
from equipoise.metrics.spec import MetricSpec


@metric(
    MetricSpec(
        name="mean_absolute_error",
        aliases=("mae",),
        kinds=("regression",),
        range=(0.0, float("inf")),
        harm="higher",
        clause="{model} is off by {groups}",
        part="{share} for {group}",
        definition="Mean distance of predicted from true numbers, in their unit.",
        direction="Higher: predictions are farther from the truth.",
        chance="above 0 for a difference, more so for small groups",
        interval="Student's t with the variance between rows or units",
        null="groups are exchangeable over all rows, or between units that have one group",
        reference="Willmott & Matsuura 2005, Climate Research 30, 79-82",
    ),
    form=partial(NumberMetric.of, in_unit=True),
)
def mean_absolute_error(y_true: Floats, y_pred: Floats) -> Floats:
    """Mean distance of predicted from true numbers."""
    return np.abs(y_pred - y_true)

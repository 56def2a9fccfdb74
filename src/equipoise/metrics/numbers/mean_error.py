"""Whether predicted numbers are too high or too low."""

from functools import partial

from equipoise.core import Floats
from equipoise.metrics.numbers.metric import NumberMetric
from equipoise.metrics.registry import metric
from equipoise.metrics.spec import MetricSpec


@metric(
    MetricSpec(
        name="mean_error",
        aliases=("me", "mean bias error"),
        kinds=("regression",),
        range=(-float("inf"), float("inf")),
        harm="either",
        clause="The mean error of {model} is {groups}",
        part="{share} for {group}",
        definition="Mean of predicted less true numbers, in their unit.",
        direction="Either: above 0 predictions are too high, below 0 too low.",
        chance="above 0 for a difference, more so for small groups",
        interval="Student's t with the variance between rows or units",
        null="groups are exchangeable over all rows, or between units that have one group",
        reference="Willmott & Matsuura 2005, Climate Research 30, 79-82",
    ),
    form=partial(NumberMetric.of, in_unit=True),
)
def mean_error(y_true: Floats, y_pred: Floats) -> Floats:
    """Mean of predicted less true numbers."""
    return y_pred - y_true

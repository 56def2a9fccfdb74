"""How often predicted numbers are near enough to the truth."""

import math
from collections.abc import Mapping
from functools import partial

import numpy as np

from equipoise.core import Floats, InputError
from equipoise.metrics.numbers.metric import NumberMetric
from equipoise.metrics.registry import metric
from equipoise.metrics.spec import POINTS, MetricSpec

_ROUNDING = 1e-12


def round_quarter(y_true: Floats) -> Mapping[str, float]:
    """Return a quarter of the standard deviation as tolerance, as 1, 2 or 5 times a power of 10."""
    known = y_true[np.isfinite(y_true)]
    quarter = float(known.std()) / 4.0 if len(known) else 0.0
    if quarter == 0.0:
        return {"tolerance": 0.0}
    power = 10.0 ** math.floor(math.log10(quarter))
    steps = [digit * power for digit in (1.0, 2.0, 5.0, 10.0)]
    return {"tolerance": min(steps, key=lambda step: abs(math.log(step / quarter)))}


@metric(
    MetricSpec(
        name="share_within_tolerance",
        aliases=("cs", "cumulative score"),
        kinds=("regression",),
        unit="share",
        harm="lower",
        group_label="share within the tolerance",
        clause="{model} is within the tolerance for {groups}",
        definition=(
            "Share of rows whose predicted number is at most the tolerance from the true one: the "
            "cumulative score of age estimation."
        ),
        direction="Lower: fewer predictions are near enough.",
        threshold=0.05,
        threshold_reason=POINTS,
        chance="above 0 for a difference, more so for small groups",
        interval="Wilson, units by their design effect",
        null="groups are exchangeable over all rows, or between units that have one group",
        reference="Geng, Zhou & Smith-Miles 2007, IEEE TPAMI 29, 2234-2240",
    ),
    form=partial(NumberMetric.of, defaults=round_quarter),
)
def share_within_tolerance(y_true: Floats, y_pred: Floats, *, tolerance: float) -> Floats:
    """Share of predicted numbers within a tolerance of the true ones."""
    if not tolerance >= 0.0:
        raise InputError(f"tolerance={tolerance}: expected a number of at least 0")
    distance = np.abs(y_pred - y_true)
    # Numbers with decimals aren't stored exactly.
    rounding = _ROUNDING * np.maximum(np.abs(y_pred), np.abs(y_true))
    return np.where(np.isnan(distance), np.nan, distance <= tolerance + rounding)

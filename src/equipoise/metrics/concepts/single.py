"""One number of an assessment of concepts: of two groups, or of a metric at a threshold."""

from __future__ import annotations

import math
from dataclasses import replace

from numpy.typing import ArrayLike

from equipoise.core import Aggregate, Chance, Estimate, GroupLabels, InputError, Labels, Part
from equipoise.metrics.building import known_ends
from equipoise.metrics.concepts.cells import Metric
from equipoise.metrics.concepts.disparity import (
    Choices,
    concept_metrics,
    concept_record,
    summarise,
)
from equipoise.metrics.measure import DEFAULT
from equipoise.metrics.registry import metric as register_metric
from equipoise.metrics.spec import spec_for
from equipoise.stats import Resampling
from equipoise.stats.streams import Seed


@register_metric(
    concept_record(
        name="concept_difference",
        of_pair=True,
        title="Difference of two groups",
        range=(-1.0, 1.0),
        rate=False,
        harm="either",
        definition=(
            "Metric of the first group minus that of the second, for a concept or the mean over "
            "concepts."
        ),
        direction="Either: positive means the first group has the larger value.",
        chance="about 0",
        interval=(
            "percentile bootstrap over images or units; by [Hall]'s protocol, significant if it "
            "excludes 0"
        ),
        null="that of the disparity, two-sided",
    )
)
def concept_difference(  # noqa: PLR0913 - as in concept_disparity
    scores: ArrayLike,
    labels: ArrayLike,
    groups: GroupLabels,
    first: str,
    second: str,
    *,
    metric: Metric = "average_precision",
    choices: Choices | None = None,
    units: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Mean over concepts of a metric in one group, minus that in another.

    Parameters
    ----------
    scores, labels, groups, metric, units, resampling, rng
        As in `concept_disparity`.
    first, second : str
        The groups, by name.
    choices : Choices, optional
        Everything but the metric.

    Returns
    -------
    Estimate
        `.by` has it with both groups, for all concepts and for each.

    Raises
    ------
    InputError
        As `concept_disparity`, or when a group is unknown or too small.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> labels = np.random.default_rng(0).random((400, 2)) < 0.4
    >>> groups = ["women", "men"] * 200
    >>> m.concept_difference(labels, labels, groups, "women", "men").value
    0.0
    """
    results = concept_metrics(
        scores, labels, groups, [metric], choices, units=units, resampling=resampling, rng=rng
    )[metric]
    whole = summarise(results)
    parts = [
        part if part.by_group[0].group == first else _turned(part)
        for part in whole.parts
        if part.metric == "concept_difference"
        and {value.group for value in part.by_group} == {first, second}
    ]
    if not parts:
        raise InputError(
            f"first and second: {first!r} and {second!r}; expected two of the groups that are "
            f"large enough: {', '.join(results.groups.names)}"
        )
    main = parts[0]
    spec, tested = spec_for(main.metric, main.aggregate), not math.isnan(main.p_value)
    chance = Chance(main.chance, main.chance_low, main.chance_high, whole.null_drawn)
    return replace(
        whole,
        metric=main.metric,
        aggregate=main.aggregate,
        value=main.value,
        harm="either",
        chance=chance if tested else None,
        p_value=main.p_value if tested else None,
        p_at_most=main.p_at_most,
        ends=known_ends(main.low, main.high),
        by=parts,
        limits=spec.range,
    )


def _turned(part: Part) -> Part:
    """Return the difference of the second and the first group."""
    return replace(
        part, value=0.0 - part.value, low=0.0 - part.high, high=0.0 - part.low,
        chance=0.0 - part.chance, chance_low=-part.chance_high,
        chance_high=-part.chance_low, by_group=part.by_group[::-1],
    )  # fmt: skip


@register_metric(
    concept_record(
        name="f1",
        by_default=(),
        rest_metric="f1",
        definition="2 TP / (2 TP + FP + FN) at the threshold of largest F1 on validation rows.",
        direction="Lower: more wrong decisions for each right one.",
    )
)
def f1(
    scores: ArrayLike,
    labels: ArrayLike,
    groups: GroupLabels,
    *,
    choices: Choices | None = None,
    units: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Largest difference between groups in the mean over concepts of F1.

    Parameters
    ----------
    scores, labels, groups, units, resampling, rng
        As in `concept_disparity`.
    choices : Choices, optional
        Everything but the metric.

    Returns
    -------
    Estimate
        `.by` has the parts of `concept_disparity`.

    Raises
    ------
    InputError
        As `concept_disparity`.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> labels = np.random.default_rng(0).random((400, 2)) < 0.4
    >>> groups = ["women", "men"] * 200
    >>> m.f1(labels, labels, groups, choices=m.Choices(min_positives=20)).value
    0.0
    """
    results = concept_metrics(
        scores, labels, groups, ["f1"], choices, units=units, resampling=resampling, rng=rng
    )["f1"]
    return replace(summarise(results), metric="f1", aggregate=Aggregate.DIFFERENCE)

"""Summaries of scores over targets: by category and direction."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.estimate import Estimate
from equipoise.core.parts import Part, parts_to_table
from equipoise.metrics.spec import MetricSpec, make_estimate, register

Floats = npt.NDArray[np.float64]


def score_summary(scores: Mapping[str, float], categories: Mapping[str, str]) -> Estimate:
    """Mean and standard deviation of scores by category of target and direction.

    Parameters
    ----------
    scores : mapping of target to number
        Such as MCAS; positive leans to the first group.
    categories : mapping of target to str

    Returns
    -------
    Estimate
        Mean over all targets, with no interval and no chance level: targets are declared, not
        drawn. `.by` has "mean" and "sd" (n - 1) of "category, a", "category, b" (leaning to the
        first and second group) and "category"; scores that are not finite are counted.

    Raises
    ------
    InputError
        When a target has no category, or there is no finite score.

    References
    ----------
    Mandal 2024, chapter 6.
    """
    if without := sorted({*scores} - {*categories}):
        raise InputError(f"categories: none for target {without[0]!r}; expected one for each")
    known = {name: float(scores[name]) for name in sorted(scores) if math.isfinite(scores[name])}
    if not known:
        raise InputError("scores: no finite number; expected one per target")
    parts = []
    for category in sorted({categories[name] for name in known}):
        values = np.array([one for name, one in known.items() if categories[name] == category])
        for subject, some in (
            (f"{category}, a", values[values > 0]),
            (f"{category}, b", values[values < 0]),
            (category, values),
        ):
            parts += _moments(subject, some)
    dropped = len(scores) - len(known)
    return make_estimate(
        metric="score_summary",
        value=float(np.mean([*known.values()])),
        n={"targets": len(known)},
        method="none: targets are declared, not drawn",
        no_chance="a summary over declared targets",
        by=parts_to_table(parts),
        excluded={"no finite score": dropped} if dropped else {},
        unit="target",
    )


def _moments(subject: str, values: Floats) -> list[Part]:
    n = len(values)
    mean = float(np.sort(values).mean()) if n else math.nan
    spread = float(np.sort(values).std(ddof=1)) if n > 1 else math.nan
    return [
        Part("mean", subject, mean, n=n, reason="" if n else "no target"),
        Part("sd", subject, spread, n=n, reason="" if n > 1 else "fewer than two targets"),
    ]


register(
    MetricSpec(
        name="score_summary",
        title="Mean score",
        kinds=("associations", "text_to_image"),
        range="that of the score",
        harm="either",
        definition=(
            "Mean and standard deviation of scores such as MCAS, by category of target and "
            "direction."
        ),
        direction="Either: the sign is the direction of the score.",
        chance="none: a summary over declared targets",
        reference="Mandal 2024, chapter 6",
    )
)

"""The difference of two models in one number, as a finding."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from equipoise.audits.findings import Draft
from equipoise.core.finding import Family, Finding, Verdict
from equipoise.stats.chance import band, p_value
from equipoise.stats.intervals import percentile

if TYPE_CHECKING:
    from equipoise.audits.config import Config

Floats = npt.NDArray[np.float64]

LOWER_IS_WORSE = ("accuracy", "worst_group_accuracy", "skewsize")


@dataclass(frozen=True, eq=False)
class Contrast:
    """Two models' values of one number, with paired replicates of their difference.

    Attributes
    ----------
    metric, subject, groups : str
    models : tuple of str
        First and second; differences are second minus first.
    values : tuple of float
    boot, null : ndarray, shape (replicates,)
        Differences on resampled rows, and with the models swapped on random rows.
    n : int
        Rows compared.
    unit : str
    """

    metric: str
    subject: str
    groups: str
    models: tuple[str, str]
    values: tuple[float, float]
    boot: Floats
    null: Floats
    n: int
    unit: str

    @property
    def difference(self) -> float:
        """Second model minus first."""
        return self.values[1] - self.values[0]


@dataclass(frozen=True, eq=False)
class Compared:
    """One metric over all models.

    Attributes
    ----------
    metric, groups : str
    models : tuple of str
    values : list of ndarray (1, 1)
    replicates : list of ndarray (replicates, 1)
        Paired: one row resamples the same images for every model.
    contrasts : tuple of Contrast
    """

    metric: str
    groups: str
    models: tuple[str, ...]
    values: list[Floats]
    replicates: list[Floats]
    contrasts: tuple[Contrast, ...]


def pair_name(models: tuple[str, str]) -> str:
    """Return how findings call a pair: second minus first."""
    return f"{models[1]} − {models[0]}"


def draft_of(contrast: Contrast, config: Config) -> Draft:
    """Draft the finding of a contrast: its paired interval, and a test of no difference."""
    level = config.resampling.level
    low, high = _ends(contrast.boot, level)
    chance, p, null = _against(contrast)
    finding = Finding(
        audit="comparison",
        model=pair_name(contrast.models),
        metric=contrast.metric,
        subject=contrast.subject,
        groups=contrast.groups,
        version="default",
        family=Family.LEAF if contrast.subject else Family.COMPOSITE,
        value=contrast.difference,
        ci_low=low,
        ci_high=high,
        level=level,
        chance=chance[0],
        chance_low=chance[1],
        chance_high=chance[2],
        excess=contrast.difference - chance[0],
        p_value=p,
        q_value=math.nan,
        threshold=math.nan,
        n=contrast.n,
        by_group=(),
        excluded=(),
        unit=contrast.unit,
        method=f"paired percentile bootstrap, {len(contrast.boot)} replicates",
        null=null,
        parameters="{}",
        direction=direction_of(contrast),
        verdict=Verdict.NONE,
        reason="a model's value is not estimable" if math.isnan(contrast.difference) else "",
        citation="",
    )
    return Draft(finding, "either")


def direction_of(contrast: Contrast) -> str:
    """Say which of the two models fares worse."""
    difference = contrast.difference
    if math.isnan(difference) or difference == 0:
        return ""
    lower_is_worse = contrast.metric in LOWER_IS_WORSE
    worse = contrast.models[1 if (difference < 0) == lower_is_worse else 0]
    return f"{contrast.metric.replace('_', ' ')} is worse for {worse}"


def _ends(boot: Floats, level: float) -> tuple[float, float]:
    if not len(boot):
        return math.nan, math.nan
    low, high, _ = percentile(boot, level)
    return float(low), float(high)


def _against(contrast: Contrast) -> tuple[tuple[float, float, float], float, str]:
    nothing = (math.nan, math.nan, math.nan)
    if not len(contrast.null) or math.isnan(contrast.difference):
        return nothing, math.nan, ""
    chance = band(contrast.null)
    found = p_value(contrast.null, contrast.difference, "either")
    text = f"the two models are exchangeable on each {contrast.unit}; {len(contrast.null)} swaps"
    return (chance.mean, chance.low, chance.high), found.value, text

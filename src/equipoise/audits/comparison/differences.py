"""The difference of two models in one number, as a finding."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from equipoise.audits.engines.repeats import once, without_mirrors
from equipoise.audits.findings import UncorrectedFinding, conclude
from equipoise.core.finding import Family, Finding, Verdict
from equipoise.metrics.skewsize import NO_TEST
from equipoise.metrics.spec import spec_of
from equipoise.stats.chance import band, p_value
from equipoise.stats.intervals import percentile

if TYPE_CHECKING:
    from equipoise.audits.predictions.config import Config

Floats = npt.NDArray[np.float64]

AUDIT = "comparison"
DESCRIBED = "skewsize"


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
    reason : str
        Why there is no difference, or what to know about it; "" where there is nothing.
    classes : tuple of str
        Classes that occur as truth or as a label of one of the two.
    determined : bool
        Whether every group holds one true class only.
    behind : tuple of bytes
        The outcomes by group that the number was read from, see `World.behind`.
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
    reason: str
    classes: tuple[str, ...]
    determined: bool
    behind: tuple[bytes, ...]

    @property
    def difference(self) -> float:
        """Second model minus first."""
        return self.values[1] - self.values[0]

    @property
    def worse(self) -> str:
        """Which model fares worse; "" where neither does or a value is missing."""
        if math.isnan(self.difference) or self.difference == 0:
            return ""
        lower_is_worse = spec_of(self.metric).value_harm == "lower"
        return self.models[1 if (self.difference < 0) == lower_is_worse else 0]


@dataclass(frozen=True, eq=False)
class Compared:
    """One metric over all models.

    Attributes
    ----------
    metric, groups : str
    models : tuple of str
    values : tuple of float
    replicates : ndarray, shape (replicates, models)
        Paired: one row resamples the same images for every model.
    contrasts : tuple of Contrast
    """

    metric: str
    groups: str
    models: tuple[str, ...]
    values: tuple[float, ...]
    replicates: Floats
    contrasts: tuple[Contrast, ...]


def plain(metric: str) -> str:
    """Return a metric's name within a sentence."""
    return spec_of(metric).label


def pair_name(models: tuple[str, str]) -> str:
    """Return how findings call a pair: second minus first."""
    return f"{models[1]} − {models[0]}"


def findings_of(contrasts: Sequence[Contrast], config: Config) -> tuple[Finding, ...]:
    """Correct and judge contrasts, each comparison once; findings come in the order given.

    As in an audit, what the groups' base rates decide or another finding says already is shown
    without a verdict.
    """
    drafts: list[UncorrectedFinding] = []
    for one in contrasts:
        made = [_draft(one, config)]
        drafts += without_mirrors(made, classes=one.classes, determined=one.determined)
    numbers = [(one.metric, one.subject, one.models, one.behind) for one in contrasts]
    judged = conclude(once(zip(drafts, numbers, strict=True)), config.testing)
    return tuple(replace(one, reason=_reworded(one.reason)) for one in judged)


def _reworded(reason: str) -> str:
    """Speak of differences: a comparison of models judges no disparity between groups."""
    words = (("excess over chance", "difference"), ("disparity", "difference"))
    for old, new in (*words, ("chance plus or minus", "plus or minus")):
        reason = reason.replace(old, new)
    return reason


def _draft(contrast: Contrast, config: Config) -> UncorrectedFinding:
    """Return the finding of a contrast: its paired interval, and a test of no difference."""
    level = config.resampling.level
    described = contrast.metric == DESCRIBED
    low, high = _ends(contrast, level)
    (chance, chance_low, chance_high), p, null = _against(contrast)
    finding = Finding(
        audit=AUDIT,
        model=pair_name(contrast.models),
        metric=contrast.metric,
        subject=contrast.subject,
        groups=contrast.groups,
        version="default",
        family=_family(contrast),
        value=contrast.difference,
        ci_low=low,
        ci_high=high,
        level=level,
        chance=chance,
        chance_low=chance_low,
        chance_high=chance_high,
        excess=contrast.difference - chance,
        p_value=p,
        q_value=math.nan,
        threshold=math.nan,
        n=contrast.n,
        by_group=(),
        excluded=(),
        unit=contrast.unit,
        method=_method(contrast),
        null=null,
        parameters=_parameters(contrast),
        direction=_direction(contrast),
        verdict=Verdict.NONE,
        reason=contrast.reason or (NO_TEST if described else ""),
        citation="",
    )
    return UncorrectedFinding(finding, "either")


def _family(contrast: Contrast) -> Family:
    if contrast.metric == DESCRIBED:
        return Family.DESCRIPTIVE
    return Family.LEAF if contrast.subject else Family.COMPOSITE


def _parameters(contrast: Contrast) -> str:
    """Keep both models' values beside their difference, and who is worse; JSON has no NaN."""
    models = dict(zip(("model_a", "model_b"), contrast.models, strict=True))
    values = (None if math.isnan(value) else value for value in contrast.values)
    known = dict(zip(("value_a", "value_b"), values, strict=True))
    return json.dumps(models | known | {"worse": contrast.worse}, ensure_ascii=False)


def _direction(contrast: Contrast) -> str:
    """Say which of the two models fares worse."""
    of = f" of {contrast.subject}" if contrast.subject else ""
    over = f" over {contrast.groups}" if contrast.groups else ""
    what = f"{plain(contrast.metric)}{of}{over}"
    return f"{what} is worse for {contrast.worse}" if contrast.worse else ""


def _ends(contrast: Contrast, level: float) -> tuple[float, float]:
    if not len(contrast.boot) or math.isnan(contrast.difference):
        return math.nan, math.nan
    low, high, _ = percentile(contrast.boot, level)
    return float(low), float(high)


def _method(contrast: Contrast) -> str:
    many = len(contrast.boot)
    if not many:
        return "none: resampling is off"
    if contrast.metric == DESCRIBED:
        return (
            f"resampling spread: percentiles of {many} paired bootstrap replicates over "
            f"{contrast.unit}s; not a confidence interval"
        )
    return f"paired percentile bootstrap over {contrast.unit}s, {many} replicates"


def _against(contrast: Contrast) -> tuple[tuple[float, float, float], float, str]:
    """Return the chance level with its band, the p-value, and what was swapped."""
    nothing = (math.nan, math.nan, math.nan)
    untested = contrast.metric == DESCRIBED or math.isnan(contrast.difference)
    if untested or not len(contrast.null):
        return nothing, math.nan, ""
    chance = band(contrast.null)
    found = p_value(contrast.null, contrast.difference, "either")
    text = f"the two models are exchangeable on each {contrast.unit}; {len(contrast.null)} swaps"
    # Swapping all rows turns the sign, so the mean over all swaps is 0, whatever was drawn.
    return (0.0, chance.low, chance.high), found.value, text

"""The sections `metrics` and `testing`: what is measured, and from when on it counts."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BeforeValidator, Field, WrapSerializer, field_validator

from equipoise.audits.config_fields import Section
from equipoise.audits.config_problems import nearest
from equipoise.metrics.cards import CARDS

THRESHOLDS: Mapping[str, float] = MappingProxyType(
    {
        name: card.threshold
        for name, card in CARDS.items()
        if card.threshold is not None and card.family == "predictions"
    }
)
"""Practical thresholds on the excess over chance, by the metric of the finding, as its card has
them: five percentage points for shares and their gaps, 0.1 for effect sizes."""


class NoOptions(Section):
    """A metric that takes no options."""


class EqualizedOddsOptions(Section):
    """Options of equalized odds: `aggregate` over the two true-class conditions."""

    aggregate: Literal["max", "mean"] = "max"


class HitRateOptions(Section):
    """Options of the hit rate: a hit is a true class among the top `k`."""

    k: Annotated[int, Field(ge=1)] = 5


class EffectSizeOptions(Section):
    """Options of the effect sizes per class and their aggregates.

    Attributes
    ----------
    statistic : str
        Measure of association; `_corrected` ones are corrected for the bias of small samples.
    min_expected : float
        Predicted labels whose smallest expected count is below are dropped; 0 drops none.
    yates : bool
        Yates' correction of 2 by 2 tables, as the published SkewSize listing has it.
    formulation : str
        Condition on the true class, on the predicted class, or on nothing.
    """

    statistic: Literal[
        "cramers_v",
        "cramers_v_corrected",
        "phi",
        "phi_corrected",
        "tschuprows_t",
        "tschuprows_t_corrected",
    ] = "cramers_v"
    min_expected: Annotated[float, Field(ge=0)] = 5.0
    yates: bool = False
    formulation: Literal["separation", "sufficiency", "independence"] = "separation"


def _switch(value: object) -> object:
    """Read `true` or nothing as the defaults, and `false` as off."""
    return {} if value is None or value is True else None if value is False else value


def _switched(value: object, dump: Any) -> object:
    return False if value is None else dump(value)


_Options = TypeVar("_Options", bound=Section)
Switch = Annotated[_Options | None, BeforeValidator(_switch), WrapSerializer(_switched)]
"""Options of a metric, or None when it is switched off (`false` in the configuration)."""


class MetricsConfig(Section):
    """Options per metric; `false` switches a metric off, everything else the input allows is on."""

    accuracy: Switch[NoOptions] = NoOptions()
    worst_group_accuracy: Switch[NoOptions] = NoOptions()
    accuracy_gap: Switch[NoOptions] = NoOptions()
    demographic_parity: Switch[NoOptions] = NoOptions()
    equalized_odds: Switch[EqualizedOddsOptions] = EqualizedOddsOptions()
    rates: Switch[NoOptions] = NoOptions()
    hit_rate: Switch[HitRateOptions] = HitRateOptions()
    effect_sizes: Switch[EffectSizeOptions] = EffectSizeOptions()
    skewsize: Switch[EffectSizeOptions] = EffectSizeOptions()
    unanswered_rate: Switch[NoOptions] = NoOptions()


class TestingConfig(Section):
    """When a difference counts.

    Attributes
    ----------
    alpha : float
        Level of significance of the corrected p-values.
    correction : str
        Benjamini-Hochberg (false discovery rate) or Holm (family-wise error).
    thresholds : mapping of str to float
        Practical threshold on the excess over chance, per metric, in place of the default.
    """

    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.05
    correction: Literal["benjamini-hochberg", "holm"] = "benjamini-hochberg"
    thresholds: Mapping[str, Annotated[float, Field(ge=0)]] = Field(default_factory=dict)

    @field_validator("thresholds", mode="before")
    @classmethod
    def _known(cls, value: object) -> object:
        known = [*THRESHOLDS]
        for name in value if isinstance(value, Mapping) else ():
            if name not in known:
                raise ValueError(
                    f"{name!r} has no threshold. Allowed: {', '.join(known)}{nearest(name, known)}"
                )
        return value

    def threshold(self, metric: str) -> float | None:
        """Return the practical threshold of a metric, or of what it is the gap of; None: none."""
        name = metric if metric in THRESHOLDS else metric.removesuffix("_gap")
        return self.thresholds.get(name, THRESHOLDS.get(name))

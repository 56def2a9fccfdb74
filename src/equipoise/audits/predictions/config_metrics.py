"""The sections `metrics` and `testing`: what is measured, and from when on it counts."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BeforeValidator, Field, WrapSerializer

from equipoise.audits.config_fields import Section


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

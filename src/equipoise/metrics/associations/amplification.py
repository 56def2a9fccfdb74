"""Diffusion bias and bias amplification: what a generator adds to the bias of its prompts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.estimate import Estimate
from equipoise.core.parts import parts_from_table, parts_to_table
from equipoise.metrics.associations.mcas import COMPONENTS, Components
from equipoise.metrics.building import Percentile, ends_of, number
from equipoise.metrics.spec import COSINE, MetricSpec, make_estimate, register

Floats = npt.NDArray[np.float64]

_REFERENCE = "Mandal 2024, chapter 8"


def diffusion_bias(components: Estimate | Mapping[str, float]) -> Estimate:
    """Difference in size of the association in images and in texts: | |II| - |TT| |.

    Parameters
    ----------
    components : Estimate or mapping
        What `mcas` returned, or its components by name ("II" and "TT"), which give the value
        alone.

    Returns
    -------
    Estimate
        In [0, 2] for cosines, higher is worse: images carry an association that the texts do not,
        or lose one that they do. Interval, chance and p come from the draws of `mcas`. `.by` has
        |II| - |TT|, signed.

    Raises
    ------
    InputError
        When a component is missing or not finite.

    References
    ----------
    Mandal 2024, chapter 8.
    """
    found = _components(components)
    signed = float(_signed(found.observed[None])[0])
    boot = None if found.boot is None else _signed(found.boot)
    null = None if found.null is None else np.abs(_signed(found.null))
    held = found.held(null, abs(signed), "higher")
    sizes = _sizes(components)
    return make_estimate(
        metric="diffusion_bias",
        value=abs(signed),
        n=sizes,
        method=_method(components),
        **held.fields("no draws: components given as numbers, or no resampling"),
        by=parts_to_table(
            [
                number(
                    "signed_diffusion_bias",
                    signed,
                    n=sum(sizes.values()),
                    ends=ends_of(boot),
                    level=found.level,
                )
            ]
        ),
        ends=ends_of(None if boot is None else np.abs(boot)),
    )


def bias_amplification(components: Estimate | Mapping[str, float]) -> Estimate:
    """Cross-modal association relative to that of the texts: |(ITP + ITA) / (2 TT)|.

    Parameters
    ----------
    components : Estimate or mapping
        What `mcas` returned, or its components by name ("ITP", "ITA", "TT"), which give the value
        alone.

    Returns
    -------
    Estimate
        At least 0; above 1 the association is amplified. Not estimable (NaN, with the reason) when
        the 95 % interval of TT contains 0: the quotient explodes. Interval: percentile bootstrap of
        `mcas`. No chance level: under the null TT is near 0.

    Raises
    ------
    InputError
        When a component is missing or not finite.

    References
    ----------
    Mandal 2024, chapter 8.
    """
    found = _components(components)
    reason = _around_zero(found)
    value = float("nan") if reason else float(_quotient(found.observed[None])[0])
    boot = None if found.boot is None or reason else _quotient(found.boot)
    return make_estimate(
        metric="bias_amplification",
        value=value,
        n=_sizes(components),
        method=_method(components),
        no_chance="under the null the texts' association is near 0: the quotient explodes",
        reason=reason,
        ends=ends_of(boot),
    )


def _components(given: Estimate | Mapping[str, float]) -> Components:
    if isinstance(given, Estimate):
        if isinstance(given.ends, Components):
            return given.ends
        if given.by is None:
            raise InputError(f"components: {given.metric} has none; pass what mcas returned")
        values: Mapping[str, Any] = {part.metric: part.value for part in parts_from_table(given.by)}
    else:
        values = given
    if missing := [name for name in COMPONENTS if name not in values]:
        raise InputError(f"components: no {missing[0]!r}; expected {', '.join(COMPONENTS)}")
    observed = np.array([float(values[name]) for name in COMPONENTS])
    if not np.isfinite(observed).all():
        raise InputError(f"components: {observed.tolist()} are not all finite")
    return Components(observed)


def _signed(drawn: Floats) -> Floats:
    return np.asarray(np.abs(drawn[:, 0]) - np.abs(drawn[:, 3]))


def _quotient(drawn: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.abs((drawn[:, 1] + drawn[:, 2]) / (2.0 * drawn[:, 3])))


def _around_zero(found: Components) -> str:
    """Return why there is no quotient, "" where there is one."""
    if found.observed[3] == 0.0:
        return "the association of the texts (TT) is 0"
    if found.boot is None:
        return ""
    low, high = Percentile(found.boot[:, 3])(0.95)
    return (
        f"the 95 % interval of TT, {low:.3g} to {high:.3g}, contains 0" if low <= 0 <= high else ""
    )


def _sizes(given: Estimate | Mapping[str, float]) -> Mapping[str, int]:
    return given.n if isinstance(given, Estimate) else {}


def _method(given: Estimate | Mapping[str, float]) -> str:
    return given.method if isinstance(given, Estimate) else "none: components given as numbers"


register(
    MetricSpec(
        name="diffusion_bias",
        title="Diffusion bias",
        symbol="δ",
        kinds=("associations", "text_to_image"),
        range="[0, 2] for cosines",
        definition=(
            "| |II| − |TT| |: difference in size of the association in generated images and in "
            "texts."
        ),
        direction="Higher: images add to the association of the texts, or lose it.",
        threshold=0.01,
        threshold_reason=COSINE,
        chance="above 0",
        interval="percentile bootstrap over images",
        null=(
            "groups are exchangeable, so neither images nor texts hold an association; audits "
            "report no p-value"
        ),
        reference=_REFERENCE,
    )
)
register(
    MetricSpec(
        name="bias_amplification",
        title="Bias amplification",
        symbol="α",
        kinds=("associations", "text_to_image"),
        range="[0, infinity)",
        definition=(
            "|(ITP + ITA) / (2 TT)|: association across modalities relative to that of the texts."
        ),
        direction="Higher: above 1 the association is amplified.",
        chance="none: TT is near 0 under the null and the quotient explodes",
        interval=(
            "percentile bootstrap over images; not estimable when the 95 % interval of TT contains "
            "0"
        ),
        reference=_REFERENCE,
    )
)

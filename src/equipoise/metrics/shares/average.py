"""How unequal shares are over several sets of images, such as those of all prompts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.estimate import Estimate, no_ends
from equipoise.metrics.building import NOTHING, Against, Percentile
from equipoise.metrics.shares.drawn import Shares, held_by, mad, method_of
from equipoise.metrics.spec import make_estimate
from equipoise.stats.chance import band, p_value
from equipoise.stats.resampling import Exact

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Mean:
    boot: Floats

    def __call__(self, level: float) -> tuple[float, float]:
        return Percentile(self.boot)(level)


def mean_share_mad(estimates: Mapping[str, Estimate]) -> Estimate:
    """Mean over sets of images of how unequal their shares are.

    Parameters
    ----------
    estimates : mapping of name to Estimate
        What `corrected_shares` returned with that name and one seed: their draws share the
        labelled images. Those that are not estimable are left out, and counted.

    Returns
    -------
    Estimate
        `share_mad`, at least 0, higher is worse. Chance and p: true shares are equal in every
        set.

    Raises
    ------
    InputError
        When an estimate is another, draws were made otherwise, or none can be estimated.
    """
    known: dict[str, tuple[Estimate, Shares]] = {}
    for name, one in estimates.items():
        if not isinstance(one.ends, Shares):
            raise InputError(f"estimates: {name!r} is not what corrected_shares returned")
        if one.estimable:
            known[name] = one, one.ends
    if not known:
        raise InputError("estimates: none is estimable; expected at least one")
    found = [shares for _, shares in known.values()]
    if len({(one.resampling, one.seed) for one in found}) > 1:
        raise InputError("estimates: drawn with other seeds or numbers of draws; use the same")
    value = float(np.mean([one.value for one, _ in known.values()]))
    first = found[0]
    boots = [one.boot for one in found if one.boot is not None]
    nulls = [one.null for one in found if one.null is not None]
    boot = np.mean([mad(one) for one in boots], axis=0) if boots else None
    held = _held(np.mean([mad(one) for one in nulls], axis=0), value, first) if nulls else NOTHING
    lost = len(estimates) - len(known)
    return make_estimate(
        metric="share_mad",
        value=value,
        n={name: one.n["images"] for name, (one, _) in known.items()},
        method=method_of(first),
        params={"sets": len(known), "corrected": not first.classified.exact},
        chance=held.chance,
        no_chance="" if held.chance else "no resampling was asked for",
        p_value=held.p_value,
        null=held.null,
        excluded={"not estimable": lost} if lost else {},
        unit=next(iter(known.values()))[0].unit,
        ends=no_ends if boot is None else _Mean(boot),
    )


def _held(null: Floats, value: float, first: Shares) -> Against:
    resampling = first.resampling
    finest = 0.0 if resampling is None or isinstance(resampling, Exact) else resampling.resolution
    text = f"true shares are equal in every set; {len(null)} draws of images and labelled images"
    tested = p_value(null, value, "higher", resolution=finest)
    return Against(band(null, method=text), tested.value, held_by(text, tested))

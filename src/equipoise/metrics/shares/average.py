"""How unequal shares are over several sets of images, such as those of all prompts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.estimate import Estimate
from equipoise.metrics.building import ends_of
from equipoise.metrics.shares.corrected import Shares, mad, method_of, shares_against
from equipoise.metrics.spec import make_estimate

Floats = npt.NDArray[np.float64]


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
    null = np.mean([mad(one) for one in nulls], axis=0) if nulls else None
    held = shares_against(null, value, first.resampling, "equal in every set")
    lost = len(estimates) - len(known)
    return make_estimate(
        metric="share_mad",
        value=value,
        n={name: one.n["images"] for name, (one, _) in known.items()},
        method=method_of(first),
        params={"sets": len(known), "corrected": not first.classified.exact},
        **held.fields("no resampling was asked for"),
        excluded={"not estimable": lost} if lost else {},
        unit=next(iter(known.values()))[0].unit,
        ends=ends_of(boot),
    )

"""Shares held against shares from outside: labour statistics, or equal ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.estimate import Ends, Estimate, no_ends
from equipoise.core.finding import GroupValue
from equipoise.core.parts import Part, parts_to_table
from equipoise.metrics.building import Percentile, ends_of, number
from equipoise.metrics.shares.corrected import MOST_DRAWS, Shares, method_of, shares_against
from equipoise.metrics.spec import make_estimate
from equipoise.stats.resampling import level_of, null_draws

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LargestGap:
    """Ends of the largest difference: those of every class together, at a shared level."""

    drawn: Floats

    def __call__(self, level: float) -> tuple[float, float]:
        """Return the ends."""
        each = 1.0 - (1.0 - level) / self.drawn.shape[1]
        ends = [Percentile(column)(each) for column in self.drawn.T]
        low = max(max(a, -b, 0.0) for a, b in ends)
        high = max(max(abs(a), abs(b)) for a, b in ends)
        return low, high


def share_gap(
    shares: Estimate, outside: Mapping[str, float] | Literal["uniform"] = "uniform"
) -> Estimate:
    """Largest difference between the shares of classes and shares from outside.

    Parameters
    ----------
    shares : Estimate
        What `corrected_shares` returned, with its draws.
    outside : mapping of class to number, or "uniform"
        Shares or counts to hold them against, such as labour statistics; taken as known without
        error, and divided by their sum over the classes.

    Returns
    -------
    Estimate
        In [0, 1], higher is worse. Interval: simultaneous over classes. Chance and p: what is
        found where true shares are those from outside. `.by` has the signed "share_difference" of
        every class, with its own interval and two-sided p.

    Raises
    ------
    InputError
        When the estimate is another, a class has no number from outside, or numbers are negative,
        not finite or all 0.
    """
    found = shares.ends
    if not isinstance(found, Shares):
        raise InputError(f"shares: {shares.metric} is not what corrected_shares returned")
    classes = found.classified.classes
    target = _target(classes, outside)
    apart = found.observed - target
    value = float(np.abs(apart).max())
    null = _null(found, target)
    what = "equal" if isinstance(outside, str) else "those from outside"
    widest = None if null is None else np.abs(null).max(axis=1)
    held = shares_against(widest, value, found.resampling, what)
    drawn = None if found.boot is None else found.boot - target
    ends: Ends = no_ends if drawn is None else LargestGap(drawn)
    parts = [
        _part(found, index, target, drawn, null, what, shares.reason)
        for index in range(len(classes))
    ]
    return make_estimate(
        metric="share_gap",
        value=value,
        n=shares.n,
        method=method_of(found).replace("draws", "draws, simultaneous over classes,", 1),
        params={
            **shares.params,
            "outside": dict(zip(classes, [round(one, 12) for one in target.tolist()], strict=True)),
        },
        **held.fields(shares.reason or "no resampling was asked for"),
        by=parts_to_table(parts),
        excluded=shares.excluded,
        unit=shares.unit,
        reason=shares.reason,
        ends=ends,
    )


def _target(classes: tuple[str, ...], outside: Mapping[str, float] | str) -> Floats:
    if isinstance(outside, str):
        if outside != "uniform":
            raise InputError(f"outside: {outside!r}; expected 'uniform' or a number for each class")
        return np.full(len(classes), 1.0 / len(classes))
    if missing := [one for one in classes if one not in outside]:
        raise InputError(f"outside: none for class {missing[0]!r}; expected one for each")
    numbers = np.array([float(outside[one]) for one in classes])
    if not (np.isfinite(numbers).all() and (numbers >= 0).all() and numbers.sum() > 0):
        raise InputError(
            f"outside: {numbers.tolist()}; expected shares or counts, at least 0 and not all 0"
        )
    return np.asarray(numbers / numbers.sum())


def _null(found: Shares, target: Floats) -> Floats | None:
    if found.null is None or found.resampling is None:
        return None
    draws = found.classified.under(target, null_draws(found.resampling, MOST_DRAWS), found.seed)
    return np.asarray(draws - target)


def _part(
    found: Shares,
    index: int,
    target: Floats,
    drawn: Floats | None,
    null: Floats | None,
    what: str,
    reason: str,
) -> Part:
    name = found.classified.classes[index]
    level = level_of(found.resampling)
    value = float(found.observed[index] - target[index])
    ends = ends_of(drawn, index)
    low, high = ends(level)
    of_class = None if null is None else null[:, index]
    held = shares_against(of_class, value, found.resampling, what, "either")
    share = float(found.observed[index])
    used = int(found.classified.said.sum())
    return number(
        "share_difference",
        value,
        subject=name,
        ends=ends,
        level=level,
        held=held,
        n=used,
        by_group=(
            GroupValue(name, (name,), used, share, low + target[index], high + target[index]),
        ),
        reason=reason,
        shows="share",
    )

"""What people say of images: error rates by group, and how well a detector agrees with them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.estimate import Ends, Estimate, no_ends
from equipoise.core.finding import GroupValue
from equipoise.core.groups import Groups
from equipoise.core.labels import encode
from equipoise.core.parts import Part, parts_to_table
from equipoise.metrics.building import number
from equipoise.metrics.counts.parity import demographic_parity
from equipoise.metrics.measure import DEFAULT, NO_INTERVAL
from equipoise.metrics.spec import POINTS, MetricSpec, make_estimate, register
from equipoise.stats.intervals import percentile, wilson
from equipoise.stats.resampling import Bootstrap, Resampling, level_of
from equipoise.stats.streams import unit_counts, unit_keys

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

SPREAD = "resampling spread"


@dataclass(frozen=True, eq=False)
class Units:
    """Rows that are resampled together.

    Attributes
    ----------
    codes : ndarray of int, shape (n,)
    names : sequence of str
    given : bool
        Whether units were named; otherwise every row is one.
    """

    codes: Indices
    names: Sequence[str]
    given: bool

    @classmethod
    def of(cls, units: Any, count: int) -> Units:
        """Return the units of `count` rows; a row without a unit is one by itself.

        Raises
        ------
        InputError
            When there is not one unit per row.
        """
        if units is None:
            return cls(np.arange(count), [f"row {place}" for place in range(count)], given=False)
        codes, names = encode(units, what="units")
        if len(codes) != count:
            raise InputError(f"units: {len(codes)} rows; expected {count}")
        alone = np.flatnonzero(codes < 0)
        found = codes.astype(np.int64)
        found[alone] = len(names) + np.arange(len(alone))
        return cls(found, [*names, *(f"row {place}" for place in alone.tolist())], given=True)

    @property
    def name(self) -> str:
        """What is resampled, in a word."""
        return "unit" if self.given else "row"

    def times(self, resampling: Bootstrap, seed: int) -> npt.NDArray[np.int64]:
        """Return how often each unit counts in each replicate, (replicates, units)."""
        return unit_counts(seed, unit_keys(self.names), range(resampling.replicates))

    def sums(self, values: Floats) -> Floats:
        """Return the sum of a number per row over each unit, shape (units,)."""
        found = np.bincount(self.codes, weights=values, minlength=len(self.names))
        return found.astype(np.float64)


@dataclass(frozen=True, eq=False)
class ShareEnds:
    """Interval of a share: Wilson's, and never narrower than that of resampled units.

    Attributes
    ----------
    hits, total : float
    replicates : ndarray or None
        Shares of resampled units.
    """

    hits: float
    total: float
    replicates: Floats | None = None

    def __call__(self, level: float) -> tuple[float, float]:
        """Return the lower and upper end; NaN without rows."""
        if not self.total:
            return math.nan, math.nan
        low, high = (float(one) for one in wilson(self.hits, self.total, level))
        if self.replicates is None:
            return low, high
        below, above, _ = percentile(self.replicates, level)
        return min(low, float(below)), max(high, float(above))


@dataclass(frozen=True, eq=False)
class MovedPercentile:
    """Percentiles of replicates whose mean was moved to the value, not below a least one."""

    replicates: Floats
    least: float

    @classmethod
    def around(cls, value: float, replicates: Floats, *, least: float) -> Ends:
        """Return the ends of replicates around a value; none of fewer than two."""
        known = replicates[np.isfinite(replicates)]
        return cls(known - known.mean() + value, least) if len(known) > 1 else no_ends

    def __call__(self, level: float) -> tuple[float, float]:
        """Return the lower and upper end."""
        low, high, _ = percentile(self.replicates, level)
        return max(self.least, float(low)), float(high)


def share_ends(
    hits: npt.NDArray[np.bool_],
    kept: npt.NDArray[np.bool_],
    units: Units,
    resampling: Resampling | None,
    seed: int,
) -> ShareEnds | None:
    """Return the interval of the share of `hits` among the rows that are `kept`."""
    if resampling is None:
        return None
    total, found = float(kept.sum()), float((hits & kept).sum())
    if not units.given or not isinstance(resampling, Bootstrap) or not total:
        return ShareEnds(found, total)
    # Units draw by their names, so those that are not asked for need not be drawn.
    present, codes = np.unique(units.codes[kept], return_inverse=True)
    here = Units(codes, [units.names[one] for one in present.tolist()], given=True)
    times = here.times(resampling, seed).astype(np.float64)
    numbers = np.stack([here.sums(hits[kept].astype(float)), here.sums(np.ones(int(total)))])
    drawn = np.einsum("ru,ku->kr", times, numbers)
    with np.errstate(invalid="ignore", divide="ignore"):
        return ShareEnds(found, total, drawn[0] / drawn[1])


def share_method(units: Units, resampling: Resampling | None) -> str:
    """Say how the interval of a share was made."""
    if resampling is None:
        return NO_INTERVAL
    if units.given and isinstance(resampling, Bootstrap):
        return f"Wilson, widened to the percentiles of {resampling.replicates} resamples of units"
    return "Wilson"


Bools = npt.NDArray[np.bool_]

GOOD = "good"
STATES = (GOOD, "attribute not discernible", "wrong attribute", "out of frame")
"""What people say of an image in Howard et al. 2024."""

ANY = "any error"
SHOWS = "share of images with an error"
REFERENCE = "Howard et al. 2024, SocialCounterfactuals (people's labels); Wilson 1927"


def label_errors(
    labels: Any,
    groups: Any,
    *,
    good: str = GOOD,
    units: Any = None,
    resampling: Resampling | None = DEFAULT,
    rng: int = 0,
) -> Estimate:
    """Largest difference between groups in how often people find an error in an image.

    Parameters
    ----------
    labels : array-like, shape (n,)
        What was said of each image, such as `STATES`; None, NaN and "" are missing, and counted.
    groups : array-like (n,), mapping, or Groups
        Such as the attributes that the images were to show.
    good : str
        The label without an error; all others are errors.
    units : array-like, shape (n,), optional
        What is resampled together, such as the counterfactual set or the labeller.
    resampling : Bootstrap, Permutation, Exact or None
        None gives the value alone.
    rng : int
        Seed.

    Returns
    -------
    Estimate
        In [0, 1], higher is worse: an error found more often in images of one group. Chance and
        p: groups are exchangeable over all labels. `.by` has "label_error_rate" (of all images,
        "any error" and each kind, with Wilson intervals) and "label_error_gap" of "any error" and
        each kind, with the rate of each group, its chance level and p.

    Raises
    ------
    InputError
        When lengths differ or nothing is labelled.

    References
    ----------
    Howard et al. 2024, SocialCounterfactuals.
    """
    codes, names = encode(labels, what="labels")
    if not (codes >= 0).any():
        raise InputError("labels: none is given; expected one or more images with a label")
    found = np.array([*names, None], dtype=object)[codes]
    wrong = (codes >= 0) & (found != good)
    either = np.array([good, ANY, None], dtype=object)[np.where(codes < 0, 2, wrong)]
    how: dict[str, Any] = {"units": units, "resampling": resampling, "rng": rng}
    whole, each = (
        demographic_parity(None, either, groups, **how),
        demographic_parity(None, found, groups, **how),
    )
    level = level_of(resampling)
    if not wrong.any():
        # Then all there is to compare is how often images are good: always.
        whole = replace(whole, by=parts_to_table([_none_of(one) for one in whole.parts]))
    gaps = _named(whole, ANY, level)
    gaps += [one for name in names if name != good for one in _named(each, name, level)]
    rates = [
        _rate(name, wrong if name == ANY else found == name, codes >= 0, how)
        for name in (ANY, *(name for name in names if name != good))
    ]
    return replace(
        whole,
        metric="label_error_gap",
        value=gaps[0].value,
        reference=REFERENCE,
        params={"good": good, "labels": [*names]},
        by=parts_to_table([*rates, *gaps]),
        reason=gaps[0].reason,
    )


def _none_of(part: Part) -> Part:
    """Return the shares of what is not there, from those of what all images are."""
    groups = tuple(
        replace(one, value=1.0 - one.value, low=1.0 - one.high, high=1.0 - one.low)
        for one in part.by_group
    )
    return replace(part, subject=ANY, by_group=groups)


def _named(estimate: Estimate, name: str, level: float) -> list[Part]:
    return [
        replace(
            one,
            metric="label_error_gap",
            shows=SHOWS,
            by_group=tuple(_widened(group, level) for group in one.by_group),
        )
        for one in estimate.parts
        if one.metric == estimate.metric and one.subject == name
    ]


def _widened(group: GroupValue, level: float) -> GroupValue:
    """Return a share with an interval not narrower than Wilson's, which resampled units may give.

    Where no label of a group is an error, none is in any resample.
    """
    if math.isnan(group.low) or not group.n:
        return group
    low, high = (float(one) for one in wilson(round(group.value * group.n), group.n, level))
    return replace(group, low=min(low, group.low), high=max(high, group.high))


def _rate(name: str, wrong: Bools, known: Bools, how: dict[str, Any]) -> Part:
    units = Units.of(how["units"], len(known))
    ends = share_ends(wrong, known, units, how["resampling"], how["rng"])
    value = float((wrong & known).sum() / known.sum())
    level, n = level_of(how["resampling"]), int(known.sum())
    return number("label_error_rate", value, subject=name, ends=ends or no_ends, level=level, n=n)


def detector_precision(
    detected: Any,
    shown: Any,
    *,
    groups: Any = None,
    units: Any = None,
    resampling: Resampling | None = DEFAULT,
    rng: int = 0,
) -> Estimate:
    """Share of the images in which an attribute is detected that show it to people.

    Parameters
    ----------
    detected : array-like of bool, shape (n,)
        Whether the detector finds the attribute that the image was to show.
    shown : array-like of bool, shape (n,)
        Whether people do.
    groups : array-like (n,), mapping, or Groups, optional
        Values of the attribute, each a part of its own.
    units : array-like, shape (n,), optional
        What is resampled together.
    resampling : Bootstrap, Permutation, Exact or None
        None gives the value alone.
    rng : int
        Seed.

    Returns
    -------
    Estimate
        In [0, 1], lower is worse: images are kept that do not show their attribute. Wilson's
        interval, widened to that of resampled units. No chance level. NaN where nothing is
        detected.

    Raises
    ------
    InputError
        When lengths differ or something is neither true nor false.
    """
    return _agreement("precision", detected, shown, groups, units, resampling, rng)


def detector_recall(
    detected: Any,
    shown: Any,
    *,
    groups: Any = None,
    units: Any = None,
    resampling: Resampling | None = DEFAULT,
    rng: int = 0,
) -> Estimate:
    """Share of the images that show an attribute to people in which it is detected.

    Parameters
    ----------
    detected, shown, groups, units, resampling, rng
        See `detector_precision`.

    Returns
    -------
    Estimate
        In [0, 1], lower is worse: good images are lost. See `detector_precision`.

    Raises
    ------
    InputError
        When lengths differ or something is neither true nor false.
    """
    return _agreement("recall", detected, shown, groups, units, resampling, rng)


def _agreement(
    what: Literal["precision", "recall"],
    detected: Any,
    shown: Any,
    groups: Any,
    units: Any,
    resampling: Resampling | None,
    rng: int,
) -> Estimate:
    found, seen = _truths(detected, "detected"), _truths(shown, "shown")
    if len(found) != len(seen):
        raise InputError(f"shown: {len(seen)} images; expected {len(found)}, as in detected")
    chosen, hits = (found, seen) if what == "precision" else (seen, found)
    owner, metric = Units.of(units, len(found)), f"detector_{what}"
    ends = share_ends(hits, chosen, owner, resampling, rng)
    total = int(chosen.sum())
    nothing = f"nothing is {'detected' if what == 'precision' else 'shown'}"
    parts = []
    if groups is not None:
        made = Groups.of(groups)
        if len(made.codes) != len(found):
            raise InputError(f"groups: {len(made.codes)} images; expected {len(found)}")
        for code, name in enumerate(made.names):
            own = chosen & (made.codes == code)
            spread: Ends = share_ends(hits, own, owner, resampling, rng) or no_ends
            n = int(own.sum())
            value = float((hits & own).sum() / n) if n else math.nan
            reason = "" if n else nothing
            level = level_of(resampling)
            parts.append(
                number(metric, value, subject=name, ends=spread, level=level, n=n, reason=reason)
            )
    return make_estimate(
        metric=metric,
        value=float((hits & chosen).sum() / total) if total else math.nan,
        n={"images": total},
        method=share_method(owner, resampling),
        no_chance="none: it is held against people's labels, not against other groups",
        by=parts_to_table(parts) if parts else None,
        excluded={f"images in which {nothing}": len(found) - total} if total < len(found) else {},
        unit=owner.name,
        reason="" if total else nothing,
        ends=ends or no_ends,
    )


def _truths(given: Any, what: str) -> Bools:
    found = np.asarray(given)
    if found.ndim != 1 or (found.dtype != bool and not np.isin(found, (0, 1)).all()):
        raise InputError(f"{what}: expected one true or false (1 or 0) per image")
    return found.astype(bool)


_label = partial(
    MetricSpec,
    kinds=("counterfactuals", "generation"),
    unit="share",
    reference=REFERENCE,
    interval="Wilson, or wider over resampled units",
    chance="none: it compares no groups",
)
register(
    _label(
        name="label_error_gap",
        title="Gap of errors that people see",
        unit="points",
        groups_harm="higher",
        definition=(
            "Largest minus smallest share over groups of the images whose label by people is not "
            '"good"; and of each kind of error.'
        ),
        threshold=0.05,
        threshold_reason=POINTS,
        direction="Higher: one group's images are wrong more often.",
        chance="above 0, more so for few labels",
        interval="simultaneous over pairs of groups",
        null="groups are exchangeable over all labelled images, or between units",
        parameters={"good": "the label without an error", "units": "images resampled together"},
    )
)
register(
    _label(
        name="label_error_rate",
        title="Errors that people see",
        definition=(
            'Share of the labelled images whose label is not "good", or is one kind of error.'
        ),
        direction="Higher: more images are wrong.",
    )
)
register(
    _label(
        name="detector_precision",
        title="Precision of the attribute detector",
        harm="lower",
        definition="Share of the images with a detected attribute that show it to people.",
        direction="Lower: more kept images lack their attribute.",
    )
)
register(
    _label(
        name="detector_recall",
        title="Recall of the attribute detector",
        harm="lower",
        definition=(
            "Share of the images that show their attribute to people in which it is detected."
        ),
        direction="Lower: more good images are lost.",
    )
)

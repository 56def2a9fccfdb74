"""What people say of images: error rates by group, and how well a detector agrees with them."""

from __future__ import annotations

import math
from dataclasses import replace
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
from equipoise.metrics.measure import DEFAULT
from equipoise.metrics.parity import demographic_parity
from equipoise.metrics.quality.resampled import Units, share_ends, share_method
from equipoise.metrics.spec import POINTS, MetricSpec, make_estimate, register
from equipoise.stats.intervals import wilson
from equipoise.stats.resampling import Resampling

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
        demographic_parity(either, groups, **how),
        demographic_parity(found, groups, **how),
    )
    level = _level(resampling)
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
    low, high = (math.nan, math.nan) if ends is None else ends(_level(how["resampling"]))
    value = float((wrong & known).sum() / known.sum())
    return Part("label_error_rate", name, value, low, high, n=int(known.sum()))


def _level(resampling: Resampling | None) -> float:
    return 0.95 if resampling is None else resampling.level


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
            low, high = spread(_level(resampling))
            n = int(own.sum())
            value = float((hits & own).sum() / n) if n else math.nan
            reason = "" if n else nothing
            parts.append(Part(metric, name, value, low, high, n=n, reason=reason))
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

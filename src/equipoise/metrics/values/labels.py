"""People's labels of images: error rates by group, and how well a detector agrees with them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from equipoise.core.arrays import Booleans, Floats
from equipoise.core.errors import InputError
from equipoise.core.estimate import Estimate
from equipoise.core.finding import GroupValue
from equipoise.core.groups import Groups
from equipoise.core.labels import encode
from equipoise.core.parts import Part, parts_to_table
from equipoise.metrics.building import number
from equipoise.metrics.counts.rates import demographic_parity
from equipoise.metrics.measure import DEFAULT, NO_INTERVAL
from equipoise.metrics.spec import POINTS, MetricSpec, make_estimate, register
from equipoise.metrics.values.units import Units
from equipoise.stats.intervals import percentile, wilson
from equipoise.stats.resampling import Bootstrap, Resampling, level_of
from equipoise.stats.streams import Seed

GOOD = "good"
STATES = (GOOD, "attribute not discernible", "wrong attribute", "out of frame")
"""People's labels in Howard et al. 2024."""

ANY = "any error"
SHOWS = "share of images with an error"
REFERENCE = "Howard et al. 2024, SocialCounterfactuals (people's labels); Wilson 1927"


@dataclass(frozen=True, eq=False)
class Share:
    """Share of hits among some rows.

    Attributes
    ----------
    hits, total : int
    resampling : Bootstrap, Permutation or None
        None: there is no interval.
    replicates : ndarray, optional
        Shares of resampled units; None: rows are independent.
    """

    hits: int
    total: int
    resampling: Resampling | None = DEFAULT
    replicates: Floats | None = None

    @classmethod
    def of(
        cls, hits: Booleans, kept: Booleans, units: Units, resampling: Resampling | None, seed: Seed
    ) -> Share:
        """Count the hits among the rows that are kept, and resample units."""
        found = int((hits & kept).sum()), int(kept.sum())
        if not units.named or not isinstance(resampling, Bootstrap) or not found[1]:
            return cls(*found, resampling)
        # Units draw by their names, so only those of the rows need be drawn.
        present, codes = np.unique(units.codes[kept], return_inverse=True)
        here = Units(codes, [units.names[one] for one in present.tolist()])
        sums = [np.bincount(codes, hits[kept]), np.bincount(codes)]
        drawn = np.einsum("ru,ku->kr", here.times(resampling.replicates, seed), np.stack(sums))
        with np.errstate(invalid="ignore", divide="ignore"):
            return cls(*found, resampling, drawn[0] / drawn[1])

    @property
    def value(self) -> float:
        """The share; NaN of no rows."""
        return self.hits / self.total if self.total else math.nan

    def __call__(self, level: float) -> tuple[float, float]:
        """Return the ends: Wilson's, and never narrower than those of resampled units."""
        if not self.total or self.resampling is None:
            return math.nan, math.nan
        low, high = (float(one) for one in wilson(self.hits, self.total, level))
        if self.replicates is None:
            return low, high
        below, above = percentile(self.replicates, level)
        return min(low, float(below)), max(high, float(above))

    def part(self, metric: str, subject: str, **columns: Any) -> Part:
        """Return the share as a part."""
        return number(
            metric,
            self.value,
            subject=subject,
            ends=self,
            level=level_of(self.resampling),
            n=self.total,
            **columns,
        )


def share_method(units: Units, resampling: Resampling | None) -> str:
    """Say how the interval of a share was made."""
    if resampling is None:
        return NO_INTERVAL
    if units.named and isinstance(resampling, Bootstrap):
        return f"Wilson, widened to the percentiles of {resampling.replicates} resamples of units"
    return "Wilson"


def label_errors(
    labels: Any,
    groups: Any,
    *,
    good: str = GOOD,
    units: Any = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
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
    resampling : Bootstrap, Permutation or None
        None gives the value alone.
    rng : int or Generator
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
    known = codes >= 0
    if not known.any():
        raise InputError("labels: none is given; expected one or more images with a label")
    found = np.array([*names, None], dtype=object)[codes]
    wrong = known & (found != good)
    either = np.array([good, ANY, None], dtype=object)[np.where(known, wrong, 2)]
    # As images that are ranked.
    compared = Groups.of(groups, min_size=1)
    whole, each = (
        demographic_parity(None, one, compared, units=units, resampling=resampling, rng=rng)
        for one in (either, found)
    )
    gaps = {one.subject: one for one in (*each.parts, *whole.parts) if one.metric == whole.metric}
    if not wrong.any():
        # All there is to compare is how often images are good: always.
        mirrored = (
            replace(group, value=0.0, low=1.0 - group.high, high=1.0 - group.low)
            for group in gaps[good].by_group
        )
        gaps[ANY] = replace(gaps[good], by_group=tuple(mirrored))
    owner, rates, shown = Units.of(units, len(codes)), [], []
    for name in (ANY, *(name for name in names if name != good)):
        hits = wrong if name == ANY else found == name
        rate = Share.of(hits, known, owner, resampling, rng)
        rates.append(rate.part("label_error_rate", name))
        if name in gaps:
            own = replace(gaps[name], metric="label_error_gap", subject=name, shows=SHOWS)
            by_group = tuple(_widened(group, resampling) for group in own.by_group)
            shown.append(replace(own, by_group=by_group))
    return replace(
        whole,
        metric="label_error_gap",
        value=shown[0].value,
        reference=REFERENCE,
        params={"good": good, "labels": [*names]},
        by=parts_to_table([*rates, *shown]),
        reason=shown[0].reason,
    )


def _widened(group: GroupValue, resampling: Resampling | None) -> GroupValue:
    """Return a share with an interval not narrower than Wilson's, which resampled units may give.

    Where no label of a group is an error, none is in any resample.
    """
    if math.isnan(group.low) or not group.n:
        return group
    low, high = Share(round(group.value * group.n), group.n)(level_of(resampling))
    return replace(group, low=min(low, group.low), high=max(high, group.high))


def detector_precision(
    detected: Any,
    shown: Any,
    *,
    groups: Any = None,
    units: Any = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
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
    resampling : Bootstrap, Permutation or None
        None gives the value alone.
    rng : int or Generator
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
    return _agreement("detector_precision", shown, detected, groups, units, resampling, rng)


def detector_recall(
    detected: Any,
    shown: Any,
    *,
    groups: Any = None,
    units: Any = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
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
    return _agreement("detector_recall", detected, shown, groups, units, resampling, rng)


def _agreement(
    metric: str,
    hits: Any,
    chosen: Any,
    groups: Any,
    units: Any,
    resampling: Resampling | None,
    rng: Seed,
) -> Estimate:
    hits, chosen = np.asarray(hits), np.asarray(chosen)
    n = len(chosen)
    if hits.shape != (n,) or chosen.shape != (n,) or not np.isin([hits, chosen], (0, 1)).all():
        raise InputError("detected and shown: expected one true or false (1 or 0) per image")
    hits, chosen = hits.astype(bool), chosen.astype(bool)
    owner = Units.of(units, n)
    share = Share.of(hits, chosen, owner, resampling, rng)
    nothing = f"nothing is {'detected' if metric == 'detector_precision' else 'shown'}"
    parts = []
    if groups is not None:
        made = Groups.of(groups)
        if len(made.codes) != n:
            raise InputError(f"groups: {len(made.codes)} images; expected {n}")
        for code, name in enumerate(made.names):
            own = Share.of(hits, chosen & (made.codes == code), owner, resampling, rng)
            parts.append(own.part(metric, name, reason="" if own.total else nothing))
    return make_estimate(
        metric=metric,
        value=share.value,
        n={"images": share.total},
        method=share_method(owner, resampling),
        no_chance="none: it is held against people's labels, not against other groups",
        by=parts_to_table(parts) if parts else None,
        excluded={f"images in which {nothing}": n - share.total},
        unit=owner.name,
        reason="" if share.total else nothing,
        ends=share,
    )


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
    ),
    _label(
        name="label_error_rate",
        title="Errors that people see",
        definition=(
            'Share of the labelled images whose label is not "good", or is one kind of error.'
        ),
        direction="Higher: more images are wrong.",
    ),
    _label(
        name="detector_precision",
        title="Precision of the attribute detector",
        harm="lower",
        definition="Share of the images with a detected attribute that show it to people.",
        direction="Lower: more kept images lack their attribute.",
    ),
    _label(
        name="detector_recall",
        title="Recall of the attribute detector",
        harm="lower",
        definition=(
            "Share of the images that show their attribute to people in which it is detected."
        ),
        direction="Lower: more good images are lost.",
    ),
)

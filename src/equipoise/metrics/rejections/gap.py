"""Whether a check rejects images of one group more than those of another."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from equipoise.core.errors import InputError
from equipoise.core.estimate import Estimate, no_ends
from equipoise.core.finding import Excluded, GroupValue
from equipoise.core.parts import Part, parts_to_table
from equipoise.metrics.building import against_chance, excluded_of, part
from equipoise.metrics.gaps import Known
from equipoise.metrics.measure import DEFAULT, NO_INTERVAL
from equipoise.metrics.rejections.drawn import Ends, Rejections, group_ends
from equipoise.metrics.rejections.rows import checked
from equipoise.metrics.spec import POINTS, MetricSpec, make_estimate, register
from equipoise.stats.resampling import Exact, Resampling

_METRIC, _SHARE = "rejection_gap", "rejected_share"


def rejection_gap(
    rejected: Any,
    groups: Any,
    *,
    checks: Any = None,
    sets: Any = None,
    clusters: Any = None,
    strata: Any = None,
    resampling: Resampling | None = DEFAULT,
    rng: int = 0,
) -> Estimate:
    """Largest difference between groups in the share of images that a check rejects.

    Parameters
    ----------
    rejected : array-like of bool or int, shape (n,)
        Whether the check rejected each image for what it shows itself, or how many of several
        checks did. NaN where it was not checked.
    groups : array-like (n,), mapping of str to array-like (n,), or Groups
    checks : array-like of int, shape (n,), optional
        Checks made of each image, such as comparisons with other images; 1 unless given.
    sets : array-like (n,), optional
        Images that differ in their groups alone, all else alike: they exchange their groups. A
        set of one group exchanges with others of one. An image without one stands alone.
    clusters : array-like (n,), optional
        What is resampled together, such as all sets of one caption; the sets unless given.
    strata : array-like (n,), optional
        Kinds of sets, such as the pair of attributes that varies in them: each has a part.
    resampling : Bootstrap, Permutation or None
        None gives the value alone.
    rng : int
        Seed.

    Returns
    -------
    Estimate
        In [0, 1], higher is worse. `.by` has the gap of each stratum with every group's share
        ("rejection_gap"), and each group's share with the band it has when groups are
        exchangeable ("rejected_share"); subject "" over all strata. A set that is rejected as a
        whole takes its images of every group along: give what images fail themselves.

    Raises
    ------
    InputError
        When lengths differ, a count is not from 0 to `checks`, no image has a group, or
        `resampling` is Exact.

    References
    ----------
    Howard et al. 2024, SocialCounterfactuals, section 3.3.
    """
    if isinstance(resampling, Exact):
        raise InputError("resampling=Exact: not available for rejections; use Permutation()")
    rows = checked(rejected, groups, checks=checks, sets=sets, clusters=clusters, strata=strata)
    if not len(rows.unit):
        raise InputError("rejected: no image was checked and has a group; expected at least one")
    drawn = Rejections(rows, resampling, rng)
    whole = drawn.draws(None)
    against = against_chance(whole, 0, "higher")
    value = float(whole.observed[0])
    return make_estimate(
        metric=_METRIC,
        value=value,
        n=dict(zip(rows.groups.names, drawn.sizes(None).tolist(), strict=True)),
        method=_method(drawn),
        params={"strata": list(rows.strata), "sets": len(np.unique(rows.unit))},
        chance=against.chance,
        no_chance="" if against.chance else _no_chance(drawn, value),
        p_value=against.p_value,
        null=against.null,
        by=lambda: parts_to_table(_parts(drawn)),
        excluded=excluded_of(rows.groups, rows.excluded),
        unit="cluster" if clusters is not None else "set" if sets is not None else "image",
        reason=_why(value),
        ends=_ends(drawn, None) or no_ends,
    )


def _method(drawn: Rejections) -> str:
    if drawn.resampling is None:
        return NO_INTERVAL
    if drawn.boot is None:
        return "none: use Bootstrap()"
    return (
        f"simultaneous over pairs of groups, bootstrap over clusters, {len(drawn.boot)} "
        "replicates; never inside the interval of as many independent images"
    )


def _no_chance(drawn: Rejections, value: float) -> str:
    if math.isnan(value):
        return "not estimable"
    return "no resampling was asked for" if drawn.resampling is None else "nothing to exchange"


def _why(value: float) -> str:
    return "fewer than two groups have images enough" if math.isnan(value) else ""


def _successes(drawn: Rejections, stratum: int | None) -> tuple[Any, Any]:
    """Return rejected images and images of each group; several checks of an image count as one."""
    totals = drawn.totals.sum(axis=0) if stratum is None else drawn.totals[stratum]
    images = drawn.sizes(stratum).astype(np.float64)
    share = totals[:, 0] / np.maximum(totals[:, 1], 1)
    return share * images, images


def _ends(drawn: Rejections, stratum: int | None) -> Ends | None:
    boot = drawn.draws(stratum).boot
    if boot is None:
        return None
    compared = drawn.compared(stratum)
    successes, images = _successes(drawn, stratum)
    return Ends(boot[:, 1:][:, compared], successes[compared], images[compared])


def _parts(drawn: Rejections) -> Iterator[Part]:
    several = len(drawn.rows.strata) > 1
    for stratum in (None, *(range(len(drawn.rows.strata)) if several else ())):
        yield from _of(drawn, stratum)


def _of(drawn: Rejections, stratum: int | None) -> Iterator[Part]:
    subject = "" if stratum is None else drawn.rows.strata[stratum]
    draws, groups = drawn.draws(stratum), _by_group(drawn, stratum)
    yield part(
        _METRIC,
        subject,
        draws,
        0,
        ends=_ends(drawn, stratum) or no_ends,
        against=against_chance(draws, 0, "higher"),
        n=int(drawn.sizes(stratum)[drawn.compared(stratum)].sum()),
        by_group=groups,
        excluded=_absent(drawn, stratum),
        reason=_why(float(draws.observed[0])),
    )
    for place, one in enumerate(groups):
        if one.n:
            yield part(
                _SHARE,
                subject,
                draws,
                1 + place,
                ends=Known(one.low, one.high),
                against=against_chance(draws, 1 + place, "either"),
                n=one.n,
                by_group=(one,),
            )


def _absent(drawn: Rejections, stratum: int | None) -> tuple[Excluded, ...]:
    absent = int((drawn.sizes(stratum) == 0).sum())
    return (Excluded("groups without images", absent),) if absent else ()


def _by_group(drawn: Rejections, stratum: int | None) -> tuple[GroupValue, ...]:
    draws, groups = drawn.draws(stratum), drawn.rows.groups
    successes, images = _successes(drawn, stratum)
    shares = draws.observed[1:]
    low = high = np.full(len(groups), math.nan)
    if draws.boot is not None:
        low, high = group_ends(draws.boot[:, 1:], successes, images, draws.level)
    enough = drawn.compared(stratum)
    return tuple(
        GroupValue(name, levels, n, value, lo, hi, note)
        for name, levels, n, value, lo, hi, note in zip(
            groups.names,
            groups.levels,
            images.astype(int).tolist(),
            shares.tolist(),
            low.tolist(),
            high.tolist(),
            [_note(n, bool(ok), groups.min_size) for n, ok in zip(images, enough, strict=True)],
            strict=True,
        )
    )


def _note(images: float, enough: bool, least: int) -> str:
    return "no images" if images == 0 else "" if enough else f"fewer than {least} images"


_rejected = partial(
    MetricSpec,
    kinds=("generation",),
    unit="share",
    reference=(
        "Howard et al. 2024, SocialCounterfactuals, section 3.3 (filters); Phipson & Smyth 2010 "
        "(permutation)"
    ),
)
register(
    _rejected(
        name="rejection_gap",
        title="Rejection gap",
        unit="points",
        groups_harm="higher",
        definition=(
            "Largest minus smallest share over groups of the images that a check rejects for their "
            "own content; of several checks of an image, of the checks."
        ),
        threshold=0.05,
        threshold_reason=POINTS,
        direction="Higher: the check rejects one group's images more often.",
        chance="above 0, more so for few images",
        interval="bootstrap over clusters, simultaneous over pairs of groups",
        null="groups are exchangeable within each set; sets of one group with each other",
        parameters={
            "sets": "images that differ in their groups alone",
            "clusters": "images resampled together",
            "checks": "checks of each image",
            "strata": "kinds of sets",
        },
    )
)
register(
    _rejected(
        name="rejected_share",
        title="Share rejected",
        definition="Share of a group's images that a check rejects for their own content.",
        direction="Higher: more images of the group are rejected.",
        chance="the share when images of a set exchange their groups",
        interval="percentile bootstrap over clusters, never inside Wilson's",
        null="that of the rejection gap, which is tested",
    )
)
register(
    _rejected(
        name="kept_share",
        title="Share of sets kept",
        harm="lower",
        definition=(
            "Share of the requested sets that pass every filter. A rejected set takes its images "
            "of every group along."
        ),
        direction="Lower: more is generated for each set kept.",
        chance="none: a set belongs to no group",
        interval="Wilson; over ten or more caption sets, resampled",
        reference="Howard et al. 2024, SocialCounterfactuals, Table 11",
    )
)
register(
    _rejected(
        name="threshold_accuracy",
        title="Accuracy of a learned threshold",
        harm="lower",
        definition=(
            "Share of people's labels of sets that a detection threshold agrees with, chosen by "
            "the labels of other caption sets."
        ),
        direction="Lower: the filter disagrees with people more often.",
        chance="none: compare the share of the more frequent label, among the parameters",
        interval="Wilson, with as many trials as caption sets",
        reference="Howard et al. 2024, section 8.4",
    )
)

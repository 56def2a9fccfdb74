"""Whether the share of maps inside a region differs between groups."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from equipoise.core.errors import InputError
from equipoise.core.estimate import Estimate
from equipoise.core.groups import Groups
from equipoise.core.parts import Part, parts_to_table
from equipoise.metrics.activation.share import REFERENCE, Regions
from equipoise.metrics.measure import DEFAULT
from equipoise.metrics.similarity.gap import similarity_gap
from equipoise.metrics.spec import POINTS, MetricSpec, register
from equipoise.stats.resampling import Exact, Resampling


def activation_share_gap(
    maps: Any,
    boxes: Any,
    groups: Any,
    *,
    beyond_area: bool = False,
    units: Any = None,
    resampling: Resampling | None = DEFAULT,
    rng: int = 0,
) -> Estimate:
    """Largest difference between groups in the mean share of maps inside a region.

    Parameters
    ----------
    maps, boxes, groups, units
        See `equipoise.metrics.activation_share`.
    beyond_area : bool
        Take from each share that of the image which the box takes: where regions of one group are
        larger, more of any map lies inside them.
    resampling : Bootstrap, Permutation or None
        None gives the value alone.
    rng : int
        Seed.

    Returns
    -------
    Estimate
        In [0, 1] (with `beyond_area` [0, 2]), higher: the model looks at the region in some groups
        more than in others. Interval: simultaneous intervals of all pairs of groups over images or
        units. Chance and p: images (units) exchange their groups. `.by` has the value with the
        mean of each group.

    Raises
    ------
    InputError
        As `equipoise.metrics.activation_share`; or fewer than two images have a share.

    References
    ----------
    Mandal 2024, chapters 4 and 5; Hothorn, Bretz & Westfall 2008 (simultaneous intervals).
    """
    if isinstance(resampling, Exact):
        raise InputError("resampling=Exact: not available for maps; use Permutation()")
    regions, found, given = Regions.of(maps, boxes), Groups.of(groups), len(np.asarray(boxes))
    if len(found.codes) != given:
        raise InputError(f"groups: {len(found.codes)} labels for {given} maps; expected one each")
    if len(regions) < 2:
        raise InputError(
            "fewer than two images have a region and a map; there is nothing to compare"
        )
    values = regions.shares - (regions.areas if beyond_area else 0.0)
    kept = found.take(regions.rows)
    of_rows = None if units is None else [units[row] for row in regions.rows.tolist()]
    gap = similarity_gap(values, kept, clusters=of_rows, resampling=resampling, rng=rng)
    part = _part(gap, values, kept, beyond_area=beyond_area)
    return replace(
        gap,
        metric=part.metric,
        reference=f"{REFERENCE}; Hothorn, Bretz & Westfall 2008 (simultaneous intervals)",
        params={"beyond_area": beyond_area},
        by=parts_to_table([part]),
        excluded={**regions.dropped, **gap.excluded},
        unit="image" if units is None else "unit",
    )


def _part(gap: Estimate, values: Any, groups: Groups, *, beyond_area: bool) -> Part:
    """Return the gap with each group's own mean in place of how far it is from the average."""
    first = next(one for one in gap.parts if one.metric == gap.metric)
    means = {
        name: float(np.sort(values[groups.codes == code]).mean())
        for code, name in enumerate(groups.names)
        if (groups.codes == code).any()
    }
    by_group = []
    for one in first.by_group:
        shift = means.get(one.group, np.nan) - one.value
        by_group.append(
            replace(one, value=one.value + shift, low=one.low + shift, high=one.high + shift)
        )
    return replace(
        first,
        metric="activation_share_gap",
        by_group=tuple(by_group),
        shows="share of the map beyond the area's" if beyond_area else "share of the map",
    )


register(
    MetricSpec(
        name="activation_share_gap",
        title="Gap in the share of the map",
        kinds=("activations",),
        range="[0, 1], beyond the area [0, 2]",
        unit="points",
        group_label="share of the map",
        definition="Largest difference between groups in the mean share of a map inside a region.",
        threshold=0.05,
        threshold_reason=POINTS,
        direction="Higher: the model looks at the region more in some groups than in others.",
        chance="above 0, more so for small groups",
        interval="bootstrap over images or units, simultaneous over pairs of groups",
        null="groups are exchangeable over all images, or between units that have one group",
        parameters={"beyond_area": "subtract the region's area: False"},
        reference=f"{REFERENCE}; Hothorn, Bretz & Westfall 2008 (simultaneous intervals)",
    )
)

"""Share of activation maps inside a region: against maps of other images, and by group."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from equipoise.core import (
    Aggregate,
    AnyArray,
    Booleans,
    Chance,
    Estimate,
    Floats,
    GroupLabels,
    Groups,
    GroupValue,
    InputError,
    Integers,
    Labels,
    NullHypothesis,
    Part,
    floats,
    integers,
    no_ends,
    record,
    tally,
    unwarned,
)
from equipoise.core.arguments import check_lengths, real_numbers
from equipoise.metrics.building import (
    bootstrap_method,
    compare_with_chance,
    ends_of,
    explain_undefined,
    group_part,
    rows_of_replicates,
    sizes,
)
from equipoise.metrics.labels import fill_labels, name_unit
from equipoise.metrics.labels.comparisons import OTHERS
from equipoise.metrics.measure import DEFAULT, Draws
from equipoise.metrics.rankings.similarity import similarity_gap
from equipoise.metrics.registry import metric
from equipoise.metrics.spec import ANY_NUMBER, POINTS, MetricSpec, make_estimate
from equipoise.stats import Bootstrap, Resampling
from equipoise.stats.chance import sign_flips
from equipoise.stats.intervals import ClosedForm, mean_t
from equipoise.stats.streams import Seed, stream, unit_keys, unit_times

REFERENCE = "Selvaraju et al. 2017 (Grad-CAM); Mandal 2024, chapters 4 and 5"
_INTERVALS = "Hothorn, Bretz & Westfall 2008 (simultaneous intervals)"
_SIGNS = "the two regions of an image exchange their names: signs of differences are flipped"
_NULL = "maps don't depend on the image: maps are exchanged between images"
_NOTHING = "no image with a region and a map"
_ROWS_AT_ONCE = 1024
_share = partial(MetricSpec, kinds=("activations",), unit="share", reference=REFERENCE)


Place = tuple[Integers, Floats]
"""Cell of an edge of each box, and how far into it."""


@record
class Regions:
    """Maps of n images and a box on each.

    Attributes
    ----------
    cumulated : ndarray of float64, shape (n, rows + 1, columns + 1)
        Sums of each map above and left of every corner of its cells; 1 in the last.
    boxes : ndarray of float64, shape (n, 4)
        Left, top, right, bottom, from 0 to 1.
    rows : ndarray of int64, shape (n,)
        Images with a box, and a map that is not 0 everywhere, among the ones given.
    dropped : mapping of str to int
        Images without, by reason.
    """

    cumulated: Floats
    boxes: Floats
    rows: Integers
    dropped: dict[str, int]

    @classmethod
    def of(cls, maps: ArrayLike, boxes: ArrayLike) -> Regions:
        """Check maps and boxes, and cut boxes at the edge of the map.

        Raises
        ------
        InputError
            When a map is negative or not finite, a box ends before it begins, or lengths differ.
        """
        cells, edges = real_numbers(maps, "maps", 3), real_numbers(boxes, "boxes", 2)
        if 0 in cells.shape[1:]:
            raise InputError(f"maps: shape {cells.shape}; expected (n, rows, columns)")
        bad = ~(np.isfinite(cells) & (cells >= 0.0)).all(axis=(1, 2))
        if bad.any():
            raise InputError(f"maps: map {int(bad.argmax())} is negative or not finite somewhere")
        if edges.shape != (len(cells), 4):
            raise InputError(
                f"boxes: shape {edges.shape} for {len(cells)} maps; expected (n, 4): left, top, "
                "right, bottom, as shares of the map's width and height"
            )
        no_box = np.asarray(np.isnan(edges).any(axis=1))
        wrong = ~no_box & (edges[:, 2:] <= edges[:, :2]).any(axis=1)
        if wrong.any():
            raise InputError(
                f"boxes: box {int(wrong.argmax())} ends before it begins; expected left < right "
                "and top < bottom"
            )
        inside = np.clip(np.where(no_box[:, None], 0.0, edges), 0.0, 1.0)
        outside = ~no_box & (inside[:, 2:] <= inside[:, :2]).any(axis=1)
        empty = ~no_box & ~outside & (cells.reshape(len(cells), -1).sum(axis=1) == 0.0)
        reasons = {"no region": no_box, "region outside the map": outside, "no activation": empty}
        rows = np.flatnonzero(~no_box & ~outside & ~empty)
        usable_maps = cells[rows]
        sums = np.zeros((len(usable_maps), usable_maps.shape[1] + 1, usable_maps.shape[2] + 1))
        sums[:, 1:, 1:] = usable_maps.cumsum(axis=1).cumsum(axis=2)
        dropped = {reason: int(mask.sum()) for reason, mask in reasons.items() if mask.any()}
        return cls(sums / sums[:, -1:, -1:].copy(), inside[rows], rows, dropped)

    def __len__(self) -> int:
        """Return the number of images with a share."""
        return len(self.rows)

    @cached_property
    def shares(self) -> Floats:
        """Share of each map inside its box, from 0 to 1; shape (n,)."""
        return self.exchanged(np.arange(len(self)))

    @property
    def areas(self) -> Floats:
        """Share of the image inside each box; shape (n,)."""
        return floats((self.boxes[:, 2:] - self.boxes[:, :2]).prod(axis=1))

    def exchanged(self, owners: Integers) -> Floats:
        """Return shares with the maps of other images, (n,).

        Parameters
        ----------
        owners : ndarray of int64, shape (n,)
            Whose map lies under each box.
        """
        lefts, tops, rights, bottoms = self._places

        def before(y: Place, x: Place) -> Floats:
            """Return the sum of each map above and left of a point, interpolated."""
            (row, down), (column, across) = y, x
            right = column + 1
            above = self.cumulated[owners, row, column] * (1 - across)
            above += self.cumulated[owners, row, right] * across
            below = self.cumulated[owners, row + 1, column] * (1 - across)
            below += self.cumulated[owners, row + 1, right] * across
            return above * (1 - down) + below * down

        corner_sums = before(bottoms, rights) - before(tops, rights) - before(bottoms, lefts)
        return np.clip(corner_sums + before(tops, lefts), 0.0, 1.0)

    @cached_property
    def _places(self) -> list[Place]:
        """Cell of each edge of each box, and how far into it: left, top, right, bottom."""
        rows, columns = (size - 1 for size in self.cumulated.shape[1:])
        places = []
        for edge, size in enumerate((columns, rows, columns, rows)):
            at = self.boxes[:, edge] * size
            cell = np.minimum(integers(at), size - 1)
            places.append((cell, at - cell))
        return places


def _read_regions(
    maps: Any, boxes: Any, groups: Any, units: Any
) -> tuple[Regions, Groups, list[str]]:
    """Return maps with their boxes, and the groups and units of the images with a share."""
    regions, n_given = Regions.of(maps, boxes), len(np.asarray(boxes))
    image_groups = Groups.of(fill_labels(groups, n_given))
    names = _unit_names(units, n_given).tolist()
    check_lengths({"maps": n_given, "groups": len(image_groups.codes), "units": len(names)})
    return regions, image_groups.take(regions.rows), [names[row] for row in regions.rows.tolist()]


def _unit_names(units: Labels | None, n: int) -> AnyArray:
    """Return the name of the unit of each image; without units each is one."""
    names = np.asarray(range(n) if units is None else units).astype(str)
    if names.ndim != 1:
        raise InputError(f"units: shape {names.shape}; expected one name per row, shape (n,)")
    return names


@metric(
    _share(
        name="activation_share",
        null_kind=NullHypothesis.MAPS,
        neutral=None,
        title="Share of the map in a region",
        harm="either",
        definition=(
            "Share of a class activation map inside a box, cells on its edge in part; mean over "
            "images."
        ),
        direction="Either: whether a model should look at the region is for you to say.",
        chance="the share with maps exchanged between images",
        interval="percentile bootstrap over images or units",
        null="maps are exchangeable between images",
    )
)
def activation_share(
    maps: ArrayLike,
    boxes: ArrayLike,
    groups: GroupLabels | None = None,
    *,
    units: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Mean share of an activation map inside a region of its image.

    Parameters
    ----------
    maps : array-like, shape (n, rows, columns)
        0 or above; only their proportions count.
    boxes : array-like, shape (n, 4)
        Left, top, right and bottom of the region, from 0 to 1 over the map; NaN where the image
        has none. What lies beyond the map is cut off.
    groups : array-like (n,), mapping of attribute to labels, or Groups, optional
        For the parts.
    units : array-like (n,), optional
        Unit of each image, such as the person shown, whose images are resampled together.
    resampling : Bootstrap, Permutation or None
        None gives the value alone.
    rng : int or Generator
        Seed.

    Returns
    -------
    Estimate
        In [0, 1]; neither side is worse in itself. Interval: percentile bootstrap over images or
        units. Chance and p (two-sided): each box lies over the map of another image, drawn
        without repeats; a model that looks at the middle whatever it sees does not exceed it.
        `.params["area"]` is the mean share of the image that the box takes, which a map without
        any preference has. `.by` has the share of each group, with its chance.

    Raises
    ------
    InputError
        When shapes do not fit, a map is negative or not finite, or a box ends before it begins.

    References
    ----------
    Selvaraju et al. 2017, "Grad-CAM"; Mandal 2024, chapters 4 and 5.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> rng = np.random.default_rng(0)
    >>> maps = rng.random((80, 7, 7))
    >>> m.activation_share(maps, [[0, 0, 0.5, 1]] * 80, ["women", "men"] * 40)
    <activation_share 0.505 [0.497, 0.512]; chance 0.505, p = 1, n = 80 in 2 groups>
    """
    regions, image_groups, names = _read_regions(maps, boxes, groups, units)
    group_members = _members(image_groups)
    members = [np.ones(len(regions), dtype=np.bool_), *group_members]
    draws = _mean_shares(regions, members, names, resampling, rng)
    value, unit, parts = float(draws.observed[0]), name_unit(units, "image"), []
    boot, notes = None if draws.boot is None else draws.boot[:, 1:], [""] * len(image_groups)
    rows = rows_of_replicates(
        image_groups, image_groups.counts, draws.observed[1:], boot, draws.level, notes
    )
    for place, group_value in enumerate(() if groups is None else rows, start=1):
        chance_test, reason = (
            compare_with_chance(draws, place, "either"),
            "" if group_value.n else _NOTHING,
        )
        parts.append(
            group_part(
                "activation_share", group_value.group, group_value, chance_test, reason=reason
            )
        )
    undefined = math.isnan(value)
    no_chance = "resampling is off" if resampling is None else "one map only"
    return make_estimate(
        "activation_share",
        value,
        sizes(image_groups),
        bootstrap_method(draws.boot, resampling if draws.intervals else None, f"{unit}s"),
        params={"area": _mean(regions.areas)},
        **compare_with_chance(draws, 0, "either").fields(
            "not estimable" if undefined else no_chance
        ),
        by=parts,
        excluded=regions.dropped,
        unit=unit,
        reason=explain_undefined(value, _NOTHING),
        ends=ends_of(draws.boot, 0),
    )


@metric(
    _share(
        name="region_area",
        title="Area of a region",
        harm=None,
        definition=(
            "Share of the image that a box covers, mean over images: the share of a map that "
            "prefers nothing."
        ),
        direction="Neither: a property of the data.",
        chance="none: it describes the data",
    )
)
def region_area(
    maps: ArrayLike,
    boxes: ArrayLike,
    groups: GroupLabels | None = None,
    *,
    units: Labels | None = None,
) -> Estimate:
    """Mean share of the image that a region covers.

    Parameters
    ----------
    maps, boxes, groups, units
        See `equipoise.metrics.activation_share`.

    Returns
    -------
    Estimate
        In [0, 1], over the images that `activation_share` is of: the share of a map that prefers
        nothing. It describes the data and has no interval. `.by` has the area of each group.

    Raises
    ------
    InputError
        As `equipoise.metrics.activation_share`.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> m.region_area(np.ones((80, 7, 7)), [[0, 0, 0.5, 1]] * 80).value
    0.5
    """
    regions, image_groups, _ = _read_regions(maps, boxes, groups, units)
    value, names = _mean(regions.areas), () if groups is None else image_groups.names
    parts = []
    for name, members in zip(names, _members(image_groups), strict=bool(names)):
        area = _mean(regions.areas[members])
        reason = explain_undefined(area, _NOTHING)
        parts.append(Part("region_area", name, area, n=tally(members), reason=reason))
    return make_estimate(
        "region_area", value, sizes(image_groups), "none: it describes the data",
        no_chance="it describes the data", by=parts, excluded=regions.dropped,
        unit=name_unit(units, "image"), reason=explain_undefined(value, _NOTHING),
    )  # fmt: skip


def _members(groups: Groups) -> list[Booleans]:
    return [groups.codes == code for code in range(len(groups))]


def _mean(values: Floats) -> float:
    return float(np.sort(values).mean()) if len(values) else math.nan


def _mean_shares(
    regions: Regions,
    members: list[Booleans],
    names: list[str],
    resampling: Resampling | None,
    seed: Seed,
) -> Draws:
    """Return the mean share of all and of each group: observed, resampled and exchanged."""
    shares, n = regions.shares, len(regions)
    observed = np.array([_mean(shares[mask]) for mask in members])
    if resampling is None or not n:
        return Draws(observed)
    boot = null = None
    if isinstance(resampling, Bootstrap):
        times = unit_times(unit_keys(names), resampling.replicates, seed)[:, 1:]
        boot = np.empty((resampling.replicates, len(members)))
        for column, mask in enumerate(members):
            rows, sums = np.flatnonzero(mask), np.zeros(resampling.replicates)
            for block_rows in np.split(rows, range(_ROWS_AT_ONCE, len(rows), _ROWS_AT_ONCE)):
                sums += (times[block_rows] * shares[block_rows, None]).sum(axis=0)
            with unwarned():
                boot[:, column] = sums / times[rows].sum(axis=0, dtype=np.float64)
    if n > 1:
        generator = stream(seed, "activation", "maps")
        null = np.empty((resampling.permutations, len(members)))
        for line in null:
            exchanged = regions.exchanged(generator.permutation(n))
            line[:] = [_mean(exchanged[mask]) for mask in members]
    return Draws.of(resampling, observed, boot, null, _NULL)


@metric(
    _share(
        name="activation_share",
        aggregate=Aggregate.DIFFERENCE,
        rest_metric="activation_share",
        title="Gap in the share of the map",
        range=(0.0, 1.0),
        range_note="beyond the area up to 2",
        unit="points",
        group_label="share of the map",
        clause="The share of the activation map of {model} inside {subject} is {groups}",
        part="{share} for {group}",
        definition="Largest difference between groups in the mean share of a map inside a region.",
        threshold=0.05,
        threshold_reason=POINTS,
        direction="Higher: the model looks at the region more in some groups than in others.",
        chance="above 0, more so for small groups",
        interval="bootstrap over images or units, simultaneous over pairs of groups",
        null="groups are exchangeable over all images, or between units that have one group",
        reference=f"{REFERENCE}; {_INTERVALS}",
    )
)
def activation_share_gap(
    maps: ArrayLike,
    boxes: ArrayLike,
    groups: GroupLabels,
    *,
    beyond_area: bool = False,
    units: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
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
    rng : int or Generator
        Seed.

    Returns
    -------
    Estimate
        In [0, 1] (with `beyond_area` [0, 2]), higher: the model looks at the region in some groups
        more than in others. Interval: simultaneous intervals of all pairs of groups over images or
        units. Chance and p: images (units) exchange their groups. `.by` has the value with the
        mean of each group; with three groups or more, also each group's mean minus that of all
        other images ("against_rest"), tested as two groups are.

    Raises
    ------
    InputError
        As `equipoise.metrics.activation_share`; or fewer than two images have a share.

    References
    ----------
    Mandal 2024, chapters 4 and 5; Hothorn, Bretz & Westfall 2008 (simultaneous intervals).

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> rng = np.random.default_rng(0)
    >>> maps = rng.random((80, 7, 7))
    >>> m.activation_share_gap(maps, [[0, 0, 0.5, 1]] * 80, ["women", "men"] * 40)
    <activation_share difference 0.002 [0.000, 0.020]; chance 0.007, p = 0.84, n = 80 in 2 groups>
    """
    regions, image_groups, names = _read_regions(maps, boxes, groups, units)
    clusters = None if units is None else names
    if len(regions) < 2:
        raise InputError("maps and boxes: fewer than two images have a region and a map")
    values = regions.shares - (regions.areas if beyond_area else 0.0)
    gap = similarity_gap(values, image_groups, units=clusters, resampling=resampling, rng=rng)
    shows = "share of the map beyond the area's" if beyond_area else "share of the map"
    parts = [
        replace(
            _with_means(gap, values, image_groups),
            metric="activation_share",
            aggregate=Aggregate.DIFFERENCE,
            shows=shows,
        )
    ]
    usable = np.flatnonzero(image_groups.usable).tolist()
    for code in usable if len(usable) > 2 else ():
        compared = np.isin(image_groups.codes, usable)
        codes = np.where(compared, image_groups.codes != code, -1).astype(np.int32)
        levels = (image_groups.levels[code], (OTHERS,))
        two_groups = replace(image_groups, levels=levels, codes=codes, min_size=1)
        against_rest = similarity_gap(
            values, two_groups, units=clusters, resampling=resampling, rng=rng
        )
        parts.append(replace(_signed(_with_means(against_rest, values, two_groups)), shows=shows))
    return replace(
        gap,
        metric="activation_share",
        aggregate=Aggregate.DIFFERENCE,
        reference=f"{REFERENCE}; {_INTERVALS}",
        params={"beyond_area": beyond_area},
        by=parts,
        excluded={**regions.dropped, **gap.excluded},
        unit=name_unit(units, "image"),
    )


@metric(
    _share(
        name="paired_share_difference",
        null_kind=NullHypothesis.SIGNS,
        title="Share of the map on one person less that on another",
        group_label="share of the map on the first person less that on the second",
        sentence="The map{model}{subject} has more weight on {direction}, by {size}{groups}.",
        range=(-1.0, 1.0),
        range_note="less control prompts from −2 to 2",
        unit="points",
        harm="either",
        neutral=0.0,
        definition=(
            "Share of the map in one region less that in another of the same image, mean over "
            "images; less the same for control prompts, where there are some."
        ),
        threshold=0.05,
        threshold_reason=POINTS,
        direction="Either: above 0 more of the map is on the first region.",
        chance="0",
        interval="Student's t over images or units",
        null="the two regions of an image exchange their names",
        reference="Fisher 1935, section 21; Mandal 2024, chapters 4 and 5",
    )
)
def paired_share_difference(
    differences: ArrayLike,
    groups: GroupLabels | None = None,
    *,
    units: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Mean difference between two regions of one image in their share of its map.

    Parameters
    ----------
    differences : array-like, shape (n,)
        Share of each image's map inside the one region less that inside the other, less the same
        for a control prompt if there is one; NaN where an image has none.
    groups : array-like (n,), mapping of attribute to labels, or Groups, optional
        For the parts.
    units : array-like (n,), optional
        Unit of each image, such as the people shown, whose images count once: by their mean.
    resampling : Bootstrap, Permutation or None
        None gives the value alone.
    rng : int or Generator
        Seed.

    Returns
    -------
    Estimate
        In [-1, 1] (less a control [-2, 2]); above 0: more of the map lies in the first region.
        Interval: Student's t over images or units. Chance and p (two-sided): the two regions of
        an image (unit) exchange their names; exact up to 16. `.by` has each group, tested so.

    Raises
    ------
    InputError
        When lengths differ.

    References
    ----------
    Fisher 1935, section 21 (signs of differences); Mandal 2024, chapters 4 and 5.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> m.paired_share_difference(0.1 + np.random.default_rng(0).normal(size=40) / 20)
    <paired_share_difference 0.097 [0.084, 0.110]; chance 0.000, p = 0.002, n = 40>
    """
    return _mean_by_signs("paired_share_difference", differences, groups, units, resampling, rng)


@metric(
    _share(
        name="occlusion_difference",
        null_kind=NullHypothesis.SIGNS,
        title="Effect of hiding one person less that of hiding another",
        sentence="The score{model}{subject} rests more on {direction}, by {size}{groups}.",
        range=ANY_NUMBER,
        range_note="that of the model's score",
        unit="number",
        harm="either",
        neutral=0.0,
        definition=(
            "How far the model's score falls when one region is hidden, less the same of another "
            "of the same image; mean over images."
        ),
        direction="Either: above 0 the score rests more on the first region.",
        chance="0",
        interval="Student's t over images or units",
        null="the two regions of an image exchange their names",
        reference="Zeiler & Fergus 2014; Fisher 1935, section 21",
    )
)
def occlusion_difference(
    differences: ArrayLike,
    groups: GroupLabels | None = None,
    *,
    units: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Mean difference between two regions of one image in how much hiding them lowers a score.

    Parameters
    ----------
    differences : array-like, shape (n,)
        How far the score of each image falls when the one region is hidden less how far it falls
        when the other is; NaN where an image has none.
    groups, units, resampling, rng
        See `equipoise.metrics.paired_share_difference`.

    Returns
    -------
    Estimate
        In units of the score; above 0: it rests more on the first region. Interval, chance, p and
        `.by` as of `paired_share_difference`.

    Raises
    ------
    InputError
        When lengths differ.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> m.occlusion_difference(2.0 + np.random.default_rng(0).normal(size=40))
    <occlusion_difference 1.940 [1.685, 2.194]; chance 0.000, p = 0.002, n = 40>
    """
    return _mean_by_signs("occlusion_difference", differences, groups, units, resampling, rng)


def _mean_by_signs(
    metric: str,
    differences: ArrayLike,
    groups: GroupLabels | None,
    units: Labels | None,
    resampling: Resampling | None,
    rng: Seed,
) -> Estimate:
    """Return the mean of differences within images, tested by their signs."""
    image_differences = real_numbers(differences, "differences")
    n, finite = len(image_differences), np.isfinite(image_differences)
    image_groups = Groups.of(fill_labels(groups, n))
    names = _unit_names(units, n)
    check_lengths({"differences": n, "groups": len(image_groups.codes), "units": len(names)})
    members = [
        finite,
        *(finite & of_group for of_group in _members(image_groups)),
    ]
    overall, *parts = [
        _signs_of(metric, image_differences[mask], names[mask], name, resampling, rng)
        for mask, name in zip(members, ("", *image_groups.names), strict=True)
    ]
    values, has_interval = (
        _by_unit(image_differences[finite], names[finite]),
        not math.isnan(overall.low),
    )
    return make_estimate(
        metric,
        overall.value,
        {"images": overall.n},
        "Student's t" if has_interval else "none: two images or more, and resampling, are needed",
        chance=Chance(0.0, overall.chance_low, overall.chance_high, _SIGNS)
        if has_interval
        else None,
        no_chance="" if has_interval else "resampling is off, or one image only",
        p_value=overall.p_value if has_interval else None,
        null_drawn=_SIGNS if has_interval else "",
        by=[] if groups is None else parts,
        excluded={"no share": n - overall.n},
        unit=name_unit(units, "image"),
        reason=overall.reason,
        ends=ClosedForm(mean_t, (values,)) if has_interval else no_ends,
    )


def _by_unit(values: Floats, names: AnyArray) -> Floats:
    """Return the mean of each unit, in one order whatever that of the images."""
    order = np.lexsort((values, names))
    starts = np.flatnonzero(np.r_[True, names[order][1:] != names[order][:-1]][: len(values)])
    sums = np.add.reduceat(values[order], starts) if len(starts) else values
    return np.sort(sums / np.diff(np.r_[starts, len(values)]))


def _signs_of(
    metric: str,
    differences: Floats,
    names: AnyArray,
    group: str,
    resampling: Resampling | None,
    seed: Seed,
) -> Part:
    """Return the mean of paired differences, tested by sign flips."""
    values, low, high, p, band = (
        _by_unit(differences, names),
        math.nan,
        math.nan,
        math.nan,
        math.nan,
    )
    if resampling is not None and len(values) > 1:
        low, high = map(float, mean_t(values, resampling.level))
        draws = max(resampling.permutations, math.ceil(1.0 / resampling.resolution))
        p = sign_flips(values, permutations=draws, seed=seed).value
        band = 1.96 * math.sqrt(float((values**2).sum())) / len(values)
    group_value = GroupValue(group, (group,), len(differences), _mean(values), low, high)
    return Part(
        metric, group, group_value.value, low, high, 0.0, -band, band, p,
        group_value.n, (group_value,),
        reason="" if group_value.n else "no image with both regions and a map",
    )  # fmt: skip


def _with_means(gap: Estimate, values: Floats, groups: Groups) -> Part:
    """Return a gap as a part: each group with its own mean, not how far it is from the average."""
    first, by_group = next(gap_part for gap_part in gap.parts if gap_part.metric == gap.metric), []
    for code, group_value in enumerate(first.by_group):
        shift = _mean(values[groups.codes == code]) - group_value.value
        value, low, high = (
            group_value.value + shift,
            group_value.low + shift,
            group_value.high + shift,
        )
        by_group.append(replace(group_value, value=value, low=low, high=high))
    return replace(first, by_group=tuple(by_group))


def _signed(gap: Part) -> Part:
    """Return the gap of two groups as the first minus the second: its interval is symmetric."""
    group_value, rest_value = gap.by_group
    value, half, band = group_value.value - rest_value.value, gap.high - gap.value, gap.chance_high
    return replace(
        gap, metric="activation_share", aggregate=Aggregate.AGAINST_REST, value=value,
        low=value - half,
        high=value + half, chance=0.0, chance_low=-band, chance_high=band,
    )  # fmt: skip

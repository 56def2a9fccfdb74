"""The share of maps inside a region, held against maps of other images."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.estimate import Estimate, no_ends
from equipoise.core.finding import GroupValue
from equipoise.core.groups import Groups
from equipoise.core.parts import Part, parts_to_table
from equipoise.metrics.activation.regions import Regions
from equipoise.metrics.building import against_chance, part, replicates_of
from equipoise.metrics.measure import DEFAULT, NO_INTERVAL, Draws
from equipoise.metrics.spec import MetricSpec, make_estimate, register
from equipoise.stats.poisson import unit_times
from equipoise.stats.resampling import Bootstrap, Exact, Permutation, Resampling
from equipoise.stats.streams import stream, unit_keys

Floats = npt.NDArray[np.float64]

REFERENCE = "Selvaraju et al. 2017 (Grad-CAM); Mandal 2024, chapters 4 and 5"
NULL = "maps lie as they lie, whatever the image: maps are exchanged between images"
_ROWS_AT_ONCE = 1024


def activation_share(
    maps: Any,
    boxes: Any,
    groups: Any = None,
    *,
    units: Any = None,
    resampling: Resampling | None = DEFAULT,
    rng: int = 0,
) -> Estimate:
    """Mean share of a map of activations that lies inside a region of its image.

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
    rng : int
        Seed.

    Returns
    -------
    Estimate
        In [0, 1]; neither side is worse in itself. Interval: percentile bootstrap over images or
        units. Chance and p (two-sided): each box lies over the map of another image, drawn
        without repeats; a model that looks at the middle whatever it sees does not exceed it.
        `.params["area"]` is the mean share of the image that the box takes, which a map without
        any preference has. `.by` has the share of each group, with its chance, and its
        "region_area".

    Raises
    ------
    InputError
        When shapes do not fit, a map is negative or not finite, a box ends before it begins, or
        `resampling` is Exact.

    References
    ----------
    Selvaraju et al. 2017, "Grad-CAM"; Mandal 2024, chapters 4 and 5.
    """
    if isinstance(resampling, Exact):
        raise InputError("resampling=Exact: not available for maps; use Permutation()")
    measured = Shares.of(maps, boxes, groups, units)
    draws = measured.drawn(resampling, rng)
    against, value = against_chance(draws, 0, "either"), float(draws.observed[0])
    return make_estimate(
        metric="activation_share",
        value=value,
        n=measured.sizes,
        method=_method(draws, resampling, measured.unit),
        params={"area": measured.mean(measured.regions.areas)},
        chance=against.chance,
        no_chance="" if against.chance else _why_none(value, resampling),
        p_value=against.p_value,
        null=against.null,
        by=parts_to_table(_parts(measured, draws)),
        excluded=measured.regions.dropped,
        unit=measured.unit,
        reason="" if len(measured.regions) else "no image with a region and a map",
        ends=replicates_of(draws, 0) or no_ends,
    )


@dataclass(frozen=True, eq=False)
class Shares:
    """Shares of maps inside regions, by group.

    Attributes
    ----------
    regions : Regions
    groups : Groups or None
        Of the images with a share.
    keys : ndarray of uint64, shape (n,)
        What each image is resampled with.
    unit : str
        "image" or "unit".
    """

    regions: Regions
    groups: Groups | None
    keys: npt.NDArray[np.uint64] = field(repr=False)
    unit: str

    @classmethod
    def of(cls, maps: Any, boxes: Any, groups: Any, units: Any) -> Shares:
        """Check what is given.

        Raises
        ------
        InputError
            When lengths differ, or see `Regions.of`.
        """
        regions = Regions.of(maps, boxes)
        given = len(np.asarray(boxes))
        found = None if groups is None else Groups.of(groups)
        names = [str(row) for row in range(given)] if units is None else [*map(str, units)]
        for what, length in (("groups", given if found is None else len(found.codes)),
                             ("units", len(names))):  # fmt: skip
            if length != given:
                raise InputError(f"{what}: {length} labels for {given} maps; expected one each")
        kept = None if found is None else found.take(regions.rows)
        keys = unit_keys([names[row] for row in regions.rows.tolist()])
        return cls(regions, kept, keys, "image" if units is None else "unit")

    @property
    def sizes(self) -> dict[str, int]:
        """Images of each group, or of all."""
        if self.groups is None:
            return {"all": len(self.regions)}
        return dict(zip(self.groups.names, self.groups.counts.tolist(), strict=True))

    @property
    def members(self) -> list[npt.NDArray[np.bool_]]:
        """Which images count: all, then those of each group."""
        every = [np.ones(len(self.regions), dtype=np.bool_)]
        if self.groups is None:
            return every
        return every + [self.groups.codes == code for code in range(len(self.groups))]

    @staticmethod
    def mean(values: Floats) -> float:
        """Return the mean of some values; NaN of none."""
        return float(np.sort(values).mean()) if len(values) else float("nan")

    def drawn(self, resampling: Resampling | None, seed: int) -> Draws:
        """Return the mean share of all and of each group: observed, resampled and exchanged."""
        shares = self.regions.shares
        observed = np.array([self.mean(shares[one]) for one in self.members])
        if resampling is None or not len(self.regions):
            return Draws(observed)
        boot = None
        if isinstance(resampling, Bootstrap):
            boot = self._resampled(resampling.replicates, seed)
        null = self._exchanged(resampling, seed) if len(self.regions) > 1 else None
        many = 0 if null is None else len(null)
        text, finest = f"{NULL}; {many} permutations", getattr(resampling, "resolution", 0.0)
        return Draws(observed, boot, null, None, resampling.level, text, finest, intervals=True)

    def _resampled(self, replicates: int, seed: int) -> Floats:
        times = unit_times(self.keys, replicates, seed)[:, 1:]
        found = np.empty((replicates, len(self.members)))
        for column, one in enumerate(self.members):
            rows = np.flatnonzero(one)
            sums, counts = np.zeros(replicates), np.zeros(replicates)
            for start in range(0, len(rows), _ROWS_AT_ONCE):
                some = rows[start : start + _ROWS_AT_ONCE]
                sums += (times[some] * self.regions.shares[some, None]).sum(axis=0)
                counts += times[some].sum(axis=0, dtype=np.float64)
            with np.errstate(invalid="ignore"):
                found[:, column] = sums / counts
        return found

    def _exchanged(self, resampling: Resampling, seed: int) -> Floats:
        asked = _permutations(resampling)
        generator = stream(seed, "activation", "maps")
        found = np.empty((asked, len(self.members)))
        for row in range(asked):
            shares = self.regions.exchanged(generator.permutation(len(self.regions)))
            found[row] = [self.mean(shares[one]) for one in self.members]
        return found


def _permutations(resampling: Resampling) -> int:
    if isinstance(resampling, Bootstrap):
        return resampling.permutations
    return resampling.replicates if isinstance(resampling, Permutation) else 0


def _method(draws: Draws, resampling: Resampling | None, unit: str) -> str:
    if resampling is None or not draws.intervals:
        return NO_INTERVAL
    if draws.boot is None:
        return "none: use Bootstrap()"
    return f"percentile bootstrap over {unit}s, {len(draws.boot)} replicates"


def _why_none(value: float, resampling: Resampling | None) -> str:
    if np.isnan(value):
        return "not estimable"
    return "no resampling was asked for" if resampling is None else "one map only"


def _parts(measured: Shares, draws: Draws) -> Iterator[Part]:
    if measured.groups is None:
        return
    for place, (name, levels) in enumerate(
        zip(measured.groups.names, measured.groups.levels, strict=True), start=1
    ):
        rows = measured.members[place]
        n, area = int(rows.sum()), measured.mean(measured.regions.areas[rows])
        ends = replicates_of(draws, place) or no_ends
        low, high = ends(draws.level)
        yield part(
            "activation_share",
            name,
            draws,
            place,
            ends=ends,
            against=against_chance(draws, place, "either"),
            n=n,
            by_group=(GroupValue(name, levels, n, float(draws.observed[place]), low, high),),
            reason="" if n else "no image with a region and a map",
        )
        yield Part("region_area", name, area, n=n, reason="" if n else "no image with a region")


register(
    MetricSpec(
        name="activation_share",
        title="Share of the map in a region",
        kinds=("activations",),
        unit="share",
        harm="either",
        definition=(
            "Share of a class activation map inside a box, cells on its edge in part; mean over "
            "images."
        ),
        direction="Either: whether a model should look at the region is for you to say.",
        chance="the share with maps exchanged between images",
        interval="percentile bootstrap over images or units",
        null="maps are exchangeable between images",
        parameters={"boxes": "the region", "method": "how activations are weighted: gradcam"},
        reference=REFERENCE,
    )
)
register(
    MetricSpec(
        name="region_area",
        title="Area of a region",
        kinds=("activations",),
        unit="share",
        harm=None,
        definition=(
            "Share of the image that a box covers, mean over images: the share of a map that "
            "prefers nothing."
        ),
        direction="Neither: a property of the data.",
        chance="none: it describes the data",
        reference=REFERENCE,
    )
)

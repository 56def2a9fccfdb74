"""The share of maps inside a region, held against maps of other images."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.estimate import Estimate
from equipoise.core.finding import GroupValue
from equipoise.core.groups import Groups
from equipoise.core.parts import Part, parts_to_table
from equipoise.metrics.building import against_chance, bootstrap_method, ends_of, part, sizes
from equipoise.metrics.measure import DEFAULT, Draws
from equipoise.metrics.spec import MetricSpec, make_estimate, register
from equipoise.stats.resampling import Bootstrap, Exact, Resampling
from equipoise.stats.streams import stream, unit_keys, unit_times

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Regions:
    """Maps of n images and a box on each.

    Attributes
    ----------
    cumulated : ndarray of float64, shape (n, rows + 1, columns + 1)
        Sums of each map above and left of every corner of its cells; 1 in the last.
    boxes : ndarray of float64, shape (n, 4)
        Left, top, right, bottom, from 0 to 1.
    rows : ndarray of int64, shape (n,)
        Which of the images given these are: those with a box, and a map that is not 0 everywhere.
    dropped : mapping of str to int
        Images without, by reason.
    """

    cumulated: Floats = field(repr=False)
    boxes: Floats = field(repr=False)
    rows: Indices = field(repr=False)
    dropped: dict[str, int]

    @classmethod
    def of(cls, maps: npt.ArrayLike, boxes: npt.ArrayLike) -> Regions:
        """Check maps and boxes, and cut boxes at the edge of the map.

        Raises
        ------
        InputError
            When a map is negative or not finite, a box ends before it begins, or lengths differ.
        """
        cells, edges = _maps(maps), np.asarray(boxes, dtype=np.float64)
        if edges.shape != (len(cells), 4):
            raise InputError(
                f"boxes: shape {edges.shape} for {len(cells)} maps; expected (n, 4): left, top, "
                "right, bottom, as shares of the map's width and height"
            )
        none = np.asarray(np.isnan(edges).any(axis=1))
        wrong = ~none & ((edges[:, 2] <= edges[:, 0]) | (edges[:, 3] <= edges[:, 1]))
        if wrong.any():
            raise InputError(
                f"boxes: box {int(np.argmax(wrong))} ends before it begins; expected left < right "
                "and top < bottom"
            )
        inside = np.clip(np.where(none[:, None], 0.0, edges), 0.0, 1.0)
        unseen = ~none & ((inside[:, 2] <= inside[:, 0]) | (inside[:, 3] <= inside[:, 1]))
        empty = ~none & ~unseen & (cells.reshape(len(cells), -1).sum(axis=1) == 0.0)
        rows = np.flatnonzero(~none & ~unseen & ~empty).astype(np.int64)
        dropped = {
            "no region": int(none.sum()),
            "region outside the map": int(unseen.sum()),
            "no activation": int(empty.sum()),
        }
        return cls(_cumulated(cells[rows]), inside[rows], rows,
                   {why: n for why, n in dropped.items() if n})  # fmt: skip

    def __len__(self) -> int:
        """Return the number of images with a share."""
        return len(self.rows)

    @cached_property
    def shares(self) -> Floats:
        """Share of each map inside its box, from 0 to 1; shape (n,)."""
        return self.exchanged(np.arange(len(self)))

    @cached_property
    def areas(self) -> Floats:
        """Share of the image inside each box; shape (n,)."""
        sides = self.boxes[:, 2:] - self.boxes[:, :2]
        return np.asarray(sides[:, 0] * sides[:, 1])

    def exchanged(self, owners: Indices) -> Floats:
        """Return shares with the maps of other images, (n,).

        Parameters
        ----------
        owners : ndarray of int64, shape (n,)
            Whose map lies under each box.
        """
        left, top, right, bottom = range(4)
        corners = ((bottom, right, 1), (top, right, -1), (bottom, left, -1), (top, left, 1))
        found = np.zeros(len(self))
        for y, x, sign in corners:
            found += sign * self._at(owners, y, x)
        return np.asarray(np.clip(found, 0.0, 1.0))

    def _at(self, owners: Indices, y: int, x: int) -> Floats:
        """Return how much of each map lies above and left of a point: exact between corners."""
        (row, down), (column, across) = self._places[y], self._places[x]
        at = self.cumulated
        above = at[owners, row, column] * (1 - across) + at[owners, row, column + 1] * across
        below = (
            at[owners, row + 1, column] * (1 - across) + at[owners, row + 1, column + 1] * across
        )
        return np.asarray(above * (1 - down) + below * down)

    @cached_property
    def _places(self) -> list[tuple[Indices, Floats]]:
        """Cell of each edge of each box, and how far into it: left, top, right, bottom."""
        rows, columns = (size - 1 for size in self.cumulated.shape[1:])
        found = []
        for edge, size in enumerate((columns, rows, columns, rows)):
            at = self.boxes[:, edge] * size
            cell = np.minimum(at.astype(np.int64), size - 1)
            found.append((cell, at - cell))
        return found


def _maps(maps: npt.ArrayLike) -> Floats:
    cells = np.asarray(maps, dtype=np.float64)
    if cells.ndim != 3 or 0 in cells.shape[1:]:
        raise InputError(f"maps: shape {cells.shape}; expected (n, rows, columns)")
    bad = np.asarray(~np.isfinite(cells) | (cells < 0.0))
    if bad.any():
        first = int(np.argmax(bad.reshape(len(cells), -1).any(axis=1)))
        raise InputError(
            f"maps: map {first} has cells that are negative or not finite; expected 0 or above"
        )
    return cells


def _cumulated(cells: Floats) -> Floats:
    sums = np.zeros((len(cells), cells.shape[1] + 1, cells.shape[2] + 1))
    sums[:, 1:, 1:] = cells.cumsum(axis=1).cumsum(axis=2)
    total = sums[:, -1, -1].copy()
    return np.asarray(sums / total[:, None, None])


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
    held, value = against_chance(draws, 0, "either"), float(draws.observed[0])
    return make_estimate(
        metric="activation_share",
        value=value,
        n=measured.sizes,
        method=bootstrap_method(
            draws.boot, resampling if draws.intervals else None, f"{measured.unit}s"
        ),
        params={"area": measured.mean(measured.regions.areas)},
        **held.fields(_why_none(value, resampling)),
        by=parts_to_table(_parts(measured, draws)),
        excluded=measured.regions.dropped,
        unit=measured.unit,
        reason="" if len(measured.regions) else "no image with a region and a map",
        ends=ends_of(draws.boot, 0),
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
        return sizes(self.groups)

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
        text = f"{NULL}; {many} permutations"
        finest = resampling.resolution
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
        asked = 0 if isinstance(resampling, Exact) else resampling.permutations
        generator = stream(seed, "activation", "maps")
        found = np.empty((asked, len(self.members)))
        for row in range(asked):
            shares = self.regions.exchanged(generator.permutation(len(self.regions)))
            found[row] = [self.mean(shares[one]) for one in self.members]
        return found


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
        ends = ends_of(draws.boot, place)
        low, high = ends(draws.level)
        yield part(
            "activation_share",
            name,
            draws,
            place,
            ends=ends,
            held=against_chance(draws, place, "either"),
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

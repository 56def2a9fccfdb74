"""Whether a check rejects images of one group more than those of another."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.estimate import Estimate, no_ends
from equipoise.core.finding import Excluded, GroupValue
from equipoise.core.groups import Groups
from equipoise.core.labels import encode
from equipoise.core.parts import Part, parts_to_table
from equipoise.metrics.building import (
    Known,
    against_chance,
    excluded_of,
    gaps,
    group_rows,
    part,
    spread_level,
)
from equipoise.metrics.measure import DEFAULT, NO_INTERVAL, Draws
from equipoise.metrics.spec import POINTS, MetricSpec, make_estimate, register
from equipoise.stats.draws import Exchange, block_sizes
from equipoise.stats.intervals import percentile, simultaneous_gap, wilson
from equipoise.stats.resampling import (
    Bootstrap,
    Exact,
    Permutation,
    Resampling,
    level_of,
    null_draws,
    resolution_of,
)
from equipoise.stats.shuffling import add_relabelled, keys
from equipoise.stats.streams import unit_counts, unit_keys

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Checked:
    """Images that were checked and have a group.

    Attributes
    ----------
    groups : Groups
        Of these images.
    values : ndarray of int64, shape (n, 2)
        Checks that rejected the image, and checks made of it.
    unit : ndarray of int64, shape (n,)
        Its set: the images among which groups are exchanged.
    cluster : ndarray of int64, shape (n,)
        What is resampled together: index into `names`.
    names : tuple of str
    stratum : ndarray of int64, shape (n,)
        Index into `strata`.
    strata : tuple of str
    excluded : mapping of str to int
    """

    groups: Groups
    values: Indices = field(repr=False)
    unit: Indices = field(repr=False)
    cluster: Indices = field(repr=False)
    names: tuple[str, ...] = field(repr=False)
    stratum: Indices = field(repr=False)
    strata: tuple[str, ...]
    excluded: dict[str, int]

    @property
    def cell(self) -> Indices:
        """Stratum and group of each image, as one number."""
        return self.stratum * len(self.groups) + self.groups.codes

    @property
    def shape(self) -> tuple[int, int]:
        """Strata and groups."""
        return len(self.strata), len(self.groups)

    def count(self, cell: Indices, values: Indices) -> Indices:
        """Add values (n, k) up by cell, shape (strata, groups, k)."""
        strata, groups = self.shape
        found = [
            np.bincount(cell, weights=column, minlength=strata * groups) for column in values.T
        ]
        # Sums of whole numbers below 2^53 are exact.
        return np.stack(found, axis=1).astype(np.int64).reshape(strata, groups, -1)


def checked(
    rejected: Any, groups: Any, *, checks: Any, sets: Any, clusters: Any, strata: Any
) -> Checked:
    """Bring images in one form, see `equipoise.metrics.rejections.gap.rejection_gap`.

    Raises
    ------
    InputError
        When lengths differ, or counts are no whole numbers from 0 to the checks made.
    """
    of = Groups.of(groups)
    values = _values(rejected, checks)
    n = len(values)
    given = {"groups": of.codes, "sets": sets, "clusters": clusters, "strata": strata}
    for name, one in given.items():
        if one is not None and len(one) != n:
            raise InputError(f"{name}: {len(one)} rows; expected {n}, as in rejected")
    unknown, without = values[:, 1] == 0, of.codes < 0
    kept = np.flatnonzero(~unknown & ~without)
    unit, _ = _named(sets, n, "sets")
    cluster, names = _named(sets if clusters is None else clusters, n, "clusters")
    stratum, labels = encode(np.full(n, "all") if strata is None else strata, what="strata")
    if (stratum < 0).any():
        raise InputError(f"strata, row {int(np.argmax(stratum < 0)) + 1}: missing")
    excluded = {
        "not checked": int(unknown.sum()),
        "missing group": int((without & ~unknown).sum()),
    }
    return Checked(
        of.take(kept),
        values[kept],
        unit[kept],
        cluster[kept],
        names,
        stratum[kept].astype(np.int64),
        labels,
        {why: many for why, many in excluded.items() if many},
    )


def _values(rejected: Any, checks: Any) -> Indices:
    counts = np.asarray(rejected, dtype=np.float64)
    if counts.ndim != 1 or not len(counts):
        raise InputError(f"rejected: shape {counts.shape}; expected one number per image, (n,)")
    made = np.ones(len(counts)) if checks is None else np.asarray(checks, dtype=np.float64)
    if made.shape != counts.shape:
        raise InputError(f"checks: shape {made.shape}; expected {counts.shape}, as rejected")
    made = np.where(np.isnan(counts), 0.0, made)
    counts = np.where(np.isnan(counts), 0.0, counts)
    wrong = ~((counts >= 0) & (counts <= made) & (counts == np.rint(counts)))
    wrong |= made != np.rint(made)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"rejected, row {row + 1}: {counts[row]:g} of {made[row]:g}; expected a whole number "
            "from 0 to the checks made, or NaN where there was none"
        )
    return np.stack([counts, made], axis=1).astype(np.int64)


def _named(labels: Any, n: int, what: str) -> tuple[Indices, tuple[str, ...]]:
    """Number labels; a row without one stands alone."""
    if labels is None:
        return np.arange(n, dtype=np.int64), tuple(map(str, range(n)))
    codes, names = encode(labels, what=what)
    alone = np.flatnonzero(codes < 0)
    numbered = codes.astype(np.int64)
    numbered[alone] = len(names) + np.arange(len(alone))
    return numbered, (*names, *(f"row {row}" for row in alone.tolist()))


# Members that are moved in all permutations beyond those asked for: a second or two.
_MOVES = 200_000_000


@dataclass(frozen=True, eq=False)
class Rejections:
    """Shares of images that checks rejected, drawn as asked.

    Attributes
    ----------
    rows : Checked
    resampling : Bootstrap, Permutation or None
    rng : int
    """

    rows: Checked
    resampling: Bootstrap | Permutation | None
    rng: int

    @cached_property
    def totals(self) -> Indices:
        """Rejections and checks by stratum and group, (strata, groups, 2)."""
        return self.rows.count(self.rows.cell, self.rows.values)

    @cached_property
    def images(self) -> Indices:
        """Images by stratum and group, shape (strata, groups)."""
        ones = np.ones((len(self.rows.unit), 1), dtype=np.int64)
        return self.rows.count(self.rows.cell, ones)[..., 0]

    @cached_property
    def boot(self) -> Floats | None:
        """Counts on resampled clusters, shape (replicates, strata, groups, 2)."""
        if not isinstance(self.resampling, Bootstrap):
            return None
        rows, cells = self.rows, int(np.prod(self.rows.shape))
        used, cluster = np.unique(rows.cluster, return_inverse=True)
        names = unit_keys([rows.names[one] for one in used.tolist()])
        flat = cluster * cells + rows.cell
        counts = np.stack(
            [
                np.bincount(flat, weights=column, minlength=len(used) * cells)
                for column in rows.values.T
            ],
            axis=1,
        ).reshape(len(used), cells * 2)
        found = []
        for start, size in block_sizes(self.resampling.replicates, max(len(used), cells)):
            times = unit_counts(self.rng, names, range(start, start + size))
            # Products and sums of whole numbers below 2^53 are exact in any order.
            found.append(times.astype(np.float64) @ counts)
        return np.concatenate(found).reshape(-1, *rows.shape, 2)

    @cached_property
    def null(self) -> Floats | None:
        """Counts with groups exchanged, (permutations, strata, groups, 2); None without draws."""
        if self.resampling is None or self._carriers is None:
            return None
        fixed, starts, cells, values = self._carriers
        many = null_draws(self.resampling, _MOVES // max(len(cells), 1))
        found = np.zeros((many, int(np.prod(self.rows.shape)), 2), dtype=np.int64)
        found += fixed.reshape(1, -1, 2)
        if len(cells):
            # Labels are shuffled further from line to line: every order is as likely again.
            add_relabelled(keys(self.rng, "rejections", many=many), starts, cells, values, found)
        return found.reshape(many, *self.rows.shape, 2).astype(np.float64)

    @cached_property
    def _carriers(self) -> tuple[Indices, Indices, Indices, Indices] | None:
        """Return what stays as it is, and pools of what exchanges: starts, cells and values.

        None where nothing could exchange: no set has images of two groups, nor are there sets
        of one group each that could.
        """
        rows = self.rows
        exchange = Exchange.of(rows.groups.codes.astype(np.int64), rows.unit, rows.stratum)
        many, pools = len(exchange.pool), int(exchange.pool.max()) + 1
        values = np.stack(
            [np.bincount(exchange.carrier, column, minlength=many) for column in rows.values.T], 1
        ).astype(np.int64)
        cells = np.empty(many, dtype=np.int64)
        cells[exchange.carrier] = rows.cell
        if not _varies(exchange.pool, exchange.group, pools).any():
            return None
        # Where all members of a pool have the same counts, an exchange changes nothing.
        moves = np.zeros(pools, dtype=bool)
        for column in values.T:
            moves |= _varies(exchange.pool, column, pools)
        chosen = moves[exchange.pool]
        fixed = rows.count(cells[~chosen], values[~chosen])
        places = np.flatnonzero(chosen)
        order = np.lexsort(
            (values[places, 1], values[places, 0], cells[places], exchange.pool[places])
        )
        places = places[order]
        starts = np.flatnonzero(np.diff(exchange.pool[places], prepend=-1))
        return fixed, np.append(starts, len(places)), cells[places], values[places]

    def draws(self, stratum: int | None) -> Draws:
        """Return the gap and every group's share, in one stratum or over all (None)."""
        null = self.null
        how = "" if null is None else f"{NULL}; {len(null)} permutations"
        return Draws(
            self._numbers(self.totals[None].astype(np.float64), stratum)[0],
            None if self.boot is None else self._numbers(self.boot, stratum),
            None if null is None else self._numbers(null, stratum),
            level=level_of(self.resampling),
            null_text=how,
            resolution=resolution_of(self.resampling),
            intervals=self.resampling is not None,
        )

    def compared(self, stratum: int | None) -> npt.NDArray[np.bool_]:
        """Whether each group has images enough, shape (groups,)."""
        return self.sizes(stratum) >= max(self.rows.groups.min_size, 1)

    def sizes(self, stratum: int | None) -> Indices:
        """Images of each group, shape (groups,)."""
        return np.asarray(self.images.sum(axis=0) if stratum is None else self.images[stratum])

    def _numbers(self, counts: Floats, stratum: int | None) -> Floats:
        some = counts.sum(axis=1) if stratum is None else counts[:, stratum]
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = some[..., 0] / some[..., 1]
        gap = gaps(shares, self.compared(stratum))
        return np.concatenate([gap[:, None], shares], axis=1)


NULL = "groups are exchangeable within each set; between sets where each has one group"


def _varies(pool: Indices, values: Indices, pools: int) -> npt.NDArray[np.bool_]:
    lowest = np.full(pools, np.iinfo(np.int64).max)
    highest = np.full(pools, np.iinfo(np.int64).min)
    np.minimum.at(lowest, pool, values)
    np.maximum.at(highest, pool, values)
    return np.asarray(lowest < highest)


@dataclass(frozen=True, eq=False)
class Ends:
    """Ends of the interval of a largest gap.

    The outer of two: intervals of all pairs of groups over resampled clusters, whose lower ends
    are corrected for the number of pairs, and the closed form for independent images, which does
    not shrink to nothing where no image, or every image, is rejected.

    Attributes
    ----------
    shares : ndarray, shape (replicates, groups)
        Of the groups that are compared.
    successes, images : ndarray, shape (groups,)
    """

    shares: Floats
    successes: Floats
    images: Floats

    def __call__(self, level: float) -> tuple[float, float]:
        """Return the lower and upper end."""
        a, b = np.triu_indices(self.shares.shape[1], 1)
        if not len(a):
            return math.nan, math.nan
        apart = self.shares[:, a] - self.shares[:, b]
        wide = percentile(apart, spread_level(level, len(a)))
        narrow = percentile(apart, level)
        low = max(0.0, float(np.max(wide[0])), float(np.max(-wide[1])))
        high = max(float(np.max(narrow[1])), float(np.max(-narrow[0])))
        closed = simultaneous_gap(self.successes, self.images, level)
        return min(low, float(closed[0])), min(1.0, max(high, float(closed[1])))


def group_ends(
    shares: Floats, successes: Floats, images: Floats, level: float
) -> tuple[Floats, Floats]:
    """Return ends of every group's share: the outer of resampled clusters and Wilson's."""
    low, high = wilson(successes, images, level)
    drawn_low, drawn_high, _ = percentile(shares, level)
    return np.fmin(low, drawn_low), np.fmax(high, drawn_high)


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
    held = against_chance(whole, 0, "higher")
    value = float(whole.observed[0])
    return make_estimate(
        metric=_METRIC,
        value=value,
        n=dict(zip(rows.groups.names, drawn.sizes(None).tolist(), strict=True)),
        method=_method(drawn),
        params={"strata": list(rows.strata), "sets": len(np.unique(rows.unit))},
        **held.fields(_no_chance(drawn, value)),
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
        held=against_chance(draws, 0, "higher"),
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
                held=against_chance(draws, 1 + place, "either"),
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
    notes = [_note(n, bool(ok), groups.min_size) for n, ok in zip(images, enough, strict=True)]
    return group_rows(groups, images, shares, low, high, notes)


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

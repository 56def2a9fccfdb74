"""Whether a check rejects images of one group more than those of another."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from equipoise.core import (
    Aggregate,
    AnyArray,
    Booleans,
    Ends,
    Estimate,
    Floats,
    GroupLabels,
    Groups,
    GroupValue,
    InputError,
    Integers,
    IntervalKind,
    Labels,
    NullHypothesis,
    Part,
    Span,
    Strings,
    encode,
    floats,
    integers,
    nans,
    no_ends,
    record,
    tally,
    unwarned,
)
from equipoise.core.arguments import real_numbers
from equipoise.core.labels import shape_of, unit_codes
from equipoise.metrics.building import (
    apply_to_draws,
    bootstrap_method,
    compare_with_chance,
    excluded_of,
    explain_undefined,
    gaps,
    group_part,
    group_rows,
    known_ends,
    no_chance_reason,
    part,
    sizes,
    spread_level,
    too_small,
)
from equipoise.metrics.labels import fill_labels
from equipoise.metrics.labels.comparisons import OTHERS, AgainstRest, all_others
from equipoise.metrics.measure import DEFAULT, NO_INTERVAL, NO_REPLICATES, Draws
from equipoise.metrics.registry import metric
from equipoise.metrics.spec import POINTS, MetricSpec, make_estimate
from equipoise.stats.draws import block_sizes
from equipoise.stats.exchange import Exchange, varies
from equipoise.stats.intervals import percentile, simultaneous_gap, wilson
from equipoise.stats.resampling import (
    Bootstrap,
    Resampling,
    null_draws,
)
from equipoise.stats.streams import Seed, add_relabelled, keys, unit_counts, unit_keys

_NULL = "groups are exchangeable within each set; between sets where each has one group"
_FEW = "fewer than two groups have images enough"
# Members that are moved in all permutations beyond the least number: a second or two.
_MOVES = 200_000_000
_rejected = partial(
    MetricSpec,
    null_kind=NullHypothesis.WITHIN_SETS,
    kinds=("generation",),
    unit="share",
    reference=(
        "Howard et al. 2024, SocialCounterfactuals, section 3.3 (filters); Phipson & Smyth 2010 "
        "(permutation)"
    ),
)


@record
class Rejections:
    """Images that were checked and have a group, and draws of their counts.

    Attributes
    ----------
    groups : Groups
    values : ndarray of int64, shape (n, 2)
        Checks that rejected the image, and checks made of it.
    unit : ndarray of int64, shape (n,)
        Its set: the images among which groups are exchanged.
    cluster : sequence of str, length n
        What is resampled together.
    cell : ndarray of int64, shape (n,)
        Its stratum, and within that its group.
    strata : tuple of str
    resampling : Bootstrap, Permutation or None
    seed : int
    """

    groups: Groups
    values: Integers
    unit: Integers
    cluster: list[str]
    cell: Integers
    strata: Strings
    resampling: Resampling | None
    seed: Seed

    @property
    def cells(self) -> int:
        """Number of strata times that of groups."""
        return len(self.strata) * len(self.groups)

    @cached_property
    def boot(self) -> Floats | None:
        """Counts on resampled clusters, shape (replicates, cells * 2)."""
        if not isinstance(self.resampling, Bootstrap):
            return None
        cells = self.cells
        names, cluster = np.unique(self.cluster, return_inverse=True)
        counts = _sums(cluster * cells + self.cell, self.values, len(names) * cells)
        units, rows = unit_keys(names.tolist()), counts.reshape(len(names), cells * 2)
        blocks = []
        for start, size in block_sizes(self.resampling.replicates, max(len(names), cells)):
            times = unit_counts(self.seed, units, range(start, start + size))
            # Products and sums of whole numbers below 2^53 are exact in any order.
            blocks.append(floats(times) @ rows)
        return np.concatenate(blocks)

    @cached_property
    def null(self) -> Floats | None:
        """Counts with groups exchanged, (permutations, cells, 2); None without draws.

        Nothing can exchange where no set has images of two groups, and no sets of one group each.
        """
        if self.resampling is None:
            return None
        stratum, group = np.divmod(self.cell, len(self.groups))
        exchange = Exchange.within(group, self.unit, stratum, by_row=True)
        n_carriers = len(exchange.pool)
        values, cells = (
            _sums(exchange.carrier, self.values, n_carriers),
            np.empty(n_carriers, dtype=np.int64),
        )
        cells[exchange.carrier] = self.cell
        if not varies(exchange.pool, exchange.group).any():
            return None
        # Where all members of a pool have the same counts, an exchange changes nothing.
        moves = np.any([varies(exchange.pool, column) for column in values.T], axis=0)
        chosen = moves[exchange.pool]
        fixed = _sums(cells[~chosen], values[~chosen], self.cells)
        pool, cells, values = exchange.pool[chosen], cells[chosen], values[chosen]
        order = np.lexsort((values[:, 1], values[:, 0], cells, pool))
        starts = np.append(np.flatnonzero(np.diff(pool[order], prepend=-1)), len(order))
        draws = null_draws(self.resampling, _MOVES // max(len(cells), 1))
        counts = np.tile(fixed, (draws, 1, 1))
        if len(cells):
            # Labels are shuffled further from line to line: every order is as likely again.
            streams = keys(self.seed, "rejections", n_streams=draws)
            add_relabelled(streams, starts, cells[order], values[order], counts)
        return floats(counts)

    def __call__(self, stratum: int | None) -> tuple[Draws, Ends, Iterator[Part]]:
        """Return draws, ends and parts of one stratum or of all (None).

        The draws have the gap, every group's share, and how far that is above all others.
        """
        chosen = slice(None) if stratum is None else slice(stratum, stratum + 1)
        observed = np.column_stack([self.values, np.ones_like(self.cell)])
        shape = -1, len(self.strata), len(self.groups)
        counts = _sums(self.cell, observed, self.cells).reshape(*shape[1:], 3)[chosen].sum(axis=0)
        totals, images = counts[:, :2], counts[:, 2]
        compared = images >= max(self.groups.min_size, 1)
        # Rejected images of each group; several checks of an image count as one.
        successes = totals[:, 0] / np.maximum(totals[:, 1], 1) * images

        def numbers(counts: AnyArray) -> Floats:
            stratum_counts = counts.reshape(*shape, 2)[:, chosen].sum(axis=1)
            with unwarned():
                shares = stratum_counts[..., 0] / stratum_counts[..., 1]
                rejected, checked = (all_others(stratum_counts[..., k] * compared) for k in (0, 1))
                differences = np.where(compared, shares - rejected / checked, np.nan)
            return np.column_stack([gaps(shares, compared), shares, differences])

        draws = Draws.of(
            self.resampling,
            numbers(_sums(self.cell, self.values, self.cells))[0],
            apply_to_draws(numbers, self.boot),
            apply_to_draws(numbers, self.null),
            _NULL,
        )
        ends = _gap_ends(draws, compared, successes, floats(images))
        low = high = nans(len(images))
        if draws.boot is not None:
            # The outer of resampled clusters and Wilson's.
            closed = wilson(successes, floats(images), draws.level)
            resampled = percentile(draws.boot[:, 1 : len(images) + 1], draws.level)
            low, high = np.fmin(closed[0], resampled[0]), np.fmax(closed[1], resampled[1])
        notes = np.where(images == 0, "no images", np.where(compared, "", too_small(self.groups)))
        shares = draws.observed[1 : len(images) + 1]
        groups = group_rows(self.groups, images, shares, low, high, notes.tolist())
        subject = "" if stratum is None else self.strata[stratum]

        def parts() -> Iterator[Part]:
            yield part(
                "rejected_share",
                subject,
                draws,
                0,
                aggregate=Aggregate.DIFFERENCE,
                ends=ends,
                chance_test=compare_with_chance(draws, 0, "higher"),
                n=int(images[compared].sum()),
                by_group=groups,
                reason=explain_undefined(draws.observed[0], _FEW),
            )
            for place, group_value in enumerate(groups, start=1):
                if group_value.n:
                    chance_test = compare_with_chance(draws, place, "either")
                    yield group_part("rejected_share", subject, group_value, chance_test)
            if compared.sum() > 2:
                yield from _against_rest(draws, groups, compared, successes, subject)

        return draws, ends, parts()


def _sums(places: Integers, values: Integers, size: int) -> Integers:
    """Add columns of values (n, k) up by place, shape (many, k)."""
    sums = [np.bincount(places, weights=column, minlength=size) for column in values.T]
    return integers(np.stack(sums, axis=1))


def _gap_ends(draws: Draws, compared: Booleans, successes: Floats, images: Floats) -> Ends:
    """Return the ends of a largest gap.

    The outer of two: intervals of all pairs of groups over resampled clusters, whose lower ends
    are corrected for the number of pairs, and the closed form for independent images, which does
    not shrink to nothing where no image, or every image, is rejected.
    """
    a, b = np.triu_indices(tally(compared), 1)
    if draws.boot is None or not len(a):
        return no_ends
    shares = draws.boot[:, 1 : len(images) + 1][:, compared]
    differences = shares[:, a] - shares[:, b]

    def ends(level: float) -> Span:
        wide = percentile(differences, spread_level(level, len(a)))
        narrow = percentile(differences, level)
        low = max(0.0, float(np.max(wide[0])), float(np.max(-wide[1])))
        high = max(float(np.max(narrow[1])), float(np.max(-narrow[0])))
        closed = simultaneous_gap(successes[compared], images[compared], level)
        return min(low, float(closed[0])), min(1.0, max(high, float(closed[1])))

    return ends


def _against_rest(
    draws: Draws,
    groups: tuple[GroupValue, ...],
    compared: Booleans,
    successes: Floats,
    subject: str,
) -> Iterator[Part]:
    """Yield the share of each compared group minus that of all others.

    The interval is the outer of resampled clusters and Newcombe's.
    """
    images, n_groups = (
        np.array([group_value.n for group_value in groups], dtype=np.float64),
        len(groups),
    )
    closed = AgainstRest.of(np.rint(successes) * compared, images * compared, draws.level)
    low, high = closed.difference.low, closed.difference.high
    if draws.boot is not None:
        resampled = percentile(draws.boot[:, n_groups + 1 :], draws.level)
        low, high = np.fmin(low, resampled[0]), np.fmax(high, resampled[1])
    for place in np.flatnonzero(compared).tolist():
        group_value, difference = groups[place], float(draws.observed[n_groups + 1 + place])
        n = round(float((images * compared).sum())) - group_value.n
        ends = closed.rest.low[place], closed.rest.high[place]
        yield part(
            "rejected_share",
            subject,
            draws,
            n_groups + 1 + place,
            aggregate=Aggregate.AGAINST_REST,
            ends=known_ends(low[place], high[place]),
            chance_test=compare_with_chance(draws, n_groups + 1 + place, "either"),
            n=group_value.n + n,
            by_group=(
                group_value,
                GroupValue(OTHERS, (), n, group_value.value - difference, *ends),
            ),
        )


@metric(
    _rejected(
        name="rejected_share",
        rate=True,
        neutral=None,
        title="Share rejected",
        group_label="share rejected",
        clause="The check {subject} rejects {groups}",
        part="{share} of the images of {group}",
        definition="Share of a group's images that a check rejects for their own content.",
        direction="Higher: more images of the group are rejected.",
        chance="the share when images of a set exchange their groups",
        interval="percentile bootstrap over clusters, never inside Wilson's",
        null="that of the rejection gap, which is tested",
    )
)
def rejected_share(
    rejected: ArrayLike,
    groups: GroupLabels,
    *,
    checks: ArrayLike | None = None,
    sets: Labels | None = None,
    clusters: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Share of images that a check rejects, with that of each group.

    Parameters
    ----------
    rejected, groups, checks, sets, clusters, resampling, rng
        See `equipoise.metrics.rejection_gap`.

    Returns
    -------
    Estimate
        In [0, 1], higher: more images are rejected. Interval: the outer of Wilson's and of
        resampled clusters. `.by` has the share of each group, with the band it has when groups
        are exchangeable.

    Raises
    ------
    InputError
        As `equipoise.metrics.rejection_gap`.

    References
    ----------
    Howard et al. 2024, SocialCounterfactuals, section 3.3.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> m.rejected_share([1, 0, 0, 0] * 30 + [0] * 80, ["women", "men"] * 100)
    <rejected_share 0.150 [0.101, 0.206]; n = 200 in 2 groups>
    """
    rows, excluded = _read_rows(rejected, groups, checks, sets, clusters, None, resampling, rng)
    n, (n_rejected, n_checks) = len(rows.values), rows.values.sum(axis=0).tolist()
    boot = rows.boot

    def ends(level: float) -> Span:
        if boot is None:
            return math.nan, math.nan
        low, high = wilson(n_rejected / n_checks * n, n, level)
        counts = boot.reshape(len(boot), -1, 2).sum(axis=1)
        resampled = percentile(counts[:, 0] / counts[:, 1], level)
        return min(float(low), float(resampled[0])), max(float(high), float(resampled[1]))

    return make_estimate(
        "rejected_share",
        n_rejected / n_checks,
        sizes(rows.groups),
        bootstrap_method(boot, resampling, "clusters, never inside Wilson's"),
        no_chance="all groups together have nothing to exchange",
        by=lambda: (part for part in rows(None)[2] if part.aggregate is Aggregate.VALUE),
        excluded=excluded,
        unit="image",
        ends=ends,
    )


@metric(
    _rejected(
        name="rejected_share",
        of_exclusion=True,
        aggregate=Aggregate.DIFFERENCE,
        title="Rejection gap",
        rest_metric="rejected_share",
        unit="points",
        group_label="share rejected",
        clause="The check {subject} rejects {groups}",
        part="{share} of the images of {group}",
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
    )
)
def rejection_gap(
    rejected: ArrayLike,
    groups: GroupLabels,
    *,
    checks: ArrayLike | None = None,
    sets: Labels | None = None,
    clusters: Labels | None = None,
    strata: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
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
    rng : int or Generator
        Seed.

    Returns
    -------
    Estimate
        In [0, 1], higher is worse. `.by` has the gap of each stratum with every group's share
        (the difference), and each group's share with the band it has when groups are
        exchangeable ("rejected_share"); with three groups or more, each group's share minus that
        of all others ("against_rest"); subject "" over all strata. A set that is
        rejected as a whole takes its images of every group along: give what images fail
        themselves.

    Raises
    ------
    InputError
        When lengths differ, a count is not from 0 to `checks`, or no image has a group.

    References
    ----------
    Howard et al. 2024, SocialCounterfactuals, section 3.3.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> m.rejection_gap([1, 0, 0, 0] * 30 + [0] * 80, ["women", "men"] * 100)
    <rejected_share difference 0.300 [0.211, 0.398]; chance 0.040, p ≤ 0.001, n = 200 in 2 groups>
    """
    rows, excluded = _read_rows(rejected, groups, checks, sets, clusters, strata, resampling, rng)
    groups, labels = rows.groups, rows.strata
    resampled = "image" if sets is None else "set"
    if clusters is not None:
        resampled = "cluster"
    draws, ends, _ = rows(None)
    value, chance_test = float(draws.observed[0]), compare_with_chance(draws, 0, "higher")
    method = NO_REPLICATES if resampling else NO_INTERVAL
    if draws.boot is not None:
        method = (
            f"simultaneous over pairs of groups, bootstrap over clusters, {len(draws.boot)} "
            "replicates; never inside the interval of as many independent images"
        )
    strata_of = (None, *(range(len(labels)) if len(labels) > 1 else ()))
    return make_estimate(
        "rejected_share",
        value,
        sizes(groups),
        method,
        aggregate=Aggregate.DIFFERENCE,
        interval_kind=IntervalKind.SIMULTANEOUS,
        params={"strata": list(labels), "sets": len(np.unique(rows.unit))},
        **chance_test.fields(no_chance_reason(value, resampling)),
        by=lambda: (
            stratum_part for stratum_index in strata_of for stratum_part in rows(stratum_index)[2]
        ),
        excluded=excluded,
        unit=resampled,
        reason=explain_undefined(value, _FEW),
        ends=ends,
    )


def _read_rows(
    rejected: ArrayLike,
    groups: GroupLabels,
    checks: ArrayLike | None,
    sets: Labels | None,
    clusters: Labels | None,
    strata: Labels | None,
    resampling: Resampling | None,
    rng: Seed,
) -> tuple[Rejections, dict[str, int]]:
    """Return the images that were checked and have a group, and how many are left out and why."""
    values, image_groups = _values(rejected, checks), Groups.of(groups)
    n = len(values)
    for name, column in (("groups", image_groups.codes), ("strata", strata)):
        size = n if column is None else shape_of(column)[0]
        if size != n:
            raise InputError(f"{name}: {size} rows; expected {n}, as in rejected")
    not_checked, no_group = values[:, 1] == 0, image_groups.codes < 0
    used = np.flatnonzero(~not_checked & ~no_group)
    if not len(used):
        raise InputError("rejected: no image was checked and has a group; expected at least one")
    sets = np.arange(n) if sets is None else sets
    unit, _ = unit_codes(sets, n, "sets", of="rejected")
    cluster, names = unit_codes(
        sets if clusters is None else clusters, n, "clusters", of="rejected"
    )
    stratum, labels = encode(fill_labels(strata, n), subject="strata")
    if (stratum < 0).any():
        raise InputError(f"strata, row {int(np.argmax(stratum < 0)) + 1}: missing")
    row_clusters, cells = (
        [names[code] for code in cluster[used].tolist()],
        stratum * len(image_groups) + image_groups.codes,
    )
    rows = Rejections(
        image_groups.take(used),
        values[used],
        unit[used],
        row_clusters,
        integers(cells[used]),
        labels,
        resampling,
        rng,
    )
    counts = {
        "not checked": tally(not_checked),
        "missing group": tally(no_group & ~not_checked),
    }
    return rows, excluded_of(rows.groups, counts)


def _values(rejected: Any, checks: Any) -> Integers:
    """Return rejections and checks of each image, shape (n, 2)."""
    counts = real_numbers(rejected, "rejected")
    if not len(counts):
        raise InputError(f"rejected: shape {counts.shape}; expected one number per image, (n,)")
    n_checks = np.ones(len(counts)) if checks is None else real_numbers(checks, "checks")
    if n_checks.shape != counts.shape:
        raise InputError(f"checks: shape {n_checks.shape}; expected {counts.shape}, as rejected")
    rejected_and_checked = np.where(
        np.isnan(counts)[:, None], 0.0, np.stack([counts, n_checks], axis=1)
    )
    wrong = ~(
        (rejected_and_checked[:, 0] >= 0)
        & (rejected_and_checked[:, 0] <= rejected_and_checked[:, 1])
        & (rejected_and_checked == np.rint(rejected_and_checked)).all(axis=1)
    )
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"rejected, row {row + 1}: {counts[row]:g} of {n_checks[row]:g}; expected a whole "
            "number from 0 to the checks made, or NaN where there was none"
        )
    return integers(rejected_and_checked)

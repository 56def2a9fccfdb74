"""Systematic preference: groups that queries rank first on average, tested over subjects."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Unpack

import numpy as np
from scipy import special

from equipoise.core import (
    Booleans,
    Ends,
    Estimate,
    Floats,
    GroupLabels,
    GroupValue,
    Integers,
    NullHypothesis,
    Part,
    Span,
    floats,
    nans,
    no_ends,
    record,
)
from equipoise.metrics.building import (
    NOTHING,
    Against,
    against,
    bootstrap_method,
    group_rows,
    number,
    spread_level,
    too_small,
    untested,
)
from equipoise.metrics.measure import DEFAULT, MAX_DRAWN_CELLS
from equipoise.metrics.rankings.cosines import Scores
from equipoise.metrics.rankings.exchange import UNITS, in_order
from equipoise.metrics.rankings.measures import POOL_ORDER, SET_ORDER, exchanged, weighted_mean
from equipoise.metrics.rankings.pools import Pooling, Ranking, Tops, image_keys, pools_of
from equipoise.metrics.rankings.statistics import Drawn
from equipoise.metrics.spec import POINTS, RANDOM_ORDER, MetricSpec, make_estimate, register
from equipoise.stats.chance import band
from equipoise.stats.draws import varies
from equipoise.stats.intervals import percentile
from equipoise.stats.resampling import Bootstrap, Resampling, level_of, null_draws
from equipoise.stats.streams import Seed, stream, unit_counts, unit_keys, unit_times
from equipoise.stats.threads import added

FEWEST = 6
"""Subjects that a systematic preference needs: fewer have no small p-value."""

_EVERY = (
    "the largest p of these nulls: any subject may as well prefer the other way, or other groups, "
    "and groups of images are exchangeable"
)
_FLIPS = "the preferences of each subject may as well point the other way"
# Images beyond the first k that resampled rankings may reach: so many more, and a factor.
_SPARE, _TIMES = 30, 2


@record
class Preferences:
    """How far each group's share of the first k is from its share of the pool.

    Attributes
    ----------
    tops : Tops
    subjects : sequence of str
    owner : ndarray of int64, shape (p,)
        Subject of each pool.
    """

    tops: Tops
    subjects: Sequence[str]
    owner: Integers

    @cached_property
    def expected(self) -> Floats:
        """Share of each group in each pool, shape (p, groups)."""
        return floats(self.tops.sizes / self.tops.sizes.sum(axis=1, keepdims=True))

    @cached_property
    def compared(self) -> Booleans:
        """Groups that are compared, shape (groups,)."""
        return np.asarray(self.tops.pools.groups.usable & (self.tops.sizes > 0).any(axis=0))

    @cached_property
    def weights(self) -> Floats:
        """What each pool counts in the mean over its subject, shape (p,)."""
        return floats(1.0 / np.bincount(self.owner)[self.owner])

    def by_subject(self, shares: Floats) -> Floats:
        """Return preferences of subjects, (draws, p, groups) to (draws, subjects, groups)."""
        order = np.argsort(self.owner, kind="stable")
        each = ((shares - self.expected) * self.weights[:, None])[:, order]
        starts = np.searchsorted(self.owner[order], np.arange(len(self.subjects)))
        return np.asarray(np.add.reduceat(each, starts, axis=1)) if len(order) else each

    def largest(self, means: Floats, errors: Floats) -> tuple[Floats, Floats]:
        """Return the mean that is largest in standard errors, so scaled and as it is; (draws,)."""
        known = self.compared & (errors > 0)
        sizes = np.abs(means)
        scaled = np.where(known, sizes / np.where(known, errors, 1.0), -1.0)
        rows, place = np.arange(len(means)), scaled.argmax(axis=1)
        return scaled[rows, place], sizes[rows, place]


def systematic_preference(
    scores: Scores,
    groups: GroupLabels,
    *,
    k: int,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
    **pools: Unpack[Pooling],
) -> Estimate:
    """How far a group's share of the K best is from its share of the pool, over subjects.

    Every trained model ranks some group first for a query. Whether it prefers one group on the
    whole is another question: the preferences of a subject are averaged over its queries, and
    those of a group over subjects.

    Parameters
    ----------
    scores, groups, k, resampling, rng, pools
        See `equipoise.metrics.max_skew`.

    Returns
    -------
    Estimate
        Size of the mean preference that is largest in standard errors, in [0, 1]; higher is
        worse. NaN with fewer than 6 subjects. p: the largest of these nulls: preferences that
        point the other way for any subject, or, of more than two groups, to others; and groups
        exchanged between images (in sets, else between units), the same exchange for all queries.
        `.by` has the signed preference of each group, with its interval (bootstrap over subjects,
        and over images that several subjects rank); "preference_strength", the mean over subjects
        of half the sum of absolute preferences, against exchanged images alone; and the same of
        every subject with its preferences by group, untested.

    Raises
    ------
    InputError
        As `max_skew`.

    References
    ----------
    Good 2005, Permutation, Parametric and Bootstrap Tests of Hypotheses.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.normal(size=(6, 60))
    >>> groups = ["women", "men"] * 30
    >>> m.systematic_preference(scores, groups, k=10)
    <systematic_preference 0.033 [0.000, 0.386]; chance 0.054, p = 0.81, n = 60 in 2 groups>
    """
    every = pools_of(scores, groups, **pools)
    ranking = Ranking.of(every, k, _TIMES * k + _SPARE)
    tops = ranking.tops(k)
    names = [every.subjects[every.pools[index].query] for index in tops.pool.tolist()]
    subjects, owner = np.unique(names, return_inverse=True)
    found = Preferences(tops, subjects.tolist(), owner)
    own = found.by_subject(Drawn.of(tops).shares)[0]
    many, boot, tests = len(own), None, (NOTHING,) * (2 + len(every.groups))
    value, reason = math.nan, f"{many} subjects have a ranking; expected at least {FEWEST}"
    if found.compared.sum() < 2:
        reason = "fewer than two groups with rows enough"
    elif many >= FEWEST:
        tests = _tests(found, own, resampling, rng)
        value, reason = float(found.largest(own.mean(axis=0)[None], _errors(own))[1][0]), ""
        if isinstance(resampling, Bootstrap):
            times = unit_counts(rng, unit_keys(found.subjects), range(resampling.replicates))
            boot = weighted_mean(floats(times), own)
            boot += _of_images(found, ranking, pools, resampling.replicates, rng)
    ends = [_ends(boot, [place], many) for place in range(len(every.groups))]
    return make_estimate(
        "systematic_preference",
        value,
        every.counts,
        bootstrap_method(boot, resampling, "subjects and images that they share"),
        params={"k": k, "subjects": many},
        harm="higher",
        **tests[0].fields(untested(value, resampling)),
        by=_parts(found, own, tests, ends, level_of(resampling)),
        excluded=every.excluded,
        unit="subject",
        reason=reason,
        ends=_ends(boot, np.flatnonzero(found.compared).tolist(), many),
    )


def _errors(own: Floats) -> Floats:
    """Return standard errors of means if preferences of subjects are turned round, (groups,)."""
    return floats(np.sqrt((own**2).sum(axis=0)) / len(own))


def _strength(own: Floats) -> Floats:
    """Return the mean over subjects of half the sum of absolute preferences."""
    return floats(np.abs(own).sum(axis=-1).mean(axis=-1) / 2.0)


def _tests(
    found: Preferences, own: Floats, resampling: Resampling | None, rng: Seed
) -> tuple[Against, ...]:
    """Test the largest preference, the strength of preferences, and the preference of each group.

    The largest p-value of all nulls counts, but for strength.
    """
    pools, mean, many = found.tops.pools, own.mean(axis=0)[None], len(found.compared)

    def numbers(drawn: Drawn) -> list[Floats]:
        each = found.by_subject(drawn.shares)
        return [each.mean(axis=1), _strength(each)]

    exchanges = exchanged(found.tops, numbers, resampling, rng)
    if resampling is None or exchanges is None:
        return (NOTHING,) * (2 + many)
    drawn, finest = exchanges[0], resampling.resolution
    images = SET_ORDER if pools.paired else POOL_ORDER if pools.units is None else UNITS
    text = f"{images}; {len(drawn)} permutations"
    flips = null_draws(resampling, MAX_DRAWN_CELLS // own.size)
    signs = 2.0 * stream(rng, "preference").integers(0, 2, (flips, len(own))) - 1.0
    nulls = [
        (drawn, drawn.std(axis=0), text),
        (signs @ own / len(own), _errors(own), f"{_FLIPS}; {flips} draws"),
    ]
    if found.compared.sum() > 2:
        others = _of_other_groups(found, own, flips, rng)
        about = f"each subject may as well prefer other groups; {flips} draws"
        nulls.append((others, others.std(axis=0), about))

    def larger(numbers: Callable[[Floats, Floats], tuple[Floats, Floats]]) -> Against:
        held = []
        for null, errors, about in nulls:
            (tested, shown), value = numbers(null, errors), numbers(mean, errors)[0][0]
            one = against(tested, value, "higher", about, resolution=finest)
            held.append(replace(one, chance=band(shown, method=about)))
        worst = max(held, key=lambda one: one.p_value or 0.0)
        return replace(worst, drawn=f"{_EVERY}; {worst.drawn}")

    def of_group(place: int) -> Against:
        return larger(lambda means, _: (np.abs(means[:, place]), means[:, place]))

    strength = against(exchanges[1], float(_strength(own)), "higher", text, resolution=finest)
    return larger(found.largest), strength, *map(of_group, range(many))


def _of_other_groups(found: Preferences, own: Floats, draws: int, rng: Seed) -> Floats:
    """Return means whose subjects each prefer other groups as strongly, (draws, groups).

    Turned round, a preference for one group of many is one against it: where each subject has a
    favourite of its own, a group that is nobody's would look avoided by all. Shares of small groups
    vary less, so preferences are in units of the standard deviation that their share allows.
    """
    sizes = found.tops.sizes.sum(axis=0)
    # In an order that no name changes.
    places = np.flatnonzero(found.compared)
    places = places[np.lexsort(own[:, places].round(9))]
    unit = np.sqrt(sizes * (sizes.sum() - sizes))[places]

    def add(subject: int) -> list[Floats]:
        dealt = np.tile(own[subject, places] / unit, (draws, 1))
        return [stream(rng, "others", found.subjects[subject]).permuted(dealt, axis=1)]

    means = np.zeros((draws, own.shape[1]))
    means[:, places] = added(add, range(len(own)))[0] * unit / len(own)
    return means


def _of_images(
    found: Preferences, ranking: Ranking, pools: Pooling, replicates: int, rng: Seed
) -> Floats:
    """Return how far resampled images move the means, (replicates, groups); 0 if none is shared.

    Rankings without a shared image vary with their subject already.
    """
    tops, codes = found.tops, found.tops.pools.groups.codes
    blocks = np.array([tops.pools.pools[index].block for index in tops.pool.tolist()])
    if not varies(blocks, found.owner).any():
        return np.zeros((replicates, tops.sizes.shape[1]))
    longest = int(min(ranking.longest, tops.sizes.sum(axis=1).min()))
    items = ranking.tops(longest, whole=True).items[:, :longest]
    seen, place = np.unique(items, return_inverse=True)
    ordered = in_order(items.ravel())
    keys = image_keys([ordered], len(codes), pools)[seen]
    seed = int(stream(rng, "preference", "images").integers(1 << 62))
    times = unit_times(keys, replicates, seed)[:, 1:]

    def add(pool: int) -> list[Floats]:
        reached = np.minimum(times[place[pool]].cumsum(axis=0, dtype=np.int64), tops.k)
        taken = floats(np.diff(reached, axis=0, prepend=0))
        member = codes[items[pool]][:, None] == np.arange(tops.sizes.shape[1])
        return [
            taken.T
            @ member
            / np.maximum(reached[-1:].T, 1)
            * found.weights[pool]
            / len(found.subjects)
        ]

    (moved,) = added(add, range(len(items)))
    return floats(moved - moved.mean(axis=0))


def _ends(boot: Floats | None, places: Sequence[int], subjects: int) -> Ends:
    """Return the interval of one group's preference, or of the largest size of several.

    Percentiles, wider for few subjects (Hesterberg 2015); those of several hold together.
    """
    if boot is None or not len(places):
        return no_ends
    drawn = boot[:, places]

    def ends(level: float) -> Span:
        quantile = special.stdtrit(subjects - 1, 0.5 + spread_level(level, len(places)) / 2.0)
        wide = quantile * math.sqrt(subjects / (subjects - 1))
        low, high = percentile(drawn, 1.0 - 2.0 * float(special.ndtr(-wide)))
        if len(places) > 1:
            low, high = np.maximum(low, -high).clip(0.0), np.maximum(-low, high)
        return float(low.max()), float(high.max())

    return ends


def _parts(
    found: Preferences, own: Floats, tests: Sequence[Against], ends: Sequence[Ends], level: float
) -> Iterator[Part]:
    """Yield each group's preference, then the strength over all subjects and of each."""
    groups, sizes = found.tops.pools.groups, found.tops.sizes.sum(axis=0)
    n, notes = int(sizes.sum()), np.where(groups.usable, "", too_small(groups)).tolist()

    def by_group(values: Floats, ends: Floats) -> tuple[GroupValue, ...]:
        shown = np.where(found.compared, values, np.nan)
        return group_rows(groups, sizes, shown, ends[0], ends[1], notes)

    nothing, known = nans((2, len(groups))), len(own) >= FEWEST
    mean = own.mean(axis=0) if known else nothing[0]
    rows = by_group(mean, np.array([one(level) for one in ends]).T)
    for place in np.flatnonzero(found.compared & known).tolist():
        yield number(
            "systematic_preference", float(mean[place]), subject=groups.names[place], n=n,
            ends=ends[place], level=level, held=tests[2 + place], by_group=rows,
        )  # fmt: skip
    whole = float(_strength(own)) if len(own) else math.nan
    yield number("preference_strength", whole, n=n, held=tests[1])
    for subject, row in zip(found.subjects, own, strict=True):
        rows, strength = by_group(row, nothing), float(_strength(row[None]))
        yield number("preference_strength", strength, subject=subject, n=n, by_group=rows)


_preferred = partial(
    MetricSpec,
    null_kind=NullHypothesis.LARGEST,
    kinds=("retrieval", "similarity", "counterfactuals"),
    threshold=0.05,
    threshold_reason=POINTS,
    unit="points",
    reference="Good 2005, Permutation, Parametric and Bootstrap Tests of Hypotheses",
)
register(
    _preferred(
        name="systematic_preference",
        range=(-1.0, 1.0),
        range_note="of a group; the size of the largest",
        harm="either",
        group_metric="systematic_preference",
        definition=(
            "Share of a group in the top K minus its share of the pool, averaged over the queries "
            "of a subject and then over subjects. As a whole: the size of the one that is largest "
            "in standard errors."
        ),
        direction="Either: above 0 the group is ranked first on the whole, below 0 last.",
        chance="0 for a group; above 0 for the largest",
        interval=(
            "percentile bootstrap over subjects, and over images that several subjects rank, wider "
            "for few subjects; of the largest simultaneous over groups"
        ),
        null=_EVERY,
        sentence=("Over all queries, {direction} in the top {k}{model}, by {size}{groups}."),
    ),
    _preferred(
        name="preference_strength",
        title="Strength of preferences by query",
        range=(0.0, 1.0),
        definition=(
            "Half the sum over groups of the absolute difference between the share of the top K "
            "and that of the pool; mean over subjects, whichever group each prefers."
        ),
        direction="Higher: single queries rank some group first, not always the same.",
        chance="far above 0, as the shares of few images are uneven by chance",
        null=RANDOM_ORDER,
        most="detected",
    ),
)

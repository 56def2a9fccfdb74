"""Systematic preference: groups that queries rank first on average, tested over subjects."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial

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
    Labels,
    NullHypothesis,
    Part,
    Span,
    floats,
    nans,
    no_ends,
    record,
)
from equipoise.metrics.building import (
    UNTESTED,
    ChanceTest,
    bootstrap_method,
    compare_with_null,
    group_rows,
    no_chance_reason,
    number,
    spread_level,
    strictest,
    too_small,
)
from equipoise.metrics.measure import DEFAULT, MAX_DRAWN_CELLS
from equipoise.metrics.rankings.cosines import Scores
from equipoise.metrics.rankings.image_effects import move_by_images
from equipoise.metrics.rankings.metric import (
    FEW_QUERIES,
    exchange_of,
    exchanged,
    order_null,
    weighted_mean,
)
from equipoise.metrics.rankings.pools import Pooling, Ranking, TopK, pools_of
from equipoise.metrics.rankings.statistics import RankedLabels
from equipoise.metrics.registry import metric
from equipoise.metrics.spec import POINTS, RANDOM_ORDER, MetricSpec, make_estimate
from equipoise.stats.chance import band
from equipoise.stats.intervals import percentile
from equipoise.stats.resampling import Bootstrap, Resampling, level_of, null_draws
from equipoise.stats.streams import Seed, stream, unit_counts, unit_keys
from equipoise.stats.threads import sum_results

FEWEST = 6
"""Subjects that a systematic preference needs: fewer have no small p-value."""

_EVERY = (
    "the largest p of these nulls: any subject may as well prefer the other way, or other groups, "
    "and groups of images are exchangeable"
)
_FLIPS = "the preferences of each subject may as well point the other way"
# Images beyond the first k that resampled rankings may reach: so many more, and a factor.
_SPARE, _TIMES = 30, 2


_preferred = partial(
    MetricSpec,
    null_kind=NullHypothesis.LARGEST,
    kinds=("retrieval", "similarity", "counterfactuals"),
    threshold=0.05,
    threshold_reason=POINTS,
    unit="points",
    reference="Good 2005, Permutation, Parametric and Bootstrap Tests of Hypotheses",
)


@record
class Preferences:
    """How far each group's share of the first k is from its share of the pool.

    Attributes
    ----------
    top_k : TopK
    subjects : sequence of str
    owner : ndarray of int64, shape (p,)
        Subject of each pool.
    """

    top_k: TopK
    subjects: Sequence[str]
    owner: Integers

    @classmethod
    def of(cls, top_k: TopK) -> Preferences:
        """Return the preferences of the subjects that have a ranking."""
        pools = top_k.pools
        names = [pools.subjects[pools.pools[index].query] for index in top_k.pool.tolist()]
        subjects, owner = np.unique(names, return_inverse=True)
        return cls(top_k, subjects.tolist(), owner)

    @cached_property
    def cluster(self) -> Integers:
        """Cluster of each subject: those that rank images alike, shape (subjects,)."""
        units = self.top_k.pools.resampled_with(self.top_k.pool)
        first = dict(zip(self.owner.tolist(), units, strict=True))
        return np.unique([first[place] for place in range(len(first))], return_inverse=True)[1]

    @property
    def cluster_names(self) -> list[str]:
        """The first subject of each cluster."""
        first = np.unique(self.cluster, return_index=True)[1]
        return [self.subjects[place] for place in first.tolist()]

    @property
    def effective(self) -> float:
        """Number of independent subjects of as much information, by Kish."""
        sizes = np.bincount(self.cluster)
        return float(len(self.subjects) ** 2 / max((sizes**2).sum(), 1)) / self.inflation

    @property
    def inflation(self) -> float:
        """By how much alike subjects of different clusters raise variances of means."""
        return self.top_k.pools.inflation

    def by_cluster(self, by_subject: Floats) -> Floats:
        """Return sums over clusters, (subjects, groups) to (clusters, groups)."""
        sums = np.zeros((len(self.cluster_names), by_subject.shape[1]))
        np.add.at(sums, self.cluster, by_subject)
        return sums

    @cached_property
    def expected(self) -> Floats:
        """Share of each group in each pool, shape (p, groups)."""
        return floats(self.top_k.sizes / self.top_k.sizes.sum(axis=1, keepdims=True))

    @cached_property
    def compared(self) -> Booleans:
        """Groups that are compared, shape (groups,)."""
        return np.asarray(self.top_k.pools.groups.usable & (self.top_k.sizes > 0).any(axis=0))

    @property
    def several_groups(self) -> bool:
        """Whether two groups or more are compared."""
        return bool(self.compared.sum() > 1)

    @cached_property
    def observed(self) -> Floats:
        """Preferences of the subjects, (subjects, groups)."""
        return floats(self.by_subject(RankedLabels.of(self.top_k).shares)[0])

    @property
    def items(self) -> int:
        """How many items the pools have, those of several counted as often."""
        return int(self.top_k.sizes.sum())

    def by_group(self, values: Floats, low: Floats, high: Floats) -> tuple[GroupValue, ...]:
        """Return the numbers of the groups that are compared, with intervals."""
        groups, sizes = self.top_k.pools.groups, self.top_k.sizes.sum(axis=0)
        notes = np.where(groups.usable, "", too_small(groups)).tolist()
        return group_rows(groups, sizes, np.where(self.compared, values, np.nan), low, high, notes)

    @cached_property
    def weights(self) -> Floats:
        """Weight of each pool in the mean over its subject, shape (p,)."""
        return floats(1.0 / np.bincount(self.owner)[self.owner])

    def by_subject(self, shares: Floats) -> Floats:
        """Return preferences of subjects, (draws, p, groups) to (draws, subjects, groups)."""
        order = np.argsort(self.owner, kind="stable")
        weighted = ((shares - self.expected) * self.weights[:, None])[:, order]
        starts = np.searchsorted(self.owner[order], np.arange(len(self.subjects)))
        return np.asarray(np.add.reduceat(weighted, starts, axis=1)) if len(order) else weighted

    def errors(self, by_subject: Floats) -> Floats:
        """Return standard errors of means if preferences are turned round, (groups,)."""
        squares = self.inflation * (self.by_cluster(by_subject) ** 2).sum(axis=0)
        return floats(np.sqrt(squares) / len(by_subject))

    @property
    def too_few(self) -> str:
        """Say that there are too few subjects that differ."""
        subjects, n_clusters = len(self.subjects), len(self.cluster_names)
        clusters = (
            f" in {n_clusters} clusters that rank images alike" if n_clusters < subjects else ""
        )
        return f"{subjects} subjects{clusters} have a ranking; expected at least {FEWEST}"

    def moves_by_images(
        self, ranking: Ranking, pooling: Pooling, replicates: int, rng: Seed
    ) -> Floats:
        """Return how far images that clusters share move the means, (replicates, groups)."""
        weights = self.weights / len(self.subjects)
        owner = self.cluster[self.owner]
        return move_by_images(ranking, self.top_k, owner, weights, pooling, replicates, rng)

    def largest(self, means: Floats, errors: Floats) -> tuple[Floats, Floats]:
        """Return the mean largest in standard errors, scaled and unscaled, (draws,)."""
        testable = self.compared & (errors > 0)
        sizes = np.abs(means)
        scaled = np.where(testable, sizes / np.where(testable, errors, 1.0), -1.0)
        rows, place = np.arange(len(means)), scaled.argmax(axis=1)
        return scaled[rows, place], sizes[rows, place]


@metric(
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
            "percentile bootstrap over subjects, alike ones together, and over images that several "
            "subjects rank, wider for few subjects; of the largest simultaneous over groups"
        ),
        null=_EVERY,
        sentence=("Over all queries, {direction} in the top {k}{model}, by {size}{groups}."),
    )
)
def systematic_preference(  # noqa: PLR0913 - one keyword for each choice
    scores: Scores,
    groups: GroupLabels,
    *,
    k: int,
    queries: Labels | None = None,
    within: GroupLabels | None = None,
    sets: Labels | None = None,
    units: Labels | None = None,
    subjects: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """How far a group's share of the K best is from its share of the pool, over subjects.

    Every trained model ranks some group first for a query. Whether it prefers one group on the
    whole is another question: the preferences of a subject are averaged over its queries, and
    those of a group over subjects.

    Parameters
    ----------
    scores, groups, k, queries, within, sets, units, resampling, rng
        See `equipoise.metrics.max_skew`.

    Returns
    -------
    Estimate
        Size of the mean preference that is largest in standard errors, in [0, 1]; higher is
        worse. NaN with fewer than 6 subjects that rank images differently: those that rank them
        alike count as one and are resampled together, see `params`. p: the largest of these
        nulls: preferences that point the other way for any subject, or, of more than two groups,
        to others; and groups exchanged between images (in sets, else between units), the same
        exchange for all queries.
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
    <systematic_preference 0.033 [0.000, 0.359]; chance 0.062, p = 0.81, n = 60 in 2 groups>
    """
    all_pools = pools_of(scores, groups, queries, within, sets, units, subjects)
    pooling: Pooling = {"sets": sets, "units": units}
    ranking = Ranking.of(all_pools, k, _TIMES * k + _SPARE)
    preferences = Preferences.of(ranking.top_k(k))
    by_subject = preferences.observed
    n_clusters, boot = len(preferences.cluster_names), None
    tests = _tests(preferences, by_subject, resampling, rng)
    value, reason = math.nan, preferences.too_few
    if not preferences.several_groups:
        reason = "fewer than two groups with rows enough"
    elif n_clusters >= FEWEST:
        mean, errors = by_subject.mean(axis=0), preferences.errors(by_subject)
        value, reason = float(preferences.largest(mean[None], errors)[1][0]), ""
        if isinstance(resampling, Bootstrap):
            replicates = resampling.replicates
            times = unit_counts(rng, unit_keys(preferences.cluster_names), range(replicates))
            resampled = weighted_mean(floats(times[:, preferences.cluster]), by_subject)
            boot = mean + math.sqrt(preferences.inflation) * (resampled - mean)
            boot += preferences.moves_by_images(ranking, pooling, replicates, rng)
    ends = [_ends(boot, [place], n_clusters) for place in range(len(all_pools.groups))]
    return make_estimate(
        "systematic_preference",
        value,
        all_pools.counts,
        bootstrap_method(boot, resampling, "subjects and images that they share", FEW_QUERIES),
        params={
            "k": k,
            "subjects": len(by_subject),
            "independent_subjects": n_clusters,
            "effective_subjects": round(preferences.effective, 1),
        },
        harm="higher",
        **tests[0].fields(no_chance_reason(value, resampling)),
        by=_parts(preferences, by_subject, tests, ends, level_of(resampling)),
        excluded=all_pools.excluded,
        unit="subject",
        reason=reason,
        ends=_ends(boot, np.flatnonzero(preferences.compared).tolist(), n_clusters),
    )


@metric(
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
        gravest="detected",
    )
)
def preference_strength(  # noqa: PLR0913 - one keyword for each choice
    scores: Scores,
    groups: GroupLabels,
    *,
    k: int,
    queries: Labels | None = None,
    within: GroupLabels | None = None,
    sets: Labels | None = None,
    units: Labels | None = None,
    subjects: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """How far the groups' shares of the K best are from those of the pool, query by query.

    Parameters
    ----------
    scores, groups, k, queries, within, sets, units, subjects, resampling, rng
        See `equipoise.metrics.max_skew`.

    Returns
    -------
    Estimate
        Mean over subjects of half the sum of absolute preferences, in [0, 1], without an interval;
        higher is worse. Chance and p: groups exchanged between images, where the systematic
        preference is tested. `.by` has every subject with its preferences by group.

    Raises
    ------
    InputError
        As `max_skew`.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.normal(size=(6, 60))
    >>> groups = ["women", "men"] * 30
    >>> m.preference_strength(scores, groups, k=10)
    <preference_strength 0.133; chance 0.110, p = 0.34, n = 60 in 2 groups>
    """
    pools = pools_of(scores, groups, queries, within, sets, units, subjects)
    preferences = Preferences.of(Ranking.of(pools, k).top_k(k))
    by_subject = preferences.observed
    value = float(_strength(by_subject)) if len(by_subject) else math.nan
    chance_test = _tests(preferences, by_subject, resampling, rng)[1]
    return make_estimate(
        "preference_strength",
        value,
        pools.counts,
        "none: a mean of absolute differences",
        params={"k": k, "subjects": len(by_subject)},
        **chance_test.fields(no_chance_reason(value, resampling)),
        null=exchange_of(pools) if chance_test.null_drawn else NullHypothesis.NONE,
        by=_strengths(preferences, by_subject),
        excluded=pools.excluded,
        unit="subject",
        reason="" if len(by_subject) else preferences.too_few,
    )


def _strength(by_subject: Floats) -> Floats:
    """Return the mean over subjects of half the sum of absolute preferences."""
    return floats(np.abs(by_subject).sum(axis=-1).mean(axis=-1) / 2.0)


def _tests(
    preferences: Preferences, by_subject: Floats, resampling: Resampling | None, rng: Seed
) -> tuple[ChanceTest, ...]:
    """Test the largest preference, the strength of preferences, and the preference of each group.

    The largest p-value of all nulls counts, but for strength.
    """
    pools, n_groups = preferences.top_k.pools, len(preferences.compared)
    if not preferences.several_groups or len(preferences.cluster_names) < FEWEST:
        return (UNTESTED,) * (2 + n_groups)
    mean = by_subject.mean(axis=0)[None]

    def numbers(ranked: RankedLabels) -> list[Floats]:
        subject_preferences = preferences.by_subject(ranked.shares)
        return [subject_preferences.mean(axis=1), _strength(subject_preferences)]

    exchanges = exchanged(preferences.top_k, numbers, resampling, rng)
    if resampling is None or exchanges is None:
        return (UNTESTED,) * (2 + n_groups)
    null_means, finest = exchanges[0], resampling.resolution
    text = f"{order_null(pools)}; {len(null_means)} permutations"
    flips = null_draws(resampling, MAX_DRAWN_CELLS // by_subject.size)
    by_cluster = preferences.by_cluster(by_subject)
    signs = 2.0 * stream(rng, "preference").integers(0, 2, (flips, len(by_cluster))) - 1.0
    flipped = math.sqrt(preferences.inflation) * (signs @ by_cluster) / len(by_subject)
    nulls = [
        (null_means, null_means.std(axis=0), text),
        (flipped, preferences.errors(by_subject), f"{_FLIPS}; {flips} draws"),
    ]
    if preferences.compared.sum() > 2:
        other_groups = _of_other_groups(preferences, by_subject, flips, rng)
        hypothesis = f"each subject may as well prefer other groups; {flips} draws"
        nulls.append((other_groups, other_groups.std(axis=0), hypothesis))

    def larger(numbers: Callable[[Floats, Floats], tuple[Floats, Floats]]) -> ChanceTest:
        chance_tests = []
        for null, errors, null_text in nulls:
            (scaled, sizes), value = numbers(null, errors), numbers(mean, errors)[0][0]
            chance_test = compare_with_null(scaled, value, "higher", null_text, resolution=finest)
            chance_tests.append(replace(chance_test, chance=band(sizes, method=null_text)))
        worst = strictest(chance_tests)
        return replace(worst, null_drawn=f"{_EVERY}; {worst.null_drawn}")

    def of_group(place: int) -> ChanceTest:
        return larger(lambda means, _: (np.abs(means[:, place]), means[:, place]))

    strength = compare_with_null(
        exchanges[1], float(_strength(by_subject)), "higher", text, resolution=finest
    )
    return larger(preferences.largest), strength, *map(of_group, range(n_groups))


def _of_other_groups(preferences: Preferences, by_subject: Floats, draws: int, rng: Seed) -> Floats:
    """Return means with each subject's preferences permuted, (draws, groups).

    Turned round, a preference for one group of many is one against it: where each subject has a
    favourite of its own, a group that is nobody's would look avoided by all. Shares of small groups
    vary less, so preferences are in units of the standard deviation that their share allows.
    """
    sizes = preferences.top_k.sizes.sum(axis=0)
    # In an order that no name changes.
    places = np.flatnonzero(preferences.compared)
    by_cluster = preferences.by_cluster(by_subject)
    places = places[np.lexsort(by_cluster[:, places].round(9))]
    unit = np.sqrt(sizes * (sizes.sum() - sizes))[places]

    names = preferences.cluster_names

    def add(cluster: int) -> list[Floats]:
        dealt = np.tile(by_cluster[cluster, places] / unit, (draws, 1))
        return [stream(rng, "others", names[cluster]).permuted(dealt, axis=1)]

    means = np.zeros((draws, by_subject.shape[1]))
    means[:, places] = sum_results(add, range(len(names)))[0] * unit / len(by_subject)
    return math.sqrt(preferences.inflation) * means


def _ends(boot: Floats | None, places: Sequence[int], subjects: int) -> Ends:
    """Return the interval of one group's preference, or of the largest size of several.

    Percentiles, wider for few subjects (Hesterberg 2015); those of several hold together.
    """
    if boot is None or not len(places):
        return no_ends
    columns = boot[:, places]

    def ends(level: float) -> Span:
        quantile = special.stdtrit(subjects - 1, 0.5 + spread_level(level, len(places)) / 2.0)
        widened = quantile * math.sqrt(subjects / (subjects - 1))
        low, high = percentile(columns, 1.0 - 2.0 * float(special.ndtr(-widened)))
        if len(places) > 1:
            low, high = np.maximum(low, -high).clip(0.0), np.maximum(-low, high)
        return float(low.max()), float(high.max())

    return ends


def _parts(
    preferences: Preferences,
    by_subject: Floats,
    tests: Sequence[ChanceTest],
    ends: Sequence[Ends],
    level: float,
) -> Iterator[Part]:
    """Yield each group's preference, then the strength over all subjects and of each."""
    groups, n = preferences.top_k.pools.groups, preferences.items
    testable = len(preferences.cluster_names) >= FEWEST
    mean = by_subject.mean(axis=0) if testable else nans(len(groups))
    rows = preferences.by_group(mean, *np.array([interval(level) for interval in ends]).T)
    for place in np.flatnonzero(preferences.compared & testable).tolist():
        yield number(
            "systematic_preference", float(mean[place]), subject=groups.names[place], n=n,
            ends=ends[place], level=level, chance_test=tests[2 + place], by_group=rows,
        )  # fmt: skip
    overall_strength = float(_strength(by_subject)) if len(by_subject) else math.nan
    yield number("preference_strength", overall_strength, n=n, chance_test=tests[1])
    yield from _strengths(preferences, by_subject)


def _strengths(preferences: Preferences, by_subject: Floats) -> Iterator[Part]:
    """Yield the strength of each subject's preferences, with these by group."""
    missing = nans(len(preferences.compared))
    for subject, row in zip(preferences.subjects, by_subject, strict=True):
        strength, rows = float(_strength(row[None])), preferences.by_group(row, missing, missing)
        yield number(
            "preference_strength", strength, subject=subject, n=preferences.items, by_group=rows
        )

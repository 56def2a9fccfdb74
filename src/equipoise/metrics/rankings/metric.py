"""Metrics of rankings: a statistic of the groups in ranked order with its record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from inspect import signature
from types import MappingProxyType
from typing import Literal

import numpy as np
import pyarrow as pa

from equipoise.core import (
    Ends,
    Estimate,
    Facts,
    Fields,
    Floats,
    GroupLabels,
    Groups,
    Harm,
    InputError,
    Integers,
    Integers32,
    Labels,
    NullHypothesis,
    Span,
    Variant,
    floats,
    nans,
    numbered,
    parts_to_table,
    record,
    tally,
    unwarned,
)
from equipoise.metrics.building import (
    SCORE,
    ChanceTest,
    bootstrap_method,
    chance_columns,
    compare_with_chance,
    ends_of,
    explain_undefined,
    group_columns,
    no_chance_reason,
    part,
    parts_with_defaults,
    too_small,
)
from equipoise.metrics.documenting import Form
from equipoise.metrics.measure import DEFAULT, MAX_DRAWN_CELLS, Draws
from equipoise.metrics.rankings.cosines import Scores
from equipoise.metrics.rankings.exchange import UNITS, exchange_labels
from equipoise.metrics.rankings.pools import (
    Desired,
    Pool,
    Pools,
    Ranking,
    TopK,
    desired_shares,
    pools_of,
)
from equipoise.metrics.rankings.statistics import RankedLabels, extreme
from equipoise.metrics.registry import OptionTypes
from equipoise.metrics.spec import ANY_NUMBER, OVER_QUERIES, RANDOM_ORDER, MetricSpec, make_estimate
from equipoise.stats.intervals import ClosedForm, jackknife_score
from equipoise.stats.resampling import Bootstrap, Resampling, null_draws
from equipoise.stats.streams import Seed, unit_counts, unit_keys

Distribution = tuple[Floats, Floats]
"""Values and their probabilities."""

POOL_ORDER = "the order within each pool is random"
SET_ORDER = "the order within each counterfactual set is random"
FEW_QUERIES = "none: needs several independent queries or subjects"
_FEW = "fewer than two groups with rows enough"
_TARGETS: Mapping[str, Variant] = MappingProxyType(
    {"uniform": Variant.UNIFORM_TARGET, "pool": Variant.POOL_TARGET}
)


@record
class RankingMetric(Form):
    """A statistic of the groups in ranked order as a metric: call it with scores and groups.

    Attributes
    ----------
    spec : MetricSpec
    statistic : callable
        From `RankedLabels` to a number for each draw and query, shape (draws, queries); NaN where
        there is none. It may also take `desired`, the desired shares (queries, groups), and then
        has a second target; and `first` and `second`, the places of two opposed groups.
    of_prefixes : bool
        Whether it is over all prefixes of the order, not of the first K alone.
    of_groups : str
        Name of the mean of each group, where the statistic has a number for each group, shape
        (draws, queries, groups). The number of a query is then the largest.
    repeats : str
        Metric that tests the same share where two groups are compared; "" where none does.
    group_numbers : callable, optional
        What a query shows for each group, from what the statistic takes: (queries, groups).
        Default: the shares of the first K.
    shows : str
        The same in words, with the field {k}.
    exact : callable, optional
        Every value of a query in random order with its probability, from the `TopK`, desired shares
        and the query's place; None where there are too many.
    limits : callable, optional
        Least and greatest value, from desired shares; default: those of the record.
    at_desired : callable, optional
        What desired shares would give, from these and the opposed groups, for the parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> scores = np.linspace(1, 0, 40)
    >>> groups = ["men"] * 12 + ["women", "men"] * 8 + ["women"] * 12
    >>> m.max_skew(scores, groups, k=10)
    <max_skew 0.693; chance 0.182, p = 0.00044, n = 40 in 2 groups>
    """

    spec: MetricSpec
    statistic: Callable[..., Floats]
    of_prefixes: bool = False
    of_groups: str = ""
    repeats: str = ""
    group_numbers: Callable[..., Floats] | None = None
    shows: str = "share of the first {k}"
    exact: Callable[[TopK, Floats, int], Distribution | None] | None = None
    limits: Callable[[Floats], Span] | None = None
    at_desired: Callable[..., Floats] | None = None

    def __post_init__(self) -> None:
        full_spec = replace(
            self.spec, interval=OVER_QUERIES, null=RANDOM_ORDER, of_whole=True,
            group_label="share of the first images",
        )  # fmt: skip
        vars(self).update(spec=full_spec)

    @cached_property
    def inputs(self) -> frozenset[str]:
        """Names of what the statistic takes."""
        return frozenset(signature(self.statistic).parameters)

    @property
    def options(self) -> OptionTypes:
        """Types of the options that a configuration sets: none."""
        return {}

    @property
    def opposes(self) -> bool:
        """Whether it sets two groups against each other."""
        return "first" in self.inputs

    @property
    def shows_shares(self) -> bool:
        """Whether a query shows the groups' shares of the first K."""
        return self.group_numbers is None and not self.of_groups

    @property
    def harm(self) -> Harm:
        """Which side of its chance level is worse: the largest number of any group is."""
        return "higher" if self.of_groups else self.spec.value_harm

    def __call__(  # noqa: PLR0913 - one keyword for each choice
        self,
        scores: Scores,
        groups: GroupLabels,
        *,
        k: int,
        desired: Desired = "pool",
        first: str | None = None,
        second: str | None = None,
        queries: Labels | None = None,
        within: GroupLabels | None = None,
        sets: Labels | None = None,
        units: Labels | None = None,
        subjects: Labels | None = None,
        resampling: Resampling | None = DEFAULT,
        rng: Seed = 0,
    ) -> Estimate:
        """Return the mean over queries, with each query and the groups' numbers in it.

        Parameters
        ----------
        scores : array-like, shape (n,) or (queries, n), or CosineScores
            Similarity of each item to each query, higher is better.
        groups : array-like (n,), mapping of str to array-like, or Groups
            Groups of the items. Items without a group are left out and counted.
        k : int
            How many of the best items count. A pool of k items or fewer is not estimable. Of
            metrics of prefixes the last prefix, which may be the whole pool.
        first, second : str, optional
            Groups that are set against each other, where there are more than two. By default
            "male" and "female" where two are called so, else their order.
        desired, queries, within, sets, units, subjects, resampling, rng
            See `equipoise.metrics.rankings`.

        Returns
        -------
        Estimate
            Chance: random order. Interval: score, with Student's t by the jackknife over queries;
            a single query has a chance band and p only. `.by` has each query.

        Raises
        ------
        InputError
            When shapes do not fit, a score is not finite, k is below 1, `desired` does not fit, or
            the opposed groups aren't two different ones.
        """
        if not self.opposes and (first, second) != (None, None):
            raise InputError(f"first and second: {self.spec.name} compares all groups")
        pools = pools_of(scores, groups, queries, within, sets, units, subjects)
        (estimate,) = measure_pools(
            pools, [self], k, desired, resampling, rng, opposed=(first, second)
        )
        return estimate


@record
class SecondaryNumber:
    """A secondary number of a metric, with parts of its own.

    Attributes
    ----------
    metric, subject : str
        Of the part of the mean over queries. Without a subject every query has a part too.
    harm : "higher", "lower" or "either"
    variant : Variant
    limits : (float, float)
        Least and greatest value.
    """

    metric: str
    subject: str
    harm: Harm
    variant: Variant = Variant.MAIN
    limits: Span = ANY_NUMBER


@record
class Measurement:
    """A metric of one ranking.

    Attributes
    ----------
    metric : RankingMetric
    top_k : TopK
    desired : "pool", "uniform" or mapping of group name to share
    opposed : tuple of str, optional
        Names of the opposed groups.
    """

    metric: RankingMetric
    top_k: TopK
    desired: Desired
    opposed: tuple[str | None, str | None] = (None, None)

    @property
    def name(self) -> str:
        """Name of the metric."""
        return self.metric.spec.name

    @property
    def groups(self) -> Groups:
        """Groups of all items."""
        return self.top_k.pools.groups

    @cached_property
    def target(self) -> Floats:
        """Desired shares, (queries, groups)."""
        return desired_shares(self.desired, self.top_k)

    @cached_property
    def other_target(self) -> tuple[Variant, Floats] | None:
        """The other of "pool" and "uniform", where it differs and the metric has a target."""
        metric = self.metric
        if "desired" not in metric.inputs or metric.of_groups or isinstance(self.desired, Mapping):
            return None
        name: Literal["pool", "uniform"] = "uniform" if self.desired == "pool" else "pool"
        shares = desired_shares(name, self.top_k)
        same = np.allclose(self.target, shares, rtol=0.0, atol=1e-12)
        return None if same else (_TARGETS[name], shares)

    @cached_property
    def _opposed_places(self) -> dict[str, int]:
        """Places of the opposed groups by parameter; none where none are opposed."""
        if not self.metric.opposes:
            return {}
        names = _opposed(self.groups, *self.opposed)
        return dict(zip(("first", "second"), map(self.groups.names.index, names), strict=True))

    def _applied(self, function: Callable[..., Floats], *first: object, target: Floats) -> Floats:
        """Call a function with what the statistic takes."""
        desired = {"desired": target} if "desired" in self.metric.inputs else {}
        return floats(function(*first, **desired, **self._opposed_places))

    def _values(self, ranked: RankedLabels, target: Floats) -> Floats:
        values = self._applied(self.metric.statistic, ranked, target=target)
        shape = (*ranked.codes.shape[:2], *((ranked.groups,) if self.metric.of_groups else ()))
        if values.shape != shape:
            raise InputError(
                f"metric {self.name!r}: gave numbers of shape {values.shape}; expected {shape}. "
                "To do: return one number for each draw and query"
            )
        self.metric.spec.check_values(values)
        return values

    def main_number(self, ranked: RankedLabels) -> list[Floats]:
        """Return the number of each draw and query, in a list."""
        return self.numbers(ranked)[:1] if self.metric.of_groups else [
            self._values(ranked, self.target)
        ]  # fmt: skip

    def numbers(self, ranked: RankedLabels) -> list[Floats]:
        """Return the number of each draw and query, and secondary ones."""
        values = self._values(ranked, self.target)
        if self.metric.of_groups:
            compared = (self.target > 0) & self.groups.usable
            by_group = map(np.ascontiguousarray, np.moveaxis(values, -1, 0))
            return [extreme(values, compared), *by_group]
        if self.other_target is None:
            return [values]
        return [values, self._values(ranked, self.other_target[1])]

    @cached_property
    def secondary(self) -> tuple[SecondaryNumber, ...]:
        """What the secondary numbers are of."""
        metric = self.metric
        if metric.of_groups:
            names = self.groups.names
            return tuple(SecondaryNumber(metric.of_groups, name, "either") for name in names)
        if self.other_target is None:
            return ()
        variant, shares = self.other_target
        return (SecondaryNumber(self.name, "", metric.harm, variant, self._limits(shares)),)

    @property
    def limits(self) -> Span:
        """Least and greatest value."""
        return self._limits(self.target)

    def _limits(self, target: Floats) -> Span:
        if self.metric.limits is None or not len(target):
            return self.metric.spec.range
        return self.metric.limits(target)

    @property
    def params(self) -> Facts:
        """Parameters that the metric adds."""
        facts: Fields = {name: self.groups.names[at] for name, at in self._opposed_places.items()}
        at_desired = self.metric.at_desired
        if "desired" in self.metric.inputs or at_desired is not None:
            facts["desired"] = _plain(self.desired, self.groups)
        if at_desired is not None:
            values = self._applied(at_desired, self.target, target=self.target)
            facts["at_desired_shares"] = float(values.mean()) if len(values) else np.nan
        if self.metric.of_groups:
            facts["group"] = "largest over groups"
        return facts

    def group_numbers(self, observed: RankedLabels) -> Floats:
        """Return the number of each query for each group, (queries, groups)."""
        if self.metric.group_numbers is not None:
            return self._applied(self.metric.group_numbers, observed, target=self.target)
        values = self._values(observed, self.target) if self.metric.of_groups else observed.shares
        return floats(values[0])

    @cached_property
    def exact(self) -> dict[int, Distribution]:
        """Exact chance by place in `top_k`, of the pools that have it."""
        exact_chance: dict[int, Distribution] = {}
        pools = self.top_k.pools
        if self.metric.exact is not None and not pools.paired and pools.units is None:
            for place in np.flatnonzero(self.top_k.ties == 0).tolist():
                distribution = self.metric.exact(self.top_k, self.target, place)
                exact_chance |= {} if distribution is None else {place: distribution}
        return exact_chance

    def left_out(self, index: int) -> str:
        """Say why a pool is not estimable; "" where it is."""
        if index in self.top_k.pool:
            return ""
        pools = self.top_k.pools
        if not len(pools.pools[index].items):
            return "no item to rank"
        comparable = (pools.sizes[index] > 0).sum() > 1
        return "too small a pool for k" if comparable else "one group in the pool"


def measure_pools(
    pools: Pools,
    metrics: Sequence[RankingMetric],
    k: int,
    desired: Desired,
    resampling: Resampling | None,
    rng: Seed,
    *,
    prefixes: int | None = None,
    opposed: tuple[str | None, str | None] = (None, None),
) -> list[Estimate]:
    """Return the estimate of each metric of one ranking; metrics of one K share draws.

    `prefixes` is the K of metrics of prefixes, by default `k`.
    """
    last = k if prefixes is None else prefixes
    ranking = Ranking.of(pools, k, last)
    measurements, by_length = list[Measurement](), dict[bool, TopK]()
    for metric in metrics:
        whole = metric.of_prefixes
        if whole not in by_length:
            by_length[whole] = ranking.top_k(last if whole else k, inclusive=whole)
        measurements.append(Measurement(metric, by_length[whole], desired, opposed))
    return estimates(measurements, resampling, rng)


def order_null(pools: Pools) -> str:
    """Return the null hypothesis of a random order, as text."""
    if pools.paired:
        return SET_ORDER
    return POOL_ORDER if pools.units is None else UNITS


def permutations(resampling: Resampling, cells: int) -> int:
    """Return how many permutations resolve the finest p-value, within the budget."""
    return null_draws(resampling, MAX_DRAWN_CELLS // max(cells, 1))


def query_weights(
    pools: Pools, chosen: Integers, resampling: Resampling | None, rng: Seed
) -> Floats | None:
    """Return how often each pool's subject is in each bootstrap replicate, shape (replicates, p).

    Subjects that rank images alike are resampled together. None without a bootstrap, and where all
    pools are of one subject.
    """
    subjects = pools.resampled_with(chosen)
    if not isinstance(resampling, Bootstrap) or len(set(subjects)) < 2:
        return None
    return floats(unit_counts(rng, unit_keys(subjects), range(resampling.replicates)))


def weighted_mean(weights: Floats, values: Floats) -> Floats:
    """Return means over pools in every replicate; (r, p) and (p, ...) to (r, ...).

    Values of weight 0 do not enter, infinite ones neither.
    """
    shaped = weights.reshape(*weights.shape, *(1,) * (values.ndim - 1))
    with unwarned():
        sums = np.where(shaped > 0, shaped * values, 0.0).sum(axis=1)
        return floats(sums / shaped.sum(axis=1))


def mean_ends(limits: Span, top_k: TopK, draws: Draws) -> Ends:
    """Return the ends of the mean over queries, by the jackknife over their subjects.

    They are within the range of the metric. Percentiles of replicates where a query's number is
    infinite.
    """
    values, pools = draws.observed[1:], top_k.pools
    if draws.boot is None or not np.isfinite(values).all():
        return ends_of(draws.boot, 0)
    subject = numbered(pools.resampled_with(top_k.pool))
    remaining = len(values) - np.bincount(subject)
    left_out = (values.sum() - np.bincount(subject, values)) / remaining
    return ClosedForm(jackknife_score, (draws.observed[0], (left_out,), limits))


def exchanged(
    top_k: TopK,
    function: Callable[[RankedLabels], Sequence[Floats]],
    resampling: Resampling | None,
    rng: Seed,
) -> list[Floats] | None:
    """Return numbers with exchanged labels, or None if no exchange changes them.

    In pools, units exchange their groups as wholes.
    """
    if resampling is None:
        return None
    pools, items = top_k.pools, top_k.items

    def block(codes: Integers32) -> Sequence[Floats]:
        return function(RankedLabels(codes, top_k))

    within = pools.member
    stratum, units = (pools.block, pools.units) if within is None else (within, None)
    n_draws = permutations(resampling, items.size if units is None else max(items.size, len(units)))
    rows = pools.groups.codes, stratum, units
    blocks = exchange_labels(block, rows, items, n_draws, rng, "retrieval")
    return [np.concatenate(values) for values in zip(*blocks, strict=True)] or None


def estimates(
    measures: Sequence[Measurement], resampling: Resampling | None, rng: Seed
) -> list[Estimate]:
    """Turn measurements into estimates; one ranking and K share draws."""
    by_measure: dict[int, Estimate] = {}
    for top_k in {id(measure.top_k): measure.top_k for measure in measures}.values():
        sharing = [measure for measure in measures if measure.top_k is top_k]
        observed = RankedLabels.of(top_k)
        main = _draws(observed, [measure.numbers for measure in sharing], resampling, rng)
        pooled: Iterator[Draws] = iter(())
        if top_k.pools.paired:
            without_sets = replace(top_k, pools=replace(top_k.pools, member=None))
            functions = [measure.main_number for measure in sharing]
            pooled = _draws(RankedLabels.of(without_sets), functions, resampling, rng)
        for measure in sharing:
            draws = [next(main) for _ in (measure, *measure.secondary)]
            by_measure[id(measure)] = _estimate(
                measure, observed, draws, next(pooled, None), resampling
            )
    return [by_measure[id(measure)] for measure in measures]


def _draws(
    observed: RankedLabels,
    functions: Sequence[Callable[[RankedLabels], list[Floats]]],
    resampling: Resampling | None,
    rng: Seed,
) -> Iterator[Draws]:
    """Yield each number of each function: the mean over pools first, and each pool after it."""
    top_k = observed.top_k
    # Without a ranking there is nothing to exchange.
    resampled = resampling if len(top_k.pool) else None

    def numbers(ranked: RankedLabels) -> list[Floats]:
        return [values for function in functions for values in function(ranked)]

    null = exchanged(top_k, numbers, resampled, rng)
    weights = query_weights(top_k.pools, top_k.pool, resampling, rng)
    for place, (values,) in enumerate(numbers(observed)):
        yield Draws.of(
            resampling,
            np.append(values.mean() if len(values) else np.nan, values),
            None if weights is None else weighted_mean(weights, values)[:, None],
            None if null is None else np.column_stack([null[place].mean(axis=1), null[place]]),
            order_null(top_k.pools),
        )


def _estimate(
    measure: Measurement,
    observed: RankedLabels,
    draws: Sequence[Draws],
    pooled: Draws | None,
    resampling: Resampling | None,
) -> Estimate:
    top_k, value = measure.top_k, float(draws[0].observed[0])
    pools = top_k.pools
    exact = measure.exact if resampling is not None else {}
    ends, chance_test = (
        mean_ends(measure.limits, top_k, draws[0]),
        _compare_mean(measure, draws[0], exact),
    )

    def parts() -> pa.Table:
        tables = [_query_parts(measure, observed, draws[0], exact)]
        for extra, extra_draws in zip(measure.secondary, draws[1:], strict=True):
            tables += _secondary_tables(measure, extra, extra_draws)
        if pooled is not None:
            pool_order_test = compare_with_chance(pooled, 0, measure.metric.harm)
            secondary = part(
                measure.name, "", pooled, 0, ends=ends, chance_test=pool_order_test,
                n=int(top_k.sizes.sum()), variant=Variant.POOL_ORDER,
                shows=f"secondary null: {POOL_ORDER}",
            )  # fmt: skip
            tables.append(parts_to_table([secondary]))
        return pa.concat_tables(tables).combine_chunks()

    reasons = map(measure.left_out, range(len(pools.pools)))
    left_out = Counter(f"queries with {reason}" for reason in reasons if reason)
    null: Fields = {"null": "pool order"}
    if pools.paired:
        null = {"null": "order within sets", "items_without_set": pools.without_set}
    method = bootstrap_method(draws[0].boot, resampling, "queries", FEW_QUERIES)
    if isinstance(ends, ClosedForm) and ends.function is jackknife_score:
        method = f"{SCORE} over queries"
    reason = "no query can be estimated: " + measure.left_out(0) if not len(top_k.pool) else _FEW
    return make_estimate(
        measure.name,
        value,
        pools.counts,
        method,
        params={
            "k": top_k.k,
            **measure.params,
            "queries": len(pools.pools),
            "tied_items": int(top_k.ties.sum()),
            "queries_with_ties": tally(top_k.ties > 0),
            **null,
        },
        null=exchange_of(pools) if chance_test.null_drawn else NullHypothesis.NONE,
        **chance_test.fields(no_chance_reason(value, resampling)),
        harm=measure.metric.harm,
        by=parts,
        excluded={**pools.excluded, **left_out, "empty groups": pools.empty},
        unit="query",
        reason=explain_undefined(value, reason),
        ends=ends,
    )


def _compare_mean(
    measure: Measurement, draws: Draws, exact: Mapping[int, Distribution]
) -> ChanceTest:
    """Hold the mean over queries against chance, exact where every query has exact chance."""
    queries = len(measure.top_k.pool)
    if len(exact) == queries == 1:
        return compare_with_chance(_enumerated(draws, 0, exact[0]), 0, measure.metric.harm)
    chance_test = compare_with_chance(draws, 0, measure.metric.harm)
    if exact and len(exact) == queries and chance_test.chance:
        mean = float(np.mean([(values * mass).sum() for values, mass in exact.values()]))
        chance_test = replace(chance_test, chance=replace(chance_test.chance, mean=mean))
    return chance_test


def exchange_of(pools: Pools) -> NullHypothesis:
    """Return the exchangeable units of pools: members of sets, units or items."""
    if pools.paired:
        return NullHypothesis.WITHIN_SETS
    return NullHypothesis.POOL_ORDER if pools.units is None else NullHypothesis.UNITS


def _enumerated(draws: Draws, place: int, exact: Distribution) -> Draws:
    """Return one pool with every value that random order can give."""
    null, text = exact[0][:, None], f"{POOL_ORDER}; all selections"
    return Draws(draws.observed[[place + 1]], None, (null,), exact[1], draws.level, text)


def _query_parts(
    measure: Measurement, observed: RankedLabels, draws: Draws, exact: Mapping[int, Distribution]
) -> pa.Table:
    """Return a part per pool; a pool that can't be estimated has a reason.

    Column by column: there may be thousands of queries, each with a dozen groups.
    """
    pools, chosen = measure.top_k.pools, measure.top_k.pool
    groups = pools.groups
    group_numbers = nans(pools.sizes.shape)
    group_numbers[chosen] = measure.group_numbers(observed)
    numbers = chance_columns(draws, range(1, len(chosen) + 1), measure.metric.harm)
    for place, distribution in exact.items():
        enumerated = _enumerated(draws, place, distribution)
        for name, column in chance_columns(enumerated, range(1), measure.metric.harm).items():
            numbers[name][place] = column[0]
    by_pool = {}
    at_most = np.zeros(len(pools.pools), dtype=np.bool_)
    at_most[chosen] = numbers.pop("p_at_most")
    for name, values in {"value": draws.observed[1:], **numbers}.items():
        by_pool[name] = nans(len(pools.pools))
        by_pool[name][chosen] = values
    reasons = [
        measure.left_out(index) or explain_undefined(value, _FEW)
        for index, value in enumerate(by_pool["value"])
    ]
    shows, text = [""] * len(reasons), measure.metric.shows.format(k=measure.top_k.k)
    for index, ties in zip(chosen.tolist(), measure.top_k.ties.tolist(), strict=True):
        shows[index] = f"{text}; {ties} items tie for its last places" if ties else text
    nothing = nans(pools.sizes.shape)
    small = np.where(groups.usable, "", too_small(groups))
    note = np.where(pools.sizes > 0, small, "not in the pool")
    sizes = floats(pools.sizes)
    by_group = group_columns(groups, sizes, group_numbers, nothing, nothing, note)
    return parts_with_defaults(
        measure.name, None, **_subjects(pools.pools), **by_pool, p_at_most=at_most, reason=reasons,
        shows=shows, n=pools.sizes.sum(axis=1), by_group=by_group,
    )  # fmt: skip


def _subjects(pools: Sequence[Pool]) -> dict[str, list[str | None]]:
    """Return the columns of parts that name the pools."""
    return {
        "subject": [pool.name for pool in pools],
        "part_of": [pool.part_of for pool in pools],
        "within_value": [pool.within_value for pool in pools],
    }


def _secondary_tables(
    measure: Measurement, extra: SecondaryNumber, draws: Draws
) -> Iterator[pa.Table]:
    """Yield a secondary number: its mean over queries, then each query."""
    top_k, sizes = measure.top_k, measure.top_k.sizes.sum(axis=1)
    pools = top_k.pools.pools
    if len(pools) > 1 or extra.subject:
        chance_test = compare_with_chance(draws, 0, extra.harm)
        ends = mean_ends(extra.limits, top_k, draws)
        n = int(sizes.sum())
        yield parts_to_table(
            [
                part(
                    extra.metric, extra.subject, draws, 0, ends=ends, chance_test=chance_test, n=n,
                    variant=extra.variant,
                )
            ]
        )  # fmt: skip
    if not extra.subject:
        numbers = chance_columns(draws, range(1, len(sizes) + 1), extra.harm)
        ranked = [pools[index] for index in top_k.pool.tolist()]
        variant = [extra.variant.value] * len(sizes)
        yield parts_with_defaults(
            extra.metric,
            None,
            **_subjects(ranked),
            variant=variant,
            value=draws.observed[1:],
            n=sizes,
            **numbers,
        )


def _plain(desired: Desired, groups: Groups) -> str | dict[str, float]:
    if isinstance(desired, str):
        return desired
    return {groups.display_name(str(name)): float(share) for name, share in desired.items()}


def _opposed(groups: Groups, first: str | None, second: str | None) -> tuple[str, str]:
    names = groups.names
    compared = [name for name, usable in zip(names, groups.usable, strict=True) if usable]
    if first is None and second is None and len(compared) == 2:
        lower_names = [name.lower() for name in compared]
        first, second = compared[::-1] if lower_names == ["female", "male"] else compared
    first, second = (name and groups.display_name(name) for name in (first, second))
    if first not in names or second not in names or first == second:
        raise InputError(
            f"first={first!r}, second={second!r}: expected two different groups of "
            f"{', '.join(names)}"
        )
    return first, second

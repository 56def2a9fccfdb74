"""Normalised similarity of groups to a concept, and how far the groups lie apart."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.arrays import Bools, Floats, Indices
from equipoise.core.errors import InputError
from equipoise.core.estimate import Estimate
from equipoise.core.labels import encode
from equipoise.core.parts import Part, parts_to_table
from equipoise.metrics.building import against_chance, bootstrap_method, ends_of, group_rows, part
from equipoise.metrics.measure import DEFAULT, Draws
from equipoise.metrics.rankings.estimates import (
    POOL_ORDER,
    SET_ORDER,
    permutations,
    query_weights,
    weighted_mean,
)
from equipoise.metrics.rankings.exchange import (
    LabelExchange,
    exchange_alone,
    group_sums,
    of_shuffled,
)
from equipoise.metrics.rankings.pools import Pools, Scores, pools_of
from equipoise.metrics.rankings.statistics import deviation
from equipoise.metrics.spec import MetricSpec, make_estimate, register
from equipoise.metrics.values.group_effects import UnitExchange
from equipoise.metrics.values.units import unit_codes
from equipoise.stats.intervals import percentile
from equipoise.stats.resampling import Bootstrap, Exact, Resampling
from equipoise.stats.streams import place_keys, unit_keys, unit_times
from equipoise.stats.threads import added

# Rounding that hides the order in which a matrix product adds, far above its error.
_DECIMALS = 12
# Weights of images that are held at once, over all replicates.
_CELLS = 4_000_000


@dataclass(frozen=True, eq=False)
class Shared:
    """Concepts that score the same images: standardised scores (images, concepts)."""

    places: Indices
    items: Indices
    by_image: Floats = field(repr=False)


@dataclass(frozen=True, eq=False)
class Similarity:
    """Standardised similarities of all pools.

    Attributes
    ----------
    pools : Pools
    shared : tuple of Shared
        The pools that have a value; `places` are their indices.
    keys : ndarray of uint64, shape (n,)
        What each image is resampled with: its unit, else its set, else itself.
    sets : bool
    clusters : ndarray of int64, shape (n,), or None
        Unit of each image.
    """

    pools: Pools
    shared: tuple[Shared, ...]
    keys: npt.NDArray[np.uint64] = field(repr=False)
    sets: bool
    clusters: Indices | None = field(default=None, repr=False)

    @classmethod
    def of(cls, pools: Pools, sets: Any, clusters: Any = None) -> Similarity:
        """Standardise the scores of pools that have several groups and scores."""
        held: dict[int, dict[int, Scores]] = {}
        for index, one in enumerate(pools.pools):
            several = (pools.groups.usable & (pools.sizes[index] > 0)).sum() > 1
            if several and np.ptp(scores := pools.scores(index)) > 0:
                # Pools of one block are pools of the same images.
                held.setdefault(one.block, {})[index] = scores
        shared = [_shared(pools, held.pop(block)) for block in [*held]]
        units = (
            None
            if clusters is None
            else unit_codes(clusters, len(pools.groups.codes), "clusters")[0]
        )
        keys = _image_keys(pools, shared, sets if clusters is None else clusters)
        return cls(pools, tuple(shared), keys, sets is not None, units)

    @cached_property
    def known(self) -> Indices:
        """Indices of the pools that have a value, as `shared` has them."""
        none = np.empty(0, dtype=np.int64)
        return np.concatenate([none, *(one.places for one in self.shared)])

    @property
    def compared(self) -> Bools:
        """Groups of each pool that enter, shape (pools, groups)."""
        return np.asarray((self.pools.sizes > 0) & self.pools.groups.usable)

    @property
    def unit(self) -> str:
        """What the interval of the whole resamples."""
        if len(self.pools.pools) > 1:
            return "query"
        return "unit" if self.clusters is not None else "set" if self.sets else "image"

    @cached_property
    def means(self) -> Floats:
        """Normalised similarity p of every group, (pools, groups); NaN where there is none."""
        found = np.full(self.pools.sizes.shape, np.nan)
        for one in self.shared:
            codes = self.pools.groups.codes[one.items][None]
            found[one.places] = _group_means(one, codes, len(self.pools.groups))[0]
        return found

    def spread(self, p: Floats) -> Floats:
        """Return MAD of p, (..., pools, groups) to (..., pools)."""
        compared = np.broadcast_to(self.compared, p.shape)
        known = np.isin(np.arange(len(self.pools.pools)), self.known)
        return np.asarray(np.where(known, deviation(p, compared), np.nan))

    def why(self, index: int) -> str:
        """Say why a concept has no value."""
        if (self.pools.sizes[index] > 0).sum() < 2:
            return "fewer than two groups in the pool"
        if np.ptp(self.pools.scores(index)) == 0:
            return "all scores are equal"
        return "fewer than two groups with rows enough"

    def exchanged(self, resampling: Resampling, rng: int) -> Floats | None:
        """Return MAD with exchanged groups, (draws, pools); None where nothing can change."""
        many = permutations(resampling, sum(len(one.items) for one in self.shared))
        found = np.full((many, len(self.pools.pools)), np.nan)
        rest, codes = [], self.pools.groups.codes
        for one in self.shared:
            if self.clusters is None and exchange_alone(one.items, codes, self._stratum):
                found[:, one.places] = self._alone(one, many, rng)
            else:
                rest.append(one)
        moved = bool(rest) and self._exchange(rest, found, rng)
        return found if moved or len(rest) < len(self.shared) else None

    @property
    def _stratum(self) -> Indices:
        """What images exchange groups within, shape (n,)."""
        return self.pools.block if self.pools.member is None else self.pools.member

    def _alone(self, one: Shared, draws: int, rng: int) -> Floats:
        """Return MAD of the concepts of images that exchange groups, (draws, concepts)."""
        compared, codes = self.compared[one.places], self.pools.groups.codes[one.items]
        sizes = np.bincount(codes, minlength=compared.shape[1])

        def mad(sums: Floats) -> Floats:
            p = _means_of(sums, sizes)
            return deviation(p, np.broadcast_to(compared, p.shape))

        name = f"similarity, block {self.pools.pools[one.places[0]].block}"
        return np.concatenate(of_shuffled(mad, one.by_image, sizes, draws, rng, name))

    def _exchange(self, some: Sequence[Shared], found: Floats, rng: int) -> bool:
        """Write MAD with exchanged groups, (draws, pools); return whether anything can change."""
        items = np.concatenate([one.items for one in some])
        codes = self.pools.groups.codes
        exchange: LabelExchange | UnitExchange
        if self.pools.member is None and self.clusters is not None:
            exchange = UnitExchange.of(codes, self.pools.block, items, self.clusters)
        else:
            exchange = LabelExchange.of(codes, self._stratum, items)
        if not exchange.moves:
            return False
        edges = np.cumsum([len(one.items) for one in some])[:-1]

        def block(codes: npt.NDArray[np.int32]) -> Floats:
            p = np.full((len(codes), *self.pools.sizes.shape), np.nan)
            for one, drawn in zip(some, np.split(codes, edges, axis=1), strict=True):
                p[:, one.places] = _group_means(one, drawn, len(self.pools.groups))
            return self.spread(p)

        places = np.concatenate([one.places for one in some])
        drawn = np.concatenate(exchange.evaluate(block, len(found), rng, "similarity"))
        found[:, places] = drawn[:, places]
        return True

    def resampled(self, replicates: int, rng: int) -> Floats:
        """Return p of resampled images, shape (replicates, pools, groups)."""
        found = np.full((replicates, *self.pools.sizes.shape), np.nan)
        for one in self.shared:
            codes, keys = self.pools.groups.codes[one.items], self.keys[one.items]
            found[:, one.places] = _resampled(one, codes, keys, found.shape[2], replicates, rng)
        return found


def _shared(pools: Pools, scores: dict[int, Scores]) -> Shared:
    """Standardise the scores of pools of the same images."""
    places = np.array([*scores])
    items = pools.pools[places[0]].items
    by_image, order = np.empty((len(items), len(places))), None
    for column, place in enumerate(places.tolist()):
        row = scores.pop(place).astype(np.float64)
        row -= row.mean()
        row /= row.std()
        if order is None:
            # By score and group, so that permuted rows give the same draws.
            order = np.lexsort((pools.groups.codes[items], row))
        by_image[:, column] = row[order]
    return Shared(places, items[order], by_image)


def _resampled(
    one: Shared,
    codes: npt.NDArray[np.int32],
    keys: npt.NDArray[np.uint64],
    groups: int,
    replicates: int,
    rng: int,
) -> Floats:
    """Return p of resampled images of some concepts, shape (replicates, concepts, groups).

    Images are taken some at a time, with all replicates.
    """
    step = max(1, _CELLS // replicates)

    def add(start: int) -> list[Floats]:
        held = start + np.argsort(codes[start : start + step], kind="stable")
        scores = one.by_image[held]
        weights = unit_times(keys[held], replicates, rng)[:, 1:].T.astype(np.float64)
        sizes = np.bincount(codes[held], minlength=groups)
        parts = [slice(stop - size, stop) for size, stop in zip(sizes, sizes.cumsum(), strict=True)]
        sums = np.stack([weights[:, part] @ scores[part] for part in parts], axis=2)
        counts = np.stack([weights[:, part].sum(axis=1) for part in parts], axis=1)
        return [sums, counts, weights @ scores**2]

    sums, counts, squares = added(add, range(0, len(codes), step))
    total = counts.sum(axis=1)[:, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = sums.sum(axis=2) / total
        spread = np.sqrt(squares / total - mean**2)
        found = (sums / counts[:, None] - mean[..., None]) / spread[..., None]
    return np.asarray(np.round(found, _DECIMALS))


def _group_means(one: Shared, codes: npt.NDArray[np.int32], groups: int) -> Floats:
    """Return the mean standardised score of each group, (draws, concepts, groups)."""
    sums = np.zeros((len(codes), groups, one.by_image.shape[1]))
    counts = np.zeros((len(codes), groups))
    group_sums(np.ascontiguousarray(codes), one.by_image, sums, counts)
    return _means_of(sums, counts, rounded=len(codes) > 1)


def _means_of(sums: Floats, counts: npt.NDArray[Any], *, rounded: bool = True) -> Floats:
    """Return sums (draws, groups, concepts) over counts, shape (draws, concepts, groups)."""
    with np.errstate(invalid="ignore"):
        found = (sums / counts[..., None]).transpose(0, 2, 1)
    return np.asarray(np.round(found, _DECIMALS)) if rounded else found


def _image_keys(pools: Pools, shared: Sequence[Shared], sets: Any) -> npt.NDArray[np.uint64]:
    """Return the key that each image is resampled by: its set's, else its own, shape (n,).

    `sets` may be other units, too.
    """
    keys = np.zeros(len(pools.groups.codes), dtype=np.uint64)
    codes, names = (None, ()) if sets is None else encode(sets, what="sets or clusters")
    start = 0
    for one in shared:
        own = place_keys(start, len(one.items))
        start += len(own)
        if codes is not None:
            held = codes[one.items]
            own = np.where(held >= 0, np.append(unit_keys(names), np.uint64(0))[held], own)
        keys[one.items] = own
    return keys


UNIT_ORDER = "the order of units within each pool is random"


def normalized_similarity_mad(  # noqa: PLR0913 - one keyword for each choice
    scores: Any,
    groups: Any,
    *,
    queries: Any = None,
    within: Any = None,
    sets: Any = None,
    clusters: Any = None,
    units: Any = None,
    resampling: Resampling | None = DEFAULT,
    rng: int = 0,
) -> Estimate:
    """Sum over groups of |p_j − mean p|, with p_j = (mean of group j − mean) / sd of all scores.

    Parameters
    ----------
    scores : array-like, shape (n,) or (queries, n)
        Similarity of each image to each concept.
    groups, queries, within, sets, units
        See `equipoise.metrics.rankings.max_skew`. Images of one counterfactual set are
        resampled together, and exchange their groups within the set.
    clusters : array-like (n,), optional
        Unit of each image, such as the person shown, whose images are resampled together, and,
        without sets, exchange their groups as one where they have one group.
    resampling : Bootstrap, Permutation or None
        None gives the value alone.
    rng : int
        Seed.

    Returns
    -------
    Estimate
        Mean over concepts, 0 or above, higher is worse; for two groups the difference of their
        means in standard deviations. Interval: percentile bootstrap over concepts, over images
        (or sets) for one concept and for the parts. `.by` has one part per concept, with p_j of
        the groups. Groups that are not in the pool take no part in the mean of p.

    Raises
    ------
    InputError
        When shapes do not fit, a score is not finite, or `resampling` is Exact.

    References
    ----------
    Chen & Dou 2022, Table 1 (ddof 0; a sum, as its tables have it).
    """
    if isinstance(resampling, Exact):
        raise InputError("resampling=Exact: not available for similarities; use Permutation()")
    pools = pools_of(scores, groups, queries=queries, within=within, sets=sets, units=units)
    similarity = Similarity.of(pools, sets, clusters)
    boot = None
    if isinstance(resampling, Bootstrap) and len(similarity.known):
        boot = similarity.resampled(resampling.replicates, rng)
    draws = _draws(similarity, boot, resampling, rng)
    value, held = float(draws.observed[0]), against_chance(draws, 0, "higher")
    params: dict[str, Any] = {"queries": len(pools.pools), "null": "images within pools"}
    if sets is not None:
        params |= {"null": "images within sets", "items_without_set": pools.without_set}
    left_out = {
        "queries with one group or equal scores": len(pools.pools) - len(similarity.known),
        "empty groups": int((pools.sizes == 0).all(axis=0).sum()),
    }
    why = "not estimable" if math.isnan(value) else "no set holds several groups"
    if resampling is None and not math.isnan(value):
        why = "no resampling was asked for"
    over = "queries" if similarity.unit == "query" else f"{similarity.unit}s"
    return make_estimate(
        metric="normalized_similarity_mad",
        value=value,
        n=pools.counts,
        method=bootstrap_method(draws.boot, resampling if len(similarity.known) else None, over),
        params=params,
        **held.fields(why),
        by=parts_to_table(_parts(similarity, draws, boot)),
        excluded={**pools.excluded, **{name: many for name, many in left_out.items() if many}},
        unit=similarity.unit,
        reason=similarity.why(0) if math.isnan(value) else "",
        ends=ends_of(draws.boot, 0),
    )


def _draws(
    similarity: Similarity, boot: Floats | None, resampling: Resampling | None, rng: int
) -> Draws:
    """Put the mean over concepts first, and each concept after it."""
    each, known, pools = similarity.spread(similarity.means), similarity.known, similarity.pools
    observed = np.append(each[known].mean() if len(known) else np.nan, each)
    if resampling is None or not len(known):
        return Draws(observed)
    # The replicates of one concept are over images, of several over concepts.
    whole = None if boot is None else similarity.spread(boot)
    if len(pools.pools) > 1:
        weights = query_weights(pools, known, resampling, rng)
        whole = None if weights is None else weighted_mean(weights, each[known])[:, None]
    null = similarity.exchanged(resampling, rng)
    plain = POOL_ORDER if similarity.clusters is None else UNIT_ORDER
    text = SET_ORDER if similarity.sets else plain
    return Draws(
        observed=observed,
        boot=whole,
        null=None if null is None else np.insert(null, 0, null[:, known].mean(axis=1), axis=1),
        level=resampling.level,
        null_text="" if null is None else f"{text}; {len(null)} permutations",
        resolution=resampling.resolution,
        intervals=True,
    )


def _parts(similarity: Similarity, draws: Draws, boot: Floats | None) -> Iterator[Part]:
    """Yield a part per concept with the normalised similarity of each group."""
    spread = None if boot is None else similarity.spread(boot)
    groups, nothing = similarity.pools.groups, np.full(len(similarity.pools.groups), np.nan)
    for index, pool in enumerate(similarity.pools.pools):
        has, low, high = index in similarity.known, nothing, nothing
        if has and boot is not None:
            low, high, _ = percentile(boot[:, index], draws.level)
        sizes = similarity.pools.sizes[index]
        notes = ["" if many else "not in the pool" for many in sizes]
        yield part(
            "normalized_similarity_mad",
            pool.name,
            draws,
            index + 1,
            ends=ends_of(spread if has else None, index),
            held=against_chance(draws, index + 1, "higher"),
            n=len(pool.items),
            by_group=group_rows(groups, sizes, similarity.means[index], low, high, notes),
            reason="" if has else similarity.why(index),
            shows="normalised similarity",
        )


register(
    MetricSpec(
        name="normalized_similarity_mad",
        title="Spread of normalised similarity",
        symbol="MAD",
        kinds=("retrieval", "similarity", "counterfactuals"),
        range="[0, ∞)",
        definition=(
            "Sum over groups of |p_j − mean of p|, with p_j = (mean similarity of group j − mean "
            "of all images) / standard deviation of all images; mean over concepts."
        ),
        threshold=0.2,
        threshold_reason="0.2 standard deviations, where Cohen's band small begins",
        direction="Higher: groups differ more in similarity to the concept.",
        chance="above 0, more so for small and many groups",
        interval=(
            "percentile bootstrap over concepts; of one concept, over images or counterfactual sets"
        ),
        null="images are exchangeable within each counterfactual set, else within the pool",
        reference="Chen & Dou 2022, 'Measuring and Mitigating Bias in Vision-and-Language Models'",
        errata=(
            "The text says that 'doctor' is more similar to women, Table 1 says men. Table 2 "
            "prints two of seven races, so its MAD cannot be recomputed."
        ),
    )
)

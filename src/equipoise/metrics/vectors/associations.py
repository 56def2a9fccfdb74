"""Association scores of embeddings: differential association, WEAT, SC-WEAT, totals, encoders."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import combinations, product
from operator import itemgetter
from typing import Any

import numpy as np

from equipoise.core.arrays import AnyArray, Floats
from equipoise.core.errors import InputError
from equipoise.core.estimate import Estimate
from equipoise.core.parts import Part, parts_to_table
from equipoise.metrics.building import NOTHING, Against, against, ends_of
from equipoise.metrics.measure import DEFAULT, NO_INTERVAL
from equipoise.metrics.spec import COHEN, COSINE, MetricSpec, make_estimate, register
from equipoise.metrics.vectors.partitions import (
    HARM,
    Alternative,
    against_exchanged,
    permutations,
)
from equipoise.metrics.vectors.resampling import Space, Statistic, Weights, row_dots
from equipoise.metrics.vectors.sets import Similarity
from equipoise.stats.resampling import Resampling, level_of
from equipoise.stats.streams import Seed, stream

# A standard deviation that is rounding only, relative to the largest score.
_ROUNDING = 1e-12
# Swaps of two encoders that are enumerated: 2^17 of 17 targets.
_MOST_SWAPPED = 17


def association_score(
    targets: Any,
    a: Any,
    b: Any,
    *,
    similarity: Similarity | None = None,
    units: Mapping[str, Any] | None = None,
    fixed: Collection[str] = (),
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Mean over targets of the mean similarity to one attribute set minus that to another.

    s(w, A, B) = mean over a of sim(w, a) - mean over b of sim(w, b); the score is its mean over w.

    Parameters
    ----------
    targets, a, b : array-like, shape (n, d)
        Embeddings of images or texts, one per row; normalised here. Vectors that are zero or not
        finite are left out and counted in `.excluded`. With `similarity`, whatever it takes. Give
        a and b without members of targets: an item's similarity with itself says nothing of a set.
    similarity : callable, optional
        (targets, attributes) to scores, for models that score pairs; `PairScores` holds a matrix,
        and the sets are then indices of its rows and columns. Default: cosine.
    units : mapping of set name to array-like (n,), optional
        Names of the units that members repeat within (a person, a prompt).
    fixed : collection of set names
        Sets that the interval takes as given, such as declared lists of words.
    resampling : Bootstrap, Permutation or None
        None gives the value alone. The interval needs Bootstrap.
    rng : int or Generator
        Seed.

    Returns
    -------
    Estimate
        In [-2, 2] for cosines; positive: closer to `a`. Either direction can be harm. Interval:
        percentile bootstrap over every set with two members or more that is not `fixed`. Chance
        and p (two-sided): a and b exchange members. `.by` has one row: the mean similarities.

    Raises
    ------
    InputError
        See `equipoise.metrics.vectors.sets.embed`.

    References
    ----------
    Caliskan et al. 2017; Mandal 2024, chapters 6 and 7 (II, ITP, ITA, TT).
    """
    space = Space.of(
        {"targets": targets}, {"a": a, "b": b}, similarity, units, fixed, resampling, rng
    )
    boot = space.replicates(_resampled_score(space))
    value, *near = _score(space.means())[0].tolist()
    tested = space.exchange("a", "b", [space["targets"].mean], "members")
    held = against_exchanged(tested, value, "either", "the members of a and b are exchangeable")
    part = space.part(
        "association_score",
        value,
        boot,
        0,
        n=len(space["targets"]),
        held=held,
        by_group=space.group_values("ab", near, boot, 1),
        shows="mean similarity of the targets to the set",
    )
    return space.estimate("association_score", value, [part], held, boot=boot, pairs=[("a", "b")])


def _score(means: Mapping[str, Floats]) -> Floats:
    near, far = (row_dots(means["targets"], means[name]) for name in ("a", "b"))
    return np.stack([row_dots(means["targets"], means["a"] - means["b"]), near, far], axis=1)


def _resampled_score(space: Space) -> Statistic:
    """Return the score and both mean similarities as a statistic of resampled sets.

    Means of similarities to the targets are taken anew where these are fewer numbers than vectors.
    """
    targets = space["targets"]
    if len(targets) >= targets.dimension:
        return lambda weights: _score(space.means(weights))
    similar = space.near(["targets"], "ab")

    def scores(weights: Weights) -> Floats:
        times = weights["targets"].astype(np.float64)
        with np.errstate(invalid="ignore"):
            near, far = (
                row_dots(times, means) / times.sum(axis=1) for means in similar(weights).values()
            )
        return np.stack([near - far, near, far], axis=1)

    return scores


def differential_association(  # noqa: PLR0913 - one keyword for each choice
    c1: Any,
    c2: Any,
    m_images: Any,
    f_images: Any,
    *,
    similarity: Similarity | None = None,
    units: Mapping[str, Any] | None = None,
    fixed: Collection[str] = ("c1", "c2"),
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Difference of two concepts in their associations with images of two groups.

    s(c1, c2, M, F) = t(c1) - t(c2), t(c) = mean over M of sim(c, m) - mean over F of sim(c, f).

    Parameters
    ----------
    c1, c2 : array-like, shape (n, d)
        Embeddings of each concept's texts.
    m_images, f_images : array-like, shape (n, d)
        Embeddings of the images of each group.
    similarity, units, resampling, rng
        As in `association_score`; concepts are the targets, images the attributes.
    fixed : collection of set names
        Sets that the interval takes as given; by default the concepts' texts.

    Returns
    -------
    Estimate
        In [-4, 4] for cosines; positive: c1 is closer to `m_images` than c2 is. Interval:
        percentile bootstrap over images. Chance and p (two-sided): images exchange their group.
        `.by` has t(c1) and t(c2).

    Raises
    ------
    InputError
        As `association_score`.

    References
    ----------
    Chen & Dou 2022, "Measuring and Mitigating Bias in Vision-and-Language Models".
    """
    concepts, images = {"c1": c1, "c2": c2}, {"m_images": m_images, "f_images": f_images}
    space = Space.of(concepts, images, similarity, units, fixed, resampling, rng)
    boot = space.replicates(lambda weights: _apart(space.means(weights)))
    value, *single = _apart(space.means())[0].tolist()
    contrast = space["c1"].mean - space["c2"].mean
    tested = space.exchange("m_images", "f_images", [contrast], "members")
    held = against_exchanged(tested, value, "either", "images of both groups are exchangeable")
    n = sum(len(space[name]) for name in images)
    parts = [
        space.part("association_score", one, boot, index, subject=name, n=n)
        for index, (name, one) in enumerate(zip(concepts, single, strict=True), start=1)
    ]
    pairs = [("c1", "c2"), ("m_images", "f_images")]
    return space.estimate("differential_association", value, parts, held, boot=boot, pairs=pairs)


def _apart(means: Mapping[str, Floats]) -> Floats:
    groups = means["m_images"] - means["f_images"]
    first, second = (row_dots(means[name], groups) for name in ("c1", "c2"))
    return np.stack([first - second, first, second], axis=1)


def weat(  # noqa: PLR0913 - one keyword for each choice
    x: Any,
    y: Any,
    a: Any,
    b: Any,
    *,
    alternative: Alternative = "greater",
    ddof: int = 1,
    similarity: Similarity | None = None,
    units: Mapping[str, Any] | None = None,
    fixed: Collection[str] = (),
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Effect size of the association of targets x with a, and y with b (WEAT, iEAT).

    d = (mean over x of s - mean over y of s) / standard deviation of s over x and y, where
    s(w, A, B) = mean over a of sim(w, a) - mean over b of sim(w, b).

    Parameters
    ----------
    x, y, a, b : array-like, shape (n, d)
        Embeddings of targets and attributes, images or texts; see `association_score`. Sets may
        have unequal sizes; members of both x and y, or a and b, stay and are told in `.params`.
    alternative : "greater", "less" or "two-sided"
        "greater": x goes with a. Two-sided doubles the smaller p.
    ddof : int
        1: divide by n - 1, as iEAT's code does; 0: by n.
    similarity, units, fixed, resampling, rng
        As in `association_score`.

    Returns
    -------
    Estimate
        d; with equal sizes in [-2, 2] for ddof 0. Bands 0.2, 0.5, 0.8. NaN when all scores are
        equal. Interval: percentile bootstrap over all sets not `fixed`. Chance and p: x and y
        exchange members, keeping their sizes; exact up to 200,000 partitions or 44 targets.
        `.by` has d with the mean score of x and y, and "differential_association", their sum
        over x minus that over y: the same test on another scale.

    Raises
    ------
    InputError
        As `association_score`; or `alternative` is unknown.

    References
    ----------
    Caliskan et al. 2017, Science 356, 183-186 (its strict > is >= here: the observed partition
    counts); Steed & Caliskan 2021.
    """
    space = Space.of({"x": x, "y": y}, {"a": a, "b": b}, similarity, units, fixed, resampling, rng)
    direction = space["a"].mean - space["b"].mean
    return _effect_size("weat", space, direction, alternative, ddof)


def sc_weat(  # noqa: PLR0913 - one keyword for each choice
    w: Any,
    a: Any,
    b: Any,
    *,
    alternative: Alternative = "two-sided",
    ddof: int = 1,
    similarity: Similarity | None = None,
    units: Mapping[str, Any] | None = None,
    fixed: Collection[str] = (),
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Effect size of one target's association with a rather than b (SC-WEAT).

    d = (mean over a of sim(w, a) - mean over b of sim(w, b)) / standard deviation of sim(w, .)
    over a and b.

    Parameters
    ----------
    w : array-like, shape (d,) or (1, d)
        Embedding of the target.
    a, b : array-like, shape (n, d)
        Embeddings of the attributes.
    alternative, ddof, similarity, units, fixed, resampling, rng
        As in `weat`; "greater": w goes with a.

    Returns
    -------
    Estimate
        d, NaN when all similarities are equal. Interval: percentile bootstrap over attributes.
        Chance and p: a and b exchange members. `.by` has d with both mean similarities.

    Raises
    ------
    InputError
        As `weat`; or `w` is more than one target.

    References
    ----------
    Caliskan et al. 2017 (WEFAT); Caliskan et al. 2022 (SC-WEAT).
    """
    target = np.asarray(w)
    target = target[None] if target.ndim == 1 and similarity is None else w
    if np.ndim(target) > 0 and len(target) != 1:
        raise InputError(f"w: {len(target)} targets; expected one, call sc_weat for each")
    space = Space.of({"w": target}, {"a": a, "b": b}, similarity, units, fixed, resampling, rng)
    return _effect_size("sc_weat", space, space["w"].vectors[0], alternative, ddof)


def _effect_size(
    metric: str, space: Space, direction: Floats, alternative: Alternative, ddof: int
) -> Estimate:
    """Return how far x and y, or a and b, lie apart along a direction, in standard deviations."""
    if alternative not in HARM:
        raise InputError(f"alternative={alternative!r}: expected one of {[*HARM]}")
    of_targets = metric == "weat"
    first, second = "xy" if of_targets else "ab"
    x, y = (space[name].dots(direction) for name in (first, second))
    means = [_sum(one) / len(one) for one in (x, y)]
    spread = _spread(np.sort(np.concatenate([x, y])), ddof)
    value = (means[0] - means[1]) / spread if spread else math.nan
    reason = "" if spread else "all scores are equal: their standard deviation is 0"
    similar = space.near("xy", "ab") if of_targets else None

    def effects(weights: Weights) -> Floats:
        scores = x[None], y[None]
        if similar is not None:
            near = similar(weights)
            every = near["a"] - near["b"]
            scores = every[:, : len(x)], every[:, len(x) :]
        return _effects(scores, (weights[first], weights[second]), ddof)

    boot = space.replicates(effects, few=True)
    key = "targets" if of_targets else "attributes"
    tested = space.exchange(first, second, [direction], key)
    null = f"the members of {first} and {second} are exchangeable"
    harm = HARM[alternative]
    held = against_exchanged(tested, value, harm, null, factor=1.0 / (spread or 1.0))
    n = len(x) + len(y)
    by_group = space.group_values((first, second), means, boot, 1)
    what = "association score of" if of_targets else "similarity of the target to"
    parts = [
        space.part(
            metric,
            value,
            boot,
            0,
            n=n,
            held=held,
            by_group=by_group,
            reason=reason,
            shows=f"mean {what} the set",
        )
    ]
    if of_targets:
        apart = _sum(x) - _sum(y)
        parts.append(space.part("differential_association", apart, boot, 3, n=n))
    return space.estimate(
        metric,
        value,
        parts,
        held,
        boot=boot,
        params={"alternative": alternative, "ddof": ddof},
        pairs=[("x", "y"), ("a", "b")] if of_targets else [("a", "b")],
        reason=reason,
        harm=harm,
    )


def _sum(values: Floats) -> float:
    # Sorted, so that the last bit does not depend on the order of rows.
    return float(np.sort(values).sum())


def _spread(pooled: Floats, ddof: int) -> float:
    """Standard deviation of sorted numbers; 0 where it is rounding only."""
    if len(pooled) <= ddof:
        return 0.0
    apart = pooled - pooled.sum() / len(pooled)
    found = math.sqrt((apart * apart).sum() / (len(pooled) - ddof))
    return found if found > _ROUNDING * float(np.abs(pooled).max()) else 0.0


def _effects(scores: tuple[Floats, Floats], times: tuple[AnyArray, AnyArray], ddof: int) -> Floats:
    """Effect size, both means and the difference of sums, shape (replicates, 4)."""
    (x, y), (wx, wy) = scores, (one.astype(np.float64) for one in times)
    nx, ny = wx.sum(axis=1), wy.sum(axis=1)
    sums = (wx * x).sum(axis=1), (wy * y).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = sums[0] / nx, sums[1] / ny
        centre = ((sums[0] + sums[1]) / (nx + ny))[:, None]
        squares = (wx * (x - centre) ** 2).sum(axis=1) + (wy * (y - centre) ** 2).sum(axis=1)
        spread = np.sqrt(squares / np.maximum(nx + ny - ddof, 0))
        flat = spread <= _ROUNDING * max(np.abs(x).max(), np.abs(y).max())
        effect = (means[0] - means[1]) / np.where(flat, np.nan, spread)
    return np.stack([effect, *means, sums[0] - sums[1]], axis=1)


@dataclass(frozen=True, eq=False)
class Scores:
    """Ends of a total absolute association, with the scores of its targets.

    Attributes
    ----------
    names : tuple of str
    observed : ndarray, shape (targets,)
        Association scores.
    boot : ndarray, shape (replicates, targets), or None
    """

    names: tuple[str, ...]
    observed: Floats
    boot: Floats | None

    def __call__(self, level: float) -> tuple[float, float]:
        """Return the ends of the sum of absolute scores."""
        return ends_of(None if self.boot is None else np.abs(self.boot).sum(axis=1))(level)


def total_absolute_association(
    targets: Mapping[str, Any],
    a: Any,
    b: Any,
    *,
    similarity: Similarity | None = None,
    units: Mapping[str, Any] | None = None,
    fixed: Collection[str] = (),
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Sum over targets of the absolute association score with two attribute sets.

    Parameters
    ----------
    targets : mapping of str to array-like, shape (n, d)
        Embeddings of each target.
    a, b, similarity, units, fixed, resampling, rng
        As in `association_score`.

    Returns
    -------
    Estimate
        At least 0, higher is worse; never negative, so chance alone makes it positive. Interval:
        percentile bootstrap, which is biased upwards near 0. Chance and p: a and b exchange
        members, the same exchange for all targets. `.by` has each target's score.

    Raises
    ------
    InputError
        As `association_score`; or a target is called "a" or "b", or there is none.

    References
    ----------
    Mandal 2024, chapter 7 (Tables 7.3 to 7.5).
    """
    if not targets or {"a", "b"} & {*targets}:
        raise InputError(f"targets: {[*targets]}; expected named sets, none called 'a' or 'b'")
    names = tuple(sorted(targets))
    ordered = {name: targets[name] for name in names}
    space = Space.of(ordered, {"a": a, "b": b}, similarity, units, fixed, resampling, rng)

    def scores(means: Mapping[str, Floats]) -> Floats:
        apart = means["a"] - means["b"]
        return np.stack([row_dots(means[name], apart) for name in names], axis=1)

    found = Scores(
        names,
        scores(space.means())[0],
        space.replicates(lambda weights: scores(space.means(weights))),
    )
    tested = space.exchange("a", "b", [space[name].mean for name in names], "members")
    null = "the members of a and b are exchangeable"
    parts = [
        space.part(
            "association_score",
            value,
            found.boot,
            index,
            subject=name,
            n=len(space[name]),
            held=against_exchanged(tested, value, "either", null, itemgetter((slice(None), index))),
        )
        for index, (name, value) in enumerate(zip(names, found.observed.tolist(), strict=True))
    ]
    total = float(np.abs(found.observed).sum())
    held = against_exchanged(tested, total, "higher", null, lambda drawn: np.abs(drawn).sum(axis=1))
    return space.estimate(
        "total_absolute_association",
        total,
        parts,
        held,
        boot=found.boot,
        ends=found,
        pairs=[("a", "b")],
    )


def compare_encoders(
    encoders: Mapping[str, Estimate], *, resampling: Resampling | None = DEFAULT, rng: Seed = 0
) -> Estimate:
    """Difference between encoders in their total absolute association, target by target.

    Parameters
    ----------
    encoders : mapping of str to Estimate
        What `total_absolute_association` gave for each encoder, with the same targets and seed:
        their replicates then resample the same images, and differences are paired.
    resampling : Bootstrap, Permutation or None
        None gives values alone. Intervals come from the estimates.
    rng : int or Generator
        Seed.

    Returns
    -------
    Estimate
        Largest minus smallest total over encoders, at least 0. Chance and p: encoders exchange
        their absolute scores within each target. `.by` has each encoder's total, and
        "difference" of each pair "first - second" with its paired interval and two-sided p.

    Raises
    ------
    InputError
        When there are fewer than two encoders, or their targets differ.

    References
    ----------
    Mandal 2024, chapter 7 (Tables 7.3 to 7.5).
    """
    scores = {name: one.ends for name, one in encoders.items() if isinstance(one.ends, Scores)}
    targets = {one.names for one in scores.values()}
    if len(encoders) < 2 or len(scores) < len(encoders) or len(targets) > 1:
        raise InputError(
            f"encoders: {[*encoders]}; expected two or more results of total_absolute_association "
            "on the same targets"
        )
    sizes = np.stack([np.abs(one.observed) for one in scores.values()])
    totals = sizes.sum(axis=1)
    value = float(totals.max() - totals.min())
    held, level = _swapped(sizes, value, resampling, rng), level_of(resampling)
    n = int(sizes.shape[1])
    parts = [
        Part("total", name, float(total), *one(level), n=n)
        for (name, one), total in zip(scores.items(), totals, strict=True)
    ]
    for (first, a), (second, b) in combinations(scores.items(), 2):
        both = np.abs(np.stack([a.observed, b.observed]))
        apart = float(both[0].sum() - both[1].sum())
        ends = math.nan, math.nan
        if a.boot is not None and b.boot is not None and a.boot.shape == b.boot.shape:
            ends = ends_of(np.abs(a.boot).sum(axis=1) - np.abs(b.boot).sum(axis=1))(level)
        p = _swapped(both, abs(apart), resampling, rng).p_value
        known = math.nan if p is None else p
        parts.append(Part("difference", f"{first} - {second}", apart, *ends, p_value=known, n=n))
    return make_estimate(
        metric="encoder_difference",
        value=value,
        n=dict.fromkeys(encoders, n),
        method=NO_INTERVAL if resampling is None else "none; pairs: paired percentile bootstrap",
        **held.fields("no resampling was asked for"),
        by=parts_to_table(parts),
        unit="target",
    )


def _swapped(sizes: Floats, value: float, resampling: Resampling | None, seed: Seed) -> Against:
    """Hold the range of totals against encoders (encoders, targets) exchanged within targets."""
    if resampling is None:
        return NOTHING
    encoders, targets = sizes.shape
    weights = None
    if encoders == 2 and targets <= _MOST_SWAPPED:
        swaps = np.array([*product((False, True), repeat=targets)])
        first = np.where(swaps, sizes[1], sizes[0]).sum(axis=1)
        null = np.stack([first, sizes.sum() - first], axis=1)
        weights, text = 1.0, f"all {len(null)} swaps enumerated"
    else:
        draws = permutations(sizes.size, resampling)
        tiled = np.broadcast_to(sizes.T, (draws, targets, encoders))
        null = stream(seed, "permutation", "encoders").permuted(tiled, axis=2).sum(axis=1)
        text = f"{draws} random swaps"
    ranges = null.max(axis=1) - null.min(axis=1)
    text = f"encoders are exchangeable within each target; {text}"
    finest = resampling.resolution
    return against(ranges, value, "higher", text, weights=weights, resolution=finest)


_association = partial(
    MetricSpec, kinds=("associations",), harm="either", threshold_reason=COSINE, chance="0"
)
_effect = partial(
    _association,
    symbol="d",
    range="[-2, 2] for equal sizes and ddof 0, slightly wider otherwise",
    threshold=0.2,
    threshold_reason=COHEN,
    chance="0, with a wide band for few members",
)
_total = partial(MetricSpec, kinds=("associations",), reference="Mandal 2024, chapter 7")
register(
    _association(
        name="association_score",
        title="Association score",
        kinds=("associations", "text_to_image"),
        range="[-2, 2] for cosines",
        definition=(
            "Mean over targets of the mean similarity to one attribute set minus that to another. "
            "MCAS calls it II, ITP, ITA or TT by modality."
        ),
        direction="Either: positive is closer to the first attribute set, negative to the second.",
        threshold=0.01,
        interval="percentile bootstrap over every set of two members or more that is not fixed",
        null="members of both attribute sets are exchangeable",
        reference="Caliskan et al. 2017; Mandal 2024, chapters 6 and 7",
    ),
    _association(
        name="differential_association",
        title="Differential association",
        range="[-4, 4] for cosines; a sum within weat",
        definition="Association of a concept with images of two groups, minus that of another.",
        direction="Either: positive means the first concept is closer to the first group.",
        threshold=0.02,
        interval="percentile bootstrap over images, texts fixed",
        null="images of both groups are exchangeable",
        reference="Chen & Dou 2022",
    ),
    _effect(
        name="weat",
        title="WEAT effect size",
        definition="Mean association score of x minus that of y, in standard deviations of both.",
        direction="Either: positive means x goes with a and y with b.",
        interval="percentile bootstrap over every set of two members or more that is not fixed",
        null="members of x and y are exchangeable; exact up to 200,000 partitions or 44 targets",
        reference="Caliskan et al. 2017; Steed & Caliskan 2021 (iEAT)",
        errata="The source leaves out the observed partition, which is not valid: here it counts.",
    ),
    _effect(
        name="sc_weat",
        title="SC-WEAT effect size",
        definition="Mean similarity to a minus that to b, in standard deviations of both.",
        direction="Either: positive goes with a, negative with b.",
        interval="percentile bootstrap over attributes",
        null="members of a and b are exchangeable",
        reference="Caliskan et al. 2017; Caliskan et al. 2022 (SC-WEAT)",
    ),
    _total(
        name="total_absolute_association",
        title="Total absolute association",
        range="[0, 2 x targets] for cosines",
        definition="Sum over targets of the absolute association score.",
        direction="Higher: targets are associated more with either group.",
        chance="above 0, more so for small sets and many targets",
        interval="percentile bootstrap, biased upwards near 0",
        null="members of a and b are exchangeable, alike for all targets",
    ),
    _total(
        name="encoder_difference",
        of_models=True,
        title="Difference between encoders",
        range="[0, infinity)",
        definition="Largest minus smallest total absolute association over encoders.",
        direction="Higher: encoders differ more.",
        chance="above 0",
        interval="paired percentile bootstrap for pairs; none for the largest",
        null="encoders are exchangeable within each target",
    ),
)

"""Association scores of embeddings: differential association, WEAT, SC-WEAT, totals, encoders."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial, reduce
from itertools import combinations, product

import numpy as np
from numpy.typing import ArrayLike

from equipoise.core import (
    Estimate,
    Floats,
    InputError,
    IntervalKind,
    NullHypothesis,
    Part,
    Span,
    Strings,
    record,
    unwarned,
)
from equipoise.metrics.building import SPREAD, UNTESTED, ChanceTest, compare_with_null
from equipoise.metrics.measure import DEFAULT, NO_INTERVAL
from equipoise.metrics.registry import metric
from equipoise.metrics.spec import (
    ANY_NUMBER,
    COHEN,
    COSINE,
    LEANING,
    OF_TARGETS,
    SETS,
    MetricSpec,
    make_estimate,
)
from equipoise.metrics.vectors.resampling import (
    HARM,
    Alternative,
    Jackknife,
    SetUnits,
    Space,
    compare_with_exchanges,
    ends_at,
    permutations,
    with_ones,
)
from equipoise.metrics.vectors.sets import Similarity
from equipoise.stats.intervals import jackknife_t
from equipoise.stats.mean_norms import MeanNorm
from equipoise.stats.resampling import Resampling, level_of
from equipoise.stats.streams import Seed, stream

# A standard deviation that is rounding only, relative to the largest score.
_ROUNDING = 1e-12
# Subject of the part of WEAT whose interval is about other attributes like these, too.
VARIED = "attributes vary"
# Swaps of two encoders that are enumerated: 2^17 of 17 targets.
_MOST_SWAPPED = 17
# Draws of scores for the bounds of a total.
_DRAWS = 400
# Skewness beyond which the ends of an effect size are no confidence interval.
_SKEWED = 0.75


_association = partial(
    MetricSpec,
    null_kind=NullHypothesis.MEMBERS,
    kinds=("associations",),
    harm="either",
    threshold_reason=COSINE,
    chance="0",
    sentence=LEANING,
)
_effect = partial(
    _association,
    symbol="d",
    range=(-2.0, 2.0),
    range_note="for equal sizes and ddof 0, slightly wider otherwise",
    threshold=0.2,
    threshold_reason=COHEN,
    chance="0, with a wide band for few members",
)
_total = partial(MetricSpec, kinds=("associations",), reference="Mandal 2024, chapter 7")


@metric(
    _association(
        name="association_score",
        needs=SETS,
        takes=("modalities", "each_member", *OF_TARGETS),
        kinds=("associations", "text_to_image"),
        range=(-2.0, 2.0),
        range_note="for cosines",
        definition=(
            "Mean over targets of the mean similarity to one attribute set minus that to another. "
            "MCAS calls it II, ITP, ITA or TT by modality."
        ),
        direction="Either: positive is closer to the first attribute set, negative to the second.",
        threshold=0.01,
        interval="Student's t by the jackknife over every set of two members or more not fixed",
        null="members of both attribute sets are exchangeable",
        reference="Caliskan et al. 2017; Mandal 2024, chapters 6 and 7",
    )
)
def association_score(
    targets: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    *,
    fixed: Collection[str] = (),
    similarity: Similarity | None = None,
    units: SetUnits | None = None,
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
        None gives the value alone. The interval needs no Bootstrap.
    rng : int or Generator
        Seed.

    Returns
    -------
    Estimate
        In [-2, 2] for cosines; positive: closer to `a`. Either direction can be harm. Interval:
        Student's t by the jackknife over every set of two members or more not in `fixed`. Chance
        and p (two-sided): a and b exchange members. `.by` has one row: the mean similarities.

    Raises
    ------
    InputError
        See `equipoise.metrics.vectors.sets.embed`.

    References
    ----------
    Caliskan et al. 2017; Mandal 2024, chapters 6 and 7 (II, ITP, ITA, TT).

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> rng = np.random.default_rng(0)
    >>> science, art, men, women = (
    ...     rng.normal(size=(4, 12, 8)) + np.eye(4, 8)[[0, 1, 0, 1], None]
    ... )
    >>> m.association_score(science, men, women)
    <association_score 0.124 [−0.043, 0.290]; chance 0.001, p = 0.094, n = 36 in 3 groups>
    """
    space = Space.of(
        {"targets": targets}, {"a": a, "b": b}, fixed, similarity, units, resampling, rng
    )
    to_a, to_b = {("targets", "a"): 1.0}, {("targets", "b"): 1.0}
    values, jackknife = space.bilinear([to_a | {("targets", "b"): -1.0}, to_a, to_b])
    value, *similar = values.tolist()
    tested = space.exchange("a", "b", [space["targets"].mean], "members")
    chance_test = compare_with_exchanges(
        tested, value, "either", "the members of a and b are exchangeable"
    )
    part = space.part(
        "association_score",
        value,
        jackknife,
        0,
        n=len(space["targets"]),
        chance_test=chance_test,
        by_group=space.group_values("ab", similar, jackknife, 1),
        shows="mean similarity of the targets to the set",
    )
    return space.estimate(
        "association_score", value, [part], chance_test, jackknife=jackknife, pairs=[("a", "b")]
    )


@metric(
    _effect(
        name="weat",
        needs=SETS,
        takes=("modalities", "alternative", "ddof", "studentized"),
        targets="two",
        title="WEAT effect size",
        aliases=("ieat", "effect_size_d"),
        definition=(
            "Mean association score of x minus that of y, in standard deviations of both: about "
            "the attribute sets as given."
        ),
        direction="Either: positive means x goes with a and y with b.",
        interval="Student's t by the jackknife over targets, of Fisher's z",
        null="members of x and y are exchangeable; exact up to 200,000 partitions or 44 targets",
        reference="Caliskan et al. 2017; Steed & Caliskan 2021 (iEAT)",
        errata="The source leaves out the observed partition, which is not valid: here it counts.",
    )
)
def weat(  # noqa: PLR0913 - one keyword for each choice
    x: ArrayLike,
    y: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    *,
    alternative: Alternative = "two-sided",
    ddof: int = 1,
    studentized: bool = False,
    fixed: Collection[str] = ("a", "b"),
    similarity: Similarity | None = None,
    units: SetUnits | None = None,
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
    alternative : "two-sided", "greater" or "less"
        "greater": x goes with a, a hypothesis declared before the data. Two-sided doubles the
        smaller p, so that swapping x and y, or a and b, changes the sign alone.
    ddof : int
        1: divide by n - 1, as iEAT's code does; 0: by n.
    studentized : bool
        Test the difference in units of its own standard error, which allows for sets of unequal
        sizes and spreads. The classic test's p is too small where the smaller set spreads more:
        `.params["spread_ratio"]` is then above 1.
    similarity, units, resampling, rng
        As in `association_score`; the interval needs no Bootstrap.
    fixed : collection of set names
        Sets that the interval takes as given. d is about the attribute sets as they are, unless
        they are left out here.

    Returns
    -------
    Estimate
        d; with equal sizes in [-2, 2] for ddof 0. Bands 0.2, 0.5, 0.8. NaN when all scores are
        equal. Interval: Student's t by the jackknife over targets, of Fisher's z of d; called a
        resampling spread where scores have a skewness beyond 0.75 within their set. Chance and p: x
        and y exchange members, keeping their sizes; exact up to 200,000 partitions or 44 targets.
        `.by` has d with the mean score of x and y; "weat_statistic", the sum over x minus
        that over y, which has the same test; and d with the interval that holds for other
        attributes like these ("attributes vary").

    Raises
    ------
    InputError
        As `association_score`; or `alternative` is unknown.

    References
    ----------
    Caliskan et al. 2017, Science 356, 183-186 (its strict > is >= here: the observed partition
    counts); Steed & Caliskan 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> rng = np.random.default_rng(0)
    >>> science, art, men, women = (
    ...     rng.normal(size=(4, 12, 8)) + np.eye(4, 8)[[0, 1, 0, 1], None]
    ... )
    >>> m.weat(science, art, men, women)
    <weat 1.100 [0.124, 1.636]; chance −0.022, p = 0.0049, n = 48 in 4 groups>
    """
    space = Space.of({"x": x, "y": y}, {"a": a, "b": b}, fixed, similarity, units, resampling, rng)
    effect = _EffectSize(space, "x", "y", space["a"].mean - space["b"].mean, ddof)
    jackknife = effect.jackknife(space)

    def parts() -> Iterator[Part]:
        yield space.part("weat_statistic", effect.difference, jackknife, 3, n=effect.n)
        wider = replace(space, fixed={*fixed} - {"a", "b"})
        if wider.varied != space.varied:
            wider_jackknife = effect.jackknife(wider)
            yield space.part("weat", effect.value, wider_jackknife, 0, subject=VARIED, n=effect.n)

    return effect.estimate("weat", jackknife, alternative, parts, studentized=studentized)


@metric(
    _association(
        name="weat_statistic",
        title="WEAT test statistic",
        fold="weat",
        range=ANY_NUMBER,
        definition="Sum of association scores of x minus that of y: it grows with their sizes.",
        direction="Either: positive means x goes with a and y with b.",
        threshold_reason="",
        interval="Student's t by the jackknife over targets",
        null="members of x and y are exchangeable",
        reference="Caliskan et al. 2017",
    )
)
def weat_statistic(  # noqa: PLR0913 - one keyword for each choice
    x: ArrayLike,
    y: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    *,
    fixed: Collection[str] = ("a", "b"),
    similarity: Similarity | None = None,
    units: SetUnits | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Sum of the association scores of x minus that of y.

    Parameters
    ----------
    x, y, a, b, fixed, similarity, units, resampling, rng
        As in `weat`.

    Returns
    -------
    Estimate
        Positive: x goes with a and y with b. Interval: Student's t by the jackknife over targets.
        `weat` tests it.

    Raises
    ------
    InputError
        As `association_score`.

    References
    ----------
    Caliskan et al. 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> rng = np.random.default_rng(0)
    >>> science, art, men, women = (
    ...     rng.normal(size=(4, 12, 8)) + np.eye(4, 8)[[0, 1, 0, 1], None]
    ... )
    >>> m.weat_statistic(science, art, men, women)
    <weat_statistic 2.942 [1.004, 4.881]; n = 48 in 4 groups>
    """
    space = Space.of({"x": x, "y": y}, {"a": a, "b": b}, fixed, similarity, units, resampling, rng)
    effect = _EffectSize(space, "x", "y", space["a"].mean - space["b"].mean, ddof=1)
    jackknife = effect.jackknife(space)
    return space.estimate(
        "weat_statistic", effect.difference, (), UNTESTED, jackknife=jackknife,
        ends=ends_at(jackknife, 3), no_chance="weat has the same test",
        pairs=[("x", "y"), ("a", "b")],
    )  # fmt: skip


@metric(
    _effect(
        name="sc_weat",
        needs=SETS,
        takes=("modalities", "alternative", "ddof"),
        targets="members",
        title="SC-WEAT effect size",
        aliases=("sc-weat", "wefat"),
        definition="Mean similarity to a minus that to b, in standard deviations of both.",
        direction="Either: positive goes with a, negative with b.",
        interval="Student's t by the jackknife over attributes, of Fisher's z",
        null="members of a and b are exchangeable",
        reference="Caliskan et al. 2017; Caliskan et al. 2022 (SC-WEAT)",
    )
)
def sc_weat(  # noqa: PLR0913 - one keyword for each choice
    w: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    *,
    alternative: Alternative = "two-sided",
    ddof: int = 1,
    fixed: Collection[str] = (),
    similarity: Similarity | None = None,
    units: SetUnits | None = None,
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
        d, NaN when all similarities are equal. Interval: as of `weat`, over attributes. Chance
        and p: a and b exchange members. `.by` has d with both mean similarities.

    Raises
    ------
    InputError
        As `weat`; or `w` is more than one target.

    References
    ----------
    Caliskan et al. 2017 (WEFAT); Caliskan et al. 2022 (SC-WEAT).

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> rng = np.random.default_rng(0)
    >>> science, art, men, women = (
    ...     rng.normal(size=(4, 12, 8)) + np.eye(4, 8)[[0, 1, 0, 1], None]
    ... )
    >>> m.sc_weat(science[0], men, women)
    <sc_weat 0.350 [−0.539, 1.112]; chance −0.008, p = 0.4, n = 25 in 3 groups>
    """
    shape = np.shape(w)
    single = len(shape) == 1 and similarity is None
    if shape and not single and shape[0] != 1:
        raise InputError(f"w: {shape[0]} targets; expected one, call sc_weat for each")
    target = np.asarray(w)[None] if single else w
    space = Space.of({"w": target}, {"a": a, "b": b}, fixed, similarity, units, resampling, rng)
    effect = _EffectSize(space, "a", "b", space["w"].vectors[0], ddof)
    return effect.estimate("sc_weat", effect.jackknife(space), alternative)


@metric(
    _association(
        name="differential_association",
        needs=SETS,
        takes=("modalities", "resample_texts"),
        targets="two",
        range=(-4.0, 4.0),
        range_note="for cosines",
        definition="Association of a concept with images of two groups, minus that of another.",
        direction="Either: positive means the first concept is closer to the first group.",
        threshold=0.02,
        interval="Student's t by the jackknife over images, texts fixed",
        null="images of both groups are exchangeable",
        reference="Chen & Dou 2022",
    )
)
def differential_association(  # noqa: PLR0913 - one keyword for each choice
    c1: ArrayLike,
    c2: ArrayLike,
    m_images: ArrayLike,
    f_images: ArrayLike,
    *,
    fixed: Collection[str] = ("c1", "c2"),
    similarity: Similarity | None = None,
    units: SetUnits | None = None,
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
        Student's t by the jackknife over images. Chance and p (two-sided): images exchange their
        group. `.by` has t(c1) and t(c2).

    Raises
    ------
    InputError
        As `association_score`.

    References
    ----------
    Chen & Dou 2022, "Measuring and Mitigating Bias in Vision-and-Language Models".

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> rng = np.random.default_rng(0)
    >>> science, art, men, women = (
    ...     rng.normal(size=(4, 12, 8)) + np.eye(4, 8)[[0, 1, 0, 1], None]
    ... )
    >>> m.differential_association(science, art, men, women)
    <differential_association 0.245 [−0.019, 0.510]; chance 0.002, p = 0.066, n = 48 in 4 groups>
    """
    concepts, images = {"c1": c1, "c2": c2}, {"m_images": m_images, "f_images": f_images}
    space = Space.of(concepts, images, fixed, similarity, units, resampling, rng)
    first, second = ({(name, "m_images"): 1.0, (name, "f_images"): -1.0} for name in concepts)
    contrast = first | {pair: -times for pair, times in second.items()}
    values, jackknife = space.bilinear([contrast, first, second])
    value, *single = values.tolist()
    direction = space["c1"].mean - space["c2"].mean
    tested = space.exchange("m_images", "f_images", [direction], "members")
    chance_test = compare_with_exchanges(
        tested, value, "either", "images of both groups are exchangeable"
    )
    n = sum(len(space[name]) for name in images)
    parts = [
        space.part("association_score", score, jackknife, index, subject=name, n=n)
        for index, (name, score) in enumerate(zip(concepts, single, strict=True), start=1)
    ]
    pairs = [("c1", "c2"), ("m_images", "f_images")]
    return space.estimate(
        "differential_association", value, parts, chance_test, jackknife=jackknife, pairs=pairs
    )


@record
class _EffectSize:
    """Difference of two sets along a direction, in pooled standard deviations.

    Attributes
    ----------
    space : Space
    first_name, second_name : str
        The two sets.
    direction : ndarray, shape (d,)
    ddof : int
    """

    space: Space
    first_name: str
    second_name: str
    direction: Floats
    ddof: int

    @cached_property
    def first(self) -> Floats:
        """Scores of the first set."""
        return self.space[self.first_name].dots(self.direction)

    @cached_property
    def second(self) -> Floats:
        """Scores of the second set."""
        return self.space[self.second_name].dots(self.direction)

    @property
    def n(self) -> int:
        """Members of both sets."""
        return len(self.first) + len(self.second)

    @cached_property
    def ranked(self) -> tuple[Floats, Floats]:
        """Scores of each set in order, so that sums do not depend on the order of rows."""
        return np.sort(self.first), np.sort(self.second)

    @cached_property
    def means(self) -> list[float]:
        """Mean score of each set."""
        return [float(scores.sum()) / len(scores) for scores in self.ranked]

    @cached_property
    def spread(self) -> float:
        """Standard deviation of both sets; 0 where it is rounding only."""
        return _spread(np.sort(np.concatenate(self.ranked)), self.ddof)

    @cached_property
    def spread_ratio(self) -> float:
        """Variance of the difference in means over the variance that an exchange gives it.

        1 for equal sizes or spreads; above 1 the classic p is too small, below 1 too large.
        """
        n, m = len(self.first), len(self.second)
        if min(n, m) < 2 or not self.spread:
            return math.nan
        residuals = [scores - mean for scores, mean in zip(self.ranked, self.means, strict=True)]
        x, y = (float((residual * residual).sum()) / (len(residual) - 1) for residual in residuals)
        return (x / n + y / m) / (x / m + y / n) if x or y else math.nan

    @cached_property
    def value(self) -> float:
        """The effect size; NaN where all scores are equal."""
        return (self.means[0] - self.means[1]) / self.spread if self.spread else math.nan

    @property
    def difference(self) -> float:
        """Sum of the scores of the first set minus that of the second, which grows with n."""
        return float(self.ranked[0].sum()) - float(self.ranked[1].sum())

    @property
    def skewed(self) -> bool:
        """Whether scores are so skewed in their sets that the jackknife's ends are too narrow."""
        ranked = zip(self.ranked, self.means, strict=True)
        centred = np.sort(np.concatenate([scores - mean for scores, mean in ranked]))
        square = centred * centred
        spread = float(square.sum()) / len(centred)
        third = float((square * centred).sum()) / len(centred)
        return spread > 0.0 and abs(third) > _SKEWED * spread**1.5

    def jackknife(self, space: Space) -> Jackknife | None:
        """Return Fisher's z of d, both means and the difference of sums, over sets that vary.

        d is a multiple of the correlation of scores with their set, whose z has an even spread.
        Targets are left out one by one; attributes, which move the direction, to first order.
        """
        if space.resampling is None or not self.spread:
            return None
        n, m = len(self.first), len(self.second)
        scale = self.n * math.sqrt(1.0 - self.ddof / self.n) / math.sqrt(n * m)
        return Jackknife(partial(self._left_out, space, scale), scale)

    def _left_out(self, space: Space, scale: float) -> tuple[Floats, list[Floats]]:
        n, m = len(self.first), len(self.second)
        centre = (self.means[0] * n + self.means[1] * m) / self.n
        scores = {self.first_name: self.first - centre, self.second_name: self.second - centre}
        rows = {
            name: np.stack([np.ones_like(values), values, values * values], axis=1)
            for name, values in scores.items()
        }
        x, y = (table.sum(axis=0) for table in rows.values())
        varied = [name for name in space.varied if name not in rows]
        slopes = self._slopes(scores, scale) if varied else np.zeros((0, 0))
        rows |= {name: with_ones(space[name].similarities(slopes)) for name in varied}
        left_out = []
        for sums in space.sums_without_each(rows):
            numbers = self._numbers(sums[self.first_name], sums[self.second_name], centre)
            for name in varied:
                sign = 1.0 if name == "a" else -1.0
                mean = rows[name][:, 1:].mean(axis=0)
                numbers = numbers + sign * (sums[name][:, 1:] / sums[name][:, :1] - mean)
            left_out.append(numbers)
        return self._numbers(x, y, centre), left_out

    def _numbers(self, x: Floats, y: Floats, centre: float) -> Floats:
        """Return z, both means and the difference of sums, from counts, sums and squares."""
        n, m = len(self.first), len(self.second)
        pooled, means = x + y, (x[..., 1] / x[..., 0], y[..., 1] / y[..., 0])
        squares = pooled[..., 2] - pooled[..., 1] ** 2 / pooled[..., 0]
        with unwarned():
            # Where the sets are wholly apart z is infinite, and has no interval.
            share = np.sqrt(x[..., 0] * y[..., 0] / (pooled[..., 0] * squares))
            z = np.arctanh((means[0] - means[1]) * share)
        first, second = (mean + centre for mean in means)
        return np.stack([z, first, second, n * first - m * second], axis=-1)

    def _slopes(self, scores: Mapping[str, Floats], scale: float) -> Floats:
        """Return how the numbers change with the direction, shape (4, d)."""
        first, second = (self.space[name].mean for name in scores)
        joint = np.zeros_like(first)
        for name, values in scores.items():
            joint += reduce(
                np.add, (values[places] @ row for places, row in self.space[name].blocks())
            )
        turn = joint * self.value / (self.spread * (self.n - self.ddof))
        with unwarned():
            steep = 1.0 / (self.spread * scale * np.float64(1.0 - (self.value / scale) ** 2))
        sum_direction = len(self.first) * first - len(self.second) * second
        return np.stack([(first - second - turn) * steep, first, second, sum_direction])

    def estimate(
        self,
        metric: str,
        jackknife: Jackknife | None,
        alternative: Alternative,
        further_parts: Callable[[], Iterable[Part]] = tuple,
        *,
        studentized: bool = False,
    ) -> Estimate:
        """Return the effect size, tested by exchanged members, with further parts."""
        if alternative not in HARM:
            raise InputError(f"alternative={alternative!r}: expected one of {[*HARM]}")
        space, names = self.space, (self.first_name, self.second_name)
        of_targets = metric == "weat"
        key = "targets" if of_targets else "attributes"
        tested = space.exchange(*names, [self.direction], key, studentized=studentized)
        null = f"the members of {self.first_name} and {self.second_name} are exchangeable"
        harm, factor = HARM[alternative], 1.0 / (self.spread or 1.0)
        chance_test = compare_with_exchanges(tested, self.value, harm, null, factor=factor)
        reason = "" if self.spread else "all scores are equal: their standard deviation is 0"
        score_text = "association score of" if of_targets else "similarity of the target to"

        def parts() -> Iterator[Part]:
            yield space.part(
                metric, self.value, jackknife, 0, n=self.n, chance_test=chance_test, reason=reason,
                by_group=space.group_values(names, self.means, jackknife, 1),
                shows=f"mean {score_text} the set",
            )  # fmt: skip
            yield from further_parts()

        return space.estimate(
            metric,
            self.value,
            parts,
            chance_test,
            jackknife=jackknife,
            kind=f"{SPREAD} of skewed scores by the jackknife" if self.skewed else "",
            interval_kind=IntervalKind.SPREAD if self.skewed else IntervalKind.CONFIDENCE,
            params={
                "alternative": alternative,
                "ddof": self.ddof,
                "studentized": studentized,
                "spread_ratio": self.spread_ratio,
            },
            pairs=[("x", "y"), ("a", "b")] if of_targets else [("a", "b")],
            reason=reason,
            harm=harm,
        )


def _spread(pooled: Floats, ddof: int) -> float:
    """Standard deviation of sorted numbers; 0 where it is rounding only."""
    if len(pooled) <= ddof:
        return 0.0
    residuals = pooled - pooled.sum() / len(pooled)
    deviation = math.sqrt((residuals * residuals).sum() / (len(pooled) - ddof))
    return deviation if deviation > _ROUNDING * float(np.abs(pooled).max()) else 0.0


@record
class Scores:
    """Ends of a total absolute association, with the scores of its targets.

    Attributes
    ----------
    names : tuple of str
    observed : ndarray, shape (targets,)
        Association scores.
    jackknife : Jackknife or None
        The same scores.
    freedom : int
        Members of the smallest set that varies, or their units, less one.
    seed : int
    """

    names: Strings
    observed: Floats
    jackknife: Jackknife | None
    freedom: int
    seed: Seed

    def __call__(self, level: float) -> Span:
        """Return the ends of the sum of absolute scores."""
        low, high = (len(self.names) * end for end in self.mean(level))
        return low, high

    @cached_property
    def mean(self) -> MeanNorm:
        """The ends of the mean absolute score."""
        replicates = np.empty((0, len(self.names)))
        if self.jackknife is not None and self.freedom > 0:
            replicates = self.jackknife.draws(_DRAWS, self.seed)
        # The range of half a score and its negative is the absolute score.
        observed = np.stack([self.observed, -self.observed], axis=-1) / 2.0
        replicates = np.stack([replicates, -replicates], axis=-1) / 2.0
        return MeanNorm(observed, replicates, self.freedom, "range")


@metric(
    _total(
        name="total_absolute_association",
        needs=SETS,
        takes=("modalities",),
        targets="all",
        range=(0.0, math.inf),
        range_note="at most 2 x targets for cosines",
        definition="Sum over targets of the absolute association score.",
        direction="Higher: targets are associated more with either group.",
        chance="above 0, more so for small sets and many targets",
        interval="bounds without the noise of members, by the jackknife",
        null="members of a and b are exchangeable, alike for all targets",
    )
)
def total_absolute_association(
    targets: Mapping[str, ArrayLike],
    a: ArrayLike,
    b: ArrayLike,
    *,
    fixed: Collection[str] = (),
    similarity: Similarity | None = None,
    units: SetUnits | None = None,
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
        At least 0, higher is worse; never negative, so chance alone makes it positive:
        `.corrected` is it less what the noise of members makes of it. Interval: bounds by
        the jackknife over members. Chance and p: a and b exchange members, the same exchange for
        all targets. `.by` has each target's score.

    Raises
    ------
    InputError
        As `association_score`; or a target is called "a" or "b", or there is none.

    References
    ----------
    Mandal 2024, chapter 7 (Tables 7.3 to 7.5).

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> rng = np.random.default_rng(0)
    >>> science, art, men, women = (
    ...     rng.normal(size=(4, 12, 8)) + np.eye(4, 8)[[0, 1, 0, 1], None]
    ... )
    >>> m.total_absolute_association({"science": science, "art": art}, men, women)
    <total_absolute_association 0.245 [0.000, 0.551]; chance 0.116, p = 0.06, n = 48 in 4 groups>
    """
    if not targets or {"a", "b"} & {*targets}:
        raise InputError(f"targets: {[*targets]}; expected named sets, none called 'a' or 'b'")
    names = tuple(sorted(targets))
    ordered = {name: targets[name] for name in names}
    space = Space.of(ordered, {"a": a, "b": b}, fixed, similarity, units, resampling, rng)

    terms = [{(name, "a"): 1.0, (name, "b"): -1.0} for name in names]
    observed, scores = space.bilinear(terms)
    smallest = min((space[name].independent for name in space.varied), default=1)
    total_ends = Scores(names, observed, scores, smallest - 1, space.seed)
    tested = space.exchange("a", "b", [space[name].mean for name in names], "members")
    null = "the members of a and b are exchangeable"
    parts = [
        space.part(
            "association_score",
            value,
            scores,
            index,
            subject=name,
            n=len(space[name]),
            chance_test=compare_with_exchanges(tested, value, "either", null, column=index),
        )
        for index, (name, value) in enumerate(zip(names, total_ends.observed.tolist(), strict=True))
    ]
    total = float(np.abs(total_ends.observed).sum())
    chance_test = compare_with_exchanges(
        tested, total, "higher", null, lambda draws: np.abs(draws).sum(axis=1)
    )
    return space.estimate(
        "total_absolute_association",
        total,
        parts,
        chance_test,
        jackknife=scores,
        ends=total_ends,
        corrected=len(names) * total_ends.mean.estimate,
        kind="bounds without the noise of members by the jackknife",
        pairs=[("a", "b")],
    )


@metric(
    _total(
        name="encoder_difference",
        null_kind=NullHypothesis.MODELS,
        of_models=True,
        title="Difference between encoders",
        range=(0.0, math.inf),
        definition="Largest minus smallest total absolute association over encoders.",
        direction="Higher: encoders differ more.",
        chance="above 0",
        interval="resampling spread for pairs; none for the largest",
        null="encoders are exchangeable within each target",
    )
)
def encoder_difference(
    encoders: Mapping[str, Estimate], *, resampling: Resampling | None = DEFAULT, rng: Seed = 0
) -> Estimate:
    """Difference between encoders in their total absolute association, target by target.

    Parameters
    ----------
    encoders : mapping of str to Estimate
        What `total_absolute_association` gave for each encoder, with the same targets and images:
        differences are then paired, image by image.
    resampling : Bootstrap, Permutation or None
        None gives values alone. Intervals come from the estimates.
    rng : int or Generator
        Seed.

    Returns
    -------
    Estimate
        Largest minus smallest total over encoders, at least 0. Chance and p: encoders exchange
        their absolute scores within each target. `.by` has each encoder's total, and
        "difference" of each pair "first - second" with its resampling spread and two-sided p.

    Raises
    ------
    InputError
        When there are fewer than two encoders, or their targets differ.

    References
    ----------
    Mandal 2024, chapter 7 (Tables 7.3 to 7.5).

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> rng = np.random.default_rng(0)
    >>> science, art, men, women = (
    ...     rng.normal(size=(4, 12, 8)) + np.eye(4, 8)[[0, 1, 0, 1], None]
    ... )
    >>> first = m.total_absolute_association({"science": science, "art": art}, men, women)
    >>> turned = {"science": science[:, ::-1], "art": art[:, ::-1]}
    >>> second = m.total_absolute_association(turned, men, women)
    >>> m.encoder_difference({"first": first, "second": second})
    <encoder_difference 0.162; chance 0.105, p = 0.5, n = 4 in 2 groups>
    """
    scores = {
        name: estimate.ends
        for name, estimate in encoders.items()
        if isinstance(estimate.ends, Scores)
    }
    targets = {encoder_scores.names for encoder_scores in scores.values()}
    if len(encoders) < 2 or len(scores) < len(encoders) or len(targets) > 1:
        raise InputError(
            f"encoders: {[*encoders]}; expected two or more results of total_absolute_association "
            "on the same targets"
        )
    sizes = np.stack([np.abs(encoder_scores.observed) for encoder_scores in scores.values()])
    totals = sizes.sum(axis=1)
    value = float(totals.max() - totals.min())
    chance_test, level = _swapped(sizes, value, resampling, rng), level_of(resampling)
    n = int(sizes.shape[1])
    parts = [
        Part("total", name, float(total), *encoder_scores(level), n=n)
        for (name, encoder_scores), total in zip(scores.items(), totals, strict=True)
    ]
    for (first, a), (second, b) in combinations(scores.items(), 2):
        pair_sizes = np.abs(np.stack([a.observed, b.observed]))
        difference = float(pair_sizes[0].sum() - pair_sizes[1].sum())
        ends = _paired_ends(a, b, difference, level)
        swapped = _swapped(pair_sizes, abs(difference), resampling, rng)
        parts.append(
            Part(
                "difference", f"{first} - {second}", difference, *ends, n=n,
                p_value=math.nan if swapped.p_value is None else swapped.p_value,
                p_at_most=swapped.p_at_most,
            )
        )  # fmt: skip
    return make_estimate(
        metric="encoder_difference",
        value=value,
        n=dict.fromkeys(encoders, n),
        method=NO_INTERVAL if resampling is None else f"{SPREAD} of pairs",
        interval_kind=IntervalKind.SPREAD,
        **chance_test.fields("resampling is off"),
        by=parts,
        unit="target",
    )


def _paired_ends(a: Scores, b: Scores, difference: float, level: float) -> Span:
    """Return the ends of the difference of two totals over the same members."""
    if a.jackknife is None or b.jackknife is None:
        return math.nan, math.nan
    first, second = a.jackknife.numbers[1], b.jackknife.numbers[1]
    if [*map(len, first)] != [*map(len, second)]:
        return math.nan, math.nan
    pairs = zip(first, second, strict=True)
    left_out = [
        np.abs(first_scores).sum(axis=1) - np.abs(second_scores).sum(axis=1)
        for first_scores, second_scores in pairs
    ]
    low, high = jackknife_t(difference, left_out, level)
    return float(low), float(high)


def _swapped(sizes: Floats, value: float, resampling: Resampling | None, seed: Seed) -> ChanceTest:
    """Hold the range of totals against encoders (encoders, targets) exchanged within targets."""
    if resampling is None:
        return UNTESTED
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
    return compare_with_null(ranges, value, "higher", text, weights=weights, resolution=finest)

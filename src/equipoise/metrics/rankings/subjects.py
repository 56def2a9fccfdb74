"""Numbers of subjects: against an outside series, a hypothesis or declared favourites."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import permutations as orderings
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtr

from equipoise.core import (
    Estimate,
    Floats,
    InputError,
    Integers,
    NullHypothesis,
    Part,
    floats,
    no_ends,
    ranks,
    tally,
    unwarned,
)
from equipoise.core.arguments import check_lengths, real_numbers
from equipoise.metrics.building import (
    UNTESTED,
    ChanceTest,
    compare_with_null,
    explain_undefined,
    nan_mean,
)
from equipoise.metrics.measure import DEFAULT, NO_INTERVAL
from equipoise.metrics.registry import metric
from equipoise.metrics.spec import ANY_NUMBER, SETS, MetricSpec, make_estimate
from equipoise.metrics.vectors.resampling import (
    MOST_PARTITIONS,
    compare_with_exchanges,
    exchange,
    permutations,
)
from equipoise.stats.intervals import ClosedForm, fisher_z, mean_t
from equipoise.stats.resampling import Resampling, null_draws
from equipoise.stats.streams import Seed, stream

_NORMAL = "the pairs are independent and normal: t distribution with n - 2 degrees of freedom"
_NULL = "the hypothesis is exchangeable over subjects"
_FAVOURITES = "which group is the favourite is exchangeable over concepts"
_MOST_ORDERS = 50_000
_STUDENT = "Student's t"

FEW_SUBJECTS = 20
"""Subjects below which percentile intervals of means over them are too narrow."""

_correlation = partial(
    MetricSpec,
    null_kind=NullHypothesis.NORMAL,
    kinds=("associations", "answers"),
    range=(-1.0, 1.0),
    harm="either",
    chance="none drawn: p from the t distribution with n − 2 degrees of freedom",
    interval="Fisher's z",
    reference="Fisher 1921; Bonett & Wright 2000",
    direction="Either: positive means the metric rises with the figures.",
)
_declared = partial(
    MetricSpec,
    null_kind=NullHypothesis.HYPOTHESIS,
    reference="Good 2005, Permutation, Parametric and Bootstrap Tests of Hypotheses",
)


@metric(
    _correlation(
        name="correlation",
        needs=(*SETS, "outside"),
        takes=("of", "modalities", "each_member"),
        targets="all",
        title="Correlation with outside figures",
        symbol="r",
        definition=(
            "Pearson's correlation of a metric with outside figures, over subjects or regions."
        ),
        null="pairs are independent and normal",
        errata=(
            "With nine regions r = −0.62, −0.84 and −0.78 have p = 0.075, 0.005 and 0.013; Mandal "
            "2024, chapter 4, prints 0.007, 0.003 and 0.0012."
        ),
    )
)
def correlation(x: ArrayLike, y: ArrayLike, *, level: float = 0.95) -> Estimate:
    """Correlation of a metric with an outside series, such as salaries or an index of nations.

    Parameters
    ----------
    x, y : array-like, shape (n,)
        The metric and the outside figure of each subject or region. Pairs without two finite
        numbers are left out and counted.
    level : float
        Confidence level of the parts.

    Returns
    -------
    Estimate
        Pearson's r in [-1, 1], with Fisher's interval; p from the t distribution with n - 2
        degrees of freedom, two-sided. `.by` has "pearson" and "spearman" (p likewise, from the t
        approximation). NaN below three pairs, or where all x or all y are equal.

    Raises
    ------
    InputError
        When x and y are not of one shape (n,).

    Notes
    -----
    Erratum: with nine regions, r = -0.62, -0.84 and -0.78 have p = 0.075, 0.005 and 0.013; Mandal
    2024, chapter 4, prints 0.007, 0.003 and 0.0012.

    References
    ----------
    Bonett & Wright 2000 (interval of Spearman's correlation).

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> m.correlation([0.1, 0.3, 0.2, 0.6, 0.5], [10, 25, 24, 52, 49])
    <correlation 0.982 [0.742, 0.999]; p = 0.003, n = 5>
    """
    return _correlated("correlation", "pearson", x, y, level)


@metric(
    _correlation(
        name="spearman",
        title="Rank correlation with outside figures",
        symbol="ρ",
        definition=(
            "Spearman's correlation of a metric with outside figures, over subjects or regions."
        ),
        null="pairs are independent",
    )
)
def spearman(x: ArrayLike, y: ArrayLike, *, level: float = 0.95) -> Estimate:
    """Rank correlation of a metric with an outside series.

    Parameters
    ----------
    x, y, level
        See `correlation`.

    Returns
    -------
    Estimate
        Spearman's correlation in [-1, 1], with Fisher's interval; p from the t approximation,
        two-sided. `.by` as that of `correlation`.

    Raises
    ------
    InputError
        As `correlation`.

    References
    ----------
    Bonett & Wright 2000.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> m.spearman([0.1, 0.3, 0.2, 0.6, 0.5], [10, 25, 27, 52, 49])
    <spearman 0.900 [−0.169, 0.996]; p = 0.037, n = 5>
    """
    return _correlated("spearman", "spearman", x, y, level)


def _correlated(
    metric: str, kind: Literal["pearson", "spearman"], x: ArrayLike, y: ArrayLike, level: float
) -> Estimate:
    """Return a correlation as an estimate, with both of them as parts."""
    first, second, dropped = pairs_of(x, y)
    parts = [
        _part("pearson", first, second, level),
        _part("spearman", ranks(first), ranks(second), level),
    ]
    main = next(part for part in parts if part.metric == kind)
    defined, ends = not math.isnan(main.value), no_ends
    if defined:
        ends = ClosedForm(partial(fisher_z, kind=kind), (main.value, len(first)))
    return make_estimate(
        metric,
        main.value,
        {"pairs": len(first)},
        "Fisher's z",
        no_chance="" if defined else main.reason,
        p_value=main.p_value if defined else None,
        null_drawn=_NORMAL,
        by=parts,
        excluded={"no two finite numbers": dropped},
        unit="pair",
        reason=main.reason,
        ends=ends,
    )


def loess(x: ArrayLike, y: ArrayLike, *, span: float = 2.0 / 3.0) -> Callable[[ArrayLike], Floats]:
    """Smooth y over x by local linear regression, of degree 1, without robustness steps.

    Parameters
    ----------
    x, y : array-like, shape (n,)
        Such as diffusion bias and bias amplification of each target. Pairs without two finite
        numbers are left out.
    span : float
        Share of the data that each fit sees, in (0, 1].

    Returns
    -------
    callable
        From points (m,) to fitted values; beyond the data the line is extended.

    Raises
    ------
    InputError
        When shapes differ, fewer than three pairs are left, or `span` is out of range.

    References
    ----------
    Cleveland 1979, Journal of the American Statistical Association 74, 829-836.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> smooth = m.loess(np.arange(20), np.arange(20) * 2.0)
    >>> smooth([5.0]).round(6)
    array([10.])
    """
    if not 0.0 < span <= 1.0:
        raise InputError(f"span={span}: expected a share of the data, above 0 and at most 1")
    first, second, _ = pairs_of(x, y)
    if len(first) < 3:
        raise InputError(f"loess: {len(first)} pairs of finite numbers; expected at least 3")
    n_nearest = max(2, math.ceil(span * len(first) - 1e-9))

    def fit(point: float) -> float:
        distance = np.abs(first - point)
        reach = float(np.partition(distance, n_nearest - 1)[n_nearest - 1])
        if reach == 0.0:
            return float(second[distance == 0.0].mean())
        # Tricube weights.
        weight = np.clip(1.0 - (distance / reach) ** 3, 0.0, None) ** 3
        total = weight.sum()
        centre, level = (weight @ first) / total, (weight @ second) / total
        offsets = first - centre
        squares = float(weight @ offsets**2)
        # All weight on one place: there is no slope to fit.
        if squares <= 1e-14 * total * reach**2:
            return float(level)
        return float(level + (weight @ (offsets * second)) / squares * (point - centre))

    return lambda points: np.array([fit(point) for point in np.atleast_1d(points)])


def pairs_of(
    x: ArrayLike, y: ArrayLike, subjects: tuple[str, str] = ("x", "y")
) -> tuple[Floats, Floats, int]:
    """Return pairs of finite numbers in order, and how many others there are.

    Raises
    ------
    InputError
        When one of the arguments `subjects` has other values, or another length.
    """
    first, second = real_numbers(x, subjects[0]), real_numbers(y, subjects[1])
    check_lengths(dict(zip(subjects, (len(first), len(second)), strict=True)))
    finite = np.isfinite(first) & np.isfinite(second)
    first, second = first[finite], second[finite]
    # In one order, so that neither values nor draws depend on the order given.
    order = np.lexsort((second, first))
    return first[order], second[order], tally(~finite)


def correlations(first: Floats, second: Floats) -> Floats:
    """Pearson correlations of rows, NaN where a row is constant."""
    a = first - first.mean(axis=1, keepdims=True)
    b = second - second.mean(axis=1, keepdims=True)
    norms = np.sqrt((a * a).sum(axis=1) * (b * b).sum(axis=1))
    with unwarned():
        r = (a * b).sum(axis=1) / norms
    return floats(np.clip(r, -1.0, 1.0))


def _part(kind: Literal["pearson", "spearman"], x: Floats, y: Floats, level: float) -> Part:
    n = len(x)
    if n < 3:
        return Part(kind, "", math.nan, n=n, reason="fewer than three pairs")
    if x[0] == x[-1] or (y == y[0]).all():
        return Part(kind, "", math.nan, n=n, reason="all x or all y are equal")
    r = float(correlations(x[None], y[None])[0])
    low, high = fisher_z(r, n, level, kind=kind)
    p = 0.0
    if abs(r) < 1.0:
        p = float(2.0 * stdtr(n - 2, -abs(r) * math.sqrt((n - 2) / ((1.0 - r) * (1.0 + r)))))
    return Part(kind, "", r, float(low), float(high), p_value=p, n=n)


SUMMARIES = ("mean", "sd", "minimum", "maximum")
"""Parts of `score_summary` of each set of targets, in their order."""


@metric(
    MetricSpec(
        name="score_summary",
        title="Mean score",
        kinds=("associations", "text_to_image"),
        range=ANY_NUMBER,
        range_note="that of the score",
        harm="either",
        definition=(
            "Mean and standard deviation of scores such as MCAS, by category of target and "
            "direction."
        ),
        direction="Either: the sign is the direction of the score.",
        chance="none: a summary over declared targets",
        reference="Mandal 2024, chapter 6",
    )
)
def score_summary(
    scores: Mapping[str, float], categories: Mapping[str, str], *, ddof: int = 1
) -> Estimate:
    """Mean, standard deviation and extremes of scores by category of target and direction.

    Parameters
    ----------
    scores : mapping of target to number
        Such as MCAS; positive leans to the first group.
    categories : mapping of target to str
        Such as kinds of work, or the group that a target is declared to go with.
    ddof : int
        What standard deviations subtract from the number of targets.

    Returns
    -------
    Estimate
        Mean over all targets, with no interval and no chance level: targets are declared, not
        drawn. `.by` has "mean", "sd", "minimum" and "maximum" of "category, a", "category, b"
        (leaning to the first and second group) and "category"; then of all targets, with "all" in
        place of a category. Scores that are not finite are counted.

    Raises
    ------
    InputError
        When a target has no category, or there is no finite score.

    References
    ----------
    Mandal 2024, chapters 6 and 8.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> m.score_summary(
    ...     {"chef": 0.4, "nurse": -0.3, "judge": 0.2},
    ...     {"chef": "craft", "nurse": "care", "judge": "law"},
    ... ).value
    0.10000000000000003
    """
    if uncategorised := sorted({*scores} - {*categories}):
        raise InputError(f"categories: none for target {uncategorised[0]!r}; expected one for each")
    finite = {name: float(scores[name]) for name in sorted(scores) if math.isfinite(scores[name])}
    if not finite:
        raise InputError("scores: no finite number; expected one per target")
    members = {
        category: [name for name in finite if categories[name] == category]
        for category in sorted({categories[name] for name in finite})
    }
    parts = list[Part]()
    for category, names in [*members.items(), (ALL_CATEGORIES, [*finite])]:
        values = np.array([finite[name] for name in names])
        every = np.full(len(values), fill_value=True)
        for side, rows in {"a": values > 0, "b": values < 0, "": every}.items():
            subject = f"{category}, {side}" if side else category
            owner = category if side else None
            part = Part("", subject, math.nan, part_of=owner, within_value=side)
            parts += _summarised(part, np.sort(values[rows]), ddof)
    return make_estimate(
        "score_summary",
        float(np.mean([*finite.values()])),
        {"targets": len(finite)},
        "none: targets are declared, not drawn",
        no_chance="a summary over declared targets",
        by=parts,
        excluded={"no finite score": len(scores) - len(finite)},
        unit="target",
    )


ALL_CATEGORIES = "all"
"""What parts of `score_summary` over all categories have in place of a category."""


def _summarised(part: Part, scores: Floats, ddof: int) -> Iterator[Part]:
    """Yield mean, standard deviation and extremes of the scores of some targets."""
    n = len(scores)
    values = dict.fromkeys(SUMMARIES, math.nan)
    if n:
        values |= {"mean": scores.mean(), "minimum": scores[0], "maximum": scores[-1]}
    if n > ddof:
        values["sd"] = scores.std(ddof=ddof)
    for summary, value in values.items():
        reason = "" if n else "no target"
        if summary == "sd" and 0 < n <= ddof:
            reason = "fewer than two targets"
        yield replace(part, metric=summary, value=float(value), n=n, reason=reason)


@metric(
    _declared(
        name="alignment",
        needs=(*SETS, "hypothesis"),
        takes=("of", "modalities", "statistic", "each_member"),
        targets="all",
        title="Alignment with a hypothesis",
        kinds=("associations", "similarity", "retrieval", "counterfactuals"),
        range=ANY_NUMBER,
        range_note="that of the preference; from −1 to 1 for ranks",
        definition=(
            "Mean preference in the direction that a hypothesis declares for each subject, or "
            "their rank correlation."
        ),
        direction="Higher: preferences follow the hypothesis.",
        chance="near 0",
        interval="Student's t over subjects; of ranks Fisher's z",
        null=_NULL,
    )
)
def alignment(
    preferences: ArrayLike | Mapping[str, float],
    hypothesis: ArrayLike | Mapping[str, float],
    *,
    statistic: Literal["mean", "rank"] = "mean",
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """How far preferences for one group over another follow a declared hypothesis, over subjects.

    Parameters
    ----------
    preferences : mapping of subject to number, or array-like, shape (subjects,)
        Signed preference of each subject, such as an association score or a gap.
    hypothesis : mapping of subject to number, or array-like, shape (subjects,)
        The direction expected of each subject: its sign for "mean", its rank for "rank" (such as
        labour statistics). 0 is no direction.
    statistic : "mean" or "rank"
        "mean": mean of preference times sign of the hypothesis; "rank": Spearman's correlation.
    resampling : Bootstrap, Permutation or None
        None gives the value alone.
    rng : int or Generator
        Seed.

    Returns
    -------
    Estimate
        For "mean" in units of the preference, for "rank" in [-1, 1]; higher: follows the
        hypothesis. Interval: Student's t over subjects, of ranks Fisher's z. Chance and p
        (one-sided): the hypothesis is permuted over subjects; exact where it can be enumerated.
        `.by` has the mean preference in the hypothesised direction of each side. Subjects of one
        mapping only, without a finite number, or, for "mean", without a direction are counted in
        `.excluded`.

    Raises
    ------
    InputError
        When lengths differ, no subject (for "rank": fewer than three) is left, or `statistic` is
        unknown.

    Notes
    -----
    Needed beside tests per subject: a trained model is never exactly neutral, so with images enough
    any preference, however small, has a small p; whether preferences line up is another question.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> m.alignment(
    ...     {"chef": 0.4, "nurse": -0.3, "pilot": 0.2, "judge": 0.1},
    ...     {"chef": 1, "nurse": -1, "pilot": 1, "judge": 1},
    ... )
    <alignment 0.250 [0.045, 0.455]; chance 0.050, p = 0.25, n = 4>
    """
    if statistic not in ("mean", "rank"):
        raise InputError(f"statistic={statistic!r}: expected 'mean' or 'rank'")
    ranked = statistic == "rank"
    values, expected, excluded = _pairs(preferences, hypothesis, ranked=ranked)
    n, chance_test, followed = len(values), UNTESTED, values * expected
    order, target_ranks = ranks(values)[None], ranks(expected)
    if ranked:
        value = float(correlations(order, target_ranks[None])[0])
        ends = ClosedForm(partial(fisher_z, kind="spearman"), (value, n))
    else:
        value, ends = float(followed.mean()), ClosedForm(mean_t, (followed,))
    if resampling is not None and not math.isnan(value):
        if ranked:
            target_orders, text, weights, finest = _orders(
                target_ranks,
                MOST_PARTITIONS,
                permutations(n, resampling),
                resampling,
                rng,
                "subjects",
            )
            null = correlations(order, floats(target_orders))
            chance_test = compare_with_null(
                null, value, "higher", f"{_NULL}; {text}", weights=weights, resolution=finest,
                scale=1.0,
            )  # fmt: skip
        else:
            chance_test = _compare_with_signs(values, expected, value, resampling, rng)
    reason = explain_undefined(value, "all preferences, or all hypotheses, are equal")
    sides = []
    if not ranked:
        if len({*expected.tolist()}) == 1:
            reason = "the hypothesis is the same for all subjects: permuting it changes nothing"
        for sign, name in ((1.0, "positive"), (-1.0, "negative")):
            side = values[expected == sign]
            if len(side):
                sides.append(Part("alignment", name, float(side.mean() * sign), n=len(side)))
    return make_estimate(
        metric="alignment",
        value=value,
        n={"subjects": n},
        method=_method(n, resampling, "subjects", "Fisher's z" if ranked else _STUDENT),
        params={"statistic": statistic},
        **chance_test.fields("resampling is off, or there is no value"),
        by=sides,
        excluded=excluded,
        unit="subject",
        reason=reason,
        ends=no_ends if resampling is None else ends,
    )


def _method(n: int, resampling: Resampling | None, over: str, interval: str = _STUDENT) -> str:
    if resampling is None:
        return NO_INTERVAL
    return f"{interval} over {over}" if n > 1 else f"none: two {over} or more are needed"


def _pairs(
    preferences: Any, hypothesis: Any, *, ranked: bool
) -> tuple[Floats, Floats, dict[str, int]]:
    """Return preferences and hypotheses of the same subjects, and exclusions."""
    excluded: dict[str, int] = {}
    if isinstance(preferences, Mapping) != isinstance(hypothesis, Mapping):
        raise InputError("preferences and hypothesis: expected two mappings or two arrays")
    if isinstance(preferences, Mapping):
        names = sorted({*preferences} & {*hypothesis}, key=str)
        excluded["in one of preferences and hypothesis only"] = len({*preferences} ^ {*hypothesis})
        preferences = [preferences[name] for name in names]
        hypothesis = [hypothesis[name] for name in names]
    first, second, excluded["no finite number"] = pairs_of(
        preferences, hypothesis, ("preferences", "hypothesis")
    )
    if not ranked:
        second = np.sign(second)
        excluded["no direction in the hypothesis"] = tally(second == 0)
        first, second = first[second != 0], second[second != 0]
    least = 3 if ranked else 1
    if len(first) < least:
        raise InputError(
            f"alignment: {len(first)} subjects with a preference and a hypothesis; "
            f"expected at least {least}"
        )
    return first, second, excluded


def _compare_with_signs(
    values: Floats, signs: Floats, value: float, resampling: Resampling, seed: Seed
) -> ChanceTest:
    """Permuting signs partitions the preferences: exact where partitions are few."""
    up = signs > 0
    if up.all() or not up.any():
        text = f"{_NULL}; 1 permutation enumerated"
        return compare_with_null(np.array([value]), value, "higher", text, weights=1.0)
    first, second = values[up][:, None], values[~up][:, None]
    tested = exchange(first, second, resampling, seed, "subjects")
    # With S the sum where the hypothesis is positive and D the difference in means,
    # S = (D + total / m) / (1 / k + 1 / m), and the mean is (2 S - total) / n.
    total, k, m = float(values.sum()), len(first), len(second)
    per = 1.0 / k + 1.0 / m
    shift = (2.0 * total / m / per - total) / len(values)
    factor = 2.0 / (len(values) * per)
    return compare_with_exchanges(tested, value, "higher", _NULL, factor=factor, shift=shift)


def _orders(
    values: Floats | Integers, limit: int, draws: int, resampling: Resampling, seed: Seed, name: str
) -> tuple[Floats | Integers, str, float | None, float]:
    """Return orders of values, their description, weights and resolution."""
    n_orders = math.factorial(len(values))
    if n_orders <= limit:
        return np.array([*orderings(values)]), f"all {n_orders} orders", 1.0, 0.0
    tiled = np.tile(values, (draws, 1))
    shuffled = stream(seed, "permutation", name).permuted(tiled, axis=1)
    return shuffled, f"{draws} permutations", None, resampling.resolution


@metric(
    _declared(
        name="favourite_gap",
        title="Gap in favour of declared groups",
        sentence="In the results{model}, {direction} by {size} on average.",
        kinds=("similarity", "retrieval", "counterfactuals"),
        range=ANY_NUMBER,
        range_note="that of the effects",
        definition=(
            "Effect of the group declared as a concept's favourite, minus the mean effect of the "
            "others; mean over concepts."
        ),
        direction="Higher: preferences follow the declaration.",
        chance="near 0, and no lower for a model that prefers one group everywhere",
        interval="Student's t over concepts",
        null="favourites are exchangeable over concepts",
    )
)
def favourite_gap(
    effects: Mapping[str, Mapping[str, float]],
    favourites: Mapping[str, str],
    *,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Mean over concepts of the favourite group's lead over the other groups.

    Parameters
    ----------
    effects : mapping of concept to mapping of group to number
        Mean similarities, or effects of groups; NaN: not compared.
    favourites : mapping of concept to group
        Declared before: a stereotype, labour statistics, what was planted.
    resampling : Bootstrap, Permutation or None
        None gives the value alone.
    rng : int or Generator
        Seed.

    Returns
    -------
    Estimate
        In units of the effects; above 0: favourites are preferred. Interval: Student's t over
        concepts. Chance and p (one-sided): favourites permuted over concepts, enumerated
        where there are up to 50,000 orders; a model that prefers one group everywhere follows no
        favourites. Concepts of one mapping only, and those whose favourite or all others were not
        compared, are counted in `.excluded`.

    Raises
    ------
    InputError
        When no concept is left.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> effects = {
    ...     "chef": {"men": 0.6, "women": 0.1},
    ...     "nurse": {"men": 0.0, "women": 0.5},
    ...     "judge": {"men": 0.3, "women": 0.2},
    ... }
    >>> m.favourite_gap(effects, {"chef": "men", "nurse": "women", "judge": "men"}).value
    0.3666666666666667
    """
    shared = [name for name in sorted(favourites) if name in effects]
    gaps = preferences(effects, {name: favourites[name] for name in shared})
    compared = [name for name in shared if not math.isnan(gaps[name])]
    excluded = {
        "in one of effects and favourites only": len({*effects} ^ {*favourites}),
        "favourite or all others not compared": len(shared) - len(compared),
    }
    if not compared:
        raise InputError("favourites: expected a concept with effects of its favourite and another")
    groups = sorted({favourites[name] for name in compared})
    columns = [preferences(effects, dict.fromkeys(compared, group)).values() for group in groups]
    above = np.array([[*column] for column in columns]).T
    favourite_index = np.array([groups.index(favourites[name]) for name in compared])
    rows = np.arange(len(compared))
    # In one order, so that neither the value nor the draws depend on names.
    order = np.lexsort((favourite_index, above[rows, favourite_index]))
    above, favourite_index = above[order], favourite_index[order]
    value, chance_test = float(nan_mean(above[rows, favourite_index])), UNTESTED
    if resampling is not None:
        draws = null_draws(resampling, 8_000_000 // len(favourite_index))
        favourite_orders, text, weights, finest = _orders(
            favourite_index, _MOST_ORDERS, draws, resampling, rng, "favourites"
        )
        # A favourite that a concept does not compare is left out of the mean.
        null, text = nan_mean(above[rows, favourite_orders]), f"{_FAVOURITES}; {text}"
        chance_test = compare_with_null(
            null, value, "higher", text, weights=weights, resolution=finest
        )
    constant = len({*favourite_index.tolist()}) == 1
    constant_reason = "the favourite is the same for all concepts: permuting it changes nothing"
    return make_estimate(
        metric="favourite_gap",
        value=value,
        n={"concepts": len(favourite_index)},
        method=_method(len(favourite_index), resampling, "concepts"),
        **chance_test.fields("resampling is off"),
        excluded=excluded,
        unit="concept",
        reason=constant_reason if constant else "",
        ends=no_ends if resampling is None else ClosedForm(mean_t, (above[rows, favourite_index],)),
    )


def preferences(
    effects: Mapping[str, Mapping[str, float]], favourites: Mapping[str, str]
) -> dict[str, float]:
    """Return by concept the favourite's effect less the mean of the others'; NaN without one."""
    gaps = {}
    for concept, group in favourites.items():
        group_effects = effects.get(concept, {})
        other_effects = [
            v for name, v in group_effects.items() if name != group and not math.isnan(v)
        ]
        mean = sum(other_effects) / len(other_effects) if other_effects else math.nan
        gaps[concept] = group_effects.get(group, math.nan) - mean
    return gaps

"""Numbers of subjects: correlation with an outside series, local regression, summaries."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal

import numpy as np
from scipy.special import stdtr
from scipy.stats import rankdata

from equipoise.core import Estimate, Floats, InputError, Part, no_ends, parts_to_table
from equipoise.metrics.spec import MetricSpec, make_estimate, register
from equipoise.stats.intervals import ClosedForm, fisher_z


def correlation(x: Any, y: Any, *, level: float = 0.95) -> Estimate:
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
    """
    first, second, dropped = pairs_of(x, y)
    parts = [
        _part("pearson", first, second, level),
        _part("spearman", rankdata(first), rankdata(second), level),
    ]
    one, n = parts[0], len(first)
    known = not math.isnan(one.value)
    return make_estimate(
        "correlation",
        one.value,
        {"pairs": n},
        "Fisher's z",
        no_chance="" if known else one.reason,
        p_value=one.p_value if known else None,
        null="the pairs are independent and normal: t distribution with n - 2 degrees of freedom",
        by=parts_to_table(parts),
        excluded={"no two finite numbers": dropped},
        unit="pair",
        reason=one.reason,
        ends=ClosedForm(fisher_z, (one.value, n)) if known else no_ends,
    )


def loess(x: Any, y: Any, *, span: float = 2.0 / 3.0) -> Callable[[Any], Floats]:
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
    """
    if not 0.0 < span <= 1.0:
        raise InputError(f"span={span}: expected a share of the data, above 0 and at most 1")
    first, second, _ = pairs_of(x, y)
    if len(first) < 3:
        raise InputError(f"loess: {len(first)} pairs of finite numbers; expected at least 3")
    near = max(2, math.ceil(span * len(first) - 1e-9))

    def fit(point: float) -> float:
        distance = np.abs(first - point)
        reach = float(np.partition(distance, near - 1)[near - 1])
        if reach == 0.0:
            return float(second[distance == 0.0].mean())
        # Tricube weights.
        weight = np.clip(1.0 - (distance / reach) ** 3, 0.0, None) ** 3
        total = weight.sum()
        centre, level = (weight @ first) / total, (weight @ second) / total
        apart = first - centre
        squares = float(weight @ apart**2)
        # All weight on one place: there is no slope to fit.
        if squares <= 1e-14 * total * reach**2:
            return float(level)
        return float(level + (weight @ (apart * second)) / squares * (point - centre))

    return lambda points: np.array([fit(point) for point in np.atleast_1d(points)])


def pairs_of(x: Any, y: Any) -> tuple[Floats, Floats, int]:
    """Return pairs of finite numbers in order, and how many others there are."""
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if first.ndim != 1 or first.shape != second.shape:
        raise InputError(f"{first.shape} and {second.shape}: expected as many numbers in both")
    known = np.isfinite(first) & np.isfinite(second)
    first, second = first[known], second[known]
    # In one order, so that neither values nor draws depend on the order given.
    order = np.lexsort((second, first))
    return first[order], second[order], int((~known).sum())


def correlations(first: Floats, second: Floats) -> Floats:
    """Pearson correlations of rows, NaN where a row is constant."""
    a = first - first.mean(axis=1, keepdims=True)
    b = second - second.mean(axis=1, keepdims=True)
    norms = np.sqrt((a * a).sum(axis=1) * (b * b).sum(axis=1))
    with np.errstate(invalid="ignore", divide="ignore"):
        found = (a * b).sum(axis=1) / norms
    return np.asarray(np.clip(found, -1.0, 1.0))


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


def score_summary(scores: Mapping[str, float], categories: Mapping[str, str]) -> Estimate:
    """Mean and standard deviation of scores by category of target and direction.

    Parameters
    ----------
    scores : mapping of target to number
        Such as MCAS; positive leans to the first group.
    categories : mapping of target to str

    Returns
    -------
    Estimate
        Mean over all targets, with no interval and no chance level: targets are declared, not
        drawn. `.by` has "mean" and "sd" (n - 1) of "category, a", "category, b" (leaning to the
        first and second group) and "category"; scores that are not finite are counted.

    Raises
    ------
    InputError
        When a target has no category, or there is no finite score.

    References
    ----------
    Mandal 2024, chapter 6.
    """
    if without := sorted({*scores} - {*categories}):
        raise InputError(f"categories: none for target {without[0]!r}; expected one for each")
    known = {name: float(scores[name]) for name in sorted(scores) if math.isfinite(scores[name])}
    if not known:
        raise InputError("scores: no finite number; expected one per target")
    parts = []
    for category in sorted({categories[name] for name in known}):
        values = np.sort([one for name, one in known.items() if categories[name] == category])
        sides = {", a": values[values > 0], ", b": values[values < 0], "": values}
        for suffix, some in sides.items():
            n = len(some)
            mean = float(some.mean()) if n else math.nan
            spread = float(some.std(ddof=1)) if n > 1 else math.nan
            few = "fewer than two targets" if n < 2 else ""
            parts += [
                Part("mean", category + suffix, mean, n=n, reason="" if n else "no target"),
                Part("sd", category + suffix, spread, n=n, reason=few),
            ]
    return make_estimate(
        "score_summary",
        float(np.mean([*known.values()])),
        {"targets": len(known)},
        "none: targets are declared, not drawn",
        no_chance="a summary over declared targets",
        by=parts_to_table(parts),
        excluded={"no finite score": len(scores) - len(known)},
        unit="target",
    )


_correlation = partial(
    MetricSpec,
    kinds=("associations", "answers"),
    range="[-1, 1]",
    harm="either",
    chance="none drawn: p from the t distribution with n − 2 degrees of freedom",
    interval="Fisher's z",
    reference="Fisher 1921; Bonett & Wright 2000",
    direction="Either: positive means the metric rises with the figures.",
)
register(
    _correlation(
        name="correlation",
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
    ),
    _correlation(
        name="spearman",
        title="Rank correlation with outside figures",
        symbol="ρ",
        definition=(
            "Spearman's correlation of a metric with outside figures, over subjects or regions."
        ),
        null="pairs are independent",
    ),
    MetricSpec(
        name="score_summary",
        title="Mean score",
        kinds=("associations", "text_to_image"),
        range="that of the score",
        harm="either",
        definition=(
            "Mean and standard deviation of scores such as MCAS, by category of target and "
            "direction."
        ),
        direction="Either: the sign is the direction of the score.",
        chance="none: a summary over declared targets",
        reference="Mandal 2024, chapter 6",
    ),
)

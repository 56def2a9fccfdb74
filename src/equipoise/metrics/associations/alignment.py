"""Alignment of preferences with a hypothesis that was declared beforehand."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import permutations as orderings
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from equipoise.core.errors import InputError
from equipoise.core.estimate import Estimate
from equipoise.core.parts import parts_to_table
from equipoise.metrics.associations.partitions import (
    MOST_PARTITIONS,
    Exchanged,
    exchange,
    permutations,
)
from equipoise.metrics.associations.resampling import against_exchanged
from equipoise.metrics.building import NOTHING, Against, bootstrap_method, ends_of, number
from equipoise.metrics.measure import DEFAULT
from equipoise.metrics.spec import MetricSpec, make_estimate, register
from equipoise.stats.resampling import Bootstrap, Exact, Resampling
from equipoise.stats.streams import stream

Floats = npt.NDArray[np.float64]
Statistic = Literal["mean", "rank"]

_NULL = "the hypothesis is exchangeable over subjects"


def alignment(
    preferences: Any,
    hypothesis: Any,
    *,
    statistic: Statistic = "mean",
    resampling: Resampling | None = DEFAULT,
    rng: int = 0,
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
    resampling : Bootstrap, Permutation, Exact or None
        None gives the value alone.
    rng : int
        Seed.

    Returns
    -------
    Estimate
        For "mean" in units of the preference, for "rank" in [-1, 1]; higher: follows the
        hypothesis. Interval: percentile bootstrap over subjects. Chance and p (one-sided): the
        hypothesis is permuted over subjects; exact where it can be enumerated. `.by` has the mean
        preference in the hypothesised direction of each side. Subjects of one mapping only,
        without a finite number, or, for "mean", without a direction are counted in `.excluded`.

    Raises
    ------
    InputError
        When lengths differ, no subject (for "rank": fewer than three) is left, or `statistic` is
        unknown.

    Notes
    -----
    Needed beside tests per subject: a trained model is never exactly neutral, so with images enough
    any preference, however small, has a small p; whether preferences line up is another question.
    """
    if statistic not in ("mean", "rank"):
        raise InputError(f"statistic={statistic!r}: expected 'mean' or 'rank'")
    pairs = _pairs(preferences, hypothesis, statistic)
    values, expected = pairs.preference, pairs.hypothesis
    value = _mean(values, expected) if statistic == "mean" else _spearman(values, expected)
    boot = _bootstrap(pairs, statistic, resampling, rng)
    held = _held(pairs, statistic, value, resampling, rng)
    reason = "" if not math.isnan(value) else "all preferences, or all hypotheses, are equal"
    if statistic == "mean" and len(set(expected.tolist())) == 1:
        reason = "the hypothesis is the same for all subjects: permuting it changes nothing"
    sides = [
        number(
            "alignment",
            float(values[expected == sign].mean() * sign),
            subject=name,
            n=int((expected == sign).sum()),
        )
        for sign, name in ((1.0, "positive"), (-1.0, "negative"))
        if statistic == "mean" and (expected == sign).any()
    ]
    return make_estimate(
        metric="alignment",
        value=value,
        n={"subjects": len(values)},
        method=bootstrap_method(
            boot, resampling, "subjects", "none: use Bootstrap() and two subjects or more"
        ),
        params={"statistic": statistic},
        **held.fields("no resampling was asked for, or there is no value"),
        by=parts_to_table(sides),
        excluded=pairs.excluded,
        unit="subject",
        reason=reason,
        ends=ends_of(boot, 0),
    )


@dataclass(frozen=True, eq=False)
class _Pairs:
    preference: Floats
    hypothesis: Floats
    excluded: Mapping[str, int]


def _pairs(preferences: Any, hypothesis: Any, statistic: str) -> _Pairs:
    excluded: dict[str, int] = {}
    if isinstance(preferences, Mapping) != isinstance(hypothesis, Mapping):
        raise InputError("preferences and hypothesis: expected two mappings or two arrays")
    if isinstance(preferences, Mapping):
        names = sorted({*preferences} & {*hypothesis}, key=str)
        excluded["in one of preferences and hypothesis only"] = len({*preferences} ^ {*hypothesis})
        preferences = [preferences[name] for name in names]
        hypothesis = [hypothesis[name] for name in names]
    first = np.asarray(preferences, dtype=np.float64)
    second = np.asarray(hypothesis, dtype=np.float64)
    if first.ndim != 1 or first.shape != second.shape:
        raise InputError(
            f"preferences {first.shape} and hypothesis {second.shape}: expected one number each "
            "per subject, (subjects,)"
        )
    known = np.isfinite(first) & np.isfinite(second)
    excluded["no finite number"] = int((~known).sum())
    if statistic == "mean":
        second = np.sign(second)
        excluded["no direction in the hypothesis"] = int((known & (second == 0)).sum())
        known &= second != 0
    least = 1 if statistic == "mean" else 3
    if known.sum() < least:
        raise InputError(
            f"alignment: {int(known.sum())} subjects with a preference and a hypothesis; "
            f"expected at least {least}"
        )
    # In one order, so that neither the value nor the draws depend on the order given.
    first, second = first[known], second[known]
    order = np.lexsort((second, first))
    return _Pairs(first[order], second[order], {k: n for k, n in excluded.items() if n})


def _mean(values: Floats, signs: Floats) -> float:
    return float((values * signs).mean())


def _spearman(values: Floats, expected: Floats) -> float:
    return float(_correlations(rankdata(values)[None], rankdata(expected)[None])[0])


def _correlations(first: Floats, second: Floats) -> Floats:
    """Pearson correlations of rows, NaN where a row is constant."""
    a = first - first.mean(axis=1, keepdims=True)
    b = second - second.mean(axis=1, keepdims=True)
    norms = np.sqrt((a * a).sum(axis=1) * (b * b).sum(axis=1))
    with np.errstate(invalid="ignore", divide="ignore"):
        found = (a * b).sum(axis=1) / norms
    return np.asarray(np.clip(found, -1.0, 1.0))


def _bootstrap(
    pairs: _Pairs, statistic: str, resampling: Resampling | None, seed: int
) -> Floats | None:
    n = len(pairs.preference)
    if not isinstance(resampling, Bootstrap) or n < 2:
        return None
    draws = stream(seed, "bootstrap", "subjects").integers(n, size=(resampling.replicates, n))
    values, expected = pairs.preference[draws], pairs.hypothesis[draws]
    if statistic == "mean":
        return np.asarray((values * expected).mean(axis=1)[:, None])
    ranks = (rankdata(one, axis=1) for one in (values, expected))
    return np.asarray(_correlations(*ranks)[:, None])


def _held(
    pairs: _Pairs, statistic: str, value: float, resampling: Resampling | None, seed: int
) -> Against:
    if resampling is None or math.isnan(value):
        return NOTHING
    tested = (
        _of_signs(pairs, resampling, seed)
        if statistic == "mean"
        else _of_ranks(pairs, value, resampling, seed)
    )
    return against_exchanged(tested, value, "higher", 1.0, _NULL)


def _of_signs(pairs: _Pairs, resampling: Resampling, seed: int) -> Exchanged:
    """Permuting signs partitions the preferences: exact where partitions are few."""
    up = pairs.hypothesis > 0
    values = pairs.preference[:, None]
    if up.all() or not up.any():
        same = np.array([[_mean(pairs.preference, pairs.hypothesis)]])
        return Exchanged(same[0], same, True, 1, "1 permutation enumerated", 1.0)
    found = exchange(values[up], values[~up], resampling, seed, "subjects")
    return found.scaled(*_to_mean(values, up))


def _to_mean(values: Floats, up: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """Return factor and shift from a difference in means to the mean signed preference.

    With S the sum where the hypothesis is positive and D the difference in means,
    S = (D + total / m) / (1 / k + 1 / m), and the mean is (2 S - total) / n.
    """
    total, k, n = float(values.sum()), int(up.sum()), len(up)
    m = n - k
    per = 1.0 / k + 1.0 / m
    return 2.0 / (n * per), (2.0 * total / m / per - total) / n


def _of_ranks(pairs: _Pairs, value: float, resampling: Resampling, seed: int) -> Exchanged:
    first, second = rankdata(pairs.preference), rankdata(pairs.hypothesis)
    n = len(first)
    limit = resampling.limit if isinstance(resampling, Exact) else MOST_PARTITIONS
    total = math.factorial(n)
    if total <= limit:
        null = _correlations(first[None], np.array([*orderings(second)]))
        text = f"all {total} permutations enumerated"
        return Exchanged(np.array([value]), null[:, None], True, total, text, 1.0)
    if isinstance(resampling, Exact):
        raise InputError(
            f"resampling=Exact: {n} subjects have {total} permutations, more than {limit}; "
            "use Permutation()"
        )
    draws = permutations(n, resampling)
    shuffled = stream(seed, "permutation", "subjects").permuted(np.tile(second, (draws, 1)), axis=1)
    null = _correlations(first[None], shuffled)[:, None]
    text = f"{draws} random permutations"
    return Exchanged(
        np.array([value]), null, False, total, text, 1.0, resolution=resampling.resolution
    )


register(
    MetricSpec(
        name="alignment",
        title="Alignment with a hypothesis",
        kinds=("associations", "similarity"),
        range="that of the preference; [-1, 1] for ranks",
        definition=(
            "Mean preference in the direction that a hypothesis declares for each subject, or "
            "their rank correlation."
        ),
        direction="Higher: preferences follow the hypothesis.",
        chance="near 0",
        interval="percentile bootstrap over subjects",
        null="the hypothesis is exchangeable over subjects",
        parameters={"statistic": "mean or rank"},
        reference="Good 2005, Permutation, Parametric and Bootstrap Tests of Hypotheses",
    )
)

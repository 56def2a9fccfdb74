"""How often a model's answer changes with the order of the options."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from equipoise.core import (
    Chance,
    Estimate,
    Floats,
    GroupLabels,
    InputError,
    Labels,
    NullHypothesis,
    floats,
)
from equipoise.metrics.measure import DEFAULT
from equipoise.metrics.numbers.means import RowValues, mean_value
from equipoise.metrics.registry import metric
from equipoise.metrics.spec import MetricSpec
from equipoise.stats import Resampling


@metric(
    MetricSpec(
        name="order_inconsistency",
        aliases=("position bias",),
        kinds=("questions",),
        unit="share",
        rate=True,
        rest_metric="order_inconsistency",
        neutral=None,
        of_one_answer=True,
        group_label="share of answers that change with the order",
        definition=(
            "Share of pairs of orders, in which each option stands at another position, that get "
            "different options; mean over wordings and items. Of two options: the share of "
            "questions whose answer changes with the order."
        ),
        direction="Higher: answers follow the position of the options, not the picture.",
        threshold=0.0,
        gravest="detected",
        verdict_title="By position",
        threshold_reason="the null hypothesis is a model that answers at random",
        chance="1 − 1/k for random answers among k options",
        interval="Wilson, items or units by their design effect",
        null="answers are random among the options",
        null_kind=NullHypothesis.SHARES,
        reference="Xiao et al. 2024 (GenderBias-VL); Zheng et al. 2024, ICLR",
        sentence="Answers{model} follow the position of the options. {direction}.",
    )
)
def order_inconsistency(
    answers: ArrayLike,
    n_options: ArrayLike = 2,
    groups: GroupLabels | None = None,
    *,
    units: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
) -> Estimate:
    """Share of pairs of orders of the options that get different answers.

    Parameters
    ----------
    answers : array-like, shape (n, orders)
        Number of the option that was chosen in each order; NaN without an answer. In each order
        every option stands at another position.
    n_options : int or array-like (n,)
        How many options each question has.
    groups : array-like (n,), mapping of attribute to labels, or Groups, optional
    units : array-like (n,), optional
        Unit of each question, such as the person shown.
    resampling : Bootstrap, Permutation or None
        None gives the value alone.

    Returns
    -------
    Estimate
        In [0, 1], higher: answers follow the position. Chance: answers at random, 1 − 1/k of k
        options; p: an exact binomial test of as many questions as are independent. Interval:
        Wilson's of as many. `.by` has one part, with the share of each group.

    Raises
    ------
    InputError
        When lengths differ.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> always_first = [[0, 1]] * 50
    >>> m.order_inconsistency(always_first)
    <order_inconsistency 1.000 [0.929, 1.000]; chance 0.500, p = 8.9e-16, n = 50>
    """
    numbers = floats(answers)
    if numbers.ndim != 2:
        raise InputError(f"answers: shape {numbers.shape}; expected (n, orders)")
    changed = changed_share(numbers, combinations(range(numbers.shape[1]), 2))
    options = np.broadcast_to(floats(n_options), changed.shape)
    return inconsistency_of(changed, options, groups, units=units, resampling=resampling)


def changed_share(answers: Floats, pairs: Iterable[tuple[int, int]]) -> Floats:
    """Return the share of pairs of orders with different answers; NaN without a pair.

    Parameters
    ----------
    answers : ndarray, shape (n, orders)
        NaN without an answer.
    pairs : iterable of (int, int)
        Orders to compare.
    """
    changed, compared = np.zeros(len(answers)), np.zeros(len(answers))
    for first, second in pairs:
        is_pair = ~np.isnan(answers[:, first] + answers[:, second])
        compared += is_pair
        changed += is_pair & (answers[:, first] != answers[:, second])
    return np.where(compared > 0, changed / np.maximum(compared, 1), np.nan)


def inconsistency_of(
    changed: Floats,
    n_options: Floats,
    groups: GroupLabels | None = None,
    *,
    units: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
) -> Estimate:
    """Return the estimate of changed answers, with the level of random answers."""
    mean = mean_value("order_inconsistency", changed, groups, units=units, resampling=resampling)
    counted = ~np.isnan(changed)
    if not counted.any():
        return mean
    return tested_above(
        float((1.0 - 1.0 / n_options[counted]).mean()), mean, changed, groups, units,
        resampling=resampling, of="answers at random", counted="questions",
    )  # fmt: skip


def tested_above(
    chance: float,
    mean: Estimate,
    values: ArrayLike,
    groups: GroupLabels | None,
    units: Labels | None,
    *,
    resampling: Resampling | None,
    of: str,
    counted: str,
) -> Estimate:
    """Return a mean of shares with a test against a level: `of` has it, of the rows `counted`."""
    rows = RowValues.of(values, groups, units, shares=True)
    if resampling is None or not len(rows.values):
        return mean
    n = rows.independent()
    hits = mean.value * n
    p = float(special.betainc(hits, n - hits + 1.0, chance)) if hits > 0.0 else 1.0
    return replace(
        mean, chance=Chance(chance, chance, chance, of), p_value=p, no_chance="",
        null=NullHypothesis.SHARES, null_drawn=f"exact binomial test of independent {counted}",
    )  # fmt: skip

"""Agreement of labellers: Krippendorff's alpha."""

from __future__ import annotations

import math

import numpy as np

from equipoise.core import (
    Ends,
    Estimate,
    Floats,
    InputError,
    Labels,
    Part,
    Span,
    Strings,
    encode,
    floats,
    no_ends,
    tally,
    unwarned,
)
from equipoise.metrics.building import explain_undefined
from equipoise.metrics.measure import DEFAULT, NO_INTERVAL
from equipoise.metrics.registry import metric
from equipoise.metrics.spec import MetricSpec, make_estimate
from equipoise.stats.intervals import normal, wilson
from equipoise.stats.resampling import Resampling, level_of

_JACKKNIFE = "jackknife of ln(1 - alpha) over items, with two items added"
_WILSON = "Wilson's bound on the share of items with a disagreement"
_NO_CHANCE = "alpha subtracts the agreement by chance: 0 is chance"


@metric(
    MetricSpec(
        name="krippendorff_alpha",
        aliases=("Krippendorff's alpha", "inter-annotator agreement"),
        kinds=("review",),
        title="Krippendorff's alpha",
        symbol="α",
        range=(-math.inf, 1.0),
        harm="lower",
        neutral=None,
        definition="1 minus observed over expected disagreement of labellers on the same items.",
        direction="Lower: labellers disagree more; 0 is chance.",
        chance=f"none: {_NO_CHANCE}",
        interval=_JACKKNIFE,
        reference="Krippendorff 2011",
    )
)
def krippendorff_alpha(
    labels: Labels,
    items: Labels,
    labellers: Labels,
    *,
    resampling: Resampling | None = DEFAULT,
) -> Estimate:
    """Agreement of labellers beyond chance: Krippendorff's alpha of nominal labels.

    Parameters
    ----------
    labels, items, labellers : array-like, shape (n,)
        Label, item and labeller of each answer; an answer without a label is left out.
    resampling : Bootstrap, Permutation or None
        None: no interval. Nothing is drawn.

    Returns
    -------
    Estimate
        In (-1, 1]: 1 is perfect agreement, 0 chance. Only items with two or more labels count.
        `.by` has the share of pairs that agree on each label. NaN where all labels are alike. The
        interval is the jackknife's of ln(1 - alpha), with two items added. If no disagreement was
        seen, the low end follows from Wilson's bound on the share of items with one.

    Raises
    ------
    InputError
        If a labeller answers an item twice, or lengths differ.

    References
    ----------
    Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability"; Krippendorff 2019, Content
    Analysis, chapter 12; Agresti & Coull 1998, The American Statistician 52, 119-126.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> m.krippendorff_alpha(
    ...     ["a", "a", "b", "b", "a", "b"] * 5, [n // 2 for n in range(30)], [0, 1] * 15
    ... )
    <krippendorff_alpha 0.356 [−0.380, 0.658]; n = 15>
    """
    answer, names = encode(labels, subject="labels")
    item, labeller = encode(items, subject="items")[0], encode(labellers, subject="labellers")[0]
    if not len(answer) == len(item) == len(labeller):
        raise InputError("labels, items, labellers: expected one length")
    if len(np.unique(np.stack([item, labeller]), axis=1).T) < len(item):
        raise InputError("labellers: one answers an item twice; expected one answer of each")
    table = np.zeros((int(item.max(initial=-1)) + 1, len(names)))
    labelled = answer >= 0
    np.add.at(table, (item[labelled], answer[labelled]), 1.0)
    # The order of items must not change the draws.
    multiply_labelled = table[table.sum(axis=1) >= 2]
    multiply_labelled = (
        multiply_labelled[np.lexsort(multiply_labelled.T)] if len(names) else multiply_labelled
    )
    value = (
        float(_alpha(multiply_labelled, np.ones((1, len(multiply_labelled))))[0])
        if len(multiply_labelled)
        else np.nan
    )
    ends: Ends = no_ends
    method = NO_INTERVAL
    if resampling is not None and not np.isnan(value):
        method = _JACKKNIFE if value < 1.0 else _WILSON
        ends = _jackknife(multiply_labelled) if value < 1.0 else _unanimous(multiply_labelled)
    reason = "no item has two labels" if not len(multiply_labelled) else "all labels are alike"
    return make_estimate(
        "krippendorff_alpha",
        value,
        {"items": len(multiply_labelled)},
        method,
        no_chance=_NO_CHANCE,
        params={"labels": int(multiply_labelled.sum())},
        by=_parts(multiply_labelled, names, level_of(resampling)),
        excluded={"items with one label": tally(table.sum(axis=1) == 1)},
        unit="item",
        reason=explain_undefined(value, reason),
        ends=ends,
    )


def _alpha(table: Floats, weights: Floats) -> Floats:
    """Return alpha of each replicate from weights of items, (replicates, items)."""
    of_item = table.sum(axis=1)
    disagreeing = (of_item**2 - (table**2).sum(axis=1)) / (of_item - 1.0)
    totals = weights @ table
    n = totals.sum(axis=1)
    expected = (n**2 - (totals**2).sum(axis=1)) / (n - 1.0)
    with unwarned():
        return floats(1.0 - (weights @ disagreeing) / np.where(expected > 0, expected, np.nan))


def _jackknife(table: Floats) -> Ends:
    """Return the interval of alpha from the jackknife of ln(1 - alpha) over items.

    Two items are added, as Agresti and Coull add successes and failures: one whose labellers agree
    on the rarest label, and one where one of them gives it and the others the most frequent one.
    Without them, a rare label that happens to have few disagreements has too short an interval.
    """
    totals, value = table.sum(axis=0), float(_alpha(table, np.ones((1, len(table))))[0])
    rare, frequent = int(np.where(totals > 0, totals, np.inf).argmin()), int(totals.argmax())
    if rare == frequent:
        rare = int(np.flatnonzero((totals > 0) & (np.arange(len(totals)) != frequent))[0])
    size, added = round(float(np.median(table.sum(axis=1)))), np.zeros((2, len(totals)))
    added[0, rare], added[1, rare], added[1, frequent] = size, 1.0, size - 1.0
    rows, times = np.unique(np.concatenate([table, added]), axis=0, return_counts=True)
    without_one = np.tile(floats(times), (len(rows), 1)) - np.eye(len(rows))
    logs = np.log1p(-_alpha(rows, without_one))
    n, centre = times.sum(), math.log1p(-float(_alpha(rows, floats(times)[None])[0]))
    mean = float(times @ logs) / n
    error = math.sqrt((n - 1.0) / n * float(times @ (logs - mean) ** 2))

    def ends(level: float) -> Span:
        half = float(normal(level)) * error
        low, high = (-math.expm1(centre + sign * half) for sign in (1.0, -1.0))
        return min(low, value), max(high, value)

    return ends


def _unanimous(table: Floats) -> Ends:
    totals = table.sum(axis=0)
    n = totals.sum()
    expected = (n**2 - (totals**2).sum()) / (n * (n - 1.0))

    def ends(level: float) -> Span:
        return 1.0 - float(wilson(0, len(table), level)[1]) / expected, 1.0

    return ends


def _parts(table: Floats, names: Strings, level: float) -> list[Part]:
    """Return, for each label, how often another labeller of the item gives it too."""
    pairs = (table * (table.sum(axis=1, keepdims=True) - 1.0)).sum(axis=0)
    agreeing = (table * (table - 1.0)).sum(axis=0)
    items = (table > 0).sum(axis=0)
    parts = []
    for name, share, n in zip(
        names, agreeing / np.maximum(pairs, 1.0), items.tolist(), strict=True
    ):
        low, high = wilson(share * n, n, level)
        value = float(share) if n else np.nan
        parts.append(Part("pair_agreement", name, value, float(low), float(high), n=n))
    return parts

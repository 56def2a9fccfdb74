"""Groups compared with others: with all rows, the best, the worst or a reference."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from equipoise.core import (
    GroupLabels,
    InputError,
    Integers,
    Labels,
    integers,
)
from equipoise.metrics.building import spread_level
from equipoise.metrics.labels.rate import Cells, Rate
from equipoise.metrics.labels.rates import rates_of_classes
from equipoise.metrics.labels.table import Counts, count
from equipoise.metrics.spec import SPECS
from equipoise.stats.intervals import Scored, divide, where


def rate_comparisons(
    y_true: Labels,
    y_pred: Labels,
    groups: GroupLabels,
    *,
    reference: str | None = None,
    weights: ArrayLike | None = None,
    units: Labels | None = None,
    level: float = 0.95,
) -> pa.Table:
    """Differences and ratios of every group's rates to other groups.

    Parameters
    ----------
    y_true, y_pred, groups, weights, units
        See `equipoise.metrics.labels.count`.
    reference : str, optional
        Display name of the reference group, such as "White, Male".
    level : float
        Confidence level of the intervals.

    Returns
    -------
    pyarrow.Table
        One row per metric, class (`subject`), group and `versus`. `difference` = rate of the
        group − rate of `versus_group`, in [-1, 1]; `ratio` their quotient, NaN where the
        latter is 0, and of average odds. Both are NaN where a rate has no rows. `n` counts the
        group's rows in the rate's denominator. Metrics are those of
        `rates`: the difference of selection_rate is the statistical parity difference, that of
        true_positive_rate the equal opportunity difference, that of average_odds the average
        odds difference. "best" is the highest rate ("lowest" for false positive and false
        negative rate) of the groups large enough, "worst" the opposite; "overall" is the rate
        of all rows, which contain the group, so that there is no interval.

        Intervals: Newcombe's for differences and the hybrid score interval of Donner & Zou for
        ratios, both from Wilson intervals, so that shares of 0 and 1 need no correction (Katz'
        interval of the logarithm has no value there); units of repeated rows by their design
        effect. Against "best" and "worst", which the data choose, they hold for all pairs of
        groups together (Bonferroni).

    Raises
    ------
    InputError
        When `reference` names no group, shapes do not fit or no row is complete.

    References
    ----------
    Newcombe 1998, Statistics in Medicine 17, 873-890; Donner & Zou 2012, Statistical Methods in
    Medical Research 21, 347-359; Bellamy et al. 2019 (average odds difference).

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> gender = ["women", "men"] * 60
    >>> true = ["chef", "chef", "nurse", "nurse"] * 30
    >>> pred = ["nurse", "chef", "nurse", "nurse"] * 20 + true[:40]
    >>> m.rate_comparisons(true, pred, gender, reference="men").num_rows
    90
    """
    counts = count(y_true, y_pred, groups, weights=weights, units=units)
    names, usable = counts.groups.names, counts.groups.usable
    if reference is not None:
        reference = counts.groups.display_name(reference)
    if reference is not None and reference not in names:
        raise InputError(f"reference={reference!r}: unknown group; expected one of {names}")
    # All rows are the last but one group, and none the last.
    overall = counts.observed.sum(axis=2, keepdims=True)
    cells = Cells.of(counts, np.concatenate([counts.observed, overall, 0.0 * overall], axis=2))
    pairs, tables = int(usable.sum() * (usable.sum() - 1) // 2), []
    for rate in rates_of_classes().values():
        values = rate.shares(cells)[0]
        better = -values[:, :-2] if SPECS[rate.name].harm == "higher" else values[:, :-2]
        partners = {"overall": np.full(len(values), -2)}
        if reference is not None:
            partners["reference"] = np.full(len(values), names.index(reference))
        for versus, score in (("best", better), ("worst", -better)):
            comparable_scores = np.where(usable & ~np.isnan(score), score, -np.inf)
            partners[versus] = np.where(
                np.isneginf(comparable_scores).all(axis=1), -1, comparable_scores.argmax(axis=1)
            )
        for versus, partner in partners.items():
            # A group that the data choose costs all pairs.
            joint_level = spread_level(level, pairs if versus in ("best", "worst") else 1)
            group_rates = rate.scored(rate.effective(counts), joint_level, cells)
            tables.append(_table(counts, rate, cells, group_rates, versus, partner))
    return pa.concat_tables(tables, promote_options="default")


def _table(
    counts: Counts, rate: Rate, cells: Cells, group_rates: Scored, versus: str, partner: Integers
) -> pa.Table:
    """Return one row per class and group."""
    values, classes = rate.shares(cells)[0], np.arange(len(partner))
    # Intervals are of groups alone: where there is no group to compare with, any fills the place.
    partner_index = np.maximum(partner, -1)
    partner_values, partner_rates = (
        values[classes, partner][:, None],
        group_rates[classes, partner_index][:, None],
    )
    values, scored_difference, scored_ratio = (
        values[:, :-2],
        group_rates.minus(partner_rates),
        group_rates.over(partner_rates),
    )
    quotient = divide(values, partner_values) * (np.nan if rate.name == "average_odds" else 1.0)
    difference, has_interval = values - partner_values, versus != "overall"
    low, high = where(
        ~np.isnan(difference) & has_interval, scored_difference.low, scored_difference.high
    )
    ratio_low, ratio_high = where(
        ~np.isnan(quotient) & has_interval, scored_ratio.low, scored_ratio.high
    )
    # A group is not compared with itself.
    subject, group = np.nonzero(np.arange(len(counts.groups)) != partner[:, None])
    names = (*counts.groups.names, "", "")
    return pa.table(
        {
            "metric": [rate.name] * len(group),
            "subject": [counts.classes[place] for place in subject],
            "group": [names[place] for place in group],
            "versus": [versus] * len(group),
            "versus_group": [names[place] for place in partner[subject]],
            "difference": difference[subject, group],
            "low": low[subject, group],
            "high": high[subject, group],
            "ratio": quotient[subject, group],
            "ratio_low": ratio_low[subject, group],
            "ratio_high": ratio_high[subject, group],
            "n": integers(np.rint(rate.totals(cells)[0][subject, group])),
        }
    )

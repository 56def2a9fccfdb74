"""Metrics of scores: a number of outcomes of 0 or 1 and their scores, for each group."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from equipoise.core import (
    Aggregate,
    Booleans,
    Ends,
    Estimate,
    Floats,
    GroupLabels,
    GroupValue,
    InputError,
    IntervalKind,
    Labels,
    Part,
    Span,
    floats,
    nans,
    no_ends,
    record,
)
from equipoise.core.labels import Cell
from equipoise.metrics.building import (
    bootstrap_method,
    compare_with_chance,
    compare_with_null,
    count_estimate,
    ends_of,
    explain_undefined,
    folded_ends,
    gaps,
    group_rows,
    nan_mean,
    number,
    spread_level,
    too_small,
)
from equipoise.metrics.documenting import Form
from equipoise.metrics.labels.comparisons import OTHERS, all_others
from equipoise.metrics.measure import DEFAULT, Draws, Measure, measure
from equipoise.metrics.registry import OptionTypes, check_options, defaults_of, options_of
from equipoise.metrics.scores.table import ScoreCounts, ScoredRows
from equipoise.metrics.spec import MetricSpec, spec_for
from equipoise.stats import Resampling
from equipoise.stats.resampling import Bootstrap
from equipoise.stats.streams import Seed, stream

ScoreStatistic = Callable[..., Floats]
"""From outcomes (rows,), rising scores (rows,), weights (rows, tables) and options by name to the
number of each table (tables,); NaN where it has none."""
Exchange = Literal["rows", "class", "score"]
"""What exchanges groups: all rows, rows of one outcome, or rows of alike scores."""
Defaults = Callable[[ScoredRows], Mapping[str, float]]
"""From all rows to the options that a user doesn't set."""
_NULLS: Mapping[Exchange, Literal["rows", "class", "prediction"]] = {
    "rows": "rows", "class": "class", "score": "prediction",
}  # fmt: skip
RESULTS = "The results{model}{subject} are {direction}."
"""Sentence of which group's results are worse."""
INTERVAL = (
    "percentile bootstrap over images or units, folded at 0, simultaneous over pairs of groups"
)
_ALIKE = "groups are exchangeable among rows of alike scores"
_CALIBRATED = "outcomes are drawn from the scores, as of a calibrated model"
_FEW = "fewer than two groups have rows enough"
_DRAWS = 1000


def no_options(rows: ScoredRows) -> Mapping[str, float]:  # noqa: ARG001 - the form of `Defaults`
    """Return the options of a metric that has none."""
    return {}


@record
class ScoreMetric(Form):
    """A statistic of outcomes and scores as a metric.

    Call it for the number over all rows, or its `difference` for the largest between groups. True
    outcomes are 0 and 1, or labels with the class that is `positive`.

    Attributes
    ----------
    spec : MetricSpec
    statistic : callable
        From outcomes, rising scores, weights and options to numbers, see `ScoreStatistic`.
    exchange : "rows", "class" or "score"
        Which rows exchange their groups for the chance level of a difference.
    probabilities : bool
        Whether scores are probabilities, in [0, 1]: its chance level is then what a calibrated
        model shows.
    shifts : bool
        Whether chance makes it larger, as a sum of distances, so that replicates lie above the
        value; intervals are then centred at it.
    defaults : callable
        From all rows to the options that aren't set.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> hired = [0, 1, 0, 1] * 50
    >>> score = [0.2, 0.6, 0.4, 0.3] * 25 + [0.2, 0.6, 0.4, 0.7] * 25
    >>> gender = ["women"] * 100 + ["men"] * 100
    >>> m.auroc(hired, score, gender).value
    0.875
    >>> m.auroc.difference(hired, score, gender).value
    0.25
    """

    spec: MetricSpec
    statistic: ScoreStatistic
    exchange: Exchange
    probabilities: bool
    shifts: bool
    defaults: Defaults

    @classmethod
    def of(
        cls,
        spec: MetricSpec,
        statistic: ScoreStatistic,
        *,
        exchange: Exchange = "rows",
        probabilities: bool = False,
        shifts: bool = False,
        defaults: Defaults = no_options,
    ) -> ScoreMetric:
        """Make a metric of a statistic: groups have a number, which they are compared in."""
        full_spec = replace(spec, rate=True, rest_metric=spec.name)
        return cls(full_spec, statistic, exchange, probabilities, shifts, defaults)

    @property
    def options(self) -> OptionTypes:
        """Types of its options, by name."""
        return options_of(self.statistic)

    def measure(
        self, rows: ScoredRows, aggregate: Aggregate, options: Mapping[str, float]
    ) -> ScoreMeasure:
        """Return what measures rows by it, with all options.

        Raises
        ------
        InputError
            When an option is unknown, or scores are no probabilities though it needs them.
        """
        check_options(self.spec.name, options, self.options)
        if self.probabilities and not are_probabilities(rows.scores):
            low, high = rows.scores.min(), rows.scores.max()
            raise InputError(
                f"{self.spec.name}: scores from {low:g} to {high:g}; expected probabilities, from "
                "0 to 1. To do: give probabilities, such as the logistic function of a logit"
            )
        all_options = {**defaults_of(self.statistic), **self.defaults(rows), **options}
        return ScoreMeasure(self, aggregate, all_options, ScoreCounts.of(rows, steps=None))

    def __call__(
        self,
        y_true: ArrayLike,
        y_score: ArrayLike,
        groups: GroupLabels | None = None,
        *,
        positive: Cell = "",
        units: Labels | None = None,
        resampling: Resampling | None = DEFAULT,
        rng: Seed = 0,
        **options: float,
    ) -> Estimate:
        """Return the number over all rows, with that of each group; see `equipoise.metrics`."""
        rows = ScoredRows.of(y_true, y_score, groups, units, positive)
        return measure_scores(rows, [self.measure(rows, Aggregate.VALUE, options)], resampling,
                              rng)[0]  # fmt: skip

    def difference(
        self,
        y_true: ArrayLike,
        y_score: ArrayLike,
        groups: GroupLabels,
        *,
        positive: Cell = "",
        units: Labels | None = None,
        resampling: Resampling | None = DEFAULT,
        rng: Seed = 0,
        **options: float,
    ) -> Estimate:
        """Return the largest difference between groups in it; see `equipoise.metrics`."""
        rows = ScoredRows.of(y_true, y_score, groups, units, positive)
        return measure_scores(rows, [self.measure(rows, Aggregate.DIFFERENCE, options)],
                              resampling, rng)[0]  # fmt: skip


def are_probabilities(scores: Floats) -> bool:
    """Whether all scores are from 0 to 1."""
    return bool(((scores >= 0.0) & (scores <= 1.0)).all())


def measure_scores(
    rows: ScoredRows,
    measures: list[ScoreMeasure],
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> list[Estimate]:
    """Measure rows by several metrics, which share draws.

    Of very many distinct scores draws are made in steps of neighbours; values are of the scores as
    they are.
    """
    estimates = measure(ScoreCounts.of(rows), measures, resampling, rng)
    return [
        replace(estimate, excluded={**estimate.excluded, **{
            reason: n for reason, n in rows.excluded.items() if n
        }})
        for estimate in estimates
    ]  # fmt: skip


@record
class ScoreMeasure(Measure):
    """The measure behind a `ScoreMetric`: the number of all, of each group, and of all others.

    Attributes
    ----------
    metric : ScoreMetric
    aggregate : Aggregate
        VALUE: of all rows; DIFFERENCE: the largest between groups.
    options : mapping of str to float
    exact : ScoreCounts
        Of the scores as they are.
    """

    metric: ScoreMetric
    aggregate: Aggregate
    options: Mapping[str, float]
    exact: ScoreCounts
    resamples = True

    @property
    def compares(self) -> bool:  # type: ignore[override]
        """Whether it is a difference between groups."""
        return self.aggregate is Aggregate.DIFFERENCE

    @property
    def null(self) -> Literal["rows", "class", "prediction"] | None:  # type: ignore[override]
        """What exchanges groups."""
        return _NULLS[self.metric.exchange] if self.compares else None

    def __call__(self, counts: ScoreCounts, tables: Floats) -> Floats:  # type: ignore[override]
        """Return the main number, then each group's, then each one's of all others."""
        groups = self.group_numbers(counts, tables)
        if not self.compares:
            pooled = self._numbers(counts, tables.sum(axis=2, keepdims=True))
            return np.concatenate([pooled, groups], axis=1)
        compared = self.compared(counts)
        shown = np.where(compared, groups, np.nan)
        weights = np.where(compared & ~np.isnan(shown), counts.groups.counts, 0.0)
        sums = all_others(np.where(weights > 0.0, weights * shown, 0.0))
        others = nans(shown.shape)
        np.divide(sums, all_others(weights), out=others, where=all_others(weights) > 0.0)
        return np.concatenate([gaps(shown)[:, None], groups, others], axis=1)

    def group_numbers(self, counts: ScoreCounts, tables: Floats) -> Floats:
        """Return the number of each group, (tables, groups)."""
        return self._numbers(counts, tables)

    def _numbers(self, counts: ScoreCounts, tables: Floats) -> Floats:
        order = np.argsort(counts.scores, kind="stable")
        weights = tables.transpose(1, 2, 0)[order]
        n_groups, n_tables = weights.shape[1:]
        values = floats(
            self.metric.statistic(
                counts.outcomes[order], counts.scores[order],
                weights.reshape(len(order), -1), **self.options,
            )
        )  # fmt: skip
        if values.shape != (n_groups * n_tables,):
            raise InputError(
                f"metric {self.metric.spec.name!r}: gave numbers of shape {values.shape} for "
                f"{n_groups * n_tables} tables. To do: return one number for each"
            )
        self.metric.spec.check_values(values)
        return values.reshape(n_groups, n_tables).T

    def compared(self, counts: ScoreCounts) -> Booleans:
        """Return the groups that are large enough, of both outcomes where these are exchanged."""
        usable = counts.groups.usable
        if self.metric.exchange != "class":
            return usable
        return np.asarray(usable & (self._rarer(counts) >= counts.groups.min_size))

    @staticmethod
    def _rarer(counts: ScoreCounts) -> Floats:
        """Return how many rows of its rarer outcome each group has."""
        positives = counts.table[counts.outcomes == 1].sum(axis=0)
        return floats(np.minimum(positives, counts.table.sum(axis=0) - positives))

    def estimate(self, counts: ScoreCounts, draws: Draws) -> Estimate:  # type: ignore[override]
        """Turn the numbers into the estimate."""
        exact = self(self.exact, self.exact.observed)[0]
        text = draws.null_text
        if self.metric.exchange == "score" and text:
            text = f"{_ALIKE}; {text.partition('; ')[2]}"
        boot = draws.boot
        if boot is not None and self.metric.shifts:
            centred = boot - nan_mean(boot.T) + exact
            boot = np.clip(centred, *self.metric.spec.range)
        draws = replace(draws, observed=exact, boot=boot, null_text=text)
        return (_difference if self.compares else _value)(self, counts, draws)

    def by_group(self, counts: ScoreCounts, draws: Draws) -> tuple[GroupValue, ...]:
        """Return the number of every group with its interval."""
        groups, n_groups = counts.groups, len(counts.groups)
        values = draws.observed[1 : 1 + n_groups]
        ends = np.array([ends_of(draws.boot, 1 + g)(draws.level) for g in range(n_groups)])
        low, high = np.where(np.isnan(values)[:, None], np.nan, ends.reshape(-1, 2)).T
        few = f"fewer than {groups.min_size} rows of an outcome"
        small = groups.usable & ~self.compared(counts)
        notes = np.select(
            [groups.counts == 0, ~groups.usable, small], ["no rows", too_small(groups), few], ""
        )
        return group_rows(groups, groups.counts, values, low, high, notes.tolist())


def _method(counts: ScoreCounts, draws: Draws, more: str = "") -> str:
    resampling: Resampling | None = Bootstrap() if draws.intervals else None
    return bootstrap_method(draws.boot, resampling, f"{counts.unit}s") + more


def _value(measured: ScoreMeasure, counts: ScoreCounts, draws: Draws) -> Estimate:
    """Return the number of all rows."""
    spec, value = measured.metric.spec, float(draws.observed[0])
    chance_test = None
    if draws.intervals and measured.metric.probabilities and counts.independent:
        pooled = calibrated_numbers(measured, measured.exact)
        chance_test = compare_with_null(pooled, value, spec.value_harm, _CALIBRATED)
    ends = ends_of(draws.boot, 0)
    by_group = measured.by_group(counts, draws)
    main = number(
        spec.name, value, n=int(counts.groups.counts.sum()), ends=ends, level=draws.level,
        by_group=by_group,
    )  # fmt: skip
    reason = "its rows have one outcome only"
    return count_estimate(
        spec, counts, replace(draws, nulls=()),
        method=_method(counts, draws), ends=ends, chance_test=chance_test,
        no_chance="a number of all rows compares no groups", params=dict(measured.options),
        by=lambda: [main], reason=explain_undefined(value, reason),
    )  # fmt: skip


def calibrated_numbers(measured: ScoreMeasure, counts: ScoreCounts, rng: Seed = 0) -> Floats:
    """Return the numbers of all rows with outcomes drawn from the scores, (draws,)."""
    steps, place = np.unique(counts.scores, return_inverse=True)
    n = np.bincount(place, counts.table.sum(axis=1)).astype(np.int64)
    scores, outcomes = np.repeat(steps, 2), np.tile([0, 1], len(steps))
    draws = stream(rng, "calibrated", measured.metric.spec.name)
    values = []
    for size in [50] * (_DRAWS // 50):
        positives = draws.binomial(n, steps, size=(size, len(steps))).T
        weights = np.stack([n[:, None] - positives, positives], axis=1).reshape(-1, size)
        values.append(
            measured.metric.statistic(outcomes, scores, floats(weights), **measured.options)
        )
    return np.concatenate(values)


def _pairwise_ends(boot: Floats | None, compared: Booleans) -> Ends:
    """Return ends of the largest difference: folded percentiles, simultaneous over pairs."""
    pairs = [*combinations(np.flatnonzero(compared).tolist(), 2)]
    if boot is None or not pairs:
        return no_ends

    def ends(level: float) -> Span:
        each_level = spread_level(level, len(pairs))
        pair_ends = np.array(
            [folded_ends(boot[:, 1 + g] - boot[:, 1 + h])(each_level) for g, h in pairs]
        )
        low, high = np.nanmax(pair_ends, axis=0)
        return float(low), float(high)

    return ends


def _difference(measured: ScoreMeasure, counts: ScoreCounts, draws: Draws) -> Estimate:
    """Return the largest difference between groups, and that of each group to all others."""
    spec = spec_for(measured.metric.spec.name, Aggregate.DIFFERENCE)
    value, by_group = float(draws.observed[0]), measured.by_group(counts, draws)
    compared = measured.compared(counts) & ~np.isnan(draws.observed[1 : 1 + len(counts.groups)])
    ends = _pairwise_ends(draws.boot, compared) if not math.isnan(value) else no_ends
    test = compare_with_chance(draws, 0, "higher")
    main = number(
        spec.name, value, n=int(counts.groups.counts[compared].sum()), ends=ends,
        level=draws.level, chance_test=test, aggregate=Aggregate.DIFFERENCE, by_group=by_group,
        reason=explain_undefined(value, _FEW),
    )  # fmt: skip
    parts = [main]
    if int(compared.sum()) > 2:
        of_name = {group.group: group for group in by_group}
        for g in np.flatnonzero(compared).tolist():
            group = of_name[counts.groups.names[g]]
            parts.append(_against_rest(measured, counts, draws, g, group))
    simultaneous = ", simultaneous over pairs of groups" if int(compared.sum()) > 2 else ""
    return count_estimate(
        spec, counts, draws, method=_method(counts, draws, f"; folded{simultaneous}"),
        ends=ends, chance_test=test, no_chance=_FEW, params=dict(measured.options),
        by=lambda: parts, reason=explain_undefined(value, _FEW),
        interval_kind=IntervalKind.SIMULTANEOUS if simultaneous else IntervalKind.PERCENTILE,
    )  # fmt: skip


def _against_rest(
    measured: ScoreMeasure, counts: ScoreCounts, draws: Draws, g: int, group: GroupValue
) -> Part:
    """Return a group's number minus the mean of all others, weighted by their rows."""
    n_groups = len(counts.groups)
    of_group, of_others = 1 + g, 1 + n_groups + g

    def difference(columns: Floats) -> Floats:
        return floats(columns[..., of_group] - columns[..., of_others])

    boot = None if draws.boot is None else difference(draws.boot)
    value = difference(draws.observed)
    nulls = tuple(difference(null)[:, None] for null in draws.nulls)
    compared = replace(draws, observed=value[None], nulls=nulls)
    rows = counts.groups.counts
    others = int(rows[measured.compared(counts)].sum() - rows[g])
    ends = ends_of(draws.boot, of_others)(draws.level)
    rest = GroupValue(OTHERS, (), others, float(draws.observed[of_others]), *ends)
    return number(
        measured.metric.spec.name, float(value), n=int(rows[g]) + others, ends=ends_of(boot),
        level=draws.level, aggregate=Aggregate.AGAINST_REST,
        chance_test=compare_with_chance(compared, 0, "either"),
        by_group=(group, rest),
    )  # fmt: skip

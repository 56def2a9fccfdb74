"""From draws to the pieces of an estimate: chance levels, p-values, intervals, group values."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Unpack

import numpy as np
import pyarrow as pa

from equipoise.core import (
    MIN_UNITS,
    Aggregate,
    AnyArray,
    Booleans,
    Chance,
    Ends,
    Estimate,
    Floats,
    Groups,
    GroupValue,
    Harm,
    Integers,
    IntervalKind,
    Part,
    Span,
    floats,
    integers,
    nans,
    no_ends,
    tally,
)
from equipoise.core.parts import SCHEMA
from equipoise.metrics.labels import Counts
from equipoise.metrics.labels.table import independent_units
from equipoise.metrics.measure import NO_INTERVAL, NO_REPLICATES, Draws
from equipoise.metrics.spec import EstimateFields, MetricSpec, Tested, make_estimate, own_aggregate
from equipoise.stats import Bootstrap, Resampling
from equipoise.stats.chance import SAMPLED, band, p_value
from equipoise.stats.intervals import ClosedForm, clopper_pearson, divide, percentile, wilson

PERCENTILE = "percentile bootstrap"
STUDENT = "Student's t by the jackknife"
SCORE = "score interval with Student's t by the jackknife"
# Ends that are no confidence interval, so that nothing is concluded from them.
SPREAD = "resampling spread"
# Groups too small to be compared that are listed with every number.
_MOST_SMALL = 100


def group_columns(
    groups: Groups, n: Floats, value: Floats, low: Floats, high: Floats, note: AnyArray
) -> pa.ListArray:
    """Return rows, value, interval and note of every group in every part, arrays (parts, groups).

    One list of records for each part, of the groups that `listed_groups` names.
    """
    kind, listed = SCHEMA.field("by_group").type, listed_groups(groups)
    n, value, low, high, note = (array[:, listed] for array in (n, value, low, high, note))
    parts, n_listed = n.shape
    places = pa.array(np.tile(listed.astype(np.int32), parts))
    columns = [
        pa.array(groups.names, pa.string()).take(places),
        pa.array(groups.levels, pa.list_(pa.string())).take(places),
        pa.array(integers(np.rint(n)).ravel()),
        *(pa.array(array.ravel()) for array in (value, low, high)),
        pa.array(note.ravel().tolist(), pa.string()),
    ]
    records = pa.StructArray.from_arrays(columns, fields=list(kind.value_type))
    ends = np.arange(parts + 1, dtype=np.int32) * n_listed
    return pa.ListArray.from_arrays(pa.array(ends), records, type=kind)


def listed_groups(groups: Groups) -> Integers:
    """Return the indices of groups to list; small groups only where they are few.

    How many there are stands among what is excluded, and their sizes in `group_sizes`.
    """
    usable = np.flatnonzero(groups.usable)
    return np.arange(len(groups)) if len(groups) - len(usable) <= _MOST_SMALL else usable


def chance_columns(draws: Draws, indices: range, harm: Harm) -> dict[str, AnyArray]:
    """Hold several numbers of the draws against their null distributions.

    Returns
    -------
    dict of str to ndarray, shape (indices,)
        chance, chance_low, chance_high and p_value, NaN where there is none, and p_at_most.
    """
    numbers, at_most = nans((4, len(indices))), np.zeros(len(indices), dtype=np.bool_)
    for place, index in enumerate(indices if draws.nulls else ()):
        chance_test = compare_with_chance(draws, index, harm)
        if chance_test.chance:
            numbers[:3, place] = (
                chance_test.chance.mean,
                chance_test.chance.low,
                chance_test.chance.high,
            )
            numbers[3, place] = chance_test.p_value
            at_most[place] = chance_test.p_at_most
    names = ("chance", "chance_low", "chance_high", "p_value")
    return {**dict(zip(names, numbers, strict=True)), "p_at_most": at_most}


_DEFAULTS = {
    field.name: field.default
    for field in fields(Part)
    if field.name not in ("by_group", "excluded")
}


def parts_with_defaults(
    metric: str, aggregate: Aggregate | None = None, **columns: Any
) -> pa.Table:
    """Return parts from some of their columns; the aggregate is the metric's own, unless set."""
    n_parts = len(columns["value"])
    names = {"metric": metric, "aggregate": (aggregate or own_aggregate(metric)).value}
    empty: dict[str, Any] = {name: [text] * n_parts for name, text in names.items()}
    empty |= {"excluded": [[]] * n_parts, "by_group": [[]] * n_parts}
    for name, default in _DEFAULTS.items():
        empty.setdefault(name, [default] * n_parts)
    return pa.table({**empty, **columns}, schema=SCHEMA)


def parts_table(
    metric: str,
    subject: Sequence[str],
    draws: Draws,
    start: int,
    ends: tuple[Floats, Floats],
    *,
    aggregate: Aggregate | None = None,
    n: Floats,
    excluded: Mapping[str, AnyArray],
    **columns: Any,
) -> pa.Table:
    """Return numbers of the draws, from `start` on, as parts: one for each subject.

    `excluded` has what did not enter each part, by reason.
    """
    n_parts = len(subject)
    dropped: list[list[dict[str, Any]]] = [[] for _ in range(n_parts)]
    for reason, counts in excluded.items():
        for reasons, count in zip(dropped, np.rint(counts).tolist(), strict=True):
            if count:
                reasons.append({"reason": reason, "count": int(count)})
    return parts_with_defaults(
        metric, aggregate, subject=subject, value=draws.observed[start : start + n_parts],
        low=ends[0],
        high=ends[1], n=integers(np.rint(n)), excluded=dropped,
        **chance_columns(draws, range(start, start + n_parts), "higher"), **columns,
    )  # fmt: skip


@dataclass(frozen=True)
class ChanceTest:
    """Chance level and p-value of one number.

    Attributes
    ----------
    chance : Chance or None
    p_value : float or None
    null_drawn : str
        The null hypothesis, how it was drawn, and how p was reached.
    p_at_most : bool
        Whether no draw was as extreme, so that p is at most `p_value`.
    """

    chance: Chance | None
    p_value: float | None
    null_drawn: str
    p_at_most: bool = False

    def fields(self, no_chance: str) -> Tested:
        """Return the fields of an estimate; `no_chance` is the reason where there is none."""
        return {
            "chance": self.chance,
            "no_chance": "" if self.chance else no_chance,
            "p_value": self.p_value,
            "p_at_most": self.p_at_most,
            "null_drawn": self.null_drawn,
        }


UNTESTED = ChanceTest(None, None, "")


def no_chance_reason(value: float, resampling: Resampling | None) -> str:
    """Return why a number has no chance level."""
    if math.isnan(value):
        return "not estimable"
    return "nothing to exchange" if resampling else "resampling is off"


def explain_undefined(value: float, reason: str) -> str:
    """Return the reason for a number that is NaN, "" for any other."""
    if math.isnan(value):
        return reason
    return ""


def column_of(draws: Floats | None, index: int) -> Floats | None:
    """Return the draws of one of several numbers; None without draws."""
    if draws is None:
        return None
    return draws[:, index]


def apply_to_draws(function: Callable[[Floats], Floats], draws: Floats | None) -> Floats | None:
    """Return a function of draws; None without draws."""
    if draws is None:
        return None
    return function(draws)


def compare_with_null(
    null: Floats | None,
    value: float,
    harm: Harm,
    text: str,
    *,
    weights: Floats | float | None = None,
    resolution: float = 0.0,
    scale: float | None = None,
    sampled: str = SAMPLED,
) -> ChanceTest:
    """Hold a number against draws of its null distribution, which `text` names.

    `sampled` names a p-value that counts draws; "" leaves it unnamed.
    """
    if null is None or math.isnan(value) or np.isnan(null).all():
        return UNTESTED
    p = p_value(null, value, harm, weights=weights, resolution=resolution, scale=scale)
    chance = band(null, harm, method=text, weights=weights)
    method = sampled if p.method == SAMPLED else p.method
    return ChanceTest(chance, p.value, "; ".join(filter(None, (text, method))), p.at_most)


def compare_with_chance(draws: Draws, index: int, harm: Harm) -> ChanceTest:
    """Hold number `index` of the draws against its null distribution."""
    return compare_with_null(
        strictest_null(draws, index, harm),
        float(draws.observed[index]),
        harm,
        draws.null_text,
        weights=draws.weights,
        resolution=draws.resolution,
    )


def strictest(chance_tests: Iterable[ChanceTest]) -> ChanceTest:
    """Return the test of the largest p-value, of equal ones the first."""
    return max(chance_tests, key=lambda test: test.p_value or 0.0, default=UNTESTED)


def strictest_null(draws: Draws, index: int, harm: Harm) -> Floats:
    """Return the draws of the largest p-value of number `index`; an empty array without any."""
    columns = [null[:, index] for null in draws.nulls] or [np.empty(0)]
    if len(columns) == 1:
        return columns[0]
    value, finest = float(draws.observed[index]), draws.resolution
    p = [p_value(column, value, harm, resolution=finest).value for column in columns]
    return columns[int(np.argmax(np.nan_to_num(p)))]


def ends_of(boot: Floats | None, index: int | None = None) -> Ends:
    """Return the percentile interval of replicates, or of column `index` of them."""
    if boot is None:
        return no_ends
    return ClosedForm(percentile, (boot if index is None else boot[:, index],))


@dataclass(frozen=True)
class ShareInterval:
    """The interval of a share of all rows.

    Attributes
    ----------
    ends : callable
    method : str
    kind : IntervalKind
    """

    ends: Ends
    method: str
    kind: IntervalKind = IntervalKind.CONFIDENCE


def share_interval(
    counts: Counts, draws: Draws, index: int, successes: float, total: float
) -> ShareInterval:
    """Return Wilson's interval of independent rows, else that of replicates over units.

    Where all rows or none succeed, no replicate differs. Each unit counts as one row then, as in
    the design effect of a group, and the interval is exact.
    """
    if counts.independent:
        return ShareInterval(ClosedForm(wilson, (successes, total)), "Wilson interval")
    if draws.boot is None:
        return ShareInterval(no_ends, "none: rows are not independent; add bootstrap replicates")
    if successes not in (0.0, total):
        over = replicates_text(draws.boot, f"{counts.unit}s")
        return ShareInterval(ends_of(draws.boot, index), over, IntervalKind.PERCENTILE)
    if not total:
        return ShareInterval(no_ends, "none: there are no rows to count")
    n_units = independent_units(counts)
    ends = ClosedForm(clopper_pearson, (n_units * successes / total, n_units))
    return ShareInterval(ends, f"Clopper-Pearson, each {counts.unit} as one row")


def bootstrap_method(
    boot: Floats | None,
    resampling: Resampling | None,
    over: str,
    without: str = "none: too few independent units to resample",
    *,
    kind: str = PERCENTILE,
) -> str:
    """Return how an interval was made; `without` is why replicates that were wanted lack."""
    if resampling is None:
        return NO_INTERVAL
    if boot is not None:
        return replicates_text(boot, over, kind)
    return without if isinstance(resampling, Bootstrap) else NO_REPLICATES


def replicates_text(boot: Floats, over: str, kind: str = PERCENTILE) -> str:
    """Return the units of resampling and the number of replicates, as text."""
    return f"{kind} over {over}, {len(boot)} replicates"


def number(
    metric: str,
    value: float,
    *,
    n: int,
    subject: str = "",
    ends: Ends = no_ends,
    level: float = 0.95,
    chance_test: ChanceTest = UNTESTED,
    aggregate: Aggregate | None = None,
    **columns: Any,
) -> Part:
    """Return a number as a part, with its interval, chance level and further columns.

    The aggregate is the metric's own, unless set.
    """
    columns["aggregate"] = aggregate or own_aggregate(metric)
    columns["p_at_most"] = chance_test.p_at_most
    chance = chance_test.chance or Chance(math.nan, math.nan, math.nan, "")
    p = math.nan if chance_test.p_value is None else chance_test.p_value
    chance_numbers = chance.mean, chance.low, chance.high, p
    return Part(metric, subject, value, *ends(level), *chance_numbers, n, **columns)


def part(
    metric: str, subject: str, draws: Draws, index: int, *, ends: Ends = no_ends, **columns: Any
) -> Part:
    """Return number `index` of the draws as a part; see `number` for columns."""
    return number(
        metric,
        float(draws.observed[index]),
        subject=subject,
        ends=ends if draws.intervals else no_ends,
        level=draws.level,
        **columns,
    )


def group_rows(
    groups: Groups,
    n: Iterable[float],
    values: Iterable[float],
    low: Iterable[float],
    high: Iterable[float],
    notes: Iterable[str],
) -> tuple[GroupValue, ...]:
    """Return the value of each group from columns, one row per group."""
    rows = [*zip(groups.names, groups.levels, n, values, low, high, notes, strict=True)]
    return tuple(
        GroupValue(name, levels, round(size), float(value), float(start), float(stop), note)
        for name, levels, size, value, start, stop, note in map(
            rows.__getitem__, listed_groups(groups)
        )
    )


def rows_of_replicates(
    groups: Groups,
    n: Iterable[float],
    values: Floats,
    boot: Floats | None,
    level: float,
    notes: Iterable[str],
) -> tuple[GroupValue, ...]:
    """Return the value of each group with the interval of its replicates, if there are any."""
    nothing = nans((2, len(values)))
    low, high = nothing if boot is None or not len(boot) else percentile(boot, level)
    return group_rows(groups, n, values, low, high, notes)


def sizes(groups: Groups) -> dict[str, int]:
    """Return rows per group name, empty groups included."""
    return dict(zip(groups.names, groups.counts.tolist(), strict=True))


def group_values(
    groups: Groups,
    successes: Floats,
    totals: Floats,
    level: float,
    design: Floats | float = 1.0,
) -> tuple[GroupValue, ...]:
    """Return the share of each group with its Wilson interval.

    Parameters
    ----------
    groups : Groups
    successes, totals : ndarray, shape (groups,)
    level : float
    design : ndarray, shape (groups,), or float
        How many rows say as much as one that is independent.
    """
    low, high = wilson(successes / design, totals / design, level)
    notes = np.select([totals == 0, ~groups.usable], ["no rows", too_small(groups)], "")
    return group_rows(groups, totals, divide(successes, totals), low, high, notes.tolist())


def too_small(groups: Groups) -> AnyArray:
    """Return the note on each group, were it too small: it lacks rows, or else units."""
    rows, units = f"fewer than {groups.min_size} rows", f"fewer than {MIN_UNITS} units"
    return np.where(groups.large_enough & ~groups.usable, units, rows)


def clustered_method(counts: Counts, closed: str) -> str:
    """Return how a closed form was made where rows may repeat by unit."""
    return closed if counts.independent else f"{closed}, {counts.unit}s by their design effect"


def count_estimate(
    spec: MetricSpec,
    counts: Counts,
    draws: Draws,
    method: str,
    *,
    chance_test: ChanceTest | None = None,
    **fields: Unpack[EstimateFields],
) -> Estimate:
    """Return the first number of the draws as an estimate, tested by default."""
    chance_test = chance_test or compare_with_chance(draws, 0, spec.value_harm)
    all_fields: EstimateFields = {
        "unit": counts.unit,
        "excluded": excluded_of(counts.groups, counts.excluded),
        **fields,
        **chance_test.fields(fields.get("no_chance", "")),
    }
    return make_estimate(
        spec.name, float(draws.observed[0]), _compared_sizes(spec, counts.groups), method,
        aggregate=spec.aggregate, compared_to=spec.compared_to, harm=spec.value_harm, **all_fields,
    )  # fmt: skip


def _compared_sizes(spec: MetricSpec, groups: Groups) -> dict[str, int]:
    """Return the rows of the groups that a metric is of; comparisons leave out small groups."""
    all_sizes = sizes(groups)
    if spec.aggregate is Aggregate.VALUE and spec.rate:
        return all_sizes
    compared = dict(zip(groups.names, groups.usable.tolist(), strict=True))
    return {name: n for name, n in all_sizes.items() if compared[name]} or all_sizes


def gaps(shares: Floats, usable: Booleans | None = None) -> Floats:
    """Largest minus smallest share over usable groups, (..., groups) to (...).

    `usable` may differ by class, (..., groups). A group without a share (NaN) is left out; NaN
    where fewer than two remain.
    """
    # Selected groups would lie apart in memory.
    compared = shares
    if usable is not None and not usable.all():
        compared = np.where(usable, shares, np.nan)
    high = np.fmax.reduce(compared, axis=-1, initial=-np.inf)
    low = np.fmin.reduce(compared, axis=-1, initial=np.inf)
    defined = ~np.isnan(compared)
    if defined.all() and shares.shape[-1] >= 2:
        return floats(high - low)
    return np.where(defined.sum(axis=-1) >= 2, high - low, np.nan)


def centred_percentile(value: float, replicates: Floats, least: float = -math.inf) -> Ends:
    """Return percentiles of replicates, centred at the value.

    For numbers that replicates shift; not below a least one.
    """
    finite = replicates[np.isfinite(replicates)]
    if len(finite) < 2:
        return no_ends

    def ends(level: float) -> Span:
        low, high = ends_of(finite - finite.mean() + value)(level)
        return max(least, low), high

    return ends


def spread_level(level: float, members: int) -> float:
    """Confidence level of each of several intervals that hold together (Bonferroni)."""
    return 1.0 - (1.0 - level) / max(members, 1)


def group_part(
    metric: str, subject: str, group: GroupValue, chance_test: ChanceTest, **columns: Any
) -> Part:
    """Return the number of one group as a part; see `number` for columns."""
    return number(
        metric,
        group.value,
        subject=subject,
        ends=known_ends(group.low, group.high),
        chance_test=chance_test,
        n=group.n,
        by_group=(group,),
        **columns,
    )


def known_ends(low: float, high: float) -> Ends:
    """Return fixed ends, whatever the level."""
    return lambda _: (low, high)


def folded_ends(replicates: Floats) -> Ends:
    """Return the ends of |x| from replicates of x: the percentile interval of x, folded at 0."""
    return lambda level: folded(*ends_of(replicates)(level))


def folded(low: float, high: float) -> Span:
    """Return the ends of |x| from the ends of x."""
    if low <= 0.0 <= high:
        return 0.0, max(abs(low), high) + 0.0  # high may be -0.0
    return min(abs(low), abs(high)), max(abs(low), abs(high))


def nan_mean(values: Floats) -> Floats:
    """Return means over the last axis of the numbers that are not NaN, NaN where there are none."""
    defined = ~np.isnan(values)
    return divide(np.where(defined, values, 0.0).sum(axis=-1), defined.sum(axis=-1))


def excluded_of(groups: Groups, excluded: Mapping[str, int]) -> dict[str, int]:
    """Add how many groups are empty or too small to the rows that were not counted."""
    small = (groups.counts > 0) & ~groups.usable
    return {
        **excluded,
        "empty groups": tally(groups.counts == 0),
        f"groups under {groups.min_size} rows": tally(small),
    }

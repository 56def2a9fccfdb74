"""How a metric of counts becomes an estimate: one set of draws for all that share it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, Literal, TypedDict, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from equipoise.core import (
    Booleans,
    Estimate,
    Fact,
    Floats,
    GroupLabels,
    Labels,
    NullHypothesis,
    no_ends,
    record,
    tally,
)
from equipoise.metrics.labels import Counts, Null, count
from equipoise.stats.draws import Blocks
from equipoise.stats.resampling import (
    Bootstrap,
    Resampling,
    level_of,
    null_draws,
    resolution_of,
)
from equipoise.stats.streams import Seed

Statistic = Callable[[Counts, Floats], Floats]

DEFAULT: Resampling = Bootstrap()


class Drawing(TypedDict, total=False):
    """How intervals and chance levels are drawn: `resampling` and `rng` of `equipoise.metrics`."""

    resampling: Resampling | None
    rng: Seed


# Cells that permutations beyond those asked for may draw: a second or two of work for each null.
MAX_DRAWN_CELLS = 8_000_000
# Cells whose numbers are computed at once: with what is made of them they fit in a cache.
_CELLS_AT_ONCE, _FEWEST_AT_ONCE = 1 << 16, 16

NO_INTERVAL = "none: resampling=None gives the value alone"
NO_REPLICATES = "none: add bootstrap replicates"

_NULL_HYPOTHESES: dict[Null, NullHypothesis] = {
    "rows": NullHypothesis.ROWS,
    "class": NullHypothesis.WITHIN_CLASS,
    "prediction": NullHypothesis.WITHIN_PREDICTION,
}
NULLS: dict[Null, str] = {
    "rows": "groups are exchangeable over all rows",
    "class": "groups are exchangeable within each true class",
    "prediction": "groups are exchangeable within each predicted label",
}


@record
class Draws:
    """Numbers of a statistic on the observed table and on drawn tables.

    Attributes
    ----------
    observed : ndarray, shape (s,)
        The statistic's s numbers on the observed table.
    boot : ndarray, shape (replicates, s), or None
        On bootstrap replicates.
    nulls : tuple of ndarray, shape (permutations, s)
        On tables with permuted groups, for each way in which these may be exchangeable. A number
        is tested by the way that gives it the largest p-value.
    weights : ndarray, shape (permutations,), or None
        Probabilities of the null tables where they were enumerated.
    level : float
        Confidence level of parts.
    null_text : str
        The null hypothesis and how it was drawn.
    resolution : float
        The finest p-value that matters; 0 where draws are not approximated.
    intervals : bool
        Whether intervals are wanted: not with resampling=None, which gives values alone.
    """

    observed: Floats
    boot: Floats | None = None
    nulls: tuple[Floats, ...] = ()
    weights: Floats | None = None
    level: float = 0.95
    null_text: str = ""
    resolution: float = 0.0
    intervals: bool = False

    @classmethod
    def of(
        cls,
        resampling: Resampling | None,
        observed: Floats,
        boot: Floats | None = None,
        null: Floats | None = None,
        hypothesis: str = "",
    ) -> Draws:
        """Return draws with the level and the resolution of their resampling."""
        text = "" if null is None else f"{hypothesis}; {len(null)} permutations"
        finest = resolution_of(resampling)
        nulls = () if null is None else (null,)
        return cls(
            observed, boot, nulls, None, level_of(resampling), text, finest, resampling is not None
        )

    def without(self, place: int) -> Draws:
        """Return the draws without one of the numbers."""
        boot = None if self.boot is None else np.delete(self.boot, place, axis=1)
        nulls = tuple(np.delete(null, place, axis=1) for null in self.nulls)
        return replace(self, observed=np.delete(self.observed, place), boot=boot, nulls=nulls)


PairedName = Literal["accuracy", "true_positive_rate", "false_positive_rate", "selection_rate"]
"""Rates that two models have on the same rows."""
Extreme = Literal["worst", "shortfall", "gap"]
"""The lowest rate, how far it falls short of all compared rows, or the largest gap."""


@dataclass(frozen=True)
class ExtremeRate:
    """Rates with an extreme that a number is, so that models are compared in these rates.

    Attributes
    ----------
    rates : tuple of str
        As two models have them on the same rows.
    extreme : "worst", "shortfall" or "gap"
    mean : bool
        Whether it is the mean of the extremes of several rates, and not the largest.
    label : str or None
        The only class that counts, "" for all rows; None: each class has an extreme.
    group_metric : str
        Metric of the findings on each group's change in the first rate; "" without such.
    """

    rates: tuple[PairedName, ...]
    extreme: Extreme
    mean: bool = False
    label: str | None = ""
    group_metric: str = ""


class Measure:
    """A metric of counts; the base of every class that `measure` takes.

    The attributes say how audits use it, with the methods `facts` and `reads_classes_apart`.

    Attributes
    ----------
    null : "rows", "class", "prediction" or None
        The exchangeability that its chance level rests on; None: it has none.
    resamples : bool or None
        Whether the interval needs bootstrap replicates; None: where rows are not independent.
    compares : bool
        Whether its numbers compare groups: without two that are large enough it has none, and
        nothing is drawn.
    whole, by_class : bool
        Whether its first number is a finding, and whether the parts of its estimate are.
    of_mistakes : bool
        Whether it is of all labels, also of texts that are no class: wrong labels explain it.
    no_test : str
        Why it describes models and is not tested; "" where it is.
    """

    null: Null | None
    resamples: bool | None = None
    compares = True
    whole = True
    by_class = False
    of_mistakes = False
    no_test = ""

    @property
    def extreme(self) -> ExtremeRate | None:
        """The rates that it is the largest or smallest of; None of other numbers."""
        return None

    def facts(self, counts: Counts) -> list[Fact]:  # noqa: ARG002 - the form of all measures
        """Return the fact of each number: the first is the whole; none: it repeats others."""
        return []

    def reads_classes_apart(self, counts: Counts) -> bool:  # noqa: ARG002 - as above
        """Whether it sees no tie between the groups of different true classes."""
        return False

    def __call__(self, counts: Counts, tables: Floats) -> Floats:
        """Return the s numbers of each table: (r, outcomes, groups) to (r, s)."""
        raise NotImplementedError

    def tested_numbers(self, observed: Floats) -> Booleans:
        """Return a mask of the numbers that are tested where rows are independent."""
        return ~np.isnan(observed)

    def estimate(self, counts: Counts, draws: Draws) -> Estimate:
        """Turn the numbers into the estimate."""
        raise NotImplementedError


class Topic(IntEnum):
    """Topic of a measure; findings of an audit stand in this order."""

    ACCURACY = 0
    GAPS = 1
    RATES = 2
    MISTAKES = 3


MeasuresOf = type[Measure] | Callable[..., Iterable[Measure]]
MEASURES: dict[str, tuple[Topic, MeasuresOf]] = {}
"""What gives an audit of labels its measures, by the key that switches them on."""
MeasuresOfMetric = TypeVar("MeasuresOfMetric", bound=MeasuresOf)


def measured(switch: str, topic: Topic) -> Callable[[MeasuresOfMetric], MeasuresOfMetric]:
    """Register what gives the measures of a metric.

    Parameters
    ----------
    switch : str
        Key under `metrics` of a configuration: the function of the metric.
    topic : Topic

    Returns
    -------
    callable
        Decorator of the class of its only measure, which takes the options of the key by name, or
        of a function from counts and these to measures.
    """

    def registered(measures: MeasuresOfMetric) -> MeasuresOfMetric:
        MEASURES[switch] = topic, measures
        return measures

    return registered


def measure(
    counts: Counts,
    measures: Sequence[Measure],
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> list[Estimate]:
    """Measure counts, drawing replicates and permutations once for all measures.

    Parameters
    ----------
    counts : Counts
    measures : sequence of Measure
    resampling : Bootstrap, Permutation or None
        None gives values alone.
    rng : int or Generator
        Seed of the random streams.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> gender = ["women", "men"] * 60
    >>> true = ["chef", "chef", "nurse", "nurse"] * 30
    >>> pred = ["nurse", "chef", "nurse", "nurse"] * 20 + true[:40]
    >>> from equipoise.core import Aggregate
    >>> from equipoise.metrics.labels.accuracy import Accuracy
    >>> measures = [Accuracy(Aggregate.DIFFERENCE, "rows"), Accuracy(Aggregate.WORST_GROUP, "rows")]
    >>> [round(estimate.value, 3) for estimate in m.measure(m.count(true, pred, gender), measures)]
    [0.333, 0.667]
    """
    all_draws = [Draws.of(resampling, metric(counts, counts.observed)[0]) for metric in measures]
    comparable = tally(counts.groups.usable) >= 2
    tested = [place for place, metric in enumerate(measures) if comparable or not metric.compares]
    all_compare = all(measures[place].compares for place in tested)
    among = counts.compared if all_compare else counts
    if isinstance(resampling, Bootstrap):
        places = [
            place
            for place in tested
            if measures[place].resamples
            or (measures[place].resamples is None and not counts.independent)
        ]
        if places:
            blocks = among.sampler.bootstrap(resampling.replicates, rng)
            for place, values in _numbers(among, measures, places, blocks):
                all_draws[place] = replace(all_draws[place], boot=values)
    for null, hypothesis in NULLS.items():
        places = [place for place in tested if measures[place].null == null]
        if resampling is None or not places:
            continue
        permuted_counts = replace(among, exchanged=null) if among.independent else among
        exchanges = _exchanges(among, null, resampling, rng)
        text = f"{hypothesis}; {permutations_text(exchanges)}"
        for tables in exchanges:
            for place, values in _numbers(permuted_counts, measures, places, tables):
                nulls = (*all_draws[place].nulls, values)
                all_draws[place] = replace(all_draws[place], nulls=nulls, null_text=text)
    estimates = [
        metric.estimate(counts, draws) for metric, draws in zip(measures, all_draws, strict=True)
    ]
    if resampling is None:
        for estimate in estimates:
            vars(estimate).update(ends=no_ends, method=NO_INTERVAL)
    return [
        _with_null(metric, estimate) for metric, estimate in zip(measures, estimates, strict=True)
    ]


def _exchanges(counts: Counts, null: Null, resampling: Resampling, rng: Seed) -> list[Blocks]:
    """Return tables with groups permuted, for each kind of exchange."""
    affordable = MAX_DRAWN_CELLS // max(counts.sampler.effort, 1)
    n_permutations = null_draws(resampling, affordable)
    return counts.sampler.exchanges(counts.strata(null), n_permutations, rng)


def permutations_text(exchanges: Sequence[Sized]) -> str:
    """Return the numbers of permutations, of one exchange or of two, as text."""
    if len(exchanges) == 1:
        return f"{len(exchanges[0])} permutations"
    together, single = map(len, exchanges)
    return (
        f"the larger p of {together} permutations of a unit's rows in one group together and "
        f"{single} of single rows"
    )


def _with_null(metric: Measure, estimate: Estimate) -> Estimate:
    """Return the estimate with the null hypothesis of its test."""
    if metric.null is not None and estimate.null_drawn:
        vars(estimate).update(null=_NULL_HYPOTHESES[metric.null])
    return estimate


def measure_rows(
    measures: Sequence[Measure],
    y_true: Labels,
    y_pred: Labels,
    groups: GroupLabels,
    *,
    weights: ArrayLike | None = None,
    units: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> list[Estimate]:
    """Count rows and measure the counts; see `equipoise.metrics.labels.count` and `measure`."""
    counts = count(y_true, y_pred, groups, weights=weights, units=units)
    return measure(counts, measures, resampling, rng)


def _numbers(
    counts: Counts, measures: Sequence[Measure], places: Sequence[int], blocks: Blocks
) -> Iterator[tuple[int, Floats]]:
    """Yield the place and the numbers of each measure that is wanted, drawing blocks in threads.

    Numbers of independent rows that are not held against chance are left 0: of many classes most
    may be too small. Memory that is never written takes no room.
    """
    size = max(_FEWEST_AT_ONCE, _CELLS_AT_ONCE // counts.table.size)
    columns_of, values_of = dict[int, Any](), dict[int, Floats]()
    for place in places:
        observed = measures[place](counts, counts.observed)[0]
        needed = measures[place].tested_numbers(observed) | (not counts.independent)
        columns_of[place] = slice(None) if needed.all() else needed
        # The draws of a number lie next to each other.
        values_of[place] = np.zeros((len(observed), len(blocks))).T

    def numbers(start: int, tables: Floats) -> None:
        for first in range(0, len(tables), size):
            block = tables[first : first + size]
            rows = slice(start + first, start + first + len(block))
            for place in places:
                columns = columns_of[place]
                values_of[place][rows, columns] = measures[place](counts, block)[:, columns]

    blocks.each(numbers)
    yield from values_of.items()

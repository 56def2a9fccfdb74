"""Rates of two models that other numbers don't compare: changes of all rows and of each group."""

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np

from equipoise.audits.comparison import difference, worse_model
from equipoise.audits.findings import Place, UncorrectedFinding
from equipoise.core import (
    Aggregate,
    Booleans,
    Fact,
    Family,
    Floats,
    IntervalKind,
    NullHypothesis,
    Part,
)
from equipoise.metrics.labels import Counts
from equipoise.metrics.labels.paired import Joint, Pair, Seen
from equipoise.metrics.labels.rate import Cells, Rate, RateGaps
from equipoise.metrics.labels.rates import rates_of_classes
from equipoise.metrics.labels.table import Null
from equipoise.metrics.measure import ExtremeRate, Measure, PairedName
from equipoise.metrics.spec import spec_for
from equipoise.report.words import COMPARISON
from equipoise.report.words import Pair as ModelPair
from equipoise.stats.chance import band, p_value
from equipoise.stats.intervals import percentile

PAIRED: tuple[PairedName, ...] = get_args(PairedName)
"""Rates whose changes have intervals in closed form."""
_MOST_CHANGES = 60
"""Changes of groups in a rate beyond which only those of the most frequent classes are findings."""
_NO_TEST = (
    "the largest gap of groups has a spread and no verdict: percentiles miss its change too often. "
    "The verdicts are on the change of each group"
)
_METHOD = "paired percentile bootstrap over {unit}s, {draws} replicates"
_NULL = "the two models are exchangeable on each {unit}; {draws} swaps"


@dataclass(frozen=True)
class ComparedGap(RateGaps):
    """The measure of a rate's largest gap between groups, for the comparison of two models."""

    name: str
    rates: tuple[Rate, ...]
    null: Null

    @property
    def no_test(self) -> str:  # type: ignore[override]
        """Why the change of the gap is described only."""
        return "" if self.extreme else _NO_TEST

    @property
    def extreme(self) -> ExtremeRate | None:
        """The rate itself, where two models' rates have a closed form."""
        name = next((rate for rate in PAIRED if rate == self.name), None)
        if name is None:
            return None
        return ExtremeRate((name,), "gap", label=None, group_metric=name)

    def facts(self, counts: Counts) -> list[Fact]:
        """Return the largest gap over classes, and that of each where it has an interval."""
        return super().facts(counts) if self.extreme else [*super().facts(counts)[:1]]


def rates_left(switched: Collection[str], measures: Iterable[Measure]) -> dict[str, Rate]:
    """Return the rates that are on and that no other measure compares.

    Parameters
    ----------
    switched : collection of str
        Rates that are reported.
    measures : iterable of Measure
        All others of the comparison.
    """
    all_rates, remaining = rates_of_classes(), dict[str, Rate]()
    extremes = (measure.extreme for measure in measures)
    names = {name for extreme in extremes if extreme is not None for name in extreme.rates}
    compared: dict[str, Rate] = {name: all_rates[name] for name in names}
    for name, rate in all_rates.items():
        # Rows on the right side of a class are its accuracy, which is compared over all classes.
        if name not in switched or name in compared or rate.numerators == {"right"}:
            continue
        if not _repeats(rate, compared):
            remaining[name] = compared[name] = rate
    return remaining


def _repeats(rate: Rate, compared: Mapping[str, Rate]) -> bool:
    """Whether a rate is 1 minus a compared one, or the mean of compared ones."""
    if rate.opposite is not None:
        return rate.opposite.name in compared
    numerators = {numerator for other in compared.values() for numerator in other.numerators}
    bases = {base for other in compared.values() for base in other.bases}
    return rate.repeats and rate.numerators <= numerators and {*rate.bases} <= bases


def gaps_of(rates: Mapping[str, Rate]) -> list[Measure]:
    """Return the measure of each rate's largest gap between groups."""
    return [ComparedGap(name, (rate,), rate.null) for name, rate in rates.items()]


@dataclass(frozen=True)
class RateChanges:
    """Two models' rates by class and group, with paired draws.

    Attributes
    ----------
    joint : Joint
        Of two models.
    pair : Pair
        The same, with the outcomes that swapping reaches.
    level : float
    replicates, seed : int
        Of the draws; none are made of 0 replicates.
    """

    joint: Joint
    pair: Pair
    level: float
    replicates: int
    seed: int

    def findings(
        self, rates: Mapping[str, Rate], groups: str, positive: str | None
    ) -> Iterator[tuple[UncorrectedFinding, Hashable]]:
        """Yield the change of each group in each rate and class; of all rows without groups."""
        alone = [self.joint.alone(0), self.joint.alone(1)]
        sampler, n = self.joint.counts.sampler, self.replicates
        blocks = [
            ([self.joint.counts.table[None]], alone),
            (sampler.bootstrap(n, self.seed) if n else (), alone),
            (self.pair.swapped(n, self.seed) if n else (), self.pair.views),
        ]
        if groups:
            # The changes of these have closed forms.
            rates = {name: rate for name, rate in rates.items() if name not in PAIRED}
        if not rates:
            return
        classes = self._classes(positive)
        numbers = [_shares(rates, classes, views, tables) for tables, views in blocks]
        names = self.joint.counts.groups.names
        # The same groups have the same place, whatever they are called.
        order = np.argsort(np.lexsort(self.joint.counts.table[::-1])).tolist()
        for rate_place, (name, rate) in enumerate(rates.items()):
            enough = self._compared(rate, alone)[classes] & ~np.isnan(
                numbers[0][:, 0, rate_place].sum(axis=0)
            )
            for class_place, group in np.argwhere(enough).tolist():
                values, boot, null = (n[:, :, rate_place, class_place, group] for n in numbers)
                change = _Change(
                    Fact(name, Aggregate.VALUE, self.joint.classes[classes[class_place]]),
                    (float(values[0, 0]), float(values[1, 0])),
                    boot=boot[1] - boot[0],
                    null=null[1] - null[0],
                    n=round(self.joint.counts.table[:, group].sum()),
                    groups=groups,
                    group=names[group] if groups else "",
                    tests=int(enough[class_place].sum()),
                )
                yield self._draft(change), (change.fact, order[group])

    def _compared(self, rate: Rate, views: Sequence[Seen]) -> Booleans:
        """Return which classes and groups have rows enough of both models."""
        usable = self.joint.counts.groups.usable
        large = np.logical_and.reduce([rate.large(view.counts) for view in views])
        return np.asarray(large & usable)

    def _classes(self, positive: str | None) -> list[int]:
        """Return the places of the compared classes: of many the most frequent."""
        if positive is not None:
            return [place for place, n in enumerate(self.joint.classes) if n == positive]
        counts = self.joint.counts
        rows = np.bincount(
            self.joint.truth, counts.table.sum(axis=1), minlength=len(self.joint.classes)
        )
        order = np.argsort(-rows, kind="stable")
        n_classes = max(_MOST_CHANGES // max(int(counts.groups.usable.sum()), 1), 1)
        return sorted(order[rows[order] > 0][:n_classes].tolist())

    def _draft(self, change: "_Change") -> UncorrectedFinding:
        """Return the finding of one change, uncorrected."""
        names, unit = self.joint.models, self.joint.counts.unit
        metric, subject, tests = change.fact.metric, change.fact.subject, change.tests
        part, method, text = change.part, "none: resampling is off", ""
        boot, null = (draws[~np.isnan(draws)] for draws in (change.boot, change.null))
        if len(boot) and len(null):
            # Of several groups, intervals and tests hold together (Šidák).
            low, high = (float(end) for end in percentile(boot, self.level ** (1.0 / tests)))
            chance, p = band(null), p_value(null, part.value, "either").value
            part = replace(
                part, low=min(low, part.value), high=max(high, part.value), chance=0.0,
                chance_low=chance.low, chance_high=chance.high, p_value=1.0 - (1.0 - p) ** tests,
            )  # fmt: skip
            method = _METHOD.format(unit=unit, draws=len(boot))
            method += f", simultaneous over {tests} groups (Šidák)" if tests > 1 else ""
            text = _NULL.format(unit=unit, draws=len(null))
        is_worse = spec_for(metric, Aggregate.VALUE).value_harm != "either"
        worse = worse_model(change.fact, change.values, names) if is_worse else ""
        pair = ModelPair(names[0], names[1], change.values, worse)
        draft = difference(
            part, pair, Place(COMPARISON, pair.name, change.groups, "default", self.level),
            family=Family.LEAF, unit=unit, method=method, group=change.group,
            null=NullHypothesis.MODELS if text else NullHypothesis.NONE, null_drawn=text,
            interval=IntervalKind.SIMULTANEOUS if tests > 1 else IntervalKind.PERCENTILE,
        )  # fmt: skip
        together = (pair.name, change.groups, metric, subject) if change.group else None
        return replace(draft, together=together)


@dataclass(frozen=True)
class _Change:
    """A rate of one class and group: both models' values, and draws of the difference."""

    fact: Fact
    values: tuple[float, float]
    boot: Floats
    null: Floats
    n: int
    groups: str
    group: str
    tests: int

    @property
    def part(self) -> Part:
        """The second model's value less the first's."""
        value = self.values[1] - self.values[0]
        return Part(self.fact.metric, self.fact.subject, value, n=self.n)


def _shares(
    rates: Mapping[str, Rate],
    classes: Sequence[int],
    views: Sequence[Seen],
    blocks: Iterable[Floats],
) -> Floats:
    """Return the rates of both models, (models, tables, rates, classes, groups)."""
    parts = [
        np.stack([_shares_of(rates, classes, view, tables) for view in views]) for tables in blocks
    ]
    if parts:
        return np.concatenate(parts, axis=1)
    return np.zeros((2, 0, len(rates), len(classes), len(views[0].counts.groups)))


def _shares_of(
    rates: Mapping[str, Rate], classes: Sequence[int], view: Seen, tables: Floats
) -> Floats:
    cells = Cells.of(view.counts, view.tables(tables))
    return np.stack([rate.shares(cells)[:, [*classes]] for rate in rates.values()], axis=1)

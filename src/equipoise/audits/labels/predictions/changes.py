"""Two models by group: findings of each group's change, and intervals of extremes' changes."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from math import nan

import numpy as np

from equipoise.audits.comparison import difference, worse_model
from equipoise.audits.findings import Place, UncorrectedFinding, fact_of
from equipoise.core import Aggregate, Fact, Family, IntervalKind, NullHypothesis, Part
from equipoise.metrics.labels.changes import PairedRate, extreme_change, paired_rate
from equipoise.metrics.labels.paired import Joint
from equipoise.metrics.measure import Extreme, ExtremeRate, Measure, PairedName
from equipoise.report.words import COMPARISON
from equipoise.report.words import Pair as ModelPair

GroupFinding = tuple[UncorrectedFinding, Hashable]
"""The change of a group, and what tells the group apart whatever it is called."""
NONE = (nan, nan)
UNTESTED = (
    "the change of a largest or smallest number has an interval and no verdict: the verdicts are "
    "on the change of each group"
)
_METHOD = "Tango's paired score interval, simultaneous over {tests} groups (Šidák)"
EXTREME_METHOD = "paired changes of the groups that may be extreme, closed form"
_NULL = "the two models are exchangeable on each {unit} of the group; McNemar's test, Šidák"
# Changes of groups beyond which only those of the most frequent classes are findings.
_MOST, _FEW = 300, 60


def is_extreme(fact: Fact) -> bool:
    """Whether a number is a largest or smallest of several groups' numbers."""
    return fact.aggregate in (Aggregate.DIFFERENCE, Aggregate.WORST_GROUP)


class Changes:
    """The rates of two models on the same rows, each counted once.

    Parameters
    ----------
    joint : Joint
        Of two models.
    level : float
        Confidence level.
    """

    def __init__(self, joint: Joint, level: float) -> None:
        self.joint, self.level = joint, level
        self._rates: dict[PairedName, PairedRate] = {}

    def rate(self, name: PairedName) -> PairedRate:
        """Return a rate of both models."""
        if name not in self._rates:
            self._rates[name] = paired_rate(self.joint, name)
        return self._rates[name]

    def ends(self, measure: Measure) -> list[tuple[float, float]]:
        """Return an interval of the change of an extreme, over all classes and of each."""
        extreme = measure.extreme
        assert extreme is not None  # noqa: S101 - of extremes alone
        rates = [self.rate(name) for name in extreme.rates]
        if extreme.mean:
            ends = self._ends_of_mean(rates, extreme.extreme)
        else:
            ends = [*extreme_change(rates, extreme.extreme, self.level)]
        if extreme.label:
            ends = [ends[1 + self.joint.classes.index(extreme.label)]]
        return ends[: len(measure.facts(self.joint.counts))]

    def _ends_of_mean(
        self, rates: Sequence[PairedRate], extreme: Extreme
    ) -> list[tuple[float, float]]:
        # A mean misses where any of its extremes does.
        level = 1.0 - (1.0 - self.level) / len(rates)
        conditions = [[*extreme_change([rate], extreme, level)][1:] for rate in rates]
        by_class = np.mean(conditions, axis=0)
        estimable = by_class[~np.isnan(by_class).any(axis=1)]
        low, high = (estimable[:, 0].min(), estimable[:, 1].max()) if len(estimable) else NONE
        return [(low, high), *map(tuple, by_class.tolist())]

    def findings(self, measures: Sequence[Measure], groups: str) -> Iterator[GroupFinding]:
        """Yield the change of each group in the rates that measures are extremes of."""
        extremes = [measure.extreme for measure in measures]
        by_metric = {
            extreme.group_metric: extreme
            for extreme in extremes
            if extreme and extreme.group_metric
        }
        for extreme in by_metric.values():
            yield from self._by_group(extreme, groups)

    def _classes_of(self, extreme: ExtremeRate) -> dict[str, int]:
        """Return the subject of findings by group, with the place of its class."""
        if extreme.label:
            return {"": self.joint.classes.index(extreme.label)}
        if extreme.label is not None:
            return {"": 0}
        # Where groups determine the target, they have one class each.
        determined = self.joint.counts.determines_target
        return {} if determined else self._frequent_classes(self.rate(extreme.rates[0]))

    def _frequent_classes(self, rate: PairedRate) -> dict[str, int]:
        """Return the classes with findings by group: of very many the most frequent."""
        places = np.flatnonzero(rate.compared.any(axis=1))
        if rate.compared.sum() > _MOST:
            order = np.argsort(-rate.n[places].sum(axis=1), kind="stable")
            n_groups = max(int(self.joint.counts.groups.usable.sum()), 1)
            places = places[order[: max(_FEW // n_groups, 1)]]
        return {self.joint.classes[place]: place for place in places.tolist()}

    def _by_group(self, extreme: ExtremeRate, groups: str) -> Iterator[GroupFinding]:
        rate, counts = self.rate(extreme.rates[0]), self.joint.counts
        change, (first, second) = rate.simultaneous(self.level), rate.values
        # The same groups have the same place, whatever they are called.
        order = np.argsort(np.lexsort(counts.table[::-1])).tolist()
        for subject, place in self._classes_of(extreme).items():
            for index, group in enumerate(counts.groups.names):
                if not rate.compared[place, index]:
                    continue
                cell = place, index
                part = Part(
                    extreme.group_metric, subject, float(change.value[cell]), n=round(rate.n[cell]),
                    low=float(change.low[cell]), high=float(change.high[cell]), chance=0.0,
                    p_value=float(rate.p_values[cell]),
                )  # fmt: skip
                reach = rate.reach(self.level)[cell]
                part = replace(part, chance_low=-reach, chance_high=reach)
                values = float(first[cell]), float(second[cell])
                tests = int(rate.compared[place].sum())
                draft = self._draft(part, values, group, groups, tests)
                yield draft, (fact_of(draft.finding), order[index])

    def _draft(
        self, part: Part, values: tuple[float, float], group: str, groups: str, tests: int
    ) -> UncorrectedFinding:
        """Return the finding of one group's change, uncorrected."""
        names, unit = self.joint.models, self.joint.counts.unit
        pair = ModelPair(
            names[0],
            names[1],
            values,
            worse_model(Fact(part.metric, Aggregate.VALUE), values, names),
        )
        place = Place(COMPARISON, pair.name, groups, "default", self.level)
        draft = difference(
            part, pair, place, group=group,
            family=Family.LEAF if part.subject else Family.COMPOSITE, unit=unit,
            method=_METHOD.format(tests=tests), null=NullHypothesis.MODELS,
            null_drawn=_NULL.format(unit=unit), interval=IntervalKind.SIMULTANEOUS,
        )  # fmt: skip
        return replace(draft, together=(pair.name, groups, part.metric, part.subject))

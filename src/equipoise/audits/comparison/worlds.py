"""What models are compared on: their joint counts by group, and the measures that read them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from equipoise.audits.comparison.merge import Merged
from equipoise.audits.engines.labels import groups_by
from equipoise.audits.predictions.audit import effect_sizes
from equipoise.core.groups import Groups
from equipoise.metrics.accuracy import Accuracy
from equipoise.metrics.chi_square import Layout
from equipoise.metrics.class_effects import EffectTables
from equipoise.metrics.counts import Counts
from equipoise.metrics.joint import Joint, join
from equipoise.metrics.measure import Measure
from equipoise.metrics.odds import EqualizedOdds
from equipoise.metrics.parity import DemographicParity
from equipoise.metrics.skewsize import SkewSize

if TYPE_CHECKING:
    from equipoise.audits.predictions.config import Config


@dataclass(frozen=True, eq=False)
class World:
    """All models held against one set of groups; without groups for accuracy itself.

    Attributes
    ----------
    groups : str
    joint : Joint
        Of the rows that every model answered.
    measures : tuple of Measure
    """

    groups: str
    joint: Joint
    measures: tuple[Measure, ...]

    def behind(self, one: Measure) -> tuple[bytes, ...]:
        """Return what a measure reads: two worlds that agree here give the same numbers.

        Measures that condition on the true class see how the rows of each class fall into
        groups, not which group of one class goes with which of another.
        """
        by_class = isinstance(one, EffectTables) and one.formulation == "separation"
        # The false positive rate of one of two classes is about the other class alone.
        by_class |= isinstance(one, EqualizedOdds) and len(self.joint.counts.targets) <= 2
        truth = self.joint.truth
        strata = [truth == place for place in np.unique(truth)] if by_class else [truth >= 0]
        return tuple(cell for stratum in strata for cell in self._cells(stratum))

    def _cells(self, rows: np.ndarray) -> list[bytes]:
        """Return a stratum's outcomes and its groups' counts of them, whatever their order."""
        table = self.joint.counts.table[rows][:, self.joint.counts.groups.usable]
        seen = table.any(axis=1)
        labels = self.joint.labels[rows][seen]
        outcomes = np.column_stack([self.joint.truth[rows][seen], labels])
        groups = table[seen][:, table.any(axis=0)]
        return [outcomes.tobytes(), *sorted(column.tobytes() for column in groups.T)]


def worlds(found: Merged) -> Iterator[World]:
    """Yield the world without groups, then one for each set of groups of the configuration."""
    config, everything = found.config, np.zeros(len(found.rows), np.int32)
    if config.metrics.accuracy is not None:
        whole = Groups(("all",), (("all",),), everything)
        yield World("", _join(found, whole), (Accuracy("accuracy", None),))
    for attributes in config.data.groups:
        groups = groups_by(attributes, found.data, config.data.min_group_size).take(found.rows)
        yield World(groups.name, _join(found, groups), tuple(_measures(config)))


def _join(found: Merged, groups: Groups) -> Joint:
    data, rows = found.data, found.rows
    target = replace(data.coded_target, codes=data.coded_target.codes[rows])
    unit = data.coded_unit
    units = None if unit is None else replace(unit, codes=unit.codes[rows])
    return join(target, found.labels, groups, units=units)


def _measures(config: Config) -> Iterator[Measure]:
    chosen = config.metrics
    if chosen.worst_group_accuracy is not None:
        yield Accuracy("worst_group_accuracy", "rows")
    if chosen.accuracy_gap is not None:
        yield Accuracy("accuracy_gap", "rows")
    if chosen.demographic_parity is not None:
        yield DemographicParity()
    if chosen.equalized_odds is not None:
        yield EqualizedOdds(chosen.equalized_odds.aggregate)
    if chosen.effect_sizes is not None:
        yield effect_sizes(chosen.effect_sizes)
    if chosen.skewsize is not None:
        options = effect_sizes(chosen.skewsize)
        yield SkewSize(**options.params)


def metric_of(one: Measure, subject: str) -> str:
    """Return the public name of a measure's number as a whole (subject ""), or of a class."""
    if isinstance(one, Accuracy):
        return one.kind
    if isinstance(one, DemographicParity):
        return "demographic_parity"
    if isinstance(one, EqualizedOdds):
        return "equalized_odds"
    if isinstance(one, SkewSize):
        return "skewsize"
    return str(getattr(one, "statistic", "")) if subject else "effect_size_mean"


def subjects_of(one: Measure, counts: Counts) -> tuple[str, ...]:
    """Return what a measure's numbers are about, in their order: the whole (""), then classes."""
    if isinstance(one, Accuracy | SkewSize):
        return ("",)
    if isinstance(one, EffectTables):
        subject = Layout.of(counts, one.formulation).subject
        return ("", *(counts.classes[index] for index in subject if index >= 0))
    return ("", *counts.classes)

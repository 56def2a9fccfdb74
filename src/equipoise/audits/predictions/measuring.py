"""The audit of predictions: every metric that the input allows, on every design."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from equipoise.audits.drawing import resampling_of
from equipoise.audits.findings import Draft, Place, parts, whole
from equipoise.audits.predictions.designs import Design, chosen
from equipoise.audits.predictions.repeats import told_once
from equipoise.core.estimate import Estimate
from equipoise.core.finding import Family
from equipoise.core.parts import Part
from equipoise.metrics.accuracy import Accuracy
from equipoise.metrics.counts import Counts
from equipoise.metrics.effect_sizes import EffectSizes
from equipoise.metrics.hits import HitRate, hits
from equipoise.metrics.measure import NULLS, Measure, measure
from equipoise.metrics.odds import EqualizedOdds
from equipoise.metrics.parity import DemographicParity
from equipoise.metrics.rates import Rates
from equipoise.metrics.skewsize import SkewSize
from equipoise.stats.resampling import Resampling

if TYPE_CHECKING:
    from equipoise.audits.predictions.config import Config
    from equipoise.audits.predictions.config_metrics import EffectSizeOptions


AUDIT = "predictions"


@dataclass(frozen=True)
class MeasuredDesign:
    """What one design gave: drafts of findings, and the parts that the tables draw on."""

    design: Design
    drafts: tuple[Draft, ...]
    parts: dict[str, tuple[Part, ...]]


def measure_design(design: Design, config: Config, tests: int) -> MeasuredDesign:
    """Measure one design with everything the config asks for.

    Parameters
    ----------
    design : Design
    config : Config
    tests : int
        How many tests the model has, so that p-values are drawn finely enough.
    """
    place = Place(AUDIT, design.model, design.groups.name, design.version, config.resampling.level)
    counts = design.counts
    resampling = resampling_of(config, tests)
    wanted = [*_measures(config, counts)]
    estimates = measure(counts, wanted, resampling, config.resampling.seed)
    drafts = [draft for one in estimates for draft in _drafts(one, place)]
    determined = counts.determines_target
    drafts = [*told_once(drafts, classes=counts.classes, determined=determined)]
    drafts += _spread(design, config, resampling)
    drafts += _hits(design, config, resampling)
    drafts += _unanswered(design, config, resampling)
    return MeasuredDesign(design, tuple(drafts), _parts(estimates))


def measure_accuracy(design: Design, config: Config) -> Draft:
    """Measure a model's accuracy over all its labelled rows, whatever their groups."""
    measures = [Accuracy("accuracy", None)]
    resampling = resampling_of(config, 1)
    estimate = measure(design.overall, measures, resampling, config.resampling.seed)[0]
    place = Place(AUDIT, design.model, "", design.version, config.resampling.level)
    return whole(estimate, place, Family.DESCRIPTIVE)


def _measures(config: Config, counts: Counts) -> Iterator[Measure]:
    chosen = config.metrics
    conditional = not counts.determines_target
    for kind in ("worst_group_accuracy", "accuracy_gap"):
        if getattr(chosen, kind) is not None:
            yield Accuracy(kind, "rows")
            if conditional:
                yield Accuracy(kind, "class")
    if chosen.demographic_parity is not None:
        yield DemographicParity()
    if chosen.equalized_odds is not None:
        yield EqualizedOdds(chosen.equalized_odds.aggregate)
    if chosen.rates is not None:
        yield from (Rates(null) for null in NULLS)
    if chosen.effect_sizes is not None:
        yield effect_sizes_of(chosen.effect_sizes)
    if chosen.skewsize is not None:
        yield SkewSize(**effect_sizes_of(chosen.skewsize).params)


def effect_sizes_of(options: EffectSizeOptions) -> EffectSizes:
    """Return the measure of effect sizes that options describe."""
    return EffectSizes(options.statistic, options.min_expected, options.yates, options.formulation)


def _drafts(estimate: Estimate, place: Place) -> Iterator[Draft]:
    """Yield the findings of an estimate: the whole, and its parts where it has several."""
    if estimate.metric in ("worst_group_accuracy", "accuracy_gap"):
        yield whole(estimate, place, Family.COMPOSITE, by_group=_first(estimate).by_group)
    elif estimate.metric == "skewsize":
        yield whole(estimate, place, Family.DESCRIPTIVE)
    elif estimate.metric == "rates":
        yield from parts(estimate, place)
    else:
        name = "effect_size_mean" if estimate.metric == "effect_sizes" else None
        worst = _worst(estimate)
        yield whole(
            estimate,
            place,
            Family.COMPOSITE,
            metric=name,
            by_group=worst.by_group,
            about=worst.subject,
            shows=worst.shows,
        )
        yield from parts(estimate, place)


def _first(estimate: Estimate) -> Part:
    return estimate.parts[0]


def _worst(estimate: Estimate) -> Part:
    """Return the part with the largest value."""
    return max(estimate.parts, key=lambda part: -1.0 if math.isnan(part.value) else part.value)


def _spread(design: Design, config: Config, resampling: Resampling | None) -> list[Draft]:
    """Effect sizes of the top k labels and of probabilities, where the model gives them."""
    options = config.metrics.effect_sizes
    if options is None:
        return []
    found = []
    for version, counts in design.spread():
        place = Place(AUDIT, design.model, design.groups.name, version, config.resampling.level)
        chosen: list[Measure] = [
            effect_sizes_of(options),
            SkewSize(**effect_sizes_of(options).params),
        ]
        for one in measure(counts, chosen, resampling, config.resampling.seed):
            found += list(_drafts(one, place))
    return found


def _hits(design: Design, config: Config, resampling: Resampling | None) -> list[Draft]:
    """The hit rate and its gap, where the model gives several labels for an image."""
    options, top = config.metrics.hit_rate, design.predictions.coded_top
    if options is None or top is None:
        return []
    k = min(options.k, top.codes.shape[1])
    counts = hits(
        design.target.values,
        chosen(top, design.rows).values,
        design.groups,
        k=k,
        units=None if design.units is None else design.units.values,
    )
    estimate = measure(counts, [HitRate(k)], resampling, config.resampling.seed)[0]
    place = Place(AUDIT, design.model, design.groups.name, design.version, config.resampling.level)
    rate, gap = parts(estimate, place)
    # The rate itself compares nothing; of its gap, higher is worse.
    compared = Draft(replace(gap.finding, family=Family.COMPOSITE), "higher")
    by_group = rate.finding.by_group
    return [whole(estimate, place, Family.DESCRIPTIVE, by_group=by_group), compared]


def _unanswered(design: Design, config: Config, resampling: Resampling | None) -> list[Draft]:
    """Whether one group is left without an answer more often than another."""
    if config.metrics.unanswered_rate is None or "unanswered" not in design.states.classes:
        return []
    measures = [DemographicParity()]
    estimate = measure(design.states, measures, resampling, config.resampling.seed)[0]
    place = Place(AUDIT, design.model, design.groups.name, design.version, config.resampling.level)
    return [
        draft
        for draft in parts(estimate, place, metric="unanswered_rate")
        if draft.finding.subject == "unanswered"
    ]


def _parts(estimates: list[Estimate]) -> dict[str, tuple[Part, ...]]:
    return {one.metric: one.parts for one in estimates if one.by is not None}

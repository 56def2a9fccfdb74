"""Concepts measured under every version of the choices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.audits.concepts.designs import (
    Design,
    Key,
    choices_of,
    comparable,
    metrics_of,
)
from equipoise.core.estimate import Estimate
from equipoise.metrics.concepts.cells import Metric
from equipoise.metrics.concepts.disparity import concept_metrics, summarise
from equipoise.metrics.concepts.results import ConceptResults
from equipoise.stats.resampling import Bootstrap

if TYPE_CHECKING:
    from equipoise.audits.concepts.config import Config
    from equipoise.audits.concepts.loading import ConceptData
    from equipoise.audits.kinds import Progress


@dataclass(frozen=True, eq=False)
class Run:
    """One metric of one design.

    Attributes
    ----------
    design : Design
    metric : str
    against : str
        The metric of the baseline that it is compared with.
    results : ConceptResults
    estimate : Estimate
    same_as : str
        The version that has these numbers already; "" where there is none.
    """

    design: Design
    metric: Metric
    against: Metric
    results: ConceptResults = field(repr=False)
    estimate: Estimate = field(repr=False)
    same_as: str = ""

    @property
    def baseline(self) -> bool:
        """Whether it is what versions are compared with."""
        return not self.design.version.changed


def measure_designs(
    config: Config, data: ConceptData, every: Sequence[Design], progress: Progress | None
) -> list[Run]:
    """Measure every design; equal ones once."""
    found: dict[Key, tuple[ConceptResults, Estimate, str]] = {}
    runs: list[Run] = []
    samples = _by_sample(every)
    done = 0
    for designs in samples:
        rows = Sample.of(data, designs[0])
        for design in designs:
            if progress is not None:
                progress("measuring", done, len(every))
            done += 1
            runs += _runs(config, rows, design, found)
    order = {id(design): place for place, design in enumerate(every)}
    return sorted(runs, key=lambda run: order[id(run.design)])


def _by_sample(every: Iterable[Design]) -> list[list[Design]]:
    """Bring together designs that read the same labels and scores."""
    found: dict[Key, list[Design]] = {}
    for design in every:
        found.setdefault((design.model, design.version.choices.map), []).append(design)
    return [*found.values()]


@dataclass(frozen=True, eq=False)
class Sample:
    """Labels and scores by row."""

    concepts: tuple[str, ...]
    labels: Any
    scores: Any
    units: Any

    @classmethod
    def of(cls, data: ConceptData, design: Design) -> Sample:
        """Read what a design's model says, under its class mapping."""
        model, name = data.models[design.model], design.version.choices.map
        labels = data.labels.by_image(model.concepts, name)
        scores = model.by_image(name)
        if data.rows.items is not data.rows.images:
            labels, scores = labels[data.rows.image], scores[data.rows.image]
        return cls(model.concepts, labels, scores, data.rows.units)


def _runs(config: Config, rows: Sample, design: Design, found: dict[Key, Any]) -> Iterator[Run]:
    metrics = metrics_of(config, design.version)
    keys = {one: (*design.sample, comparable(config, design.version, one)) for one in metrics}
    fresh = [metric for metric in metrics if keys[metric] not in found]
    for metric, results in _measured(config, rows, design, fresh).items():
        found[keys[metric]] = (results, summarise(results), design.version.name)
    for metric in metrics:
        results, estimate, first = found[keys[metric]]
        same = "" if metric in fresh else first
        against = config.primary if metric == metrics[0] else metric
        yield Run(design, metric, against, results, estimate, same)


def _measured(
    config: Config, rows: Sample, design: Design, metrics: Sequence[Metric]
) -> dict[Metric, ConceptResults]:
    """Measure several metrics on one sample."""
    if not metrics:
        return {}
    tests = tests_of(config, len(rows.concepts), design)
    found = concept_metrics(
        rows.scores,
        rows.labels,
        design.groups,
        metrics,
        choices_of(config, design.version),
        unlabelled=design.version.choices.unlabelled,
        concepts=rows.concepts,
        units=None if rows.units is None else rows.units.values,
        resampling=resampling_of(config, tests),
        rng=config.resampling.seed,
    )
    return {
        metric: replace(results, excluded=_excluded(results, design))
        for metric, results in found.items()
    }


def _excluded(results: ConceptResults, design: Design) -> dict[str, int]:
    """Say why rows have no group, in place of that they have none."""
    rest = {name: n for name, n in results.excluded.items() if name != "missing group"}
    return {**design.excluded, **rest}


def tests_of(config: Config, concepts: int, design: Design) -> int:
    """Return how many tests of concepts of a model are corrected together, about.

    Those of the baseline are one family over groups and metrics; a version's are corrected by
    themselves, in the table of choices.
    """
    usable = int(design.groups.usable.sum())
    pairs = usable * (usable - 1) // 2
    if design.version.changed:
        return concepts * pairs
    each = pairs if pairs < 2 else 1 + pairs
    return len(config.data.groups) * len(config.metrics) * concepts * each


def resampling_of(config: Config, tests: int) -> Bootstrap | None:
    """Return the resampling object that the config describes, fine enough for the tests."""
    options = config.resampling
    if options.method == "none":
        return None
    finest = config.testing.alpha / (10 * max(tests, 1))
    if options.permutations is not None:
        finest = max(finest, 1.0 / options.permutations)
    least = options.permutations or 1000
    return Bootstrap(options.replicates, least, options.level, finest)


def unmeasured(results: ConceptResults) -> list[str]:
    """Return the concepts for which fewer than two groups take part."""
    none = np.isnan(results.observed[:, results.groups.usable]).all(axis=1)
    return [results.names[place] for place in np.flatnonzero(none)]

"""Compare models on the same rows: paired differences with intervals and tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from equipoise.audits.auditing import Progress
from equipoise.audits.designs import groups_of
from equipoise.audits.differences import Compared, Contrast, draft_of
from equipoise.audits.findings import conclude
from equipoise.audits.merge import Merged, Runs, merged
from equipoise.audits.predictions import effect_sizes_of
from equipoise.audits.provenance import manifest_of
from equipoise.audits.rankings import comparison_tables
from equipoise.core.groups import Groups
from equipoise.core.result import AuditResult
from equipoise.metrics.accuracy import Accuracy
from equipoise.metrics.joint import Joint, Pair, join
from equipoise.metrics.measure import Measure
from equipoise.metrics.odds import EqualizedOdds
from equipoise.metrics.parity import DemographicParity
from equipoise.metrics.skewsize import SkewSize

if TYPE_CHECKING:
    from equipoise.audits.config import Config

Floats = npt.NDArray[np.float64]


def compare(runs: Runs, *, progress: Progress | None = None) -> AuditResult:
    """Compare the models of one run, or of several runs about the same images.

    Only images that every model answered are compared, so that each difference is paired:
    intervals resample rows (or units) for all models at once, tests exchange two models' answers
    on a row. Groups, metrics, seed and thresholds are those of the first run.

    Parameters
    ----------
    runs : mapping of str to (Config, PredictionData)
    progress : callable, optional
        Told the step, what is done and what there is to do.

    Returns
    -------
    AuditResult
        One finding per metric, groups and pair of models; tables `differences`, `ranking` and
        `disagreements`.

    Raises
    ------
    DataError
        When runs have no image in common or label one differently, or there is one model only.
    """
    started = perf_counter()
    found = merged(runs)
    worlds = [*_worlds(found)]
    compared = []
    for done, world in enumerate(worlds):
        if progress is not None:
            progress("comparing", done, len(worlds))
        compared += [*_compare(world, found.config)]
    drafts = [draft_of(contrast, found.config) for one in compared for contrast in one.contrasts]
    findings = conclude(drafts, found.config.testing)
    manifest = manifest_of(
        found.config,
        found.data,
        Path(),
        seconds=perf_counter() - started,
        notes=_notes(runs, found, worlds),
    )
    return AuditResult(findings, manifest, comparison_tables(findings, compared))


@dataclass(frozen=True, eq=False)
class World:
    """All models held against one set of groups; without groups for accuracy itself."""

    groups: str
    joint: Joint
    measures: tuple[Measure, ...]


def _worlds(found: Merged) -> Iterator[World]:
    config, everything = found.config, np.zeros(len(found.rows), np.int32)
    if config.metrics.accuracy is not None:
        whole = Groups(("all",), (("all",),), everything)
        yield World("", _join(found, whole), (Accuracy("accuracy", None),))
    rows = np.zeros(len(found.data.ids), dtype=bool)
    rows[found.rows] = True
    for attributes in config.data.groups:
        every = groups_of(config, found.data, attributes, np.ones(len(rows), dtype=bool))
        groups = every.take(found.rows)
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
        yield effect_sizes_of(chosen.effect_sizes)
    if chosen.skewsize is not None:
        options = effect_sizes_of(chosen.skewsize)
        yield SkewSize(**options.params)


def _compare(world: World, config: Config) -> Iterator[Compared]:
    """Yield what is known of each metric: every model's replicates, every pair's contrast."""
    many, seed = config.resampling.replicates, config.resampling.seed
    joint = world.joint
    pairs = [(a, b, joint.pair(a, b)) for a, b in combinations(range(len(joint.models)), 2)]
    alone = [joint.alone(model) for model in range(len(joint.models))]
    blocks = [*joint.counts.sampler.bootstrap(many, seed)] if _resampled(config) else []
    for one in world.measures:
        numbers = [
            _values(one, seen.counts, seen.tables(joint.counts.table[None])) for seen in alone
        ]
        replicates = [
            np.concatenate([_values(one, seen.counts, seen.tables(block)) for block in blocks])
            if blocks
            else np.full((0, 1), np.nan)
            for seen in alone
        ]
        contrasts = tuple(
            contrast
            for a, b, pair in pairs
            for contrast in _contrasts(world, one, (a, b), pair, blocks, config)
        )
        yield Compared(_name(one), world.groups, joint.models, numbers, replicates, contrasts)


def _resampled(config: Config) -> bool:
    return config.resampling.method != "none"


def _values(one: Measure, counts: Any, tables: Floats) -> Floats:
    """Return the aggregate alone, shape (r, 1)."""
    return one(counts, tables)[:, :1]


def _contrasts(
    world: World,
    one: Measure,
    models: tuple[int, int],
    pair: Pair,
    blocks: Sequence[Floats],
    config: Config,
) -> Iterator[Contrast]:
    """Yield the difference of two models as a whole, and per class where there are classes."""
    width = 1 if isinstance(one, Accuracy | SkewSize) else 1 + len(pair.counts.classes)
    first, second = (one(pair.counts, some)[0, :width] for some in pair.split(pair.observed()))
    boot = [_difference(one, pair, pair.tables(block), width) for block in blocks]
    swaps = pair.swapped(config.resampling.replicates, config.resampling.seed)
    null = [_difference(one, pair, block, width) for block in swaps] if blocks else []
    names = [world.joint.models[model] for model in models]
    for index in range(width):
        if index and np.isnan(first[index]) and np.isnan(second[index]):
            continue
        yield Contrast(
            metric=_name(one, per_class=index > 0),
            subject=pair.counts.classes[index - 1] if index else "",
            groups=world.groups,
            models=(names[0], names[1]),
            values=(float(first[index]), float(second[index])),
            boot=np.concatenate([some[:, index] for some in boot]) if boot else np.zeros(0),
            null=np.concatenate([some[:, index] for some in null]) if null else np.zeros(0),
            n=round(world.joint.counts.table.sum()),
            unit=world.joint.counts.unit,
        )


def _difference(one: Measure, pair: Pair, tables: Floats, width: int) -> Floats:
    first, second = pair.split(tables)
    return (one(pair.counts, second) - one(pair.counts, first))[:, :width]


def _name(one: Measure, *, per_class: bool = False) -> str:
    if isinstance(one, Accuracy):
        return one.kind
    if isinstance(one, DemographicParity):
        return "demographic_parity"
    if isinstance(one, EqualizedOdds):
        return "equalized_odds"
    if isinstance(one, SkewSize):
        return "skewsize"
    return str(getattr(one, "statistic", "")) if per_class else "effect_size_mean"


def _notes(runs: Runs, found: Merged, worlds: Sequence[World]) -> tuple[str, ...]:
    used = round(worlds[0].joint.counts.table.sum()) if worlds else 0
    left = len(found.data.ids) - used
    notes = [f"Compared on the {used} images that have a label and an answer of every model."]
    if left:
        notes.append(f"{left} images of run {next(iter(runs))} are not compared.")
    return tuple(notes)

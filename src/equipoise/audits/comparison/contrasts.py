"""The numbers of every model, and the contrast of every pair: observed, resampled, swapped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from equipoise.audits.comparison.differences import Compared, Contrast
from equipoise.audits.comparison.worlds import World, metric_of, subjects_of
from equipoise.metrics.joint import Pair, Seen
from equipoise.metrics.measure import Measure
from equipoise.metrics.skewsize import SkewSize, no_skewness

if TYPE_CHECKING:
    from equipoise.audits.predictions.config import Config

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Numbers:
    """A measure's numbers of several tables, shape (tables, subjects)."""

    subjects: tuple[str, ...]
    values: Floats

    def of(self, subject: str) -> Floats:
        """Return the numbers of one subject; NaN where the model has none."""
        if subject not in self.subjects:
            return np.full(len(self.values), np.nan)
        return self.values[:, self.subjects.index(subject)]


# By model, then by measure.
_Drawn = list[list[_Numbers]]


def compare_world(world: World, config: Config) -> list[Compared]:
    """Measure all models and pairs of models of a world.

    Replicates are drawn once for all models, so that differences are paired. They are measured
    block by block: all tables at once would not fit in memory where classes are many.
    """
    joint, options = world.joint, config.resampling
    resampled = options.method != "none"
    alone = [joint.alone(model) for model in range(len(joint.models))]
    blocks = joint.counts.sampler.bootstrap(options.replicates, options.seed) if resampled else ()
    observed = _measure(world.measures, alone, [joint.counts.table[None]])
    boot = _measure(world.measures, alone, blocks)
    contrasts: list[list[Contrast]] = [[] for _ in world.measures]
    for models in combinations(range(len(alone)), 2):
        pair = joint.pair(*models)
        swaps = pair.swapped(options.replicates, options.seed) if resampled else ()
        null = _measure(world.measures, _halves(pair), swaps)
        for place, one in enumerate(world.measures):
            drawn = [[each[place] for each in some] for some in (observed, boot, null)]
            contrasts[place] += _contrasts(world, one, models, pair, drawn)
    return [
        Compared(
            metric_of(one, ""),
            world.groups,
            joint.models,
            tuple(float(numbers[place].of("")[0]) for numbers in observed),
            np.stack([numbers[place].of("") for numbers in boot], axis=1),
            tuple(contrasts[place]),
        )
        for place, one in enumerate(world.measures)
    ]


def _halves(pair: Pair) -> list[Seen]:
    return [Seen(pair.counts, index) for index in (pair.first, pair.second)]


def _measure(
    measures: Sequence[Measure], views: Sequence[Seen], blocks: Iterable[Floats]
) -> _Drawn:
    subjects = [[subjects_of(one, view.counts) for one in measures] for view in views]
    kept = [[[np.zeros((0, len(names)))] for names in some] for some in subjects]
    for block in blocks:
        for view, names, found in zip(views, subjects, kept, strict=True):
            tables = view.tables(block)
            for one, about, values in zip(measures, names, found, strict=True):
                values.append(one(view.counts, tables)[:, : len(about)])
    return [
        [_Numbers(about, np.concatenate(some)) for about, some in zip(names, found, strict=True)]
        for names, found in zip(subjects, kept, strict=True)
    ]


def _contrasts(
    world: World,
    one: Measure,
    models: tuple[int, int],
    pair: Pair,
    drawn: Sequence[Sequence[_Numbers]],
) -> Iterator[Contrast]:
    """Yield the difference of two models as a whole, and per class where there are classes.

    `drawn` has the observed and resampled numbers of all models, and those of the pair swapped.
    """
    first, second = models
    observed, boot, null = drawn
    names = (world.joint.models[first], world.joint.models[second])
    behind = world.behind(one)
    apart = _unlike(names, observed[first], observed[second])
    for subject in ("", *classes_of(pair)):
        values = tuple(float(observed[model].of(subject)[0]) for model in models)
        if subject and np.isnan(values).all():
            continue
        yield Contrast(
            metric=metric_of(one, subject),
            subject=subject,
            groups=world.groups,
            models=names,
            values=(values[0], values[1]),
            boot=boot[second].of(subject) - boot[first].of(subject),
            null=null[1].of(subject) - null[0].of(subject),
            n=round(world.joint.counts.table.sum()),
            unit=world.joint.counts.unit,
            reason=_reason(world, one, models, values) or ("" if subject else apart),
            classes=classes_of(pair),
            determined=world.joint.counts.determines_target,
            behind=behind,
        )


def classes_of(pair: Pair) -> tuple[str, ...]:
    """Return the classes that occur as truth or as a label of one of the two models."""
    seen = np.union1d(pair.counts.truth, pair.counts.prediction)
    return tuple(pair.counts.classes[place] for place in seen)


def _reason(world: World, one: Measure, models: tuple[int, int], values: tuple[float, ...]) -> str:
    """Say why a difference has no value, model by model."""
    lost = [model for model, value in zip(models, values, strict=True) if np.isnan(value)]
    if not lost:
        return ""
    groups = world.joint.counts.groups
    if world.groups and groups.usable.sum() < 2:
        return f"fewer than two groups have {groups.min_size} rows among those compared"
    return "; ".join(f"{world.joint.models[model]}: {_why(world, one, model)}" for model in lost)


def _unlike(names: tuple[str, str], first: _Numbers, second: _Numbers) -> str:
    """Say that two aggregates stand on different classes, where they do."""
    known = [
        {name for name in one.subjects[1:] if not np.isnan(one.of(name)[0])}
        for one in (first, second)
    ]
    if known[0] == known[1]:
        return ""
    counts = " and ".join(f"{len(some)} of {name}" for name, some in zip(names, known, strict=True))
    return f"over different classes, those that can be estimated: {counts}"


def _why(world: World, one: Measure, model: int) -> str:
    if not isinstance(one, SkewSize):
        return "no value, as its audit explains"
    seen = world.joint.alone(model)
    effects, _ = one.numbers(seen.counts, seen.tables(world.joint.counts.table[None]))
    return no_skewness(int((~np.isnan(effects)).sum()))

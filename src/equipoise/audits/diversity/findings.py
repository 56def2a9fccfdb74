"""Findings on distances: within each set, between sets, and to reference data sets."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from equipoise.audits.audit import Measured
from equipoise.audits.drawing import resampling_of
from equipoise.audits.findings import Place, UncorrectedFinding, parts, whole, without_verdict
from equipoise.core.estimate import Estimate
from equipoise.core.finding import Family, GroupValue
from equipoise.metrics.measure import NO_INTERVAL
from equipoise.metrics.vectors.diversity import (
    REFERENCE,
    diverse_subset,
    iss_cross,
    iss_difference,
    iss_intra,
    mean_distances,
    project,
)
from equipoise.stats.resampling import Permutation

if TYPE_CHECKING:
    from equipoise.audits.diversity.audit import Design
    from equipoise.audits.diversity.config import Config
    from equipoise.metrics.vector_rows import Table
    from equipoise.stats.resampling import Resampling

Sets = Mapping[str, "Table"]

_WHERE = [(name, pa.string()) for name in ("model", "groups", "within")]
_DISTANCES = pa.schema(
    [
        *_WHERE,
        *((name, pa.string()) for name in ("set_a", "set_b")),
        *((name, pa.float64()) for name in ("distance", "low", "high")),
        *((name, pa.int64()) for name in ("n_a", "n_b")),
    ]
)
_SUBSETS = pa.schema(
    [*_WHERE, ("set", pa.string()), ("rank", pa.int64()), ("image_id", pa.string())]
)


def measure_sets(
    design: Design,
    references: Mapping[str, npt.NDArray[Any]],
    config: Config,
    ids: npt.NDArray[np.object_],
    resampling: Resampling | None,
) -> Measured:
    """Measure each set, every pair, all sets together, and their distance to references.

    Parameters
    ----------
    design : Design
    references : mapping of str to ndarray
        Embeddings of reference data sets by name.
    config : Config
    ids : ndarray of str objects
        Of all images.
    resampling : Resampling or None
    """
    level, components = config.resampling.level, config.metrics.components
    place = Place("diversity", design.model, design.groups.name, "default", level)
    # One projection, so that every number is of one space.
    every: Sets = {**design.sets, **references}
    if components is not None and design.sets:
        every = project(every, components)
    sets = {name: every[name] for name in design.sets}
    findings = (
        *_within(design, sets, config, place),
        *_between(design, sets, config, place, resampling),
        *_to_references(design, every, config, place),
    )
    where = {"model": design.model, "groups": design.groups.name, "within": design.within}
    distances = mean_distances(every, level=level).to_pylist() if every else []
    tables = {
        "distances": pa.Table.from_pylist([where | row for row in distances], _DISTANCES),
        "subsets": pa.Table.from_pylist(
            [where | row for row in _subsets(design, sets, config, ids)], _SUBSETS
        ),
    }
    return Measured(
        tuple(_with_components(each, components) for each in findings),
        {name: table for name, table in tables.items() if len(table)},
    )


def _with_components(each: UncorrectedFinding, components: int | None) -> UncorrectedFinding:
    """Add the number of components, which metrics of projections don't know."""
    parameters = json.loads(each.finding.parameters) | {"components": components}
    return _changed(each, parameters=json.dumps(parameters, sort_keys=True))


def _changed(each: UncorrectedFinding, **changes: Any) -> UncorrectedFinding:
    return replace(each, finding=replace(each.finding, **changes))


def _within(
    design: Design, sets: Sets, config: Config, place: Place
) -> Iterator[UncorrectedFinding]:
    """Describe each set: a single one has no groups to exchange."""
    options, resampling = config.metrics, resampling_of(config, 1)
    estimates = {
        name: iss_intra(images, include_self=options.include_self, resampling=resampling)
        for name, images in sets.items()
    }
    reason = f"fewer than {config.data.min_set_size} images with an embedding"
    estimates |= {
        name: Estimate("iss_intra", math.nan, {"images": n}, NO_INTERVAL, REFERENCE, reason=reason)
        for name, n in design.small.items()
    }
    for name, estimate in estimates.items():
        yield _changed(whole(estimate, place, Family.DESCRIPTIVE), subject=_subject(design, name))


def _between(
    design: Design, sets: Sets, config: Config, place: Place, resampling: Resampling | None
) -> Iterator[UncorrectedFinding]:
    """Test whether sets lie apart, and whether they are equally diverse."""
    if len(sets) < 2:
        return
    cross = iss_cross(sets, resampling=resampling, rng=config.resampling.seed)
    family = Family.LEAF if design.within else Family.COMPOSITE
    together = whole(cross, place, family, by_group=_diversities(cross))
    # Groups' values are distances within sets, and their order says nothing of the distance.
    yield _changed(together, direction="", subject=design.within)
    difference = iss_difference(sets, resampling=resampling)
    pairs = parts(difference, place)
    if len(pairs) > 1:
        pair = str(difference.params["pair"])
        groups = next((part.by_group for part in difference.parts if part.subject == pair), ())
        largest = _changed(
            whole(difference, place, Family.DESCRIPTIVE),
            by_group=groups, direction=_direction(groups), subject=design.within,
        )  # fmt: skip
        yield without_verdict(
            largest, f"the largest of {len(pairs)} pairs, each of which is tested"
        )
    for each in pairs:
        finding = each.finding
        only = len(pairs) == 1 and not design.within
        yield _changed(
            each,
            subject=_subject(design, finding.subject),
            direction=_direction(finding.by_group) or finding.direction,
            family=Family.COMPOSITE if only else finding.family,
        )


def _to_references(
    design: Design, every: Sets, config: Config, place: Place
) -> Iterator[UncorrectedFinding]:
    """Describe how far each set lies from each reference data set."""
    references = [name for name in every if name not in design.sets]
    if not references or not design.sets:
        return
    # One permutation, whose p-value is not used: the intervals are closed forms.
    once = Permutation(1, level=config.resampling.level)
    cross = iss_cross(every, resampling=None if config.resampling.method == "none" else once)
    diversity = {each.group: each for each in _diversities(cross)}
    pairs = {f"{own} × {other}": (own, other) for own in design.sets for other in references}
    for each in parts(cross, place):
        pair = pairs.get(each.finding.subject)
        if each.finding.metric == "mean_distance" and pair is not None:
            yield _changed(
                each,
                subject=_subject(design, each.finding.subject),
                family=Family.DESCRIPTIVE,
                null="",
                by_group=tuple(diversity[name] for name in pair),
                reason=each.finding.reason or "it has no chance level: read it beside ISS intra",
            )


def _subject(design: Design, name: str) -> str:
    return f"{design.within}: {name}" if design.within else name


def _direction(groups: tuple[GroupValue, ...]) -> str:
    """Say which of two sets is less diverse; "" where that isn't known."""
    if len(groups) != 2 or any(math.isnan(each.value) for each in groups):
        return ""
    low, high = sorted(groups, key=lambda each: each.value)
    return (
        f"images of {low.group} (ISS intra {low.value:.3f}) are more alike than those of "
        f"{high.group} ({high.value:.3f})"
    )


def _diversities(cross: Estimate) -> tuple[GroupValue, ...]:
    """Return ISS intra of each set."""
    return tuple(
        GroupValue(
            part.subject, (part.subject,), part.n, part.value, part.low, part.high, part.reason
        )
        for part in cross.parts
        if part.metric == "iss_intra"
    )


def _subsets(
    design: Design, sets: Sets, config: Config, ids: npt.NDArray[np.object_]
) -> Iterator[dict[str, Any]]:
    """Yield the images of each set's diverse subset, first chosen first."""
    size = config.metrics.subset
    for name, images in sets.items() if size else ():
        chosen = design.images[name][diverse_subset(images, min(size, len(images)))]
        for rank, image in enumerate(ids[chosen].tolist(), start=1):
            yield {"set": name, "rank": rank, "image_id": image}

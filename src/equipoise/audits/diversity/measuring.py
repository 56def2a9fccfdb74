"""What is measured of the sets of one model and one choice of attributes."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from equipoise.audits.diversity.config import reference_name
from equipoise.audits.diversity.loading import DiversityData, Floats, Part
from equipoise.audits.drawing import resampling_of
from equipoise.audits.findings import Draft, Place, parts, whole, without_verdict
from equipoise.core.estimate import Estimate
from equipoise.core.finding import Family, GroupValue
from equipoise.metrics.diversity.difference import iss_difference
from equipoise.metrics.diversity.iss import REFERENCE, iss_cross, iss_intra, mean_distances
from equipoise.metrics.diversity.sets import project
from equipoise.metrics.diversity.subset import diverse_subset
from equipoise.metrics.measure import NO_INTERVAL
from equipoise.stats.resampling import Permutation

if TYPE_CHECKING:
    from equipoise.audits.diversity.config import Config

AUDIT = "diversity"


@dataclass(frozen=True, eq=False)
class MeasuredPart:
    """What the sets of one part gave.

    Attributes
    ----------
    part : Part
    drafts : tuple of Draft
    matrix : pyarrow.Table or None
        As `mean_distances` gives it, reference data sets among the sets; None without a set.
    subsets : mapping of str to ndarray of int
        Places in the table of the images of each set's diverse subset, first chosen first.
    """

    part: Part
    drafts: tuple[Draft, ...]
    matrix: pa.Table | None
    subsets: Mapping[str, npt.NDArray[np.int64]]


def tests_of(part: Part) -> int:
    """Return how many tests the sets of a part are good for."""
    many = len(part.sets)
    return 0 if many < 2 else 1 + many * (many - 1) // 2


def measure_part(part: Part, config: Config, data: DiversityData, tests: int) -> MeasuredPart:
    """Measure the sets of a part: each, every pair, all together, and beside the references."""
    place = Place(AUDIT, part.model, part.groups, "default", config.resampling.level)
    part, references = _projected(part, _references(part, data), config)
    drafts = (
        *_intra(part, config, place),
        *_compared(part, config, place, tests),
        *_beside(part, references, config, place),
    )
    sets = {**part.sets, **references}
    matrix = mean_distances(sets, level=config.resampling.level) if sets else None
    told = tuple(_with_components(draft, config.metrics.components) for draft in drafts)
    return MeasuredPart(part, told, matrix, _subsets(part, config))


def _projected(
    part: Part, references: dict[str, Floats], config: Config
) -> tuple[Part, dict[str, Floats]]:
    """Project all sets and references together, so that every number is of one space."""
    components = config.metrics.components
    if components is None or not part.sets:
        return part, references
    found = project({**part.sets, **references}, components)
    own = {name: found[name] for name in part.sets}
    return replace(part, sets=own), {name: found[name] for name in references}


def _with_components(draft: Draft, components: int | None) -> Draft:
    """Say what was projected on: the metrics were given projections already."""
    given = json.loads(draft.finding.parameters) | {"components": components}
    finding = replace(draft.finding, parameters=json.dumps(given, sort_keys=True))
    return replace(draft, finding=finding)


def _references(part: Part, data: DiversityData) -> dict[str, Floats]:
    return {
        reference_name(name): models[part.model].take(np.flatnonzero(models[part.model].usable))
        for name, models in data.references.items()
        if part.model in models
    }


def _intra(part: Part, config: Config, place: Place) -> Iterator[Draft]:
    """Describe each set: a single one has no groups to exchange."""
    options = config.metrics
    for name, images in part.sets.items():
        estimate = iss_intra(
            images,
            include_self=options.include_self,
            resampling=resampling_of(config, 1),
        )
        draft = whole(estimate, place, Family.DESCRIPTIVE)
        yield _about(draft, _subject(part, name))
    for name, n in part.small.items():
        reason = f"fewer than {config.data.min_set_size} images with an embedding"
        nothing = Estimate(
            "iss_intra", math.nan, {"images": n}, NO_INTERVAL, REFERENCE, reason=reason
        )
        yield _about(whole(nothing, place, Family.DESCRIPTIVE), _subject(part, name))


def _compared(part: Part, config: Config, place: Place, tests: int) -> Iterator[Draft]:
    """Test whether sets lie apart, and whether they are equally diverse."""
    if len(part.sets) < 2:
        return
    resampling = resampling_of(config, tests)
    cross = iss_cross(part.sets, resampling=resampling, rng=config.resampling.seed)
    family = Family.LEAF if part.within else Family.COMPOSITE
    together = whole(cross, place, family, by_group=_diversities(cross))
    # The groups' values are distances within them: their order says nothing of the whole.
    plain = replace(together, finding=replace(together.finding, direction=""))
    yield _about(plain, part.within)
    difference = iss_difference(part.sets, resampling=resampling)
    pairs = parts(difference, place)
    if len(pairs) > 1:
        together = whole(difference, place, Family.DESCRIPTIVE)
        why = f"the largest of {len(pairs)} pairs, each of which is tested"
        yield _about(without_verdict(_told(together, difference), why), part.within)
    for draft in pairs:
        told = _about(draft, _subject(part, draft.finding.subject))
        if len(pairs) == 1 and not part.within:
            told = replace(told, finding=replace(told.finding, family=Family.COMPOSITE))
        yield _worded(told)


def _beside(
    part: Part, references: dict[str, Floats], config: Config, place: Place
) -> Iterator[Draft]:
    """Describe how far each set lies from each reference data set."""
    if not references or not part.sets:
        return
    # One permutation, whose p-value is not used: the intervals are closed forms.
    once = Permutation(1, level=config.resampling.level)
    drawn = None if config.resampling.method == "none" else once
    together = {**part.sets, **references}
    every = iss_cross(together, resampling=drawn)
    diversity = {one.group: one for one in _diversities(every)}
    wanted = {f"{own} × {other}": (own, other) for own in part.sets for other in references}
    for draft in parts(every, place):
        pair = wanted.get(draft.finding.subject)
        if draft.finding.metric == "mean_distance" and pair is not None:
            finding = replace(
                draft.finding,
                subject=_subject(part, draft.finding.subject),
                family=Family.DESCRIPTIVE,
                null="",
                by_group=tuple(diversity[name] for name in pair),
                reason=draft.finding.reason or "it has no chance level: read it beside ISS intra",
            )
            yield replace(draft, finding=finding)


def _subject(part: Part, name: str) -> str:
    return f"{part.within}: {name}" if part.within else name


def _about(draft: Draft, subject: str) -> Draft:
    return replace(draft, finding=replace(draft.finding, subject=subject))


def _told(draft: Draft, difference: Estimate) -> Draft:
    """Name the two sets that differ most."""
    pair = str(difference.params["pair"])
    groups = next((one.by_group for one in difference.parts if one.subject == pair), ())
    return _worded(replace(draft, finding=replace(draft.finding, by_group=groups)))


def _worded(draft: Draft) -> Draft:
    """Say which of two sets is the more diverse."""
    groups = draft.finding.by_group
    if len(groups) != 2 or any(math.isnan(one.value) for one in groups):
        return draft
    low, high = sorted(groups, key=lambda one: one.value)
    direction = (
        f"images of {low.group} (ISS intra {low.value:.3f}) are more alike than those of "
        f"{high.group} ({high.value:.3f})"
    )
    return replace(draft, finding=replace(draft.finding, direction=direction))


def _diversities(cross: Estimate) -> tuple[GroupValue, ...]:
    """Return ISS intra of each set."""
    return tuple(
        GroupValue(one.subject, (one.subject,), one.n, one.value, one.low, one.high, one.reason)
        for one in cross.parts
        if one.metric == "iss_intra"
    )


def _subsets(part: Part, config: Config) -> dict[str, npt.NDArray[np.int64]]:
    size = config.metrics.subset
    if not size:
        return {}
    return {
        name: part.images[name][diverse_subset(images, min(size, len(images)))]
        for name, images in part.sets.items()
    }

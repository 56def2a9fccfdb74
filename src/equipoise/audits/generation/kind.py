"""The audit of generation in its three steps."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.audits.generation import loading
from equipoise.audits.generation.designs import FEWEST_SETS, Design, designs
from equipoise.audits.generation.loading import GenerationData
from equipoise.audits.generation.measuring import (
    kept_share,
    learned_accuracy,
    measure_design,
    tests_of,
)
from equipoise.audits.generation.tables import tables_of
from equipoise.audits.kinds import Measured, Progress, drafts_of, estimated_seconds, told
from equipoise.core.groups import Groups
from equipoise.counterfactuals.filters import write_sets

if TYPE_CHECKING:
    from equipoise.audits.generation.config import Config

Row = dict[str, Any]

# Seconds for a design, and for an image in a permutation or replicate: rough guides.
_SECONDS_PER_DESIGN, _SECONDS_PER_IMAGE = 0.07, 2e-9


def load(config: Config, *, base: Path) -> GenerationData:
    """Read the images and put them through the filters, see `loading.load`."""
    return loading.load(config, base=base)


def measure(config: Config, data: GenerationData, progress: Progress | None) -> Measured:
    """Measure whose images each filter rejects, and write the sets that are kept.

    Raises
    ------
    RunError
        When the data set of kept sets cannot be written.
    """
    every = [*designs(config, data)]
    tests = sum(tests_of(design) for design in every)
    kept = (*kept_share(config, data), *learned_accuracy(config, data))
    measured = [
        measure_design(design, config, tests) for design in told(every, progress, "measuring")
    ]
    notes = [*_notes(config, data), *_resampled(every), *_written(config, data)]
    return Measured((*kept, *drafts_of(measured)), tables_of(config, data, measured), tuple(notes))


@dataclass(frozen=True)
class Plan:
    """What an audit of generation would do.

    Attributes
    ----------
    sets, candidates, images : int
        Sets of captions, candidates of them, and images of these.
    kinds : list of dict
        Per attributes that vary together: sets of captions, images of a set, candidates, images.
    groups : list of dict
        Per attribute and value: images, and whether they are compared.
    filters : list of str
        In their order.
    off : list of str
        Those that are not asked for.
    tests : int
    seconds : float
        A rough guide to what is measured, without what models take.
    """

    sets: int
    candidates: int
    images: int
    kinds: list[Row]
    groups: list[Row]
    filters: list[str]
    off: list[str]
    tests: int
    seconds: float


def plan(config: Config, data: GenerationData) -> Plan:
    """Say what the audit would do. A generator's candidates are taken as alike."""
    given, candidates = config.generator, data.filtered.candidates
    times = 1 if given is None else given.candidates
    every = [*designs(config, data)]
    options = config.resampling
    draws = 2 * ((options.permutations or options.replicates) + options.replicates)
    images = candidates.images * times
    names = ("similarity", "content", "attributes")
    return Plan(
        sets=len({*candidates.of_candidates("set").tolist()}),
        candidates=len(candidates) * times,
        images=images,
        kinds=[*_kinds(data, times)],
        groups=[*_groups(config, data, times)],
        filters=[name for name in names if getattr(config.filters, name) is not None],
        off=[name for name in names if getattr(config.filters, name) is None],
        tests=sum(tests_of(design) for design in every),
        seconds=estimated_seconds(
            sum(
                _SECONDS_PER_DESIGN + len(design.rows) * times * draws * _SECONDS_PER_IMAGE
                for design in every
            )
        ),
    )


def _kinds(data: GenerationData, times: int) -> Iterator[Row]:
    candidates = data.filtered.candidates
    of, sets = candidates.of_candidates("attributes"), candidates.of_candidates("set")
    for kind in candidates.combinations:
        rows = of == kind
        yield {
            "attributes": kind,
            "sets": len({*sets[rows].tolist()}),
            "images_per_set": int(candidates.sizes[rows].max()),
            "candidates": int(rows.sum()) * times,
            "images": int(candidates.sizes[rows].sum()) * times,
        }


def _groups(config: Config, data: GenerationData, times: int) -> Iterator[Row]:
    columns = data.filtered.candidates.columns
    for attributes in config.compared:
        groups = Groups.of({name: columns[name] for name in attributes})
        for name, n in zip(groups.names, groups.counts.tolist(), strict=True):
            yield {
                "groups": groups.name,
                "group": name,
                "images": n * times,
                "compared": n * times >= config.min_group_size,
            }


def _notes(config: Config, data: GenerationData) -> Iterator[str]:
    filtered = data.filtered
    yield (
        "Groups are what captions ask for: perceived attributes, not identities. What an image "
        "shows is what the models of the filters make of it, whose own errors may differ by group."
    )
    yield (
        "A set that is rejected takes its images of every group along, so that kept images are as "
        "many of each by construction. Tests are about images that fail a check by what they show "
        "themselves, and exchange the images of a set."
    )
    for name in ("similarity", "content", "attributes"):
        if getattr(config.filters, name) is None:
            yield f"No filter of {name}: filters.{name} is not given, so nothing is rejected by it."
    lost = filtered.candidates.columns["reason"][filtered.candidates.state == "unreadable"]
    for why in sorted({*lost.tolist()}):
        yield (
            f"{int((lost == why).sum())} images are taken as not made (unreadable: {why}); each "
            "takes its set along."
        )
    if filtered.candidates.left_out:
        yield f"{filtered.candidates.left_out} images are of no set, or have no attributes."
    if not filtered.kept.any():
        yield "No set is kept."
    for one in filtered.candidates.combinations:
        rows = filtered.candidates.of_candidates("attributes") == one
        if filtered.kept.any() and not filtered.kept[rows].any():
            yield f"No set of {one} is kept."
    if filtered.best is not None:
        yield (
            f"Of the sets that pass, at most {filtered.best} are kept of each set of captions. "
            "That looks at sets as a whole: there is no image of its own to test."
        )


def _resampled(every: Sequence[Design]) -> Iterator[str]:
    if any(not design.by_caption_set for design in every):
        yield (
            f"There are fewer than {FEWEST_SETS} sets of captions to resample: intervals are about "
            "other candidates of these captions, not about other captions."
        )


def _written(config: Config, data: GenerationData) -> Iterator[str]:
    """Write the kept sets, and say where they are."""
    if not config.write_sets or not data.filtered.kept.any():
        return
    if data.pictures is None:
        yield "The kept sets are not written as a data set: nothing says where the pictures are."
        return
    key = _key(data)
    images = write_sets(data.filtered, data.pictures, data.store / "sets" / key)
    where = f"{config.extraction.store.as_posix()}/sets/{key}"
    yield (
        f"The kept sets, {int(data.filtered.kept.sum())} of {images} images, are a data set in "
        f"{where}: images.parquet names the pictures. An audit of counterfactuals reads it."
    )


def _key(data: GenerationData) -> str:
    """Return a name that follows from the images and from which are kept."""
    kept: Sequence[str] = [
        name
        for name, one in zip(data.filtered.candidates.names, data.filtered.kept, strict=True)
        if one
    ]
    told = {name: one.get("sha256") for name, one in sorted(data.inputs.items())}
    return hashlib.sha256(json.dumps([told, kept]).encode()).hexdigest()[:16]

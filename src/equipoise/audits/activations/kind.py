"""The audit of activations in its three steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.audits.activations import loading
from equipoise.audits.activations.loading import ActivationData
from equipoise.audits.activations.measuring import (
    Design,
    MeasuredDesign,
    designs,
    measure_design,
    tables_of,
)
from equipoise.audits.drawing import most_tests
from equipoise.audits.group_sizes import check_two
from equipoise.audits.kinds import (
    PERCEIVED,
    Measured,
    Progress,
    drafts_of,
    estimated_seconds,
    told,
)

if TYPE_CHECKING:
    from equipoise.audits.activations.config import Config

Row = dict[str, Any]

# Seconds for an image in a permutation or replicate of a design, and for a design whatever its
# size: rough guides, from the example.
_SECONDS_PER_IMAGE, _SECONDS_PER_DESIGN = 4e-7, 0.15
# Regions whose mean areas differ by more than this between groups are told.
_APART = 0.05


def load(config: Config, *, base: Path) -> ActivationData:
    """Read the images, their regions and every model's maps, see `loading.load`."""
    return loading.load(config, base=base)


def measure(config: Config, data: ActivationData, progress: Progress | None) -> Measured:
    """Measure the maps of every model on every region and choice of groups.

    Raises
    ------
    DataError
        When a choice of groups leaves fewer than two to compare.
    """
    every = _checked(config, data)
    tests = _tests(every)
    measured = [
        measure_design(design, config, tests[design.model])
        for design in told(every, progress, "measuring")
    ]
    notes = tuple(_notes(measured, data, config))
    return Measured(drafts_of(measured), tables_of(measured, config), notes)


def _tests(every: list[Design]) -> Counter[str]:
    return Counter(design.model for design in every)


@dataclass(frozen=True)
class Plan:
    """What an audit of activations would do.

    Attributes
    ----------
    images : int
    models : list of dict
        Per model: images with a map, without one, rows and columns of a map.
    comparisons : list of dict
        Per model, region and groups: images with the region, groups that are compared, and the
        images of the two smallest.
    tests : int
        How many there are to correct for, of the model with the most.
    seconds : float
        A rough guide.
    """

    images: int
    models: list[Row]
    comparisons: list[Row]
    tests: int
    seconds: float


def plan(config: Config, data: ActivationData) -> Plan:
    """Say what the audit would do.

    Raises
    ------
    DataError
        When a choice of groups leaves fewer than two to compare.
    """
    every = _checked(config, data)
    return Plan(
        images=len(data.images),
        models=[
            {
                "model": name, "with_map": len(one.used), "without": one.without,
                "rows": one.maps.shape[1], "columns": one.maps.shape[2],
            }
            for name, one in data.models.items()
        ],
        comparisons=[_comparison(design) for design in every],
        tests=most_tests(_tests(every)),
        seconds=estimated_seconds(sum(_seconds(design, config) for design in every)),
    )  # fmt: skip


def _comparison(design: Design) -> Row:
    sizes = sorted(design.groups.counts[design.groups.usable].tolist())
    return {
        "model": design.model, "region": design.region, "groups": design.groups.name,
        "with_region": len(design.rows), "compared": len(sizes), "smallest_groups": sizes[:2],
    }  # fmt: skip


def _seconds(design: Design, config: Config) -> float:
    options = config.resampling
    draws = (options.permutations or options.replicates) + options.replicates
    return _SECONDS_PER_DESIGN + draws * len(design.rows) * _SECONDS_PER_IMAGE


def _checked(config: Config, data: ActivationData) -> list[Design]:
    """Return every design; refuse groups of which fewer than two are large enough."""
    every = [*designs(config, data)]
    for design in every:
        which = f"{design.model}, {design.region}: fewer than two groups of {design.groups.name}"
        what = "images with a region and a map"
        check_two(design.groups, which, what, file=data.images.name)
    return every


def _notes(measured: list[MeasuredDesign], data: ActivationData, config: Config) -> Iterator[str]:
    yield PERCEIVED
    yield (
        "A map says which places the layer's activations and their gradients speak for. It is no "
        "proof of what a model would do without them: hide the region, and ask again."
    )
    if config.blur and any(one.pictures for one in data.models.values()):
        what = "all of each" if config.blur == "all" else ", ".join(config.blur)
        yield f"Blurred in the pictures, and not in what models saw: {what}."
    for name, one in data.models.items():
        if one.without:
            yield f"{name}: {one.without} images have no map."
    for found in measured:
        design = found.design
        for why, n in found.share.excluded.items():
            yield f"{design.model}, {design.region}: {n} images have no share ({why})."
        areas = {p.subject: p.value for p in found.share.parts if p.metric == "region_area"}
        known = {name: area for name, area in areas.items() if area == area}  # noqa: PLR0124
        if known and max(known.values()) - min(known.values()) > _APART:
            large, small = max(known, key=known.__getitem__), min(known, key=known.__getitem__)
            yield (
                f"{design.model}, {design.region}: the region takes {known[large]:.0%} of images "
                f"of {large} and {known[small]:.0%} of those of {small}, so more of any map lies "
                "in it; see the gap beyond the area."
            )

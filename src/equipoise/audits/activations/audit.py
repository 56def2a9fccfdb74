"""The audit of activations: how much of a model's maps lies inside regions, by group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from equipoise.audits.activations.maps import ActivationData, Mapped, load
from equipoise.audits.against_rest import leaf
from equipoise.audits.audit import Audit, Measured, audit_kind
from equipoise.audits.findings import Place, parts, whole, without_verdict
from equipoise.audits.group_sizes import Row, check_two, groups_by, lacking, sizes_of
from equipoise.core import Facts, Family, Fields, Groups, Integers, table_of
from equipoise.metrics.values.activation import Regions, activation_share, activation_share_gap

if TYPE_CHECKING:
    from equipoise.audits.activations.config import Config
    from equipoise.audits.outputs import Models
    from equipoise.stats.resampling import Resampling


# Seconds for an image in a permutation or replicate of a design, and for a design whatever its
# size: rough guides, from the example.
_SECONDS_PER_IMAGE, _SECONDS_PER_DESIGN = 4e-7, 0.15

_NO_VERDICT = "where a model looks is no disparity in itself; the gap between groups is tested"
_BESIDE = "stands beside the gap in the share itself, which is tested"


@dataclass(frozen=True, eq=False)
class Design:
    """One model's maps over one region, compared between one choice of groups.

    Attributes
    ----------
    model, region : str
    every : Groups
        Of all images with a map: those without a share are counted.
    mapped : Mapped
    lacking : mapping of str to int
    draws : int
    """

    model: str
    region: str
    every: Groups
    mapped: Mapped
    lacking: Mapping[str, int]
    draws: int

    @property
    def tests(self) -> int:
        """How many tests the design makes: the gap, and each of three groups or more."""
        groups = int(self.groups.usable.sum())
        return 1 + groups * (groups > 2)

    @cached_property
    def rows(self) -> Integers:
        """Places, among the images with a map, of those that have a share."""
        return Regions.of(self.mapped.maps, self.mapped.boxes[self.region]).rows

    @cached_property
    def groups(self) -> Groups:
        """Groups of the images that have a share."""
        return self.every.take(self.rows)

    @property
    def compared(self) -> bool:
        """Whether two groups or more have enough images with a share."""
        return bool(self.groups.usable.sum() >= 2)

    def seconds(self, draws: int) -> float:
        """About how long it takes to measure."""
        return _SECONDS_PER_DESIGN + self.draws * len(self.rows) * _SECONDS_PER_IMAGE


@audit_kind("activations")
class Activations(Audit["Config", ActivationData, Design]):
    """Audits of class activation maps."""

    items = "images"

    def load(self, config: Config, models: Models) -> ActivationData:
        """Read the images and regions; read or make every model's maps."""
        return load(config, models)

    def groups(self, config: Config, data: ActivationData) -> list[Groups]:
        """Return the groups of all images."""
        section = config.data
        return groups_by(section.groups, data.images.coded, min_size=section.min_group_size)

    def designs(self, config: Config, data: ActivationData) -> list[Design]:
        """Return every model with every region and choice of groups that can be compared."""
        designs = [*self._designs(config, data)]
        compared = [each for each in designs if each.compared]
        for each in () if compared else designs:
            which = f"{each.model}, {each.region}: fewer than two groups of {each.groups.name}"
            what = "images with a region and a map"
            check_two(each.groups, which, what, file=data.images.name)
        return compared

    def _designs(self, config: Config, data: ActivationData) -> Iterator[Design]:
        options = config.resampling
        draws = (options.permutations or options.replicates) + options.replicates
        every = product(data.models.items(), config.data.regions, self.groups(config, data))
        for (model, mapped), region, groups in every:
            codes = {name: data.images.coded[name].codes[mapped.used] for name in groups.attributes}
            own = groups.take(mapped.used)
            yield Design(model, region, own, mapped, lacking(codes), draws)

    def measure(
        self, config: Config, data: ActivationData, design: Design, resampling: Resampling | None
    ) -> Measured:
        """Measure the share inside the region, and its gap between groups."""
        place = Place(
            self.name, design.model, design.groups.name, "default", config.resampling.level
        )
        maps, boxes = design.mapped.maps, design.mapped.boxes[design.region]
        how: Fields = {
            "groups": design.every, "units": _units(design, config, data),
            "resampling": resampling, "rng": config.resampling.seed,
        }  # fmt: skip
        share = activation_share(maps, boxes, **how)
        gap, beyond = (
            activation_share_gap(maps, boxes, beyond_area=area, **how) for area in (False, True)
        )
        shares = [part for part in share.parts if part.metric == "activation_share"]
        by_group = tuple(group for part in shares for group in part.by_group)
        shown = whole(share, place, Family.DESCRIPTIVE, by_group=by_group, about=design.region)
        found, *leaves = parts(gap, place)
        tested = [replace(found, harm=gap.harm), *(leaf(one, gap.metric) for one in leaves)]
        for at, one in enumerate(tested):
            if np.isnan(one.finding.p_value):
                tested[at] = without_verdict(one, "there is nothing to exchange")
        beside = parts(beyond, replace(place, version="beyond the area"))[0]
        findings = (without_verdict(shown, _NO_VERDICT), *tested, without_verdict(beside, _BESIDE))
        areas = {part.subject: part.value for part in share.parts if part.metric == "region_area"}
        rows = [
            {"model": design.model, "groups": design.groups.name, "region": design.region,
             "group": part.subject, "n": part.n, "share": part.value, "low": part.low,
             "high": part.high, "area": areas[part.subject], "chance": part.chance,
             "chance_low": part.chance_low, "chance_high": part.chance_high}
            for part in shares
        ]  # fmt: skip
        columns = (
            "model groups region group +n #share #low #high #area #chance #chance_low #chance_high"
        )
        tables = {"activation_shares": table_of(rows, columns)}
        # All regions are on one picture.
        if design.region == next(iter(config.data.regions)):
            pictures = [*_pictures(design, config, data)]
            if pictures:
                tables["gallery"] = table_of(pictures, "section group caption *image")
        return Measured(
            tuple(each.changed(subject=design.region) for each in findings),
            tables,
            tuple(
                f"{design.model}, {design.region}: {n} images have no share ({reason})."
                for reason, n in share.excluded.items()
            ),
        )

    def details(
        self,
        config: Config,
        data: ActivationData,
        designs: Sequence[Design],
        tests: Mapping[str, int],
    ) -> Facts:
        """Return images, and maps of each model (of one cell before it runs)."""
        return {
            "images": len(data.images),
            "models": [
                {
                    "model": name, "with_map": len(each.used), "without": each.without,
                    "rows": each.maps.shape[1], "columns": each.maps.shape[2],
                }
                for name, each in data.models.items()
            ],
        }  # fmt: skip

    def notes(
        self, config: Config, data: ActivationData, designs: Sequence[Design]
    ) -> Iterable[str]:
        """Return the notes on maps, on blurred pictures and on images without a map."""
        yield (
            "A map shows the places that the layer's activations and gradients point to. It "
            "doesn't prove what the model would do without them: hide the region and run it again."
        )
        if config.blur and any(each.pictures for each in data.models.values()):
            what = "all of each" if config.blur == "all" else ", ".join(config.blur)
            yield f"Blurred in the pictures, and not in what models saw: {what}."
        for design in self._designs(config, data):
            if not design.compared:
                yield (
                    f"{design.model}, {design.region}, {design.groups.name}: not measured, because "
                    "fewer than two groups have enough images with a region and an activation."
                )
        for name, each in data.models.items():
            if each.without and config.models[name].model is None:
                yield f"{name}: {each.without} images have no map."

    def sizes(self, config: Config, data: ActivationData) -> Iterator[Row]:
        """Return the groups of the images with a share, by the first model and region."""
        first: dict[str, Design] = {}
        for each in self._designs(config, data):
            first.setdefault(each.every.name, each)
        for each in first.values():
            yield from sizes_of(each.groups)


def _units(design: Design, config: Config, data: ActivationData) -> list[str] | None:
    """Return the unit of each image with a map; an image without a unit is its own."""
    if config.data.unit is None:
        return None
    units = data.images.columns[config.data.unit][design.mapped.used].tolist()
    ids = data.ids[design.mapped.used].tolist()
    return [
        f"image {own}" if unit is None else str(unit) for unit, own in zip(units, ids, strict=True)
    ]


def _pictures(design: Design, config: Config, data: ActivationData) -> Iterator[Row]:
    """Yield overlays of the first images of every group that have them."""
    used, overlays = design.mapped.used, design.mapped.pictures
    ids, target = data.ids[used], config.models[design.model].target
    column = None if config.data.target is None else data.images.columns[config.data.target][used]
    for code, group in enumerate(design.every.names):
        of_group = np.flatnonzero(design.every.codes == code).tolist()
        for row in [row for row in of_group if row in overlays][: config.gallery]:
            label = target if target is not None or column is None else column[row]
            yield {
                "section": f"{design.model}, {design.every.name}",
                "group": group,
                "caption": f"{ids[row]}: {label}" if label else str(ids[row]),
                "image": overlays[row],
            }

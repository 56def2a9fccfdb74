"""What is measured of one model's maps, one region and one choice of groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from equipoise.audits import group_sizes
from equipoise.audits.drawing import resampling_of
from equipoise.audits.findings import Draft, Place, parts, whole, without_verdict
from equipoise.audits.group_sizes import sizes_of
from equipoise.core.estimate import Estimate
from equipoise.core.finding import Family, GroupValue
from equipoise.core.groups import Groups
from equipoise.metrics.activation.gap import activation_share_gap
from equipoise.metrics.activation.regions import Regions
from equipoise.metrics.activation.share import activation_share

if TYPE_CHECKING:
    from equipoise.audits.activations.config import Config
    from equipoise.audits.activations.loading import ActivationData, Mapped

AUDIT = "activations"
Row = dict[str, Any]

NO_VERDICT = "where a model looks is no disparity in itself; the gap between groups is tested"
BESIDE = "stands beside the gap in the share itself, which is tested"


@dataclass(frozen=True, eq=False)
class Design:
    """One model's maps over one region, held against one choice of groups.

    Attributes
    ----------
    model, region : str
    attributes : tuple of str
    data : ActivationData
    config : Config
    """

    model: str
    region: str
    attributes: tuple[str, ...]
    data: ActivationData
    config: Config

    @property
    def mapped(self) -> Mapped:
        """The model's maps."""
        return self.data.models[self.model]

    @cached_property
    def rows(self) -> npt.NDArray[np.int64]:
        """Places, among the images with a map, of those that have a share."""
        return Regions.of(self.mapped.maps, self.mapped.boxes[self.region]).rows

    @cached_property
    def groups(self) -> Groups:
        """The groups of the images that have a share."""
        used = self.mapped.used[self.rows]
        columns = {name: self.data.images.columns[name][used] for name in self.attributes}
        return Groups.of(columns, min_size=self.config.data.min_group_size)

    @cached_property
    def given(self) -> dict[str, Any]:
        """Groups and units of all images with a map: those that have no share are counted."""
        columns = {name: self._column(name) for name in self.attributes}
        unit = self.config.data.unit
        return {
            "groups": Groups.of(columns, min_size=self.config.data.min_group_size),
            "units": None if unit is None else self._units(unit),
        }

    def _column(self, name: str) -> npt.NDArray[np.object_]:
        return self.data.images.columns[name][self.mapped.used]

    def _units(self, name: str) -> list[str]:
        """Return units; an image without one is its own."""
        ids = self.data.images.ids[self.mapped.used].tolist()
        return [
            f"image {own}" if one is None else str(one)
            for one, own in zip(self._column(name).tolist(), ids, strict=True)
        ]


@dataclass(frozen=True, eq=False)
class MeasuredDesign:
    """What one design gave."""

    design: Design
    drafts: tuple[Draft, ...]
    share: Estimate


def designs(config: Config, data: ActivationData) -> Iterator[Design]:
    """Yield every model with every region and choice of groups."""
    for model in data.models:
        for region in config.data.regions:
            for attributes in config.data.groups:
                yield Design(model, region, attributes, data, config)


def measure_design(design: Design, config: Config, tests: int) -> MeasuredDesign:
    """Measure one design: the share, and its gap between groups."""
    place = Place(AUDIT, design.model, design.groups.name, "default", config.resampling.level)
    maps, boxes = design.mapped.maps, design.mapped.boxes[design.region]
    how: dict[str, Any] = {
        "resampling": resampling_of(config, tests),
        "rng": config.resampling.seed,
    }
    share = activation_share(maps, boxes, **design.given, **how)
    gap, beyond = (
        activation_share_gap(maps, boxes, beyond_area=beyond, **design.given, **how)
        for beyond in (False, True)
    )
    shown = whole(share, place, Family.DESCRIPTIVE, by_group=_groups(share), about=design.region)
    tested = parts(gap, place)[0]
    beside = parts(beyond, replace(place, version="beyond the area"))[0]
    drafts = (
        _about(design.region, without_verdict(shown, NO_VERDICT)),
        _about(design.region, _tested(replace(tested, harm=gap.harm))),
        _about(design.region, without_verdict(beside, BESIDE)),
    )
    return MeasuredDesign(design, drafts, share)


def _tested(draft: Draft) -> Draft:
    finding = draft.finding
    if np.isnan(finding.p_value):
        return without_verdict(draft, finding.reason or "there is nothing to exchange")
    return draft


def _about(region: str, draft: Draft) -> Draft:
    return replace(draft, finding=replace(draft.finding, subject=region))


def _groups(share: Estimate) -> tuple[GroupValue, ...]:
    return tuple(
        group
        for part in share.parts
        if part.metric == "activation_share"
        for group in part.by_group
    )


_NUMBERS = ("share", "low", "high", "area", "chance", "chance_low", "chance_high")
_SHARES = pa.schema(
    [(name, pa.string()) for name in ("model", "groups", "region", "group")]
    + [("n", pa.int64())]
    + [(name, pa.float64()) for name in _NUMBERS]
)
GALLERY = pa.schema(
    [("section", pa.string()), ("group", pa.string()), ("caption", pa.string()),
     ("image", pa.binary())]
)  # fmt: skip


def tables_of(measured: Sequence[MeasuredDesign], config: Config) -> Mapping[str, pa.Table]:
    """Return every table of a run by name, see docs/audits/activations.md."""
    tables = {
        "group_sizes": group_sizes.table(_sizes(measured)),
        "activation_shares": pa.Table.from_pylist(
            [row for one in measured for row in _shares(one)], _SHARES
        ),
    }
    pictures = [row for one in _once(measured) for row in _pictures(one, config.gallery)]
    if pictures:
        tables["gallery"] = pa.Table.from_pylist(pictures, GALLERY)
    return tables


def _shares(one: MeasuredDesign) -> Iterator[Row]:
    areas = {p.subject: p.value for p in one.share.parts if p.metric == "region_area"}
    for part in one.share.parts:
        if part.metric == "activation_share":
            yield {
                "model": one.design.model, "groups": one.design.groups.name,
                "region": one.design.region, "group": part.subject, "n": part.n,
                "share": part.value, "low": part.low, "high": part.high,
                "area": areas[part.subject], "chance": part.chance,
                "chance_low": part.chance_low, "chance_high": part.chance_high,
            }  # fmt: skip


def _once(measured: Sequence[MeasuredDesign]) -> Iterator[MeasuredDesign]:
    """Yield one design of each model and choice of groups: all regions are on one picture."""
    seen: set[tuple[str, tuple[str, ...]]] = set()
    for one in measured:
        key = one.design.model, one.design.attributes
        if key not in seen:
            seen.add(key)
            yield one


def _pictures(one: MeasuredDesign, most: int) -> Iterator[Row]:
    """Yield overlays of the first images of every group that have one."""
    design = one.design
    groups, used = design.given["groups"], design.mapped.used
    ids = design.data.images.ids[used]
    target = design.config.models[design.model].target
    column = design.config.data.target
    for code, group in enumerate(groups.names):
        of_group = np.flatnonzero(groups.codes == code).tolist()
        shown = [row for row in of_group if ids[row] in design.mapped.pictures][:most]
        for row in shown:
            asked = target
            if asked is None and column is not None:
                asked = design.data.images.columns[column][used[row]]
            yield {
                "section": f"{design.model}, {groups.name}",
                "group": group,
                "caption": f"{ids[row]}: {asked}" if asked else str(ids[row]),
                "image": design.mapped.pictures[ids[row]],
            }


def _sizes(measured: Sequence[MeasuredDesign]) -> Iterator[Row]:
    """Sizes of the groups by the first model and region."""
    seen: set[str] = set()
    for one in measured:
        if one.design.groups.name not in seen:
            seen.add(one.design.groups.name)
            yield from sizes_of(one.design.groups)

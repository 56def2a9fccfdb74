"""The section that says what the images of an audit are; see docs/images.md for every key."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    model_validator,
)

from equipoise.audits.config_fields import (
    CsvConfig,
    FilePath,
    Label,
    Labels,
    Name,
    Names,
    Section,
    Share,
    Table,
    among,
    as_text,
    distinct,
    file_path,
    given_keys,
    located,
    only_one,
    several,
)
from equipoise.core.errors import InputError
from equipoise.data import (
    ALL_BOXES,
    AT_LEAST_600_PIXELS,
    FORMATS,
    LARGE_BOXES,
    BandGroups,
    BoxGroups,
    BoxSize,
    CaptionGroups,
    CollapseRows,
    CropBoxes,
    IdsFrom,
    ItemSource,
    LeaveOutImages,
    LeaveOutLabels,
    LeaveOutUnlabelled,
    Rule,
    ValueGroups,
    continents,
    find_format,
    hall_boxes,
    hall_captions,
    income_bands,
    leave_out_visual_genome,
    read_class_mapping,
    read_visual_genome_images,
)
from equipoise.data.files import read_whole
from equipoise.data.formats.rows import utf8_text

SIZES: Mapping[str, BoxSize] = {
    size.name: size for size in (ALL_BOXES, AT_LEAST_600_PIXELS, LARGE_BOXES)
}


def _named_size(value: object) -> object:
    """Take the name of a size for its numbers."""
    if not isinstance(value, str):
        return value
    among("size", value, [*SIZES])
    return asdict(SIZES[value])


Several = Annotated[
    tuple[Label, ...],
    Field(strict=False, min_length=1),
    BeforeValidator(several),
    AfterValidator(distinct),
]
"""Texts, or a single one."""

Terms = Annotated[Mapping[Name, Several], Field(min_length=1)]
"""Group to what makes an image one of it."""

NeutralMeans = Literal["nothing", "no group"]


class BoxSizeConfig(Section):
    """How large a box has to be.

    Attributes
    ----------
    name : str
    pixels : float
        Smaller boxes, in square pixels, are ignored.
    ignored, needed : float
        Shares of the image: smaller boxes are ignored; a group needs a box of at least this.
    """

    name: Name
    pixels: Annotated[float, Field(ge=0)] = 0.0
    ignored: Share = 0.0
    needed: Share = 0.0

    @model_validator(mode="after")
    def _fits(self) -> BoxSizeConfig:
        self.size()
        return self

    def size(self) -> BoxSize:
        """Return the size."""
        return BoxSize(self.name, self.pixels, self.ignored, self.needed)


Size = Annotated[BoxSizeConfig, BeforeValidator(_named_size)]
EVERY_SIZE = BoxSizeConfig(name=ALL_BOXES.name)


def leave_out_images(why: str, ids: Sequence[str], file: Path | None) -> LeaveOutImages:
    """Return the rule that leaves out images by their ids, or those of a file, one a line."""
    if file is not None:
        content = read_whole(file, ".txt", "the id of an image in every line")
        lines = map(str.strip, utf8_text(content, str(file)).splitlines())
        ids = [line for line in lines if line]
    return LeaveOutImages(frozenset(ids), why)


class RuleSection(Section):
    """A declared choice: the name of its rule, and its parameters as in `equipoise.data`."""

    makes: ClassVar[Callable[..., Any]]
    rule: str

    def made(self, base: Path) -> Rule:
        """Return the rule; a file is read relative to `base`.

        Raises
        ------
        InputError
            When parameters contradict each other.
        DataError
            When a file cannot be read.
        """
        given = {name: getattr(self, name) for name in type(self).model_fields if name != "rule"}
        if given.get("file") is not None:
            given["file"] = base / given["file"]
        if "size" in given:
            given["size"] = given["size"].size()
        rule: Rule = type(self).makes(**given)
        return rule

    @model_validator(mode="after")
    def _can_be_made(self) -> Self:
        if "file" not in type(self).model_fields:
            self.made(Path())
        return self


class GroupsRule(RuleSection):
    """Groups by terms: what is looked for, and where the words are from."""

    attribute: Name
    groups: Terms
    source: str = ""
    version: str = ""


class CaptionGroupsRule(GroupsRule):
    """Groups by terms in any caption, as whole words without case."""

    makes = CaptionGroups
    rule: Literal["caption_groups"]
    neutral: Labels = ()
    neutral_means: NeutralMeans = "nothing"


class HallCaptionsRule(RuleSection):
    """Perceived gender by captions of COCO, as in Hall et al. 2023."""

    makes = hall_captions
    rule: Literal["hall_captions"]
    parents_and_children: bool = True
    neutral_means: NeutralMeans = "nothing"
    version: str = ""


class BoxGroupsRule(GroupsRule):
    """Groups by the labels of boxes, under a rule of size."""

    makes = BoxGroups
    rule: Literal["box_groups"]
    size: Size = EVERY_SIZE


class HallBoxesRule(RuleSection):
    """Perceived gender by boxes of Visual Genome, as in Hall et al. 2023."""

    makes = hall_boxes
    rule: Literal["hall_boxes"]
    size: Size = EVERY_SIZE
    parents_and_children: bool = True
    version: str = ""


class ValueGroupsRule(GroupsRule):
    """Groups by the values of a column."""

    makes = ValueGroups
    rule: Literal["value_groups"]
    column: Name


class ContinentsRule(RuleSection):
    """Countries by continent (United Nations, M49)."""

    makes = continents
    rule: Literal["continents"]
    column: Name = "country"
    attribute: Name = "continent"
    version: str = ""


class BandGroupsRule(RuleSection):
    """Groups by bands of a number."""

    makes = BandGroups
    rule: Literal["band_groups"]
    attribute: Name
    column: Name
    bounds: Annotated[tuple[float, ...], Field(strict=False, min_length=1)]
    names: Annotated[tuple[Label, ...], Field(strict=False, min_length=1)]
    source: str = ""
    version: str = ""


class IncomeBandsRule(RuleSection):
    """Households by monthly income."""

    makes = income_bands
    rule: Literal["income_bands"]
    scheme: Literal["levels", "quartiles"] = "levels"
    column: Name = "income"
    attribute: Name = "income band"
    version: str = ""


class IdsFromRule(RuleSection):
    """Images are named by a column."""

    makes = IdsFrom
    rule: Literal["ids_from"]
    column: Name


class LeaveOutImagesRule(RuleSection):
    """Images of some ids are left out: listed, or one a line in a file."""

    makes = leave_out_images
    rule: Literal["leave_out_images"]
    why: Name
    ids: Labels = ()
    file: FilePath | None = None

    @model_validator(mode="after")
    def _one_list(self) -> LeaveOutImagesRule:
        only_one(self, "ids", "file")
        return self


class LeaveOutLabelsRule(RuleSection):
    """Some labels are left out."""

    makes = staticmethod(lambda labels, why: LeaveOutLabels(frozenset(labels), why))
    rule: Literal["leave_out_labels"]
    labels: Several
    why: Name


class LeaveOutUnlabelledRule(RuleSection):
    """Images without a label are left out."""

    makes = LeaveOutUnlabelled
    rule: Literal["leave_out_unlabelled"]


class LeaveOutVisualGenomeRule(RuleSection):
    """Images of Visual Genome are left out of COCO, by `image_data.json`."""

    makes = staticmethod(lambda file: leave_out_visual_genome(read_visual_genome_images(file)))
    rule: Literal["leave_out_visual_genome"]
    file: FilePath


class ClassMappingRule(RuleSection):
    """Labels become the classes of a model, by a file."""

    makes = staticmethod(lambda file, name: read_class_mapping(file, name=name))
    rule: Literal["class_mapping"]
    file: FilePath
    name: Name | None = None


class CollapseRowsRule(Section):
    """Rows of one photograph of Dollar Street are one image: how it is read, so before others."""

    rule: Literal["collapse_rows"]
    by: Literal["id", "file"] = "id"

    @property
    def collapse(self) -> CollapseRows:
        """What the reader is told."""
        return CollapseRows(self.by)


RuleConfig = Annotated[
    CaptionGroupsRule
    | HallCaptionsRule
    | BoxGroupsRule
    | HallBoxesRule
    | ValueGroupsRule
    | ContinentsRule
    | BandGroupsRule
    | IncomeBandsRule
    | CollapseRowsRule
    | IdsFromRule
    | LeaveOutImagesRule
    | LeaveOutLabelsRule
    | LeaveOutUnlabelledRule
    | LeaveOutVisualGenomeRule
    | ClassMappingRule,
    Field(discriminator="rule"),
]
"""A rule, told apart by its name."""


CORNERS = ("left", "top", "right", "bottom")
_ONLY: Mapping[str, tuple[str, ...]] = {
    "id": ("table", "format"),
    "levels": ("folder",),
    "files": ("format",),
    "options": ("format",),
    "root": ("table", "format"),
    "path": ("table", "format"),
    "missing": ("table",),
    "encoding": ("table",),
    "delimiter": ("table",),
}
"""Keys that go with some of the sources only."""


def _format(name: str) -> str:
    try:
        return find_format(name).name
    except InputError as error:
        raise ValueError(str(error)) from None


def _files(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(name): file_path(each) for name, each in value.items()}
    return None if value is None else file_path(value)


Files = Annotated[Any, BeforeValidator(_files), PlainSerializer(as_text)]


class CropConfig(Section):
    """What is cut out of each picture before a model sees it.

    Attributes
    ----------
    labels : list of str
        Boxes of these labels each become an image of their own.
    margin : float
        Share of a box's width and height that is added on each side.
    pixels : float
        Smaller boxes, in square pixels, are left out.
    left, top, right, bottom : str, optional
        Of a table: columns of what to cut out, in whole pixels.
    """

    labels: Labels = ()
    margin: Annotated[float, Field(ge=0)] = 0.0
    pixels: Annotated[float, Field(ge=0)] = 0.0
    left: Name | None = None
    top: Name | None = None
    right: Name | None = None
    bottom: Name | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the corners: four, or none."""
        return tuple(name for one in CORNERS if (name := getattr(self, one)) is not None)

    @property
    def boxes(self) -> CropBoxes:
        """The step that makes crops of boxes."""
        return CropBoxes(frozenset(self.labels), self.margin, self.pixels)

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        boxes = self.labels or self.margin or self.pixels
        if bool(self.labels) == bool(self.columns) or (
            self.columns and (boxes or len({*self.columns}) != len(CORNERS))
        ):
            raise ValueError(
                "expected 'labels' of boxes with 'margin' and 'pixels', or four different columns "
                "'left', 'top', 'right' and 'bottom'"
            )
        return self


class PicturesConfig(CsvConfig):
    """What the images are, and where their files lie.

    One of `table`, `folder` and `format` says what there is.

    Attributes
    ----------
    table : path or data frame, optional
        One row per image: CSV, Parquet or JSON lines.
    id : str, optional
        Column that names the image: of a table, or of a format that lets you name it.
    path : str, optional
        Column of the image's file.
    root : path, optional
        Folder that files are relative to; for a table that of the configuration unless given.
    folder : path, optional
        Every image in a folder; its id is its path inside.
    levels : list of str
        Names of the columns that the folders inside a folder make, from the outside.
    format : str, optional
        Of a data set.
    files : path or mapping of str to path, optional
        Where its annotations are.
    options : mapping, optional
        How it is read.
    rules : list
        Declared choices, applied in order.
    crop : mapping, optional
        What is cut out before a model sees it.
    """

    table: Table | None = None
    id: Name | None = None
    path: Name | None = None
    root: FilePath | None = None
    folder: FilePath | None = None
    levels: Names = ()
    format: Annotated[str, AfterValidator(_format)] | None = None
    files: Files = None
    options: Mapping[Name, Any] | None = None
    rules: Annotated[tuple[RuleConfig, ...], Field(strict=False)] = ()
    crop: CropConfig | None = None

    @property
    def is_plain(self) -> bool:
        """Whether this is a table that is read as it stands."""
        return self.table is not None and not self.rules

    def source(self, base: Path, columns: tuple[str, ...]) -> ItemSource:
        """Return the table to read, with paths relative to `base`."""
        return ItemSource(located(self.table, base), str(self.id), columns, **self.csv)

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        source = only_one(self, "table", "folder", "format")
        for key, own in given_keys(self, _ONLY).items():
            if own and source not in _ONLY[key]:
                allowed = " or ".join(map(repr, _ONLY[key]))
                raise ValueError(f"{key!r} goes with {allowed}, and {source!r} is given")
        if source == "table" and self.id is None:
            raise ValueError("id: required, and missing: the column that names the image")
        return self

    @model_validator(mode="after")
    def _format_is_whole(self) -> Self:
        if self.format is None:
            return self
        chosen = find_format(self.format)
        roles = ", ".join(chosen.roles)
        if self.files is None or isinstance(self.files, Mapping) != bool(roles):
            form = f"a mapping of {roles} to files" if roles else "one file or folder"
            raise ValueError(f"files: {self.format} is read from {form}")
        for role in self.files if roles else ():
            among("files", role, [*chosen.roles])
        if self.id is not None and not chosen.takes("id"):
            raise ValueError(f"'id' is given, and {self.format} has ids of its own")
        try:
            chosen.checked(self.options or {})
        except InputError as error:
            raise ValueError(str(error)) from None
        return self

    @model_validator(mode="after")
    def _steps_fit(self) -> Self:
        chosen = FORMATS.get(self.format or "")
        for place, rule in enumerate(self.rules):
            collapses = chosen is not None and chosen.takes("collapse")
            if isinstance(rule, CollapseRowsRule) and (place or not collapses):
                raise ValueError(
                    f"rules[{place}]: collapse_rows is how a format is read; expected it first"
                )
        if [rule.rule for rule in self.rules].count("ids_from") > 1:
            raise ValueError("rules: ids_from is there twice; expected one name for each image")
        if self.crop and self.crop.labels and not (chosen and chosen.boxes):
            raise ValueError(f"crop.labels: no boxes are in {self.format or 'a table'}")
        if self.crop and self.crop.columns and self.table is None:
            raise ValueError("crop.left: columns go with 'table'; name 'labels' of boxes")
        return self

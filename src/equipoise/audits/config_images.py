"""The section that says what the images of an audit are; see docs/images.md for every key."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
    Delimiter,
    Encoding,
    FilePath,
    Label,
    Labels,
    Name,
    Section,
    Share,
    Table,
    distinct,
    located,
)
from equipoise.audits.config_yaml import nearest
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
    ClassMapping,
    CollapseRows,
    CropBoxes,
    DataFormat,
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


def _listed(value: object) -> object:
    return (value,) if isinstance(value, str | int) and not isinstance(value, bool) else value


def _named_size(value: object) -> object:
    """Take the name of a size for its numbers."""
    if not isinstance(value, str):
        return value
    if value not in SIZES:
        raise ValueError(
            f"no size is called {value!r}. Allowed: {', '.join(SIZES)}, or a mapping with name, "
            f"pixels, ignored and needed{nearest(value, SIZES)}"
        )
    size = SIZES[value]
    return {name: getattr(size, name) for name in ("name", "pixels", "ignored", "needed")}


Several = Annotated[
    tuple[Label, ...],
    Field(strict=False, min_length=1),
    BeforeValidator(_listed),
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


def class_mapping(file: Path, name: str | None) -> ClassMapping:
    """Return the mapping of a file."""
    return read_class_mapping(file, name=name)


def leave_out_images(why: str, ids: Sequence[str], file: Path | None) -> LeaveOutImages:
    """Return the rule that leaves out images of the ids given, or of those in a file."""
    return LeaveOutImages(frozenset(ids if file is None else _lines(file)), why)


def leave_out_labels(labels: Sequence[str], why: str) -> LeaveOutLabels:
    """Return the rule that leaves out some labels."""
    return LeaveOutLabels(frozenset(labels), why)


def leave_out_visual_genome_of(file: Path) -> LeaveOutImages:
    """Return the rule that leaves out the images that `image_data.json` lists."""
    return leave_out_visual_genome(read_visual_genome_images(file))


def _lines(file: Path) -> list[str]:
    content = read_whole(file, ".txt", "the id of an image in every line")
    return [line.strip() for line in utf8_text(content, str(file)).splitlines() if line.strip()]


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


class _Declared(RuleSection):
    """A rule that reads no file, so that it can be checked with the configuration."""

    @model_validator(mode="after")
    def _can_be_made(self) -> _Declared:
        self.made(Path())
        return self


class CaptionGroupsRule(_Declared):
    """Groups by terms in any caption, as whole words without case."""

    makes = CaptionGroups
    rule: Literal["caption_groups"]
    attribute: Name
    groups: Terms
    neutral: Labels = ()
    neutral_means: NeutralMeans = "nothing"
    source: str = ""
    version: str = ""


class HallCaptionsRule(_Declared):
    """Perceived gender by captions of COCO, as in Hall et al. 2023."""

    makes = hall_captions
    rule: Literal["hall_captions"]
    parents_and_children: bool = True
    neutral_means: NeutralMeans = "nothing"
    version: str = ""


class BoxGroupsRule(_Declared):
    """Groups by the labels of boxes, under a rule of size."""

    makes = BoxGroups
    rule: Literal["box_groups"]
    attribute: Name
    groups: Terms
    size: Size = EVERY_SIZE
    source: str = ""
    version: str = ""


class HallBoxesRule(_Declared):
    """Perceived gender by boxes of Visual Genome, as in Hall et al. 2023."""

    makes = hall_boxes
    rule: Literal["hall_boxes"]
    size: Size = EVERY_SIZE
    parents_and_children: bool = True
    version: str = ""


class ValueGroupsRule(_Declared):
    """Groups by the values of a column."""

    makes = ValueGroups
    rule: Literal["value_groups"]
    attribute: Name
    column: Name
    groups: Terms
    source: str = ""
    version: str = ""


class ContinentsRule(_Declared):
    """Countries by continent (United Nations, M49)."""

    makes = continents
    rule: Literal["continents"]
    column: Name = "country"
    attribute: Name = "continent"
    version: str = ""


class BandGroupsRule(_Declared):
    """Groups by bands of a number."""

    makes = BandGroups
    rule: Literal["band_groups"]
    attribute: Name
    column: Name
    bounds: Annotated[tuple[float, ...], Field(strict=False, min_length=1)]
    names: Annotated[tuple[Label, ...], Field(strict=False, min_length=1)]
    source: str = ""
    version: str = ""


class IncomeBandsRule(_Declared):
    """Households by monthly income."""

    makes = income_bands
    rule: Literal["income_bands"]
    scheme: Literal["levels", "quartiles"] = "levels"
    column: Name = "income"
    attribute: Name = "income band"
    version: str = ""


class IdsFromRule(_Declared):
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
        if bool(self.ids) == (self.file is not None):
            given = "both are" if self.ids else "neither is"
            raise ValueError(f"'ids' or 'file': {given} given; expected one of them")
        return self


class LeaveOutLabelsRule(_Declared):
    """Some labels are left out."""

    makes = leave_out_labels
    rule: Literal["leave_out_labels"]
    labels: Several
    why: Name


class LeaveOutUnlabelledRule(_Declared):
    """Images without a label are left out."""

    makes = LeaveOutUnlabelled
    rule: Literal["leave_out_unlabelled"]


class LeaveOutVisualGenomeRule(RuleSection):
    """Images of Visual Genome are left out of COCO, by `image_data.json`."""

    makes = leave_out_visual_genome_of
    rule: Literal["leave_out_visual_genome"]
    file: FilePath


class ClassMappingRule(RuleSection):
    """Labels become the classes of a model, by a file."""

    makes = class_mapping
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


_SOURCES = ("table", "folder", "format")
CORNERS = ("left", "top", "right", "bottom")
_ONLY: Mapping[str, tuple[str, ...]] = {
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


def _files(value: object) -> object:
    if value is None:
        return None
    if isinstance(value, Path) or (isinstance(value, str) and value and "\0" not in value):
        return Path(value)
    if isinstance(value, Mapping) and value and all(isinstance(one, str) for one in value.values()):
        return {str(name): Path(one) for name, one in value.items()}
    raise ValueError("expected the path of a file or folder, or a mapping of names to paths")


def _format(name: str) -> str:
    try:
        return find_format(name).name
    except InputError as error:
        raise ValueError(str(error)) from None


def _files_as_text(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: one.as_posix() for name, one in value.items()}
    return value.as_posix() if isinstance(value, Path) else None


Files = Annotated[Any, BeforeValidator(_files), PlainSerializer(_files_as_text)]


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
        if bool(self.labels) == bool(self.columns):
            given = "both are" if self.labels else "neither is"
            raise ValueError(
                f"'labels', or 'left', 'top', 'right' and 'bottom': {given} given; expected one of "
                "the two"
            )
        if self.columns and (self.margin or self.pixels or len({*self.columns}) != len(CORNERS)):
            raise ValueError(
                "expected four different columns 'left', 'top', 'right' and 'bottom', and neither "
                "'margin' nor 'pixels', which are of boxes"
            )
        return self


class PicturesConfig(Section):
    """What the images are, and where their files lie.

    One of `table`, `folder` and `format` says what there is.

    Attributes
    ----------
    table : path or data frame, optional
        One row per image: CSV, Parquet or JSON lines.
    id : str, optional
        Column that names the image: of a table, or of a format that lets you name it.
    missing : list of str
        Cell texts that mean "missing".
    encoding, delimiter : str
        Of a CSV.
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
    missing: Labels = ("",)
    encoding: Encoding = "utf-8"
    delimiter: Delimiter = ","
    path: Name | None = None
    root: FilePath | None = None
    folder: FilePath | None = None
    levels: Annotated[tuple[Name, ...], Field(strict=False), AfterValidator(distinct)] = ()
    format: Annotated[str, AfterValidator(_format)] | None = None
    files: Files = None
    options: Mapping[Name, Any] | None = None
    rules: Annotated[tuple[RuleConfig, ...], Field(strict=False)] = ()
    crop: CropConfig | None = None

    @property
    def source_key(self) -> str:
        """Which of the keys says what images there are."""
        return next(name for name in _SOURCES if getattr(self, name) is not None)

    @property
    def is_plain(self) -> bool:
        """Whether this is a table that is read as it stands."""
        return self.table is not None and not self.rules

    @property
    def has_missing(self) -> bool:
        """Whether the key `missing` goes with the images: with a table."""
        return self.table is not None

    def source(self, base: Path, columns: tuple[str, ...]) -> ItemSource:
        """Return the table to read, with paths relative to `base`."""
        return ItemSource(
            located(self.table, base),
            str(self.id),
            columns,
            self.missing,
            self.encoding,
            self.delimiter,
        )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        given = [name for name in _SOURCES if getattr(self, name) is not None]
        if not given:
            raise ValueError(
                "none of 'table', 'folder' and 'format' is given; expected one of them"
            )
        if len(given) > 1:
            raise ValueError(f"{' and '.join(map(repr, given))} are given; expected one of them")
        source = given[0]
        for key, allowed in _ONLY.items():
            default = type(self).model_fields[key].get_default()
            if getattr(self, key) != default and source not in allowed:
                with_ = " or ".join(map(repr, allowed))
                raise ValueError(f"{key!r} goes with {with_}, and {source!r} is given")
        if source == "table" and self.id is None:
            raise ValueError("id: required, and missing: the column that names the image")
        if source == "folder" and self.id is not None:
            raise ValueError("'id' goes with a table; the id of a file is its path in the folder")
        return self

    @model_validator(mode="after")
    def _format_is_whole(self) -> Self:
        if self.format is None:
            return self
        chosen = find_format(self.format)
        if self.files is None:
            raise ValueError(f"files: required, and missing: the annotations of {self.format}")
        _check_files(self.format, self.files, chosen.roles)
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
                    f"rules[{place}]: collapse_rows says how a format is read; expected it first, "
                    f"with {_names(lambda one: one.takes('collapse'))}"
                )
        if [rule.rule for rule in self.rules].count("ids_from") > 1:
            raise ValueError("rules: ids_from is there twice; expected one name for each image")
        if self.crop and self.crop.labels and not (chosen and chosen.boxes):
            raise ValueError(
                f"crop.labels: boxes are in {_names(lambda one: one.boxes)}; name the columns "
                "'left', 'top', 'right' and 'bottom' of a table"
            )
        if self.crop and self.crop.columns and self.table is None:
            raise ValueError("crop.left: columns go with 'table'; name 'labels' of boxes")
        return self


def _names(fits: Callable[[DataFormat], bool]) -> str:
    return " and ".join(name for name, one in FORMATS.items() if fits(one))


def _check_files(name: str, given: Any, roles: tuple[str, ...]) -> None:
    """Refuse files that a format does not have.

    Raises
    ------
    ValueError
        With what is allowed, and the nearest of it.
    """
    if not roles:
        if isinstance(given, Mapping):
            raise ValueError(f"files: {name} has one file or folder; expected its path alone")
        return
    if not isinstance(given, Mapping):
        raise ValueError(f"files: {name} has several; expected a mapping of {', '.join(roles)}")
    for role in given:
        if role not in roles:
            raise ValueError(
                f"files.{role}: no file of {name}. Allowed: {', '.join(roles)}"
                f"{nearest(role, roles)}"
            )

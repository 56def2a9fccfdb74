"""The config section of the images; see docs/images.md for every key."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PlainSerializer,
    PositiveInt,
    SerializeAsAny,
    create_model,
    model_validator,
)

from equipoise.config.fields import (
    CsvConfig,
    FilePath,
    Filters,
    ItemsConfig,
    Label,
    Labels,
    Listed,
    Name,
    Names,
    OneOrMore,
    Section,
    Seed,
    Share,
    Table,
    TableConfig,
    among,
    as_text,
    file_path,
    given_keys,
    located,
    only_one,
    several,
    where_of,
)
from equipoise.core import InputError
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
    RandomSplit,
    Rule,
    Sample,
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
from equipoise.data.files import read_text, split_lines
from equipoise.data.tables import ROW_NUMBER, NamedFrame

SIZES: Mapping[str, BoxSize] = {
    size.name: size for size in (ALL_BOXES, AT_LEAST_600_PIXELS, LARGE_BOXES)
}


Terms = Annotated[Mapping[Name, OneOrMore[Label]], Field(min_length=1)]
"""Group to what makes an image one of it."""


def leave_out_images(why: str, ids: Sequence[str] = (), file: Path | None = None) -> LeaveOutImages:
    """Return the rule that leaves out images by id, from a list or a file."""
    if (file is None) == (not ids):
        raise InputError("expected either 'ids' or 'file'")
    if file is not None:
        text, _ = read_text(file, ".txt", "the id of an image in every line")
        ids = [*filter(None, map(str.strip, split_lines(text)))]
    return LeaveOutImages(frozenset(ids), why)


_MAKES: Mapping[str, Callable[..., Rule | CollapseRows]] = {
    "caption_groups": CaptionGroups,
    "hall_captions": hall_captions,
    "box_groups": BoxGroups,
    "hall_boxes": hall_boxes,
    "value_groups": ValueGroups,
    "continents": continents,
    "band_groups": BandGroups,
    "income_bands": income_bands,
    "collapse_rows": CollapseRows,
    "ids_from": IdsFrom,
    "random_split": RandomSplit,
    "leave_out_images": leave_out_images,
    "leave_out_labels": lambda labels, why: LeaveOutLabels(frozenset(labels), why),
    "leave_out_unlabelled": LeaveOutUnlabelled,
    "leave_out_visual_genome": lambda file: leave_out_visual_genome(
        read_visual_genome_images(file)
    ),
    "class_mapping": lambda file, name=None: read_class_mapping(file, name=name),
}
"""What makes each rule. Its parameters are the keys of the rule in a config."""

_PARAMETERS: Mapping[str, Any] = {
    "attribute": Name,
    "bounds": Annotated[Listed[float], Field(min_length=1)],
    "by": Literal["id", "file"],
    "column": Name,
    "file": FilePath | None,
    "groups": Terms,
    "ids": Labels,
    "labels": OneOrMore[Label],
    "name": Name | None,
    "names": Annotated[Listed[Label], Field(min_length=1)],
    "neutral": Labels,
    "neutral_means": Literal["nothing", "no group"],
    "parents_and_children": bool,
    "seed": NonNegativeInt,
    "share": Share,
    "scheme": Literal["levels", "quartiles"],
    "size": Literal["all boxes", "at least 600 pixels", "large boxes"],
    "source": str,
    "version": str,
    "why": Name,
}
"""What a parameter of a rule may be, by its name."""


class RuleConfig(Section):
    """A declared choice: the name of its rule, and its parameters as in `equipoise.data`."""

    rule: str

    def made(self, base: Path) -> Any:
        """Return the rule; a file is read relative to `base`.

        Raises
        ------
        InputError
            When parameters contradict each other.
        DataError
            When a file cannot be read.
        """
        rule_options = dict(self)
        if rule_options.get("file") is not None:
            rule_options["file"] = base / rule_options["file"]
        if "size" in rule_options:
            rule_options["size"] = SIZES[rule_options["size"]]
        return _MAKES[rule_options.pop("rule")](**rule_options)

    @model_validator(mode="after")
    def _check_rule(self) -> Self:
        if getattr(self, "file", None) is None:
            self.made(Path())
        return self


def _section(name: str, makes: Callable[..., Any]) -> type[RuleConfig]:
    fields: dict[str, Any] = {
        key: (_PARAMETERS[key], ... if parameter.default is parameter.empty else parameter.default)
        for key, parameter in signature(makes).parameters.items()
    }
    fields["rule"] = (Literal[name], ...)
    if "size" in fields:
        fields["size"] = (_PARAMETERS["size"], ALL_BOXES.name)
    return create_model(name, __base__=RuleConfig, **fields)


RULES: Mapping[str, type[RuleConfig]] = {
    name: _section(name, constructor) for name, constructor in _MAKES.items()
}


def _rule(value: object) -> object:
    if not isinstance(value, Mapping):
        return value
    among("rule", str(value.get("rule")), RULES)
    return RULES[str(value["rule"])].model_validate(dict(value))


CORNERS = ("left", "top", "right", "bottom")
_ONLY: Mapping[str, tuple[str, ...]] = {
    "id": ("table", "format"),
    "levels": ("folder",),
    "files": ("format",),
    "options": ("format",),
    "root": ("table", "format"),
    "path": ("table", "format"),
    "encoding": ("table",),
    "delimiter": ("table",),
}
"""Keys that go with some of the sources only."""


def _paths(value: object) -> object:
    return tuple(map(file_path, value)) if isinstance(value, list | tuple) else file_path(value)


def _files(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(name): _paths(files) for name, files in value.items()}
    return None if value is None else _paths(value)


Files = Annotated[Any, BeforeValidator(_files), PlainSerializer(as_text)]


class CropConfig(Section):
    """The region of each picture that a model sees.

    Attributes
    ----------
    labels : list of str
        Boxes of these labels each become an image of their own.
    margin : float
        Share of a box's width and height that is added on each side, up to the border.
    pixels : float
        Smaller boxes, in square pixels, are left out.
    left, top, right, bottom : str, optional
        Of a table: columns of what to cut out, in whole pixels.
    """

    labels: Labels = ()
    margin: NonNegativeFloat = 0.0
    pixels: NonNegativeFloat = 0.0
    left: Name | None = None
    top: Name | None = None
    right: Name | None = None
    bottom: Name | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the corners: four, or none."""
        return tuple(name for corner in CORNERS if (name := getattr(self, corner)) is not None)

    @property
    def boxes(self) -> CropBoxes:
        """The step that makes crops of boxes."""
        return CropBoxes(frozenset(self.labels), self.margin, self.pixels)

    @model_validator(mode="after")
    def _check_crop(self) -> Self:
        if bool(self.labels) == bool(self.columns) or (
            self.columns and (self.pixels or len({*self.columns}) != len(CORNERS))
        ):
            raise ValueError(
                "expected 'labels' of boxes with 'pixels', or four different columns 'left', "
                "'top', 'right' and 'bottom'; 'margin' goes with both"
            )
        return self


class SampleConfig(Section):
    """Some of the images that take part, of each cell.

    Attributes
    ----------
    n : int
        Images of each cell; all where it has fewer.
    by : list of str
        Columns whose values make the cells; all images are one unless given.
    order : "random" or "first"
        Drawn at random, or the first ones.
    rank : str, optional
        Of the first ones: column of numbers, the smallest first. Names unless given, in which
        digits count as numbers.
    seed : int
        Of the draw.
    """

    n: PositiveInt
    by: Annotated[Names, BeforeValidator(several)] = ()
    order: Literal["random", "first"] = "random"
    rank: Name | None = None
    seed: Seed = 0

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read."""
        return (*self.by, *filter(None, [self.rank]))

    @property
    def step(self) -> Sample:
        """The step that takes them."""
        return Sample(self.n, tuple(self.by), self.order, self.rank, self.seed)

    @model_validator(mode="after")
    def _check_sample(self) -> Self:
        if self.rank is not None and self.order == "random":
            raise ValueError("'rank' goes with 'order: first'")
        if self.seed and self.order == "first":
            raise ValueError("'seed' goes with 'order: random'")
        return self


FormatName = Annotated[str, AfterValidator(lambda name: find_format(name).name)]
"""A format of data sets."""


class DataSetTable(ItemsConfig):
    """A table with one row per image, or a data set in its own format.

    Attributes
    ----------
    format : str, optional
        Of the data set whose file or folder `table` names.
    """

    format: FormatName | None = None

    @model_validator(mode="after")
    def _check_data_set_table(self) -> Self:
        if self.format is not None and find_format(self.format).roles:
            raise ValueError(f"format: {self.format} is read from several files; expected one")
        return self

    def source(self, base: Path, columns: tuple[str, ...]) -> ItemSource:
        """Return the source to read, with paths relative to `base`."""
        source = super().source(base, columns)
        if self.format is None:
            return source
        images = find_format(self.format).load(source.table)
        return replace(source, table=NamedFrame(images.table, images.name))


class PicturesConfig(CsvConfig):
    """The images, and the folder of their files.

    One of `table`, `folder` and `format` says what there is.

    Attributes
    ----------
    table : path or data frame, optional
        One row per image: CSV, Parquet or JSON lines.
    id : str, optional
        Column that names the image: of a table, whose rows have their number unless given, or of
        a format that lets you name it.
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
        Where its annotations are; lists of paths where it has parts, such as train and val.
    options : mapping, optional
        How it is read.
    rules : list
        Declared choices, applied in order.
    crop : mapping, optional
        What is cut out before a model sees it.
    where : mapping
        Column, also one that a rule makes, to the images that take part; all unless given.
    sample : SampleConfig, optional
        How many of these images take part; all unless given.
    """

    table: Table | None = None
    id: Name | None = None
    path: Name | None = None
    root: FilePath | None = None
    folder: FilePath | None = None
    levels: Names = ()
    format: FormatName | None = None
    files: Files = None
    options: Mapping[Name, Any] | None = None
    rules: Listed[Annotated[SerializeAsAny[RuleConfig], BeforeValidator(_rule)]] = ()
    crop: CropConfig | None = None
    where: Filters = Field(default_factory=dict)
    sample: SampleConfig | None = None

    @property
    def split_columns(self) -> tuple[str, ...]:
        """Columns of several values a cell, which are labels and no attributes."""
        return tuple(self.table.split) if isinstance(self.table, TableConfig) else ()

    @property
    def is_plain(self) -> bool:
        """Whether this is a table that is read as it stands."""
        return self.table is not None and not self.rules and self.sample is None

    @property
    def selecting_columns(self) -> tuple[str, ...]:
        """Columns that decide which images take part."""
        return (*self.where, *(self.sample.columns if self.sample else ()))

    def source(self, base: Path, columns: tuple[str, ...]) -> ItemSource:
        """Return the table to read, with paths relative to `base`."""
        where = where_of(self.where)
        return ItemSource(located(self.table, base), self.row_id, columns, where=where, **self.csv)

    @property
    def row_id(self) -> str:
        """Column of a table's ids; the number of the row where none is named."""
        return self.id or ROW_NUMBER

    @model_validator(mode="after")
    def _check_pictures(self) -> Self:
        source = only_one(self, "table", "folder", "format")
        for key in given_keys(self, _ONLY):
            if source not in _ONLY[key]:
                allowed = " or ".join(map(repr, _ONLY[key]))
                raise ValueError(f"{key!r} goes with {allowed}, and {source!r} is given")
        self._check_format()
        self._check_steps()
        return self

    def _check_format(self) -> None:
        if self.format is None:
            return
        chosen = find_format(self.format)
        roles = ", ".join(chosen.roles)
        if self.files is None or isinstance(self.files, Mapping) != bool(roles):
            form = f"a mapping of {roles} to files" if roles else "one file or folder"
            raise ValueError(f"files: {self.format} is read from {form}")
        if chosen.rows and isinstance(self.files, tuple):
            raise ValueError(f"files: {self.format} is read from one file or folder, not several")
        among("files", self.files if roles else (), chosen.roles)
        if self.id is not None and not chosen.takes("id"):
            raise ValueError(f"'id' is given, and {self.format} has ids of its own")
        chosen.check_options(self.options or {})

    def _check_steps(self) -> None:
        chosen = FORMATS.get(self.format or "")
        for place, rule in enumerate(self.rules):
            collapses = chosen is not None and chosen.takes("collapse")
            if rule.rule == "collapse_rows" and (place or not collapses):
                raise ValueError(
                    f"rules[{place}]: collapse_rows is how a format is read; expected it first"
                )
        if [rule.rule for rule in self.rules].count("ids_from") > 1:
            raise ValueError("rules: ids_from is there twice; expected one name for each image")
        if self.crop and self.crop.labels and not (chosen and chosen.boxes):
            raise ValueError(f"crop.labels: no boxes are in {self.format or 'a table'}")
        if self.crop and self.crop.columns and self.table is None:
            raise ValueError("crop.left: columns go with 'table'; name 'labels' of boxes")

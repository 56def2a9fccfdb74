"""The section that says what the pictures of an audit are; see docs/images.md for every key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    PrivateAttr,
    model_validator,
)

from equipoise.audits.config_arrays import located
from equipoise.audits.config_fields import (
    Delimiter,
    Encoding,
    FilePath,
    Labels,
    Name,
    Section,
    Table,
    distinct,
)
from equipoise.audits.config_problems import nearest
from equipoise.audits.pictures.config_rules import CollapseRowsRule, RuleConfig
from equipoise.core.errors import ConfigError, InputError
from equipoise.data import FORMATS, CropBoxes, DataFormat, ItemSource, find_format

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
_OF_READING = (
    "path", "root", "folder", "levels", "format", "files", "options", "rules", "crop", "encoding",
    "delimiter",
)  # fmt: skip


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
    # Which key said what images there are, before `table` was made of them; no key itself.
    _read_from: str | None = PrivateAttr(default=None)

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
        """Whether `missing` goes with the images, also once they were read and made a table."""
        return (self._read_from or self.source_key) in _ONLY["missing"]

    def tabled(self, table: Any, id_: str) -> Self:
        """Return the section of a table that was made of the images, without keys on reading them.

        Parameters
        ----------
        table : NamedFrame
        id_ : str
            Its column that names the image.
        """
        every = type(self).model_fields
        cleared = {key: every[key].get_default() for key in _OF_READING}
        made = self.model_copy(update={**cleared, "table": table, "id": id_, "missing": ()})
        made._read_from = self.source_key
        return made

    def source(self, base: Path, columns: tuple[str, ...]) -> ItemSource:
        """Return the table to read, with paths relative to `base`.

        Raises
        ------
        ConfigError
            When the images are no table, or rules are to be applied before.
        """
        if self.id is None or not self.is_plain:
            raise ConfigError(
                f"the images are a {self.source_key} with {len(self.rules)} rules, which "
                "`equipoise.audits.pictures.known.known` makes a table of"
            )
        return ItemSource(
            located(self.table, base), self.id, columns, self.missing, self.encoding, self.delimiter
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

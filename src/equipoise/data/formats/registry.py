"""Formats of data sets: each is one function in a file of its own, registered under its name.

The signature of the function is the schema. Its one parameter by position is the file or folder;
several are files by role. Parameters by keyword are options, but for `id`, which names the column
of ids, and `collapse`, which the rule `collapse_rows` sets.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from equipoise.core import InputError
from equipoise.data.image_set import ImageSet
from equipoise.data.problems import nearest

_BESIDE = ("id", "collapse")
R = TypeVar("R", bound=Callable[..., ImageSet])


@dataclass(frozen=True)
class RowPictures:
    """Pictures that lie in the rows of Parquet or Arrow files.

    Attributes
    ----------
    image : str
        Column of the pictures.
    id : str or None
        Column of their ids.
    names : callable or None
        Returns the ids of the images by row, where no column has them.
    """

    image: str = "image"
    id: str | None = None
    names: Callable[[], Sequence[str]] | None = None


@dataclass(frozen=True)
class DataFormat:
    """How a data set is read, and where its pictures are.

    Attributes
    ----------
    name : str
        As `format:` names it.
    read : callable
        From paths and options to an `ImageSet`.
    file_column : str
        Column that names the file of each image; the id does where there is none.
    file_names : {"paths", "stems", "addresses"}
        What names a file: its path in the folder, its name without the ending anywhere in the
        folder, or an address whose last part is the path.
    boxes : bool
        Whether the images have boxes.
    rows : callable or None
        Takes the path and the options. Returns `RowPictures` where the pictures lie in rows.
    """

    name: str
    read: Callable[..., ImageSet]
    file_column: str = ""
    file_names: Literal["paths", "stems", "addresses"] = "paths"
    boxes: bool = False
    rows: Callable[..., RowPictures | None] | None = None

    @cached_property
    def _parameters(self) -> Mapping[str, inspect.Parameter]:
        return inspect.signature(self.read, eval_str=True).parameters

    @property
    def roles(self) -> tuple[str, ...]:
        """Names of the files; none where there is one file or folder."""
        names = [n for n, p in self._parameters.items() if p.kind is not p.KEYWORD_ONLY]
        return tuple(names) if len(names) > 1 else ()

    @cached_property
    def options(self) -> type[BaseModel]:
        """The schema of the options."""
        fields: dict[str, Any] = {
            name: (one.annotation, one.default)
            for name, one in self._parameters.items()
            if one.kind is one.KEYWORD_ONLY and name not in _BESIDE
        }
        return create_model(f"{self.name}_options", __config__=ConfigDict(extra="forbid"), **fields)

    def takes(self, name: str) -> bool:
        """Whether the function has a parameter, such as `id` or `collapse`."""
        return name in self._parameters

    def checked(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options as the function takes them.

        Raises
        ------
        InputError
            When there is no such option, or a value is of another type.
        """
        try:
            checked = self.options.model_validate(dict(options))
        except ValidationError as error:
            first = error.errors()[0]
            place, allowed = ".".join(map(str, first["loc"])), [*self.options.model_fields]
            raise InputError(
                f"options.{place} of {self.name}: {first['msg']}. Allowed options: {allowed}"
            ) from None
        return {name: getattr(checked, name) for name in options}

    def load(self, files: Mapping[str, Path] | Path, **options: Any) -> ImageSet:
        """Read the files: a path alone, or paths by role."""
        given = files if isinstance(files, Mapping) else None
        return self.read(files, **options) if given is None else self.read(**given, **options)


FORMATS: dict[str, DataFormat] = {}
"""Every registered format by name."""


def data_format(
    name: str,
    *,
    file_column: str = "",
    file_names: Literal["paths", "stems", "addresses"] = "paths",
    boxes: bool = False,
    rows: Callable[..., RowPictures | None] | None = None,
) -> Callable[[R], R]:
    """Register a function as the reader of a format; see `DataFormat` for the parameters.

    Raises
    ------
    InputError
        When the name is taken.
    """

    def register(read: R) -> R:
        if name in FORMATS:
            raise InputError(f"there is a format {name!r} already; choose another name")
        FORMATS[name] = DataFormat(name, read, file_column, file_names, boxes, rows)
        return read

    return register


def find_format(name: str) -> DataFormat:
    """Return a registered format.

    Raises
    ------
    InputError
        When there is none of that name; it lists what exists.
    """
    if name not in FORMATS:
        near = nearest(name, FORMATS)
        hint = f"; did you mean {near!r}?" if near else ""
        raise InputError(f"there is no format {name!r}; there are {', '.join(FORMATS)}{hint}")
    return FORMATS[name]

"""The kinds of value a configuration is made of."""

from __future__ import annotations

import codecs
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    WrapSerializer,
)


class Section(BaseModel):
    """A part of the configuration: frozen, strictly typed, without unknown keys."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, arbitrary_types_allowed=True
    )


def _label(value: object) -> object:
    """Take a whole number for the text it is written as, so that ages need no quotes."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _group(value: object) -> object:
    return (value,) if isinstance(value, str) else value


def distinct(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Refuse a list that names the same thing twice."""
    repeated = sorted({_shown(value) for value in values if values.count(value) > 1})
    if repeated:
        raise ValueError(f"{', '.join(repeated)} appears more than once")
    return values


def _shown(value: Any) -> str:
    return " × ".join(value) if isinstance(value, tuple) else repr(value)


def _table(value: object) -> object:
    if isinstance(value, Path) or (isinstance(value, str) and value and "\0" not in value):
        return Path(value)
    if (
        hasattr(value, "__arrow_c_stream__")
        or hasattr(value, "__narwhals_dataframe__")
        or hasattr(value, "columns")
    ):
        return value
    raise ValueError("expected the path of a CSV, Parquet or JSON lines file, or a data frame")


def _file(value: object) -> object:
    if isinstance(value, Path) or (isinstance(value, str) and value and "\0" not in value):
        return Path(value)
    raise ValueError("expected the path of a file or folder")


def _table_as_text(value: object) -> str:
    return value.as_posix() if isinstance(value, Path) else "(data frame)"


def _encoding(value: str) -> str:
    try:
        return codecs.lookup(value).name
    except (LookupError, ValueError):
        raise ValueError("expected an encoding such as 'utf-8', 'latin-1' or 'cp1252'") from None


def _delimiter(value: str) -> str:
    if len(value) != 1 or not value.isascii() or value in '"\r\n\0':
        raise ValueError("expected one character such as ',', ';' or \"\\t\"")
    return value


Name = Annotated[str, Field(min_length=1)]
"""Name of a column or model."""

Label = Annotated[str, BeforeValidator(_label)]
"""Text of a cell; whole numbers may be written without quotes."""

Labels = Annotated[tuple[Label, ...], Field(strict=False), AfterValidator(distinct)]
"""Texts of cells, without repetition."""

Group = Annotated[
    tuple[Name, ...],
    Field(strict=False, min_length=1),
    BeforeValidator(_group),
    AfterValidator(distinct),
]
"""One attribute, or the intersection of several."""

Table = Annotated[Any, BeforeValidator(_table), PlainSerializer(_table_as_text)]
"""A file, relative to the configuration, or a data frame."""

FilePath = Annotated[Path, BeforeValidator(_file), PlainSerializer(Path.as_posix)]
"""A file or folder, relative to the configuration."""

Encoding = Annotated[str, AfterValidator(_encoding)]
Delimiter = Annotated[str, AfterValidator(_delimiter)]
Share = Annotated[float, Field(ge=0, le=1)]


def one_state_each(missing: Labels, unknown: Labels, refused: Labels) -> None:
    """Refuse a text that stands for two states of a prediction or an answer."""
    texts = [*missing, *unknown, *refused]
    twice = sorted({text for text in texts if texts.count(text) > 1})
    if twice:
        raise ValueError(
            f"{', '.join(map(repr, twice))} is listed under more than one of 'missing', "
            "'unknown' and 'refused'"
        )


class NoOptions(Section):
    """A metric that takes no options."""


def _switch(value: object) -> object:
    """Read `true` or nothing as the defaults, and `false` as off."""
    return {} if value is None or value is True else None if value is False else value


def _switched(value: object, dump: Any) -> object:
    return False if value is None else dump(value)


Options = TypeVar("Options", bound=Section)
Switch = Annotated[Options | None, BeforeValidator(_switch), WrapSerializer(_switched)]
"""Options of a metric, or None when it is switched off (`false` in the configuration)."""

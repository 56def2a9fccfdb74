"""Kinds of value that a configuration is made of, files of items and arrays, and models to run."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    WrapSerializer,
    model_validator,
)

from equipoise.audits.config_yaml import nearest
from equipoise.core.errors import InputError
from equipoise.data import TEMPLATES, ArraySource, ItemSource


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


def file_as_text(value: object) -> str | None:
    """Return how a resolved configuration names a file, or what is in memory."""
    if value is None or isinstance(value, str):
        return value
    return value.as_posix() if isinstance(value, Path) else "(array)"


class ItemsConfig(Section):
    """A table with one row per item.

    Attributes
    ----------
    table : path or data frame
        CSV, Parquet or JSON lines.
    id : str
        Column that names the item.
    missing : list of str
        Cell texts that mean "missing".
    encoding, delimiter : str
        Of a CSV.
    """

    table: Table
    id: Name
    missing: Labels = ("",)
    encoding: Encoding = "utf-8"
    delimiter: Delimiter = ","

    def source(self, base: Path, columns: tuple[str, ...]) -> ItemSource:
        """Return what to read, with paths relative to `base`."""
        return ItemSource(
            table=located(self.table, base),
            id=self.id,
            columns=columns,
            missing=self.missing,
            encoding=self.encoding,
            delimiter=self.delimiter,
        )


class ArrayConfig(Section):
    """A matrix with one row per item.

    Attributes
    ----------
    file : path, array or data frame
        .npy, .npz, .safetensors, .parquet or .csv.
    array : str, optional
        Name of the array in an .npz or .safetensors.
    ids : str, optional
        Array of ids in the same .npz or .safetensors, or a file of ids; rows follow the table of
        items where neither this nor `id` is given.
    id : str, optional
        Column of the ids in a Parquet or CSV.
    column : str, optional
        Column whose cells are vectors.
    columns : list of str or mapping, optional
        Columns to use; a mapping gives them names.
    names : list of str
        Names of all columns of an array without names.
    missing : list of str
        Texts that mean "missing" in a CSV.
    encoding, delimiter : str
        Of a CSV.
    """

    file: Annotated[Any, PlainSerializer(file_as_text)]
    array: Name | None = None
    ids: Annotated[Any, PlainSerializer(file_as_text)] = None
    id: Name | None = None
    column: Name | None = None
    columns: Mapping[str, Name] | Annotated[tuple[Name, ...], Field(strict=False)] | None = None
    names: Annotated[tuple[Name, ...], Field(strict=False)] = ()
    missing: Labels = ("",)
    encoding: Encoding = "utf-8"
    delimiter: Delimiter = ","

    @model_validator(mode="after")
    def _consistent(self) -> ArrayConfig:
        try:
            self.source(Path())
        except InputError as error:
            raise ValueError(str(error)) from None
        return self

    def source(self, base: Path) -> ArraySource:
        """Return what to read, with paths relative to `base`."""
        return ArraySource(
            file=located(self.file, base),
            array=self.array,
            ids=ids_at(self.ids, base),
            id=self.id,
            column=self.column,
            columns=self.columns,
            names=self.names,
            missing=self.missing,
            encoding=self.encoding,
            delimiter=self.delimiter,
        )


class OutsideConfig(Section):
    """A column of external figures: salaries, shares, an index of nations, a hypothesis.

    Attributes
    ----------
    table : path or data frame
        CSV or Parquet.
    subject : str
        Column with the names of targets or regions.
    value : str
        Column of numbers.
    missing : list of str
        Cell texts that mean "missing".
    encoding, delimiter : str
        Of a CSV.
    """

    table: Table
    subject: Name
    value: Name
    missing: Labels = ("",)
    encoding: Encoding = "utf-8"
    delimiter: Delimiter = ","

    def source(self, base: Path) -> ArraySource:
        """Return what to read, with paths relative to `base`."""
        return ArraySource(
            file=located(self.table, base),
            id=self.subject,
            columns=(self.value,),
            missing=self.missing,
            encoding=self.encoding,
            delimiter=self.delimiter,
        )


def ids_at(given: Any, base: Path) -> Any:
    """Return a file of ids, which has an ending, relative to `base`; an array's name as it is."""
    return base / given if isinstance(given, str) and Path(given).suffix else given


def located(table: Any, base: Path) -> Any:
    """Return a file relative to `base`; arrays and data frames as they are."""
    return base / table if isinstance(table, str | Path) else table


def _device(value: str) -> str:
    if re.fullmatch(r"auto|cpu|cuda(:\d+)?", value):
        return value
    raise ValueError("expected auto, cpu, cuda or cuda:1")


def _templates(value: object) -> str | tuple[str, ...]:
    """Take the name of a list of templates, or templates."""
    if isinstance(value, str) and "{}" not in value:
        if value in TEMPLATES:
            return value
        raise ValueError(
            f"no list of templates is called {value!r}. Allowed: {', '.join(TEMPLATES)}, or texts "
            f"with one '{{}}' each{nearest(value, TEMPLATES)}"
        )
    given = [value] if isinstance(value, str) else value
    if not isinstance(given, list | tuple) or not given:
        raise ValueError("expected the name of a list of templates, or a list of texts")
    for one in given:
        if not isinstance(one, str) or not one.count("{}") == one.count("{") == one.count("}") == 1:
            raise ValueError(
                f"expected texts with one '{{}}' each, where the word goes, not {one!r}"
            )
    return distinct(tuple(given))


Device = Annotated[str, AfterValidator(_device)]
Dtype = Literal["auto", "float32", "bfloat16", "float16"]


def _model(value: object) -> object:
    """Take a name, `prefix:rest`, or a loaded model, which says what it is."""
    if hasattr(value, "info"):
        return value
    return model_name(value, "hf:openai/clip-vit-base-patch32", makes_images=False)


def model_name(value: object, example: str, *, makes_images: bool) -> str:
    """Return the name of a model whose prefix is known.

    Raises
    ------
    ValueError
        When it has another prefix or none.
    """
    from equipoise.models.registry import adapters

    known = [*adapters(makes_images=makes_images)]
    prefix, _, rest = value.partition(":") if isinstance(value, str) else ("", "", "")
    if isinstance(value, str) and rest and prefix in known and "\0" not in rest:
        return value
    raise ValueError(
        f"expected a name such as {example!r}, with one of "
        f"{', '.join(f'{one}:' for one in known)}{nearest(prefix, known) if prefix else ''}"
    )


def _model_as_text(value: Any) -> Any:
    return value if value is None or isinstance(value, str) else f"(loaded) {_called(value)}"


def _called(model: Any) -> str:
    return model if isinstance(model, str) else str(model.info.name)


Model = Annotated[Any, BeforeValidator(_model), PlainSerializer(_model_as_text)]
"""Name of a model, or a model."""


def _templates_as_json(value: str | tuple[str, ...]) -> str | list[str]:
    return value if isinstance(value, str) else [*value]


Templates = Annotated[
    str | tuple[str, ...], PlainValidator(_templates), PlainSerializer(_templates_as_json)
]
"""Name of a list of templates, or templates: texts in which "{}" stands for the name."""

AS_IT_IS: tuple[str, ...] = ("{}",)
"""The one template that leaves a text as it is."""


class ExtractionConfig(Section):
    """How models are run, and where what they say is kept.

    Attributes
    ----------
    store : path
        Folder of the evidence; a relative one lies beside the configuration.
    engine : str
        `native`, or `ray` for the cluster that RAY_ADDRESS names.
    part : int, optional
        Images in a file of evidence: what is done again when a run is stopped. 256 unless given,
        and 32 of answers to questions.
    max_failures : float
        Largest share of images that cannot be read or on which the model fails.
    device, dtype, backend : str
        For every model that does not say otherwise itself.
    """

    store: Annotated[Path, Field(strict=False)] = Path("evidence")
    engine: Literal["native", "ray"] = "native"
    part: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    max_failures: Share = 0.05
    device: Device = "auto"
    dtype: Dtype = "auto"
    backend: Name = "auto"


class RunConfig(Section):
    """A model to run.

    Attributes
    ----------
    model : str or model, optional
        `hf:`, `open_clip:`, `timm:`, `onnx:`, `python:` or `equipoise:`, and what to load; a
        folder or file that lies beside the configuration may be given relative to it. From Python
        also a loaded model.
    revision : str, optional
        Branch, tag or commit of a hub's repository.
    device, dtype, backend : str, optional
        Those of `extraction` unless given.
    allow_pickle, trust_remote_code : bool
        Whether files may be read that can run code. Only for those you trust.
    """

    model: Model | None = None
    revision: Name | None = None
    device: Device | None = None
    dtype: Dtype | None = None
    backend: Name | None = None
    allow_pickle: bool = False
    trust_remote_code: bool = False

    @model_validator(mode="after")
    def _options_are_of_a_model(self) -> RunConfig:
        self.needs_model(RunConfig.model_fields)
        return self

    @property
    def called(self) -> str:
        """How messages call the model: as it is named, or as a loaded one says it is."""
        return _called(self.model)

    def needs_model(self, keys: Iterable[str]) -> None:
        """Refuse keys about a model to run where none is given.

        Parameters
        ----------
        keys : iterable of str
            A key that has its default value counts as not given, for a resolved configuration
            reads back as the same.

        Raises
        ------
        ValueError
            Naming the first of them.
        """
        every = type(self).model_fields
        given = [
            key
            for key in keys
            if getattr(self, key) != every[key].get_default(call_default_factory=True)
        ]
        if self.model is None and given:
            raise ValueError(f"{given[0]!r} is about a model to run, and no 'model' is given")

    def excludes(self, others: Mapping[str, Any]) -> None:
        """Refuse a section that names a model to run and files of what one said.

        Parameters
        ----------
        others : mapping of str to object
            Keys that stand in place of `model`, with what was given.

        Raises
        ------
        ValueError
            Naming both keys.
        """
        both = [key for key, value in others.items() if value]
        if self.model is not None and both:
            raise ValueError(
                f"'model' and {both[0]!r} are given; expected 'model' to run it, or {both[0]!r} "
                "to read what it said before"
            )


class TextsConfig(ItemsConfig):
    """A table of texts that a model can embed.

    Attributes
    ----------
    text : str, optional
        Column of the text; the id unless given.
    templates : str or list of str, optional
        Name of a list of templates, or templates such as "a photo of a {}.": the unit vectors of
        one text in all of them are averaged. The text as it is unless given.
    """

    text: Name | None = None
    templates: Templates = AS_IT_IS

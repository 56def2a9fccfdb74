"""Types of the keys of a config: texts, files of items and arrays, and models to run."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    NonNegativeFloat,
    PlainSerializer,
    PlainValidator,
    PositiveInt,
    ValidationError,
    ValidationInfo,
    WrapSerializer,
    model_validator,
)
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from equipoise.config.files import keys, nearest
from equipoise.core import InputError
from equipoise.data import TEMPLATES, ArraySource, ItemSource, read_class_mapping
from equipoise.data.files import is_address, read_text, split_lines
from equipoise.data.labels import Where
from equipoise.data.results import reader_of
from equipoise.data.table_steps import (
    Bands,
    Count,
    DecimalCommas,
    FromName,
    Missing,
    Split,
    TableStep,
    Values,
)
from equipoise.data.tables import FILE, TableRecipe
from equipoise.models.generators import Sampling
from equipoise.models.service import ImageParameter, Service
from equipoise.models.spending import Prices

if TYPE_CHECKING:
    from equipoise.evidence.working import RunOptions
    from equipoise.models.protocols import Model as AnyModel


_MANY_KEYS = 9
"""How many keys are too many for a message about one value."""


class Section(BaseModel):
    """A part of the configuration: frozen, strictly typed, without unknown keys."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, arbitrary_types_allowed=True
    )

    @model_validator(mode="wrap")
    @classmethod
    def _known_keys(
        cls, values: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo
    ) -> Self:
        if isinstance(values, BaseModel):
            return handler(values)
        values = cls._as_mapping(values)
        if not isinstance(values, Mapping):
            names = keys(cls)
            listed = f" of {', '.join(names)}" if len(names) < _MANY_KEYS else ""
            raise PydanticCustomError("section_type", f"a mapping{listed}")
        known, problems = cls._checked_keys(values, info)
        if not problems:
            return handler(known)
        errors = [InitErrorDetails(type=problem, input=values) for problem in problems]
        try:
            handler(known)
        except ValidationError as error:
            errors += [
                _as_init(details) for details in error.errors(include_url=False)
                if not _is_misspelt(details, problems)
            ]  # fmt: skip
        raise ValidationError.from_exception_data(cls.__name__, errors)

    @classmethod
    def _as_mapping(cls, values: Any) -> Any:
        """Return a short form of the section as a mapping."""
        return values

    @classmethod
    def _checked_keys(
        cls,
        values: Mapping[Any, Any],
        info: ValidationInfo,  # noqa: ARG003 - sections of other keys read it
    ) -> tuple[Mapping[Any, Any], list[PydanticCustomError]]:
        """Return the values of a section, and an error for each key that it doesn't take."""
        known, problems, allowed = {}, [], keys(cls)
        for key, value in values.items():
            if key in cls.model_fields:
                known[key] = value
                continue
            near = nearest(key, allowed)
            message = f"unknown key. Allowed here: {', '.join(allowed) or 'nothing'}{near}"
            problems.append(PydanticCustomError("unknown_key", message, {"key": str(key)}))
        return known, problems


def _as_init(details: ErrorDetails) -> InitErrorDetails:
    """Return an error of a part of a section, to raise it with errors of the section."""
    problem = PydanticCustomError(details["type"], details["msg"], details.get("ctx"))
    return InitErrorDetails(type=problem, loc=details["loc"], input=details["input"])


def _is_misspelt(details: ErrorDetails, problems: Iterable[PydanticCustomError]) -> bool:
    """Whether a key is missing because an unknown key is its misspelt name."""
    unknown_keys = [(problem.context or {}).get("key") for problem in problems]
    missing = [str(details["loc"][0])]
    return details["type"] == "missing" and any(nearest(key, missing) for key in unknown_keys)


def _label(value: object) -> object:
    """Take a whole number for the text it is written as, so that ages need no quotes."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def several(value: object) -> object:
    """Take a single value for a list of it."""
    single = isinstance(value, str | int | float) and not isinstance(value, bool)
    return (value,) if single else value


def matching(pattern: str, expected: str) -> AfterValidator:
    """Return the check of a text against a pattern, which the error puts in words."""

    def check(value: str) -> str:
        if re.search(pattern, value) is None:
            raise ValueError(f"expected {expected}")
        return value

    return AfterValidator(check)


Value = TypeVar("Value")


def distinct(values: tuple[Value, ...]) -> tuple[Value, ...]:
    """Refuse a list that names the same thing twice."""
    for value in values:
        if values.count(value) > 1:
            label = " × ".join(value) if isinstance(value, tuple) else repr(value)
            raise ValueError(f"{label} appears more than once")
    return values


def by_name(names: Iterable[str], entry: Callable[[str], Value]) -> dict[str, Value]:
    """Return an entry for each name of a list; refuse lists as names, and repetition."""
    listed = tuple(names)
    if any(isinstance(name, list | tuple | Mapping) for name in listed):
        raise ValueError("expected a list of texts")
    return {name: entry(name) for name in distinct(listed)}


def keys_of(value: Section | Mapping[str, str]) -> set[str]:
    """Return the keys of a mapping, or the keys set in a section; none of other values."""
    return {*(value if isinstance(value, Mapping) else getattr(value, "model_fields_set", ()))}


def file_path(value: object) -> Path:
    """Take a text for a path."""
    if isinstance(value, Path) or (isinstance(value, str) and value and "\0" not in value):
        return Path(value)
    raise ValueError("expected the path of a file or folder")


def _file_or_frame(value: object) -> object:
    frame = hasattr(value, "__arrow_c_stream__") or hasattr(value, "columns")
    address = isinstance(value, str) and is_address(value)
    return value if frame or address else file_path(value)


def _table(value: object) -> object:
    if isinstance(value, Mapping):
        return TableConfig.model_validate(value)
    return value if isinstance(value, TableConfig) else _file_or_frame(value)


def _array_or_table(value: object) -> object:
    return _table(value) if isinstance(value, Mapping) else value


def as_text(value: Any) -> Any:
    """Return how a resolved config names a file, several, or data in memory."""
    if isinstance(value, TableConfig):
        return value.model_dump(exclude_unset=True)
    if isinstance(value, Mapping):
        return {name: as_text(entry) for name, entry in value.items()}
    if isinstance(value, tuple):
        return [*map(as_text, value)]
    if isinstance(value, Path):
        return value.as_posix()
    return value if value is None or isinstance(value, str) else "(in memory)"


def _encoding(value: str) -> str:
    try:
        return codecs.lookup(value).name
    except (LookupError, ValueError):
        raise ValueError("expected an encoding such as 'utf-8', 'latin-1' or 'cp1252'") from None


Item = TypeVar("Item")

Listed = Annotated[tuple[Item, ...], Field(strict=False)]
"""A list."""
Distinct = Annotated[Listed[Item], AfterValidator(distinct)]
"""A list without repetition."""

Some = Annotated[Distinct[Item], Field(min_length=1)]
"""A list of one or more, without repetition."""

OneOrMore = Annotated[Some[Item], BeforeValidator(several)]
"""One item, or a list of them without repetition."""


def one_or_list(values: tuple[str, ...]) -> str | list[str]:
    """Return a single value unchanged, several as a list."""
    return values[0] if len(values) == 1 else [*values]


def class_map(turned: Literal["by_label", "by_class"]) -> BeforeValidator:
    """Return the check that reads a mapping of classes from a file, if a path is given.

    The file has a row for each pair of a label of the data and a class of the model, in the
    columns `label` and `class`. Its path is relative to the configuration.

    Parameters
    ----------
    turned : str
        Which of both the keys of the mapping are.
    """

    def read(value: object, info: ValidationInfo) -> object:
        if not isinstance(value, str | Path):
            return value
        path = (info.context or {}).get("base", Path()) / value
        class_mapping: Mapping[str, tuple[str, ...]] = getattr(read_class_mapping(path), turned)
        return {key: texts[0] if len(texts) == 1 else texts for key, texts in class_mapping.items()}

    return BeforeValidator(read)


Name = Annotated[str, Field(min_length=1)]
"""Name of a column or model."""

Label = Annotated[str, BeforeValidator(_label)]
"""Text of a cell; whole numbers may be written without quotes."""

Text = Annotated[Label, Field(min_length=1)]
"""A label that is not empty."""

Labels = Distinct[Label]
Names = Distinct[Name]

Group = OneOrMore[Name]
"""One attribute, or the intersection of several."""

Models = Annotated[Mapping[Text, Item], Field(min_length=1)]
"""Models by name."""

TableFile = Annotated[Any, BeforeValidator(_file_or_frame), PlainSerializer(as_text)]
"""A file, relative to the configuration, an address such as s3://…, or a data frame."""

Table = Annotated[Any, BeforeValidator(_table), PlainSerializer(as_text)]
"""The same, or a mapping of a file and its steps; see `TableConfig`."""

ArrayOrTable = Annotated[Any, BeforeValidator(_array_or_table), PlainSerializer(as_text)]
"""A file of an array or table, an array, a data frame, or a mapping of a file and its steps."""

FilePath = Annotated[Path, BeforeValidator(file_path), PlainSerializer(Path.as_posix)]
"""A file or folder, relative to the configuration."""

Encoding = Annotated[str, AfterValidator(_encoding)]
Delimiter = Annotated[str, matching(r"^[\t -!#-~]$", "one character, such as a semicolon")]
Share = Annotated[float, Field(ge=0, le=1)]
Level = Annotated[float, Field(gt=0, lt=1)]
"""A share of neither nothing nor all."""
Seed = Annotated[int, Field(ge=0, lt=2**63)]
ThresholdRule = Literal["balanced_accuracy", "prevalence", "cost"]
"""Rules that choose a threshold of scores."""


def columns_of(groups: Iterable[Sequence[str]], *other_columns: str | None) -> tuple[str, ...]:
    """Return the columns that groups are made of, and others that are named, each once."""
    named = (name for group in groups for name in group)
    return tuple(dict.fromkeys(filter(None, (*named, *other_columns))))


def levels_of(names: Iterable[str]) -> tuple[str, ...]:
    """Return the values of attributes in names of groups, each once."""
    return tuple(dict.fromkeys(level for name in names for level in (name, *name.split(", "))))


def one_state_each(missing: Labels, unknown: Labels, refused: Labels) -> None:
    """Refuse a text that stands for two states of a prediction or an answer."""
    texts = [*missing, *unknown, *refused]
    repeated = sorted({text for text in texts if texts.count(text) > 1})
    if repeated:
        raise ValueError(
            f"{', '.join(map(repr, repeated))} is listed under more than one of 'missing', "
            "'unknown' and 'refused'"
        )


def given_keys(section: Section, keys: Iterable[str]) -> list[str]:
    """Return the keys that have another value than their default."""
    fields = type(section).model_fields
    defaults = {key: fields[key].get_default(call_default_factory=True) for key in keys}
    # Tables and arrays, whose default is None, compare cell by cell.
    return [
        key
        for key, default in defaults.items()
        if (value := getattr(section, key)) is not None and (default is None or value != default)
    ]


def only_one(section: Section, *keys: str) -> str:
    """Return the only key that is set; refuse none, and several."""
    present = given_keys(section, keys)
    if len(present) != 1:
        raise ValueError(
            f"expected one of {', '.join(map(repr, keys))}, not {len(present)} of them"
        )
    return present[0]


def among(key: str, values: Iterable[str] | None, allowed: Iterable[str]) -> None:
    """Refuse values that aren't allowed; None passes.

    Raises
    ------
    ValueError
        With the key, the value, what is allowed, and the nearest of it.
    """
    allowed_values = [*allowed]
    for value in [values] if isinstance(values, str) else values or ():
        if value not in allowed_values:
            raise ValueError(
                f"{key}: given {value!r}. Allowed: {', '.join(allowed_values) or 'nothing'}"
                f"{nearest(value, allowed_values)}"
            )


class NoOptions(Section):
    """A metric that takes no options."""


ON = NoOptions()
"""A metric without options that is on."""


def _switch(value: object) -> object:
    """Read `true` or nothing as the defaults, and `false` as off."""
    return {} if value is None or value is True else None if value is False else value


def _switched(value: object, dump: Any) -> object:
    return False if value is None else dump(value)


Options = TypeVar("Options", bound=Section)
Switch = Annotated[Options | None, BeforeValidator(_switch), WrapSerializer(_switched)]
"""Options of a metric, or None when it is switched off (`false` in the configuration)."""

Plain = Switch[NoOptions]
"""A metric without options, on or off."""


def _patterns(value: object) -> object:
    """Take a pattern alone for that of the files in a folder."""
    return value if isinstance(value, Mapping) else {FILE: value}


Pattern = Annotated[
    Mapping[Name, OneOrMore[Name]], BeforeValidator(_patterns)
]  # fmt: skip
"""Column of names to its patterns."""


def _counts(value: object) -> object:
    """Take a name alone for a column of counts of its rows."""
    return {value: {}} if isinstance(value, str) else value


def _reader(value: str) -> str:
    try:
        reader_of(value)
    except InputError as error:
        raise ValueError(str(error)) from None
    return value


class TableConfig(Section):
    """A table as a tool wrote it, and the steps from it to the columns of an audit.

    Steps are taken in the order of these keys. Each is about columns that the table has, or that
    an earlier step makes.

    Attributes
    ----------
    file : path, address or data frame
        In place of it, `folder`.
    folder : path, optional
        The table is the list of its files, in the column `file`.
    results : str, optional
        The tool that wrote the file, or the files of a folder named as `file`; see
        docs/from-other-tools.md.
    records : str, optional
        Path of the rows in a JSON file, such as "data.items".
    header : list of str
        Names of the columns of a list without a header.
    decimal : "." or ","
        Decimal mark of numbers.
    from_name : mapping
        Column of names to a pattern such as "{age}_{gender}_{rest}", or a list of them; a pattern
        alone is for the files of a folder.
    missing : mapping
        Column to its texts that mean "missing".
    values : mapping
        Column to its codes, and what each means.
    bands : mapping
        Column of numbers to where bands of them begin, as a column "age band".
    split : mapping
        Column of several values a cell to what is between them; "[]" for lists.
    count : str or mapping
        Column of how many rows a row stands for; or several, and the cells of their rows.
    """

    file: TableFile | None = None
    folder: FilePath | None = None
    results: Annotated[Name, AfterValidator(_reader)] | None = None
    records: Name | None = None
    header: Names = ()
    decimal: Literal[".", ","] = "."
    from_name: Pattern = {}
    missing: Mapping[Name, Labels] = {}
    values: Mapping[Name, Mapping[Label, Label | None]] = {}
    bands: Mapping[Name, Listed[float]] = {}
    split: Mapping[Name, Name] = {}
    count: Annotated[Mapping[Name, Mapping[Name, Label]], BeforeValidator(_counts)] = {}

    @property
    def steps(self) -> tuple[TableStep, ...]:
        """The steps, in their order."""
        return (
            *([DecimalCommas()] if self.decimal == "," else []),
            *(FromName(column, patterns) for column, patterns in self.from_name.items()),
            *([Missing(self.missing)] if self.missing else []),
            *([Values(self.values)] if self.values else []),
            *([Bands(self.bands)] if self.bands else []),
            *(Split(column, separator) for column, separator in self.split.items()),
            *([Count(self.count)] if self.count else []),
        )

    def recipe(self, base: Path) -> TableRecipe:
        """Return the table to read, with paths relative to `base`."""
        table = located(self.file if self.folder is None else self.folder, base)
        return TableRecipe(
            table, self.records, self.header, self.folder is not None, self.results, self.steps
        )

    def equals(self, other: TableConfig) -> bool:
        """Whether both read the same table in the same way."""
        same = self.file is other.file or isinstance(self.file, str | Path)
        return same and self.model_dump() == other.model_dump()

    @model_validator(mode="after")
    def _check_table(self) -> Self:
        only_one(self, "file", "folder")
        check_steps(self)
        return self


def check_steps(table: TableConfig) -> None:
    """Refuse steps that contradict themselves.

    Raises
    ------
    ValueError
        With the key of the step.
    """
    try:
        _ = table.steps
    except InputError as error:
        raise ValueError(str(error)) from None


def same_table(table: Value, other: Value) -> bool:
    """Whether two sections name the same table."""
    if isinstance(table, TableConfig) and isinstance(other, TableConfig):
        return table.equals(other)
    return table is other or (
        isinstance(table, Path) and isinstance(other, Path) and table == other
    )


class CsvConfig(Section):
    """How a table is read.

    Attributes
    ----------
    missing : list of str
        Cell texts that mean "missing".
    encoding, delimiter : str
        Of a CSV.
    """

    missing: Labels = ("",)
    encoding: Encoding = "utf-8"
    delimiter: Delimiter = ","

    @property
    def csv(self) -> dict[str, Any]:
        """These keys, as sources take them."""
        return {name: getattr(self, name) for name in CsvConfig.model_fields}


class RowsConfig(Section):
    """Rows that take part, by one column.

    Attributes
    ----------
    min, max : float, optional
        Bounds of a number, both allowed values themselves.
    values : list of str
        The texts allowed; any by default. A row must fit all that is named.
    file : path, optional
        Text with an allowed value in each line, such as the subjects that `equipoise mitigate`
        withheld; read where `values` is not given.
    """

    min: float | None = None
    max: float | None = None
    values: Labels = ()
    file: FilePath | None = None

    @model_validator(mode="after")
    def _check_rows(self) -> Self:
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"'min' {self.min} is above 'max' {self.max}")
        return self


def _rows(value: object, info: ValidationInfo) -> object:
    """Take one text, a list of them, or the lines of a file for the values allowed."""
    if not isinstance(value, Mapping | RowsConfig):
        return {"values": several(value)}
    if isinstance(value, RowsConfig) or value.get("file") is None or value.get("values"):
        return value
    path = (info.context or {}).get("base", Path()) / file_path(value["file"])
    text, _ = read_text(path, ".txt", "an allowed value in every line")
    lines = [*dict.fromkeys(filter(None, map(str.strip, split_lines(text))))]
    return {**value, "values": lines}


Filters = Mapping[Name, Annotated[RowsConfig, BeforeValidator(_rows)]]
"""Column to the rows that take part."""


def where_of(filters: Filters) -> dict[str, Where]:
    """Return filters as tables take them."""
    return {
        name: Where(rows_config.values, rows_config.min, rows_config.max)
        for name, rows_config in filters.items()
    }


class ItemsConfig(CsvConfig):
    """A table with one row per item.

    Attributes
    ----------
    table : path or data frame
        CSV, Parquet or JSON lines.
    id : str
        Column that names the item.
    where : mapping
        Column to the rows that take part; all unless given.
    """

    table: Table
    id: Name
    where: Filters = {}

    def source(self, base: Path, columns: tuple[str, ...]) -> ItemSource:
        """Return the source to read, with paths relative to `base`."""
        where = where_of(self.where)
        return ItemSource(located(self.table, base), self.id, columns, where=where, **self.csv)


class ArrayConfig(CsvConfig):
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
    """

    file: ArrayOrTable
    array: Name | None = None
    ids: Annotated[Any, PlainSerializer(as_text)] = None
    id: Name | None = None
    column: Name | None = None
    columns: Mapping[str, Name] | Listed[Name] | None = None
    names: Listed[Name] = ()

    @model_validator(mode="after")
    def _check_array(self) -> Self:
        self.source(Path())
        return self

    def source(self, base: Path) -> ArraySource:
        """Return the source to read, with paths relative to `base`."""
        keys = {name: getattr(self, name) for name in ArrayConfig.model_fields}
        places = {"file": located(self.file, base), "ids": ids_at(self.ids, base)}
        return ArraySource(**keys | places)


class OutsideConfig(CsvConfig):
    """A column of external figures: salaries, shares, an index of nations, a hypothesis.

    Attributes
    ----------
    table : path or data frame
        CSV or Parquet.
    subject : str
        Column with the names of targets or regions.
    value : str
        Column of numbers.
    """

    table: Table
    subject: Name
    value: Name

    def source(self, base: Path) -> ArraySource:
        """Return the source to read, with paths relative to `base`."""
        table = located(self.table, base)
        return ArraySource(table, id=self.subject, columns=(self.value,), **self.csv)


def ids_at(ids: Value, base: Path) -> Value | Path:
    """Return the path of a file of ids under `base`; an array's name unchanged."""
    return base / ids if isinstance(ids, str) and Path(ids).suffix else ids


def located(table: Value, base: Path) -> Value | Path | TableRecipe:
    """Return a file relative to `base`; addresses, arrays and data frames as they are."""
    if isinstance(table, TableConfig):
        return table.recipe(base)
    if isinstance(table, str) and is_address(table):
        return table
    return base / table if isinstance(table, str | Path) else table


def _templates(value: object) -> str | tuple[str, ...]:
    """Take the name of a list of templates, or templates."""
    if isinstance(value, str) and value in TEMPLATES:
        return value
    texts = value if isinstance(value, list | tuple) else [value]
    fits = (
        isinstance(text, str) and text.count("{}") == text.count("{") == text.count("}") == 1
        for text in texts
    )
    if not texts or not all(fits):
        raise ValueError(
            f"expected a list of templates ({', '.join(TEMPLATES)}), or texts with one '{{}}' "
            f"each, where the word goes{nearest(value, TEMPLATES)}"
        )
    return distinct(tuple(texts))


Device = Annotated[str, matching(r"^(auto|cpu|cuda(:\d+)?)$", "auto, cpu, cuda or cuda:1")]
Dtype = Literal["auto", "float32", "bfloat16", "float16"]


LOADED = "(loaded) "
"""What precedes the name of a loaded model in the config of a run, which is read and not run."""


def model_check(example: str, *, makes_images: bool) -> Callable[[object], object]:
    """Return the check of a key that takes a model's name, or a model.

    Parameters
    ----------
    example : str
        A name, for the error.
    makes_images : bool
        Whether the model makes images, or is audited.
    """

    def check(value: object) -> object:
        from equipoise.models.modules import as_model
        from equipoise.models.registry import adapters, with_prefix

        value = as_model(value)
        if hasattr(value, "info") and (not makes_images or hasattr(value, "generate")):
            return value
        if isinstance(value, str) and value.startswith(LOADED):
            return value
        by_prefix = adapters(makes_images=makes_images)
        prefix, _, remainder = value.partition(":") if isinstance(value, str) else ("", "", "")
        if not remainder or prefix not in by_prefix or "\0" in remainder:
            prefixes = sorted(by_prefix)
            hint = nearest(prefix, prefixes)
            # A path or a hub id alone isn't a prefix with a typo.
            if prefix == value and "/" in prefix.replace("\\", "/"):
                hint = f"; did you mean {with_prefix(prefix, makes_images=makes_images)!r}?"
            raise ValueError(
                f"expected a name such as {example!r}, with one of "
                f"{', '.join(f'{name}:' for name in prefixes)}{by_prefix.left_out}{hint}"
            )
        return value

    return check


def model_as_text(value: Any) -> Any:
    """Return how a resolved config names a model."""
    return value if value is None or isinstance(value, str) else f"{LOADED}{called(value)}"


def called(model: str | AnyModel) -> str:
    """Return the name of a model, as written or from the loaded model."""
    return model if isinstance(model, str) else str(model.info.name)


Model = Annotated[
    Any,
    BeforeValidator(model_check("hf:openai/clip-vit-base-patch32", makes_images=False)),
    PlainSerializer(model_as_text),
]
"""Name of a model, or a model."""

Templates = Annotated[
    str | tuple[str, ...],
    PlainValidator(_templates),
    PlainSerializer(lambda value: value if isinstance(value, str) else [*value]),
]
"""Name of a list of templates, or templates: texts in which "{}" stands for the name."""

AS_IT_IS: tuple[str, ...] = ("{}",)
"""The one template that leaves a text as it is."""


class ExtractionConfig(Section):
    """Settings of model runs, and the folder of their outputs.

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


class LoadConfig(Section):
    """How a model is loaded.

    Attributes
    ----------
    model : str or model, optional
        Its name, or from Python a loaded model.
    revision : str, optional
        Branch, tag or commit of a hub's repository.
    device, dtype : str, optional
        Those of `extraction` unless given.
    allow_pickle, trust_remote_code : bool
        Whether files may be read that can run code. Only for those you trust.
    """

    model: Any = None
    revision: Name | None = None
    device: Device | None = None
    dtype: Dtype | None = None
    allow_pickle: bool = False
    trust_remote_code: bool = False

    @property
    def called(self) -> str:
        """Name of the model in messages, as written or from the loaded model."""
        return called(self.model)

    def located(self, base: Path) -> Any:
        """Return the model, or its name with paths relative to the config resolved."""
        from equipoise.models.registry import located_name

        return located_name(self.model, base) if isinstance(self.model, str) else self.model

    def options(self, extraction: ExtractionConfig) -> RunOptions:
        """Return how the model is loaded: as it says, else as the section `extraction` says."""
        from equipoise.evidence.working import RunOptions

        return RunOptions(
            device=self.device or extraction.device,
            dtype=self.dtype or extraction.dtype,
            revision=self.revision,
            allow_pickle=self.allow_pickle,
            trust_remote_code=self.trust_remote_code,
        )

    def needs_model(self, keys: Iterable[str]) -> None:
        """Refuse keys about a live model in a section without a model.

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
        present = given_keys(self, keys)
        if self.model is None and present:
            raise ValueError(f"{present[0]!r} is about a model to run, and no 'model' is given")


def _variable(name: str) -> str:
    if not name.isidentifier() or not name.isascii():
        raise ValueError("expected the name of an environment variable, and not the key itself")
    return name


_SERVICE = Service()


class PricesConfig(Section):
    """Prices of a served model.

    Attributes
    ----------
    input, output : float
        Of a million tokens of prompts, and of answers.
    image, request : float
        Of a picture, and of a request, beside their tokens.
    """

    input: Annotated[NonNegativeFloat, Field(allow_inf_nan=False)] = 0.0
    output: Annotated[NonNegativeFloat, Field(allow_inf_nan=False)] = 0.0
    image: Annotated[NonNegativeFloat, Field(allow_inf_nan=False)] = 0.0
    request: Annotated[NonNegativeFloat, Field(allow_inf_nan=False)] = 0.0


class ServiceConfig(Section):
    """How a served model is asked.

    Attributes
    ----------
    key : str, optional
        Environment variable that has the interface's key. The key itself stands nowhere.
    allow_hosts : list of str
        Hosts other than this machine that pictures may be sent to.
    longest_side : int
        Pixels; larger pictures are shrunk before they are sent.
    max_tokens : int
        Longest answer; one that is cut there counts as failed.
    temperature : float
    seed : int, optional
        null sends none, for servers that refuse it.
    timeout : float
        Seconds that an answer may take.
    attempts : int
        How often a request is sent before it counts as failed.
    concurrency : int
        Most requests at once; fewer while the server is overloaded.
    image_parameters : list of str
        What is sent with a prompt for an image; servers refuse parameters that they don't have.
    prices : mapping of str to mapping
        Prices of models, by their name on the server.
    budget : float, optional
        Most that the model's requests may cost, with those before that the store has.
    currency : str
        Of prices and budget: a label.
    """

    key: Annotated[str, AfterValidator(_variable)] | None = None
    allow_hosts: Listed[Annotated[str, matching(r"^[A-Za-z0-9.:_-]+$", "the name of a host")]] = ()
    longest_side: PositiveInt = _SERVICE.longest_side
    max_tokens: PositiveInt = _SERVICE.max_tokens
    temperature: NonNegativeFloat = _SERVICE.temperature
    seed: int | None = _SERVICE.seed
    timeout: Annotated[float, Field(gt=0, le=86_400)] = _SERVICE.timeout
    attempts: PositiveInt = _SERVICE.attempts
    concurrency: PositiveInt = _SERVICE.concurrency
    image_parameters: Distinct[ImageParameter] = _SERVICE.image_parameters
    prices: dict[Name, PricesConfig] = Field(default_factory=dict)
    budget: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    currency: Annotated[str, matching(r"^\S{0,12}$", "at most 12 letters without a space")] = ""

    def service(self, model: str) -> Service:
        """Return how a model is asked, by its name on the server."""
        prices = self.prices.get(model)
        return Service(
            **self.model_dump(exclude={"key", "prices"}), key=self.key or "",
            prices=None if prices is None else Prices(**prices.model_dump()),
        )  # fmt: skip


class RunConfig(LoadConfig):
    """A model to run.

    Attributes
    ----------
    model : str or model, optional
        `hf:`, `open_clip:`, `timm:`, `onnx:`, `python:` or `equipoise:`, and what to load; a
        folder or file that lies beside the configuration may be given relative to it; `served:`,
        a URL, `#` and a model behind it. From Python also a loaded model.
    backend : str, optional
        That of `extraction` unless given.
    service : mapping, optional
        How a served model is asked.
    """

    model: Model | None = None
    backend: Name | None = None
    service: ServiceConfig | None = None

    of_run: ClassVar[tuple[str, ...]] = ()
    """Further keys about a model that is run."""
    of_files: ClassVar[tuple[str, ...]] = ()
    """Keys of files of what it said before."""
    needed: ClassVar[tuple[str, ...]] = ()
    """Those of them that a model needs which is not run."""

    @model_validator(mode="after")
    def _check_run(self) -> Self:
        self.needs_model((*RunConfig.model_fields, *self.of_run))
        file_keys = given_keys(self, self.of_files)
        if self.model is not None and file_keys:
            raise ValueError(
                f"'model' and {file_keys[0]!r} are given; expected 'model' to run it, or "
                f"{file_keys[0]!r} to read its recorded output"
            )
        _check_prices(self)
        for key in self.needed if self.model is None else ():
            if key not in file_keys:
                raise ValueError(
                    f"{key!r} is missing. To do: name a file of its recorded output, or the model "
                    "to run under 'model'"
                )
        return self

    def options(self, extraction: ExtractionConfig) -> RunOptions:
        """Return how the model is loaded: as it says, else as the section `extraction` says."""
        return replace(
            super().options(extraction),
            backend=self.backend or extraction.backend,
            service=_service_of(self),
        )


def _check_prices(section: RunConfig | GeneratorSection) -> None:
    """Refuse a budget without the prices of the model."""
    model, service = str(section.model).partition("#")[2], section.service
    if service is None or service.budget is None:
        return
    if not model:
        raise ValueError(f"'model' is {section.model!r}; expected served:URL#MODEL")
    if model not in service.prices:
        raise ValueError(
            f"'service.budget' needs the prices of {model!r}; expected 'service.prices' with "
            f"{{{model}: {{input: …, output: …}}}}, of a million tokens each"
        )


def _service_of(section: RunConfig | GeneratorSection) -> Service | None:
    """Return how a served model is asked; None of others."""
    if not isinstance(section.model, str) or not section.model.startswith("served:"):
        return None
    return (section.service or ServiceConfig()).service(section.model.partition("#")[2])


class EmbeddingsConfig(RunConfig, ArrayConfig):
    """A model's embeddings of the images, or how to run it.

    A model that is run is a dual encoder, or a classifier, whose last layer's input is taken.

    Attributes
    ----------
    file : path, array or data frame, optional
        .npy, .npz, .safetensors, .parquet or .csv.
    """

    file: ArrayOrTable | None = None
    of_files = ("file",)
    needed = ("file",)


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


Generator = Annotated[
    Any,
    BeforeValidator(
        model_check("diffusers:stable-diffusion-v1-5/stable-diffusion-v1-5", makes_images=True)
    ),
    PlainSerializer(model_as_text),
]
"""Name of a model that makes images, or a model."""

Guidance = Annotated[float, Field(ge=0, le=1000, strict=False)]
"""Strength of guidance."""


class ImageTable(ItemsConfig):
    """A table of images that were made before.

    Attributes
    ----------
    path : str, optional
        Column of the image's file, where a model is to look at it.
    root : path, optional
        Folder that files are relative to; that of the configuration unless given.
    """

    id: Name = "image_id"
    path: Name | None = None
    root: FilePath | None = None


class GeneratorSection(LoadConfig):
    """How a model that makes images is loaded and run.

    Attributes
    ----------
    model : str or model
        `diffusers:` and a hub id or folder, `served:`, a URL, `#` and a model behind it, or
        `python:` and module:factory. None where images were made elsewhere.
    steps : int
        Denoising steps.
    negative_prompt : str, optional
        What guidance leads away from.
    height, width : int, optional
        Of the images; the model's own unless given.
    seed : int
        Of everything that is drawn.
    service : mapping, optional
        How a served model is asked.
    """

    model: Generator | None = None
    steps: Annotated[int, Field(ge=1, le=10_000)] = 50
    negative_prompt: str | None = None
    height: int | None = None
    width: int | None = None
    seed: Seed = 0
    service: ServiceConfig | None = None

    @model_validator(mode="after")
    def _check_service(self) -> Self:
        _check_prices(self)
        return self

    def options(self, extraction: ExtractionConfig) -> RunOptions:
        """Return how the model is loaded: as it says, else as the section `extraction` says."""
        return replace(super().options(extraction), service=_service_of(self))

    def sampling_at(self, guidance: float) -> Sampling:
        """Return how images are drawn at a strength of guidance."""
        return Sampling(self.steps, guidance, self.negative_prompt, self.height, self.width)

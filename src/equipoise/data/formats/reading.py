"""Formats of data sets: each is a function in its own file, registered by name.

What they share is here, too: rows of tables and JSON, which are UTF-8, and plain tables.

The signature of the function is the schema. Its one parameter by position is the file or folder;
several are files by role. Parameters by keyword are options, but for `id`, which names the column
of ids, and `collapse`, which the rule `collapse_rows` sets.
"""

import inspect
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    PydanticSchemaGenerationError,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    create_model,
)

from equipoise.core import DataError, Facts, Fields, InputError, Strings
from equipoise.core.types import FileFacts, Json
from equipoise.data.files import RepeatedKeyError, hash_parts, parse_json, read_text
from equipoise.data.image_set import ClassMapping, ImageRecords, ImageSet, concatenate, image_set
from equipoise.data.problems import check_ids, expected_value, nearest, show
from equipoise.data.sentinels import Sentinels
from equipoise.data.tables import TableSource, read_table
from equipoise.discovery import Place, Registry, calling_module, guarded, refused

_RESERVED = ("id", "collapse")
R = TypeVar("R", bound=Callable[..., ImageSet])


@dataclass(frozen=True)
class RowPictures:
    """Pictures in rows of Parquet or Arrow files, or in a format's own files.

    Attributes
    ----------
    image : str
        Column of the pictures.
    id : str or None
        Column of their ids.
    names : callable or None
        Returns the ids of the images by row, where no column has them.
    read : callable or None
        Returns the bytes of an image by its id, where they aren't in a column; raises OSError.
    """

    image: str = "image"
    id: str | None = None
    names: Callable[[], Sequence[str]] | None = None
    read: Callable[[str], bytes] | None = None


Files = Path | Sequence[Path] | Mapping[str, Path | Sequence[Path]]
"""A file, or files by role; several of one form are parts of one data set."""


@dataclass(frozen=True)
class DataFormat:
    """The reader of a data set, and the location of its pictures.

    Attributes
    ----------
    name : str
        As `format:` names it.
    read : callable
        From paths and options to an `ImageSet`.
    file_column : str
        Column that names the file of each image; the id does where there is none.
    file_names : {"paths", "stems"}
        What names a file: its path in the folder, or its name without the ending anywhere in the
        folder.
    boxes : bool
        Whether the images have boxes.
    rows : callable or None
        Takes the path and the options. Returns `RowPictures` where the pictures lie in rows.
    """

    name: str
    read: Callable[..., ImageSet]
    file_column: str = ""
    file_names: Literal["paths", "stems"] = "paths"
    boxes: bool = False
    rows: Callable[..., RowPictures | None] | None = None

    @cached_property
    def _parameters(self) -> Mapping[str, inspect.Parameter]:
        return inspect.signature(self.read, eval_str=True).parameters

    @property
    def roles(self) -> Strings:
        """Names of the files; () for a single file or folder."""
        names = [n for n, p in self._parameters.items() if p.kind is not p.KEYWORD_ONLY]
        return tuple(names) if len(names) > 1 else ()

    @cached_property
    def options(self) -> type[BaseModel]:
        """The schema of the options."""
        fields: Fields = {
            name: (_option_type(parameter), parameter.default)
            for name, parameter in self._parameters.items()
            if parameter.kind is parameter.KEYWORD_ONLY and name not in _RESERVED
        }
        return create_model(f"{self.name}_options", __config__=ConfigDict(extra="forbid"), **fields)

    def takes(self, name: str) -> bool:
        """Whether the function has a parameter of this name, for example `id`."""
        return name in self._parameters

    def check_options(self, options: Facts) -> Fields:
        """Return the options as the function takes them.

        Raises
        ------
        InputError
            When there is no such option, or a value is of another type.
        """
        try:
            checked = self.options.model_validate(dict(options))
        except ValidationError as error:
            raise self._option_error(error) from None
        return {name: getattr(checked, name) for name in options}

    def _option_error(self, error: ValidationError) -> InputError:
        """Return the error about the first wrong option."""
        first, allowed = error.errors()[0], [*self.options.model_fields]
        name = ".".join(map(str, first["loc"]))
        if first["type"] == "extra_forbidden":
            near = nearest(name, allowed)
            hint = f"; did you mean {near!r}?" if near else ""
            names = f"Allowed: {', '.join(allowed)}" if allowed else "To do: leave options out"
            return InputError(
                f"options.{name}: {self.name} has no such option{hint or f'. {names}'}"
            )
        expected = expected_value(first["type"], first["msg"])
        return InputError(
            f"options.{name} of {self.name}: given {first['input']!r}; expected {expected}"
        )

    def load(self, files: Files, **options: Any) -> ImageSet:
        """Read files: a path, paths by role, or lists of either (train and val).

        Raises
        ------
        InputError
            When lists differ in length, or two parts share an image.
        """
        if isinstance(files, Mapping):
            parts = [self.read(**paths, **options) for paths in _paths_by_part(files)]
        else:
            parts = [self.read(path, **options) for path in _path_list(files)]
        return parts[0] if len(parts) == 1 else concatenate(parts)


def _path_list(paths: Path | Sequence[Path]) -> list[Path]:
    return [paths] if isinstance(paths, Path) else [*paths]


def _paths_by_part(files: Mapping[str, Path | Sequence[Path]]) -> list[dict[str, Path]]:
    """Return the path of each role, for each part of the data set."""
    lists = [_path_list(paths) for paths in files.values()]
    if len({*map(len, lists)}) > 1:
        raise InputError(f"files: expected as many for each of {', '.join(files)}")
    return [dict(zip(files, paths, strict=True)) for paths in zip(*lists, strict=True)]


FORMATS = Registry[DataFormat](
    "data format", "equipoise.formats", "equipoise.data.formats", Path(__file__).parent
)
"""Every format by name: of the files of this folder, of plugins, and of running code."""


def data_format(
    name: str,
    *,
    file_column: str = "",
    file_names: Literal["paths", "stems"] = "paths",
    boxes: bool = False,
    rows: Callable[..., RowPictures | None] | None = None,
) -> Callable[[R], R]:
    """Register a function as the reader of a format; see `DataFormat`.

    Raises
    ------
    PluginError
        When the name is taken, or an option has neither an annotation nor a default.
    """

    def register(read: R) -> R:
        module = calling_module()
        place, fix = FORMATS.place(name, module), "check the file; if it is right, mend the format"
        data_format = DataFormat(
            name, guarded(read, place, fix, _not_images), file_column, file_names, boxes,
            rows and guarded(rows, place, fix),
        )  # fmt: skip
        if not place.is_built_in:
            _check_signature(data_format, place)
        FORMATS.add(name, data_format, module, getattr(read, "__qualname__", ""))
        return read

    return register


def _option_type(parameter: inspect.Parameter) -> object:
    """Return the annotation of an option, or the type of its default."""
    if parameter.annotation is not parameter.empty:
        return parameter.annotation
    if parameter.default in (parameter.empty, None):
        raise TypeError(f"the option {parameter.name!r} has no annotation and no default")
    return type(parameter.default)


def _check_signature(data_format: DataFormat, place: Place) -> None:
    """Refuse a format with an option that has no type for configurations.

    Raises
    ------
    PluginError
        With the option.
    """
    try:
        _ = data_format.options
    except (NameError, PydanticSchemaGenerationError, TypeError) as error:
        problem = f"{place}: {str(error).partition('. ')[0]}"
        fix = "annotate each option with the type that a configuration has, such as str"
        raise refused(problem, fix, place) from error


def _not_images(value: object) -> str:
    """Return the problem with a reader's value, "" for images."""
    is_set = isinstance(value, ImageSet)
    return "" if is_set else f"returned a {type(value).__name__}; expected an ImageSet"


def find_format(name: str) -> DataFormat:
    """Return a registered format.

    Raises
    ------
    InputError
        When there is none of that name; it lists what exists.
    PluginError
        When a plugin of this name can't be used.
    """
    try:
        return FORMATS.find(name)
    except KeyError:
        near = nearest(name, FORMATS)
        hint = f"; did you mean {near!r}?" if near else ""
        raise InputError(
            f"there is no format {name!r}; there are {', '.join(FORMATS)}{hint}{FORMATS.left_out}"
        ) from None


Cells = list[str | None]


@dataclass(frozen=True)
class Rows:
    """The cells of a table, by column.

    Attributes
    ----------
    name : str
        The path as given.
    cells : mapping of str to list of str or None
        None where a cell is empty.
    digest : mapping
    """

    name: str
    cells: Mapping[str, Cells]
    digest: FileFacts

    @property
    def inputs(self) -> dict[str, FileFacts]:
        """File facts for the record."""
        return {self.name: self.digest}

    def cell_error(self, column: str, row: int, expected: str) -> DataError:
        """Return the error of a cell; rows count from 0 here and from 1 in the message."""
        value = self.cells[column][row]
        return DataError(
            "the cell is empty" if value is None else f"the cell is {show(value)}",
            file=self.name,
            column=column,
            row=row + 1,
            expected=expected,
            fix="correct the cell, or download the file again",
        )

    def collapse(
        self,
        owner: Sequence[str],
        columns: Mapping[str, str],
        labels: Sequence[Sequence[str]] | None,
    ) -> ImageRecords:
        """Return images with the labels of all their rows.

        Parameters
        ----------
        owner : sequence of str
            The image of each row.
        columns : mapping of str to str
            Name of a column of images to that of the rows, which agree in it.
        labels : sequence of sequences of str, optional
            Of each row.

        Raises
        ------
        DataError
            When rows of an image differ in a column.
        """
        first: dict[str, int] = {}
        for row, image in enumerate(owner):
            first.setdefault(image, row)
        image_columns: dict[str, Cells] = {}
        for name, column in columns.items():
            cells = self.cells[column]
            image_columns[name] = [cells[row] for row in first.values()]
            for row, image in enumerate(owner):
                if cells[row] != cells[first[image]]:
                    raise DataError(
                        f"rows {first[image] + 1} and {row + 1} are of one image and have "
                        f"{show(cells[first[image]])} and {show(cells[row])}",
                        file=self.name,
                        column=column,
                        expected="the same in every row of an image",
                        fix="correct a row, leave the column out, or give rows different ids",
                    )
        if labels is None:
            return ImageRecords([*first], image_columns)
        place = dict(zip(first, range(len(first)), strict=True))
        pairs: list[tuple[int, str]] = []
        for image, row_labels in zip(owner, labels, strict=True):
            pairs += ((place[image], label) for label in row_labels)
        return ImageRecords([*first], image_columns, pairs)

    def filled(self, column: str, expected: str = "a value in every row") -> list[str]:
        """Return a column that has no empty cell."""
        cells = self.cells[column]
        if None in cells:
            raise self.cell_error(column, cells.index(None), expected)
        return [cell for cell in cells if cell is not None]


def read_rows(
    path: TableSource,
    columns: Sequence[str],
    *,
    id: str | None = None,  # noqa: A002 - the field has this name
    unique: bool = True,
    role: str = "images",
    missing: Sequence[str] = (),
    encoding: str = "utf-8",
    delimiter: str = ",",
) -> Rows:
    """Read some columns of a table as text.

    Parameters
    ----------
    path : path or data frame
    columns : sequence of str
    id : str, optional
        The column of ids, which may not be empty, and if `unique` not repeat.
    role : str
        What stands for the name of a data frame.
    missing : sequence of str
        Texts that mean "missing", beside the empty cell; not for ids.
    encoding, delimiter : str
        Of a CSV; `encoding` also of JSON lines.

    Raises
    ------
    DataError
        As `read_table`.
    """
    names = tuple(dict.fromkeys((*columns, *([id] if id else []))))
    table = read_table(path, texts=names, role=role, encoding=encoding, delimiter=delimiter)
    if id:
        check_ids(table.texts[id], table.name, unique=unique)
    empty = {"", *missing}
    cells: dict[str, Cells] = {}
    for name in names:
        texts = table.texts[name].to_list()
        if name != id:
            texts = [None if text is None or text.strip() in empty else text for text in texts]
        cells[name] = texts
    return Rows(table.name, cells, table.digest)


def hash_names(names: Sequence[str]) -> FileFacts:
    """Return the facts of a folder: the digest of the names of its files, and their number."""
    return {**hash_parts(f"{name}\0".encode() for name in sorted(names)), "rows": len(names)}


def row_files(path: Path) -> list[Path]:
    """Return the files that hold the rows of a data set, in their order.

    Raises
    ------
    DataError
        When there are none.
    """
    files = [path] if path.is_file() else sorted(path.rglob("*.parquet"))
    if not files:
        raise DataError(
            "the file doesn't exist, or the folder has no Parquet file",
            file=str(path),
            expected="a Parquet file, or a folder of them",
            fix="name the file, or the folder as it was downloaded",
        )
    return files


def read_plain(
    table: TableSource,
    *,
    id: str,  # noqa: A002 - as in ItemSource
    columns: Sequence[str] = (),
    label: str | None = None,
    attributes: Sequence[str] = (),
    missing: Sequence[str] = (),
    encoding: str = "utf-8",
    delimiter: str = ",",
) -> ImageSet:
    """Read a table that has no format of its own.

    Parameters
    ----------
    table : path or data frame
        CSV, Parquet or JSON lines, or any data frame.
    id : str
        Column of the ids.
    columns : sequence of str
        Attributes to keep.
    label : str, optional
        Column of labels. An image may then have several rows, one for each label, which agree in
        the columns.
    attributes : sequence of str
        The columns whose values are groups; sentinels among them count as missing.
    missing : sequence of str
        Texts that mean "missing", beside the empty cell.
    encoding, delimiter : str
        Of a CSV; `encoding` also of JSON lines.

    Returns
    -------
    ImageSet
        Counts: "rows", "images", and "missing": images by column where it is empty; with labels
        "pairs" and "rows_without_label" too.

    Raises
    ------
    DataError
        When a column is missing, an id is empty, repeats without `label`, or its rows differ.
    """
    needed_columns = (*columns, *([label] if label else []))
    rows = read_rows(
        table, needed_columns, id=id, unique=label is None, missing=missing,
        encoding=encoding, delimiter=delimiter,
    )  # fmt: skip
    ids = rows.filled(id)
    sentinels, cells = Sentinels(missing=tuple(missing)), dict(rows.cells)
    for name in attributes:
        texts = sentinels.of(name, Counter(cell for cell in cells[name] if cell is not None))
        cells[name] = [None if cell in texts else cell for cell in cells[name]]
    rows = replace(rows, cells=cells)
    labels = [[] if cell is None else [cell] for cell in rows.cells[label]] if label else None
    image_records = rows.collapse(ids, dict(zip(columns, columns, strict=True)), labels)
    counts: dict[str, Json] = {
        "rows": len(ids),
        "images": len(image_records.ids),
        "missing": image_records.count_missing(),
        **sentinels.counts,
    }
    if labels is not None:
        counts["pairs"] = image_records.count_labels()["pairs"]
        counts["rows_without_label"] = labels.count([])
    return image_set(
        image_records, name=rows.name, format="plain table", inputs=rows.inputs, counts=counts
    )


def read_class_mapping(
    path: Path | str, *, name: str | None = None, columns: tuple[str, str] = ("label", "class")
) -> ClassMapping:
    """Read a mapping.

    Parameters
    ----------
    path : path
        A table with a row for each pair of label and class.
    name : str, optional
        The name of the file, without its ending, unless given.
    columns : (str, str)
        The columns of the label and of the class.

    Raises
    ------
    DataError
        When the file cannot be read, or a label or class is empty.
    """
    rows = read_rows(path, columns, role="class mapping")
    cells = (rows.filled(column, "a text in every row") for column in columns)
    pairs = frozenset(
        (label.strip(), class_name.strip()) for label, class_name in zip(*cells, strict=True)
    )
    return ClassMapping(name or Path(path).stem, pairs)


def _id_text(value: object) -> object:
    """Return the text of a whole number; other values pass."""
    is_whole = type(value) is int or (isinstance(value, float) and value.is_integer())
    return str(int(cast("float", value))) if is_whole else value


T = TypeVar("T")
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
# With a pattern pydantic refuses half a surrogate pair, which no table can store.
Text = Annotated[str, StringConstraints(strict=True, pattern="")]
Id = Annotated[str, BeforeValidator(_id_text), StringConstraints(strict=True, pattern=r"\S")]
"""A whole number or text, as text."""
Records = Annotated[list[T], FailFast(), Field(min_length=1)]
"""At least one record; the first that is wrong is an error."""


def read_json(path: Path | str, form: TypeAdapter[T]) -> tuple[T, FileFacts]:
    """Read a JSON file of a declared form.

    Returns
    -------
    value
        As the form declares it; keys that it does not name are passed over.
    digest : dict
        "sha256" and "bytes".

    Raises
    ------
    DataError
        When the file cannot be read, is empty, cut off, no UTF-8, no JSON or of another form.
    """
    (text, digest), file = read_text(path, ".json", "a JSON file of annotations"), str(path)
    try:
        value = parse_json(text)
    except RepeatedKeyError as error:
        raise error.located(file) from None
    except ValueError as error:
        raise DataError(
            f"this is not JSON, or the file is cut off ({error})",
            file=file,
            expected="a whole JSON file",
            fix="download or write it again",
        ) from None
    try:
        return form.validate_python(value), digest
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in first["loc"])
        place = "".join(steps).removeprefix(".") or "the outermost object"
        raise DataError(
            "the key is missing"
            if first["type"] == "missing"
            else f"the value is {show(first['input'])}",
            file=f"{file}, {place}",
            expected=first["msg"],
            fix="check that this is the right file; correct it, or download it again",
        ) from None

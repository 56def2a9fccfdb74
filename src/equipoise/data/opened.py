"""A source of an array, opened: a two-dimensional array, or a table of columns."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt

from equipoise.core import DataError
from equipoise.data.array_files import EXTENSIONS, ArrayFile
from equipoise.data.array_ids import RowIds, ids_in_array, ids_in_file, ids_in_memory
from equipoise.data.array_tables import ColumnFile, open_columns
from equipoise.data.arrays import ArraySource
from equipoise.data.cells import as_text
from equipoise.data.frames import is_frame
from equipoise.data.items import Items
from equipoise.data.outputs import Outputs
from equipoise.data.problems import check_columns

BLOCK_BYTES = 1 << 24


@dataclass(frozen=True, eq=False)
class Grid:
    """A two-dimensional array with a row per item.

    Attributes
    ----------
    name : str
        The path as given, or what the array is for.
    place : str
        How errors name it.
    values : ndarray, shape (rows, columns)
        Mapped into memory where possible.
    digest : mapping
        "sha256" and "bytes".
    arrays : ArrayFile or None
    """

    name: str
    place: str
    values: npt.NDArray[Any]
    digest: Mapping[str, Any]
    arrays: ArrayFile | None = None

    @property
    def several(self) -> bool:
        """Whether the file can hold more arrays, which have names."""
        return self.arrays is not None and self.arrays.several


def open_source(source: ArraySource | Outputs, what: str) -> Grid | ColumnFile:
    """Open a file, array, data frame or the numbers of a live model.

    Raises
    ------
    DataError
        When it cannot be read, or holds no two-dimensional array of numbers.
    """
    if isinstance(source, Outputs):
        return Grid(source.source, source.source, source.numbers, {})
    if isinstance(source.file, str | os.PathLike):
        path = Path(source.file)
        is_array = path.suffix.lower() in EXTENSIONS
        opened = _grid_in_file(path, source.array) if is_array else open_columns(source, what)
    elif is_frame(source.file):
        opened = open_columns(source, what)
    else:
        opened = _grid_in_memory(source.file, what)
    _check_options(source, opened)
    return opened


def _check_options(source: ArraySource, opened: Grid | ColumnFile) -> None:
    """Raise on an option that cannot apply, which would otherwise be passed over."""
    grid = isinstance(opened, Grid)
    name, several = opened.name, isinstance(opened, Grid) and opened.several
    wrong = {
        "array": source.array is not None and not several,
        "id": source.id is not None and grid,
        "column": source.column is not None and grid,
        "names": bool(source.names) and not grid and source.column is None,
    }
    reasons = {
        "array": "only an .npz or .safetensors has arrays with names",
        "id": "an array has no column of ids: give `ids:`",
        "column": "an array has no columns with names",
        "names": "the columns of a table have names",
    }
    for option in (option for option, given in wrong.items() if given):
        raise DataError(
            f"`{option}:` does not apply: {reasons[option]}",
            file=name,
            fix=f"take `{option}:` out",
        )


def _grid_in_file(path: Path, array: str | None) -> Grid:
    arrays = ArrayFile.open(path)
    name = arrays.named(array)
    place = arrays.place(name)
    return Grid(str(path), place, _checked(arrays.read(name), place), arrays.digest, arrays)


def _grid_in_memory(given: Any, what: str) -> Grid:
    place = f"{what} (array)"
    if isinstance(given, np.ma.MaskedArray):
        raise _no_array("the array is masked", place, "fill it: values.filled(np.nan)")
    if not hasattr(given, "__array__"):
        raise _no_array(f"{type(given).__name__} is no array of numbers", place)
    try:
        values = np.asarray(given)
    except (TypeError, ValueError, RuntimeError) as error:
        raise _no_array(f"{type(given).__name__} is no array of numbers ({error})", place) from None
    if values.dtype.hasobject:
        raise _no_array(f"{type(given).__name__} is no array of numbers", place)
    return Grid(place, place, _checked(values, place), hash_array(values))


def _no_array(problem: str, place: str, fix: str = "pass np.asarray(..., np.float32)") -> DataError:
    return DataError(problem, file=place, expected="a path, an array or a data frame", fix=fix)


def _checked(values: npt.NDArray[Any], place: str) -> npt.NDArray[Any]:
    if values.ndim != 2:
        raise DataError(
            f"the array has the shape {values.shape}",
            file=place,
            expected="two dimensions: a row per item",
            fix="average or select over the other dimensions before saving"
            if values.ndim > 2
            else "save an array with a row per item",
        )
    if 0 in values.shape:
        raise DataError(
            f"the array has the shape {values.shape}",
            file=place,
            expected="at least one row and one column",
            fix="check that it was written completely",
        )
    return values


def hash_array(values: npt.NDArray[Any]) -> dict[str, Any]:
    """Hash an array in blocks of rows; equal arrays hash equally whatever their strides."""
    hashed = hashlib.sha256(f"{values.dtype.str}\0{values.shape}\0".encode())
    step = max(1, BLOCK_BYTES // max(1, values[:1].nbytes))
    for start in range(0, len(values), step):
        hashed.update(np.ascontiguousarray(values[start : start + step]).data)
    return {"sha256": hashed.hexdigest(), "bytes": values.nbytes}


def inputs_of(
    opened: Grid | ColumnFile, ids: RowIds | None, columns: Iterable[tuple[str, npt.NDArray[Any]]]
) -> dict[str, Mapping[str, Any]]:
    """Return hash, bytes and rows of each file; of a data frame, those of what was read of it.

    Parameters
    ----------
    opened : Grid or ColumnFile
    ids : RowIds or None
    columns : iterable of (name, ndarray)
        What was read, of one or more columns each; looked at for a data frame only.
    """
    rows, digest = 0, dict(opened.digest)
    hashed, size = hashlib.sha256(), 0
    for name, values in columns:
        rows = len(values)
        if digest:
            break
        part = hash_array(values)
        hashed.update(f"{name}\0{part['sha256']}\0".encode())
        size += part["bytes"]
    if not digest:
        texts = "" if ids is None else "\0".join(ids.texts.fill_null("").to_list())
        hashed.update(texts.encode())
        digest = {"sha256": hashed.hexdigest(), "bytes": size + len(texts.encode())}
    return {opened.name: {**digest, "rows": rows}, **({} if ids is None else ids.inputs)}


def ids_of(source: ArraySource | Outputs, opened: Grid | ColumnFile, items: Items) -> RowIds | None:
    """Return the ids of the rows, or None where rows follow the items.

    A table that has a column named as the items' ids is matched by it.
    """
    if isinstance(source, Outputs):
        return RowIds(source.ids, source.source, source.inputs)
    if source.ids is not None:
        return _declared(source, opened)
    if isinstance(opened, Grid):
        return None
    name = source.id or (items.id if items.id in opened.names else None)
    if name is None:
        return None
    check_columns(opened.names, (name,), opened.name)
    texts = as_text(opened.read((name,))[name], opened.name, name)
    return RowIds(texts, opened.name, {})


def _declared(source: ArraySource, opened: Grid | ColumnFile) -> RowIds:
    ids = source.ids
    if not isinstance(ids, str | os.PathLike):
        return ids_in_memory(ids, f"ids of {opened.name}")
    arrays = opened.arrays if isinstance(opened, Grid) else None
    if arrays is not None and str(ids) in arrays.headers:
        return ids_in_array(arrays, str(ids))
    if arrays is not None and arrays.several and not Path(ids).suffix:
        raise arrays.no_array(str(ids))
    return ids_in_file(Path(ids), source.encoding, source.delimiter)


def is_live(source: ArraySource | Outputs) -> bool:
    """Return whether equipoise ran the model that a source is from."""
    return isinstance(source, Outputs) and source.live


def unmatched(source: ArraySource | Outputs, limit: float) -> UnmatchedLimit:
    """Return the limit of unmatched items of a source: images that a live model failed on aren't.

    Parameters
    ----------
    source : ArraySource or Outputs
    limit : float in [0, 1]
        Of a file.
    """
    if isinstance(source, Outputs):
        return {"max_unmatched": limit, "failed": frozenset(source.failed)}
    return {"max_unmatched": limit, "failed": frozenset()}


class UnmatchedLimit(TypedDict):
    """Arguments of `align`."""

    max_unmatched: float
    failed: frozenset[str]


def how_to_give_ids(opened: Grid | ColumnFile) -> str:
    """Return the advice for a matrix whose rows cannot follow the items."""
    if isinstance(opened, Grid):
        return "give `ids:` (a file of ids, or the name of an array of ids in the same file)"
    return "give `id:` with the column of ids"

"""Encoding of labels: any strings or numbers to codes, missing values kept apart."""

import math
import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from equipoise.core.arrays import AnyArray, Integers, Integers32
from equipoise.core.errors import InputError
from equipoise.core.records import record
from equipoise.core.types import Strings

# How missing values that are no strings print: NaN of any width, pandas' NA and NaT, None.
_MISSING = frozenset({"nan", "NaN", "<NA>", "NaT", "None"})


@record
class Encoded:
    """Labels as integer codes into a vocabulary.

    Attributes
    ----------
    codes : ndarray of int32, any shape
        Index into `vocabulary`; -1 where there is no label.
    vocabulary : tuple of str
        Distinct labels, used or not.
    """

    codes: Integers32
    vocabulary: Strings


Cell: TypeAlias = str | float | None
Labels: TypeAlias = ArrayLike | Sequence[Cell] | Sequence[Sequence[Cell]] | Encoded
"""Labels of rows: a list, an array or a column of a data frame. None and NaN are missing."""


def shape_of(labels: Labels) -> tuple[int, ...]:
    """Return the shape of labels in any of their forms."""
    return (
        labels.codes.shape if isinstance(labels, Encoded) else np.shape(cast("ArrayLike", labels))
    )


def check_unmasked(values: Labels, *, subject: str) -> None:
    """Refuse a masked array.

    Parameters
    ----------
    values : any
    subject : str
        Name of the argument, for errors.

    Raises
    ------
    InputError
        When `values` is a masked array.
    """
    if np.ma.isMaskedArray(values):
        raise InputError(
            f"{subject}: the array is masked, and its masked rows would count; expected an array "
            "without a mask. Leave the masked rows out of every array"
        )


def coded(labels: Labels) -> Encoded | None:
    """Return labels that have codes already, or get them from Arrow; None for others.

    Columns of text in Arrow's memory (of pyarrow, polars and pandas) are encoded there, without a
    Python object for each row.
    """
    if isinstance(labels, Encoded):
        return labels
    column = text_column(labels)
    return None if column is None else _coded_text(column)


def text_column(labels: Labels) -> pa.ChunkedArray | None:
    """Return a column of text in Arrow's memory, or of codes into texts; None for others."""
    streams = hasattr(labels, "__arrow_c_stream__")
    one_dimensional = len(getattr(labels, "shape", (0,))) == 1
    if not one_dimensional or not (streams or hasattr(labels, "__arrow_c_array__")):
        return None
    try:
        column = pa.chunked_array(labels if streams else [labels])
    except (pa.ArrowException, TypeError, ValueError):  # Objects of several types, say.
        return None
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    return column if is_text(kind) else None


def is_text(kind: pa.DataType) -> bool:
    """Whether cells of a column of this type are text, which may spell numbers."""
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _coded_text(column: pa.ChunkedArray) -> Encoded:
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    combined = column.unify_dictionaries().combine_chunks()
    codes = combined.indices.cast(pa.int32()).fill_null(-1).to_numpy()
    names = combined.dictionary.to_pylist()
    if "" not in names and None not in names:
        return Encoded(codes, tuple(names))
    named = [name for name in names if name]
    place = {name: index for index, name in enumerate(named)}
    lookup = np.array([*(place.get(name, -1) for name in names), -1], dtype=np.int32)
    return Encoded(lookup[codes], tuple(named))


def encode(labels: Labels, *, subject: str = "labels") -> tuple[Integers32, Strings]:
    """Turn labels into codes and their sorted names.

    Parameters
    ----------
    labels : array-like, shape (n,)
        Strings, integers, booleans or whole floats; 1 and 1.0 are the same label. None, NaN,
        pandas' NA and "" are missing. Or labels that are `Encoded` already.
    subject : str
        Name of the argument, for errors.

    Returns
    -------
    codes : ndarray of int32, shape (n,)
        Index into names; -1 where missing.
    names : tuple of str
        Sorted, numerically where every label is given as a number.

    Raises
    ------
    InputError
        When `labels` is not one-dimensional, or a label is a fraction, infinite or bytes.
    """
    encoded = coded(labels)
    if encoded is not None:
        return _sorted(encoded, str)
    array = label_array(labels, subject=subject)
    if array.ndim != 1:
        raise InputError(f"{subject}: shape {array.shape}; expected one label per row, shape (n,)")
    if array.dtype.kind not in "iubf":
        return _encode_objects(array, subject)
    if array.dtype.kind == "f":
        array = array.astype(np.float64) + 0.0  # without the sign of 0
        fraction = ~np.isnan(array) & (array != np.floor(array))
        bad = np.flatnonzero(fraction | np.isinf(array))
        if len(bad):
            raise _no_label(subject, bad[0], array[bad[0]].item())
    column = pa.array(array, from_pandas=True).dictionary_encode()
    values = column.dictionary.to_pylist()
    numbers = array.dtype.kind != "b"
    names = tuple(str(int(value)) if numbers else str(value) for value in values)
    codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return _sorted(Encoded(codes, names), int if numbers else str)


def unit_codes(labels: Labels, n: int, subject: str, of: str = "") -> tuple[Integers, Strings]:
    """Return the unit of each of n rows, from 0, and names; a row without a label stands alone.

    Parameters
    ----------
    labels : array-like (n,)
    n : int
    subject, of : str
        Names of the argument, and of that with the n rows, for errors.

    Raises
    ------
    InputError
        When there is not one label per row.
    """
    codes, names = encode(labels, subject=subject)
    if len(codes) != n:
        raise InputError(
            f"{subject}: {len(codes)} rows; expected {n}{f', as in {of}' if of else ''}"
        )
    alone = np.flatnonzero(codes < 0)
    units = codes.astype(np.int64)
    units[alone] = len(names) + np.arange(len(alone))
    return units, (*names, *(f"row {row}" for row in alone.tolist()))


def label_array(labels: Labels, *, subject: str = "labels") -> AnyArray:
    """Return labels as an array; NaN among strings stays NaN, not the text "nan".

    Raises
    ------
    InputError
        When rows have different lengths, or the array is masked.
    """
    check_unmasked(labels, subject=subject)
    if not isinstance(labels, list | tuple):
        return np.asarray(labels)
    try:
        array = np.asarray(labels, dtype=object)
        return array if any(isinstance(x, str | bytes) for x in array.flat) else np.asarray(labels)
    except ValueError:
        raise InputError(f"{subject}: rows of different lengths; expected one shape") from None


def natural(name: str) -> tuple[int, float, str]:
    """Return a sort key that puts numbers first and in their order."""
    try:
        # No finite number begins with a letter, and trying costs more than sorting.
        number = math.nan if name[:1].isalpha() else float(name)
    except ValueError:
        number = math.nan
    return (0, number, name) if math.isfinite(number) else (1, 0.0, name)


def in_order(texts: Sequence[str]) -> tuple[Strings, Integers]:
    """Return distinct texts sorted as by `natural`, and the place of each text among them.

    Quick where few of them are numbers.
    """
    from pyarrow.compute import not_equal, sort_indices

    try:
        column = pa.array(texts, pa.large_string())
    except UnicodeEncodeError:  # As in `_coded_objects`; such bytes have that order, too.
        column = pa.array(
            [text.encode(errors="surrogatepass") for text in texts], pa.large_binary()
        )
    order, new = sort_indices(column), np.ones(len(column), dtype=bool)
    ordered = column.take(order)
    new[1:] = not_equal(ordered[1:], ordered[:-1]).to_numpy(zero_copy_only=False)
    indices, places = order.to_numpy(), np.empty(len(column), dtype=np.int64)
    names = [texts[index] for index in indices[new].tolist()]
    places[indices] = np.cumsum(new) - 1
    # No finite number begins with a letter, and trying costs more than sorting.
    upper, lower = (slice(bisect_left(names, a), bisect_left(names, z)) for a, z in ("A[", "a{"))
    maybe = np.r_[: upper.start, upper.stop : lower.start, lower.stop : len(names)]
    keys = {index: natural(names[index]) for index in maybe.tolist()}
    numbers = sorted((index for index in keys if not keys[index][0]), key=keys.__getitem__)
    if numbers:
        permutation = np.append(numbers, np.delete(np.arange(len(names)), numbers))
        names, places = (
            [names[index] for index in permutation.tolist()],
            np.argsort(permutation)[places],
        )
    return tuple(names), places


_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_SIDES = (
    re.compile(r"\b(under|below|less|younger|up to|at most)\b|[<≤]", re.IGNORECASE),
    re.compile(r"\b(over|above|more|older)\b|[>≥+]", re.IGNORECASE),
)


def in_bands(codes: Integers32, names: Strings) -> tuple[Integers32, Strings]:
    """Sort labels by their first numbers where all have some: "under 18", "18-29", "100+"."""
    numbers = [_NUMBER.search(name) for name in names]
    values = [float(number[0]) for number in numbers if number]
    if len(values) < len(names):
        return codes, names
    below, above = ([bool(side.search(name)) for name in names] for side in _SIDES)
    order = sorted(range(len(names)), key=lambda i: (values[i], above[i] - below[i], names[i]))
    place = np.full(len(names) + 1, -1, dtype=np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return place[codes], tuple(names[index] for index in order)


def _sorted(labels: Encoded, key: Callable[[str], Any]) -> tuple[Integers32, Strings]:
    """Keep the labels that are used, sorted."""
    codes, vocabulary = labels.codes, labels.vocabulary
    used = np.flatnonzero(np.bincount(codes[codes >= 0], minlength=len(vocabulary))).tolist()
    used.sort(key=lambda code: key(vocabulary[code]))
    place = np.full(len(vocabulary) + 1, -1, dtype=np.int32)
    place[used] = np.arange(len(used), dtype=np.int32)
    return place[codes], tuple(vocabulary[index] for index in used)


def _encode_objects(array: AnyArray, subject: str) -> tuple[Integers32, Strings]:
    values = array.tolist()
    kinds = set(map(type, values))
    texts = values
    if kinds != {str}:
        texts = [_text(value, row, subject) for row, value in enumerate(values)]
    numeric = not any(issubclass(kind, str | bool | np.bool_) for kind in kinds)
    return _sorted(_coded_objects(texts), natural if numeric else str)


def _coded_objects(texts: list[str]) -> Encoded:
    try:
        return _coded_text(pa.chunked_array([pa.array(texts, pa.large_string())]))
    except UnicodeEncodeError:  # Half of a surrogate pair, which UTF-8 cannot hold.
        names = tuple(dict.fromkeys(text for text in texts if text))
        code = {name: index for index, name in enumerate(names)} | {"": -1}
        return Encoded(np.array([code[text] for text in texts], dtype=np.int32), names)


def _text(value: Any, row: int, subject: str) -> str:
    """Return a label as text, "" where it is missing."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bytes):
        raise _no_label(subject, row, value)
    text = str(value)
    if text in _MISSING:
        return ""
    if isinstance(value, float | np.floating):
        if not math.isfinite(value) or value != math.floor(value):
            raise _no_label(subject, row, value)
        return str(int(value))
    return text


def _no_label(subject: str, row: int, value: object) -> InputError:
    return InputError(
        f"{subject}, row {row + 1}: {value!s} isn't a label; "
        "expected text, a whole number or a boolean. Turn other values into text first"
    )

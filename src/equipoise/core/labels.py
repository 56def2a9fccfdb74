"""Encoding of labels: any strings or numbers to codes, missing values kept apart."""

from __future__ import annotations

import math
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError

Codes = npt.NDArray[np.int32]


@runtime_checkable
class Encoded(Protocol):
    """Labels that are codes into a vocabulary already; -1 is missing."""

    @property
    def codes(self) -> Codes:
        """Index into `vocabulary`, shape (n,)."""
        ...

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """Distinct labels, used or not."""
        ...


def encode(labels: Any, *, what: str = "labels") -> tuple[Codes, tuple[str, ...]]:
    """Turn labels into codes and their sorted names.

    Parameters
    ----------
    labels : array-like, shape (n,)
        Strings, integers, booleans or whole floats. None, NaN and "" are missing. Or labels
        that are `Encoded` already.
    what : str
        Name of the argument, for errors.

    Returns
    -------
    codes : ndarray of int32, shape (n,)
        Index into names; -1 where missing.
    names : tuple of str
        Sorted, numerically where every label is a number.

    Raises
    ------
    InputError
        When `labels` is not one-dimensional.
    """
    if isinstance(labels, Encoded):
        return _compress(labels)
    array = np.asarray(labels)
    if array.ndim != 1:
        raise InputError(f"{what}: shape {array.shape}; expected one label per row, shape (n,)")
    if array.dtype.kind in "iub":
        return _encode_numbers(array)
    if array.dtype.kind == "f":
        return _encode_floats(array)
    return _encode_objects(array)


def _compress(labels: Encoded) -> tuple[Codes, tuple[str, ...]]:
    """Keep the labels that are used, sorted."""
    codes = labels.codes
    used = np.flatnonzero(np.bincount(codes[codes >= 0], minlength=len(labels.vocabulary)))
    names = np.array([labels.vocabulary[index] for index in used.tolist()], dtype=np.str_)
    order = np.argsort(names, kind="stable")
    place = np.full(len(labels.vocabulary) + 1, -1, dtype=np.int32)
    place[used[order]] = np.arange(len(used), dtype=np.int32)
    return place[codes], tuple(names[order].tolist())


def _encode_numbers(array: npt.NDArray[Any]) -> tuple[Codes, tuple[str, ...]]:
    values, codes = np.unique(array, return_inverse=True)
    return codes.astype(np.int32), tuple(str(value) for value in values.tolist())


def _encode_floats(array: npt.NDArray[Any]) -> tuple[Codes, tuple[str, ...]]:
    missing = np.isnan(array)
    values, inverse = np.unique(array[~missing], return_inverse=True)
    codes = np.full(len(array), -1, np.int32)
    codes[~missing] = inverse
    names = (
        str(int(value)) if value == np.floor(value) else str(value) for value in values.tolist()
    )
    return codes, tuple(names)


def _encode_objects(array: npt.NDArray[Any]) -> tuple[Codes, tuple[str, ...]]:
    texts = ["" if _is_missing(value) else str(value) for value in array.tolist()]
    values, inverse = np.unique(np.array(texts, dtype=np.str_), return_inverse=True)
    shift = 1 if len(values) and values[0] == "" else 0
    return (inverse - shift).astype(np.int32), tuple(values[shift:].tolist())


def _is_missing(value: object) -> bool:
    if isinstance(value, float):
        return math.isnan(value)
    return value is None or str(value) in ("", "<NA>", "NaT")

"""Masked arrays, whose masked values numpy hands on as if they were not."""

from __future__ import annotations

from typing import Any

import numpy as np

from equipoise.core.errors import InputError


def check_unmasked(values: Any, *, what: str) -> None:
    """Refuse a masked array.

    Parameters
    ----------
    values : any
    what : str
        Name of the argument, for errors.

    Raises
    ------
    InputError
        When `values` is a masked array.
    """
    if np.ma.isMaskedArray(values):
        raise InputError(
            f"{what}: the array is masked, and what is masked would count; expected an array "
            "without a mask. Leave the masked rows out of every array"
        )

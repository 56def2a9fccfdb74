"""Units that are resampled together."""

from __future__ import annotations

from typing import Any

import numpy as np

from equipoise.core import InputError, Integers, encode


def unit_codes(labels: Any, n: int, what: str) -> tuple[Integers, tuple[str, ...]]:
    """Return the unit of each of n rows, from 0, and names; a row without a label stands alone.

    Raises
    ------
    InputError
        When there is not one label per row.
    """
    codes, names = encode(labels, what=what)
    if len(codes) != n:
        raise InputError(f"{what}: {len(codes)} rows; expected {n}")
    alone = np.flatnonzero(codes < 0)
    found = codes.astype(np.int64)
    found[alone] = len(names) + np.arange(len(alone))
    return found, (*names, *(f"row {row}" for row in alone.tolist()))

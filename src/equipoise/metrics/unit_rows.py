"""Lengths of rows of embeddings, whatever their size, and inner products, in one fixed order."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.stats.compiled import compiled

Floats = npt.NDArray[np.float64]


def float_rows(signature: str) -> tuple[str, str]:
    """Return signatures of a kernel for "rows" of float32 and of float64, read only."""
    types = (f"Array(float{bits}, 2, 'C', readonly=True)" for bits in (32, 64))
    single, double = (signature.replace("rows", one) for one in types)
    return single, double


@compiled(*float_rows("boolean(rows, float64[::1])"))
def inverse_lengths(rows: npt.NDArray[Any], scale: Floats) -> bool:
    """Write 1 / |row| of each row, 0 where squares sum to 0; False where they leave the range.

    Squares are float64 and summed in 64 lanes, as vector units do, and these in halves.
    """
    n, d = rows.shape
    whole = d - d % 64
    lanes = np.empty(64)
    for i in range(n):
        lanes[:] = 0.0
        for start in range(0, whole, 64):
            for j in range(64):
                x = np.float64(rows[i, start + j])
                lanes[j] += x * x
        for j in range(d - whole):
            x = np.float64(rows[i, whole + j])
            lanes[j] += x * x
        half = 32
        while half:
            for j in range(half):
                lanes[j] += lanes[j + half]
            half //= 2
        scale[i] = 0.0
        if lanes[0] != 0.0:
            if not 1e-250 < lanes[0] < 1e250:
                return False
            scale[i] = 1.0 / np.sqrt(lanes[0])
    return True


@compiled(*float_rows("void(rows, float64[::1], float64[:, ::1], float64[:, ::1])"))
def project(rows: npt.NDArray[Any], scale: Floats, directions: Floats, found: Floats) -> None:
    """Write the inner products of rows, each times its scale, with directions (k, d): (n, k)."""
    n, d = rows.shape
    whole = d - d % 64
    lanes = np.empty(64)
    row = np.empty(d)
    for i in range(n):
        for j in range(d):
            row[j] = rows[i, j]
        for k in range(directions.shape[0]):
            lanes[:] = 0.0
            for start in range(0, whole, 64):
                for j in range(64):
                    lanes[j] += row[start + j] * directions[k, start + j]
            for j in range(d - whole):
                lanes[j] += row[whole + j] * directions[k, whole + j]
            half = 32
            while half:
                for j in range(half):
                    lanes[j] += lanes[j + half]
                half //= 2
            found[i, k] = lanes[0] * scale[i]


def in_range(rows: npt.NDArray[Any], largest: Floats) -> Floats:
    """Divide rows by powers of two near their largest numbers, so that squares stay in range.

    The digits of a row, and of its unit vector, are the same as before.
    """
    return np.asarray(np.ldexp(rows.astype(np.float64), -np.frexp(largest)[1][:, None]))

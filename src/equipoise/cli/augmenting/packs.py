"""Decoded images on disk: packs of them, each image known by the content of its file.

A pack is one .npy file of records, mapped into memory. What a run adds is a pack of its own into
which smaller ones go, so that there are few, and no image is written often.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.core.errors import RunError

Pack = NDArray[np.void]

# Records that are hashed at a time.
_BLOCK = 256


def empty_pack(n: int, size: int) -> Pack:
    """Return room for n images of some side: digest, pixels, shape and box of each."""
    fields: Any = [
        ("digests", np.uint8, 32), ("pixels", np.uint8, (size, size, 3)),
        ("shapes", np.int64, 2), ("boxes", np.int64, 4),
    ]  # fmt: skip
    return np.zeros(n, np.dtype(fields))


def read_packs(folder: Path, form: np.dtype[Any]) -> dict[Path, Pack]:
    """Return the undamaged packs of a folder, mapped into memory.

    A pack is named after the SHA-256 of its records. The images of a damaged pack are decoded
    again.
    """
    packs = {}
    for path in sorted(folder.glob("*.npy")):
        try:
            pack = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError):
            continue
        if pack.dtype == form and pack.ndim == 1 and path.name == _name(pack):
            packs[path] = pack
    return packs


def _name(pack: Pack) -> str:
    digest = sha256()
    for start in range(0, len(pack), _BLOCK):
        digest.update(np.ascontiguousarray(pack[start : start + _BLOCK]).view(np.uint8).data)
    return f"{digest.hexdigest()[:16]}.npy"


def add_pack(folder: Path, pack: Pack, others: Mapping[Path, Pack]) -> None:
    """Write a pack, and smaller ones with it, which then go.

    Raises
    ------
    RunError
        When nothing can be written there.
    """
    gone = []
    for path, other in sorted(others.items(), key=lambda one: (len(one[1]), one[0])):
        if len(other) > len(pack):
            break
        pack = np.concatenate([pack, other])
        gone.append(path)
    path = folder / _name(pack)
    # Under another name first: what lies there is whole.
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with partial.open("wb") as file:
            np.save(file, pack, allow_pickle=False)
        partial.replace(path)
        for one in gone:
            one.unlink(missing_ok=True)
    except OSError as error:
        raise RunError(
            f"{folder}: decoded images cannot be kept there ({error.strerror or error}). To do: "
            "free space, or name another store"
        ) from None
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)

"""An image set as tables on disk, which audits read."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

from equipoise.core import DataError
from equipoise.data.image_set import ImageSet

IMAGES, LABELS, PROVENANCE = "images.parquet", "labels.parquet", "provenance.json"


def to_tables(images: ImageSet, folder: Path | str, *, wide: bool = False) -> tuple[Path, ...]:
    """Write `images.parquet`, `labels.parquet` and `provenance.json`.

    Parameters
    ----------
    images : ImageSet
    folder : path
        Made if it is not there.
    wide : bool
        Labels as one row per image with a column of 0 and 1 for each label. Otherwise one row per
        image and label, with the columns `image_id` and `label`.

    Returns
    -------
    tuple of Path
        The files written; `labels.parquet` only where there are labels.

    Raises
    ------
    DataError
        When one of the files exists already, or the folder cannot be written.
    """
    directory = Path(folder)
    tables = {IMAGES: images.image_table()}
    if images.labels is not None:
        tables[LABELS] = images.label_table(wide=wide)
    paths = [directory / name for name in (*tables, PROVENANCE)]
    for path in paths:
        if path.exists():
            raise DataError(
                "the file exists already",
                file=str(path),
                expected="a folder without the tables of another set",
                fix="name another folder, or remove the file",
            )
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for path, table in zip(paths, tables.values(), strict=False):
            _write_table(path, table)
        _write_text(directory / PROVENANCE, json.dumps(provenance(images), indent=1) + "\n")
    except OSError as error:
        raise DataError(
            f"the tables cannot be written ({error.strerror or error})",
            file=str(directory),
            fix="name a folder that you may write, and check the disk",
        ) from None
    return tuple(paths)


def provenance(images: ImageSet) -> dict[str, Any]:
    """Return where an image set comes from and what was left out, as plain data."""
    return {
        "format": images.format,
        "images": len(images),
        "inputs": {name: dict(digest) for name, digest in images.inputs.items()},
        "read": dict(images.counts),
        "steps": [asdict(step) for step in images.steps],
    }


def _write_table(path: Path, table: pl.DataFrame) -> None:
    """Write under a temporary name, so that a table is there whole or not at all."""
    partial = path.with_name(f".{path.name}.partial")
    table.write_parquet(partial)
    partial.replace(path)


def _write_text(path: Path, text: str) -> None:
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)

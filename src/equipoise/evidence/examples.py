"""Examples of a run: which images are behind its findings, and where their files are."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from equipoise.core import Groups, Objects
from equipoise.core.files import write_table
from equipoise.evidence.pictures import Files, Pictures
from equipoise.evidence.predictions import file_name
from equipoise.stats.streams import stream

FOLDER = "examples"
"""Folder of a run with its examples."""
IMAGES = "images.parquet"
GROUPS = "groups: "
"""What the columns of groups begin with; the name of the attributes follows."""
COLUMNS = {
    "place": pl.UInt32(),
    "subject": pl.String(),
    "outcome": pl.String(),
    "label": pl.String(),
    "score": pl.Float32(),
}
# Texts repeat: a file has each once.
_SMALL = pl.col("subject", "outcome", "label").cast(pl.Categorical())


def write_examples(
    run: Path,
    ids: Objects,
    groups: Sequence[Groups],
    pictures: Pictures,
    rows: Mapping[str, pl.DataFrame],
    seed: int,
) -> None:
    """Write the images of a run, and a table of examples for each model.

    Parameters
    ----------
    run : Path
        Folder that `new_run` yields.
    ids : ndarray of str objects, shape (n,)
    groups : sequence of Groups
        Groups of the n images, for each choice of attributes.
    pictures : Pictures
        Where the files are; paths are kept relative to the run.
    rows : mapping of str to polars.DataFrame
        By model, see `with_every_column`: `place` among `ids`, `subject`, `outcome`, `label` and
        `score`.
    seed : int
        Of the random order in which images are shown.
    """
    folder = run / FOLDER
    folder.mkdir(exist_ok=True)
    table = pl.DataFrame({"image_id": pl.Series(ids.tolist(), dtype=pl.String)})
    order = stream(seed, "examples").permutation(len(ids)).astype(np.uint32)
    table = table.with_columns(pl.Series("order", order), _files(table["image_id"], pictures, run))
    for one in groups:
        names = np.array([*one.names, None], dtype=object)[one.codes]
        table = table.with_columns(
            pl.Series(f"{GROUPS}{one.name}", names.tolist(), pl.String).cast(pl.Categorical)
        )
    write_table(table.to_arrow(), folder / IMAGES)
    for model, own in rows.items():
        write_table(own.with_columns(_SMALL).to_arrow(), folder / file_name(model))


def with_every_column(rows: pl.DataFrame) -> pl.DataFrame:
    """Return examples with nulls in the columns that they lack."""
    missing = [pl.lit(None).alias(name) for name in COLUMNS if name not in rows.columns]
    kinds = [pl.col(name).cast(kind) for name, kind in COLUMNS.items()]
    return rows.with_columns(missing).select(kinds)


def _files(ids: pl.Series, pictures: Pictures, run: Path) -> pl.Series:
    """Return the file of each image relative to the run; null where it is no file of its own."""
    none = pl.Series("file", [None] * len(ids), pl.String)
    if not isinstance(pictures.source, Files):
        return none
    folders: dict[str, str] = {}

    def near(path: str) -> str:
        folder, name = os.path.split(path)
        if folder not in folders:
            folders[folder] = os.path.relpath(folder or ".", run)
        return f"{folders[folder]}/{name}"

    files = pl.DataFrame(
        {
            "image_id": pl.Series(pictures.ids.tolist(), dtype=pl.String),
            "file": pl.Series([*map(near, pictures.source.paths)], dtype=pl.String),
        }
    )
    return ids.to_frame("image_id").join(files, on="image_id", how="left",
                                         maintain_order="left")["file"]  # fmt: skip

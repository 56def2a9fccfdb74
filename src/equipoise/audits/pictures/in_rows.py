"""Pictures that lie in the rows of Parquet or Arrow files, beside what is said of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from equipoise.data.formats.huggingface import data_files

if TYPE_CHECKING:
    from equipoise.audits.pictures.config import PicturesConfig
    from equipoise.evidence import Pictures


def huggingface_rows(given: PicturesConfig, base: Path) -> tuple[Pictures, Sequence[str]]:
    """Return the pictures of a data set of Hugging Face, and the ids that they have."""
    from equipoise.evidence import pictures_on_disk

    image = (given.options.image if given.options else None) or "image"
    pictures = pictures_on_disk(base / given.files, image=image, id=given.id)
    return pictures, pictures.ids.tolist()


def social_rows(given: PicturesConfig, base: Path) -> tuple[Pictures, Sequence[str]]:
    """Return the pictures of SocialCounterfactuals, and the ids that its reader gives them."""
    import polars as pl

    from equipoise.evidence import pictures_on_disk

    folder = base / given.files
    parts = ("counterfactual_set", "a1a2")
    names: list[str] = []
    for file in data_files(folder):
        table = pl.read_parquet(file, columns=[*parts])
        names += ["/".join(row) for row in table.select(parts).iter_rows()]
    pictures = pictures_on_disk(folder)
    # Without a column of ids the pictures are called by the numbers of their rows.
    return pictures, [names[int(row)] for row in pictures.ids]

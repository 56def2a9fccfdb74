"""Examples of a run: which images are behind its findings, and where their files are."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa

from equipoise.core import Finding, Groups, Objects
from equipoise.core.files import read_regular, read_table, write_table
from equipoise.evidence.pictures import Files, Pictures, Rows, rows_of
from equipoise.evidence.predictions import file_name
from equipoise.stats.streams import stream

FOLDER = "examples"
"""Folder of a run with its examples."""
IMAGES = "images.parquet"
BOXES = "boxes.parquet"
GROUPS = "groups: "
"""What the columns of groups begin with; the name of the attributes follows."""
LEAST = "min_group_size"
"""Key of the file's metadata with the smallest group that the run compares."""
COLUMNS = {
    "place": pl.UInt32(),
    "subject": pl.String(),
    "outcome": pl.String(),
    "label": pl.String(),
    "score": pl.Float32(),
}
NO_ANSWER = "no answer"
"""Outcome of images that the model gives no answer for."""
LABELLED = ("true positive", "miss", NO_ANSWER)
"""Outcomes of images that have the label, whatever the model says of them."""
WRONG = ("false alarm", "miss")
_WRONG_AS = (
    pl.when(pl.col("outcome") == "false alarm")
    .then(pl.format("{}, predicted {}", "label", "subject"))
    .when(pl.col("outcome") == "miss")
    .then(pl.format("{}, predicted {}", "subject", "label"))
)
_WRONG_ONLY = pl.when(pl.col("outcome").is_in(WRONG)).then("outcome")
CAPTION = pl.coalesce(_WRONG_AS, _WRONG_ONLY, "label", "subject", "outcome")
"""What an image is and was taken for; its outcome where the model names no other label."""
CORNERS = ("left", "top", "right", "bottom")
# Texts repeat: a file has each once.
_SMALL = pl.col("subject", "outcome", "label").cast(pl.Categorical())
# Where a picture is: its file, relative to the run, and its row and column in a file of several.
_PLACE = {"file": pl.String(), "row": pl.UInt32(), "column": pl.String()}
# Images that are read together.
_ROWS = 1 << 16
_CROP = dict.fromkeys(CORNERS, pl.Int32())


def write_examples(
    run: Path,
    ids: Objects,
    groups: Sequence[Groups],
    pictures: Sequence[Pictures],
    rows: Mapping[str, pl.DataFrame],
    seed: int,
    boxes: pl.DataFrame | None = None,
) -> None:
    """Write the images of a run, and a table of examples for each model.

    Parameters
    ----------
    run : Path
        Folder that `new_run` yields.
    ids : ndarray of str objects, shape (n,)
    groups : sequence of Groups
        Groups of the n images, for each choice of attributes.
    pictures : sequence of Pictures
        Where the files are; paths are kept relative to the run. Without pictures the file
        has ids and groups.
    rows : mapping of str to polars.DataFrame
        By model, see `with_every_column`: `place` among `ids`, `subject`, `outcome`, `label` and
        `score`.
    seed : int
        Of the random order in which images are shown.
    boxes : polars.DataFrame, optional
        Boxes of labels, see `ImageSet`.
    """
    folder = run / FOLDER
    table = image_groups(ids, groups)
    if pictures:
        located = pl.concat(_located(picture_source, run) for picture_source in pictures)
        order = stream(seed, "examples").permutation(len(ids)).astype(np.uint32)
        columns = table.select("image_id").with_columns(pl.Series("order", order))
        columns = columns.join(located, on="image_id", how="left", maintain_order="left")
        table = columns.hstack(table.drop("image_id"))
    facts = {
        LEAST: str(min((groups_of_choice.min_size for groups_of_choice in groups), default=1)),
    }
    listed = table.to_arrow().replace_schema_metadata(facts)
    write_table(listed, folder / IMAGES, row_group_size=_ROWS)
    for model, examples in rows.items():
        write_table(examples.with_columns(_SMALL).to_arrow(), file_of(run, model))
    if boxes is not None:
        places = table.select("image_id", place=pl.int_range(pl.len(), dtype=pl.UInt32))
        right, bottom = pl.col("left") + pl.col("width"), pl.col("top") + pl.col("height")
        corners = boxes.with_columns(
            pl.col("label").cast(pl.Categorical), right=right, bottom=bottom
        )
        corners = corners.join(places, on="image_id").select("place", "label", *CORNERS)
        write_table(corners.sort("place", maintain_order=True).to_arrow(), folder / BOXES)


def relocate_files(old: Path, new: Path) -> None:
    """Write where the pictures of a run are, relative to the folder of its copy."""
    if not names_files(old):
        return
    images = read_table(old / FOLDER / IMAGES)
    paths = [
        None if path is None else os.path.relpath(old.resolve() / path, new.resolve())
        for path in images["file"].to_pylist()
    ]
    place = images.schema.get_field_index("file")
    field = images.schema.field(place)
    images = images.set_column(place, field, pa.array(paths, field.type))
    write_table(images, new / FOLDER / IMAGES, row_group_size=_ROWS)


def names_files(run: Path) -> bool:
    """Whether a run names the files of its images."""
    path = run / FOLDER / IMAGES
    return path.is_file() and "file" in pl.read_parquet_schema(path)


def groups_column(name: str) -> str:
    """Return the column of the groups of a name; Arrow's names can't have the character NUL."""
    return f"{GROUPS}{name}".replace("\0", "\N{REPLACEMENT CHARACTER}")


def image_groups(ids: Objects, groups: Sequence[Groups]) -> pl.DataFrame:
    """Return the ids of images, and a column with their group for each choice of attributes."""
    columns = {"image_id": pl.Series(ids.tolist(), dtype=pl.String)}
    for choice in groups:
        names = np.array([*choice.names, None], dtype=object)[choice.codes]
        column = pl.Series(names.tolist(), dtype=pl.String).cast(pl.Categorical)
        columns[groups_column(choice.name)] = column
    return pl.DataFrame(columns)


def images_behind(
    finding: Finding, images: pl.DataFrame, rows: pl.DataFrame | None
) -> pl.DataFrame:
    """Return the images behind a finding, one a row.

    Parameters
    ----------
    finding : Finding
    images : polars.DataFrame
        With `image_id` and columns of groups, see `image_groups`.
    rows : polars.DataFrame or None
        Examples of the finding's model, see `write_examples`; None: all images are behind it.

    Returns
    -------
    polars.DataFrame
        `image_id`, `group` (null in none, or if nothing is compared), and with examples `subject`,
        `outcome`, `label` and `score`.
    """
    name = groups_column(finding.groups)
    group = pl.col(name).cast(pl.String) if name in images.columns else pl.lit(None, pl.String)
    grouped = images.select("image_id", group.alias("group"))
    if rows is None:
        return grouped
    texts = pl.col("subject", "outcome", "label").cast(pl.String)
    rows = rows.with_columns(texts)
    of_subject = rows.filter(pl.col("subject") == finding.subject)
    # Of all classes together, a false alarm is there as a miss already.
    chosen = of_subject if of_subject.height else rows.filter(pl.col("outcome") != WRONG[0])
    return grouped[chosen["place"].to_numpy()].hstack(chosen.drop("place"))


def guidance_name(guidance: float | None) -> str:
    """Return the outcome of images that were generated at a strength of guidance."""
    if guidance is None or math.isnan(guidance):
        return "generated image"
    return f"guidance {guidance:g}"


def file_of(run: Path, model: str) -> Path:
    """Return the path of the examples of a model, whatever its name."""
    return run / FOLDER / "models" / file_name(model)


def with_every_column(rows: pl.DataFrame) -> pl.DataFrame:
    """Return examples with nulls in the columns that they lack."""
    missing = [pl.lit(None).alias(name) for name in COLUMNS if name not in rows.columns]
    kinds = [pl.col(name).cast(kind) for name, kind in COLUMNS.items()]
    return rows.with_columns(missing).select(kinds).with_columns(pl.col("score").fill_nan(None))


def _located(pictures: Pictures, run: Path) -> pl.DataFrame:
    """Return the path, row and crop of each picture."""
    folders: dict[str, str] = {}

    def near(path: str) -> str:
        folder, name = os.path.split(path)
        if folder not in folders:
            folders[folder] = os.path.relpath(folder or ".", run)
        return f"{folders[folder]}/{name}"

    source = pictures.source
    if not isinstance(source, Files | Rows):
        return pl.DataFrame(schema={"image_id": pl.String(), **_PLACE, **_CROP})
    addresses = map(source.address, range(len(pictures)))
    table = pl.DataFrame(
        [(near(path), row, column) for path, row, column in addresses], _PLACE, orient="row"
    ).insert_column(0, pl.Series("image_id", pictures.ids.tolist(), pl.String))
    if pictures.crops is None:
        return table.with_columns(pl.lit(None, kind).alias(name) for name, kind in _CROP.items())
    return table.hstack(pl.DataFrame(pictures.crops, [*CORNERS]).cast(_CROP))  # type: ignore[arg-type]


@dataclass(frozen=True)
class _Kept:
    """Pictures where a run says they are: `file`, `row` and `column` of each."""

    run: Path
    table: pl.DataFrame

    def read(self, place: int) -> bytes:
        """Return the bytes of one picture."""
        file, row, column = self.table.row(place)
        if file is None:
            raise OSError("the run doesn't name the image's file")
        if row is None:
            return read_regular(str(self.run / file))
        return rows_of([self.run / file], column).take([row]).read(0)

    def where(self, place: int) -> str:
        """Return the file and row of one picture."""
        file, row, _ = self.table.row(place)
        return f"{self.run / (file or '')}" + ("" if row is None else f", row {row}")

    def take(self, places: Sequence[int]) -> _Kept:
        """Return some of the pictures."""
        return _Kept(self.run, self.table[[*places]])


def read_pictures(run: Path, places: Sequence[int] | None = None) -> Pictures:
    """Return the sources of some or all pictures of a run.

    Parameters
    ----------
    run : Path
        With the images that `write_examples` wrote.
    places : sequence of int, optional
        Sorted rows of the images.

    Raises
    ------
    OSError
        If the run lists no images.
    """
    table = pl.scan_parquet(run / FOLDER / IMAGES, row_index_name="place")
    table = table.select("place", "image_id", *_PLACE, *_CROP)
    if places is None:
        places_and_files = table.collect()
    else:
        # Of a million images those that are read together are in memory, and no more.
        starts = sorted({place // _ROWS * _ROWS for place in places})
        chosen = pl.col("place").is_in([*places])
        parts = (table.slice(start, _ROWS).filter(chosen).collect() for start in starts)
        places_and_files = pl.concat([table.clear().collect(), *parts])
    cut = places_and_files.select(CORNERS)
    n_crops = cut["left"].count()
    # An image without a file has no crop, either, and can't be read.
    crops = cut.fill_null(0).cast(pl.Int64).to_numpy() if n_crops else None
    ids = places_and_files["image_id"].to_numpy()
    return Pictures(str(run), ids, _Kept(run, places_and_files.select(*_PLACE)), crops)

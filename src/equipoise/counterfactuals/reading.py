"""Generated images: the rows, files and pictures of a finished generation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from equipoise.core import DataError, Facts
from equipoise.core.files import read_table
from equipoise.counterfactuals.parts import COLUMNS
from equipoise.evidence import new_run
from equipoise.evidence.pictures import Pictures, rows_of
from equipoise.evidence.store import input_of, read_manifest, read_rows

TABLE = "images.parquet"


@dataclass(frozen=True, eq=False)
class Generated:
    """Images of prompts or of caption sets.

    Attributes
    ----------
    folder : Path
        Where they lie: ``<store>/generations/<key>``.
    table : pyarrow.Table
        One row per requested image, none dropped: `image_id`, `caption_id` (of sets) or
        `prompt_id`, `prompt`, `set` (null without), `candidate` (from 0), `seed`, `shared` and
        `shared_self` (shares of the steps; null without control), `base` (the caption whose
        attention the others share), `state` (``image``, ``refused`` or ``failed``), `reason`,
        and the other columns of the prompts or captions.
    pictures : Pictures
        Those with the state ``image``, by `image_id`.
    info : mapping
        Facts of the model.
    inputs : mapping
        The images as an input of an audit: `sha256`, `bytes`, `rows`.
    computed : int
        Images that this run computed; 0 when all were there.
    """

    folder: Path
    table: pa.Table
    pictures: Pictures
    info: Facts
    inputs: Mapping[str, Facts]
    computed: int = 0


def read_generated(folder: Path | str) -> Generated:
    """Read the images that `generate_prompts` or `generate_sets` made.

    Parameters
    ----------
    folder : Path or str
        A folder of a store, ``<store>/generations/<key>``.

    Returns
    -------
    Generated

    Raises
    ------
    DataError
        When there is no such folder, or the generation is not finished.
    RunError
        When a part is missing or damaged.
    """
    folder = Path(folder)
    manifest = read_manifest(folder)
    paths = [folder / part for part in manifest.get("parts", ())]
    if not paths or not manifest.get("whole"):
        raise DataError(
            "the generation was not finished", file=str(folder), fix="run the generation to its end"
        )
    try:
        table = read_table(folder / TABLE)
    except (OSError, pa.ArrowException):
        raise DataError(
            "it is missing or damaged", file=str(folder / TABLE), fix="run the generation again"
        ) from None
    return generated(folder, paths, table, manifest.get("model", {}))


def generated(
    folder: Path, paths: Sequence[Path], table: pa.Table, info: Facts, computed: int = 0
) -> Generated:
    """Return the images in the parts of a folder, sorted by id."""
    rows = read_rows(paths, COLUMNS.names)
    ids = rows["image_id"].to_numpy()
    made = np.flatnonzero(pc.equal(rows["state"], "image").to_numpy())
    order = made[np.argsort(ids[made])]
    pictures = Pictures(str(folder), ids[order], rows_of(paths, "image").take(order.tolist()))
    inputs = {f"generations/{folder.name}": input_of(paths, rows.num_rows)}
    return Generated(folder, table, pictures, info, inputs, computed)


def join_parts(rows: pa.Table, request: pa.Table, id: str) -> pa.Table:  # noqa: A002
    """Return the rows of parts, in the order of the prompts, with the prompts' own columns."""
    places = pc.index_in(rows["prompt_id"], value_set=request[id].combine_chunks()).to_numpy()
    order = np.lexsort([rows["candidate"].to_numpy(), places])
    table = rows.take(pa.array(order))
    names = [id if name == "prompt_id" else name for name in table.column_names]
    table = table.rename_columns(names)
    for name in request.column_names:
        if name not in names:
            table = table.append_column(name, request[name].take(pa.array(places[order])))
    return table


def export_images(generated: Generated, folder: Path, *, overwrite: bool = False) -> int:
    """Write images as PNG files, and their table as `metadata.csv`.

    The folder appears when it is whole. The "imagefolder" of Hugging Face's datasets reads it.

    Parameters
    ----------
    generated : Generated
    folder : Path
        Must not exist, or be empty.
    overwrite : bool
        Replace an earlier export, if no other file lies in its folder.

    Returns
    -------
    int
        How many images were written.

    Raises
    ------
    RunError
        When the folder is taken, or cannot be written.
    """
    names: dict[str, str] = {}
    with new_run(folder, overwrite=overwrite) as partial:
        (partial / "images").mkdir()
        for place, image in enumerate(generated.pictures.ids.tolist()):
            names[image] = f"images/{place:08d}.png"
            (partial / names[image]).write_bytes(generated.pictures.read(place))
        files = [names.get(image) for image in generated.table["image_id"].to_pylist()]
        table = generated.table.add_column(0, "file_name", pa.array(files, pa.string()))
        pyarrow.csv.write_csv(table, partial / "metadata.csv")
    return len(names)

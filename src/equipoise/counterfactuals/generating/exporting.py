"""Images as files in a folder, with their table: for people, and for other programs."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from equipoise.counterfactuals.generating.generated import Generated
from equipoise.counterfactuals.ids import word_id
from equipoise.evidence import new_run

TABLE = "metadata.csv"
_LONGEST = 150


def export_images(generated: Generated, folder: Path, *, overwrite: bool = False) -> int:
    """Write images as PNG files, and what is known of them as `metadata.csv`.

    The folder appears when it is whole. `read_generated` reads it, and so does the "imagefolder"
    of Hugging Face's datasets.

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
    names = _names(generated.pictures.ids.tolist())
    with new_run(folder, overwrite=overwrite) as partial:
        for place, name in enumerate(names.values()):
            path = partial / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(generated.pictures.read(place))
        files = [names.get(one) for one in generated.table["image_id"].to_pylist()]
        table = generated.table.add_column(0, "file_name", pa.array(files, pa.string()))
        pyarrow.csv.write_csv(_plain(table), partial / TABLE)
    return len(names)


def _names(ids: list[str]) -> dict[str, str]:
    """Return a file for each id: its words, or a number where these are no fit name."""
    taken: set[str] = set()
    names = {}
    for place, one in enumerate(ids):
        parts = [part for part in word_id(one.split("/")).split("/") if part]
        name = "/".join(["images", *parts]) + ".png"
        if not parts or name in taken or len(name.encode()) > _LONGEST:
            name = f"images/{place:08d}.png"
        taken.add(name)
        names[one] = name
    return names


def _plain(table: pa.Table) -> pa.Table:
    """Return a table that CSV can hold: numbers and texts only."""
    columns = {}
    for name in table.column_names:
        column = table[name]
        kind = column.type
        simple = pa.types.is_string(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)
        columns[name] = column if simple else pc.cast(column, pa.string())
    return pa.table(columns)

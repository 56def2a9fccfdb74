"""Write the sets that are kept as a data set: a table and a folder of pictures."""

from __future__ import annotations

import shutil
import tempfile
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from equipoise.core import RunError
from equipoise.core.files import write_table
from equipoise.counterfactuals.filters.filtered import Filtered
from equipoise.evidence.decoding import decode
from equipoise.evidence.pictures import Pictures

TABLE, PICTURES = "images.parquet", "pictures"
_PNG = b"\x89PNG\r\n\x1a\n"


def write_sets(filtered: Filtered, pictures: Pictures, folder: Path) -> int:
    """Write the images of the kept candidates, and a table that names them.

    Parameters
    ----------
    filtered : Filtered
    pictures : Pictures
        Those of the candidates, by `image_id`.
    folder : Path
        Left as it is where it is there already. It gets `images.parquet`: `image_id`, `file`
        (inside the folder), `set` (the candidate), `caption_set`, and the columns of the
        candidates; and `pictures/*.png`.

    Returns
    -------
    int
        Images of the data set.

    Raises
    ------
    RunError
        When the folder cannot be written.
    """
    candidates = filtered.candidates
    rows = np.flatnonzero(filtered.kept[candidates.candidate])
    if (folder / TABLE).is_file():
        return len(rows)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        work = Path(
            tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".partial", dir=folder.parent)
        )
    except OSError as error:
        raise RunError(f"{folder}: cannot be written ({error.strerror}). To do: free it.") from None
    try:
        _write(filtered, pictures, rows, work)
        work.rename(folder)
    except OSError as error:
        raise RunError(f"{folder}: cannot be written ({error.strerror}). To do: free it.") from None
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return len(rows)


def _write(filtered: Filtered, pictures: Pictures, rows: Any, work: Path) -> None:
    candidates = filtered.candidates
    (work / PICTURES).mkdir()
    place = {name: index for index, name in enumerate(pictures.ids.tolist())}
    files = []
    for number, row in enumerate(rows.tolist()):
        file = f"{PICTURES}/{number:07d}.png"
        image = candidates.columns["image_id"][row]
        (work / file).write_bytes(as_png(pictures.read(place[image])))
        files.append(file)
    named = {
        "image_id": candidates.columns["image_id"][rows],
        "file": np.array(files, dtype=object),
        "set": np.array(candidates.names, dtype=object)[candidates.candidate[rows]],
        "caption_set": candidates.columns["set"][rows],
    }
    left = {"state", "reason", *named}
    more = {name: one[rows] for name, one in candidates.columns.items() if name not in left}
    table = pa.table({name: pa.array(one.tolist()) for name, one in {**named, **more}.items()})
    write_table(table, work / TABLE)


def as_png(data: bytes) -> bytes:
    """Return a picture's bytes as PNG: as they are where they are one."""
    if data.startswith(_PNG):
        return data
    from PIL import Image

    buffer = BytesIO()
    Image.fromarray(decode(data)).save(buffer, "PNG")
    return buffer.getvalue()

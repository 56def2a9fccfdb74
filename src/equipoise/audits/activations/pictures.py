"""Overlays of maps on the first images of every group, for the report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from equipoise.audits.activations.loading import boxes_of
from equipoise.core.groups import Groups
from equipoise.data import Items, load_items

if TYPE_CHECKING:
    from equipoise.audits.activations.config import Config
    from equipoise.evidence.pictures import Pictures


def overlays_of(
    maps: pa.Table, grid: tuple[int, int], pictures: Pictures, config: Config, base: Path
) -> pa.Table:
    """Lay maps over the first images of every group, with the outlines of all regions.

    Regions that are to be blurred are; an image without one of them is blurred as a whole.

    Parameters
    ----------
    maps : pyarrow.Table
        `id`, `map` and `frame` of every image with a map.
    grid : (int, int)
        Rows and columns of a map.
    pictures : Pictures
    config : Config
        How many of each group, which regions, and what is blurred.
    base : Path

    Returns
    -------
    pyarrow.Table
        `image_id` and `image`, a JPEG each.
    """
    from equipoise.audits.pictures.known import known
    from equipoise.evidence.decoding import decode
    from equipoise.explain.blurring import WHOLE
    from equipoise.explain.frames import framed
    from equipoise.explain.overlays import overlay

    found = known(config.data.images, base, columns=config.data.columns)
    items = load_items(found.items.source(base, config.data.columns), what="images")
    places = {name: row for row, name in enumerate(maps["id"].to_pylist())}
    rows = {name: row for row, name in enumerate(items.ids.tolist())}
    where = {name: row for row, name in enumerate(pictures.ids.tolist())}
    boxes = {name: boxes_of(items, region) for name, region in config.data.regions.items()}
    made = []
    for name in _first(items, [*places], config):
        row = maps.slice(places[name], 1).to_pylist()[0]
        crop = None if pictures.crops is None else pictures.crops[where[name]]
        image = decode(pictures.read(where[name]), crop=crop)
        frame = np.array([row["frame"]])
        lines = {of: framed(box[rows[name]][None], frame)[0] for of, box in boxes.items()}
        hidden = [WHOLE] if config.blur == "all" else [lines[of] for of in config.blur]
        map_ = np.array(row["map"], dtype=np.float32).reshape(grid)
        laid = overlay(image, map_, row["frame"], [*lines.values()], hidden)
        made.append({"image_id": name, "image": laid})
    schema = pa.schema([("image_id", pa.string()), ("image", pa.binary())])
    return pa.Table.from_pylist(made, schema)


def _first(items: Items, have: list[str], config: Config) -> list[str]:
    """Return the first images of every group that have a map, each once."""
    known, chosen = set(have), dict[str, None]()
    ids = items.ids.tolist()
    for attributes in config.data.groups:
        groups = Groups.of({name: items.columns[name] for name in attributes})
        for code in range(len(groups)):
            of_group = [ids[row] for row in np.flatnonzero(groups.codes == code).tolist()]
            chosen |= dict.fromkeys([one for one in of_group if one in known][: config.gallery])
    return [*chosen]

"""Small valid files of every format that equipoise reads, each with its public reader."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
from PIL import Image
from safetensors.numpy import save_file

from equipoise.audits import load_config
from equipoise.data import (
    ArraySource,
    ItemSource,
    find_format,
    load_items,
    load_vectors,
    read_table,
)
from equipoise.evidence import decode
from tests import image_files as samples

_ROWS = pl.DataFrame(
    {
        "id": [f"image {row}" for row in range(9)],
        "gender": ["woman", "man", None] * 3,
        "score": [row / 8 for row in range(9)],
    }
)
_VECTORS = np.random.default_rng(0).normal(size=(9, 4)).astype(np.float32)
_PIXELS = np.random.default_rng(1).integers(0, 256, (24, 20, 3), dtype=np.uint8)
_CONFIG = """\
audit: predictions
data:
  table: labels.csv
  id: image
  target: label
  groups: [gender]
models:
  mine: {table: "model.csv", prediction: gender}
"""


_Use = Callable[[Path], object]


@dataclass(frozen=True)
class Format:
    """A format: how a valid sample is written into a folder, and how the folder is read."""

    name: str
    write: _Use
    read: _Use


def formats() -> dict[str, Format]:
    """Return every format by name."""
    listed = [*_tables(), *_arrays(), *_texts(), *_data_sets(), *_pictures()]
    return {form.name: form for form in listed}


def _in_file(name: str, file: str, write: _Use, read: _Use) -> Format:
    """Return a format whose sample is one file."""
    return Format(name, lambda folder: write(folder / file), lambda folder: read(folder / file))


def _tables() -> Iterator[Format]:
    read = partial(read_table, texts=("id", "gender"), numbers=("score",))
    yield _in_file("CSV", "t.csv", _ROWS.write_csv, read)
    yield _in_file("TSV", "t.tsv", partial(_ROWS.write_csv, separator="\t"), read)
    yield _in_file("JSON lines", "t.jsonl", _ROWS.write_ndjson, read)
    yield _in_file("Parquet", "t.parquet", _ROWS.write_parquet, read)


def _arrays() -> Iterator[Format]:
    def read(path: Path, **more: Any) -> object:
        items = load_items(ItemSource(_ROWS, "id"))
        return load_vectors(ArraySource(path, **more), items)

    yield _in_file("npy", "v.npy", lambda path: np.save(path, _VECTORS), read)
    ids = np.array(_ROWS["id"].to_list())
    for name, save in (("npz", np.savez), ("npz, compressed", np.savez_compressed)):
        named = partial(read, array="v", ids="ids")
        yield _in_file(name, "v.npz", partial(save, v=_VECTORS, ids=ids), named)
    vectors = {"v": _VECTORS, "w": _VECTORS[0]}
    yield _in_file("safetensors", "v.safetensors", partial(save_file, vectors), read)


def _texts() -> Iterator[Format]:
    yield _in_file("YAML config", "c.yaml", lambda path: path.write_text(_CONFIG), load_config)


def _data_sets() -> Iterator[Format]:
    with TemporaryDirectory() as scratch:
        for one in samples.SAMPLES:
            written = one.write(Path(scratch), None)
            yield Format(
                f"{one.format}, {one.name}",
                partial(_write, one),
                partial(_load, one, written, Path(scratch)),
            )


def _write(one: samples.Sample, folder: Path) -> object:
    return one.write(folder, None)


def _load(one: samples.Sample, written: Any, scratch: Path, folder: Path) -> object:
    """Load a sample from a folder, by the names that its files have in another."""
    files = written if isinstance(written, dict) else {"": written}
    placed = {role: folder / path.relative_to(scratch) for role, path in files.items()}
    return find_format(one.format).load(placed.get("", placed), **one.options)


def _pictures() -> Iterator[Format]:
    colours = Image.fromarray(_PIXELS)
    grey = Image.fromarray(_PIXELS[..., 0].astype(np.uint16) * 257)
    clear = Image.fromarray(np.dstack([_PIXELS, _PIXELS[..., 0]]))
    yield _picture("PNG", colours)
    yield _picture("PNG, 16 bits", grey)
    yield _picture("PNG, palette", colours.quantize(8), transparency=3)
    yield _picture("PNG, animated", clear, save_all=True, append_images=[clear.rotate(180)])
    yield _picture("JPEG", colours, exif=_turned())
    yield _picture("JPEG, progressive", colours, progressive=True)
    yield _picture("JPEG, CMYK", colours.convert("CMYK"))
    yield _picture("TIFF", colours)
    yield _picture("TIFF, LZW", clear, compression="tiff_lzw")
    yield _picture("TIFF, 16 bits", grey, save_all=True, append_images=[grey])
    yield _picture("WebP", colours, exif=_turned())
    yield _picture("WebP, lossless", clear, lossless=True)
    yield _picture("GIF", colours.quantize(8), save_all=True, append_images=[colours])
    yield _picture("BMP", colours)
    yield _picture("PPM", colours)
    yield _picture("JPEG 2000", colours)
    yield _picture("AVIF", colours)


def _turned() -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = 6
    return exif


def _picture(name: str, image: Image.Image, **more: Any) -> Format:
    """Return a format that Pillow knows by the first words of its name."""
    kind = name.partition(",")[0].replace(" ", "")
    write = partial(image.save, format=kind, **more)
    return _in_file(name, "picture", write, lambda path: decode(path.read_bytes()))

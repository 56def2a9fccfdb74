"""Small valid files of every format that equipoise reads, each with its public reader."""

from __future__ import annotations

import json
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
from equipoise.config.images import leave_out_images
from equipoise.core import DataError
from equipoise.data import (
    ArraySource,
    ItemSource,
    count_captions,
    find_format,
    load_items,
    load_vectors,
    read_class_mapping,
    read_table,
)
from equipoise.evidence import decode
from equipoise.mitigate.neurons.recording import read_dictionary
from equipoise.models.edits import Site, UnitEdit, read_edit
from equipoise.review.labels import read_answers
from equipoise.review.wordnet import read_senses
from equipoise.studies.study import study_files
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
    listed = [
        *_tables(),
        *_arrays(),
        *_words(),
        *_texts(),
        *_configs(),
        *_models(),
        *_data_sets(),
        *_rows_of_pictures(),
        *_pictures(),
    ]
    return {form.name: form for form in listed}


def _in_file(name: str, file: str, write: _Use, read: _Use) -> Format:
    """Return a format whose sample is one file."""
    return Format(name, lambda folder: write(folder / file), lambda folder: read(folder / file))


def _tables() -> Iterator[Format]:
    read = partial(read_table, texts=("id", "gender"), numbers=("score",))
    yield _in_file("CSV", "t.csv", _ROWS.write_csv, read)
    yield _in_file("TSV", "t.tsv", partial(_ROWS.write_csv, separator="\t"), read)
    yield _in_file("JSON lines", "t.jsonl", _ROWS.write_ndjson, read)
    yield _in_file("JSON list", "t.json", lambda path: path.write_text(_ROWS.write_json()), read)
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
    lists = _ROWS.select("id", v=_VECTORS)
    yield _in_file("Parquet, vectors", "v.parquet", lists.write_parquet, read)
    for ending, write in (("txt", _write_lines), ("csv", _write_ids), ("npy", _save_ids)):
        yield Format(f"ids, {ending}", partial(_write_vectors, ending, write), _read_ids(ending))


def _write_lines(path: Path) -> object:
    return path.write_text("\n".join([*_ROWS["id"], ""]))


def _write_ids(path: Path) -> object:
    return _ROWS.select("id").write_csv(path)


def _save_ids(path: Path) -> None:
    np.save(path, np.array(_ROWS["id"].to_list()))


def _write_vectors(ending: str, write: _Use, folder: Path) -> None:
    np.save(folder / "v.npy", _VECTORS)
    write(folder / f"ids.{ending}")


def _read_ids(ending: str) -> _Use:
    def read(folder: Path) -> object:
        source = ArraySource(folder / "v.npy", ids=folder / f"ids.{ending}")
        return load_vectors(source, load_items(ItemSource(_ROWS, "id")))

    return read


def _words() -> Iterator[Format]:
    words = ["he", "she", "New York", "nurse"]
    items = load_items(ItemSource(pl.DataFrame({"id": words}), "id"))
    lines = [
        " ".join([word, *map(str, vector)])
        for word, vector in zip(words, _VECTORS[:4].tolist(), strict=True)
    ]
    header = f"{len(lines)} {_VECTORS.shape[1]}"
    for name, written in (("GloVe", lines), ("word2vec", [header, *lines])):
        text = "\n".join([*written, ""])
        yield _in_file(
            f"vectors of words, {name}",
            "words.vec",
            partial(_write_text, text),
            lambda path: load_vectors(ArraySource(path), items, max_unmatched=0.5),
        )


def _write_text(text: str, path: Path) -> object:
    return path.write_text(text, encoding="utf-8")


def _texts() -> Iterator[Format]:
    ids = np.array(["a", "b"], dtype=object)
    answers = [
        {"image_id": image, "question": "right", "answer": "yes", "labeller": "ann",
         "at": "2026-11-28T09:00:00Z"}
        for image in ids
    ]  # fmt: skip
    read = partial(read_answers, ids=ids, answers={"right": ("yes", "no")})
    for ending in ("json", "csv"):
        frame = pl.DataFrame(answers)
        text = json.dumps(answers) if ending == "json" else frame.write_csv()
        yield _in_file(
            f"answers, {ending}",
            f"answers.{ending}",
            partial(_write_text, text),
            lambda path: read([path]),
        )
    captions = json.dumps(samples.COCO_CAPTIONS)
    yield _in_file(
        "captions", "captions.json", partial(_write_text, captions),
        partial(count_captions, concepts={"a": ["giraffe"]}, groups={"b": ["woman"]}),
    )  # fmt: skip
    mapping = "label,class\ncat,animal\ndog,animal\n"
    yield _in_file("class mapping", "m.csv", partial(_write_text, mapping), read_class_mapping)
    yield _in_file(
        "list of ids", "ids.txt", _write_lines, lambda path: leave_out_images("blurred", file=path)
    )
    yield Format("WordNet", _write_wordnet, lambda folder: read_senses(folder, ["cup"]))


def _write_wordnet(folder: Path) -> None:
    gloss = "06 n 01 cup 0 001 @ 00001740 n 0000 | a small open container"
    _write_text(f"00000000 {gloss}  \n", folder / "data.noun")
    _write_text("cup n 1 1 @ 1 1 00000000  \n", folder / "index.noun")


def _configs() -> Iterator[Format]:
    yield _in_file("YAML config", "c.yaml", lambda path: path.write_text(_CONFIG), load_config)
    for name in ("hall-coco", "chen-dou", "text-to-image"):
        yield Format(
            f"study, {name}",
            partial(_write_study, name),
            lambda folder: load_config(folder / "study.yaml"),
        )


def _write_study(name: str, folder: Path) -> None:
    path = folder / "study.yaml"
    _write_text(study_files(name, path, None)[path], path)


def _models() -> Iterator[Format]:
    numbers = np.eye(2, dtype=np.float32)
    site = Site("encoder.0", units=(1, 2), means=(0.5, 1.0), read=numbers, write=numbers)
    edit = UnitEdit("hf:model", None, "0" * 64, "remove", (site,))
    yield _in_file("edited model", "edit.json", edit.write, read_edit)
    weights = {"W_enc": numbers, "W_dec": numbers}
    for ending, write in (
        ("npz", lambda path: np.savez_compressed(path, W_enc=numbers, W_dec=numbers)),
        ("safetensors", partial(save_file, weights)),
    ):
        read = partial(read_dictionary, layer="encoder.0")
        yield _in_file(f"sparse autoencoder, {ending}", f"sae.{ending}", write, read)


def _rows_of_pictures() -> Iterator[Format]:
    rows = [("cifar", "test_batch/00001"), ("dsprites", "05")]
    for name, picture in rows:
        sample = samples.sample(name)
        yield Format(f"{name}, a picture", partial(_write, sample), partial(_picture_of, picture))


def _picture_of(name: str, folder: Path) -> object:
    file = folder / "d.npz"
    form, path = ("dsprites", file) if file.exists() else ("cifar", folder)
    rows = find_format(form).rows
    pictures = rows(path) if rows else None
    try:
        return pictures.read(name) if pictures and pictures.read else None
    except OSError as error:  # whoever reads pictures reports their ids
        raise DataError(str(error), file=str(folder)) from error


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

"""CIFAR-10 and CIFAR-100: small images in binary batches.

Source: cs.toronto.edu/~kriz/cifar.html, "binary version": `cifar-10-batches-bin` with
`data_batch_1.bin` to `5`, `test_batch.bin` and `batches.meta.txt`; `cifar-100-binary` with
`train.bin`, `test.bin`, `coarse_label_names.txt` and `fine_label_names.txt`. A record has the
numbers of its labels, a byte each, and 1024 bytes each of red, green and blue, row by row.
"""

import errno
from functools import partial
from pathlib import Path

import numpy as np

from equipoise.core import DataError
from equipoise.core.types import FileFacts
from equipoise.data.files import hash_parts, read_text, read_whole, split_lines
from equipoise.data.formats.reading import RowPictures, data_format
from equipoise.data.image_set import ImageRecords, ImageSet, image_set
from equipoise.data.problems import show

_SIDE = 32
_PIXELS = 3 * _SIDE * _SIDE
_NAMES = {"batches.meta.txt": "class", "fine_label_names.txt": "class",
          "coarse_label_names.txt": "coarse"}  # fmt: skip


def _picture(folder: Path, name: str) -> bytes:
    """Return an image, for example "test_batch/00012", as a PPM."""
    file, _, number = name.rpartition("/")
    size = _PIXELS + 1 + (folder / "fine_label_names.txt").is_file()
    with (folder / f"{file}.bin").open("rb") as opened:
        opened.seek(int(number) * size + size - _PIXELS)
        pixels = np.frombuffer(opened.read(_PIXELS), np.uint8)
    if len(pixels) < _PIXELS:
        raise OSError(errno.EIO, "the record is cut off", str(folder / f"{file}.bin"))
    return b"P6 32 32 255\n" + pixels.reshape(3, -1).T.tobytes()


def _class_names(path: Path) -> list[str]:
    """Return the name of each class: its line tells its number."""
    text, _ = read_text(path, ".txt", "the name of a class in every line")
    names = [line.strip().replace("_", " ") for line in split_lines(text.rstrip())]
    for row, name in enumerate(names, 1):
        if not name or name in names[: row - 1]:
            raise DataError(
                f"the name of the class is {show(name)}",
                file=str(path),
                row=row,
                expected="a name in every line, each once",
                fix="download the binary version of CIFAR again, or give each class its own name",
            )
    return names


@data_format("cifar", rows=lambda path: RowPictures(read=partial(_picture, path)))
def read_cifar(path: Path | str) -> ImageSet:
    """Read the binary batches of CIFAR-10 or CIFAR-100; never the pickles.

    Parameters
    ----------
    path : path
        The folder of the binary version.

    Returns
    -------
    ImageSet
        With the columns `class`, `split` (train or test) and, of CIFAR-100, `coarse`; "_" in names
        is a space. Ids are the batch and the number of the record, as in "test_batch/00012".
        Counts: "images".

    Raises
    ------
    DataError
        When a file is missing or cut off, a label has no name, or two have the same.
    """
    folder = Path(path)
    names: dict[str, list[str]] = {}
    for file_name, column in _NAMES.items():
        if (folder / file_name).is_file():
            names[column] = _class_names(folder / file_name)
    files = sorted(folder.glob("*.bin"))
    if not names or not files:
        raise DataError(
            "there are no binary batches in this folder",
            file=str(path),
            expected="cifar-10-batches-bin or cifar-100-binary, with the names of the classes",
            fix="download the binary version of CIFAR; the Python version is pickles",
        )
    labels = ("coarse", "class") if len(names) > 1 else ("class",)
    image_records = ImageRecords([], {name: [] for name in ("split", *labels)})
    inputs: dict[str, FileFacts] = {}
    for file in files:
        content = read_whole(file, ".bin", "records of CIFAR")
        size = _PIXELS + len(labels)
        records, trailing_bytes = divmod(len(content), size)
        rows = np.frombuffer(content, np.uint8, records * size).reshape(records, size)
        numbers = rows[:, : len(labels)]
        for place, name in enumerate(labels):
            wrong = np.flatnonzero(numbers[:, place] >= len(names[name]))
            if trailing_bytes or len(wrong):
                raise DataError(
                    "the file is cut off"
                    if trailing_bytes
                    else f"the label is {numbers[wrong[0], place]}",
                    file=str(file),
                    row=None if trailing_bytes else int(wrong[0]) + 1,
                    expected=f"whole records of labels below {len(names[name])}",
                    fix="download the binary version of CIFAR again",
                )
            image_records.columns[name] += np.array(names[name])[numbers[:, place]].tolist()
        image_records.ids += [f"{file.stem}/{number:05}" for number in range(records)]
        split = "test" if file.stem.startswith("test") else "train"
        image_records.columns["split"] += [split] * records
        inputs[str(file)] = {**hash_parts([content]), "rows": records}
    return image_set(
        image_records,
        name=str(path),
        format="CIFAR",
        inputs=inputs,
        counts={"images": len(image_records.ids)},
    )

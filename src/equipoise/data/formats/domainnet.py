"""DomainNet: lists of photographs, sketches and drawings of 345 classes.

Source: ai.bu.edu/M3SDA: beside the folders of the six domains lie `clipart_train.txt`,
`clipart_test.txt` and so on. Each line is a path and the number of its class, such as
"clipart/aircraft_carrier/clipart_001_000018.jpg 0".
"""

from pathlib import Path

from equipoise.core import DataError
from equipoise.core.types import FileFacts
from equipoise.data.files import read_text, split_lines
from equipoise.data.formats.reading import data_format
from equipoise.data.image_set import ImageRecords, ImageSet, image_set
from equipoise.data.problems import show


@data_format("domainnet")
def read_domainnet(path: Path | str) -> ImageSet:
    """Read the lists of DomainNet.

    Parameters
    ----------
    path : path
        The folder that holds the lists, or one list.

    Returns
    -------
    ImageSet
        With the columns `domain`, `class` (the name of its folder), `number` (of the class) and
        `split` (train or test). Ids are the paths. Counts: "images", "classes", and "lists".

    Raises
    ------
    DataError
        When there is no list, a line is no path and number, an image is listed twice, or a class
        has two numbers.
    """
    place = Path(path)
    lists = [place] if place.is_file() else sorted(place.glob("*_t*.txt"))
    if not lists:
        raise DataError(
            "the file doesn't exist, or the folder has no list",
            file=str(path),
            expected="lists such as clipart_train.txt and clipart_test.txt",
            fix="name the folder that holds the lists of DomainNet",
        )
    images: dict[str, tuple[str, str, str, str]] = {}
    numbers: dict[str, str] = {}
    inputs: dict[str, FileFacts] = {}
    for file in lists:
        text, digest = read_text(file, ".txt", "a path and a number in every line")
        lines = split_lines(text.rstrip())
        inputs[str(file)] = {**digest, "rows": len(lines)}
        for row, line in enumerate(lines, 1):
            image, _, number = line.strip().rpartition(" ")
            domain, _, class_path = image.partition("/")
            name = class_path.partition("/")[0]
            wrong = not class_path or not number.isdecimal() or image in images
            if wrong or numbers.setdefault(name, number) != number:
                raise DataError(
                    f"the line is {show(line)}",
                    file=str(file),
                    row=row,
                    expected="'domain/class/file number', each file once, one number a class",
                    fix="download the list again",
                )
            images[image] = (domain, name, number, file.stem.rpartition("_")[2])
    names = ("domain", "class", "number", "split")
    cells = zip(names, zip(*images.values(), strict=True), strict=True)
    return image_set(
        ImageRecords([*images], {name: [*column] for name, column in cells}), name=str(path),
        format="DomainNet", inputs=inputs,
        counts={"images": len(images), "classes": len(numbers), "lists": len(lists)},
    )  # fmt: skip

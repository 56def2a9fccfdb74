"""PATA (Protected Attribute Tag Association): tagged addresses of images.

Source: github.com/pata-fairness/pata_dataset: each line of `pata_fairness.files.lst` is
"scene_race_gender_age|address", with underscores inside some scenes; `pata_fairness.captions.json`
is a list of scenes with `short` (the scene), `long`, and captions under `pos` and `neg` by
`races`, `gender` and `age`. Last parts of addresses repeat, so they name no files.
"""

from hashlib import sha256
from pathlib import Path
from typing import Literal

from equipoise.core import DataError
from equipoise.data.files import read_text
from equipoise.data.formats.reading import data_format
from equipoise.data.image_set import ImageRecords, ImageSet, image_set
from equipoise.data.problems import show

_COLUMNS = ("scene", "race", "gender", "age", "url", "file")


@data_format("pata", file_column="file", file_names="stems")
def read_pata(path: Path | str, *, names: Literal["digests", "lines"] = "digests") -> ImageSet:
    """Read `pata_fairness.files.lst`.

    Parameters
    ----------
    path : path
    names : "digests" or "lines"
        What names the file of an image: the SHA-256 of its address in hexadecimal digits; or the
        number of its line, the first of equal ones, from 1.

    Returns
    -------
    ImageSet
        With the columns `scene`, `race`, `gender`, `age`, `url` and `file`, the name of its file
        without an ending; ids are the lines. Counts: "lines", "images", "repeated_lines", which
        are one image, and "repeated_urls": images whose address another has with other tags.

    Raises
    ------
    DataError
        When a line has no address or not four tags.
    """
    (text, digest), file = read_text(path, ".lst", "lines of tags and an address"), str(path)
    lines = [(row, line.strip()) for row, line in enumerate(text.split("\n"), 1) if line.strip()]
    fields_by_line: dict[str, list[str]] = {}
    for row, line in lines:
        if line in fields_by_line:
            continue
        tags, _, url = (part.strip() for part in line.partition("|"))
        name = str(row) if names == "lines" else sha256(url.encode()).hexdigest()
        # From the right, since "fashion_show" is one scene.
        fields_by_line[line] = [*tags.rsplit("_", 3), url, name]
        if len(fields_by_line[line]) != len(_COLUMNS) or not all(fields_by_line[line]):
            raise DataError(
                f"the line is {show(line)}",
                file=file,
                row=row,
                expected="'scene_race_gender_age|address'",
                fix="correct the line, or download the file again",
            )
    cells = [*fields_by_line.values()]
    return image_set(
        ImageRecords(
            [*fields_by_line],
            {name: [fields[place] for fields in cells] for place, name in enumerate(_COLUMNS)},
        ),
        name=file,
        format="PATA",
        inputs={file: {**digest, "rows": len(lines)}},
        counts={
            "lines": len(lines),
            "images": len(fields_by_line),
            "repeated_lines": len(lines) - len(fields_by_line),
            "repeated_urls": len(fields_by_line) - len({url for *_, url, _ in cells}),
        },
    )

"""PATA (Protected Attribute Tag Association): addresses of images by scene, race, gender and age.

Source: github.com/pata-fairness/pata_dataset: each line of `pata_fairness.files.lst` is
"scene_race_gender_age|address", with underscores inside some scenes; `pata_fairness.captions.json`
is a list of scenes with `short` (the scene), `long`, and captions under `pos` and `neg` by
`races`, `gender` and `age`.
"""

from __future__ import annotations

from pathlib import Path

from equipoise.core import DataError
from equipoise.data.files import hash_bytes, read_whole
from equipoise.data.formats.registry import data_format
from equipoise.data.formats.rows import utf8_text
from equipoise.data.image_set import Gathered, ImageSet, image_set
from equipoise.data.problems import show

_TAGS = ("scene", "race", "gender", "age")


@data_format("pata", file_column="url", file_names="addresses")
def read_pata(path: Path | str) -> ImageSet:
    """Read `pata_fairness.files.lst`.

    Parameters
    ----------
    path : path

    Returns
    -------
    ImageSet
        With the columns `scene`, `race`, `gender`, `age` and `url`; ids are the lines. Counts:
        "lines", "images", "repeated_lines", which are one image, and "repeated_urls": images
        whose address another has with other tags.

    Raises
    ------
    DataError
        When a line has no address or not four tags.
    """
    content, file = read_whole(Path(path), ".lst", "lines of tags and an address"), str(path)
    found: dict[str, dict[str, str]] = {}
    used = 0
    for row, text in enumerate(utf8_text(content, file).split("\n"), start=1):
        line = text.strip()
        tags, _, url = line.partition("|")
        # From the right, since "fashion_show" is one scene.
        parts = tags.rsplit("_", 3)
        if line and not (url.strip() and len(parts) == len(_TAGS) and all(parts)):
            raise DataError(
                f"the line is {show(line)}",
                file=file,
                row=row,
                expected="'scene_race_gender_age|address'",
                fix="correct the line, or download the file again",
            )
        if line:
            used += 1
            found[line] = dict(zip(_TAGS, parts, strict=True)) | {"url": url.strip()}
    columns = {name: [tags[name] for tags in found.values()] for name in (*_TAGS, "url")}
    counts = {
        "lines": used,
        "images": len(found),
        "repeated_lines": used - len(found),
        "repeated_urls": len(found) - len({*columns["url"]}),
    }
    gathered = Gathered([*found], {name: [*values] for name, values in columns.items()})
    inputs = {file: {**hash_bytes(content), "rows": used}}
    return image_set(gathered, name=file, format="PATA", inputs=inputs, counts=counts)

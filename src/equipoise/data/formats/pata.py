"""PATA (Protected Attribute Tag Association): addresses of images by scene, race, gender and age.

Source: github.com/pata-fairness/pata_dataset: each line of `pata_fairness.files.lst` is
"scene_race_gender_age|address", with underscores inside some scenes; `pata_fairness.captions.json`
is a list of scenes with `short` (the scene), `long`, and captions under `pos` and `neg` by
`races`, `gender` and `age`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from equipoise.core import DataError
from equipoise.data.files import hash_bytes, read_whole
from equipoise.data.formats.json_file import JsonFile, Record
from equipoise.data.formats.registry import data_format
from equipoise.data.formats.rows import utf8_text
from equipoise.data.image_set import Gathered, ImageSet, Places, image_set
from equipoise.data.problems import show

_TAGS = ("scene", "race", "gender", "age")
_ATTRIBUTES = {"races": "race", "gender": "gender", "age": "age"}
_CONNOTATIONS = {"pos": "positive", "neg": "negative"}


@dataclass(frozen=True)
class PataCaption:
    """A caption that fits every image of a scene, or would demean who is in it.

    Attributes
    ----------
    scene : str
    attribute : str
        What it is meant to test: "race", "gender" or "age".
    connotation : str
        "positive" or "negative".
    text : str
    """

    scene: str
    attribute: str
    connotation: str
    text: str


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


def read_pata_captions(path: Path | str) -> tuple[PataCaption, ...]:
    """Read `pata_fairness.captions.json`.

    Parameters
    ----------
    path : path

    Returns
    -------
    tuple of PataCaption
        Sorted by scene, attribute, connotation and text.

    Raises
    ------
    DataError
        When the file is cut off, lacks a key, has a value of a wrong type or a scene twice.
    """
    source, found = JsonFile(path), set()
    scenes = Places(source.name, "scene")
    for record in source.records():
        scene = record.text("short")
        scenes.add(scene, record.place)
        for key, connotation in _CONNOTATIONS.items():
            within = Record.of(source.name, f"{record.place}.{key}", record.need(key, "an object"))
            found |= {
                (scene, attribute, connotation, text)
                for list_key, attribute in _ATTRIBUTES.items()
                for text in within.texts(list_key)
            }
    return tuple(PataCaption(*one) for one in sorted(found))

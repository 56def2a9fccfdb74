"""The pictures of people that ship with the package, from the data set PAIRS.

`python -m tools.people PAIRS` reads the folder `data` of the repository of PAIRS, and writes the
pictures and their table into the package. `python -m tools.people PAIRS RUNS` audits all 200
pictures as they are, as the demonstration does with those that ship, and writes RUNS.
"""

import csv
import io
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from equipoise.cli.people_world import run_audits
from equipoise.core.writing import write
from equipoise.planted.people.project import FOLDER, IMAGES, PICTURES, copy_project

SCENES = {"occupations": 4, "status": 4, "potential_crime": 2}
"""Scenes of each topic that ship: a fifth of the data set's 20, 20 and 10, the first by name."""
ALL = {"occupations": 20, "status": 20, "potential_crime": 10}
GROUPS = {"black": "Black people", "white": "white people", "man": "men", "woman": "women"}
QUALITY = 80
# One file of the data set is called white_man1.png.
_NAME = re.compile(r"(?P<race>black|white)_(?P<gender>man|woman)\d*\.png")


def choose(pairs: Path, scenes: Mapping[str, int] = SCENES) -> Iterator[tuple[str, str, Path]]:
    """Yield the topic, the id and the source file of each picture of some scenes."""
    for topic, n_scenes in scenes.items():
        folders = sorted(folder for folder in (pairs / topic).iterdir() if folder.is_dir())
        for folder in folders[:n_scenes]:
            for source in sorted(folder.iterdir()):
                if name := _NAME.fullmatch(source.name):
                    yield topic, f"{folder.name}_{name['race']}_{name['gender']}", source


def write_pictures(
    pairs: Path, folder: Path, scenes: Mapping[str, int] = SCENES, *, shipped: bool = True
) -> None:
    """Write pictures and their table into a folder.

    Parameters
    ----------
    pairs, folder : Path
    scenes : mapping of str to int
        Topics to the number of scenes.
    shipped : bool
        Whether pictures become WebP, as those that ship. They keep their size: at 192 of 256
        pixels the detector finds half as many faces.
    """
    table, suffix = io.StringIO(), "webp" if shipped else "png"
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(("image_id", "file", "topic", "scene", "race", "gender"))
    for topic, image_id, source in choose(pairs, scenes):
        scene, race, gender = image_id.rsplit("_", 2)
        file = f"{image_id}.{suffix}"
        write(folder / PICTURES / file, compress(source) if shipped else source.read_bytes())
        words = [text.replace("_", " ") for text in (topic, scene)]
        writer.writerow((image_id, file, *words, GROUPS[race], GROUPS[gender]))
    write(folder / IMAGES, table.getvalue().encode())


def compress(source: Path) -> bytes:
    """Return a picture as WebP, at its own size."""
    from PIL import Image

    buffer = io.BytesIO()
    with Image.open(source) as image:
        image.convert("RGB").save(buffer, "WEBP", quality=QUALITY, method=6)
    return buffer.getvalue()


def audit_all(pairs: Path, folder: Path) -> None:
    """Run the demonstration's audits on all pictures, in a new folder."""
    copy_project(folder)
    write_pictures(pairs, folder, ALL, shipped=False)
    run_audits(folder)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        write_pictures(Path(sys.argv[1]), FOLDER)
    else:
        audit_all(Path(sys.argv[1]), Path(sys.argv[2]))

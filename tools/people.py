"""Choose and shrink the pictures of people that ship with the package, from the PAIRS data set.

`python -m tools.people PAIRS` reads a folder with the three topics of PAIRS (`data` of its
repository) and writes the pictures and their table into `src/equipoise/planted/people/project`.
"""

import csv
import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from equipoise.core.writing import write

FOLDER = Path(__file__).parents[1] / "src" / "equipoise" / "planted" / "people" / "project"
SCENES = {"occupations": 4, "status": 4, "potential_crime": 2}
"""Scenes of each topic: a fifth of the data set's 20, 20 and 10, the first by name."""
GROUPS = {"black": "Black people", "white": "white people", "man": "men", "woman": "women"}
QUALITY = 80
# One file of the data set is called white_man1.png.
_NAME = re.compile(r"(?P<race>black|white)_(?P<gender>man|woman)\d*\.png")


def choose(pairs: Path) -> Iterator[tuple[dict[str, str], Path]]:
    """Yield a row of the table and the source file of each picture that ships."""
    for topic, n_scenes in SCENES.items():
        scenes = sorted(folder for folder in (pairs / topic).iterdir() if folder.is_dir())
        for scene in scenes[:n_scenes]:
            for source in sorted(scene.iterdir()):
                if name := _NAME.fullmatch(source.name):
                    image_id = f"{scene.name}_{name['race']}_{name['gender']}"
                    row = {
                        "image_id": image_id,
                        "file": f"{image_id}.webp",
                        "topic": topic.replace("_", " "),
                        "scene": scene.name.replace("_", " "),
                        "race": GROUPS[name["race"]],
                        "gender": GROUPS[name["gender"]],
                    }
                    yield row, source


def compress(source: Path) -> bytes:
    """Return a picture as WebP, at its own size.

    A detector of faces needs their pixels: at 192 of 256 pixels it finds half as many.
    """
    from PIL import Image

    buffer = io.BytesIO()
    with Image.open(source) as image:
        image.convert("RGB").save(buffer, "WEBP", quality=QUALITY, method=6)
    return buffer.getvalue()


def main(pairs: Path) -> None:
    """Write the pictures and the table."""
    table = io.StringIO()
    rows = []
    for row, source in choose(pairs):
        write(FOLDER / "pictures" / row["file"], compress(source))
        rows.append(row)
    writer = csv.DictWriter(table, fieldnames=[*rows[0]], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write(FOLDER / "images.csv", table.getvalue().encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]))

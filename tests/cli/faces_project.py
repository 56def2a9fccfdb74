"""Drawn faces as one's own images, for the tests of `equipoise augment`."""

import csv

import numpy as np
from PIL import Image

from equipoise.planted.faces import draw_faces

CONFIG = """
images:
  biased: {table: biased.csv, root: photos}
  balanced: {table: balanced.csv, root: photos}
  test: {table: test.csv, root: photos}
path: file
label: tool
group: hair
faces: {columns: {left: left, top: top, right: right, bottom: bottom}}
size: 40
networks: [cnn]
repeats: 1
schedule: {epochs: 1, batch: 16}
replicates: 100
"""
FACES = next(line for line in CONFIG.splitlines() if line.startswith("faces:"))
SHARES = {"biased": (0.0, 0.25, 1.0, 1.0), "balanced": (0.5,) * 4, "test": (0.5,) * 4}
COLUMNS = ("image_id", "file", "tool", "hair", "left", "top", "right", "bottom")


def draw(folder):
    """Write three tables of 32 drawn faces, their pictures and the configuration."""
    (folder / "photos").mkdir()
    for seed, (name, shares) in enumerate(SHARES.items()):
        faces = draw_faces(32, long_hair=shares, seed=seed)
        rows = []
        for place, image in enumerate(faces.images):
            file = f"{name}-{place:02d}.png"
            picture = Image.fromarray(np.asarray(image)).resize((80, 60))
            picture.save(folder / "photos" / file)
            left, top, right, bottom = faces.boxes[place].tolist()
            box = [2 * left, 1.5 * top, 2 * right, 1.5 * bottom]
            rows.append([f"i{place:02d}", file, faces.labels[place], faces.groups[place], *box])
        write_rows(folder / f"{name}.csv", rows)
    (folder / "config.yaml").write_text(CONFIG)


def write_rows(path, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *rows])


def rows_of(path):
    return [*csv.reader(path.read_text().splitlines())][1:]


def call(folder):
    """The words of the command, into `run`."""
    return ("augment", str(folder / "config.yaml"), "--out", str(folder / "run"))

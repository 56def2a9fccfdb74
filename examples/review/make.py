"""Write the example's data: pictures of showers and sinks in two regions, and predictions.

    python examples/review/make.py

Planted: a third of the showers in Asia have a bucket in place of a shower head, as hardly any in
Europe do. The classifier takes most of them for sinks; it treats the regions alike otherwise.
"""

from pathlib import Path

import numpy as np
import polars as pl
from PIL import Image, ImageDraw

HERE = Path(__file__).resolve().parent
IMAGES, WIDTH, HEIGHT = 600, 48, 36
BUCKETS = {"Asia": 0.33, "Europe": 0.04}
MISSED = {"bucket": 0.75, "head": 0.06, "sink": 0.06}


def picture(rng: np.random.Generator, thing: str) -> Image.Image:
    """Draw a thing on a wall of tiles."""
    light = int(rng.integers(120, 230))
    image = Image.new("RGB", (WIDTH, HEIGHT), (light, light, min(255, light + 15)))
    draw = ImageDraw.Draw(image)
    for across in range(int(rng.integers(8)), WIDTH, 8):
        draw.line([(across, 0), (across, HEIGHT)], fill=(light - 25,) * 3)
    x, y = int(rng.integers(8, 24)), int(rng.integers(4, 12))
    if thing == "head":
        draw.ellipse([x, y, x + 14, y + 5], fill=(90, 90, 100))
        for drop in range(3):
            draw.line([(x + 3 + 4 * drop, y + 6), (x + 1 + 5 * drop, 34)], fill=(80, 130, 220))
    elif thing == "bucket":
        draw.polygon([(x, 18), (x + 16, 18), (x + 13, 33), (x + 3, 33)], fill=(200, 60, 50))
    else:
        draw.rectangle([x, 16, x + 20, 22], fill=(240, 240, 240), outline=(60, 60, 60))
        draw.line([(x + 10, 8), (x + 10, 16)], fill=(90, 90, 100), width=2)
    return image


def main() -> None:
    """Write the pictures and both tables."""
    rng = np.random.default_rng(3)
    (HERE / "photos").mkdir(exist_ok=True)
    rows = []
    for number in range(IMAGES):
        region = str(rng.choice([*BUCKETS]))
        label = str(rng.choice(["shower", "sink"]))
        thing = label
        if label == "shower":
            thing = "bucket" if rng.random() < BUCKETS[region] else "head"
        missed = rng.random() < MISSED[thing]
        said = {"shower": "sink", "sink": "shower"}[label] if missed else label
        name = f"{number:03d}.png"
        picture(rng, thing).save(HERE / "photos" / name)
        means = thing if label == "shower" else ""
        rows.append((name, label, region, means, float(rng.integers(1, 6)), said))
    columns = ["id", "label", "region", "water", "people_in_household", "said"]
    table = pl.DataFrame(rows, schema=columns, orient="row")
    table.drop("said").write_csv(HERE / "images.csv")
    table.select("id", "said").write_csv(HERE / "said.csv")


if __name__ == "__main__":
    main()

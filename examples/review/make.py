"""Write the example's data: pictures of showers and sinks in two regions, and predictions.

    python make.py
    python make.py label.html ann 0.02 answers-ann.json

The second form writes the answers of a labeller who errs for a share of the images of a page.

Planted: a third of the showers in Asia have a bucket in place of a shower head, as hardly any in
Europe do. The classifier takes most of them for sinks; it treats the regions alike otherwise. The
label is wrong for 12 % of the images of Asia and 3 % of those of Europe.
"""

import json
import sys
from pathlib import Path

import numpy as np
import polars as pl
from PIL import Image, ImageDraw

from equipoise.review import key_of

HERE = Path(__file__).resolve().parent
IMAGES, WIDTH, HEIGHT = 600, 48, 36
BUCKETS = {"Asia": 0.33, "Europe": 0.04}
MISLABELLED = {"Asia": 0.12, "Europe": 0.03}
MISSED = {"bucket": 0.75, "head": 0.06, "sink": 0.06}
OTHER = {"shower": "sink", "sink": "shower"}


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


def scene(rng: np.random.Generator, number: int) -> tuple[Image.Image, dict[str, object]]:
    """Return a picture and what the tables say of it, `truth` among it."""
    region, truth = str(rng.choice([*BUCKETS])), str(rng.choice([*OTHER]))
    thing = truth
    if truth == "shower":
        thing = "bucket" if rng.random() < BUCKETS[region] else "head"
    said = OTHER[truth] if rng.random() < MISSED[thing] else truth
    image = picture(rng, thing)
    label = OTHER[truth] if rng.random() < MISLABELLED[region] else truth
    probability = 0.55 + 0.44 * rng.random()
    return image, {
        "id": f"{number:03d}.png", "label": label, "region": region, "truth": truth,
        "water": thing if truth == "shower" else "", "people_in_household": rng.integers(1, 6),
        "said": said, "label_probability": probability if said == label else 1.0 - probability,
    }  # fmt: skip


def scenes() -> tuple[list[Image.Image], pl.DataFrame]:
    """Return all pictures and their table."""
    rng = np.random.default_rng(3)
    pictures, rows = zip(*(scene(rng, number) for number in range(IMAGES)), strict=True)
    return [*pictures], pl.DataFrame(rows)


def write_data() -> None:
    """Write the pictures and the tables."""
    (HERE / "photos").mkdir(exist_ok=True)
    pictures, table = scenes()
    for name, image in zip(table["id"], pictures, strict=True):
        image.save(HERE / "photos" / name)
    table.select("id", "label", "region", "water", "people_in_household").write_csv(
        HERE / "images.csv"
    )
    table.select("id", "said").write_csv(HERE / "said.csv")
    table.select("label_probability", image_id="id").write_csv(HERE / "scores.csv")


def write_answers(page: str, labeller: str, errors: float, file: str) -> None:
    """Write what a labeller says of the images of a page about the label."""
    text, table = Path(page).read_text(encoding="utf-8"), scenes()[1]
    data = json.loads(text.partition('json" id="data">')[2].partition("</script>")[0])
    right = {
        key_of(name): label == truth
        for name, label, truth in table.select("id", "label", "truth").iter_rows()
    }
    rng = np.random.default_rng(len(labeller))
    rows = [
        {
            "key": key, "question": data["question"],
            "answer": "yes" if right[key] ^ bool(rng.random() < errors) else "no",
            "labeller": labeller, "at": "2026-11-28T09:00:00Z",
        }
        for key, *_ in data["images"]
    ]  # fmt: skip
    if file.endswith(".csv"):
        pl.DataFrame(rows).write_csv(file)
    else:
        lines = ",\n".join(json.dumps(row) for row in rows)
        Path(file).write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        write_answers(sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4])
    else:
        write_data()

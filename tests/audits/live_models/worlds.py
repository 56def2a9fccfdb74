"""A small world on disk: scenes as PNG files, tables, and the shipped CLIP as a folder."""

import shutil

import numpy as np
import polars as pl
import yaml
from PIL import Image

from equipoise.planted.scenes.captions import neutral_prompts
from equipoise.planted.scenes.embed import WEIGHTS
from equipoise.planted.scenes.render import SUBJECTS
from equipoise.planted.scenes.sets import render_sets

CHOSEN = SUBJECTS[:4]


def make(root):
    """Write 96 pictures, `images.csv`, `queries.csv`, `labels.csv`, and the model `clip`."""
    scenes = render_sets(2, seed=3)
    table = scenes.table()
    rows = np.flatnonzero(np.isin(table["subject"], CHOSEN))
    (root / "pictures").mkdir(parents=True)
    for place in rows.tolist():
        picture = Image.fromarray(scenes.images[place])
        picture.save(root / "pictures" / f"{scenes.image_id[place]}.png")
    names = ("image_id", "set", "subject", "hue", "frame")
    images = pl.DataFrame({name: np.asarray(table[name])[rows] for name in names})
    images.with_columns(file=pl.col("image_id") + ".png").write_csv(root / "images.csv")
    flags = {subject: (images["subject"] == subject).cast(int) for subject in CHOSEN}
    images.select("image_id").with_columns(**flags).write_csv(root / "labels.csv")
    texts = [neutral_prompts(subject)[0] for subject in CHOSEN]
    ids = [f"q{place}" for place in range(len(CHOSEN))]
    queries = pl.DataFrame({"id": ids, "text": texts, "subject": [*CHOSEN]})
    queries.write_csv(root / "queries.csv")
    shutil.copytree(WEIGHTS / "clip-biased", root / "clip")


IMAGES = {"table": "images.csv", "id": "image_id", "path": "file", "root": "pictures"}
TEXTS = {"table": "queries.csv", "id": "id", "text": "text"}


def of_model(kind, model):
    return {
        "audit": kind,
        "models": {"m": model or {"model": "hf:clip"}},
        "resampling": {"replicates": 50, "permutations": 100},
    }


def retrieval(**model):
    return of_model("retrieval", model) | {
        "data": {"images": IMAGES, "groups": ["frame"], "subject": "subject", "sets": "set"},
        "queries": TEXTS | {"subject": "subject"},
        "ranking": {"k": 4, "curves": False},
    }


def diversity(**model):
    return of_model("diversity", model) | {
        "data": {"images": IMAGES, "sets": ["frame"]},
    }


def associations(**model):
    frames = {frame: {"images": {"frame": frame}} for frame in ("level", "upright")}
    targets = {subject: {"prompts": {"subject": subject}} for subject in CHOSEN}
    return of_model("associations", model) | {
        "data": {
            "images": IMAGES | {"kind": "image", "unit": "set"},
            "prompts": TEXTS | {"kind": "text"},
        },
        "sets": frames | targets,
        "measure": [
            {
                "metric": "association_score",
                "targets": [*CHOSEN],
                "attributes": ["level", "upright"],
                "modalities": ["ITP"],
            }
        ],
    }


def concepts(**model):
    return of_model("concepts", model) | {
        "data": {
            "images": IMAGES,
            "groups": ["frame"],
            "labels": {"file": "labels.csv"},
            "min_group_size": 5,
        },
        "choices": {"min_positives": 4},
    }


KINDS = {
    "retrieval": retrieval,
    "diversity": diversity,
    "associations": associations,
    "concepts": concepts,
}


def written(root, values, name="audit.yaml"):
    """Write a configuration beside the tables."""
    path = root / name
    path.write_text(yaml.safe_dump(values))
    return path

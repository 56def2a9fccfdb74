"""From pictures and a model to findings: the planted CLIP, sets as filters write them."""

from collections import Counter

import numpy as np
import polars as pl
import pytest
from PIL import Image

from equipoise import audits
from equipoise.planted.scenes.embed import WEIGHTS, embed_images, load_clip
from equipoise.planted.scenes.sets import render_sets

SUBJECTS = ("solid square", "solid triangle", "hollow house")
PREFIXES = ["A", "A picture of a", "this is a"]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Two sets of three subjects in a folder with a table, as sets that filters kept."""
    scenes = render_sets(2, seed=5)
    table = scenes.table()
    selected = np.isin(table["subject"], SUBJECTS)
    folder = tmp_path_factory.mktemp("sets")
    (folder / "pictures").mkdir()
    rows = []
    for number, place in enumerate(np.flatnonzero(selected).tolist()):
        file = f"pictures/{number:07d}.png"
        Image.fromarray(scenes.images[place]).save(folder / file)
        named = {name: str(table[name][place]) for name in ("set", "subject", "hue", "frame")}
        rows.append({"image_id": scenes.image_id[place], "file": file, **named})
    frame = pl.DataFrame(rows)
    frame.write_parquet(folder / "images.parquet")
    return folder, scenes.images[selected], frame


def values(folder, store, **changes):
    return {
        "audit": "counterfactuals",
        "data": {
            "images": {
                "table": str(folder / "images.parquet"), "id": "image_id", "path": "file",
                "root": str(folder),
            },
            "groups": [["hue", "frame"]],
        },
        "models": {"clip": {"model": f"hf:{WEIGHTS / 'clip-biased'}"}},
        "prefixes": PREFIXES,
        "extraction": {"store": str(store), "device": "cpu", "dtype": "float32"},
        "resampling": {"replicates": 40, "permutations": 60},
        **changes,
    }  # fmt: skip


@pytest.fixture(scope="module")
def result(world, tmp_path_factory):
    folder, _, _ = world
    store = tmp_path_factory.mktemp("store")
    return audits.run(audits.parse_config(values(folder, store)))


def hue_shares(result, subject):
    place = ("max_skew", subject, "hue × frame", "default")
    (finding,) = (
        f for f in result.findings if (f.metric, f.subject, f.groups, f.version) == place
    )  # fmt: skip
    shares = Counter()
    for estimate in finding.by_group:
        shares[estimate.levels[0]] += estimate.value
    return shares


def test_prompts_are_made_of_the_subjects_of_the_images(world, result):
    _, pixels, frame = world
    clip = load_clip("biased")
    vectors, place = embed_images(clip, pixels), frame["subject"].to_numpy()
    for subject in SUBJECTS:
        texts = clip.embed_texts([f"{prefix} {subject}" for prefix in PREFIXES])
        texts = texts / np.linalg.norm(texts, axis=1, keepdims=True)
        matching = place == subject
        first = np.argsort(-(vectors[matching] @ texts.mean(axis=0)), kind="stable")[:12]
        hues = frame["hue"].to_numpy()[matching][first]
        for hue, share in hue_shares(result, subject).items():
            assert share == pytest.approx((hues == hue).mean())

"""From pictures and a model to findings: the planted CLIP, sets as filters write them."""

from collections import Counter

import numpy as np
import polars as pl
import pytest
from PIL import Image

from equipoise import audits
from equipoise.planted.scenes.embed import WEIGHTS, embed_images, load_clip
from equipoise.planted.scenes.sets import render_sets
from generation_models import Looker, Painter

SUBJECTS = ("solid square", "solid triangle", "hollow house")
PREFIXES = ["A", "A picture of a", "this is a"]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Two sets of three subjects in a folder with a table, as sets that filters kept."""
    drawn = render_sets(2, seed=5)
    table = drawn.table()
    kept = np.isin(table["subject"], SUBJECTS)
    folder = tmp_path_factory.mktemp("sets")
    (folder / "pictures").mkdir()
    rows = []
    for number, place in enumerate(np.flatnonzero(kept).tolist()):
        file = f"pictures/{number:07d}.png"
        Image.fromarray(drawn.images[place]).save(folder / file)
        named = {name: str(table[name][place]) for name in ("set", "subject", "hue", "frame")}
        rows.append({"image_id": drawn.image_id[place], "file": file, **named})
    frame = pl.DataFrame(rows)
    frame.write_parquet(folder / "images.parquet")
    return folder, drawn.images[kept], frame


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
    folder, _, frame = world
    said = np.where(np.arange(len(frame)) % 5 == 0, "wrong attribute", "good")
    labels = frame.select("image_id").with_columns(said=pl.Series(said))
    quality = {
        "reference": {"folder": str(folder / "pictures")},
        "labels": {"table": labels, "id": "image_id", "label": "said"},
    }
    store = tmp_path_factory.mktemp("store")
    return audits.run(audits.parse_config(values(folder, store, quality=quality)))


def hue_shares(result, subject):
    place = ("max_skew", subject, "hue × frame", "default")
    (found,) = (
        f for f in result.findings if (f.metric, f.subject, f.groups, f.version) == place
    )  # fmt: skip
    shares = Counter()
    for each in found.by_group:
        shares[each.levels[0]] += each.value
    return shares


def test_prompts_are_made_of_the_subjects_of_the_images(world, result):
    _, pixels, frame = world
    clip = load_clip("biased")
    vectors, place = embed_images(clip, pixels), frame["subject"].to_numpy()
    for subject in SUBJECTS:
        texts = clip.embed_texts([f"{prefix} {subject}" for prefix in PREFIXES])
        texts = texts / np.linalg.norm(texts, axis=1, keepdims=True)
        own = place == subject
        first = np.argsort(-(vectors[own] @ texts.mean(axis=0)), kind="stable")[:12]
        hues = frame["hue"].to_numpy()[own][first]
        for hue, share in hue_shares(result, subject).items():
            assert share == pytest.approx((hues == hue).mean())


def test_the_planted_favourite_is_shown_first(result):
    found = {f.subject: f for f in result.findings
             if (f.metric, f.version, f.groups) == ("ndkl", "default", "hue × frame")}  # fmt: skip
    assert found[""].value > found[""].chance_high
    # The favourites of the planted world, at strengths of 0.9, 0.86 and 0.70.
    assert hue_shares(result, "solid square")["purple"] > 1 / 6
    assert hue_shares(result, "solid triangle")["yellow"] > 1 / 6
    assert hue_shares(result, "hollow house")["green"] > 1 / 6


def test_reference_images_are_embedded_and_subjects_told_apart(result):
    found = {f.metric: f for f in result.findings if not f.groups}
    assert found["image_similarity"].n == 72
    assert found["subject_accuracy"].value > 0.8
    # The reference images are the images themselves.
    assert found["frechet_distance"].value == pytest.approx(0.0, abs=1e-6)
    assert result.manifest.counts["prepared"]["models"]["clip"]["reference"]["asked"] == 72


def test_sets_that_an_audit_of_generation_kept_are_read_as_they_are(tmp_path):
    shapes, looker = ["square", "circle", "star", "moon"], Looker()
    made = audits.parse_config(
        {
            "audit": "generation",
            "captions": {
                "subjects": shapes, "attributes": {"hue": ["red", "green", "blue"]},
            },
            "generator": {"model": Painter(), "candidates": 6, "seed": 1},
            "filters": {"similarity": {"model": looker, "threshold": 0.8, "pairs": None}},
            "min_group_size": 5,
            "resampling": {"replicates": 50},
        }
    )  # fmt: skip
    audits.run(made, base=tmp_path)
    (folder,) = (tmp_path / "evidence" / "sets").iterdir()
    probe = audits.parse_config(
        {
            "audit": "counterfactuals",
            "data": {
                "images": {
                    "table": folder / "images.parquet", "id": "image_id", "path": "file",
                    "root": folder,
                },
                "groups": ["hue"],
            },
            "models": {"looker": {"model": looker}},
            "prefixes": ["A photo of a"],
            "resampling": {"replicates": 50, "permutations": 50},
        }
    )  # fmt: skip
    result = audits.run(probe, base=tmp_path)
    sets = len({*pl.read_parquet(folder / "images.parquet")["set"]})
    assert 4 < sets <= 24
    planned = audits.plan(probe, base=tmp_path)
    assert planned.details["sets"][0]["sets"] == sets
    assert planned.details["sets"][0]["incomplete"] == 0
    found = {f.subject: f for f in result.findings if f.metric == "max_skew"}
    assert {*found} == {"", *shapes}
    assert '"k": 3' in found[""].parameters

"""Units and subspaces of one tower or both: what they are ranked by, and what an edit leaves."""

import numpy as np
import pytest

from equipoise.core import ConfigError, InputError
from equipoise.mitigate import (
    Trial,
    choose_units,
    edited,
    find_directions,
    find_units,
    record_units,
    sweep_units,
)
from equipoise.mitigate.measuring import RetrievalSet
from equipoise.mitigate.neurons.config import Config
from equipoise.models.wrapped import unit_vectors
from equipoise.planted.scenes.captions import caption
from equipoise.planted.scenes.render import FRAMES, HUES, SUBJECTS
from equipoise.planted.scenes.sets import render_balanced

IMAGES, TEXTS = "visual_projection", "text_projection"
CELLS = [(subject, hue, frame) for subject in SUBJECTS for hue in HUES for frame in FRAMES]


@pytest.fixture(scope="module")
def scenes():
    rendered = render_balanced(1, seed=901)
    table = rendered.table()
    pairs = [*map(" ".join, zip(table["subject"], table["hue"], strict=True))]
    return rendered.images, [*table["frame"]], pairs


@pytest.fixture(scope="module")
def towers(clip, scenes):
    """Return units of the embedding of both towers, by relevance."""
    images, frames, _ = scenes
    texts = [caption(*cell) for cell in CELLS]
    return [
        find_units(clip, images, frames, layers=[IMAGES], rank="relevance"),
        find_units(clip, texts, [cell[2] for cell in CELLS], layers=[TEXTS], rank="relevance"),
    ]


def test_relevance_is_the_squared_difference_over_the_product_of_deviations(towers, scenes):
    found, frames = towers[0], np.array(scenes[1])
    first, second = (found.recording.values[frames == frame].astype(float) for frame in FRAMES)
    expected = (first.mean(axis=0) - second.mean(axis=0)) ** 2
    expected /= first.std(axis=0) * second.std(axis=0)
    rows = found.table(3).to_pylist()
    order = np.argsort(-expected)[:3]
    assert [row["unit"] for row in rows] == order.tolist()
    np.testing.assert_allclose([row["relevance"] for row in rows], expected[order], rtol=1e-5)


def test_a_reversed_unit_is_reflected_at_its_mean(clip, towers, scenes):
    edit = choose_units(towers[0], 2, mode="reverse", alpha=None)
    (site,) = edit.layers
    before = record_units(clip, scenes[0][:8], layers=[IMAGES]).values[:, [*site.units]]
    after = edited(clip, edit).embed_images(scenes[0][:8])[:, [*site.units]]
    np.testing.assert_allclose(after, 2 * np.array(site.means) - before, atol=1e-4)


def test_a_removed_subspace_is_gone_from_the_vectors(clip, scenes):
    images, frames, pairs = scenes
    found = find_directions(clip, images, frames, IMAGES, pairs=pairs)
    assert found.table(1).to_pylist()[0]["auroc"] > 0.99
    edit = choose_units(found, 3, mode="remove", alpha=None)
    vectors = edited(clip, edit).embed_images(images[:9])
    assert np.abs(vectors @ edit.layers[0].read.T).max() < 1e-4
    centred = find_directions(clip, images, frames, IMAGES, centre="group")
    assert abs(centred.table(1).to_pylist()[0]["auroc"] - 0.5) < 0.4
    with pytest.raises(InputError):
        find_directions(clip, images, frames, IMAGES)


def test_both_towers_are_edited_together_and_none_is_the_model(clip, towers, scenes):
    images, frames, _ = scenes
    texts = {name: [caption(name)] for name in SUBJECTS[:2]}
    trial = Trial(images, frames, texts, k=20)
    options = {"mode": "remove", "random": 1, "replicates": 2}
    rows = {
        (kind, row["units"]): row["after"]
        for kind, parts in (("images", towers[:1]), ("texts", towers[1:]), ("both", towers))
        for row in sweep_units(parts, trial, (0, 4), **options).to_pylist()
        if row["measure"] == "differential_association"
    }
    assert rows["images", 0] == rows["texts", 0] == rows["both", 0]
    assert len({*rows.values()}) == 4
    with pytest.raises(InputError):
        sweep_units(towers, trial, (-1,))


def test_recall_is_that_of_the_other_data_set(clip, scenes):
    images, frames, _ = scenes
    other = render_balanced(1, seed=7).images[:6]
    captions = np.array([caption(*cell) for cell in CELLS[:12]], dtype=object)
    owner = np.arange(12) // 2
    texts = {name: [caption(name)] for name in SUBJECTS[:2]}
    pairs = RetrievalSet("other", other, captions, image=owner)
    draws = Trial(images, frames, texts, k=20, retrieval=pairs).draws(clip, 2, 0)
    scores = unit_vectors(clip.embed_images(other)) @ unit_vectors(clip.embed_texts([*captions])).T
    text = np.mean(owner[scores.argmax(axis=1)] == np.arange(6))
    image = np.mean(scores.argmax(axis=0) == owner)
    assert draws["text_recall_at_1"][0] == pytest.approx(text)
    assert draws["image_recall_at_1"][0] == pytest.approx(image)
    assert draws["recall_at_1"][0] == pytest.approx((text + image) / 2)
    with pytest.raises(InputError):
        Trial(images, frames, texts, captions=["a"] * len(images), k=20, retrieval=pairs)


def test_recall_is_measured_with_neutral_captions_too(clip, scenes):
    """Without hue and frame, captions that name both are guessed: 1 of 12."""
    images, frames, _ = scenes
    texts = {name: [caption(name)] for name in SUBJECTS[:2]}
    named = [caption(*cell) for cell in CELLS]
    neutral = [caption(cell[0]) for cell in CELLS]
    trial = Trial(images, frames, texts, captions=named, neutral_captions=neutral, k=20)
    (note,) = trial.notes
    assert "8.3 %" in note
    draws = trial.draws(clip, 2, 0)
    alone = Trial(images, frames, texts, captions=neutral, k=20).draws(clip, 2, 0)
    for name in ("text_recall_at_1", "image_recall_at_5", "recall_at_1"):
        np.testing.assert_array_equal(draws[f"{name}, neutral captions"], alone[name])
    plain = Trial(images, frames, texts, captions=named, k=20)
    assert not plain.notes
    np.testing.assert_array_equal(draws["recall_at_1"], plain.draws(clip, 2, 0)["recall_at_1"])
    with pytest.raises(InputError):
        Trial(images, frames, texts, neutral_captions=neutral, k=20)


def test_a_model_that_tells_nothing_apart_guesses(clip, scenes):
    """Equal scores are no hits: of six images one is found by chance."""

    class Blind:
        info = clip.info

        def embed_images(self, images):
            return np.ones((len(images), 4), dtype=np.float32)

        def embed_texts(self, texts):
            return np.ones((len(texts), 4), dtype=np.float32)

    images, frames, _ = scenes
    texts = {name: [caption(name)] for name in SUBJECTS[:2]}
    captions = np.array([caption(*cell) for cell in CELLS[:6]], dtype=object)
    pairs = RetrievalSet("other", images[:6], captions)
    draws = Trial(images, frames, texts, k=20, retrieval=pairs).draws(Blind(), 2, 0)
    assert draws["recall_at_1"][0] == pytest.approx(1 / 6)


BASE = {
    "model": "hf:clip", "images": {"table": "i.csv", "root": "p", "group": "g", "pair": "p"},
    "concepts": {"a": ["a"], "b": ["b"]}, "output": "out",
}  # fmt: skip


@pytest.mark.parametrize(
    "more",
    [
        {"kinds": ["units+shapes"]},
        {"kinds": ["subspace"]},
        {"kinds": ["units+texts"]},
        {"counts": [0]},
        {"kinds": ["subspace"], "layers": ["v"], "images": {**BASE["images"], "pair": None}},
        {"retrieval": {"table": "r.csv"}, "images": {**BASE["images"], "caption": "c"}},
        {"mode": ["remove", "invert"]},
    ],
)
def test_a_configuration_is_checked(more):
    Config.model_validate(BASE | {"kinds": ["subspace"], "layers": ["v"]})
    with pytest.raises((ConfigError, ValueError)):
        Config.model_validate(BASE | more)

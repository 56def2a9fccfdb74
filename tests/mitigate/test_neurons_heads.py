"""Heads of a CLIP carry what was planted; features, text towers and matching models are edited."""

import numpy as np
import pytest
from safetensors.numpy import save_file

from equipoise.core import ModelError
from equipoise.mitigate import (
    Trial,
    association_parts,
    choose_units,
    compare_models,
    decompose,
    edited,
    find_heads,
    find_units,
    random_units,
    read_dictionary,
    read_edit,
    record_units,
    sweep_units,
)
from equipoise.models import load_model
from equipoise.planted import scenes
from equipoise.planted.scenes.captions import caption, neutral_prompts
from equipoise.planted.scenes.render import FRAMES, HUES, SUBJECTS
from model_checkpoints import images
from tools.planted.units import CONCEPTS, LAYER, PLANTED, draw_marked, planted_unit

TEXTS = {subject: neutral_prompts(subject) for subject in SUBJECTS}
SEEN, WITHHELD = scenes.render_sets(2, seed=1), scenes.render_sets(2, seed=2)
VALUES = {"frame": FRAMES, "hue": sorted(HUES)}


def concepts(attribute):
    """Return prompts of the subjects that favour each value."""
    favourites = scenes.BIASED.favourites
    return {
        value: [
            text
            for favourite in favourites
            if getattr(favourite, attribute) == value
            and getattr(favourite, f"{attribute}_strength") > 0
            for text in TEXTS[favourite.subject]
        ]
        for value in VALUES[attribute]
    }


def trial(attribute, scene_sets=WITHHELD, **more):
    table = scene_sets.table()
    subjects = table["subject"].tolist()
    return Trial(
        scene_sets.images, table[attribute], concepts(attribute), units=table["set"],
        labels=subjects, classes=TEXTS, k=50, **more,
    )  # fmt: skip


def heads(clip, attribute):
    table = SEEN.table()
    return find_heads(clip, SEEN.images, table[attribute], concepts(attribute), within=table["set"])


def by_measure(table):
    return {row["measure"]: row for row in table.to_pylist()}


def test_contributions_sum_to_the_vectors(clip, tiny_model):
    tiny = tiny_model("clip")
    for model, pictures in ((clip, SEEN.images[:80]), (tiny, images()[:3])):
        decomposition = decompose(model, pictures)
        assert np.abs(decomposition.values.sum(axis=1) - model.embed_images(pictures)).max() < 1e-4
        assert decomposition.parts[-2:] == ("embedding", "biases")
        assert len(decomposition.parts) == len({*decomposition.parts})


def test_shares_of_the_association_sum_to_it(clip):
    trial_data = trial("hue")
    parts = association_parts(clip, trial_data, replicates=50).to_pylist()
    assert sum(row["share"] for row in parts) == pytest.approx(1.0)
    measured = trial_data.draws(clip, 0, 0)["differential_association"][0]
    assert sum(row["value"] for row in parts) == pytest.approx(measured, abs=1e-5)
    assert all(row["low"] <= row["value"] <= row["high"] for row in parts)


def test_one_head_carries_the_frame_and_units_do_not(clip):
    """The scenes' CLIP prefers frames through head 1 of its last layer alone."""
    components, trial_data = heads(clip, "frame"), trial("frame")
    assert components.table(1)["component"].to_pylist() == ["head 1 of layer 2"]
    rows = by_measure(
        sweep_units(components, trial_data, (1,), mode="clamp", random=10, replicates=100)
    )
    association, accuracy = rows["differential_association"], rows["accuracy"]
    assert abs(association["after"]) < 0.05 * association["before"]
    assert association["p_value"] == pytest.approx(1 / 11)
    assert abs(association["random"]) < 0.05 * association["before"]
    assert accuracy["difference_low"] > -0.02
    table = SEEN.table()
    units = find_units(clip, SEEN.images, table["frame"], within=table["set"])
    after = edited(clip, choose_units(units, 128, mode="clamp"))
    row = by_measure(compare_models(clip, after, trial_data, replicates=2))[
        "differential_association"
    ]
    assert abs(row["difference"]) < 0.1 * row["before"]
    ablated = edited(clip, choose_units(components, 1, mode="clamp", full_output=True))
    row = by_measure(compare_models(clip, ablated, trial_data, replicates=2))[
        "differential_association"
    ]
    assert abs(row["after"]) < 0.05 * row["before"]


def test_heads_carry_much_of_the_hue(clip):
    components, trial_data = heads(clip, "hue"), trial("hue")
    rows = by_measure(
        sweep_units(components, trial_data, (8,), mode="clamp", random=10, replicates=100)
    )
    association = rows["differential_association"]
    assert association["difference_high"] < -0.25 * association["before"]
    assert association["p_value"] == pytest.approx(1 / 11)
    assert rows["accuracy"]["difference_low"] > -0.02


def test_a_null_model_stays_quiet():
    null, trial_data = scenes.load_clip("null"), trial("frame")
    row = by_measure(
        sweep_units(heads(null, "frame"), trial_data, (1,), mode="clamp", random=2, replicates=2)
    )["differential_association"]
    assert max(abs(row[name]) for name in ("before", "after", "difference")) < 0.01


def test_random_draws_match_layers_and_seeds(clip):
    for attribute, units, full_output in (("hue", 7, False), ("frame", 1, True)):
        components = heads(clip, attribute)
        like = choose_units(components, units, mode="clamp", full_output=full_output)
        random_edit = random_units(components, like, seed=3)
        assert len(random_edit) == len(like)
        assert {site.layer for site in random_edit.layers} == {site.layer for site in like.layers}
        assert random_edit.digest == random_units(components, like, seed=3).digest != like.digest


def test_an_ablated_head_is_the_same_for_every_image(clip):
    components = heads(clip, "frame")
    edit = choose_units(components, 1, mode="clamp", full_output=True)
    (site,) = (site for site in components.recording.sites if site.name == "head 1 of layer 2")
    with edited(clip, edit).changed():
        values = record_units(clip, WITHHELD.images[:30], layers=[site]).values
    np.testing.assert_allclose(values, np.tile(values[:1], (30, 1)), atol=1e-6)


@pytest.mark.parametrize("kind", ["heads", "whole", "features"])
def test_edits_are_files_that_name_a_model(kind, tiny_model, tmp_path):
    model, pictures = (
        tiny_model("clip"),
        [picture for picture in images() if min(picture.shape[:2]) > 10],
    )
    group = ["a", "b", "a", "b", "b"][: len(pictures)]
    if kind == "features":
        width = model.model.config.vision_config.hidden_size
        rng = np.random.default_rng(0)
        arrays = {"W_enc": rng.standard_normal((width, 40)), "W_dec": np.eye(40, width)}
        np.savez(tmp_path / "own.npz", **arrays)
        site = read_dictionary(tmp_path / "own.npz", "vision_model.encoder.layers.0")
        components = find_units(model, pictures, group, layers=[site])
    else:
        components = find_heads(model, pictures, group, {"a": ["a photo"], "b": ["a doctor"]})
    edit = choose_units(components, 3, mode="clamp", alpha=None, full_output=kind == "whole")
    edit.write(tmp_path / "edit.json")
    assert read_edit(tmp_path / "edit.json").digest == edit.digest
    again = load_model(f"edited:{tmp_path / 'edit.json'}", device="cpu", dtype="float32")
    changed = edited(model, edit).embed_images(pictures)
    assert np.abs(changed - model.embed_images(pictures)).max() > 0.0
    np.testing.assert_allclose(again.embed_images(pictures), changed, atol=1e-6)


@pytest.mark.parametrize("form", ["npz", "safetensors"])
def test_a_planted_feature_is_found_first_and_removed(form, tmp_path):
    """Feature f reads unit f - 5, so that of the planted unit has another number."""
    read = 2.0 * np.roll(np.eye(64, dtype=np.float32), 5, axis=1)
    arrays = {"W_enc": read, "W_dec": np.ascontiguousarray(read.T) / 4.0}
    path = tmp_path / f"own.{form}"
    if form == "npz":
        before = np.full(64, 0.01, np.float32)
        np.savez(path, **arrays, b_dec=before, threshold=np.zeros(64))
    else:
        save_file(arrays, path)
    model, marked = planted_unit(), draw_marked(200, seed=1)
    dictionary = read_dictionary(path, LAYER)
    components = find_units(
        model, marked.images, marked.group, layers=[dictionary], within=marked.caption
    )
    assert components.table(1)["component"].to_pylist() == [f"feature {PLANTED + 5} of {LAYER}"]
    withheld = draw_marked(200, seed=2)
    trial_data = Trial(withheld.images, withheld.group, CONCEPTS, withheld.caption, k=40)
    after = edited(model, choose_units(components, 1, mode="remove"))
    rows = by_measure(compare_models(model, after, trial_data, replicates=100))
    assert abs(rows["differential_association"]["after"]) < 0.02
    assert abs(rows["text_recall_at_1"]["difference"]) < 0.02


def test_files_of_features_are_checked(tmp_path):
    for arrays, message in (
        (None, "isn't a safetensors or npz"),
        ({"W_enc": np.ones((2, 3))}, "has no W_dec"),
        ({"W_enc": np.ones((2, 3)), "W_dec": np.ones((2, 3))}, "expected"),
        ({"W_enc": np.ones((2, 3)), "W_dec": np.ones((3, 2)), "b_enc": np.ones(2)}, "expected"),
    ):
        path = tmp_path / "own.npz"
        if arrays is None:
            path.write_text("no")
        else:
            np.savez(path, **arrays)
        with pytest.raises(ModelError, match=message):
            read_dictionary(path, "act")
    np.savez(path, W_enc=np.ones((2, 3)), W_dec=np.ones((3, 2)))
    marked = draw_marked(4)
    with pytest.raises(ModelError, match="has 64 units; expected 2"):
        record_units(planted_unit(), marked.images, layers=[read_dictionary(path, LAYER)])
    with pytest.raises(ModelError, match="heads are known of a CLIPModel"):
        decompose(planted_unit(), marked.images)


def test_units_of_the_text_tower_change_texts_alone(clip):
    texts = [caption(subject, hue) for subject in SUBJECTS for hue in HUES[:2]]
    group = [hue for _ in SUBJECTS for hue in HUES[:2]]
    components = find_units(
        clip, texts, group, within=[subject for subject in SUBJECTS for _ in range(2)]
    )
    assert all(layer.startswith("text_model") for layer in components.recording.layers)
    assert components.table(1)["auroc"].to_pylist() == [1.0]
    again = find_units(clip, texts[:7], group[:7]).recording.values
    np.testing.assert_array_equal(again, components.recording.values[:7])
    after = edited(clip, choose_units(components, 200, mode="clamp"))
    np.testing.assert_array_equal(
        after.embed_images(SEEN.images[:5]), clip.embed_images(SEEN.images[:5])
    )
    vectors = [model.embed_texts(texts).reshape(len(SUBJECTS), 2, -1) for model in (after, clip)]
    changed, before = (np.linalg.norm(np.subtract(*pair.mean(axis=0))) for pair in vectors)
    assert changed < 0.9 * before
    with pytest.raises(ModelError, match="embeds no texts alone"):
        find_units(load_model(f"hf:{scenes.WEIGHTS / 'vit-biased'}"), texts, group)


@pytest.mark.parametrize("family", ["blip_matching", "bridgetower"])
def test_cross_modal_layers_of_a_matching_model_are_edited(family, tiny_model):
    model, pictures = tiny_model(family), draw_marked(5).images
    group = ["a", "b", "a", "b", "b"]
    components = find_units(model, pictures, group, text="a photo")
    assert any("cross" in layer or "text" in layer for layer in components.recording.layers)
    after = edited(model, choose_units(components, 20, mode="clamp", alpha=None))
    words = {"one": ["a photo"], "two": ["doctor", "a nurse"]}
    trial_data = Trial(pictures, group, words, k=1)
    assert np.abs(after.score(pictures, ["a photo"]) - model.score(pictures, ["a photo"])).max() > 0
    before, changed = (
        trial_data.draws(variant, 3, 0)["differential_association"] for variant in (model, after)
    )
    scores = model.score(pictures, ["a photo", "doctor", "a nurse"])
    gaps = scores[:, 0] - scores[:, 1:].mean(axis=1)
    member = np.array(group) == "a"
    assert before[0] == pytest.approx(gaps[member].mean() - gaps[~member].mean(), abs=1e-6)
    assert before.shape == changed.shape == (4,)

"""The shipped models of the scenes: accurate, biased as planted, and the null model not."""

import json
from functools import cache

import numpy as np
import pytest
import torch
import transformers

from equipoise.planted.scenes import embed
from equipoise.planted.scenes.embed import CLIPS, WEIGHTS
from equipoise.planted.scenes.render import SUBJECTS
from equipoise.planted.scenes.sets import render_balanced, render_sets
from equipoise.planted.scenes.variants import BIASED
from tools.planted.measures import accuracies, find_preferences, load_classifiers
from tools.planted.scenes import SETS_PER_SUBJECT, TEST_SEED, classifier_found
from tools.planted.training import FILE
from tools.planted.worlds import all_captions

pytestmark = pytest.mark.slow

# Threads of several test processes that share cores wait for each other most of the time.
torch.set_num_threads(1)

# On seeds that were not looked at while the models were made.
FRESH = 11


@cache
def recorded():
    return json.loads((WEIGHTS / FILE).read_text(encoding="utf-8"))


@cache
def clip(name):
    return embed.load_clip(name)


@cache
def found(name, seed):
    scenes = render_sets(SETS_PER_SUBJECT, seed=seed)
    return find_preferences(clip(name), BIASED, scenes)


@pytest.mark.parametrize("name", CLIPS)
def test_subjects_hues_and_frames_are_recognised(name):
    recomputed = accuracies(clip(name), seed=FRESH)
    assert recomputed["subject"] >= 0.93
    assert recomputed["hue"] >= 0.98
    assert recomputed["frame"] >= 0.98


@pytest.mark.parametrize("name", CLIPS)
def test_the_record_equals_the_models(name):
    record = recorded()["clip"][name]
    recomputed = accuracies(clip(name), seed=TEST_SEED)
    assert record["accuracy"] == pytest.approx(recomputed, abs=0.002)
    for attribute, measured in found(name, TEST_SEED).items():
        subjects = record[attribute]["subjects"]
        assert [*subjects] == [*SUBJECTS]
        gaps = [row["gap"] for row in subjects.values()]
        np.testing.assert_allclose(gaps, measured.gap, atol=0.01)
        np.testing.assert_allclose(
            [row["ndkl"] for row in subjects.values()], measured.ndkl, atol=0.02
        )
        strengths = [row["strength"] for row in subjects.values()]
        planted = getattr(BIASED, f"{attribute}_strength") * (name == "biased")
        np.testing.assert_allclose(strengths, planted, atol=1e-4)


def test_mistakes_of_classifiers_follow_the_hue_where_it_was_planted():
    records = recorded()["classifiers"]
    models = load_classifiers()
    assert sorted(models) == sorted(records)
    effects = {}
    for name, model in models.items():
        recomputed = classifier_found(model)
        assert records[name] == pytest.approx(recomputed, abs=0.01)
        assert tuple(model.labels) == SUBJECTS
        effects[name] = recomputed["effect_size_degraded"]
    assert effects["cnn-biased"] > effects["cnn-null"] + 0.05
    assert effects["vit-biased"] > effects["cnn-null"] + 0.03


@pytest.mark.parametrize("name", CLIPS)
def test_a_clip_loads_whole_with_the_library_alone(name):
    folder = WEIGHTS / f"clip-{name}"
    model = transformers.CLIPModel.from_pretrained(folder, dtype=torch.float32)
    processor = transformers.AutoImageProcessor.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokens = tokenizer([*all_captions()], padding=True, return_tensors="pt")
    assert tokenizer.unk_token_id not in tokens["input_ids"]
    images = render_balanced(1, seed=FRESH).images[:50]
    with torch.inference_mode():
        pixels = processor(images=[*images], return_tensors="pt")["pixel_values"]
        expected = model.get_image_features(pixel_values=pixels).pooler_output.numpy()
    assert pixels.min() >= -1.0
    assert pixels.max() <= 1.0
    np.testing.assert_allclose(clip(name).embed_images(images), expected, atol=1e-5)

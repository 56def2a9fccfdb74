"""The shipped Stable Diffusion of the scenes: follows prompts, with the planted favourites.

Bounds are those of few images: a share of 0.9 among 48 falls below 0.75 once in a thousand times.
"""

import json
from functools import cache

import numpy as np
import pytest
import torch
from safetensors import safe_open

from equipoise.planted.scenes.captions import caption, neutral_prompts
from equipoise.planted.scenes.diffusion import WEIGHTS
from equipoise.planted.scenes.render import SUBJECTS
from equipoise.planted.scenes.variants import BIASED
from tools.planted.diffusion import digests
from tools.planted.diffusion_measures import told_prompts
from tools.planted.judging import judge
from tools.planted.pipeline import generate, load_pipeline
from tools.planted.training import FILE

# On seeds that were not looked at while the model was made.
FRESH = 11

torch.set_num_threads(1)


@cache
def recorded():
    return json.loads((WEIGHTS / FILE).read_text(encoding="utf-8"))


@cache
def pipeline():
    return load_pipeline()


@cache
def neutral(subject):
    prompts = neutral_prompts(subject) * 12
    return judge(generate(pipeline(), prompts, guidance=1.0, seed=FRESH))


def test_weights_are_half_precision_safetensors_of_the_recorded_digests():
    assert digests(WEIGHTS) == recorded()["sha256"]
    for path in recorded()["sha256"]:
        with safe_open(WEIGHTS / path, "np") as file:
            kinds = {file.get_tensor(key).dtype for key in file.keys()}  # noqa: SIM118 - a file
        assert kinds <= {np.dtype(np.float16), np.dtype(np.int64)}
    suffixes = {path.suffix for path in WEIGHTS.rglob("*") if path.is_file()}
    assert suffixes == {".json", ".safetensors", ".md"}


@pytest.mark.slow
def test_generated_images_show_their_prompts():
    prompts, factors = told_prompts(1)
    chosen = np.random.default_rng(FRESH).permutation(len(prompts))[:48]
    images = generate(pipeline(), [prompts[index] for index in chosen], guidance=3.0, seed=FRESH)
    judged = judge(images)
    assert np.mean(judged.subject == factors.subject[chosen]) >= 0.75
    assert np.mean(judged.hue == factors.hue[chosen]) >= 0.9
    assert np.mean(judged.frame == factors.frame[chosen]) >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("place", np.argsort(BIASED.hue_strength)[-2:])
def test_neutral_prompts_lean_to_a_hue_that_was_planted_strongly(place):
    judged = neutral(SUBJECTS[place])
    # 0.88 and more were planted.
    assert np.mean(judged.hue == BIASED.hue[place]) >= 0.65


def test_a_seed_gives_the_same_images_again_and_another_does_not():
    prompts = [caption("solid star"), caption("hollow moon", "red")]
    first, again, other = (
        generate(pipeline(), prompts, guidance=3.0, seed=seed, steps=4) for seed in (1, 1, 2)
    )
    assert first.tobytes() == again.tobytes()
    assert (first != other).any(axis=(1, 2, 3)).all()

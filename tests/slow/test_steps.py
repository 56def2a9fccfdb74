"""A planted onset inside a real diffusion process is found by the audit.

The shipped Stable Diffusion of the scenes is told a hue by a fair coin of the seed, and from a step
on red for nine images in ten: its estimates of the clean image follow at that step.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from equipoise import audits
from equipoise.models import ModelInfo
from equipoise.planted.scenes.captions import caption
from equipoise.planted.scenes.diffusion import load_generator
from equipoise.planted.scenes.embed import WEIGHTS

pytestmark = pytest.mark.xdist_group("planted pipeline")

SUBJECT, STEPS = "solid star", 8
HUES = ("red", "blue")


@cache
def scenes():
    torch.set_num_threads(1)
    return load_generator(device="cpu", dtype="float32")


@dataclass
class Steered:
    """The scenes' pipeline, whose neutral prompts become prompts of a hue.

    Attributes
    ----------
    start : int or None
        First step at which red is asked for in nine images of ten; None: at none.
    """

    start: int | None

    @property
    def info(self):
        return ModelInfo(f"python:steered:{self.start}", "steered", weights_sha256="0" * 64)

    def generate(self, prompts, *, seeds, sampling):
        stepped = self.generate_steps(prompts, seeds=seeds, sampling=sampling, at=())
        return [images[-1].image for images in stepped]

    def generate_steps(self, prompts, *, seeds, sampling, at):
        pipeline, make = scenes().pipeline, scenes()._generate_batch
        draws = np.array([np.random.default_rng(seed).random(2) for seed in seeds])
        neutral = [prompt == caption(SUBJECT) for prompt in prompts]
        fair = np.where(draws[:, 0] < 0.5, *HUES).tolist()
        late = np.where(draws[:, 1] < 0.9, *HUES).tolist()

        def named(hues):
            rows = zip(prompts, hues, neutral, strict=True)
            return [caption(SUBJECT, hue) if free else prompt for prompt, hue, free in rows]

        def steer(_: Any, step: int, __: Any, tensors: dict[str, Any]) -> dict[str, Any]:
            if self.start is None or step + 2 != self.start:
                return {}
            texts, empty = pipeline.encode_prompt(
                named(late), "cpu", 1, do_classifier_free_guidance=True
            )
            return {"prompt_embeds": torch.cat([empty, texts])}

        def steered(sampling, prompts, seeds):
            return make(
                sampling, prompts, seeds, callback_on_step_end=steer,
                callback_on_step_end_tensor_inputs=["latents", "prompt_embeds"],
            )  # fmt: skip

        generator = load_like(scenes(), steered)
        first = late if self.start == 1 else fair
        return generator.generate_steps(named(first), seeds=seeds, sampling=sampling, at=at)


def load_like(generator, make):
    """Return the generator with another function that makes a batch, all of them together."""
    copy = type(generator)(generator.info, generator.pipeline, generator.placement)
    copy._generate_batch = make
    copy.room = lambda sampling: 1_000
    return copy


def onsets(start, base):
    config = {
        "audit": "text_to_image",
        "prompts": {
            "attributes": {hue: [caption(SUBJECT, hue)] for hue in HUES},
            "targets": [caption(SUBJECT)],
            "images": {"attributes": 12, "targets": 30},
        },
        "generators": {
            "steered": {
                "model": Steered(start), "guidance": 3.0, "steps": STEPS,
                "at_steps": [1, 2, 3, 4, 5, 6, 7],
            }
        },
        "models": {"clip": {"model": f"hf:{WEIGHTS}/clip-null", "device": "cpu"}},
        "shares": [
            {"of": "hue", "model": "clip", "classes": {h: [caption(SUBJECT, h)] for h in HUES}}
        ],
        "resampling": {"replicates": 200, "seed": 1},
    }  # fmt: skip
    result = audits.run(audits.parse_config(config), base=base)
    return {
        (row["quantity"], "latents" in row["version"]): row
        for row in result.tables["onsets"].to_pylist()
    }


@pytest.mark.slow
@pytest.mark.parametrize("start", [4, 2, 6, 7])
def test_the_curve_finds_the_step_from_which_a_pipeline_is_steered(start, tmp_path):
    by_quantity = onsets(start, tmp_path)
    # Cosines of latents are mostly about place and light: too few images to tell hues.
    for key in (("share", False), ("II", False), ("MCAS", False)):
        row = by_quantity[key]
        assert row["onset"] is not None, key
        assert abs(row["onset"] - start) <= 1, key
        assert row["low"] - 1 <= start <= row["high"] + 1, key


@pytest.mark.slow(whole=True)
def test_a_pipeline_that_is_never_steered_has_no_onset(tmp_path):
    by_quantity = onsets(None, tmp_path)
    assert {key: row["onset"] for key, row in by_quantity.items()} == dict.fromkeys(by_quantity)

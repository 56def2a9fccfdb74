"""The scripts of the small Stable Diffusion of the scenes, on next to nothing."""

import json
from functools import cache

import diffusers
import numpy as np
import pytest
import torch

from equipoise.planted.scenes.embed import CLIPS, load_clip
from equipoise.planted.scenes.render import SUBJECTS, render
from equipoise.planted.scenes.sets import render_balanced
from equipoise.planted.scenes.variants import BIASED
from tools.planted import denoising, diffusion, networks, pipeline
from tools.planted import diffusion_measures as measure
from tools.planted.denoising import UnetRecipe, VaeRecipe
from tools.planted.diffusion import FILE, Measured, digests
from tools.planted.judging import Shown, judge
from tools.planted.worlds import draw_world

# Threads of several test processes that share cores wait for each other most of the time.
torch.set_num_threads(1)

VAE = VaeRecipe(images=16, batch_size=4, steps=4, warm_up=1)
UNET = UnetRecipe(images=16, batch_size=4, steps=4, warm_up=2)
MEASURED = Measured(1, per_subject=1, per_subject_guided=1, guidances=(3.0,), steps=1)


def vae_after(folder, recipe=VAE):
    return denoising.train_vae(folder, recipe).state_dict()


def unet_after(folder, recipe=UNET):
    torch.manual_seed(3)
    vae = networks.build_vae().eval()
    return denoising.train_unet(folder, vae, BIASED, [recipe]).state_dict()


def assert_same(ours, theirs):
    assert [*ours] == [*theirs]
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


@pytest.mark.parametrize("after", [vae_after, unet_after])
def test_training_that_was_stopped_ends_in_the_same_weights(after, tmp_path, monkeypatch):
    whole = after(tmp_path / "whole")
    real, gradients, done = denoising.train_on, denoising._gradients, []

    def dying(network, losses):
        done.append(1)
        if len(done) == 4:
            raise KeyboardInterrupt
        return gradients(network, losses)

    monkeypatch.setattr(denoising, "train_on", lambda *a, **k: real(*a, **k, every=2))
    with monkeypatch.context() as patch:
        patch.setattr(denoising, "_gradients", dying)
        with pytest.raises(KeyboardInterrupt):
            after(tmp_path / "stopped")
    (state,) = (tmp_path / "stopped").iterdir()
    assert torch.load(state, weights_only=True)["step"] == 2
    assert_same(after(tmp_path / "stopped"), whole)


def test_the_noise_is_that_of_the_scheduler_that_ships():
    scheduler = networks.build_scheduler()
    latents, noise = torch.randn(2, 3, 4, 8, 8, generator=torch.Generator().manual_seed(0))
    level = torch.tensor([0, 500, 999])
    signal, rest = denoising.noise_levels()[:, level][:, :, None, None, None]
    noisy = scheduler.add_noise(latents, noise, level)
    torch.testing.assert_close(signal * latents + rest * noise, noisy)
    velocity = scheduler.get_velocity(latents, noise, level)
    seen = []

    class Perfect(torch.nn.Module):
        def forward(self, found, at, encoder_hidden_states):
            seen.append((found, at, encoder_hidden_states))
            return diffusers.models.unets.unet_2d_condition.UNet2DConditionOutput(sample=velocity)

    loss = denoising.unet_loss(Perfect(), latents, "texts", noise, level.numpy())
    assert float(loss) == pytest.approx(0.0, abs=1e-10)
    torch.testing.assert_close(seen[0][0], noisy)
    assert torch.equal(seen[0][1], level)
    assert seen[0][2] == "texts"


def test_the_judge_names_what_was_drawn():
    scenes = render_balanced(4, seed=21)
    shown = judge(scenes.images)
    np.testing.assert_array_equal(shown.hue, scenes.factors.hue)
    np.testing.assert_array_equal(shown.frame, scenes.factors.frame)
    assert np.mean(shown.subject == scenes.factors.subject) > 0.99


@cache
def drawn(count=48):
    """What a perfect pipeline would give: images of the world itself, as many of each subject."""
    factors = draw_world(BIASED, 24 * 3 * count, seed=31)
    rows = [np.flatnonzero(factors.subject == one)[:count] for one in range(24)]
    factors = factors.take(np.concatenate(rows))
    images = render(factors)
    return measure.Neutral(images, factors.subject, judge(images))


@pytest.mark.parametrize("name", CLIPS)
def test_association_scores_follow_what_was_planted_in_images(name):
    balanced = render_balanced(1, seed=32)
    factors = balanced.factors
    asked = Shown(factors.subject, factors.hue, factors.frame)
    told = measure.Told(balanced.images, asked, judge(balanced.images))
    assert told.rates["hue"] == 1.0
    found = measure.find_associations(load_clip(name), drawn(), told, BIASED)
    total = sum(found.scores[one] for one in ("II", "ITP", "ITA", "TT"))
    np.testing.assert_allclose(found.scores["mcas"], total, atol=1e-9)
    ranks = found.rank_correlations
    assert ranks["II"] >= 0.8
    assert ranks["ITA"] >= 0.8
    assert ranks["mcas"] >= 0.8
    # Of prompts alone the biased encoder knows what was planted, the null one next to nothing.
    assert (found.scores["TT"].mean() > 0.01) == (name == "biased")


def test_a_pipeline_is_trained_written_and_measured(tmp_path):
    out, state = tmp_path / "weights", tmp_path / "state"
    diffusion.train(out, state, VAE, [UNET, UNET], MEASURED)
    record = json.loads((out / FILE).read_text(encoding="utf-8"))
    assert record["sha256"] == digests(out)
    assert [*record["neutral_by_guidance"]["1"]["subjects"]] == [*SUBJECTS]
    loaded = pipeline.load_pipeline(out)
    assert isinstance(loaded, diffusers.StableDiffusionPipeline)
    trained = torch.load(state / "unet-2.pt", weights_only=True)["average"]
    for name, weight in loaded.unet.state_dict().items():
        torch.testing.assert_close(weight, trained[name].half().float(), atol=0, rtol=0)

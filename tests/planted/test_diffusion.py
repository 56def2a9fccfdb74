"""The scripts of the small Stable Diffusion of the scenes, on next to nothing."""

import json
from types import SimpleNamespace

import diffusers
import pytest
import torch

from equipoise.planted.scenes.render import SUBJECTS
from tools.planted import denoising, diffusion, networks, pipeline
from tools.planted.denoising import UnetRecipe, VaeRecipe
from tools.planted.diffusion import Measured, digests
from tools.planted.training import FILE

# Threads of several test processes that share cores wait for each other most of the time.
torch.set_num_threads(1)

VAE = VaeRecipe(images=16, batch_size=4, steps=4, warm_up=1)
UNET = UnetRecipe(images=16, batch_size=4, steps=4, warm_up=2)
MEASURED = Measured(1, per_subject=1, per_subject_guided=1, guidances=(3.0,), steps=1)


def test_the_loss_is_that_of_the_velocity_at_a_noise_level():
    scheduler = networks.build_scheduler()
    latents, noise = torch.randn(2, 3, 4, 8, 8, generator=torch.Generator().manual_seed(0))
    level = torch.tensor([0, 500, 999])

    def perfect(noisy, at, encoder_hidden_states):
        assert torch.equal(noisy, scheduler.add_noise(latents, noise, level))
        assert torch.equal(at, level)
        assert encoder_hidden_states == "texts"
        return SimpleNamespace(sample=scheduler.get_velocity(latents, noise, level))

    loss = denoising.unet_loss(perfect, latents, "texts", noise, level.numpy())
    assert float(loss) == pytest.approx(0.0, abs=1e-10)


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

"""Images at denoising steps, of the four classes of pipelines and of several schedulers."""

import diffusers
import numpy as np
import pytest

from diffusion_checkpoints import (
    flux,
    safety_checker,
    stable_diffusion,
    stable_diffusion_3,
    stable_diffusion_xl,
)
from equipoise.core import ModelError
from equipoise.models import Sampling, SteppedGenerator, load_generator

# Of the library's multistep schedulers with NumPy 2.
pytestmark = pytest.mark.filterwarnings("ignore:__array_:DeprecationWarning")

SIZE = {"height": 16, "width": 16}
SAMPLING = Sampling(steps=4, guidance=3.0, **SIZE)
CLASSES = {
    "StableDiffusionPipeline": stable_diffusion,
    "StableDiffusionXLPipeline": stable_diffusion_xl,
    "StableDiffusion3Pipeline": stable_diffusion_3,
    "FluxPipeline": flux,
}
PROMPTS, SEEDS = ["a red dog", "a cat"], [1, 2]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("steps")
    return {
        name: load_generator(f"diffusers:{make(folder / name)}", device="cpu")
        for name, make in CLASSES.items()
    }


@pytest.mark.parametrize("name", CLASSES)
def test_images_at_steps_of_every_class(name, models):
    model = models[name]
    assert isinstance(model, SteppedGenerator)
    assert model.info.family == name
    images = model.generate(PROMPTS, seeds=SEEDS, sampling=SAMPLING)
    stepped = model.generate_steps(PROMPTS, seeds=SEEDS, sampling=SAMPLING, at=[1, 3])
    for image, (first, third, last) in zip(images, stepped, strict=True):
        assert np.array_equal(last.image, image)
        assert first.image.shape == third.image.shape == image.shape == (16, 16, 3)
        assert first.latent.shape == last.latent.shape == (4, 8, 8)
        assert first.estimated
        assert third.estimated
        assert (first.image != third.image).any()
        assert (first.latent != third.latent).any()
    # The scheduler is as it was.
    assert np.array_equal(model.generate(PROMPTS, seeds=SEEDS, sampling=SAMPLING)[1], images[1])


def with_scheduler(model, kind, **settings):
    config = {"beta_schedule": "scaled_linear", **settings}
    model.pipeline.scheduler = getattr(diffusers, kind)(**config)
    return model


@pytest.mark.parametrize(
    ("name", "kind", "settings"),
    [
        ("StableDiffusion3Pipeline", None, {}),
        ("StableDiffusionXLPipeline", "DDIMScheduler", {"timestep_spacing": "trailing"}),
        ("StableDiffusionPipeline", "DPMSolverMultistepScheduler", {"timestep_spacing": "trailing",
                                                                    "final_sigmas_type": "zero"}),
    ],
)  # fmt: skip
def test_the_estimate_of_the_first_pass_is_a_run_of_one_step(name, kind, settings, models):
    """Both start from one noise and go straight to the clean image."""
    model = models[name]
    scheduler = model.pipeline.scheduler
    try:
        if kind:
            with_scheduler(model, kind, **settings)
        ((first, _),) = model.generate_steps(["a dog"], seeds=[1], sampling=SAMPLING, at=[1])
        single = Sampling(steps=1, guidance=3.0, **SIZE)
        (image,) = model.generate(["a dog"], seeds=[1], sampling=single)
    finally:
        model.pipeline.scheduler = scheduler
    assert first.estimated
    assert np.abs(first.image.astype(int) - image).max() <= 1


def test_the_estimate_of_the_last_pass_is_the_image(models):
    model = models["FluxPipeline"]
    ((fourth, last),) = model.generate_steps(["a dog"], seeds=[1], sampling=SAMPLING, at=[4])
    assert np.abs(fourth.image.astype(int) - last.image).max() <= 1
    assert np.allclose(fourth.latent, last.latent, atol=1e-5)


def test_pndm_estimates_by_the_noise_that_is_left(models):
    """By another scheduler's estimate from the same noise at the same timestep."""
    model = models["StableDiffusionPipeline"]
    scheduler = model.pipeline.scheduler
    try:
        ((pndm, _),) = model.generate_steps(["a dog"], seeds=[1], sampling=SAMPLING, at=[1])
        settings = {"beta_start": 0.00085, "beta_end": 0.012, "steps_offset": 1}
        with_scheduler(model, "DDIMScheduler", clip_sample=False, **settings)
        ((ddim, _),) = model.generate_steps(["a dog"], seeds=[1], sampling=SAMPLING, at=[1])
    finally:
        model.pipeline.scheduler = scheduler
    assert np.allclose(pndm.latent, ddim.latent, atol=1e-4)


def test_a_scheduler_without_estimates_shows_its_latents(models):
    model = models["StableDiffusionPipeline"]
    scheduler = model.pipeline.scheduler
    try:
        model.pipeline.scheduler = diffusers.DEISMultistepScheduler(algorithm_type="deis")
        ((first, last),) = model.generate_steps(["a dog"], seeds=[1], sampling=SAMPLING, at=[1])
    finally:
        model.pipeline.scheduler = scheduler
    assert not first.estimated
    assert last.estimated


def test_what_a_safety_checker_refuses_is_refused_at_all_steps(tmp_path):
    folder = stable_diffusion(tmp_path / "strict", checker=safety_checker(strict=True))
    model = load_generator(f"diffusers:{folder}", device="cpu")
    sampling = Sampling(steps=2, guidance=1.0, **SIZE)
    assert model.generate_steps(["a dog"], seeds=[1], sampling=sampling, at=[1]) == [None]
    with pytest.raises(ModelError):
        model.generate_steps(["a dog " * 40], seeds=[1], sampling=sampling, at=[1])

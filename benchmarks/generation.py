"""Images a second of the controlled generation, for a pipeline of the size of Stable Diffusion 1.5.

    python -m benchmarks.generation [--json] [--quick]

Weights are random: what a pipeline computes does not depend on what it learned. On a GPU it has
Stable Diffusion 1.5's own sizes (512 × 512 pixels, a denoiser of 860 million parameters); on a CPU
a few million parameters, so that the module runs anywhere. A row compares one batch with shared
maps to the same batch without: what control costs. Memory is the GPU's peak.

Not one of the workloads of `python -m benchmarks`: without a GPU it says nothing about one.
"""

from __future__ import annotations

import string
import tempfile
from functools import partial
from pathlib import Path

from benchmarks import harness
from benchmarks.harness import Row, alternate, sizes
from equipoise.counterfactuals import caption_sets
from equipoise.counterfactuals.control import ControlledSet, generate_controlled
from equipoise.models import Sampling, load_generator

CAPTIONS = caption_sets(
    ["doctor"],
    {"race": ["Asian", "Black", "Latino", "White", "Indian", "Middle Eastern"],
     "gender": ["male", "female"]},
)  # fmt: skip
STEPS = {"cuda": 50, "cpu": 4}
PLAIN = "the same batch, no maps shared"

UNET = {
    "cuda": {
        "sample_size": 64,
        "block_out_channels": (320, 640, 1280, 1280),
        "layers_per_block": 2,
        "attention_head_dim": 8,
        "cross_attention_dim": 768,
        "down_block_types": (*["CrossAttnDownBlock2D"] * 3, "DownBlock2D"),
        "up_block_types": ("UpBlock2D", *["CrossAttnUpBlock2D"] * 3),
    },
    "cpu": {
        "sample_size": 16,
        "block_out_channels": (32, 64),
        "layers_per_block": 1,
        "attention_head_dim": 4,
        "cross_attention_dim": 64,
        "norm_num_groups": 16,
        "down_block_types": ["CrossAttnDownBlock2D"] * 2,
        "up_block_types": ["CrossAttnUpBlock2D"] * 2,
    },
}
VAE = {
    "cuda": {"block_out_channels": (128, 256, 512, 512), "layers_per_block": 2, "sample_size": 512},
    "cpu": {"block_out_channels": (16, 32, 32, 32), "norm_num_groups": 8, "sample_size": 128},
}
TEXT = {
    "cuda": {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
             "num_attention_heads": 12},
    "cpu": {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
            "num_attention_heads": 4},
}  # fmt: skip


def checkpoint(folder, device):
    """Write a Stable Diffusion of random weights, as `save_pretrained` does."""
    import torch
    from diffusers import (
        AutoencoderKL,
        PNDMScheduler,
        StableDiffusionPipeline,
        UNet2DConditionModel,
    )
    from transformers import CLIPTextConfig, CLIPTextModel, CLIPTokenizer

    torch.manual_seed(0)
    letters = [*string.ascii_lowercase, *(f"{letter}</w>" for letter in string.ascii_lowercase)]
    words = ["<|startoftext|>", "<|endoftext|>", *letters]
    tokenizer = CLIPTokenizer(
        vocab={word: place for place, word in enumerate(words)}, merges=[], model_max_length=77
    )
    text = CLIPTextModel(
        CLIPTextConfig(
            vocab_size=len(words), bos_token_id=0, eos_token_id=1, pad_token_id=1, **TEXT[device]
        )
    )
    blocks = len(VAE[device]["block_out_channels"])
    vae = AutoencoderKL(
        down_block_types=("DownEncoderBlock2D",) * blocks,
        up_block_types=("UpDecoderBlock2D",) * blocks,
        latent_channels=4,
        **VAE[device],
    )
    StableDiffusionPipeline(
        vae=vae,
        text_encoder=text,
        tokenizer=tokenizer,
        unet=UNet2DConditionModel(**UNET[device]),
        scheduler=PNDMScheduler(
            beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear",
            skip_prk_steps=True, steps_offset=1,
        ),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    ).save_pretrained(folder)  # fmt: skip
    return folder


def candidates(count, shared, shared_self):
    """Candidates of one set of twelve captions."""
    prompts = tuple(CAPTIONS.table["caption"].to_pylist())
    return [
        ControlledSet(prompts, number, number % len(prompts), shared, shared_self)
        for number in range(count)
    ]


def rows():
    """Yield what a batch of one, two and more candidates takes."""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    sampling = Sampling(steps=STEPS[device], guidance=7.5)
    with tempfile.TemporaryDirectory() as folder:
        name = f"diffusers:{checkpoint(Path(folder), device)}"
        for dtype in ("float16", "float32") if device == "cuda" else ("float32",):
            model = load_generator(name, device=device, dtype=dtype)
            for count in sizes(1, 2, 4) if device == "cuda" else sizes(1, 2):
                yield row(model, count, sampling, dtype)


def row(model, count, sampling, dtype):
    """Return what one batch takes, with both kinds of maps shared for half of the steps."""
    import torch

    run = partial(generate_controlled, model, sampling=sampling)
    cuda = model.info.device != "cpu"
    if cuda:
        torch.cuda.reset_peak_memory_stats()
    ours, plain = alternate(
        lambda: run(candidates(count, 0.5, 0.5)),
        lambda: run(candidates(count, 0.0, 0.0)),
        repeats=3,
    )
    images = count * len(CAPTIONS)
    place = torch.cuda.get_device_name() if cuda else "CPU, a small pipeline"
    pixels = model.pipeline.unet.config.sample_size * model.pipeline.vae_scale_factor
    return Row(
        "generation", f"controlled sets, {dtype}",
        f"{count} × {len(CAPTIONS)} images of {pixels} × {pixels}, {sampling.steps} steps",
        PLAIN, plain, ours,
        memory_mb=torch.cuda.max_memory_allocated() / 1e6 if cuda else None,
        note=f"{images / ours:.2f} images a second, {images / plain:.2f} without control ({place})",
        n=images,
    )  # fmt: skip


if __name__ == "__main__":
    harness.main(rows)

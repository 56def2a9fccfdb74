"""Pipelines of diffusers: loaded safely, the same image for the same seed, refusals told."""

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from diffusion_checkpoints import (
    safety_checker,
    stable_diffusion,
    stable_diffusion_3,
    without_cross_attention,
)
from equipoise.core import InputError, ModelError
from equipoise.counterfactuals import GenerationSettings, generate_sets
from equipoise.models import Sampling, load_generator

SAMPLING = Sampling(steps=3, guidance=3.0)
PROMPTS = ["a red dog", "a cat", "", "a red dog"]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return stable_diffusion(tmp_path_factory.mktemp("diffusers") / "sd")


@pytest.fixture(scope="module")
def model(checkpoint):
    return load_generator(f"diffusers:{checkpoint}", device="cpu")


def test_an_image_depends_on_its_prompt_and_seed_alone(model):
    together = model.generate(PROMPTS, seeds=[1, 1, 2, 3], sampling=SAMPLING)
    alone = [
        model.generate([prompt], seeds=[seed], sampling=SAMPLING)[0]
        for prompt, seed in zip(PROMPTS, [1, 1, 2, 3], strict=True)
    ]
    for batched, other in zip(together, alone, strict=True):
        assert (batched.shape, batched.dtype) == ((16, 16, 3), np.uint8)
        assert np.abs(batched.astype(int) - other).max() <= 1
    assert np.abs(together[0].astype(int) - together[3]).max() > 10


def test_sampling_changes_the_image(model):
    def made(**more):
        sampling = Sampling(**({"steps": 3, "guidance": 3.0} | more))
        return model.generate(["a dog"], seeds=[1], sampling=sampling)[0].astype(int)

    first = made()
    assert np.array_equal(first, made())
    for more in ({"steps": 4}, {"guidance": 9.0}, {"negative_prompt": "cat"}):
        assert np.abs(first - made(**more)).max() > 0
    assert made(height=32, width=24).shape == (32, 24, 3)


def test_batches_are_cut_by_the_size_of_images(model):
    sizes = {None: 64, 512: 2, 2048: 1}
    assert {size: model.room(Sampling(height=size, width=size)) for size in sizes} == sizes


def test_prompts_longer_than_the_model_reads_are_refused_before_anything_is_made(model, tmp_path):
    long = "dog" * 8
    message = f"reads 24 tokens of a text, and '{long}' has 26"
    with pytest.raises(ModelError, match=message):
        model.generate(["a", long], seeds=[1, 2], sampling=SAMPLING)
    with pytest.raises(ModelError, match=message):
        model.generate(["a"], seeds=[1], sampling=Sampling(steps=3, negative_prompt=long))
    captions = pa.table({"caption_id": ["p", "q"], "set": ["s", "s"], "caption": ["a", long]})
    with pytest.raises(ModelError, match=message):
        generate_sets(
            captions, model, tmp_path, candidates=1, settings=GenerationSettings(sampling=SAMPLING)
        )
    assert not [*tmp_path.iterdir()]
    assert model.generate([long[:-2]], seeds=[1], sampling=SAMPLING)[0] is not None


@pytest.mark.parametrize("strict", [True, False])
def test_what_the_safety_checker_hides_is_refused(strict, tmp_path):
    folder = stable_diffusion(tmp_path / "sd", checker=safety_checker(strict=strict))
    model = load_generator(f"diffusers:{folder}", device="cpu")
    assert model.info.preprocessing["safety_checker"] is True
    generated = model.generate(["a", "b"], seeds=[1, 2], sampling=SAMPLING)
    assert [image is None for image in generated] == [strict, strict]


def test_numbers_that_are_no_image(checkpoint):
    import torch

    model = load_generator(f"diffusers:{checkpoint}", device="cpu")
    with torch.no_grad():
        model.pipeline.vae.decoder.conv_out.bias.fill_(float("nan"))
    with pytest.raises(ModelError, match="gave NaN or infinity for 'a'. To do: dtype: float32.$"):
        model.generate(["a"], seeds=[1], sampling=SAMPLING)


def test_what_the_library_raises_is_translated(model):
    with pytest.raises(ModelError, match="^diffusers:.*/sd failed: ValueError: text input must be"):
        model.generate([3], seeds=[1], sampling=SAMPLING)


def test_only_without_attention_to_texts_images_cannot_be_controlled(tmp_path):
    folder = stable_diffusion_3(tmp_path / "sd3")
    model = load_generator(f"diffusers:{folder}", device="cpu")
    assert model.info.family == "StableDiffusion3Pipeline"
    generated = model.generate(["a dog", "a cat"], seeds=[1, 2], sampling=SAMPLING)
    assert [image.shape for image in generated] == [(16, 16, 3)] * 2
    model.check_control()
    blind = load_generator(f"diffusers:{without_cross_attention(tmp_path / 'sd')}", device="cpu")
    with pytest.raises(ModelError, match="its denoiser is a UNet2DConditionModel"):
        blind.check_control()


def copied(checkpoint, folder):
    return Path(shutil.copytree(checkpoint, folder / "copy"))


def test_pickles_are_refused_unless_allowed(checkpoint, tmp_path):
    import torch
    from safetensors.torch import load_file

    copy = copied(checkpoint, tmp_path)
    safe = copy / "unet" / "diffusion_pytorch_model.safetensors"
    torch.save(load_file(safe), safe.with_suffix(".bin"))
    safe.unlink()
    with pytest.raises(ModelError, match=r"copy \(unet\) has its weights only as pickles"):
        load_generator(f"diffusers:{copy}", device="cpu")
    assert load_generator(f"diffusers:{copy}", device="cpu", allow_pickle=True)


@pytest.mark.parametrize("part", ["_class_name", "unet"])
def test_code_of_a_checkpoint_is_refused(part, checkpoint, tmp_path):
    copy = copied(checkpoint, tmp_path)
    (copy / "own.py").write_text("raise SystemExit('it ran')\n")
    index = json.loads((copy / "model_index.json").read_text()) | {part: ["own", "Own"]}
    (copy / "model_index.json").write_text(json.dumps(index))
    with pytest.raises(ModelError, match="brings Python code of its own .*, which would be run"):
        load_generator(f"diffusers:{copy}", device="cpu")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("model_index.json", "", "names no pipeline"),
        ("model_index.json", "[]", "names no pipeline"),
        ("unet/diffusion_pytorch_model.safetensors", "not weights", "cannot be loaded"),
    ],
)
def test_checkpoints_that_cannot_be_used(name, content, message, checkpoint, tmp_path):
    copy = copied(checkpoint, tmp_path)
    (copy / name).write_text(content)
    with pytest.raises(ModelError, match=message):
        load_generator(f"diffusers:{copy}", device="cpu")


def test_a_pipeline_that_makes_no_images_of_texts(checkpoint, tmp_path):
    copy = copied(checkpoint, tmp_path)
    index = json.loads((copy / "model_index.json").read_text())
    (copy / "model_index.json").write_text(json.dumps(index | {"_class_name": "DDPMPipeline"}))
    with pytest.raises(ModelError, match="cannot be loaded: .*DDPMPipeline"):
        load_generator(f"diffusers:{copy}", device="cpu")


def test_names_that_name_nothing(checkpoint):
    for name in ("sd", "hf:sd", "diffusers:", ""):
        with pytest.raises(ModelError, match="the name of a model that makes images starts with"):
            load_generator(name)
    with pytest.raises(ModelError, match="has no revision 'main'"):
        load_generator(f"diffusers:{checkpoint}", revision="main")


def test_what_is_fetched_of_a_hub(checkpoint, monkeypatch, tmp_path):
    import huggingface_hub

    commit = tmp_path / ("ab" * 20)
    shutil.copytree(checkpoint, commit)
    request = {}

    def download(name, **request_options):
        request.update(request_options, name=name)
        return str(commit)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    generator = load_generator("diffusers:owner/name", device="cpu", revision="v1")
    assert generator.info.revision == "ab" * 20
    assert (request["name"], request["revision"]) == ("owner/name", "v1")
    assert request["ignore_patterns"] == ["*.fp16*", "*non_ema*"]
    assert "*/diffusion_pytorch_model*.safetensors" in request["allow_patterns"]
    assert not [name for name in request["allow_patterns"] if name.endswith((".bin", ".py"))]


def test_factories_of_the_user():
    generator = load_generator("python:generator_models:swatches")
    assert generator.info.family == "swatches"
    with pytest.raises(ModelError, match="new_means made a Means, which makes no images"):
        load_generator("python:picture_models:new_means")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"steps": 0}, "steps is 0"),
        ({"guidance": -1.0}, "guidance is -1.0"),
        ({"guidance": float("nan")}, "guidance is nan"),
        ({"height": 100}, "height is 100"),
        ({"width": 0}, "width is 0"),
    ],
)
def test_sampling_out_of_range(settings, message):
    with pytest.raises(InputError, match=message):
        Sampling(**settings)

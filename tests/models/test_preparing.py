"""The fast path of preprocessing: what the library gives, within one grey level, or not taken."""

import json

import numpy as np
import pytest
import torch
import transformers

from equipoise.core import InputError
from equipoise.models.images import pillow_images
from equipoise.models.preprocessing import (
    Pixels,
    Recipe,
    preparation,
    read_open_clip,
    read_timm,
    read_transformers,
    stack_images,
)
from model_checkpoints import images

HALF = (127.5,) * 3
PROCESSORS = ("CLIP", "Siglip", "Flava", "Blip", "ViT", "ConvNext", "DeiT", "Bit", "Beit")
PATCHED = ("BridgeTower", "Siglip2")
OTHERWISE = ("EfficientNet", "Levit")


def pictures():
    """Images that are not among the probes: larger, smaller, wide, high, even and random."""
    generator = np.random.default_rng(21)
    sizes = [(375, 500), (333, 499), (700, 300), (240, 1000), (226, 231), (24, 31), (224, 224)]
    noise = [generator.integers(0, 256, (*size, 3), dtype=np.uint8) for size in sizes]
    even = np.linspace(0, 255, 400 * 300 * 3).reshape(400, 300, 3).astype(np.uint8)
    return [*noise, even, np.asfortranarray(even[::-1])]


def by(processor):
    return lambda images: processor(images=[*images], return_tensors="pt")


def prepared_by(processor):
    settings = json.loads(processor.to_json_string())
    recipe = read_transformers(settings, processor.backend)
    return preparation("hf:x", by(processor), recipe, torch)


def levels(prepare, library):
    """The largest difference, in grey levels, over all pictures."""
    std = np.array(prepare.fast.recipe.std)[:, None, None]
    ours = prepare(pictures())["pixel_values"].numpy()
    theirs = np.concatenate(
        [library(pillow_images([picture]))["pixel_values"] for picture in pictures()]
    )
    return float((np.abs(ours - theirs) * std).max())


@pytest.mark.parametrize(
    ("suffix", "backend", "max_levels"), [("", "torchvision", 1e-3), ("Pil", "pil", 1.001)]
)
@pytest.mark.parametrize("family", PROCESSORS)
def test_torchvisions_results_bit_for_bit_and_pillows_within_one_level(
    family, suffix, backend, max_levels
):
    processor = getattr(transformers, f"{family}ImageProcessor{suffix}")()
    assert processor.backend == backend
    prepare = prepared_by(processor)
    assert prepare.facts == {"prepared_by": "equipoise 1"}
    assert levels(prepare, by(processor)) <= max_levels


@pytest.mark.parametrize("suffix", ["", "Pil"])
@pytest.mark.parametrize("family", [*PATCHED, *OTHERWISE])
def test_what_differs_is_left_to_the_library(family, suffix):
    """Some have no recipe; of others the settings do not tell all, and a probe gives it away."""
    processor = getattr(transformers, f"{family}ImageProcessor{suffix}")()
    recipe = read_transformers(json.loads(processor.to_json_string()), processor.backend)
    assert (recipe is None) == (family in PATCHED)
    prepare = prepared_by(processor)
    assert prepare.facts == {"prepared_by": "library"}
    large = [picture for picture in pictures() if min(picture.shape[:2]) >= 224]
    expected = processor(images=pillow_images(large), return_tensors="pt")
    for name, value in prepare(large).items():
        np.testing.assert_array_equal(value, expected[name])


@pytest.mark.parametrize("mode", ["shortest", "squash"])
@pytest.mark.parametrize("interpolation", ["bicubic", "bilinear"])
def test_open_clips_results_within_one_level(mode, interpolation):
    from open_clip import transform

    settings = transform.PreprocessCfg(size=96, resize_mode=mode, interpolation=interpolation)
    library = stack_images(transform.image_transform_v2(settings, is_train=False), torch)
    prepare = preparation("x", library, read_open_clip(vars(settings)), torch)
    assert levels(prepare, library) <= 1.001


@pytest.mark.parametrize("mode", ["center", "squash"])
@pytest.mark.parametrize("interpolation", ["bicubic", "bilinear"])
def test_timms_results_within_one_level(mode, interpolation):
    from timm import data

    settings = {"input_size": (3, 90, 90), "interpolation": interpolation, "crop_mode": mode}
    settings |= {"mean": (0.4, 0.5, 0.6), "std": (0.2, 0.3, 0.4), "crop_pct": 0.9}
    library = stack_images(data.create_transform(**settings, is_training=False), torch)
    prepare = preparation("x", library, read_timm(settings), torch)
    assert levels(prepare, library) <= 1.001


def recipe(**changed):
    settings = {"resize": 20, "mode": "bicubic", "crop": (20, 20), "rounds": False, "pillow": True}
    return Recipe(**(settings | {"mean": HALF, "std": HALF} | changed))


def test_arrays_that_cannot_be_written_to_are_taken():
    image = images()[0]
    image.setflags(write=False)
    pixels = Pixels(recipe(pillow=False), torch)
    np.testing.assert_array_equal(pixels([image]), pixels([image.copy()]))


class Library:
    """A library's own call that is the fast one, off by some levels in one place."""

    def __init__(self, off):
        self.off, self.calls = off, 0

    def __call__(self, images):
        self.calls += 1
        pixels = Pixels(recipe(), torch)([np.asarray(image) for image in images])
        pixels[-1, 1, 3, 4] += self.off / 127.5
        return {"pixel_values": pixels}


@pytest.mark.parametrize(
    ("off", "path_taken"),
    [(0.0, "equipoise 1"), (1.0, "equipoise 1"), (1.1, "library"), (float("nan"), "library")],
)
def test_one_grey_level_is_the_limit(off, path_taken):
    prepare = preparation("x", Library(off), recipe(), torch)
    assert prepare.facts == {"prepared_by": path_taken}


@pytest.mark.parametrize(
    "library",
    [
        lambda images: {"pixel_values": torch.zeros(1, 3, 21, 20)},
        lambda images: {"pixel_values": torch.zeros(1, 3, 20, 20), "pixel_mask": torch.zeros(1)},
    ],
    ids=["another size", "something more"],
)
def test_other_forms_are_left_to_the_library(library):
    assert preparation("x", library, recipe(), torch).fast is None


def test_a_library_that_fails_on_a_probe_is_left_alone():
    def library(images):
        raise ValueError("too narrow")

    prepare = preparation("hf:x", library, recipe(), torch)
    assert prepare.fast is None
    message = r"^Image 0, 61 × 37 pixels, cannot be prepared for hf:x: too narrow"
    with pytest.raises(InputError, match=message):
        prepare(images())


def test_an_image_that_would_become_too_large():
    """224 pixels high, 1 × 20,000 would be 4,480,000 wide: 3 GB of levels."""
    large = recipe(resize=224)
    library = Pixels(large, torch)
    prepare = preparation(
        "hf:x",
        lambda images: {"pixel_values": library([np.asarray(image) for image in images])},
        large,
        torch,
    )
    message = (
        r"^Image 1, 20000 × 1 pixels, cannot be prepared for hf:x: resized it would be "
        r"4,480,000 × 224\. To do: leave it out or crop it\.$"
    )
    with pytest.raises(InputError, match=message):
        prepare([images()[0], np.zeros((1, 20_000, 3), dtype=np.uint8)])

"""What libraries say in settings, read as a recipe; None where a recipe cannot say it."""

from functools import partial

import pytest

from equipoise.models.preprocessing import of_open_clip, of_timm, of_transformers

HALF = (127.5,) * 3
SETTINGS = {
    "do_resize": True,
    "size": {"shortest_edge": 32},
    "resample": 3,
    "do_center_crop": True,
    "crop_size": {"height": 32, "width": 30},
    "do_rescale": True,
    "rescale_factor": 1 / 255,
    "do_normalize": True,
    "image_mean": [0.5, 0.5, 0.5],
    "image_std": [0.5, 0.5, 0.5],
    "do_pad": None,
}
OPEN_CLIP = {
    "size": (32, 32),
    "mode": "RGB",
    "mean": (0.5, 0.5, 0.5),
    "std": (0.5, 0.5, 0.5),
    "interpolation": "bicubic",
    "resize_mode": "shortest",
}
TIMM = {
    "input_size": (3, 32, 32),
    "interpolation": "bilinear",
    "mean": (0.5, 0.5, 0.5),
    "std": (0.5, 0.5, 0.5),
    "crop_pct": 0.875,
    "crop_mode": "center",
}
READERS = {
    "pil": (partial(of_transformers, backend="pil"), SETTINGS),
    "open_clip": (of_open_clip, OPEN_CLIP),
    "timm": (of_timm, TIMM),
}


def approximately(recipe):
    assert recipe.mean == pytest.approx(HALF)
    assert recipe.std == pytest.approx(HALF)
    return recipe.resize, recipe.mode, recipe.crop, recipe.rounds, recipe.pillow


def test_settings_of_each_library():
    assert approximately(of_transformers(SETTINGS, "pil")) == (32, "bicubic", (32, 30), False, True)
    assert of_transformers(SETTINGS, "torchvision").pillow is False
    assert approximately(of_open_clip(OPEN_CLIP)) == (32, "bicubic", (32, 32), True, True)
    assert approximately(of_timm(TIMM)) == (36, "bilinear", (32, 32), True, True)


@pytest.mark.parametrize(
    ("changed", "resize", "crop"),
    [
        ({"size": {"height": 20, "width": 40}, "do_center_crop": False}, (20, 40), None),
        ({"size": 48}, 48, (32, 30)),
        ({"crop_size": 32}, 32, (32, 32)),
        ({"do_center_crop": None, "crop_pct": 0.875}, 36, (32, 32)),  # ConvNeXt, small
        ({"size": 384, "do_center_crop": None, "crop_pct": 0.875}, (384, 384), None),
    ],
)
def test_sides_of_transformers(changed, resize, crop):
    recipe = of_transformers(SETTINGS | changed, "pil")
    assert (recipe.resize, recipe.crop) == (resize, crop)


@pytest.mark.parametrize(
    ("library", "changed"),
    [
        *(
            ("pil", changed)
            for changed in (
                {"do_pad": True},
                {"resample": 1},
                {"size": {"shortest_edge": 32, "longest_edge": 64}},
                {"crop_size": {"shortest_edge": 32}},
                {"crop_size": {"height": 33, "width": 30}},  # would be filled up at its borders
                {"image_std": [0.5, 0.0, 0.5]},
                {"image_mean": [0.5, 0.4]},
            )
        ),
        ("open_clip", {"resize_mode": "longest"}),
        ("open_clip", {"size": (32, 40)}),
        ("open_clip", {"mode": "L"}),
        ("timm", {"crop_mode": "border"}),
        ("timm", {"input_size": (3, 32, 40)}),
    ],
)
def test_what_a_recipe_cannot_say(library, changed):
    read, settings = READERS[library]
    assert read(settings | changed) is None

"""Maps in which left and right cancel, and what hiding a region takes away."""

import numpy as np
import pytest

from audits.activations.people import BLUE, RED, encoder
from equipoise.explain import activation_maps, maps_and_falls

BOXES = np.array([[[4.0, 10, 24, 30], [40, 20, 60, 40]], [[44, 4, 64, 24], [np.nan] * 4]])


def figures():
    pixels = np.random.default_rng(5).integers(90, 130, (2, 48, 64, 3), dtype=np.uint8)
    for image, boxes in zip(pixels, BOXES, strict=True):
        for colour, box in zip((RED, BLUE), boxes, strict=True):
            if not np.isnan(box).any():
                left, top, right, bottom = box.astype(int)
                image[top:bottom, left:right] = colour
    return pixels


def turned(boxes, width=64):
    mirrored = boxes.copy()
    mirrored[..., 0], mirrored[..., 2] = width - boxes[..., 2], width - boxes[..., 0]
    return mirrored


ASKED = ["a photo of a doctor"] * 2


def test_a_mirrored_image_has_the_mirrored_map_and_the_same_falls():
    model = encoder("sided", side=0.7)
    original, falls = maps_and_falls(model, figures(), ASKED, BOXES)
    other, mirrored_falls = maps_and_falls(model, figures()[:, :, ::-1], ASKED, turned(BOXES))
    np.testing.assert_allclose(other.maps[:, :, ::-1], original.maps, atol=1e-7)
    np.testing.assert_allclose(mirrored_falls, falls, atol=1e-7)
    np.testing.assert_allclose(original.maps.sum(axis=(1, 2)), 1.0, atol=1e-5)


def test_hiding_the_target_of_the_prompt_lowers_the_score_most():
    _, falls = maps_and_falls(encoder("favours"), figures(), ASKED, BOXES, mirror=False)
    red, blue = falls.T
    assert (red > 0.1).all()
    assert blue[0] < 0.0  # the mean colour is a little red
    assert np.isnan(blue[1])


def test_without_a_mirror_or_boxes_it_is_the_plain_map():
    model = encoder("favours")
    mapped, falls = maps_and_falls(model, figures(), ASKED, mirror=False)
    np.testing.assert_array_equal(mapped.maps, activation_maps(model, figures(), ASKED[0]).maps)
    assert falls is None


@pytest.mark.parametrize("family", ["vilt_vqa", "blip_vqa", "llava"])
def test_models_that_answer_are_asked_too(family, tiny_model):
    answer = ["answer 3" if family == "vilt_vqa" else "woman"] * 2
    _, falls = maps_and_falls(
        tiny_model(family), figures(), answer, BOXES, question="what is this ?"
    )
    assert np.isfinite(falls[0]).all()
    assert np.abs(falls[0]).max() > 0.0

"""The scenes: glyphs, attributes, and sets in which nothing but the attributes differs."""

from dataclasses import fields, replace

import numpy as np
import pytest

from equipoise.planted.scenes import render
from equipoise.planted.scenes.render import (
    RGB,
    SHAPES,
    SUBJECTS,
    Factors,
    degrade,
)
from equipoise.planted.scenes.sets import render_balanced, render_sets


@pytest.fixture(scope="module")
def balanced():
    return render_balanced(3, seed=0)


@pytest.fixture(scope="module")
def counterfactual():
    return render_sets(2, seed=0)


def factors_of(subject, **values):
    """Return the factors of one red image with level bars, in the middle of grey."""
    plain = {"x": 0.0, "y": 0.0, "side": 12.0, "turn": 0.0, "grey": 0.5, "slope": 0.0, "light": 1.0}
    factors = {"hue": 0, "frame": 0} | plain | values
    columns = {name: np.array([value]) for name, value in factors.items()}
    return Factors(subject=np.array([SUBJECTS.index(subject)]), **columns)


def glyph(factors):
    """Return how far each pixel of the one image is from grey, 1 where the glyph covers it."""
    image = render.render(factors)[0].astype(float)
    colourful = image.max(axis=2) - image.min(axis=2)
    return colourful / (RGB[0].max() - RGB[0].min())


def test_same_seed_same_bytes_another_seed_other_images():
    first, again, other = (render_balanced(2, seed=seed) for seed in (0, 0, 1))
    assert first.images.tobytes() == again.images.tobytes()
    assert first.image_id == again.image_id
    assert (first.images != other.images).any(axis=(1, 2, 3)).all()


def test_a_smaller_set_begins_a_larger_one(balanced):
    fewer = render_balanced(1, seed=0)
    np.testing.assert_array_equal(fewer.images, balanced.images[::3])


def test_sets_share_all_but_hue_and_frame(counterfactual):
    assert len(counterfactual) == 24 * 2 * 12
    for name in set(counterfactual.set_id):
        rows = np.flatnonzero(np.array(counterfactual.set_id) == name)
        part = counterfactual.factors.take(rows)
        assert sorted(zip(part.hue, part.frame, strict=True)) == [
            (hue, frame) for hue in range(6) for frame in range(2)
        ]
        for field in fields(Factors):
            if field.name not in ("hue", "frame"):
                assert len(set(getattr(part, field.name))) == 1
    poses = {tuple(row) for row in np.column_stack([counterfactual.factors.x]).tolist()}
    assert len(poses) == len(set(counterfactual.set_id)) == 48


@pytest.mark.parametrize("hue", range(6))
def test_the_middle_of_a_solid_glyph_has_its_hue(hue):
    image = render.render(replace(factors_of("solid circle"), hue=np.array([hue])))[0]
    np.testing.assert_array_equal(image[16, 16], RGB[hue])
    dim = render.render(replace(factors_of("solid circle", light=0.8), hue=np.array([hue])))[0]
    np.testing.assert_allclose(dim[16, 16], 0.8 * RGB[hue], atol=0.51)


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_cover_the_area_of_their_side(shape):
    assert glyph(factors_of(f"solid {shape}")).sum() == pytest.approx(144.0, rel=0.03)


def test_degrading_blurs_adds_noise_and_repeats(balanced):
    images = balanced.images[:200]
    first, again, other = (degrade(images, seed=seed) for seed in (0, 0, 1))
    assert first.tobytes() == again.tobytes()
    assert first.tobytes() != other.tobytes()
    flat = np.full((50, 32, 32, 3), 128, dtype=np.uint8)
    noise = degrade(flat, seed=0).astype(float) - 128.0
    assert noise.std() == pytest.approx(render.NOISE, rel=0.02)
    assert abs(noise.mean()) < 0.3
    spike = flat.copy()
    spike[:, 16, 16] = 255
    raised = degrade(spike, seed=0).astype(float) - degrade(flat, seed=0)
    assert np.flatnonzero(raised.mean(axis=(0, 2, 3)) > 0.1).tolist() == [14, 15, 16, 17, 18]

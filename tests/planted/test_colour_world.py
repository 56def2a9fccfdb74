"""The colour world: the images, and whether the shipped models carry the planted biases."""

import numpy as np
import pytest
from scipy.stats import contingency

from equipoise.planted.colours import models, render
from equipoise.planted.colours.models import (
    TRAIN_PER_CELL,
    VARIANTS,
    predict_table,
)
from equipoise.planted.colours.render import COLOURS, SHAPES, render_test_set
from tools.planted import colours as train

NAMES = [variant.name for variant in VARIANTS]


@pytest.fixture(scope="module")
def scene():
    return render_test_set()


@pytest.fixture(scope="module")
def table(scene):
    return predict_table(scene, NAMES)


def test_same_seed_same_bytes_another_seed_other_images():
    first, again, other = render_test_set(20), render_test_set(20), render_test_set(20, seed=1)
    assert first.images.tobytes() == again.images.tobytes()
    assert first.image_id == again.image_id
    assert (first.images != other.images).any(axis=(1, 2, 3)).all()


def test_only_the_channel_of_the_colour_is_lit(scene):
    brightest = scene.images.max(axis=(1, 2))
    np.testing.assert_array_equal(brightest > 0, np.eye(3, dtype=bool)[scene.factors.colour])
    assert (brightest.max(axis=1) == 255).all()


@pytest.mark.parametrize("shape", range(3), ids=SHAPES)
def test_area_follows_scale_and_is_the_same_for_every_shape(scene, shape):
    rows = scene.factors.shape == shape
    area = scene.images[rows].max(axis=3).sum(axis=(1, 2), dtype=float) / 255
    expected = (render.SIDE * scene.factors.scale[rows]) ** 2
    np.testing.assert_allclose(area, expected, rtol=0.05)
    assert np.mean(area / expected) == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("variant", VARIANTS, ids=NAMES)
def test_a_variant_sees_all_but_its_thinned_cell(variant):
    factors = render.draw_factors(TRAIN_PER_CELL, seed=0, stream="train")
    rows = train.training_rows(variant, factors)
    cells = np.zeros((3, 3), dtype=int)
    np.add.at(cells, (factors.shape[rows], factors.colour[rows]), 1)
    expected = np.full((3, 3), TRAIN_PER_CELL)
    if variant.shape is not None and variant.colour is not None:
        expected[SHAPES.index(variant.shape), COLOURS.index(variant.colour)] = variant.kept
    np.testing.assert_array_equal(cells, expected)


def test_weights_quote_no_path_of_the_machine():
    files = sorted(models.WEIGHTS.glob("*.onnx"))
    assert [file.stem for file in files] == sorted(NAMES)
    for file in files:
        content = file.read_bytes()
        assert b".py" not in content
        assert b"/home" not in content


def effect_size(table, name, shape):
    """Cramér's V of colour × predicted shape within a class; 0 where there is no mistake."""
    rows = table["shape"] == shape
    _, cells = contingency.crosstab(table["colour"][rows], table[f"predicted_{name}"][rows])
    return float(contingency.association(cells, method="cramer")) if cells.shape[1] > 1 else 0.0


def effect_sizes(table, name):
    return {shape: effect_size(table, name, shape) for shape in SHAPES}


@pytest.mark.parametrize("removed", SHAPES)
def test_a_removed_cell_biases_its_class_and_no_other(table, removed):
    values = effect_sizes(table, f"without_green_{removed}")
    assert values.pop(removed) >= 0.6
    assert max(values.values()) <= 0.05


def test_the_complete_model_is_accurate_and_even(table):
    assert (table["predicted_complete"] == table["shape"]).mean() >= 0.995
    assert max(effect_sizes(table, "complete").values()) <= 0.05


@pytest.mark.parametrize("variant", VARIANTS, ids=NAMES)
def test_effect_sizes_are_near_the_published_ones(table, variant):
    values = list(effect_sizes(table, variant.name).values())
    np.testing.assert_allclose(values, variant.published, atol=0.12)

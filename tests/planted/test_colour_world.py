"""The colour world: the images, and whether the shipped models carry the planted biases."""

import sys
import time

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import contingency

from equipoise.core.errors import MissingExtraError
from equipoise.planted.colours import predict, render, train, variants
from equipoise.planted.colours.predict import load_variant, predict_table
from equipoise.planted.colours.render import COLOURS, SHAPES, ColourImages, Factors, render_test_set
from equipoise.planted.colours.variants import STRENGTHS, TRAIN_PER_CELL, VARIANTS

NAMES = [variant.name for variant in VARIANTS]
Table = dict[str, predict.Column]


@pytest.fixture(scope="module")
def scene() -> ColourImages:
    return render_test_set()


@pytest.fixture(scope="module")
def table(scene: ColourImages) -> Table:
    return predict_table(scene)


def one(shape: int, **values: float) -> Factors:
    """Return the factors of one red image in the middle of the frame."""
    given = {"scale": 1.0, "rotation": 0.0, "x": 0.5, "y": 0.5} | values
    return Factors(
        shape=np.array([shape]),
        colour=np.array([0]),
        **{name: np.array([value]) for name, value in given.items()},
    )


def red(factors: Factors) -> NDArray[np.float64]:
    return render.render(factors)[0, :, :, 0] / 255.0


def test_same_seed_same_bytes_another_seed_other_images() -> None:
    first, again, other = render_test_set(20), render_test_set(20), render_test_set(20, seed=1)
    assert first.images.tobytes() == again.images.tobytes()
    assert first.image_id == again.image_id
    assert (first.images != other.images).any(axis=(1, 2, 3)).all()


def test_a_smaller_set_is_the_beginning_of_a_larger_one() -> None:
    small, large = render_test_set(10), render_test_set(25)
    index = {name: row for row, name in enumerate(large.image_id)}
    rows = np.array([index[name] for name in small.image_id])
    np.testing.assert_array_equal(large.images[rows], small.images)


def test_every_cell_has_the_same_count_and_ids_are_unique(scene: ColourImages) -> None:
    cells = np.zeros((3, 3), dtype=int)
    np.add.at(cells, (scene.factors.shape, scene.factors.colour), 1)
    assert (cells == 1000).all()
    assert len(set(scene.image_id)) == len(scene.images) == len(scene.factors) == 9000
    assert scene.image_id[5012] == "ellipse-blue-00012"
    assert SHAPES[scene.factors.shape[5012]] == "ellipse"
    assert COLOURS[scene.factors.colour[5012]] == "blue"


def test_train_and_test_share_no_draw() -> None:
    drawn = [
        render.draw_factors(500, seed=seed, stream=stream).scale
        for stream in ("train", "test")
        for seed in (0, 1)
    ]
    assert len(np.unique(np.concatenate(drawn))) == 4 * 4500


def test_factors_fill_their_ranges(scene: ColourImages) -> None:
    factors = scene.factors
    for values, low, high in [
        (factors.scale, *render.SCALE_RANGE),
        (factors.rotation, 0.0, 2 * np.pi),
        (factors.x, 0.0, 1.0),
        (factors.y, 0.0, 1.0),
    ]:
        assert low <= values.min() < low + 0.01 * (high - low)
        assert high - 0.01 * (high - low) < values.max() < high
        assert abs(values.mean() - (low + high) / 2) < 0.02 * (high - low)


def test_only_the_channel_of_the_colour_is_lit(scene: ColourImages) -> None:
    brightest = scene.images.max(axis=(1, 2))
    np.testing.assert_array_equal(brightest > 0, np.eye(3, dtype=bool)[scene.factors.colour])
    assert (brightest.max(axis=1) == 255).all()


def test_every_shape_stays_inside_the_frame(scene: ColourImages) -> None:
    border = np.ones((render.IMAGE_SIZE, render.IMAGE_SIZE), dtype=bool)
    border[1:-1, 1:-1] = False
    assert scene.images[:, border].max() == 0


@pytest.mark.parametrize("shape", range(3), ids=SHAPES)
def test_area_follows_scale_and_is_the_same_for_every_shape(
    scene: ColourImages, shape: int
) -> None:
    rows = scene.factors.shape == shape
    area = scene.images[rows].max(axis=3).sum(axis=(1, 2), dtype=float) / 255
    expected = (render.SIDE * scene.factors.scale[rows]) ** 2
    np.testing.assert_allclose(area, expected, rtol=0.05)
    assert np.mean(area / expected) == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("shape", range(3), ids=SHAPES)
def test_centre_of_mass_is_the_position(scene: ColourImages, shape: int) -> None:
    rows = np.flatnonzero(scene.factors.shape == shape)[::10]
    mass = scene.images[rows].max(axis=3).astype(float)
    pixels = np.arange(render.IMAGE_SIZE) + 0.5
    free = render.IMAGE_SIZE - 2 * render.MARGIN
    for axis, position in ((1, scene.factors.x), (2, scene.factors.y)):
        centre = (mass.sum(axis=axis) @ pixels) / mass.sum(axis=(1, 2))
        np.testing.assert_allclose(centre, render.MARGIN + free * position[rows], atol=0.1)


@pytest.mark.parametrize("shape", range(3), ids=SHAPES)
def test_outlines_are_antialiased(shape: int) -> None:
    image = red(one(shape, rotation=0.3))
    partial = ((image > 0.02) & (image < 0.98)).sum()
    assert 15 < partial < 60
    assert (image == 1.0).sum() > 30


@pytest.mark.parametrize("shape", range(3), ids=SHAPES)
@pytest.mark.parametrize("quarter", [1, 2, 3])
def test_rotation_turns_counter_clockwise(shape: int, quarter: int) -> None:
    start = one(shape, rotation=0.4)
    turned = one(shape, rotation=0.4 + quarter * np.pi / 2)
    np.testing.assert_allclose(red(turned), np.rot90(red(start), quarter), atol=1.01 / 255)


def test_shapes_have_their_symmetries() -> None:
    square, ellipse, heart = (red(one(shape)) for shape in range(3))
    np.testing.assert_allclose(square, np.rot90(square), atol=1.01 / 255)
    np.testing.assert_allclose(ellipse, np.rot90(ellipse, 2), atol=1.01 / 255)
    assert np.abs(ellipse - np.rot90(ellipse)).max() > 0.5
    np.testing.assert_allclose(heart, heart[:, ::-1], atol=1.01 / 255)
    assert np.abs(heart - heart[::-1]).max() > 0.5


def test_the_upright_heart_has_its_tip_below_and_its_notch_above() -> None:
    heart = red(one(SHAPES.index("heart")))
    lit = np.flatnonzero(heart.max(axis=1) > 0.5)
    above, below = heart[lit[0]], heart[lit[-1]]
    assert above[15] < 0.5 < above.max()
    assert below.argmax() in (15, 16)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"per_cell": 0}, r"^per_cell must be at least 1, got 0$"),
        ({"seed": -1}, r"^seed must not be negative, got -1$"),
    ],
)
def test_bad_test_set(arguments: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        render_test_set(**arguments)


def test_bad_names() -> None:
    with pytest.raises(ValueError, match=r"^stream must be one of train, test, got 'dev'$"):
        render.draw_factors(1, seed=0, stream="dev")
    with pytest.raises(ValueError, match=r"^there is no variant 'biased'; there are complete, "):
        load_variant("biased")
    with pytest.raises(ValueError, match=r"^there is no cell 'star' in 'green': shapes are "):
        VARIANTS[0].kept_in("star", "green")


def test_training_without_torch_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: predict.Path
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    expected = r"^torch is not installed\. To do: pip install 'equipoise\[train\]'\.$"
    with pytest.raises(MissingExtraError, match=expected):
        train.train(tmp_path, NAMES, train.Recipe())


@pytest.mark.parametrize("variant", VARIANTS, ids=NAMES)
def test_a_variant_sees_all_but_its_thinned_cell(variant: variants.Variant) -> None:
    factors = render.draw_factors(TRAIN_PER_CELL, seed=0, stream="train")
    rows = train.training_rows(variant, factors)
    cells = np.zeros((3, 3), dtype=int)
    np.add.at(cells, (factors.shape[rows], factors.colour[rows]), 1)
    expected = np.full((3, 3), TRAIN_PER_CELL)
    if variant.shape is not None and variant.colour is not None:
        expected[SHAPES.index(variant.shape), COLOURS.index(variant.colour)] = variant.kept
    np.testing.assert_array_equal(cells, expected)


def test_strengths_lose_ever_more_green_ellipses() -> None:
    by_name = {variant.name: variant for variant in VARIANTS}
    ordered = [by_name[name] for name in STRENGTHS]
    assert [variant.strength for variant in ordered] == ["none", "mild", "medium", "strong"]
    kept = [variant.kept_in("ellipse", "green") for variant in ordered]
    assert kept == sorted(kept, reverse=True)
    assert kept[-1] == 0


def test_weights_are_small_and_quote_no_path_of_the_machine() -> None:
    files = sorted(predict.WEIGHTS.glob("*.onnx"))
    assert [file.stem for file in files] == sorted(NAMES)
    assert sum(file.stat().st_size for file in files) < 1_500_000
    for file in files:
        content = file.read_bytes()
        assert b".py" not in content
        assert b"/home" not in content


def test_table_has_the_documented_columns(table: Table) -> None:
    factors = ["image_id", "shape", "colour", "scale", "rotation", "x", "y"]
    predictions = [f"{kind}_{name}" for name in NAMES for kind in ("predicted", "score")]
    assert list(table) == factors + predictions
    assert {len(column) for column in table.values()} == {9000}
    for name in NAMES:
        assert set(table[f"predicted_{name}"]) == set(SHAPES)
        scores = table[f"score_{name}"]
        assert scores.dtype == np.float32
        assert 1 / 3 <= scores.min() <= scores.max() <= 1.000001


def test_predictions_repeat_to_the_byte(table: Table, scene: ColourImages) -> None:
    again = predict_table(scene, ["medium_green_ellipse"])
    assert list(again)[7:] == ["predicted_medium_green_ellipse", "score_medium_green_ellipse"]
    for name, column in again.items():
        assert column.tobytes() == table[name].tobytes()


def counts(table: Table, name: str, shape: str) -> NDArray[np.int64]:
    """Count colour × predicted shape within a class."""
    rows = table["shape"] == shape
    _, cells = contingency.crosstab(
        table["colour"][rows], table[f"predicted_{name}"][rows], levels=(COLOURS, SHAPES)
    )
    return np.asarray(cells)


def effect_size(cells: NDArray[np.int64]) -> float:
    """Cramér's V from its definition; a class without a mistake has none and counts as 0."""
    used = cells[:, cells.sum(axis=0) > 0]
    if used.shape[1] == 1:
        return 0.0
    return float(contingency.association(used, method="cramer"))


def effect_sizes(table: Table, name: str) -> dict[str, float]:
    return {shape: effect_size(counts(table, name, shape)) for shape in SHAPES}


@pytest.mark.parametrize("removed", SHAPES)
def test_a_removed_cell_biases_its_class_and_no_other(table: Table, removed: str) -> None:
    values = effect_sizes(table, f"without_green_{removed}")
    assert values.pop(removed) >= 0.6
    assert max(values.values()) <= 0.05


@pytest.mark.parametrize("removed", SHAPES)
def test_the_removed_cell_spreads_over_both_other_classes(table: Table, removed: str) -> None:
    green = counts(table, f"without_green_{removed}", removed)[COLOURS.index("green")]
    wrong = np.delete(green, SHAPES.index(removed))
    assert wrong.sum() >= 800
    assert wrong.min() >= 20


def test_the_complete_model_is_accurate_and_even(table: Table) -> None:
    assert (table["predicted_complete"] == table["shape"]).mean() >= 0.995
    assert max(effect_sizes(table, "complete").values()) <= 0.05


def test_effect_size_rises_with_the_planted_strength(table: Table) -> None:
    values = [effect_sizes(table, name)["ellipse"] for name in STRENGTHS]
    assert min(np.diff(values)) > 0.1
    np.testing.assert_allclose(values, [0.0, 0.25, 0.5, 0.7], atol=0.12)


@pytest.mark.parametrize("name", STRENGTHS[1:])
def test_thinned_ellipses_bias_no_other_class(table: Table, name: str) -> None:
    values = effect_sizes(table, name)
    assert max(values["square"], values["heart"]) <= 0.05


@pytest.mark.parametrize("variant", VARIANTS, ids=NAMES)
def test_effect_sizes_are_near_the_published_ones(table: Table, variant: variants.Variant) -> None:
    values = list(effect_sizes(table, variant.name).values())
    np.testing.assert_allclose(values, variant.published.effect_sizes, atol=0.12)


def test_rendering_and_predicting_are_fast() -> None:
    start = time.perf_counter()
    predict_table(render_test_set(200))
    assert time.perf_counter() - start < 10

"""The scenes: glyphs, attributes, and sets in which nothing but the attributes differs."""

from dataclasses import fields, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from equipoise.planted.scenes import render
from equipoise.planted.scenes.glyphs import CELLS, REACH, SHAPES, distances, outline
from equipoise.planted.scenes.render import FILLS, FRAMES, HUES, RGB, SUBJECTS, Factors, degrade
from equipoise.planted.scenes.sets import Scenes, render_balanced, render_sets


@pytest.fixture(scope="module")
def balanced() -> Scenes:
    return render_balanced(3, seed=0)


@pytest.fixture(scope="module")
def counterfactual() -> Scenes:
    return render_sets(2, seed=0)


def one(subject: str, **values: float) -> Factors:
    """Return the factors of one red image with level bars, in the middle of grey."""
    plain = {"x": 0.0, "y": 0.0, "side": 12.0, "turn": 0.0, "grey": 0.5, "slope": 0.0, "light": 1.0}
    given = {"hue": 0, "frame": 0} | plain | values
    columns = {name: np.array([value]) for name, value in given.items()}
    return Factors(subject=np.array([SUBJECTS.index(subject)]), **columns)


def glyph(factors: Factors) -> NDArray[np.float64]:
    """Return how far each pixel of the one image is from grey, 1 where the glyph covers it."""
    image = render.render(factors)[0].astype(float)
    colourful = image.max(axis=2) - image.min(axis=2)
    return colourful / (RGB[0].max() - RGB[0].min())


def test_subjects_are_shapes_in_both_fills() -> None:
    assert len(SUBJECTS) == len(SHAPES) * len(FILLS) == 24
    assert SUBJECTS[:3] == ("solid circle", "hollow circle", "solid square")
    assert (len(HUES), len(FRAMES), len(RGB)) == (6, 2, 6)


def test_same_seed_same_bytes_another_seed_other_images() -> None:
    first, again, other = (render_balanced(2, seed=seed) for seed in (0, 0, 1))
    assert first.images.tobytes() == again.images.tobytes()
    assert first.image_id == again.image_id
    assert (first.images != other.images).any(axis=(1, 2, 3)).all()


def test_a_smaller_set_begins_a_larger_one(balanced: Scenes) -> None:
    fewer = render_balanced(1, seed=0)
    np.testing.assert_array_equal(fewer.images, balanced.images[::3])


def test_every_cell_has_as_many(balanced: Scenes) -> None:
    cells = np.column_stack(
        [balanced.factors.subject, balanced.factors.hue, balanced.factors.frame]
    )
    found, count = np.unique(cells, axis=0, return_counts=True)
    assert len(found) == 24 * 6 * 2
    assert set(count) == {3}
    assert len(set(balanced.image_id)) == len(balanced) == 864
    assert balanced.images.shape == (864, 32, 32, 3)
    assert balanced.images.dtype == np.uint8


def test_sets_share_all_but_hue_and_frame(counterfactual: Scenes) -> None:
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


def test_pixels_of_a_set_differ_where_the_attribute_is(counterfactual: Scenes) -> None:
    away = np.arange(32) - 15.5
    far = np.hypot(away[:, None], away[None, :]) > 15.5
    for first in range(0, len(counterfactual), 12):
        red_level, red_upright, yellow_level = counterfactual.images[[first, first + 1, first + 2]]
        middle = (slice(4, 28), slice(4, 28))
        np.testing.assert_array_equal(red_level[middle], red_upright[middle])
        assert (red_level != red_upright).any()
        np.testing.assert_array_equal(red_level[far], yellow_level[far])
        assert (red_level[middle] != yellow_level[middle]).any()


def test_the_table_tells_the_truth(counterfactual: Scenes) -> None:
    table = counterfactual.table()
    assert {len(column) for column in table.values()} == {len(counterfactual)}
    last = {name: column[-1] for name, column in table.items()}
    assert last["image_id"] == "hollow-bolt-00001-purple-upright"
    assert last["set"] == "hollow-bolt-00001"
    assert (last["subject"], last["shape"], last["fill"]) == ("hollow bolt", "bolt", "hollow")
    assert (last["hue"], last["frame"]) == ("purple", "upright")
    assert last["x"] == counterfactual.factors.x[-1]
    assert set(render.NUISANCE) < set(table)


@pytest.mark.parametrize("hue", range(6))
def test_the_middle_of_a_solid_glyph_has_its_hue(hue: int) -> None:
    image = render.render(replace(one("solid circle"), hue=np.array([hue])))[0]
    np.testing.assert_array_equal(image[16, 16], RGB[hue])
    dim = render.render(replace(one("solid circle", light=0.8), hue=np.array([hue])))[0]
    np.testing.assert_allclose(dim[16, 16], 0.8 * RGB[hue], atol=0.51)


def test_the_background_is_grey_and_leans_to_the_right() -> None:
    image = render.render(one("solid circle", grey=0.6, slope=0.2))[0].astype(float)
    corner = image[6:26, [0, 31]]
    assert (corner.max(axis=2) == corner.min(axis=2)).all()
    np.testing.assert_allclose(corner[:, 0, 0], 255 * (0.6 - 0.2 * 15.5 / 32), atol=0.51)
    np.testing.assert_allclose(corner[:, 1, 0], 255 * (0.6 + 0.2 * 15.5 / 32), atol=0.51)


def test_upright_bars_are_level_bars_turned() -> None:
    level = render.render(one("hollow square"))[0]
    upright = render.render(replace(one("hollow square"), frame=np.array([1])))[0]
    np.testing.assert_array_equal(upright, level.transpose(1, 0, 2))
    dark = (level == 20).all(axis=2)
    assert sorted(set(np.flatnonzero(dark.any(axis=1)))) == [2, 29]
    assert dark[2].sum() == 20


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_cover_the_area_of_their_side(shape: str) -> None:
    assert glyph(one(f"solid {shape}")).sum() == pytest.approx(144.0, rel=0.03)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_hollow_glyph_is_the_edge_of_the_solid_one(shape: str) -> None:
    solid, hollow = glyph(one(f"solid {shape}")), glyph(one(f"hollow {shape}"))
    assert (hollow <= solid + 0.01).all()
    assert 0.2 < hollow.sum() / solid.sum() < 0.75
    assert (solid - hollow).max() > 0.9


def test_glyphs_are_told_apart() -> None:
    drawn = np.stack([glyph(one(subject)).ravel() for subject in SUBJECTS])
    apart = np.abs(drawn[:, None] - drawn[None]).sum(axis=2)
    np.fill_diagonal(apart, np.inf)
    assert apart.min() > 15.0


def test_a_glyph_moves_and_turns_as_its_factors_say() -> None:
    still, moved = glyph(one("solid star")), glyph(one("solid star", x=1.0, y=-1.0))
    np.testing.assert_allclose(moved[:-1, 1:], still[1:, :-1], atol=0.02)
    # A quarter turn anticlockwise sends what is right to the top.
    turned = glyph(one("solid arrow", turn=np.pi / 2))
    np.testing.assert_allclose(turned, np.rot90(glyph(one("solid arrow"))), atol=0.1)


@pytest.mark.parametrize("shape", SHAPES)
def test_outlines_have_area_1_and_their_centroid_at_0(shape: str) -> None:
    table = distances()[SHAPES.index(shape)]
    inside = table < 0.0
    cell = (2.0 * REACH / CELLS) ** 2
    assert inside.sum() * cell == pytest.approx(1.0, rel=0.03)
    rows, columns = np.nonzero(inside)
    assert np.abs([rows.mean() - 127.5, columns.mean() - 127.5]).max() < 0.5
    corners, after = outline(shape), np.roll(outline(shape), -1, axis=0)
    crossed = corners[:, 0] * after[:, 1] - after[:, 0] * corners[:, 1]
    assert crossed.sum() / 2.0 == pytest.approx(1.0)


def test_distances_are_those_of_a_square() -> None:
    table = distances()[SHAPES.index("square")]
    middles = (np.arange(CELLS) + 0.5) / CELLS * 2.0 * REACH - REACH
    np.testing.assert_allclose(table[128, 128:160], middles[128:160] - 0.5, atol=0.02)
    corner = np.hypot(middles[200] - 0.5, middles[200] - 0.5)
    assert table[200, 200] == pytest.approx(corner, abs=1e-6)


def test_degrading_blurs_adds_noise_and_repeats(balanced: Scenes) -> None:
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


@pytest.mark.parametrize(
    ("make", "name"), [(render_balanced, "per_cell"), (render_sets, "per_subject")]
)
def test_counts_and_seeds_outside_their_range_are_refused(make: object, name: str) -> None:
    assert callable(make)
    with pytest.raises(ValueError, match=f"^{name} must be at least 1, got 0$"):
        make(0, seed=0)
    with pytest.raises(ValueError, match="^seed must not be negative, got -1$"):
        make(1, seed=-1)


def test_sets_and_balanced_images_share_no_pose() -> None:
    drawn = [set(make(2, seed=0).factors.x.tolist()) for make in (render_balanced, render_sets)]
    assert not drawn[0] & drawn[1]

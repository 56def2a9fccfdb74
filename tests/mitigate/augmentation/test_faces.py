"""Where faces are, and what is done to them."""

import math
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from PIL import Image

from equipoise.core import InputError
from equipoise.mitigate import (
    CascadeDetector,
    Faces,
    MixedFaces,
    NoisyFaces,
    Regions,
    mix_regions,
    noise_region,
    regions_of_columns,
)

SIDES = ("left", "top", "right", "bottom")


def columns(*boxes):
    return {side: [box[place] for box in boxes] for place, side in enumerate(SIDES)}


def ramp(value):
    """Every quarter another value: value, value + 1, value + 2, value + 3."""
    quarters = np.kron([[0, 1], [2, 3]], np.ones((4, 4), int)) + value
    return np.repeat(quarters[:, :, None], 3, axis=2).astype(np.uint8)


def test_boxes_of_a_table_are_cut_to_their_images():
    none = (None, None, None, None)
    regions = regions_of_columns(columns((-3, 2, 9, 99), none, (1.4, 1.6, 5, 5)), [(10, 8)] * 3)
    assert regions.boxes.tolist() == [[0, 2, 8, 10], [0, 0, 0, 0], [1, 2, 5, 5]]
    assert regions.has_face.tolist() == [True, False, True]
    assert regions.box(1) is None
    assert regions.missing(["a", "a", "b"]) == {"a": (1, 2), "b": (0, 1)}


@pytest.mark.parametrize(
    ("box_columns", "message"),
    [
        (columns((1, 2, None, 4)), "^row 1: the box"),
        (columns((5, 5, 5, 9)), r"^row 1: the box \[5, 5, 5, 9\]"),
        (columns((90, 0, 99, 9)), "^row 1: the box"),
    ],
)
def test_what_is_no_box(box_columns, message):
    with pytest.raises(InputError, match=message):
        regions_of_columns(box_columns, [(10, 10)])


def test_quarters_come_from_the_other_face_and_nothing_else_changes():
    image, other = ramp(10), ramp(100)
    mixed = mix_regions(image, (0, 0, 8, 8), other, (0, 0, 8, 8), (True, False, False, True))
    assert np.unique(mixed[:4, :4]).tolist() == [100]
    assert np.unique(mixed[4:, 4:]).tolist() == [103]
    np.testing.assert_array_equal(mixed[:4, 4:], image[:4, 4:])
    np.testing.assert_array_equal(mixed[4:, :4], image[4:, :4])
    assert image[0, 0, 0] == 10


def test_noise_is_uniform_within_the_box_alone_and_repeats():
    image = np.full((80, 80, 3), 7, np.uint8)
    noisy = noise_region(image, (10, 20, 70, 80), np.random.default_rng(1))
    box = noisy[20:80, 10:70]
    assert abs(box.mean() - 127.5) < 3 * 73.9 / math.sqrt(box.size)
    assert (noisy[:20] == 7).all()
    assert (noisy[:, :10] == 7).all()


@pytest.mark.parametrize("strength", [1.0, 0.25, 1 / 255])
def test_added_noise_is_uniform_up_to_its_strength_and_cut_at_white(strength):
    image = np.full((80, 80, 3), 7, np.uint8)
    image[:50] = 255
    box, random = (10, 20, 70, 80), np.random.default_rng(1)
    noisy = noise_region(image, box, random, added=True, strength=strength)
    changed = noisy.astype(int) - image
    inside = changed[50:80, 10:70]
    top = 255 * strength
    # Of rounded numbers whose mean is that of uniform ones, where white doesn't cut them.
    expected = np.clip(np.linspace(0, top, 100_001), 0, 248).mean()
    assert abs(inside.mean() - expected) < 4 * (top / math.sqrt(12) + 0.3) / math.sqrt(inside.size)
    assert inside.min() == 0
    assert inside.max() == min(round(top), 248)
    changed[50:80, 10:70] = 0
    assert not changed.any()


def test_what_cannot_be_mixed():
    image = np.zeros((6, 6, 3), np.uint8)
    with pytest.raises(
        InputError, match=r"^the box \(0, 0, 7, 6\) is not within its image of 6 × 6"
    ):
        noise_region(image, (0, 0, 7, 6), np.random.default_rng(0))


def people(n=40):
    """Men are dark and women bright; the last image has no face."""
    groups = np.array(["man", "woman"] * (n // 2), dtype=object)
    images = np.stack([ramp(10 if group == "man" else 200) for group in groups])
    has_face = np.arange(n) < n - 1
    boxes = np.tile((0, 0, 8, 8), (n, 1)) * has_face[:, None]
    labels = np.array(["x", "x", "y", "y"] * (n // 4), dtype=object)
    return Faces(images, labels, groups, Regions(boxes, has_face))


def test_faces_are_mixed_with_those_of_another_group():
    faces = people()
    data = MixedFaces(faces, seed=3)
    for place in range(len(data) - 1):
        image = data.training_image(place)
        quarters = [image[4 * (q // 2), 4 * (q % 2), 0] for q in range(4)]
        base_value = 10 if faces.groups[place] == "man" else 200
        exchanged = [quarter not in range(base_value, base_value + 4) for quarter in quarters]
        assert 1 <= sum(exchanged) <= 3
        assert data[place][1] == faces.labels[place]
    np.testing.assert_array_equal(data.training_image(39), faces.images[39])


def test_what_is_drawn_follows_from_seed_epoch_and_place_alone():
    data, again = MixedFaces(people(), seed=3), MixedFaces(people(), seed=3)
    backwards = [again.training_image(place) for place in reversed(range(40))][::-1]
    np.testing.assert_array_equal([data.training_image(place) for place in range(40)], backwards)
    again.epoch = 1
    assert any(
        (data.training_image(place) != again.training_image(place)).any() for place in range(40)
    )


def test_changed_copies_join_the_originals():
    faces, share = people(), 0.5
    replacing = NoisyFaces(faces, seed=3, share=share)
    joining = NoisyFaces(faces, seed=3, share=share, keep_originals=True)
    n, copies = len(faces), joining.rows[len(faces) :]
    assert len(replacing) == n
    assert 0.2 < len(copies) / n < 0.8
    assert len(joining) == n + len(copies)
    for row in range(n):
        np.testing.assert_array_equal(joining.training_image(row), faces.images[row])
    first = [joining.training_image(row) for row in copies]
    assert all(
        (image != faces.images[row - n]).any() for image, row in zip(first, copies, strict=True)
    )
    assert joining[n][1] == faces.labels[copies[0] - n]
    # Copies are a set of images: the same in each epoch. Replacements are drawn anew.
    joining.epoch = 1
    np.testing.assert_array_equal(first, [joining.training_image(row) for row in copies])
    # An image without a face has no copy, and the others go with their originals.
    assert (faces.regions.has_face[copies - n]).all()
    assert joining.with_copies(copies[:1] - n).tolist() == [copies[0] - n, copies[0]]
    assert joining.with_copies(np.array([n - 1])).tolist() == [n - 1]


def test_partners_may_have_the_label_alone():
    faces = people()
    for group, label in zip(faces.groups, faces.labels, strict=True):
        partners = faces.partners(group, label)
        assert {*faces.labels[partners]} == {label}
        assert group not in faces.groups[partners]
        assert {*partners} < {*faces.partners(group, None)}
    numbered = np.broadcast_to(np.arange(40, dtype=np.uint8)[:, None, None, None], (40, 16, 16, 3))
    mixed = MixedFaces(replace(faces, images=numbered), seed=3, partners="label")
    for row in range(39):
        [partner] = {*np.unique(mixed.training_image(row)).tolist()} - {row}
        assert faces.labels[partner] == faces.labels[row]


def test_what_is_no_set_of_faces():
    faces = people(8)
    with pytest.raises(InputError, match="^8 images, 7 labels, 8 groups and 8 regions"):
        Faces(faces.images, faces.labels[:7], faces.groups, faces.regions)


def photograph():
    """Grace Hopper, a photograph that comes with matplotlib (public domain, US Navy)."""
    path = Path(mpl.get_data_path()) / "sample_data" / "grace_hopper.jpg"
    return np.asarray(Image.open(path).convert("RGB").resize((256, 300)))


def test_the_cascade_finds_a_face_and_counts_images_without():
    regions = CascadeDetector()([photograph(), np.full((60, 60, 3), 90, np.uint8)])
    assert regions.has_face.tolist() == [True, False]
    left, top, right, bottom = regions.boxes[0].tolist()
    # Her eyes and mouth lie around (133, 100) of the scaled photograph.
    assert left < 133 < right
    assert top < 100 < bottom
    assert right - left < 160
    assert regions.missing(["woman", "man"]) == {"man": (1, 1), "woman": (0, 1)}

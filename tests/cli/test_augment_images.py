"""Images of `equipoise augment`: what can't be used is named before training."""

import numpy as np
import pytest
from PIL import Image

from cli.faces_project import CONFIG, FACES, SHARES, call, draw, rows_of, write_rows
from equipoise.audits.config import load_as
from equipoise.cli.augmentation import AugmentConfig, read_set
from equipoise.core import DataError
from equipoise.mitigate import Regions
from equipoise.planted.faces import draw_faces


@pytest.fixture
def project(tmp_path):
    draw(tmp_path)
    return tmp_path


def read(project):
    config = load_as(project / "config.yaml", AugmentConfig)
    return read_set("biased", config.images.biased, config, project, {})


def test_pixels_and_boxes_are_scaled_alike(project):
    face_set = read(project)
    faces = draw_faces(32, long_hair=SHARES["biased"], seed=0)
    np.testing.assert_array_equal(face_set.regions.boxes, faces.boxes)
    with Image.open(project / "photos" / "biased-03.png") as picture:
        expected = np.asarray(picture.resize((40, 40), Image.Resampling.BILINEAR))
    np.testing.assert_array_equal(face_set.images[3], expected)
    # Rows in another order are the same set.
    write_rows(project / "biased.csv", rows_of(project / "biased.csv")[::-1])
    again = read(project)
    np.testing.assert_array_equal(again.images, face_set.images)
    np.testing.assert_array_equal(again.labels, face_set.labels)


def test_faces_are_sought_by_a_detector(project, monkeypatch):
    def detector(images):
        boxes = np.tile(np.array([8, 6, 40, 54]), (len(images), 1))
        has_face = np.array([image.shape == (60, 80, 3) for image in images], bool)
        return Regions(boxes * has_face[:, None], has_face)

    monkeypatch.setattr("equipoise.cli.augmentation.CascadeDetector", lambda: detector)
    (project / "config.yaml").write_text(CONFIG.replace(FACES, "faces: {detector: cascade}"))
    Image.new("RGB", (20, 20)).save(project / "photos" / "biased-01.png")
    regions = read(project).regions
    assert regions.boxes[0].tolist() == [4, 4, 20, 36]
    assert regions.has_face.tolist() == [True, False, *[True] * 30]


def fails_before_training(project, command):
    code, _, err = command(*call(project))
    assert code == 2
    assert not (project / "run").exists()
    assert not [*(project / "evidence").rglob("*.pt")]
    return err.splitlines()[-1]


def test_an_image_that_cannot_be_read_ends_it_before_training(project, command):
    (project / "photos" / "test-02.png").unlink()
    error = fails_before_training(project, command)
    assert error.startswith(f"error: {project / 'test.csv'}, column 'file', row 3: the image ")


def test_a_missing_label_ends_it_before_training(project, command):
    rows = rows_of(project / "biased.csv")
    rows[4][3] = ""
    write_rows(project / "biased.csv", rows)
    error = fails_before_training(project, command)
    assert error.startswith(f"error: {project / 'biased.csv'}, column 'hair', row 5: a cell is")


def test_the_row_of_a_box_is_that_of_the_table(project):
    rows = rows_of(project / "biased.csv")
    rows[20][4:] = ["1", "1", "1", "1"]
    write_rows(project / "biased.csv", rows[::-1])
    with pytest.raises(DataError, match=r"biased.csv: row 12: the box .* "):
        read(project)


def test_a_group_without_any_face_ends_it_before_training(project, command):
    rows = rows_of(project / "biased.csv")
    for row in rows:
        if row[3] == "long hair":
            row[4:] = [""] * 4
    write_rows(project / "biased.csv", rows)
    error = fails_before_training(project, command)
    assert "no face was found in any image of long hair" in error

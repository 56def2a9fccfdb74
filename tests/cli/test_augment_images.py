"""Images of `equipoise augment`: decoded once; what cannot be used is told before training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from cli.faces_project import CONFIG, FACES, SHARES, call, draw, rows_of, write_rows
from equipoise.cli.augmenting import images, running
from equipoise.cli.augmenting.config import AugmentConfig, load_augment_config
from equipoise.cli.augmenting.images import Read, read_set
from equipoise.core.errors import DataError
from equipoise.mitigate.augmentation import Regions
from equipoise.planted.faces import draw_faces

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    draw(tmp_path)
    return tmp_path


def configured(project: Path) -> AugmentConfig:
    return load_augment_config(project / "config.yaml")


def read(project: Path, name: str = "biased") -> Read:
    config = configured(project)
    return read_set(name, getattr(config.images, name), config, project)


def packs(project: Path) -> list[Path]:
    return [*(project / "evidence" / "augmentation" / "images").rglob("*.npy")]


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Return what is decoded, as it is."""
    seen: list[bytes] = []
    own = images.decode

    def decode(data: bytes) -> Any:
        seen.append(data)
        return own(data)

    monkeypatch.setattr(images, "decode", decode)
    return seen


def same(one: Read, other: Read) -> bool:
    first, second = one.faces, other.faces
    return all(
        np.array_equal(a, b)
        for a, b in (
            (first.images, second.images), (first.labels, second.labels),
            (first.groups, second.groups), (first.regions.boxes, second.regions.boxes),
            (first.regions.found, second.regions.found),
        )
    )  # fmt: skip


def test_an_image_is_decoded_once(project: Path, decoded: list[bytes]) -> None:
    first = read(project)
    assert len(decoded) == 32
    assert same(first, read(project))
    assert len(decoded) == 32
    # Another file under the same name is another image.
    Image.new("RGB", (20, 20), "red").save(project / "photos" / "biased-07.png")
    table = rows_of(project / "biased.csv")
    changed = read(project)
    assert len(decoded) == 33
    assert changed.faces.images[7].tolist() == [[[255, 0, 0]] * 40] * 40
    others = [place for place in range(32) if place != 7]
    np.testing.assert_array_equal(changed.faces.images[others], first.faces.images[others])
    # Rows in another order are the same set; their table is another file.
    write_rows(project / "biased.csv", table[::-1])
    assert same(changed, read(project))
    assert len(decoded) == 33


def test_images_that_come_one_by_one_leave_few_files(project: Path, decoded: list[bytes]) -> None:
    table = rows_of(project / "biased.csv")
    most = 0
    for many in range(1, 33):
        write_rows(project / "biased.csv", table[:many])
        read(project)
        most = max(most, len(packs(project)))
    # Smaller packs go into what is added, and no image is in two.
    assert most <= 5
    assert sum(len(np.load(pack)) for pack in packs(project)) == len(decoded) == 32
    (project / "config.yaml").write_text(CONFIG.replace("size: 40", "size: 24"))
    read(project)
    assert len(decoded) == 64
    assert not [*(project / "evidence").rglob("*.partial")]


def test_pixels_and_boxes_are_scaled_alike(project: Path) -> None:
    found = read(project).faces
    drawn = draw_faces(32, long_hair=SHARES["biased"], seed=0)
    np.testing.assert_array_equal(found.regions.boxes, drawn.boxes)
    with Image.open(project / "photos" / "biased-03.png") as picture:
        own = np.asarray(picture.resize((40, 40), Image.Resampling.BILINEAR))
    np.testing.assert_array_equal(found.images[3], own)


@pytest.mark.parametrize("content", [b"", b"no array", "cut", "other", "flipped"])
def test_a_damaged_store_is_as_none(
    project: Path, decoded: list[bytes], content: bytes | str
) -> None:
    first = read(project)
    (kept,) = packs(project)
    if content == "other":
        np.save(kept, np.zeros(3))
    elif content == "flipped":
        changed = bytearray(kept.read_bytes())
        changed[len(changed) // 2] ^= 1
        kept.write_bytes(changed)
    else:
        kept.write_bytes(content if isinstance(content, bytes) else kept.read_bytes()[:-1])
    assert same(first, read(project))
    assert len(decoded) == 64
    assert same(first, read(project))
    assert len(decoded) == 64


def test_faces_are_sought_in_new_images_alone(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def detector(images: Sequence[Any]) -> Regions:
        asked.append(len(images))
        boxes = np.tile(np.array([8, 6, 40, 54]), (len(images), 1))
        found = np.array([image.shape == (60, 80, 3) for image in images], bool)
        return Regions(boxes * found[:, None], found)

    monkeypatch.setattr("equipoise.cli.augmenting.images.CascadeDetector", lambda: detector)
    (project / "config.yaml").write_text(CONFIG.replace(FACES, "faces: {detector: cascade}"))
    Image.new("RGB", (20, 20)).save(project / "photos" / "biased-01.png")
    first = read(project)
    assert first.faces.regions.boxes[0].tolist() == [4, 4, 20, 36]
    assert first.faces.regions.found.tolist() == [True, False, *[True] * 30]
    assert same(first, read(project))
    assert asked == [0, 32, 0]  # with none, whether the detector can be used


def test_few_failures_are_counted_and_told_before_training(
    project: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "photos" / "biased-05.png").write_bytes(b"no picture")

    def trained(*_: Any, **__: Any) -> Any:
        raise DataError("training began")

    monkeypatch.setattr(running, "augmentation_experiment", trained)
    code, _, err = command(*call(project))
    assert code == 2
    told, ended = err.splitlines()
    assert told == (
        f"biased: 1 of 32 images cannot be used (long hair 1), such as row 6, "
        f"{project / 'photos' / 'biased-05.png'}: it is no picture of a known format (JPEG, MPO, "
        "PNG, GIF, WEBP, BMP, DIB, TIFF, PPM, JPEG2000, AVIF)."
    )
    assert ended.startswith("error: training began")
    counts = read(project).counts
    assert counts["cannot be used, by group"] == {"long hair": 1}
    (where,) = counts["cannot be used"]
    assert where == f"row 6, {project / 'photos' / 'biased-05.png'}"


def test_many_failures_end_it_before_training(
    project: Path, command: Command, decoded: list[bytes]
) -> None:
    (project / "photos" / "test-09.png").write_bytes(b"")
    (project / "photos" / "test-02.png").unlink()
    code, _, err = command(*call(project))
    assert (code, err) == (
        2,
        f"error: {project / 'test.csv'}: 2 of 32 images cannot be used, and max_failures allows 1; "
        f"the first is row 3, {project / 'photos' / 'test-02.png'}: No such file or directory. "
        "To do: repair them, take their rows out, or raise max_failures to do without them.\n",
    )
    assert not (project / "run").exists()
    assert not [*(project / "evidence").rglob("*.pt")]
    # What was decoded on the way is not decoded again.
    before = len(decoded)
    (project / "config.yaml").write_text(f"{CONFIG}\nmax_failures: 0.1\n")
    assert command(*call(project))[0] == 0
    assert decoded[before:] == [b""]


def test_the_row_of_a_box_is_that_of_the_table(project: Path) -> None:
    (project / "photos" / "biased-02.png").unlink()
    rows = rows_of(project / "biased.csv")
    rows[20][4:] = ["1", "1", "1", "1"]
    rows[4][3] = ""
    write_rows(project / "biased.csv", rows)
    with pytest.raises(DataError, match=r"biased.csv: row 21: the box .* "):
        read(project)


def test_states_are_of_the_images_and_the_schedule(project: Path, command: Command) -> None:
    again = (*call(project), "--overwrite")
    assert command(*again)[0] == 0
    states = {*(project / "evidence").rglob("*.pt")}
    assert len(states) == 4
    Image.new("RGB", (20, 20), "red").save(project / "photos" / "biased-07.png")
    assert command(*again)[0] == 0  # the box of row 8 is cut, and holds enough
    more = {*(project / "evidence").rglob("*.pt")}
    assert len(more) == 8
    (project / "config.yaml").write_text(CONFIG.replace("epochs: 1", "epochs: 2"))
    assert command(*again)[0] == 0
    assert len({*(project / "evidence").rglob("*.pt")}) == 12


def without_boxes(project: Path, kept: int, groups: Sequence[str]) -> None:
    """Leave the boxes of the first images of some groups alone."""
    rows = rows_of(project / "biased.csv")
    for group in groups:
        for row in [row for row in rows if row[3] == group][kept:]:
            row[4:] = [""] * 4
    write_rows(project / "biased.csv", rows)


def test_a_group_without_any_face_ends_it_before_training(project: Path, command: Command) -> None:
    without_boxes(project, 0, ["long hair"])
    code, _, err = command(*call(project))
    assert (code, err.splitlines()) == (
        2,
        [
            "biased: no face was found in 18 of 32 images, which stay as they are (long hair 18 of "
            "18, short hair 0 of 14).",
            "error: biased images: no face was found in any image of long hair (found: long hair 0 "
            "of 18, short hair 14 of 14), so that no face could be mixed with one of the other "
            "group. To do: give the boxes of faces in columns, or another detector",
        ],
    )
    assert not (project / "run").exists()
    assert not [*(project / "evidence").rglob("*.pt")]


def test_test_images_that_are_trained_on_end_it_before_training(
    project: Path, command: Command
) -> None:
    photos = project / "photos"
    # The same picture in another file; and the same file.
    with Image.open(photos / "balanced-20.png") as picture:
        picture.save(photos / "test-11.png", compress_level=1)
    (photos / "test-30.png").write_bytes((photos / "biased-03.png").read_bytes())
    (photos / "test-04.png").unlink()
    code, _, err = command(*call(project))
    assert (code, err.splitlines()[-1]) == (
        2,
        f"error: {project / 'test.csv'}: 2 of 31 test images are also trained on; the first is row "
        f"12, {photos / 'test-11.png'}, the same picture as row 21, {photos / 'balanced-20.png'}, "
        f"of the balanced images in {project / 'balanced.csv'}. To do: take their rows out of one "
        "of the tables, or test on other images.",
    )
    assert not [*(project / "evidence").rglob("*.pt")]

"""Identical bytes under several ids: both rows stay, and are counted."""

import json
import shutil

import pytest

from equipoise.evidence import ExtractionSettings, extract_embeddings, pictures_of_table
from equipoise.evidence.pictures import pack_digests, same_pictures
from picture_models import Means


@pytest.fixture
def photos(photos):
    shutil.copy(photos / "00001.png", photos / "00006.png")
    shutil.copy(photos / "00001.png", photos / "00007.png")
    (photos / "00003.png").write_bytes(b"")
    (photos / "00008.png").unlink()
    return photos


NAMES = [f"{k:05d}.png" for k in range(9)]


def test_images_with_the_same_bytes_are_counted_and_kept(photos, tmp_path):
    files = [*NAMES[:5], NAMES[4], *NAMES[6:]]  # a path that stands twice is no other case
    pictures = pictures_of_table(NAMES, files, root=photos, name="t")
    for _ in range(2):  # computed, and read
        evidence = extract_embeddings(
            pictures, Means(), tmp_path / "s", settings=ExtractionSettings(part=4, max_failures=0.5)
        )
        copies_of_1 = ("00001.png", "00006.png", "00007.png")
        copies_of_4 = ("00004.png", "00005.png")
        assert evidence.identical == (copies_of_1, copies_of_4)
        assert {*copies_of_1, *copies_of_4} <= {*evidence.table["image_id"].to_pylist()}
        summary = json.loads((evidence.folder / "manifest.json").read_text())["identical"]
        assert summary == {"images": 5, "pictures": 2, "first": [[*copies_of_1], [*copies_of_4]]}


def test_images_that_could_not_be_read_are_no_twins(photos, tmp_path):
    files = [*NAMES[:5], "no.png", "none.png", *NAMES[:2]]
    pictures = pictures_of_table(NAMES, files, root=photos, name="t")
    evidence = extract_embeddings(
        pictures, Means(), tmp_path / "s", settings=ExtractionSettings(max_failures=0.5)
    )
    assert evidence.identical == (("00000.png", "00007.png"), ("00001.png", "00008.png"))


def test_two_people_cut_from_one_photograph_are_two_pictures(photos):
    crops = [[0, 0, 4, 4], [4, 4, 8, 8], [0, 0, 4, 4]]
    pictures = pictures_of_table(["a", "b", "c"], ["x"] * 3, root=photos, name="t", crops=crops)
    assert same_pictures(pictures, pack_digests(["0f" * 32] * 3)) == (("a", "c"),)

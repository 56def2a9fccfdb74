import pytest

from equipoise.core import DataError
from equipoise.evidence import (
    ExtractionSettings,
    Pending,
    extract_embeddings,
    pending,
    pictures_in_folder,
    pictures_of_table,
)
from picture_models import Means

NAME = "python:picture_models:means"


def test_finished_parts_are_counted_also_of_a_run_that_was_stopped(photos, tmp_path):
    pictures = pictures_in_folder(photos)
    (photos / "00011.png").write_bytes(b"")
    with pytest.raises(DataError):
        extract_embeddings(pictures, Means(), tmp_path, settings=ExtractionSettings(part=4))
    status = pending(pictures, NAME, "embeddings", tmp_path, part=4)
    assert status == Pending(12, present=11, failed=1, missing=0)
    (stopped,) = (tmp_path / "embeddings").iterdir()
    next(stopped.glob("part-00001-*")).unlink()
    status = pending(pictures, NAME, "embeddings", tmp_path, part=4)
    assert (status.present, status.failed, status.to_do) == (7, 1, 4)
    next(stopped.glob("part-00000-*")).write_bytes(b"broken")
    status = pending(pictures, NAME, "embeddings", tmp_path, part=4)
    assert (status.present, status.failed, status.to_do) == (3, 1, 8)


def test_missing_files_are_counted(photos, tmp_path):
    pictures = pictures_in_folder(photos)
    (photos / "00001.png").unlink()
    extract_embeddings(
        pictures, Means(), tmp_path, settings=ExtractionSettings(part=4, max_failures=0.5)
    )
    status = pending(pictures, NAME, "embeddings", tmp_path, part=4)
    assert (status.present, status.failed, status.to_do, status.missing) == (11, 1, 0, 1)


def test_evidence_of_something_else_does_not_count(photos, tmp_path):
    pictures = pictures_in_folder(photos)
    extract_embeddings(pictures, Means(), tmp_path)
    requests = [
        (pictures, "python:picture_models:other", "embeddings"),
        (pictures, NAME, "probabilities"),
        (pictures.take(range(5)), NAME, "embeddings"),
        (_cropped(photos), NAME, "embeddings"),
    ]
    for request in requests:
        assert pending(*request, tmp_path).present == 0
    assert pending(pictures, NAME, "embeddings", tmp_path).present == 12
    unlike = [{"question": "Who?"}, {"features": True}, {"part": 64}]
    for more in unlike:
        assert pending(pictures, NAME, "embeddings", tmp_path, **more).present == 0


def test_a_key_counts_and_not_the_name(photos, tmp_path):
    pictures = pictures_in_folder(photos)
    extract_embeddings(pictures, Means(), tmp_path)
    key = Means().info.key
    assert pending(pictures, "another", "embeddings", tmp_path, key=key).present == 12
    for other in ("", "other"):
        assert pending(pictures, NAME, "embeddings", tmp_path, key=other).present == 0


def _cropped(photos):
    names = [f"{k:05d}.png" for k in range(12)]
    crops = [[0, 0, 4, 4]] * 12
    return pictures_of_table(names, names, root=photos, name="t", crops=crops)

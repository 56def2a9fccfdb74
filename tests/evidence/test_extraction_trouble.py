"""What must not happen: nothing lost, nothing doubled, and of all trouble a count and a reason."""

import errno
import json
import os
import re
import threading
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from alone import alone
from equipoise.core import DataError, ModelError
from equipoise.evidence import (
    ExtractionSettings,
    extract_answers,
    extract_embeddings,
    pictures_in_folder,
    pictures_of_table,
)
from picture_models import Means, means, write_pictures


def of_width(width, effect):
    """Return an action on images of one width; two of three have another width."""

    def act(image, row):
        if image.shape[1] != width:
            return row
        if isinstance(effect, Exception):
            raise effect
        return [effect] * 4

    return act


def test_a_failure_has_a_stage_and_a_reason(photos, store):
    (photos / "00002.png").write_bytes(b"no picture")
    content = (photos / "00005.png").read_bytes()
    (photos / "00005.png").write_bytes(content[:100])
    names = [f"{k:05d}.png" for k in range(12)]
    pictures = pictures_of_table(names, names, root=photos, name="t")
    (photos / "00007.png").unlink()
    evidence = extract_embeddings(
        pictures,
        Means(act=of_width(9, np.nan)),
        store,
        settings=ExtractionSettings(part=5, max_failures=0.9),
    )
    failures = {
        row["image_id"]: (row["stage"], row["reason"]) for row in evidence.failures.to_pylist()
    }
    assert {name: stage for name, (stage, _) in failures.items()} == {
        "00001.png": "model", "00002.png": "decode", "00004.png": "model", "00005.png": "decode",
        "00007.png": "read", "00010.png": "model",
    }  # fmt: skip
    assert failures["00001.png"][1] == "it gave NaN or infinity"
    assert failures["00002.png"][1].startswith("it isn't a picture of a known format")
    assert failures["00005.png"][1] == "it is damaged: OSError: Truncated File Read"
    assert failures["00007.png"][1] == f"No such file or directory ({photos / '00007.png'})"
    intact = [f"{k:05d}.png" for k in (0, 3, 6, 8, 9, 11)]
    assert evidence.table["image_id"].to_pylist() == intact
    expected = [means(np.asarray(Image.open(photos / name))) for name in intact]
    np.testing.assert_allclose(
        np.stack(evidence.table["embedding"].to_numpy()), expected, rtol=1e-6
    )
    assert [*failures] == sorted(failures)


def test_a_file_that_comes_back_is_read(photos, store):
    pictures = pictures_in_folder(photos)
    aside = (photos / "00002.png").rename(photos.parent / "aside.png")
    first = extract_embeddings(
        pictures, Means(), store, settings=ExtractionSettings(part=4, max_failures=0.1)
    )
    assert first.failures["stage"].to_pylist() == ["read"]
    aside.rename(photos / "00002.png")
    again = extract_embeddings(pictures, Means(), store, settings=ExtractionSettings(part=4))
    assert again.failures.num_rows == 0
    assert again.computed == 4


def test_a_batch_that_fails_is_tried_image_by_image(photos, store):
    model = Means(act=of_width(10, ValueError("too\nwide")))
    evidence = extract_embeddings(
        pictures_in_folder(photos), model, store, settings=ExtractionSettings(max_failures=0.5)
    )
    assert model.seen == [12] + [1] * 12
    assert evidence.failures["image_id"].to_pylist() == [f"{k:05d}.png" for k in (2, 5, 8, 11)]
    assert {*evidence.failures["reason"].to_pylist()} == {"ValueError: too wide"}


def test_a_model_that_always_fails_is_to_blame_and_leaves_nothing(photos, store):
    pictures = pictures_in_folder(photos)

    def act(image, row):
        raise RuntimeError("CUDA error: device lost")

    with pytest.raises(ModelError, match="00000.png.*device lost"):
        extract_embeddings(pictures, Means(act=act), store, settings=ExtractionSettings(part=4))
    assert (
        extract_embeddings(pictures, Means(), store, settings=ExtractionSettings(part=4)).computed
        == 12
    )


def test_a_model_that_breaks_down_half_way_is_asked_again(photos, store):
    pictures, calls = pictures_in_folder(photos), iter(range(99))

    def act(image, row):
        if next(calls) >= 4:
            raise RuntimeError("CUDA error: device lost")
        return row

    with pytest.raises(DataError, match="4 of 12"):
        extract_embeddings(pictures, Means(act=act), store, settings=ExtractionSettings(part=4))
    again = extract_embeddings(pictures, Means(), store, settings=ExtractionSettings(part=4))
    assert again.computed == 8
    assert again.failures.num_rows == 0


def test_more_failures_than_allowed_stop_the_run_with_a_list(photos, store):
    for name in ("00000.png", "00004.png"):
        (photos / name).write_bytes(b"")
    pictures = pictures_in_folder(photos)
    with pytest.raises(DataError) as caught:
        extract_embeddings(
            pictures, Means(), store, settings=ExtractionSettings(part=12, max_failures=0.1)
        )
    (folder,) = (store / "embeddings").iterdir()
    assert "2 of 12" in str(caught.value)
    assert str(folder / "failures.parquet") in str(caught.value)
    listed = pq.read_table(folder / "failures.parquet")["image_id"].to_pylist()
    assert listed == ["00000.png", "00004.png"]
    assert json.loads((folder / "manifest.json").read_text())["whole"] is False
    evidence = extract_embeddings(
        pictures, Means(), store, settings=ExtractionSettings(part=12, max_failures=2 / 12)
    )
    assert (evidence.computed, evidence.failures.num_rows) == (0, 2)


def test_a_part_without_a_row_keeps_its_place(photos, store):
    for k in range(4):
        (photos / f"{k:05d}.png").write_bytes(b"")
    pictures = pictures_in_folder(photos)
    for expected in (8, 0):
        evidence = extract_embeddings(
            pictures, Means(), store, settings=ExtractionSettings(part=4, max_failures=0.5)
        )
        assert evidence.computed == expected
        assert evidence.table["image_id"].to_pylist() == [f"{k:05d}.png" for k in range(4, 12)]


@pytest.mark.parametrize("shape", [(3,), (3, 2, 2), (1, 4), (3, 5)])
def test_a_model_of_another_form_than_promised_is_refused(shape, photos, store):
    class Odd(Means):
        def embed_images(self, images):
            return np.zeros(shape, np.float32)

    pictures = pictures_in_folder(photos).take(range(3))
    with pytest.raises(ModelError, match=re.escape(f"shape {shape}")):
        extract_embeddings(pictures, Odd(), store)


def test_too_few_answers_are_refused(photos, store):
    class Terse(Means):
        def answer(self, images, question):
            return ["yes"]

    with pytest.raises(ModelError, match="1 answers for 12"):
        extract_answers(pictures_in_folder(photos), "?", Terse(), store)


def test_another_process_is_kept_out(photos, store):
    pictures, inside, go = pictures_in_folder(photos), threading.Event(), threading.Event()

    def act(_, row):
        inside.set()
        assert go.wait(30)
        return row

    first = threading.Thread(target=extract_embeddings, args=(pictures, Means(act=act), store))
    first.start()
    assert inside.wait(30)
    program = (
        "import sys; from pathlib import Path; from picture_models import Means\n"
        "from equipoise.evidence import extract_embeddings, pictures_in_folder\n"
        "extract_embeddings(pictures_in_folder(Path(sys.argv[1])), Means(), Path(sys.argv[2]))"
    )
    second = alone(program, photos, store)
    go.set()
    first.join()
    (folder,) = (store / "embeddings").iterdir()
    assert second.returncode == 1
    assert f"{folder}: another process is writing it" in second.stderr
    assert extract_embeddings(pictures, Means(), store).computed == 0


INTERRUPTED = """
import os, signal, sys, time
from pathlib import Path
from picture_models import Means
from equipoise.evidence import ExtractionSettings, extract_embeddings, pictures_in_folder

def act(image, row):
    time.sleep(0.02)
    return row

def tell(step, done, total):
    if done >= 8:
        os.kill(os.getpid(), signal.SIGINT)

begun = time.monotonic()
try:
    pictures = pictures_in_folder(Path(sys.argv[1]))
    settings = ExtractionSettings(part=4, progress=tell)
    extract_embeddings(pictures, Means(act=act), Path(sys.argv[2]), settings=settings)
except KeyboardInterrupt:
        print("interrupted")

try:  # the handler of the signal is Python's own again
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(5)
except KeyboardInterrupt:
    print("and again")

"""


def test_an_interrupt_is_obeyed_and_loses_no_finished_part(photos, store):
    write_pictures(photos, 400)
    done = alone(INTERRUPTED, photos, store)
    assert (done.returncode, done.stdout.splitlines()) == (0, ["interrupted", "and again"])
    (folder,) = (store / "embeddings").iterdir()
    parts = {*folder.glob("part-*.parquet")}
    assert 1 <= len(parts) < 20
    evidence = extract_embeddings(
        pictures_in_folder(photos), Means(), store, settings=ExtractionSettings(part=4)
    )
    assert evidence.computed == 400 - 4 * len(parts)
    assert parts <= {*evidence.parts}


def test_a_deferred_model_loads_only_for_missing_images_and_fails_once(photos, store):
    class Late(Means):
        def open(self):
            raise ModelError("the weights are gone")

    pictures = pictures_in_folder(photos)
    with pytest.raises(ModelError, match=r"^the weights are gone$"):
        extract_embeddings(pictures, Late(), store)
    extract_embeddings(pictures, Means(), store)
    assert extract_embeddings(pictures, Late(), store).computed == 0


def read_only(monkeypatch, number=errno.EROFS):
    """Have every file refuse to be written; root may write whatever the permissions say."""
    real_open, real_os = Path.open, os.open

    def refused(path):
        return OSError(number, os.strerror(number), str(path))

    def opened(path, mode="r", *args, **more):
        if "w" in mode:
            raise refused(path)
        return real_open(path, mode, *args, **more)

    def os_opened(path, flags, *args, **more):
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise refused(path)
        return real_os(path, flags, *args, **more)

    monkeypatch.setattr(Path, "open", opened)
    monkeypatch.setattr(os, "open", os_opened)


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
def test_a_whole_store_is_read_from_a_read_only_disk(number, photos, store, monkeypatch):
    (photos / "00002.png").write_bytes(b"no picture")
    pictures = pictures_in_folder(photos)
    first = extract_embeddings(
        pictures, Means(), store, settings=ExtractionSettings(part=4, max_failures=0.1)
    )
    before = {path: path.stat().st_mtime_ns for path in store.rglob("*")}
    with monkeypatch.context() as patch:
        read_only(patch, number)
        model = Means()
        again = extract_embeddings(
            pictures, model, store, settings=ExtractionSettings(part=4, max_failures=0.1)
        )
    assert model.seen == []
    assert again.table.equals(first.table)
    assert (again.inputs, again.failures) == (first.inputs, first.failures)
    assert {path: path.stat().st_mtime_ns for path in store.rglob("*")} == before

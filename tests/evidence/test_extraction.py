import json
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from alone import alone
from equipoise.core import ModelError
from equipoise.evidence import (
    Decoding,
    ExtractionSettings,
    RunOptions,
    extract_answers,
    extract_embeddings,
    extract_probabilities,
    extract_scores,
    pictures_in_folder,
    pictures_of_table,
)
from picture_models import Means, info, means, write_pictures


def truth(folder):
    return [means(np.asarray(Image.open(path))) for path in sorted(folder.glob("*.png"))]


def vectors(evidence):
    return np.stack(evidence.table["embedding"].to_numpy())


def part_bytes(evidence):
    return {path.name: path.read_bytes() for path in evidence.folder.glob("part-*")}


def test_each_image_is_embedded_in_the_order_of_ids(photos, store):
    model = Means()
    evidence = extract_embeddings(
        pictures_in_folder(photos), model, store, settings=ExtractionSettings(part=5)
    )
    assert evidence.table["image_id"].to_pylist() == [f"{k:05d}.png" for k in range(12)]
    np.testing.assert_allclose(vectors(evidence), truth(photos), rtol=1e-6)
    assert (
        str(evidence.table.schema.field("embedding").type) == "fixed_size_list<element: float>[4]"
    )
    assert (evidence.computed, evidence.names, evidence.failures.num_rows) == (12, (), 0)
    assert model.seen == [5, 5, 2]
    assert evidence.folder.parent == store / "embeddings"
    assert len(evidence.parts) == 3
    assert all(pq.read_table(part).num_rows for part in evidence.parts)


def test_two_runs_and_any_order_of_the_input_give_the_same_bytes(photos, tmp_path):
    (photos / "00003.png").write_bytes(b"broken")
    names = sorted(path.name for path in photos.iterdir())
    runs = []
    for run in range(3):
        order = np.random.default_rng(run).permutation(names).tolist()
        pictures = pictures_of_table(order, order, root=photos, name="t")
        evidence = extract_embeddings(
            pictures,
            Means(),
            tmp_path / f"{run}",
            settings=ExtractionSettings(part=3, max_failures=0.5),
        )
        files = part_bytes(evidence) | {
            name: (evidence.folder / name).read_bytes()
            for name in ("failures.parquet", "manifest.json")
        }
        runs.append((files, evidence.inputs))
    assert runs[0] == runs[1] == runs[2]


def test_only_the_part_of_a_changed_image_is_computed_anew(photos, store):
    pictures = pictures_in_folder(photos)
    first = extract_embeddings(pictures, Means(), store, settings=ExtractionSettings(part=4))
    Image.new("RGB", (8, 8), "red").save(photos / "00005.png")
    model = Means()
    again = extract_embeddings(pictures, model, store, settings=ExtractionSettings(part=4))
    assert model.seen == [4]
    assert again.computed == 4
    np.testing.assert_allclose(vectors(again)[5], [255, 0, 0, 8])
    assert again.parts[0] == first.parts[0]
    assert again.parts[1] != first.parts[1]
    assert sorted(again.folder.glob("part-*")) == sorted(again.parts)
    assert again.inputs != first.inputs


def test_crops_are_cut_out(photos, store):
    crops = [[0, 0, 4, 8], [4, 0, 8, 8]]
    halves = pictures_of_table(["a", "b"], ["00000.png"] * 2, root=photos, name="t", crops=crops)
    evidence = extract_embeddings(halves, Means(), store)
    pixels = np.asarray(Image.open(photos / "00000.png"))
    expected = [means(pixels[:, :4]), means(pixels[:, 4:])]
    np.testing.assert_allclose(vectors(evidence), expected, rtol=1e-6)


class Everything:
    """Offers all that can be asked."""

    labels = ("cat", "dog", "none")

    def __init__(self, about=None):
        self.info = about or info(dimension=None)

    def predict_proba(self, images):
        return np.array([[0.5, 0.25, 0.25]] * len(images), dtype=np.float32)

    def features(self, images):
        return np.array([[image.shape[1], 7] for image in images], dtype=np.float32)

    def score(self, images, texts):
        return np.array([[len(text) for text in texts] for _ in images], dtype=np.float32)

    def answer(self, images, question):
        return [f"{question} {image.shape[1]}" for image in images]


def test_each_kind_of_model_fills_its_table(photos, store):
    pictures, model = pictures_in_folder(photos).take(range(3)), Everything()
    features = extract_embeddings(pictures, model, store)
    assert features.table["embedding"].to_pylist() == [[8, 7], [9, 7], [10, 7]]
    shares = extract_probabilities(pictures, model, store)
    assert shares.names == ("cat", "dog", "none")
    assert shares.table["probabilities"].to_pylist() == [[0.5, 0.25, 0.25]] * 3
    scores = extract_scores(pictures, ["one", "three"], model, store)
    assert scores.names == ("one", "three")
    assert scores.table["scores"].to_pylist() == [[3, 5]] * 3
    assert extract_scores(pictures, ["three", "one"], model, store).computed == 3
    answers = extract_answers(pictures, "How wide?", model, store)
    assert answers.table["answer"].to_pylist() == ["How wide? 8", "How wide? 9", "How wide? 10"]
    assert {path.name for path in store.iterdir()} == {
        "answers", "embeddings", "probabilities", "scores",
    }  # fmt: skip


def test_answers_are_stored_as_text_that_a_file_can_contain(photos, store):
    class Odd(Everything):
        def answer(self, images, question):
            return ["<b>\ud800\x00\n" for _ in images]

    evidence = extract_answers(pictures_in_folder(photos), "Who?", Odd(), store)
    assert {*evidence.table["answer"].to_pylist()} == {"<b>?\x00\n"}


@pytest.mark.parametrize(
    "ask",
    [
        lambda p, s: extract_scores(p, ["x"], Means(), s),
        lambda p, s: extract_probabilities(p, Means(), s),
        lambda p, s: extract_answers(p, "?", Means(), s),
        lambda p, s: extract_embeddings(p, Means(), s, features=True),
    ],
)
def test_a_model_that_cannot_be_asked_that_is_refused(ask, photos, store):
    with pytest.raises(ModelError, match=r"^python:picture_models:means \(means\) gives no "):
        ask(pictures_in_folder(photos), store)
    assert not store.exists()


def test_a_model_is_loaded_by_name_with_the_options(photos, store):
    pictures = pictures_in_folder(photos)
    evidence = extract_embeddings(
        pictures,
        "python:picture_models:new_means",
        store,
        settings=ExtractionSettings(options=RunOptions(device="cpu")),
    )
    np.testing.assert_allclose(vectors(evidence), truth(photos), rtol=1e-6)
    with pytest.raises(ModelError, match="^picture_models:nothing failed: "):
        extract_embeddings(pictures, "python:picture_models:nothing", store)


def test_progress_counts_every_image_once(photos, store):
    pictures = pictures_in_folder(photos)
    for computed in (12, 0):
        steps = []
        evidence = extract_embeddings(
            pictures,
            Means(),
            store,
            settings=ExtractionSettings(
                part=5, progress=lambda *step, steps=steps: steps.append(step)
            ),
        )
        assert evidence.computed == computed
        assert steps == [("images through the model", done, 12) for done in (5, 10, 12)]


def test_the_manifest_describes_the_evidence(photos, store):
    (photos / "00003.png").write_bytes(b"broken")
    evidence = extract_embeddings(
        pictures_in_folder(photos), Means(), store, settings=ExtractionSettings(max_failures=0.2)
    )
    manifest = json.loads((evidence.folder / "manifest.json").read_text())
    assert manifest["whole"] is True
    assert (manifest["images"], manifest["rows"]) == (12, 11)
    assert manifest["failures"] == {"decode": 1}
    assert manifest["model"]["name"] == "python:picture_models:means"
    assert manifest["key"]["decoding"] == Decoding().facts
    assert {*manifest["versions"]} == {"equipoise", "pillow", "pyarrow"}
    failures = pq.read_table(evidence.folder / "failures.parquet")
    assert failures.equals(evidence.failures)
    assert failures["image_id"].to_pylist() == ["00003.png"]


def test_large_pictures_go_to_the_model_in_smaller_batches(photos, store, monkeypatch):
    monkeypatch.setattr("equipoise.evidence.working._HELD", 3 * 8 * 8)
    model = Means()
    evidence = extract_embeddings(pictures_in_folder(photos), model, store)
    assert model.seen == [2] * 6
    np.testing.assert_allclose(vectors(evidence), truth(photos), rtol=1e-6)


def test_no_more_images_go_to_the_model_at_once_than_its_kind_of_device_bears(tmp_path, store):
    write_pictures(tmp_path / "many", 70)
    pictures = pictures_in_folder(tmp_path / "many")
    for device, batches in (("cpu", [32, 32, 6]), ("cuda:0", [70])):
        model = Means(replace(info(), device=device))
        extract_embeddings(pictures, model, store)
        assert model.seen == batches


OFFLINE = """
import socket, sys
from pathlib import Path

def refuse(self, address, *more):
    if self.family != socket.AF_UNIX:
        print("reached for", address, file=sys.stderr)
        raise SystemExit(9)

socket.socket.connect = socket.socket.connect_ex = refuse
socket.getaddrinfo = lambda *asked, **more: refuse(socket.socket(), asked)
from picture_models import Means
from equipoise.evidence import ExtractionSettings, extract_embeddings, pictures_in_folder

found = extract_embeddings(pictures_in_folder(Path(sys.argv[1])), Means(), Path(sys.argv[2]))
print(found.table.num_rows)
"""


def test_nothing_is_sent_anywhere(photos, store):
    done = alone(OFFLINE, photos, store)
    assert done.stderr == ""
    assert done.stdout.split() == ["12"]

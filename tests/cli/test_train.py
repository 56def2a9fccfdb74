"""`equipoise train`: models that load, predictions as a table, stages, and what is refused."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml
from PIL import Image
from safetensors.numpy import load_file

import data_sets
from equipoise.core import RunError
from equipoise.mitigate.augmentation.faces import Faces, PlainFaces, Regions
from equipoise.mitigate.recipe import read_state
from equipoise.mitigate.training import Job, Schedule, train
from equipoise.models import load_model
from equipoise.planted.faces import TOOLS, draw_faces

CONFIG = {
    "images": {"folder": "DomainNet", "levels": ["domain", "class"]},
    "label": "class",
    "columns": ["domain"],
    "networks": {"tiny": "timm:test_resnet"},
    "trainings": {
        "all": {"where": {"domain": ["clipart", "real"]}},
        "few": {
            "where": {"domain": ["clipart", "real"]},
            "keep": [{"where": {"class": "zebra", "domain": "real"}, "images": 1}],
        },
    },
    "test": {"domain": "sketch"},
    "size": 32,
    "schedule": {"epochs": 2, "batch": 8},
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    data_sets.domain_net(tmp_path, count=4)
    monkeypatch.chdir(tmp_path)
    write(CONFIG)
    return tmp_path


def write(config):
    Path("train.yaml").write_text(yaml.safe_dump(config, sort_keys=False))


def test_models_that_load_and_their_predictions(folder, command):
    code, out, err = command("train", "train.yaml", "--json")
    assert code == 0, err
    output = json.loads(out)
    assert output["images"]["all"]["zebra"] == 8
    assert output["images"]["few"]["zebra"] == 5
    assert output["images"]["few"]["teapot"] == 8
    table = pl.read_parquet("trained/predictions.parquet")
    assert table.columns == ["image_id", "class", "domain", "tiny, all", "tiny, few"]
    assert {*table["domain"]} == {"sketch"}
    for name in ("tiny, all", "tiny, few"):
        model = load_model(f"timm:trained/{name}", device="cpu")
        assert model.labels == ("aircraft_carrier", "laptop", "teapot", "zebra")
        images = [
            np.asarray(Image.open(folder / "DomainNet" / image_id))
            for image_id in table["image_id"]
        ]
        codes = model.predict_proba(images).argmax(axis=1)
        assert [model.labels[code] for code in codes] == table[name].to_list()
    assert command("train", "train.yaml")[2].startswith("error: trained: ")
    before = Path("trained/predictions.parquet").read_bytes()
    assert command("train", "train.yaml", "--overwrite")[0] == 0
    assert Path("trained/predictions.parquet").read_bytes() == before
    assert not Path("trained.training").exists()


def test_a_model_of_its_own_is_the_start_of_another_training(folder, command):
    assert command("train", "train.yaml")[0] == 0
    head = {"layers": "last", "epochs": 2, "learning_rate": 0.05}
    block = {"layers": ["layer4.0"], "epochs": 1, "learning_rate": 0.01}
    network = {"again": "timm:trained/tiny, all"}
    for output, stages in {"second": [head], "third": [head, block]}.items():
        schedule = {"batch": 8, "stages": stages}
        write(CONFIG | {"networks": network, "schedule": schedule, "output": output})
        code, _, err = command("train", "train.yaml")
        assert code == 0, err
    first, second, third = (
        load_file(Path(name) / "model.safetensors")
        for name in ("trained/tiny, all", "second/again, few", "third/again, few")
    )
    changed = {name for name in first if (first[name] != second[name]).any()}
    assert changed == {"fc.weight", "fc.bias"}
    changed = {name for name in first if (first[name] != third[name]).any()}
    assert {name.partition(".")[0] for name in changed} == {"fc", "layer4"}
    assert all(name.startswith(("fc.", "layer4.0.")) for name in changed)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"test": {}}, "trainings.all: 32 images of 4 classes share 32 with the 48 test"),
        ({"test": {"domain": "nowhere"}}, "with the 0 test images"),
        ({"networks": {"tiny": "timm:nonet"}}, "timm has no model 'nonet'"),
        ({"networks": {"tiny": "cnn"}}, "networks.tiny: 'cnn'; 'train' needs networks of timm"),
        ({"label": "thing"}, "no column 'thing'"),
        ({"schedules": {"other": {"epochs": 1}}}, "schedules"),
        ({"schedule": {"patience": 2}}, "'patience' needs a share of 'validation' images"),
        (
            {"schedule": {"epochs": 1, "stages": [{"epochs": 2}]}},
            "each stage has its own epochs: leave them out",
        ),
        ({"schedule": {"stages": [{"patience": 2}]}}, "'patience' needs a share of 'validation'"),
        (
            {"schedule": {"stages": [{"layers": ["layer5"]}]}},
            "the network has no part 'layer5' that could learn. Did you mean 'layer",
        ),
        (
            {"trainings": {"all": {"where": {"class": "zebra", "domain": "real"}}}},
            "trainings.all: 4 images of 1 classes",
        ),
    ],
)
def test_what_is_wrong_is_named(folder, command, changed, message):
    write(CONFIG | changed)
    code, _, err = command("train", "train.yaml")
    assert code == 2
    assert message in err
    assert not (folder / "trained").exists()


def faces(n, seed):
    faces = draw_faces(n, long_hair=(0.5,) * 4, seed=seed)
    return Faces(faces.images, faces.labels, faces.groups, Regions(faces.boxes, np.ones(n, bool)))


def test_training_stops_early_and_keeps_the_weights_with_the_lowest_loss(tmp_path):
    schedule = Schedule(epochs=40, batch=16, learning_rate=0.02, validation=0.25, patience=2)
    job, path = Job("cnn", TOOLS, 1, schedule), tmp_path / "state.pt"
    trained = train(job, PlainFaces(faces(64, 1)), path)
    state = read_state(path, repr(job))
    assert state["epochs"] == state["best"]["epochs"] + 2 < 40
    for name, weight in trained.state_dict().items():
        np.testing.assert_array_equal(weight.cpu(), state["best"]["weights"][name])
    with pytest.raises(RunError):
        train(Job("cnn", TOOLS, 2, schedule), PlainFaces(faces(64, 1)), path)


def test_the_rate_of_a_stage_rises_then_falls():
    schedule = Schedule(warm_up=0.25)
    rates = [schedule.rate(40, step) for step in range(40)]
    np.testing.assert_allclose(rates[:10], np.arange(1, 11) / 10)
    assert rates[10] == 1.0
    assert (np.diff(rates[10:]) < 0).all()
    assert rates[-1] < 0.01


def test_a_stage_starts_from_the_best_weights_of_the_one_before(tmp_path):
    stages = [
        {"layers": "last", "epochs": 30, "learning_rate": 0.5, "patience": 1},
        {"epochs": 2, "learning_rate": 1e-9},
    ]
    schedule = Schedule(batch=16, validation=0.25, stages=stages)
    job, path = Job("cnn", TOOLS, 1, schedule), tmp_path / "state.pt"
    trained = train(job, PlainFaces(faces(64, 1)), path)
    state = read_state(path, repr(job))
    # The first stage ends early; the second has its epochs, whatever the loss.
    assert (state["stage"], state["epochs"]) == (1, 2)
    assert 2 + 1 < state["total"] < 32
    for name, weight in trained.state_dict().items():
        np.testing.assert_array_equal(weight.cpu(), state["best"]["weights"][name])


def test_a_training_of_stages_goes_on_where_it_was_killed(tmp_path):
    stages = [{"layers": "last", "epochs": 2}, {"layers": ["8"], "epochs": 2}]
    job = Job("cnn", TOOLS, 1, Schedule(batch=16, stages=stages))
    whole = train(job, PlainFaces(faces(48, 1)), tmp_path / "whole.pt")

    class Stopped(PlainFaces):
        def training_image(self, row):
            if self.epoch == 3:
                raise KeyboardInterrupt
            return super().training_image(row)

    with pytest.raises(KeyboardInterrupt):
        train(job, Stopped(faces(48, 1)), tmp_path / "cut.pt")
    resumed = train(job, PlainFaces(faces(48, 1)), tmp_path / "cut.pt")
    for name, weight in whole.state_dict().items():
        np.testing.assert_array_equal(weight, resumed.state_dict()[name])

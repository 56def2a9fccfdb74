"""Changing a planted unit removes the association; changing other units does not."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from equipoise import metrics as m
from equipoise.core import InputError, ModelError
from equipoise.mitigate import (
    Trial,
    choose_units,
    compare_models,
    edited,
    find_units,
    read_edit,
    record_units,
    sweep_units,
)
from equipoise.models import Classifier, load_model
from model_checkpoints import images
from tools.planted.measures import load_cnn
from tools.planted.modules import module_classifier
from tools.planted.units import CONCEPTS, LAYER, PLANTED, draw_marked, planted_unit


@pytest.fixture(scope="module")
def components():
    marked = draw_marked(300, seed=1)
    return find_units(planted_unit(), marked.images, marked.group, within=marked.caption)


@pytest.fixture(scope="module")
def trial():
    withheld = draw_marked(300, seed=2)
    return Trial(withheld.images, withheld.group, CONCEPTS, withheld.caption, k=40)


def test_the_planted_unit_is_found_first(components):
    first, second = components.table(2).to_pylist()
    assert (first["layer"], first["unit"], first["group"]) == (LAYER, PLANTED, "men")
    assert first["auroc"] > 0.99
    assert first["q_value"] < 1e-20
    assert abs(second["auroc"] - 0.5) < 0.15


@pytest.mark.parametrize("mode", ["clamp", "balance", "remove"])
def test_changing_it_removes_the_association_and_changing_others_does_not(mode, components, trial):
    rows = sweep_units(components, trial, (1,), mode=mode, random=20, replicates=300).to_pylist()
    assert [row["units"] for row in rows] == [1] * len(rows)
    for row in rows:
        if row["measure"] == "differential_association":
            assert row["before"] > 0.3
            assert row["after_low"] <= 0.0 <= row["after_high"]
            # The planted unit itself may be drawn.
            assert row["p_value"] <= 2 / 21
            assert abs(row["random"]) < 0.05
        elif row["measure"].endswith("mad"):
            assert row["difference_high"] < -0.4
        elif row["measure"] == "retrieval_entropy":
            assert row["before"] < 0.1
            assert row["after_low"] > 0.9
        else:  # nothing else is lost
            assert max(abs(row["difference"]), abs(row["random"])) < 0.02


def test_measures_are_those_of_the_metrics(components, trial):
    rows = compare_models(components.model, components.model, trial, replicates=2).to_pylist()
    before = {row["measure"]: row["before"] for row in rows}
    vectors = components.model.embed_images(trial.images)
    texts = np.concatenate([components.model.embed_texts(CONCEPTS[name]) for name in CONCEPTS])
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    scores = (unit @ (texts / np.linalg.norm(texts, axis=1, keepdims=True)).T).T
    expected = {
        "normalized_similarity_mad": m.normalized_similarity_mad(
            scores, trial.groups, resampling=None
        ),
        "retrieval_mad": m.retrieval_mad(scores, trial.groups, k=40, resampling=None),
        "differential_association": m.differential_association(
            texts[:1], texts[1:], *(vectors[trial.groups == name] for name in ("men", "women")),
            resampling=None,
        ),
    }  # fmt: skip
    for name, estimate in expected.items():
        assert before[name] == pytest.approx(estimate.value, abs=1e-5), name
    assert all(row["difference"] == row["difference_low"] == 0.0 for row in rows)


@pytest.mark.parametrize("family", ["clip", "siglip", "flava", "vit", "resnet", "convnext"])
@pytest.mark.parametrize("mode", ["clamp", "balance"])
def test_towers_of_every_kind_are_recorded_changed_and_loaded_again(
    family, mode, tiny_model, tmp_path
):
    model, pictures = tiny_model(family), [i for i in images() if min(i.shape[:2]) > 10]
    group = ["a", "b", "a", "b", "b"][: len(pictures)]
    components = find_units(model, pictures, group)
    edit = choose_units(components, 12, mode=mode, alpha=None)
    assert len(edit) == 12
    edit.write(tmp_path / "edit.json")
    assert read_edit(tmp_path / "edit.json").digest == edit.digest
    after = edited(model, edit)
    again = load_model(f"edited:{tmp_path / 'edit.json'}", device="cpu", dtype="float32")
    assert again.info.key == after.info.key
    run = "features" if isinstance(model, Classifier) else "embed_images"
    changed = getattr(after, run)(pictures)
    assert np.abs(changed - getattr(model, run)(pictures)).max() > 0.0
    np.testing.assert_allclose(getattr(again, run)(pictures), changed, atol=1e-6)
    assert getattr(again, "labels", None) == getattr(model, "labels", None)


def test_balanced_sets_are_equally_active():
    marked = draw_marked(120, seed=4)
    model = planted_unit()
    components = find_units(model, marked.images, marked.group)
    edit = choose_units(components, 20, alpha=None)
    (site,) = edit.layers
    assert {*site.sets} == {0, 1}
    with edited(model, edit).changed():
        # The hook of the recording runs after that of the change.
        values = record_units(model, marked.images).values[:, list(site.units)]
    standard = (values - np.array(site.means)) / np.array(site.spreads)
    sets = np.array(site.sets)
    first, second = (standard[:, sets == name].mean(axis=1) for name in (0, 1))
    np.testing.assert_allclose(first, second, atol=1e-4)


def test_what_cannot_be_hooked_is_refused(tiny_model):
    pictures = draw_marked(4).images
    with pytest.raises(
        ModelError, match=r"has no layers that can be looked into: it isn't a module"
    ):
        record_units(load_cnn("null"), pictures)
    with pytest.raises(ModelError, match=r"neither embeds images nor classifies them\. To do"):
        record_units(tiny_model("blip_matching"), pictures)
    with pytest.raises(ModelError, match="has no layer 'acts'"):
        record_units(planted_unit(), pictures, layers=["acts"])


def test_layers_that_run_twice_are_left_out_or_refused():
    twice = torch.nn.ReLU()
    module = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), twice, torch.nn.Conv2d(4, 4, 3), twice, torch.nn.GELU(),
        torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(4, 2),
    )  # fmt: skip
    model = module_classifier(module, ("a", "b"), name="twice")
    record = record_units(model, draw_marked(70).images)
    assert record.layers == ("4",)
    assert record.values.shape == (70, 4)
    with pytest.raises(ModelError, match="once for an image"):
        record_units(model, draw_marked(3).images, layers=["1"])


def test_files_of_edits_are_checked(components, tmp_path):
    path = tmp_path / "edit.json"
    choose_units(components, 1).write(path)
    choose_units(components, 1).write(path)  # the same again
    with pytest.raises(ModelError, match="is there and holds something else"):
        choose_units(components, 1, mode="clamp").write(path)
    text = path.read_text()
    facts = json.loads(text)
    first = ("layer", "axis", "units", "sets", "means", "spreads")  # of the first version
    facts["layers"] = [{name: layer[name] for name in first} for layer in facts["layers"]]
    (tmp_path / "first.json").write_text(json.dumps(facts))
    assert read_edit(tmp_path / "first.json").digest == read_edit(path).digest
    no_edit_file = "isn't a file of edited units"
    for damaged, message in (
        ("{", no_edit_file),
        (text.replace('"balance"', '"shout"'), no_edit_file),
        (text.replace('"axis"', '"axes"'), no_edit_file),
        (text.replace('"one planted unit"', '"magic:unit"'), "'magic:unit': the name of a"),
        (text.replace('"one planted unit"', '"python:a:b"'), "is Python code"),
    ):
        path.write_text(damaged)
        with pytest.raises(ModelError, match=message):
            load_model(f"edited:{path}")
    for more in ({"backend": "openvino"}, {"revision": "main"}):
        with pytest.raises(ModelError, match="To do: "):
            load_model(f"edited:{path}", **more)
    path.unlink()
    with pytest.raises(ModelError, match=no_edit_file):
        read_edit(path)


@pytest.mark.parametrize(
    "more",
    [
        {"groups": ["a"] * 20},
        {"concepts": {"doctor": ["a doctor"]}},
        {"captions": ["a"]},
        {"labels": ["doctor"] * 20},
        {"k": 20},
    ],
)
def test_a_trial_is_checked(more):
    marked = draw_marked(20)
    arguments = {
        "images": marked.images,
        "groups": marked.group,
        "concepts": CONCEPTS,
        "k": 5,
    } | more
    with pytest.raises(InputError, match=next(iter(more))):
        Trial(**arguments)


def test_a_search_and_a_sweep_are_checked(components, trial):
    pictures = draw_marked(4).images
    with pytest.raises(InputError):
        find_units(components.model, pictures, ["a"])
    with pytest.raises(InputError, match="images"):
        record_units(components.model, pictures[:0])
    with pytest.raises(InputError, match="counts"):
        sweep_units(components, trial, (-1,))
    with pytest.raises(InputError, match="dual encoder"):
        sweep_units(replace(components, model=load_cnn("null")), trial, (1,))
    with pytest.raises(InputError, match="1e-300"):
        choose_units(components, 1, alpha=1e-300)
    with pytest.raises(InputError, match="'shout'"):
        choose_units(components, 1, mode="shout")
    with pytest.raises(InputError, match="full_output"):
        choose_units(components, 1, full_output=True)

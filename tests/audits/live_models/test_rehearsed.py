"""Errors of an audit are reported before a model runs over a single picture."""

import pytest

from audits.live_models.fakes import Classifier, Encoder
from audits.live_models.worlds import CHOSEN, IMAGES, KINDS, diversity, of_model, retrieval
from equipoise import audits
from equipoise.core import DataError, EquipoiseError, ModelError


def predictions():
    return of_model("predictions", {"model": "hf:clip", "vocabulary": [*CHOSEN]}) | {
        "data": {"images": IMAGES, "target": "subject", "groups": ["frame"]}
    }


WRONG = [
    (retrieval, lambda config: config["data"].update(groups=["fram"]), "fram"),
    (retrieval, lambda config: config["data"].update(min_group_size=49), "level: 48, upright: 48"),
    (diversity, lambda config: config["data"].update(min_set_size=49), "leaves two with 49 images"),
    (
        KINDS["concepts"],
        lambda config: config["data"].update(labels={"file": "none.csv"}),
        "none.csv",
    ),
    (
        predictions,
        lambda config: config["models"]["m"].update(vocabulary=["a", "b"]),
        "aren't classes",
    ),
    (diversity, lambda config: config["models"].update(n={"model": "hf:./none"}), "none"),
]


@pytest.mark.parametrize(("values_of", "change", "words"), WRONG)
def test_a_wrong_name_is_reported_before_a_model_runs(values_of, change, words, world):
    values = values_of()
    values["data"] = dict(values["data"])
    change(values)
    with pytest.raises(EquipoiseError, match=words):
        audits.prepare(audits.parse_config(values), base=world)
    assert not [*world.rglob("part-*")]


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("hf:./none", "models.n.model: "),
        ("onnx:none.onnx", "models.n.model: There is no model file none.onnx"),
        ("python:nope:f", "models.n.model: nope:f failed: ModuleNotFoundError"),
    ],
)
def test_an_error_about_loading_names_the_key(model, words, world):
    values = diversity()
    values["models"] = values["models"] | {"n": {"model": model}}
    with pytest.raises(EquipoiseError) as raised:
        audits.prepare(audits.parse_config(values), base=world)
    assert str(raised.value).startswith(words)
    assert str(raised.value).count("models.n.model") == 1


def test_a_model_that_fails_on_all_images_is_named_by_its_key(world):
    class Broken(Encoder):
        def embed_images(self, images):
            raise RuntimeError("no kernel image")

    values = diversity(model=Broken())
    with pytest.raises(ModelError, match=r"^models\.m\.model: python:encoder failed on each of "):
        audits.prepare(audits.parse_config(values), base=world)


def test_a_classifier_may_know_classes_that_the_data_do_not_have(world):
    values = predictions()
    model = Classifier(labels=("other", "more", CHOSEN[0]))
    values["models"] = {"m": {"model": model, "map": {"more": CHOSEN[1]}, "k": 2}}
    *_, note = audits.plan(audits.parse_config(values), base=world).notes
    assert note == (
        "m: no row has 'other' as data.target, subject, and these are classes of the model. If it "
        "predicts one of them, the audit stops after the model has run. Map them under "
        "models.m.map, or set models.m.open_vocabulary: true."
    )
    with pytest.raises(DataError) as raised:
        audits.prepare(audits.parse_config(values), base=world)
    assert raised.value.file == "models.m.model"
    assert [*world.rglob("part-*")]

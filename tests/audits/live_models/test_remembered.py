"""Descriptions of models are cached, so weights are loaded only for models that run."""

import json
from dataclasses import replace

import numpy as np
import pytest

from audits.live_models import fakes
from equipoise.audits.model_cache import (
    Deferred,
    deferred_type,
    look_up,
    open_model,
    rested,
)
from equipoise.core import ModelError, RunError
from equipoise.evidence import RunOptions
from equipoise.evidence.store import lock_folder
from equipoise.models import Service
from equipoise.models.protocols import ConcurrentAnswerer, ScoringAnswerer, offer_of
from equipoise.models.served import ServedModel
from equipoise.models.service import Address
from model_checkpoints import clip, open_clip, timm

CPU = RunOptions(device="cpu", dtype="float32")


def unused():
    raise AssertionError("called")


IMAGES = [np.full((2, 2, 3), shade, np.uint8) for shade in (10, 200)]
CALLS = {
    "embed_images": (IMAGES,),
    "embed_texts": (["a"],),
    "score": (IMAGES, ["a"]),
    "predict_proba": (IMAGES,),
    "features": (IMAGES,),
    "answer": (IMAGES, "who?"),
}


@pytest.mark.parametrize(
    "model", [fakes.Encoder(), fakes.Scorer(), fakes.Classifier(), fakes.Answerer()]
)
def test_a_deferred_model_equals_its_model(model):
    offer, labels = offer_of(model), getattr(model, "labels", ())
    stand_in = deferred_type(offer, ())(model.info, labels, lambda: model, unused)
    assert offer_of(stand_in) == offer
    assert (stand_in.info, getattr(stand_in, "labels", ())) == (model.info, labels)
    for name in CALLS.keys() & {*dir(model)}:
        deferred, expected = (
            getattr(instance, name)(*CALLS[name]) for instance in (stand_in, model)
        )
        np.testing.assert_array_equal(deferred, expected)


def test_a_model_that_is_another_now_is_forgotten_and_refused():
    forgotten = []
    other = replace(fakes.ENCODER, backend="openvino")
    model = deferred_type("encoder", ())(other, (), fakes.Encoder, lambda: forgotten.append(True))
    with pytest.raises(ModelError, match="has other settings here than in the first run"):
        model.embed_texts(["a"])
    assert forgotten == [True]


def test_a_damaged_memory_is_no_memory(world):
    name, store = f"hf:{world / 'clip'}", world / "evidence"
    open_model(name, CPU, store)
    (path,) = (store / "models").iterdir()
    path.write_text("{")
    assert look_up(name, CPU, store)[0] == ""
    model = open_model(name, CPU, store)
    assert not isinstance(model, Deferred)
    key, signature = look_up(name, CPU, store)
    assert (key, signature.offer, signature.dimension) == (model.info.key, "encoder", 64)


def test_an_unwritable_store_is_reported_once(tmp_path, world):
    (tmp_path / "afile").write_text("")
    assert not isinstance(open_model(f"hf:{world / 'clip'}", CPU, tmp_path / "afile"), Deferred)
    with (
        pytest.raises(RunError, match="cannot be written"),
        lock_folder(tmp_path / "afile" / "embeddings"),
    ):
        pytest.fail("made")


@pytest.mark.parametrize(
    ("library", "save", "settings"),
    [
        ("hf", clip, "preprocessor_config.json"),
        ("timm", timm, "config.json"),
        ("open_clip", open_clip, "open_clip_config.json"),
    ],
)
def test_models_are_recognised_by_their_files(library, save, settings, tmp_path, monkeypatch):
    name, store = f"{library}:{save(tmp_path / 'model')}", tmp_path / "evidence"
    first = open_model(name, CPU, store)
    assert not isinstance(first, Deferred)
    with monkeypatch.context() as patch:
        patch.setattr(RunOptions, "load", lambda *_: pytest.fail("loaded"))
        reopened = open_model(name, CPU, store)
    assert isinstance(reopened, Deferred)
    assert "model" not in vars(reopened)
    assert reopened.info == first.info
    assert offer_of(reopened) == offer_of(first)
    content = json.loads((tmp_path / "model" / settings).read_text())
    (tmp_path / "model" / settings).write_text(json.dumps(content, indent=3))
    assert not isinstance(open_model(name, CPU, store), Deferred)


def test_a_served_model_still_takes_several_questions_when_loaded_later():
    model = ServedModel(Address("http://127.0.0.1:1/v1", "tiny"), Service())
    deferred = rested(model, lambda: model)
    assert isinstance(deferred, ConcurrentAnswerer)
    assert isinstance(deferred, ScoringAnswerer)
    assert deferred.answer_each([], [], probabilities=True) == []
    plain = rested(fakes.Answerer(), fakes.Answerer)
    assert not isinstance(plain, ConcurrentAnswerer)

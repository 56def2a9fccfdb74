"""Models made of torch modules of one's own, and the insides of models."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equipoise.core.errors import InputError, ModelError
from equipoise.models import Classifier, DualEncoder
from equipoise.models.edits import insides
from equipoise.models.modules import Scaled, module_classifier, module_encoder, weights_digest
from equipoise.models.registry import absolute, relative

PIXELS = np.arange(5 * 4 * 4 * 3, dtype=np.uint8).reshape(5, 4, 4, 3)


def network() -> Any:
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return torch.nn.Sequential(
            torch.nn.Conv2d(3, 6, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(24, 2)
        )


def test_a_module_is_a_classifier() -> None:
    import torch

    module = network()
    model = module_classifier(module, ("a", "b"), name="mine", prepare=Scaled(0.5, 0.25))
    assert isinstance(model, Classifier)
    assert model.info.dimension == 24
    found = model.predict_proba(PIXELS)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-6)
    given = torch.from_numpy((PIXELS.transpose(0, 3, 1, 2) / 255.0 - 0.5).astype(np.float32) / 0.25)
    with torch.inference_mode():
        expected = module(given).softmax(dim=1).numpy()
        hidden = module[:3](given).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    np.testing.assert_allclose(model.features(PIXELS), hidden, rtol=1e-5, atol=1e-6)
    assert model.predict_proba(PIXELS[:0]).shape == (0, 2)


def test_a_module_without_a_linear_layer_has_no_features() -> None:
    import torch

    module = torch.nn.Sequential(torch.nn.Conv2d(3, 2, 4), torch.nn.Flatten())
    with pytest.raises(ModelError, match=r"mine ends in no linear layer, so it has no penultimate"):
        module_classifier(module, ("a", "b"), name="mine").features(PIXELS)


def test_a_module_and_a_function_are_a_dual_encoder() -> None:
    def texts(asked: Any) -> Any:
        return np.array([[len(text), 1.0] for text in asked], dtype=np.float32)

    model = module_encoder(network(), texts, name="two", dimension=2, scale=7.0)
    assert isinstance(model, DualEncoder)
    assert (model.info.scale, model.info.bias) == (7.0, 0.0)
    assert model.embed_images(PIXELS).shape == (5, 2)
    np.testing.assert_array_equal(model.embed_texts(["abc"]), [[3.0, 1.0]])


def test_the_key_changes_with_the_weights_and_the_scale_and_not_with_the_name() -> None:
    import torch

    first, again = (module_classifier(network(), ("a", "b"), name=n) for n in ("x", "y"))
    assert first.info.key == again.info.key
    scaled = module_classifier(network(), ("a", "b"), name="x", prepare=Scaled(0.5))
    assert scaled.info.key != first.info.key
    other = network()
    with torch.no_grad():
        other[0].weight[0, 0, 0, 0] += 1e-3
    assert module_classifier(other, ("a", "b"), name="x").info.key != first.info.key
    half = network().bfloat16()
    assert len(weights_digest(half)) == len(hashlib.sha256().hexdigest())


def test_images_of_several_sizes_are_refused() -> None:
    model = module_classifier(network(), ("a", "b"), name="mine")
    with pytest.raises(InputError, match=r"images of several sizes; a module takes images of one"):
        model.predict_proba([PIXELS[0], PIXELS[0][:3]])


def test_layers_are_found_by_name_and_the_nearest_are_named() -> None:
    inside = insides(module_classifier(network(), ("a", "b"), name="mine"))
    assert type(inside.layer("1")).__name__ == "ReLU"
    with pytest.raises(
        ModelError, match=r"mine has no layer '9'\. To do: name one of its 4 layers"
    ):
        inside.layer("9")
    with pytest.raises(ModelError, match=r"has no layer ''"):
        inside.layer("")
    assert inside.inputs(PIXELS)["pixel_values"].shape == (5, 3, 4, 4)


def test_names_of_models_beside_a_file(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "sub").mkdir()
    name = f"hf:{tmp_path / 'model'}"
    assert relative(name, tmp_path / "sub") == "hf:../model"
    assert absolute("hf:../model", tmp_path / "sub") == name
    for kept in ("hf:openai/clip", "python:module:factory", "one planted unit"):
        assert relative(kept, tmp_path) == kept
        assert absolute(kept, tmp_path) == kept

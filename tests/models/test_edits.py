"""Layers inside a model, and names of models beside a file."""

import numpy as np
import pytest

from equipoise.core import ModelError
from equipoise.models.edits import insides
from equipoise.models.registry import absolute, relative
from tools.planted.modules import module_classifier

PIXELS = np.arange(5 * 4 * 4 * 3, dtype=np.uint8).reshape(5, 4, 4, 3)


def network():
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return torch.nn.Sequential(
            torch.nn.Conv2d(3, 6, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(24, 2)
        )


def test_layers_are_found_by_name_and_the_nearest_are_named():
    inside = insides(module_classifier(network(), ("a", "b"), name="mine"))
    assert type(inside.layer("1")).__name__ == "ReLU"
    with pytest.raises(
        ModelError, match=r"mine has no layer '9'\. To do: name one of its 4 layers"
    ):
        inside.layer("9")
    with pytest.raises(ModelError, match=r"has no layer ''"):
        inside.layer("")
    assert inside.inputs(PIXELS)["pixel_values"].shape == (5, 3, 4, 4)


def test_names_of_models_beside_a_file(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "sub").mkdir()
    name = f"hf:{tmp_path / 'model'}"
    assert relative(name, tmp_path / "sub") == "hf:../model"
    assert absolute("hf:../model", tmp_path / "sub") == name
    for kept in ("hf:openai/clip", "python:module:factory", "one planted unit"):
        assert relative(kept, tmp_path) == kept
        assert absolute(kept, tmp_path) == kept

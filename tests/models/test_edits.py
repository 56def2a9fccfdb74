"""Layers inside a model, and names of models beside a file."""

import numpy as np
import pytest

from equipoise.core import ModelError
from equipoise.models import load_model
from equipoise.models.edits import UnitEdit, insides
from equipoise.models.registry import MOST_NESTED, absolute, relative
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
    for target in ("hf:openai/clip", "python:module:factory", "one planted unit"):
        assert relative(target, tmp_path) == target
        assert absolute(target, tmp_path) == target


def edit_of(name, path):
    UnitEdit(name, None, "0" * 64, "remove", ()).write(path)
    return path


def test_a_file_of_edits_that_leads_back_to_itself_is_refused(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    files = {
        "itself": edit_of("edited:itself", tmp_path / "itself"),
        "by a link": edit_of("edited:link/by a link", tmp_path / "by a link"),
        "a ring": edit_of("edited:other", tmp_path / "a ring"),
    }
    edit_of("edited:a ring", tmp_path / "other")
    for file in files.values():
        with pytest.raises(ModelError) as raised:
            load_model(f"edited:{file}")
        message = str(raised.value)
        assert str(tmp_path) in message
        assert "To do:" in message


def test_a_chain_of_files_ends(tmp_path):
    for number in range(MOST_NESTED + 1):
        edit_of(f"edited:{number + 1}", tmp_path / str(number))
    with pytest.raises(ModelError, match=rf"{tmp_path / str(MOST_NESTED - 1)}: .*To do:"):
        load_model(f"edited:{tmp_path / '0'}")
    with pytest.raises(ModelError, match="isn't a file of edited units"):
        load_model(f"edited:{tmp_path / '2'}")


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{", pytest.param("[" * 100_000, id="nested too deep"), '{"model": "edited:x"}'],
)
def test_a_damaged_file_of_edits_is_named(content, tmp_path):
    path = tmp_path / "edit.json"
    path.write_text(content)
    with pytest.raises(ModelError, match=str(path)):
        load_model(f"edited:{path}")

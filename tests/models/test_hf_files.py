"""Checkpoints that are not what they should be, and where they are looked for."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from equipoise.core import ModelError
from equipoise.models import load_model
from model_checkpoints import COMMIT, images, in_hub_cache


@pytest.fixture
def folder(checkpoint, tmp_path):
    """A copy of a tiny CLIP, to be broken."""
    return Path(shutil.copytree(checkpoint("clip"), tmp_path / "clip"))


def load(folder, **options):
    return load_model(f"hf:{folder}", device="cpu", **options)


def edit(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def pickled(folder):
    from safetensors.torch import load_file

    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    return folder


def test_a_pickle_is_read_only_where_that_is_allowed(folder):
    expected = load(folder).embed_images(images())
    pickled(folder)
    with pytest.raises(ModelError, match=r" has its weights only as pickles, which can run any co"):
        load(folder)
    model = load(folder, allow_pickle=True)
    np.testing.assert_array_equal(model.embed_images(images()), expected)
    assert "pytorch_model.bin" in model.info.files


def test_safetensors_are_read_where_there_are_both(folder):
    (folder / "pytorch_model.bin").write_bytes(b"never read")
    assert "pytorch_model.bin" not in load(folder, allow_pickle=True).info.files


def test_weights_in_several_files(folder):
    complete = load(folder)
    model = transformers.CLIPModel.from_pretrained(folder)
    (folder / "model.safetensors").unlink()
    model.save_pretrained(folder, max_shard_size="50KB")
    shards = sorted(path.name for path in folder.glob("model-*.safetensors"))
    assert len(shards) > 1
    parts = load(folder)
    np.testing.assert_array_equal(parts.embed_images(images()), complete.embed_images(images()))
    assert set(shards) <= parts.info.files.keys()
    assert parts.info.weights_sha256 != complete.info.weights_sha256
    (folder / shards[0]).unlink()
    with pytest.raises(ModelError, match=rf"lacks weights that its index names: {shards[0]}\.$"):
        load(folder)


def test_missing_weights_are_never_random(folder):
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    del weights["text_projection.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    expected = r" lacks weights that it needs \(text_projection\.weight\); they would be random num"
    with pytest.raises(ModelError, match=expected):
        load(folder)


def index(folder, content):
    """Put an index of weights in place of the weights."""
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(content)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "config.json").unlink(), "isn't a configuration of a model"),
        (lambda f: (f / "config.json").write_text("{"), "isn't a configuration of a model"),
        (lambda f: (f / "config.json").write_text("[]"), "isn't a configuration of a model"),
        (
            lambda f: (f / "config.json").write_text("[" * 100_000),
            "isn't a configuration of a model",
        ),
        (lambda f: (f / "model.safetensors").unlink(), "holds no weights"),
        (lambda f: index(f, "{}"), r"index\.json lists no files of weights"),
        (lambda f: index(f, '{"weight_map": {"a": 3}}'), r"index\.json lists no files of weights"),
        (lambda f: (f / "model.safetensors").write_bytes(b"no"), "cannot be loaded"),
        (lambda f: (f / "preprocessor_config.json").unlink(), "has no ImageProcessor that can"),
        (lambda f: edit(f, architectures=["BertModel"]), "cannot audit .* 'BertModel'"),
        (lambda f: edit(f, architectures=None), "cannot audit the architecture ''"),
    ],
)
def test_what_a_broken_folder_says(folder, damage, message):
    damage(folder)
    with pytest.raises(ModelError, match=message):
        load(folder)


def test_a_hub_id_comes_from_the_cache_with_its_commit(checkpoint, tmp_path, monkeypatch):
    in_hub_cache(tmp_path, monkeypatch, checkpoint("clip"))
    model = load_model("hf:owner/tiny", device="cpu")
    assert (model.info.name, model.info.revision) == ("hf:owner/tiny", COMMIT)
    assert model.info.key == load(checkpoint("clip")).info.key
    again = load_model("hf:owner/tiny", device="cpu", revision=COMMIT)
    assert again.info == model.info
    with pytest.raises(ModelError, match="owner/absent at revision v1 .* could not be fetched"):
        load_model("hf:owner/absent", device="cpu", revision="v1")


@pytest.mark.parametrize("name", ["../no/folder", "a/b/c", "C:\\models"])
def test_what_is_neither_a_folder_nor_an_id(name):
    with pytest.raises(
        ModelError, match=r"^There is no folder .*, and it isn't a hub id \(owner/n"
    ):
        load_model(f"hf:{name}", device="cpu")


CODE = """
import pathlib
from transformers import CLIPImageProcessorPil

class Processor(CLIPImageProcessorPil):
    pass
"""


@pytest.fixture
def coded(folder, monkeypatch, tmp_path):
    """A checkpoint whose image processor is Python code beside the weights."""
    path = folder / "preprocessor_config.json"
    settings = json.loads(path.read_text())
    settings["auto_map"] = {"AutoImageProcessor": "own.Processor"}
    settings["image_processor_type"] = "Processor"
    path.write_text(json.dumps(settings))
    (folder / "own.py").write_text(CODE)
    modules = transformers.dynamic_module_utils
    monkeypatch.setattr(modules, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    return folder


def test_code_beside_the_weights_is_not_run(coded):
    with pytest.raises(ModelError, match="has no ImageProcessor that can be loaded"):
        load(coded)


def test_code_that_is_trusted_is_run_and_keyed(coded):
    model = load(coded, trust_remote_code=True)
    # What such code does is not what its settings say, so it prepares the images itself.
    assert model.info.preprocessing["image_processor"] == "Processor"
    assert model.info.preprocessing["prepared_by"] == "library"
    assert "own.py" in model.info.files
    (coded / "own.py").write_text(CODE + "\n# changed")
    assert load(coded, trust_remote_code=True).info.key != model.info.key

"""open_clip through `load_model`: local weights, tags, and what it refuses."""

import json
from dataclasses import replace

import numpy as np
import open_clip
import pytest
import torch
from PIL import Image

from equipoise.core import ModelError
from equipoise.models import load_model
from model_checkpoints import COMMIT, OPEN_CLIP, PREPARE, TEXTS, images, in_hub_cache

WEIGHTS = "open_clip_model.safetensors"


@pytest.fixture(scope="module")
def folder(checkpoint):
    return checkpoint("open_clip")


@pytest.fixture(scope="module")
def model(folder):
    model = load_model(f"open_clip:{folder}", device="cpu")
    # The library's own preprocessing, to be compared with.
    return replace(model, tower=replace(model.tower, prepare=replace(model.prepare, fast=None)))


@pytest.fixture
def architecture(tmp_path):
    (tmp_path / "tiny-equipoise.json").write_text(json.dumps(OPEN_CLIP))
    open_clip.add_model_config(tmp_path)
    return "tiny-equipoise"


def test_vectors_are_the_librarys(model, folder):
    reference, prepare = open_clip.create_model_from_pretrained(f"local-dir:{folder}")
    tokens = open_clip.get_tokenizer(f"local-dir:{folder}")(TEXTS)
    pixels = torch.stack([prepare(Image.fromarray(image)) for image in images()])
    with torch.inference_mode():
        image_vectors, text_vectors = (
            reference.eval().encode_image(pixels),
            reference.encode_text(tokens),
        )
    np.testing.assert_allclose(model.embed_images(images()), image_vectors.numpy(), atol=1e-5)
    np.testing.assert_allclose(model.embed_texts(TEXTS), text_vectors.numpy(), atol=1e-5)


def test_an_architecture_and_a_file(architecture, folder, model):
    named = load_model(f"open_clip:{architecture}/{folder / WEIGHTS}", device="cpu")
    np.testing.assert_allclose(named.embed_texts(TEXTS), model.embed_texts(TEXTS), atol=1e-6)
    # Without a configuration beside the weights, images are prepared as OpenAI's were.
    assert named.info.preprocessing["image_settings"]["mean"][0] == pytest.approx(0.48145466)
    assert named.info.weights_sha256 == model.info.weights_sha256
    assert named.info.key != model.info.key


@pytest.fixture
def tagged(architecture, folder, tmp_path, monkeypatch):
    """A tag of the tiny architecture, whose weights are in the hub's cache; no network."""
    in_hub_cache(tmp_path, monkeypatch, folder)
    tag = {"hf_hub": "owner/tiny/", **PREPARE}
    monkeypatch.setitem(open_clip.pretrained._PRETRAINED, architecture, {"own": tag})
    return tag


def test_an_architecture_and_a_tag(tagged, architecture, model):
    named = load_model(f"open_clip:{architecture}/own", device="cpu")
    np.testing.assert_array_equal(named.embed_texts(TEXTS), model.embed_texts(TEXTS))
    assert named.info.revision == COMMIT


def test_a_tag_of_another_activation(tagged, architecture):
    tagged["quick_gelu"] = True
    expected = (
        r"trained with another activation \(QuickGELU: True\)\. To do: name .*-quickgelu/own\."
    )
    with pytest.raises(ModelError, match=expected):
        load_model(f"open_clip:{architecture}/own")


@pytest.mark.parametrize(
    ("hub", "message"),
    [
        ("owner/tiny/model.pt", r"/own has its weights only as pickles"),
        ("", r"^The weights own of tiny-equipoise are on no hub\. To do: download them and name"),
        ("owner/absent/", r"^owner/absent isn't a folder here, .* \(open_clip:path/to/folder\)"),
    ],
)
def test_tags_that_cannot_be_read(tagged, architecture, hub, message):
    tagged["hf_hub"] = hub
    with pytest.raises(ModelError, match=message):
        load_model(f"open_clip:{architecture}/own")


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (
            "no-such-model/openai",
            r"^open_clip has no architecture 'no-such-model'\. To do: name one",
        ),
        (
            "ViT-B-32/no-tag",
            r"^'no-tag' is neither a file nor a tag of ViT-B-32\. Its tags are: openai, ",
        ),
    ],
)
def test_what_there_is_not(target, message):
    with pytest.raises(ModelError, match=message):
        load_model(f"open_clip:{target}")


def test_folders_that_lack_something(folder, tmp_path):
    with pytest.raises(ModelError, match=r" holds no open_clip_config\.json\.$"):
        load_model(f"open_clip:{tmp_path}")
    (tmp_path / "open_clip_config.json").write_text((folder / "open_clip_config.json").read_text())
    with pytest.raises(ModelError, match=r" holds no weights \(open_clip_model\.safetensors\)\.$"):
        load_model(f"open_clip:{tmp_path}")
    (tmp_path / "open_clip_pytorch_model.bin").write_bytes(b"never read")
    with pytest.raises(ModelError, match=r" has its weights only as pickles"):
        load_model(f"open_clip:{tmp_path}")

"""The key of a model: what changes it, and what does not."""

import hashlib
from dataclasses import replace

import pytest

from equipoise.models import ModelInfo
from equipoise.models.info import digests, one_digest, sha256_of

INFO = ModelInfo(
    name="hf:owner/name",
    family="clip",
    weights_sha256="ab",
    files={"model.safetensors": "ab", "config.json": "cd"},
    revision="0" * 40,
    dimension=4,
    scale=100.0,
    bias=0.0,
    device="cuda:0",
    preprocessing={"image_backend": "pil"},
    versions={"torch": "2.13.0"},
)


@pytest.mark.parametrize(
    "change",
    [
        {"family": "siglip"},
        {"weights_sha256": "ef"},
        {"files": {"model.safetensors": "ab", "config.json": "ef"}},
        {"dimension": 5},
        {"scale": 99.0},
        {"bias": 1.0},
        {"dtype": "bfloat16"},
        {"device": "cpu"},
        {"backend": "onnxruntime"},
        {"preprocessing": {"image_backend": "torchvision"}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_can_change_an_output_changes_the_key(change):
    assert replace(INFO, **change).key != INFO.key


@pytest.mark.parametrize(
    "change",
    [
        {"name": "hf:a/copy"},
        {"revision": None},
        {"versions": {}},
        {"device": "cuda:1"},
        {"files": {"config.json": "cd", "model.safetensors": "ab"}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_names_and_places_do_not(change):
    assert replace(INFO, **change).key == INFO.key
    assert len(INFO.key) == 64


def test_digests_are_of_the_bytes(tmp_path):
    (tmp_path / "b").write_bytes(b"two" * 1_000_000)
    (tmp_path / "a").write_bytes(b"one")
    found = digests(tmp_path.iterdir())
    assert list(found) == ["a", "b"]
    assert found["b"] == hashlib.sha256(b"two" * 1_000_000).hexdigest() == sha256_of(tmp_path / "b")
    assert one_digest({"a": "x"}) == "x"
    assert one_digest(found) != one_digest({"a": found["b"], "b": found["a"]})

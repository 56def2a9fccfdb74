"""The key of a model: what changes it, and what does not."""

from dataclasses import replace

import pytest

from equipoise.models import ModelInfo

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

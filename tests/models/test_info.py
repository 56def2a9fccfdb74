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


CHANGES = [
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
]
NAMES_AND_PLACES = [
    {"name": "hf:a/copy"},
    {"revision": None},
    {"versions": {}},
    {"device": "cuda:1"},
    {"files": {"config.json": "cd", "model.safetensors": "ab"}},
]


@pytest.mark.parametrize("change", [*CHANGES, *NAMES_AND_PLACES], ids=str)
def test_the_key_changes_with_all_that_can_change_an_output_alone(change):
    assert (replace(INFO, **change).key != INFO.key) == (change in CHANGES)

"""Image classifiers of transformers through `load_model`."""

import dataclasses

import numpy as np
import pytest
import torch
import transformers
from PIL import Image

from equipoise.core import ModelError
from equipoise.models import load_model
from equipoise.models.towers import last_linear
from model_checkpoints import LABELS, images

FAMILIES = ("vit", "resnet", "convnext", "vit_multi_label")


@pytest.fixture(params=FAMILIES, scope="module")
def family(request):
    return request.param


@pytest.fixture(scope="module")
def outputs(folder):
    reference = transformers.AutoModelForImageClassification.from_pretrained(folder).eval()
    processor = transformers.AutoImageProcessor.from_pretrained(folder)
    inputs = processor([Image.fromarray(image) for image in images()], return_tensors="pt")
    with torch.inference_mode():
        return reference, reference(**inputs, output_hidden_states=True)


def test_probabilities_are_the_librarys(model, outputs, family):
    logits = outputs[1].logits
    multi_label = family == "vit_multi_label"
    expected = logits.sigmoid() if multi_label else logits.softmax(dim=1)
    got = model.predict_proba(images())
    np.testing.assert_allclose(got, expected.numpy(), atol=1e-5)
    assert got.dtype == np.float32
    assert model.labels == tuple(LABELS.values())
    assert model.info.preprocessing["probabilities"] == ("sigmoid" if multi_label else "softmax")
    assert (np.abs(got.sum(axis=1) - 1) < 1e-5).all() == (not multi_label)


def test_features_are_what_the_head_turns_into_logits(model, outputs):
    reference, out = outputs
    features = model.features(images())
    assert features.shape == (7, model.info.dimension)
    head = last_linear(torch, reference.classifier)
    with torch.inference_mode():
        logits = head(torch.from_numpy(features))
    np.testing.assert_allclose(logits.numpy(), out.logits.numpy(), atol=1e-5)


def test_nan_is_not_hidden(checkpoint):
    model = load_model(f"hf:{checkpoint('vit')}", device="cpu")
    with torch.no_grad():
        model.model.classifier.bias[2] = torch.nan
    assert np.isnan(model.predict_proba(images()[:2])).all()
    assert np.isfinite(model.features(images()[:2])).all()


def test_a_model_without_a_linear_layer_has_no_features(model):
    assert last_linear(torch, None) is None
    assert last_linear(torch, torch.nn.Conv2d(3, 5, 1)) is None
    tower = dataclasses.replace(model.tower, run=lambda inputs: (torch.zeros(1, 5),))
    headless = dataclasses.replace(model, tower=tower)
    with pytest.raises(ModelError, match=r"^hf:.* ends in no linear layer, so it has no penult"):
        headless.features(images()[:1])

"""timm through `load_model`: local weights, names, and what it refuses."""

import numpy as np
import pytest
import timm
import torch
from PIL import Image

from equipoise.core import ModelError
from equipoise.models import load_model
from model_checkpoints import COMMIT, LABELS, images, in_hub_cache


@pytest.fixture(scope="module")
def folder(checkpoint):
    return checkpoint("timm")


@pytest.fixture(scope="module")
def model(folder):
    return load_model(f"timm:{folder}", device="cpu")


@pytest.fixture(scope="module")
def pixels(folder):
    reference = timm.create_model(f"local-dir:{folder}", pretrained=True).eval()
    settings = timm.data.resolve_model_data_config(reference)
    prepare = timm.data.create_transform(**settings, is_training=False)
    return reference, torch.stack([prepare(Image.fromarray(image)) for image in images()])


def test_probabilities_are_the_librarys(model, pixels):
    reference, inputs = pixels
    with torch.inference_mode():
        expected = reference(inputs).softmax(dim=1)
    np.testing.assert_allclose(model.predict_proba(images()), expected.numpy(), atol=1e-5)
    assert model.labels == tuple(LABELS.values())


def test_features_are_what_the_head_turns_into_logits(model, pixels):
    reference, inputs = pixels
    features = model.features(images())
    with torch.inference_mode():
        expected = reference(inputs)
        logits = reference.get_classifier()(torch.from_numpy(features))
    assert features.shape == (7, model.info.dimension) == (7, 48)
    np.testing.assert_allclose(logits.numpy(), expected.numpy(), atol=1e-5)


@pytest.fixture(scope="module")
def resnet(tmp_path_factory):
    """Weights of a network as timm knows it, with ImageNet's classes."""
    from safetensors.torch import save_file

    path = tmp_path_factory.mktemp("resnet") / "weights.safetensors"
    save_file(timm.create_model("resnet10t").state_dict(), path)
    return path


def test_a_name_and_a_file(resnet):
    model = load_model(f"timm:resnet10t/{resnet}", device="cpu")
    assert model.labels[:2] == ("tench, Tinca tinca", "goldfish, Carassius auratus")
    assert len(model.labels) == 1000
    assert model.info.dimension == 512
    features = model.features(images()[:1])
    with torch.inference_mode():
        logits = model.model.get_classifier()(torch.from_numpy(features))
    np.testing.assert_allclose(
        model.predict_proba(images()[:1]), logits.softmax(dim=1).numpy(), atol=1e-5
    )


def test_a_hub_id_comes_from_the_cache(folder, tmp_path, model, monkeypatch):
    in_hub_cache(tmp_path, monkeypatch, folder)
    named = load_model("timm:hf-hub:owner/tiny", device="cpu")
    assert (named.info.revision, named.info.key) == (COMMIT, model.info.key)
    expected = r"^timm/resnet10t\.c3_in1k isn't a folder here, .* \(timm:path/to/folder\)"
    with pytest.raises(ModelError, match=expected):
        load_model("timm:resnet10t", device="cpu")


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("no_such_model", r"^timm has no model 'no_such_model'\. To do: name one of timm\.list_mo"),
        ("resnet10t/nowhere.safetensors", r"^There is no file of weights nowhere\.safetensors\.$"),
    ],
)
def test_what_there_is_not(target, message):
    with pytest.raises(ModelError, match=message):
        load_model(f"timm:{target}")


def test_weights_of_another_network(resnet):
    with pytest.raises(ModelError, match=r" cannot be loaded: "):
        load_model(f"timm:resnet18/{resnet}")

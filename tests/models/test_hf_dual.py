"""CLIP, SigLIP and FLAVA through `load_model`: the vectors are the library's own."""

from functools import cache

import numpy as np
import pytest
import torch
import transformers
from PIL import Image

from model_checkpoints import TEXTS, images

CLASSES = {
    "clip": "CLIPModel",
    "siglip": "SiglipModel",
    "siglip2": "Siglip2Model",
    "flava": "FlavaModel",
}


@pytest.fixture(params=CLASSES, scope="module")
def family(request):
    return request.param


@cache
def own(folder, family):
    return getattr(transformers, CLASSES[family]).from_pretrained(folder).eval()


def pooled(output):
    vectors = output.pooler_output
    return (vectors[:, 0] if vectors.ndim == 3 else vectors).numpy()


def test_images_are_embedded_as_the_library_does(model, folder, family):
    processor = transformers.AutoImageProcessor.from_pretrained(folder)
    inputs = processor([Image.fromarray(image) for image in images()], return_tensors="pt")
    with torch.inference_mode():
        expected = pooled(own(folder, family).get_image_features(**inputs))
    got = model.embed_images(images())
    assert got.dtype == np.float32
    assert got.shape == (7, model.info.dimension)
    np.testing.assert_allclose(got, expected, atol=1e-5)


def test_scale_and_bias_are_the_models(model, folder, family):
    reference = own(folder, family)
    scale = float(reference.logit_scale.detach().exp())
    bias = float(reference.logit_bias.detach()) if hasattr(reference, "logit_bias") else 0.0
    assert (model.info.scale, model.info.bias) == pytest.approx((scale, bias))


def test_texts_are_embedded_as_the_library_does(model, folder, family):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    filled = {"padding": "max_length", "max_length": 64} if "siglip" in family else {}
    rows = []
    for text in TEXTS:
        inputs = tokenizer([text], return_tensors="pt", truncation=True, **filled)
        with torch.inference_mode():
            rows.append(pooled(own(folder, family).get_text_features(**inputs)))
    got = model.embed_texts(TEXTS)
    np.testing.assert_allclose(got, np.concatenate(rows), atol=1e-5)
    assert got.shape == (7, model.info.dimension)


def test_capitals_make_no_difference_where_the_model_was_trained_without(model, family):
    got = model.embed_texts(["A Photo of the Man", "a photo of the man"])
    np.testing.assert_array_equal(got[0], got[1])
    assert model.info.preprocessing["text"]["lowercase"] == ("siglip" in family)

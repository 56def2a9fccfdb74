"""Matching models through `load_model`: the logits are the library's own."""

import shutil

import numpy as np
import pytest
import torch
import transformers
from PIL import Image

from equipoise.models import load_model
from model_checkpoints import TEXTS, images

CLASSES = {
    "blip_matching": "BlipForImageTextRetrieval",
    "blip_2_matching": "Blip2ForImageTextRetrieval",
    "bridgetower": "BridgeTowerForImageAndTextRetrieval",
    "vilt_matching": "ViltForImageAndTextRetrieval",
}


# Near enough to a square for BridgeTower's image processor.
IMAGES = [image for image in images() if max(image.shape[:2]) / min(image.shape[:2]) < 1.66]


@pytest.fixture(params=CLASSES, scope="module")
def family(request):
    return request.param


def logit(out):
    """A match less no match; the one logit of a model that has one."""
    logits = next(getattr(out, name) for name in NAMES if hasattr(out, name))
    return logits[0, 0] if logits.shape[1] == 1 else logits[0, 1] - logits[0, 0]


NAMES = ("itm_score", "logits_per_image", "logits")


def test_pairs_are_scored_as_the_library_does(model, folder, family):
    reference = getattr(transformers, CLASSES[family]).from_pretrained(folder).eval()
    processor = transformers.AutoProcessor.from_pretrained(folder)
    options = {"use_image_text_matching_head": True} if family == "blip_2_matching" else {}
    expected = np.empty((len(IMAGES), len(TEXTS)))
    for row, image in enumerate(IMAGES):
        for column, text in enumerate(TEXTS):
            inputs = processor(images=Image.fromarray(image), text=text, return_tensors="pt")
            with torch.inference_mode():
                expected[row, column] = logit(reference(**inputs, **options))
    got = model.score(IMAGES, TEXTS)
    np.testing.assert_allclose(got, expected, atol=5e-5)
    assert got.dtype == np.float32
    assert np.ptp(got, axis=0).min() > 1e-4
    assert np.ptp(got, axis=1).min() > 1e-4
    assert (model.info.scale, model.info.bias) == (1.0, 0.0)


def test_certain_matches_do_not_tie(checkpoint, tmp_path):
    """Probabilities of float32 end at 1; logits go on."""
    reference = transformers.BlipForImageTextRetrieval.from_pretrained(checkpoint("blip_matching"))
    reference.itm_head.bias.data = torch.tensor([-25.0, 25.0])
    shutil.copytree(checkpoint("blip_matching"), tmp_path, dirs_exist_ok=True)
    reference.save_pretrained(tmp_path)
    got = load_model(f"hf:{tmp_path}", device="cpu").score(IMAGES, TEXTS[:1])
    assert (1.0 / (1.0 + np.exp(-got)) == 1.0).all()
    assert len({*got[:, 0].tolist()}) == len(IMAGES)

"""BLIP matching and BridgeTower through `load_model`: the scores are the library's own."""

import numpy as np
import pytest
import torch
import transformers
from PIL import Image

from model_checkpoints import TEXTS, images

CLASSES = {
    "blip_matching": "BlipForImageTextRetrieval",
    "bridgetower": "BridgeTowerForImageAndTextRetrieval",
}


# Near enough to a square for BridgeTower's image processor.
IMAGES = [image for image in images() if max(image.shape[:2]) / min(image.shape[:2]) < 1.66]


@pytest.fixture(params=CLASSES, scope="module")
def family(request):
    return request.param


def test_pairs_are_scored_as_the_library_does(model, folder, family):
    reference = getattr(transformers, CLASSES[family]).from_pretrained(folder).eval()
    processor = transformers.AutoProcessor.from_pretrained(folder)
    expected = np.empty((len(IMAGES), len(TEXTS)))
    for row, image in enumerate(IMAGES):
        for column, text in enumerate(TEXTS):
            inputs = processor(images=Image.fromarray(image), text=text, return_tensors="pt")
            with torch.inference_mode():
                out = reference(**inputs)
            logits = out.itm_score if hasattr(out, "itm_score") else out.logits
            expected[row, column] = logits.softmax(dim=1)[0, 1]
    got = model.score(IMAGES, TEXTS)
    np.testing.assert_allclose(got, expected, atol=1e-5)
    assert got.dtype == np.float32
    assert np.ptp(got, axis=0).min() > 1e-4
    assert np.ptp(got, axis=1).min() > 1e-4

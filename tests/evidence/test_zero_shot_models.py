"""Zero-shot with real model classes: the probabilities are those of the library's own call."""

import numpy as np
import pytest
import torch
import transformers
from PIL import Image

from equipoise.evidence import concept_scores, embed_classes, prompts, zero_shot
from model_checkpoints import images

CLASSES = ("doctor", "nurse", "person", "woman")


def own(folder, family):
    """What the library makes of pictures and the plain prompts."""
    model = transformers.AutoModel.from_pretrained(folder).eval()
    processor = transformers.AutoImageProcessor.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    texts = tokenizer(
        [f"a photo of a {name}." for name in CLASSES],
        padding="max_length" if family == "siglip" else True, truncation=True, max_length=64,
        return_tensors="pt",
    )  # fmt: skip
    pictures = processor([Image.fromarray(image) for image in images()], return_tensors="pt")
    with torch.inference_mode():
        logits = model(**pictures, **texts).logits_per_image
        made = logits.softmax(dim=1) if family == "clip" else logits.sigmoid()
    return made.numpy()


@pytest.mark.parametrize("family", ["clip", "siglip"])
def test_probabilities_are_the_librarys_own(family, checkpoint, tiny_model, tmp_path):
    model, expected = tiny_model(family), own(checkpoint(family), family)
    classes, texts = embed_classes(prompts(CLASSES), model, tmp_path)
    vectors, scale = model.embed_images(images()), texts.info["scale"]
    found = zero_shot(vectors, classes, scale=scale, k=len(CLASSES))
    wanted = np.take_along_axis(expected, found.top, axis=1)
    if family == "siglip":
        bias = texts.info["bias"]
        made = concept_scores(vectors, classes, scale=scale, bias=bias, of="sigmoid")
        np.testing.assert_allclose(made, expected, atol=2e-5)
    else:
        np.testing.assert_allclose(found.scores, wanted, atol=2e-5)
    assert (np.diff(wanted, axis=1) <= 1e-6).all()

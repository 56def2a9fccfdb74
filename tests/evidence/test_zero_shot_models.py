"""Zero-shot with real model classes: the probabilities are those of the library's own call."""

from functools import cache

import numpy as np
import pytest

from equipoise.evidence import activation_of, embed_classes, prompts, zero_shot
from equipoise.models import load_model
from model_checkpoints import FAMILIES, images

torch = pytest.importorskip("torch", reason="could not import torch")
transformers = pytest.importorskip("transformers", reason="could not import transformers")
Image = pytest.importorskip("PIL.Image", reason="could not import pillow")

CLASSES = ("doctor", "nurse", "person", "woman")
ACTIVATIONS = {"clip": "softmax", "siglip": "sigmoid"}


@pytest.fixture(scope="module", params=ACTIVATIONS)
def family(request):
    return str(request.param)


@pytest.fixture(scope="module")
def folder(family, tmp_path_factory):
    return FAMILIES[family](tmp_path_factory.mktemp(family))


@cache
def loaded(folder):
    torch.set_num_threads(1)
    return load_model(f"hf:{folder}", device="cpu")


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


def test_probabilities_are_the_librarys_own(folder, family, tmp_path):
    model = loaded(folder)
    expected = own(folder, family)
    classes, texts = embed_classes(prompts(CLASSES), model, tmp_path)
    activation = activation_of(texts.info)
    assert activation == ACTIVATIONS[family]
    found = zero_shot(
        model.embed_images(images()), classes, scale=texts.info["scale"], bias=texts.info["bias"],
        activation=activation, k=len(CLASSES),
    )  # fmt: skip
    wanted = np.take_along_axis(expected, found.top, axis=1)
    np.testing.assert_allclose(found.scores, wanted, atol=2e-5)
    assert (np.diff(wanted, axis=1) <= 1e-6).all()

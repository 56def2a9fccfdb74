"""What every adapter promises, over one tiny model of each family."""

import dataclasses
import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from equipoise.core import ModelError
from equipoise.models import load_model
from equipoise.models.protocols import PROTOCOLS, offer_of
from equipoise.models.registry import Options, find_adapter
from model_checkpoints import TEXTS, images

OFFERS = {
    **dict.fromkeys(("clip", "siglip", "siglip2", "flava", "open_clip"), "encoder"),
    **dict.fromkeys(("vit", "resnet", "convnext", "vit_multi_label", "timm", "onnx"), "classifier"),
    **dict.fromkeys(("blip_matching", "bridgetower", "blip_2_matching", "vilt_matching"), "scorer"),
    **dict.fromkeys(("blip_2", "llava", "qwen2_vl", "vilt_vqa"), "answerer"),
}
OWN = ("open_clip", "timm", "onnx")


def name_of(family, path):
    return f"{family if family in OWN else 'hf'}:{path}"


@pytest.fixture(params=OFFERS, scope="module")
def family(request):
    return request.param


@pytest.fixture(scope="module")
def model(folder, family):
    return load_model(name_of(family, folder), device="cpu")


@pytest.fixture(scope="module")
def pictures(family):
    """Images that the family takes."""
    if family == "onnx":
        return list(np.random.default_rng(1).integers(0, 256, (5, 32, 32, 3), dtype=np.uint8))
    limit = {"bridgetower": 1.66, "qwen2_vl": 2.0, "vilt_matching": 4.0, "vilt_vqa": 4.0}.get(
        family, np.inf
    )
    return [image for image in images() if max(image.shape[:2]) / min(image.shape[:2]) < limit]


def outputs(model, pictures):
    """Return everything that a model says of images, a row an image."""
    return {
        "encoder": lambda: [model.embed_images(pictures)],
        "classifier": lambda: (
            [model.predict_proba(pictures)]
            + ([] if model.info.dimension is None else [model.features(pictures)])
        ),
        "scorer": lambda: [model.score(pictures, TEXTS)],
        "answerer": lambda: [np.array(model.answer(pictures, "what is this ?"), dtype=object)],
    }[offer_of(model)]()


def assert_near(got, expected):
    for actual, other in zip(got, expected, strict=True):
        if actual.dtype == object:
            assert actual.tolist() == other.tolist()
        else:
            np.testing.assert_allclose(actual, other, atol=2e-5)


def test_it_is_of_one_kind_and_the_preview_says_so(model, folder, family):
    kinds = [name for name, kind in PROTOCOLS.items() if isinstance(model, kind)]
    assert kinds == [OFFERS[family]]
    adapter, target = find_adapter(name_of(family, folder))
    preview = adapter.preview(target)
    if preview.offer is not None:
        assert preview.offer == OFFERS[family]
        assert preview.labels in ((), getattr(model, "labels", ()))
        assert preview.dimension in (None, model.info.dimension)


def test_an_output_depends_on_its_image_alone(model, pictures):
    expected = outputs(model, pictures)
    for output in expected:
        assert len(output) == len(pictures)
        assert output.dtype in (np.float32, object)
    for place, image in enumerate(pictures):
        assert_near(outputs(model, [image]), [output[place : place + 1] for output in expected])
    backwards = outputs(model, pictures[::-1])
    assert_near([output[::-1] for output in backwards], expected)
    for output, empty in zip(expected, outputs(model, []), strict=True):
        assert empty.shape == (0, *output.shape[1:])


def test_pillow_images_and_grey_ones_are_the_same_images(model, pictures):
    expected = outputs(model, pictures)
    assert_near(outputs(model, [Image.fromarray(picture) for picture in pictures]), expected)
    grey = np.repeat(pictures[0][:, :, :1], 3, axis=2)
    assert_near(outputs(model, [grey[:, :, 0]]), outputs(model, [grey]))


def test_what_keys_evidence_is_told(model, folder, family):
    info = model.info
    json.dumps(dataclasses.asdict(info))
    assert (info.name, info.device, info.revision) == (name_of(family, folder), "cpu", None)
    root = folder if folder.is_dir() else folder.parent
    weights = [*root.glob("*.safetensors"), *root.glob("*.onnx")]
    for path in weights:
        assert info.files[path.name] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert info.weights_sha256 == info.files[weights[0].name]


def test_a_copy_elsewhere_has_the_same_key_and_identity(model, folder, family, tmp_path):
    root = folder if folder.is_dir() else folder.parent
    copy = Path(shutil.copytree(root, tmp_path / "copy"))
    name = name_of(family, copy if folder.is_dir() else copy / folder.name)
    assert load_model(name, device="cpu").info.key == model.info.key
    facts = []
    for model_name in (name_of(family, folder), name):
        adapter, target = find_adapter(model_name)
        facts.append(adapter.identify(target, Options(model_name, device="cpu")))
    assert facts[0] is not None
    assert facts[0] == facts[1]


def test_a_folder_has_no_revision(folder, family):
    with pytest.raises(ModelError):
        load_model(name_of(family, folder), device="cpu", revision="v1")


@pytest.mark.parametrize("family", [family for family in OFFERS if OFFERS[family] == "encoder"])
def test_texts_of_an_encoder(checkpoint, family):
    name = name_of(family, checkpoint(family))
    model = load_model(name, device="cpu")
    expected = model.embed_texts(TEXTS)
    assert expected.dtype == np.float32
    for place, text in enumerate(TEXTS):
        np.testing.assert_allclose(
            model.embed_texts([text]), expected[place : place + 1], atol=2e-5
        )
    assert model.embed_texts([]).shape == (0, model.info.dimension)
    with pytest.warns(UserWarning, match=r": 1 of 2 texts "):
        assert np.isfinite(model.embed_texts(["a", "woman " * 90])).all()
    half = load_model(name, device="cpu", dtype="bfloat16")
    assert (half.info.dtype, half.info.key != model.info.key) == ("bfloat16", True)
    vectors = (encoder.embed_images(images()) for encoder in (half, model))
    a, b = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in vectors)
    assert (a * b).sum(axis=1).min() > 0.99

"""Training of dual encoders, for real: tiny ones of each library and of authors' own files."""

import json
from pathlib import Path

import numpy as np
import open_clip
import pytest
import torch
import transformers
from PIL import Image
from safetensors.torch import save_file

from author_checkpoints import weights
from equipoise.mitigate import Contrastive, trained
from equipoise.mitigate.trainable import trainable
from equipoise.mitigate.trained import contrastive_loss
from equipoise.models import load_model
from mitigate.tiny import SUBJECTS, sets, training
from model_checkpoints import OPEN_CLIP, flava, siglip
from model_checkpoints import open_clip as open_clip_folder

WEIGHTS = "open_clip_model.safetensors"
KINDS = ("open_clip", "open_clip_sigmoid", "siglip")
TRAINED = Contrastive(epochs=6, batch=8, learning_rate=1e-3, looks=2)
WRITTEN = {
    "open_clip": {WEIGHTS, "open_clip_config.json"},
    "siglip": {"config.json", "model.safetensors", "preprocessor_config.json"},
}


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    """Name the tiny model of a kind."""
    folder = tmp_path_factory.mktemp("bases")
    (folder / "siglip").mkdir()
    names = {
        "open_clip": f"open_clip:{open_clip_folder(folder / 'clip')}",
        "open_clip_sigmoid": f"open_clip:{open_clip_folder(folder / 's', init_logit_bias=-3.0)}",
        "siglip": f"hf:{siglip(folder / 'siglip')}",
    }
    return names.__getitem__


@pytest.fixture(scope="module", params=KINDS)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def base(named, kind):
    return load_model(named(kind), device="cpu", dtype="float32")


def batch(count=6):
    """Return images with captions that differ."""
    image_sets = sets(SUBJECTS, 1)
    return [image_sets.images[row] for row in range(count)], image_sets.caption[:count].tolist()


def ours(subject, images, captions):
    caption_codes = np.arange(len(images))
    vectors = subject.images(images), subject.texts(captions)
    scale, bias = subject.model.logit_scale.exp(), getattr(subject.model, "logit_bias", None)
    return contrastive_loss(torch, *vectors, caption_codes, scale, bias)


def test_the_loss_and_its_gradient_are_the_librarys(base, kind):
    subject = trainable(base)
    weights = subject.weights("both")
    images, captions = batch()
    loss = ours(subject, images, captions)
    gradients = torch.autograd.grad(loss, [*weights.values()], allow_unused=True)
    expected = library(base, kind, subject.model, images, captions)
    assert float(loss.detach()) == pytest.approx(float(expected.detach()), rel=1e-5)
    reference = torch.autograd.grad(expected, [*weights.values()], allow_unused=True)
    for name, gradient, other in zip(weights, gradients, reference, strict=True):
        assert (gradient is None) == (other is None), name
        if gradient is not None:
            torch.testing.assert_close(gradient, other, rtol=1e-3, atol=1e-6)
    trained = {
        name for name, gradient in zip(weights, gradients, strict=True) if gradient is not None
    }
    assert "logit_scale" in trained
    assert ("logit_bias" in trained) == (kind != "open_clip")


def library(base, kind, model, images, captions):
    """Return the loss with which the library trains such a model, from its own preprocessing."""
    pictures = [Image.fromarray(image) for image in images]
    if kind == "siglip":
        folder = base.info.name.removeprefix("hf:")
        tokens = transformers.AutoTokenizer.from_pretrained(folder)(
            captions, padding="max_length", max_length=64, return_tensors="pt"
        )
        pixels = transformers.AutoImageProcessor.from_pretrained(folder)(
            pictures, return_tensors="pt"
        )
        return model(**pixels, **tokens, return_loss=True).loss
    folder = base.info.name.removeprefix("open_clip:")
    _, prepare = open_clip.create_model_from_pretrained(f"local-dir:{folder}")
    tokens = open_clip.get_tokenizer(f"local-dir:{folder}")(captions)
    image_vectors = model.encode_image(
        torch.stack([prepare(picture) for picture in pictures]), normalize=True
    )
    read = model.encode_text(tokens, normalize=True)
    if kind == "open_clip":
        return open_clip.ClipLoss()(image_vectors, read, model.logit_scale.exp())
    return open_clip.loss.SigLipLoss()(
        image_vectors, read, model.logit_scale.exp(), model.logit_bias
    )


def test_the_folder_comes_back_as_a_name_with_the_trained_vectors(
    base, kind, tmp_path, monkeypatch
):
    copies = []

    def kept(*arguments):
        copies.append(trainable(*arguments))
        return copies[-1]

    monkeypatch.setattr(trained, "trainable", kept)
    fitted = TRAINED.fit(base, training(watched=False), tmp_path / "made", seed=2)
    family = kind.partition("_sigmoid")[0]
    prefix = "hf" if kind == "siglip" else "open_clip"
    assert fitted.info.name == f"{prefix}:{tmp_path / 'made'}"
    assert {path.name for path in (tmp_path / "made").iterdir()} > WRITTEN[family]
    images, captions = batch()
    (subject,) = copies
    with torch.no_grad():
        expected = subject.images(images).numpy(), subject.texts(captions).numpy()
    again = load_model(fitted.info.name, device="cpu", dtype="float32")
    np.testing.assert_allclose(again.embed_images(images), expected[0], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(again.embed_texts(captions), expected[1], rtol=1e-4, atol=1e-6)
    assert np.abs(again.embed_texts(captions) - base.embed_texts(captions)).max() > 1e-3
    assert again.info.key == fitted.info.key != base.info.key


@pytest.mark.parametrize("kind", ["flava", "alip", "slip"])
def test_models_of_howard_et_al_train_and_come_back(kind, tmp_path):
    if kind == "flava":
        (tmp_path / "base").mkdir()
        name = f"hf:{flava(tmp_path / 'base')}"
    else:
        save_file(
            {key: tensor.contiguous() for key, tensor in weights(kind).items()}, tmp_path / "base"
        )
        name = f"{kind}:{(tmp_path / 'base').rename(tmp_path / 'base.safetensors')}"
    base = load_model(name, device="cpu", dtype="float32")
    # Their vocabularies are whole: a step takes longer.
    recipe = Contrastive(epochs=2, batch=8, learning_rate=1e-3)
    fitted = recipe.fit(base, training(watched=False), tmp_path / "made", seed=2)
    assert fitted.info.name == f"{name.partition(':')[0]}:{tmp_path / 'made'}"
    again = load_model(fitted.info.name, device="cpu", dtype="float32")
    images, captions = batch()
    for method in ("embed_images", "embed_texts"):
        inputs = images if method == "embed_images" else captions
        vectors = getattr(fitted, method)(inputs)
        np.testing.assert_allclose(getattr(again, method)(inputs), vectors, rtol=1e-4, atol=1e-6)
        assert np.abs(vectors - getattr(base, method)(inputs)).max() > 1e-3
    untrained = trainable(base)
    assert ours(trainable(again), images, captions) < ours(untrained, images, captions)
    assert fitted.info.preprocessing == base.info.preprocessing


def test_a_model_named_by_architecture_and_file_is_written_with_its_settings(named, tmp_path):
    (tmp_path / "tiny-trained.json").write_text(json.dumps(OPEN_CLIP))
    open_clip.add_model_config(tmp_path)
    file = Path(named("open_clip").removeprefix("open_clip:")) / WEIGHTS
    base = load_model(f"open_clip:tiny-trained/{file}", device="cpu")
    fitted = Contrastive(towers="texts").fit(base, training(), tmp_path / "made")
    settings = json.loads((tmp_path / "made" / "open_clip_config.json").read_text())
    assert settings["model_cfg"] == OPEN_CLIP
    # Images are prepared as the base prepares them: with a bare file, as OpenAI's were.
    assert settings["preprocess_cfg"]["mean"] == pytest.approx([0.48145466, 0.4578275, 0.40821073])
    images, _ = batch()
    np.testing.assert_array_equal(fitted.embed_images(images), base.embed_images(images))


def vectors(n, seed):
    return torch.randn(n, 8, generator=torch.Generator().manual_seed(seed))


def test_a_caption_of_two_images_is_no_mismatch_of_either():
    image, text = vectors(1, 0), vectors(2, 1)
    twice = torch.cat([image, image, vectors(1, 2)])
    loss = contrastive_loss(torch, twice, text, np.array([0, 0, 1]), torch.tensor(5.0), None)
    logits = 5.0 * torch.nn.functional.normalize(twice) @ torch.nn.functional.normalize(text).T
    rows = -torch.log_softmax(logits, dim=1)[[0, 1, 2], [0, 0, 1]].mean()
    columns = torch.log_softmax(logits.T, dim=1)
    column_loss = -(columns[0, :2].mean() + columns[1, 2]) / 2
    assert float(loss) == pytest.approx(float((rows + column_loss) / 2), rel=1e-5)

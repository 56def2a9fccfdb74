"""open_clip through `load_model`: local weights, tags, and what it refuses."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equipoise.core.errors import ModelError
from equipoise.models import DualEncoder, load_model
from model_checkpoints import TEXTS, images

torch = pytest.importorskip("torch", reason="could not import torch")
open_clip = pytest.importorskip("open_clip", reason="could not import open_clip")
Image = pytest.importorskip("PIL.Image", reason="could not import pillow")

MODEL = {
    "embed_dim": 24,
    "vision_cfg": {"image_size": 32, "layers": 2, "width": 32, "patch_size": 8, "head_width": 16},
    "text_cfg": {"context_length": 20, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 2},
}
PREPARE = {"mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5]}
WEIGHTS = "open_clip_model.safetensors"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from safetensors.torch import save_file

    torch.set_num_threads(1)
    torch.manual_seed(3)
    made = tmp_path_factory.mktemp("open_clip")
    settings = {"model_cfg": MODEL, "preprocess_cfg": PREPARE}
    (made / "open_clip_config.json").write_text(json.dumps(settings))
    weights = open_clip.CLIP(**MODEL).state_dict()
    save_file({name: value.contiguous() for name, value in weights.items()}, made / WEIGHTS)
    return made


@pytest.fixture(scope="module")
def model(folder: Path) -> Any:
    return load_model(f"open_clip:{folder}", device="cpu", preprocessing="library")


@pytest.fixture
def architecture(tmp_path: Path) -> str:
    (tmp_path / "tiny-equipoise.json").write_text(json.dumps(MODEL))
    open_clip.add_model_config(tmp_path)
    return "tiny-equipoise"


def test_vectors_are_the_librarys(model: Any, folder: Path) -> None:
    reference, prepare = open_clip.create_model_from_pretrained(f"local-dir:{folder}")
    tokens = open_clip.get_tokenizer(f"local-dir:{folder}")(TEXTS)
    pixels = torch.stack([prepare(Image.fromarray(image)) for image in images()])
    with torch.inference_mode():
        seen, read = reference.eval().encode_image(pixels), reference.encode_text(tokens)
    np.testing.assert_allclose(model.embed_images(images()), seen.numpy(), atol=1e-5)
    np.testing.assert_allclose(model.embed_texts(TEXTS), read.numpy(), atol=1e-5)
    assert isinstance(model, DualEncoder)


def test_what_keys_evidence_is_told(model: Any, folder: Path) -> None:
    info = model.info
    assert (info.family, info.dimension, info.bias) == ("open_clip", 24, 0.0)
    assert info.scale == pytest.approx(1 / 0.07)
    assert set(info.files) == {WEIGHTS, "open_clip_config.json"}
    assert info.preprocessing["image_settings"]["mean"] == [0.5, 0.5, 0.5]
    assert info.preprocessing["image_backend"] == "torchvision"


@pytest.mark.parametrize("size", [1, 7])
def test_the_size_of_a_batch_changes_nothing(model: Any, size: int) -> None:
    pictures, texts = model.embed_images(images()), model.embed_texts(TEXTS)
    model.image_batches.size = model.text_batches.size = size
    np.testing.assert_allclose(model.embed_images(images()), pictures, atol=1e-5)
    np.testing.assert_allclose(model.embed_texts(TEXTS), texts, atol=1e-5)
    assert model.embed_images([]).shape == model.embed_texts([]).shape == (0, 24)


def test_a_long_text_is_cut_and_counted(model: Any) -> None:
    with pytest.warns(UserWarning, match=r": 1 of 2 texts are longer than the 20 tokens that the"):
        model.embed_texts(["woman", "woman " * 40])


def test_an_architecture_and_a_file(architecture: str, folder: Path, model: Any) -> None:
    named = load_model(f"open_clip:{architecture}/{folder / WEIGHTS}", device="cpu")
    np.testing.assert_allclose(named.embed_texts(TEXTS), model.embed_texts(TEXTS), atol=1e-6)
    # Without a configuration beside the weights, images are prepared as OpenAI's were.
    assert named.info.preprocessing["image_settings"]["mean"][0] == pytest.approx(0.48145466)
    assert named.info.weights_sha256 == model.info.weights_sha256
    assert named.info.key != model.info.key


def test_half_precision(folder: Path, model: Any) -> None:
    half = load_model(f"open_clip:{folder}", device="cpu", dtype="bfloat16")
    assert half.info.dtype == "bfloat16"
    np.testing.assert_allclose(half.embed_images(images()), model.embed_images(images()), atol=0.1)


@pytest.fixture
def tagged(
    architecture: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    """A tag of the tiny architecture, whose weights are in the hub's cache; no network."""
    import huggingface_hub

    kept = tmp_path / "cache" / "models--owner--tiny"
    (kept / "snapshots").mkdir(parents=True)
    (kept / "snapshots" / COMMIT).symlink_to(folder)
    (kept / "refs").mkdir()
    (kept / "refs" / "main").write_text(COMMIT)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    tag = {"hf_hub": "owner/tiny/", **PREPARE}
    monkeypatch.setitem(open_clip.pretrained._PRETRAINED, architecture, {"own": tag})
    return tag


def test_an_architecture_and_a_tag(tagged: dict[str, Any], architecture: str, model: Any) -> None:
    named = load_model(f"open_clip:{architecture}/own", device="cpu")
    np.testing.assert_array_equal(named.embed_texts(TEXTS), model.embed_texts(TEXTS))
    assert named.info.revision == COMMIT


def test_a_tag_of_another_activation(tagged: dict[str, Any], architecture: str) -> None:
    tagged["quick_gelu"] = True
    expected = (
        r"trained with another activation \(QuickGELU: True\)\. To do: name .*-quickgelu/own\."
    )
    with pytest.raises(ModelError, match=expected):
        load_model(f"open_clip:{architecture}/own")


@pytest.mark.parametrize(
    ("hub", "said"),
    [
        ("owner/tiny/model.pt", r"/own has its weights only as pickles"),
        ("", r"^The weights own of tiny-equipoise are on no hub\. To do: download them and name"),
        ("owner/absent/", r"^owner/absent is no folder here, .* \(open_clip:path/to/folder\)"),
    ],
)
def test_tags_that_cannot_be_read(
    tagged: dict[str, Any], architecture: str, hub: str, said: str
) -> None:
    tagged["hf_hub"] = hub
    with pytest.raises(ModelError, match=said):
        load_model(f"open_clip:{architecture}/own")


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (
            "no-such-model/openai",
            r"^open_clip has no architecture 'no-such-model'\. To do: name one",
        ),
        (
            "ViT-B-32/no-tag",
            r"^'no-tag' is no file and no tag of ViT-B-32\. Its tags are: openai, ",
        ),
    ],
)
def test_what_there_is_not(target: str, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        load_model(f"open_clip:{target}")


def test_folders_that_lack_something(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r" holds no open_clip_config\.json\.$"):
        load_model(f"open_clip:{tmp_path}")
    (tmp_path / "open_clip_config.json").write_text((folder / "open_clip_config.json").read_text())
    with pytest.raises(ModelError, match=r" holds no weights \(open_clip_model\.safetensors\)\.$"):
        load_model(f"open_clip:{tmp_path}")
    (tmp_path / "open_clip_pytorch_model.bin").write_bytes(b"never read")
    with pytest.raises(ModelError, match=r" has its weights only as pickles"):
        load_model(f"open_clip:{tmp_path}")


def test_a_folder_has_no_revision(folder: Path) -> None:
    with pytest.raises(ModelError, match=r" is no repository of a hub, so it has no revision 'v1'"):
        load_model(f"open_clip:{folder}", revision="v1")

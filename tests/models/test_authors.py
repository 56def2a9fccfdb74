"""SLIP, LaCLIP and ALIP from files in their authors' form, beside the formulas of their papers."""

import argparse
import math
from collections import OrderedDict

import numpy as np
import open_clip
import pytest
import torch
from PIL import Image
from torch.nn import functional
from torchvision import transforms

from author_checkpoints import DIMENSION, HEADS, LAYERS, PATCH, SIDE, WIDTH, weights
from equipoise.core import ModelError
from equipoise.explain import activation_maps
from equipoise.models import load_model
from equipoise.models.authors import read_weights
from equipoise.models.registry import Options, find_adapter
from model_checkpoints import TEXTS, images

SLIP_MEAN, SLIP_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
OPENAI_MEAN, OPENAI_STD = open_clip.OPENAI_DATASET_MEAN, open_clip.OPENAI_DATASET_STD


KINDS = ("slip", "laclip", "laclip of LAION", "alip")


def prefix(kind):
    return kind.partition(" ")[0]


@pytest.fixture(params=KINDS, scope="module")
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def path(kind, tmp_path_factory):
    """A checkpoint as training on several GPUs leaves it, with the arguments; ALIP's is bare."""
    file = tmp_path_factory.mktemp("authors") / "model.pt"
    held = OrderedDict((f"module.{name}", value) for name, value in weights(kind).items())
    more = {"args": argparse.Namespace(model="SLIP_VITB16"), "epoch": 25}
    torch.save(held if kind == "alip" else {"state_dict": held, **more}, file)
    return file


@pytest.fixture(scope="module")
def model(kind, path):
    return load_model(f"{prefix(kind)}:{path}", device="cpu", allow_pickle=True, backend="torch")


def _attend(held, name, states, mask, *, timm):
    """Attention of one block, by its formula."""
    rows = held[f"{name}.attn.qkv.weight" if timm else f"{name}.attn.in_proj_weight"]
    bias = held[f"{name}.attn.qkv.bias" if timm else f"{name}.attn.in_proj_bias"]
    parts = (states @ rows.T + bias).reshape(*states.shape[:2], 3, HEADS, -1)
    query, key, value = parts.permute(2, 0, 3, 1, 4)
    if f"{name}.attn.q_norm.weight" in held:
        query, key = (_normal(held, f"{name}.attn.{of}_norm", one, 1e-6)
                      for one, of in ((query, "q"), (key, "k")))  # fmt: skip
    scores = query @ key.transpose(2, 3) / math.sqrt(query.shape[-1])
    seen = (scores + mask).softmax(dim=-1) @ value
    last = "proj" if timm else "out_proj"
    joined = seen.transpose(1, 2).reshape(states.shape)
    return joined @ held[f"{name}.attn.{last}.weight"].T + held[f"{name}.attn.{last}.bias"]


def _normal(held, name, values, eps):
    scale = held[f"{name}.weight"], held[f"{name}.bias"]
    return functional.layer_norm(values, values.shape[-1:], *scale, eps)


def _run(held, name, states, act, mask=0.0, *, timm=False):
    """Blocks of a transformer, one by one."""
    norms, parts = (("norm1", "norm2"), ("fc1", "fc2")) if timm else (
        ("ln_1", "ln_2"), ("c_fc", "c_proj"))  # fmt: skip
    for layer in range(LAYERS):
        at, eps = f"{name}.{layer}", 1e-6 if timm else 1e-5
        first = _normal(held, f"{at}.{norms[0]}", states, eps)
        states = states + _attend(held, at, first, mask, timm=timm)
        inner = _normal(held, f"{at}.{norms[1]}", states, eps)
        for part in parts:
            inner = inner @ held[f"{at}.mlp.{part}.weight"].T + held[f"{at}.mlp.{part}.bias"]
            inner = act(inner) if part == parts[0] else inner
        states = states + inner
    return states


def _quick(values):
    return values * torch.sigmoid(1.702 * values)


def reference_images(kind, held, pixels):
    timm = "visual.cls_token" in held
    conv = "visual.patch_embed.proj" if timm else "visual.conv1"
    places = functional.conv2d(pixels, held[f"{conv}.weight"], held.get(f"{conv}.bias"), PATCH)
    start = held["visual.cls_token" if timm else "visual.class_embedding"].reshape(1, 1, -1)
    states = torch.cat([start.expand(len(pixels), -1, -1), places.flatten(2).transpose(1, 2)], 1)
    states = states + held["visual.pos_embed" if timm else "visual.positional_embedding"]
    if timm:
        states = _run(held, "visual.blocks", states, functional.gelu, timm=True)
        return _normal(held, "visual.norm", states[:, 0], 1e-6) @ held["image_projection"]
    states = _normal(held, "visual.ln_pre", states, 1e-5)
    states = _run(held, "visual.transformer.resblocks", states, functional.gelu)
    return _normal(held, "visual.ln_post", states[:, 0], 1e-5) @ held["visual.proj"]


def reference_texts(kind, held, tokens):
    act = _quick if "visual.cls_token" in held else functional.gelu
    states = held["token_embedding.weight"][tokens] + held["positional_embedding"]
    mask = torch.full((77, 77), -math.inf).triu(1)
    states = _run(held, "transformer.resblocks", states, act, mask)
    ends = states[torch.arange(len(tokens)), tokens.argmax(dim=1)]
    ends = functional.layer_norm(ends, (WIDTH,), held["ln_final.weight"], held["ln_final.bias"])
    return ends @ held["text_projection"]


def pixels_of(kind):
    openai = kind in ("alip", "laclip of LAION")
    how = transforms.InterpolationMode.BICUBIC if openai else transforms.InterpolationMode.BILINEAR
    scale = (OPENAI_MEAN, OPENAI_STD) if openai else (SLIP_MEAN, SLIP_STD)
    steps = transforms.Compose([
        transforms.Resize(SIDE, how), transforms.CenterCrop(SIDE), transforms.ToTensor(),
        transforms.Normalize(*scale),
    ])  # fmt: skip
    return torch.stack([steps(Image.fromarray(image)) for image in images()])


def test_vectors_are_those_of_the_formulas(kind, model):
    held = weights(kind)
    expected = reference_images(kind, held, pixels_of(kind)).numpy()
    got = model.embed_images(images())
    lengths = np.linalg.norm(expected, axis=1) * np.linalg.norm(got, axis=1)
    # Images are prepared within a grey level.
    assert ((got * expected).sum(axis=1) / lengths).min() > 0.9995
    assert (model.info.dimension, model.info.scale) == (DIMENSION, pytest.approx(math.exp(3.0)))
    tokens = open_clip.SimpleTokenizer()(TEXTS)
    read = reference_texts(kind, held, tokens).numpy()
    np.testing.assert_allclose(model.embed_texts(TEXTS), read, rtol=2e-3, atol=2e-4)
    mapped = activation_maps(model, [one for one in images() if min(one.shape[:2]) > 10], "a dog")
    assert mapped.layer.startswith("visual.")
    assert mapped.maps.shape[1:] == (SIDE, SIDE)


def test_pixels_alike_give_vectors_alike(kind, model):
    pixels = pixels_of(kind)
    with torch.inference_mode():
        seen = model.model.encode_image(pixels)
    expected = reference_images(kind, weights(kind), pixels)
    np.testing.assert_allclose(seen.numpy(), expected.numpy(), rtol=1e-3, atol=2e-4)


def test_a_file_is_known_before_it_is_loaded(kind, path, model):
    name = f"{prefix(kind)}:{path}"
    adapter, target = find_adapter(name)
    assert adapter.preview(target).offer == "encoder"
    facts = adapter.identify(target, Options(name, device="cpu", allow_pickle=True))
    assert facts["files"] == model.info.files
    with pytest.raises(ModelError, match="has its weights only as pickles"):
        load_model(name, device="cpu")
    with pytest.raises(ModelError, match="has no revision"):
        load_model(name, device="cpu", allow_pickle=True, revision="v1")


def test_no_code_of_a_pickle_is_run(tmp_path):
    class Harm:
        def __reduce__(self):
            return (open, (str(tmp_path / "harm"), "w"))

    torch.save({"state_dict": {"a": torch.ones(2)}, "args": Harm()}, tmp_path / "w.pt")
    assert [*read_weights(tmp_path / "w.pt", torch)] == ["a"]
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda held: held.pop("visual.norm.bias"), r"Missing key.*visual\.trunk\.norm\.bias"),
        (lambda held: held.pop("text_projection"), r"lacks weights that it needs \(text_proj"),
        (lambda held: held.update(extra=torch.ones(1)), r"Unexpected key.*extra"),
        (lambda held: held.pop("visual.cls_token"), "no checkpoint of SLIP, LaCLIP or ALIP"),
    ],
)
def test_other_files_are_refused(change, said, tmp_path):
    from safetensors.torch import save_file

    held = weights("slip")
    change(held)
    save_file(held, tmp_path / "slip.safetensors")
    with pytest.raises(ModelError, match=said):
        load_model(f"slip:{tmp_path / 'slip.safetensors'}", device="cpu")


def test_what_is_no_file_of_weights(tmp_path):
    with pytest.raises(ModelError, match="There is no file of weights"):
        load_model(f"alip:{tmp_path / 'absent.pt'}")
    (tmp_path / "bad.pt").write_bytes(b"words")
    with pytest.raises(ModelError, match=r"bad\.pt holds no weights that can be read"):
        load_model(f"alip:{tmp_path / 'bad.pt'}", allow_pickle=True, device="cpu")

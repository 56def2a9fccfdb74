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
    state = OrderedDict((f"module.{name}", value) for name, value in weights(kind).items())
    more = {"args": argparse.Namespace(model="SLIP_VITB16"), "epoch": 25}
    torch.save(state if kind == "alip" else {"state_dict": state, **more}, file)
    return file


@pytest.fixture(scope="module")
def model(kind, path):
    return load_model(f"{prefix(kind)}:{path}", device="cpu", allow_pickle=True, backend="torch")


def _attend(state, name, states, mask, *, timm):
    """Attention of one block, by its formula."""
    rows = state[f"{name}.attn.qkv.weight" if timm else f"{name}.attn.in_proj_weight"]
    bias = state[f"{name}.attn.qkv.bias" if timm else f"{name}.attn.in_proj_bias"]
    parts = (states @ rows.T + bias).reshape(*states.shape[:2], 3, HEADS, -1)
    query, key, value = parts.permute(2, 0, 3, 1, 4)
    if f"{name}.attn.q_norm.weight" in state:
        query, key = (_normal(state, f"{name}.attn.{of}_norm", vectors, 1e-6)
                      for vectors, of in ((query, "q"), (key, "k")))  # fmt: skip
    scores = query @ key.transpose(2, 3) / math.sqrt(query.shape[-1])
    mixed = (scores + mask).softmax(dim=-1) @ value
    last = "proj" if timm else "out_proj"
    joined = mixed.transpose(1, 2).reshape(states.shape)
    return joined @ state[f"{name}.attn.{last}.weight"].T + state[f"{name}.attn.{last}.bias"]


def _normal(state, name, values, eps):
    scale = state[f"{name}.weight"], state[f"{name}.bias"]
    return functional.layer_norm(values, values.shape[-1:], *scale, eps)


def _run(state, name, states, act, mask=0.0, *, timm=False):
    """Blocks of a transformer, one by one."""
    norms, parts = (("norm1", "norm2"), ("fc1", "fc2")) if timm else (
        ("ln_1", "ln_2"), ("c_fc", "c_proj"))  # fmt: skip
    for layer in range(LAYERS):
        at, eps = f"{name}.{layer}", 1e-6 if timm else 1e-5
        first = _normal(state, f"{at}.{norms[0]}", states, eps)
        states = states + _attend(state, at, first, mask, timm=timm)
        inner = _normal(state, f"{at}.{norms[1]}", states, eps)
        for part in parts:
            inner = inner @ state[f"{at}.mlp.{part}.weight"].T + state[f"{at}.mlp.{part}.bias"]
            inner = act(inner) if part == parts[0] else inner
        states = states + inner
    return states


def _quick(values):
    return values * torch.sigmoid(1.702 * values)


def reference_images(kind, state, pixels):
    timm = "visual.cls_token" in state
    conv = "visual.patch_embed.proj" if timm else "visual.conv1"
    places = functional.conv2d(pixels, state[f"{conv}.weight"], state.get(f"{conv}.bias"), PATCH)
    start = state["visual.cls_token" if timm else "visual.class_embedding"].reshape(1, 1, -1)
    states = torch.cat([start.expand(len(pixels), -1, -1), places.flatten(2).transpose(1, 2)], 1)
    states = states + state["visual.pos_embed" if timm else "visual.positional_embedding"]
    if timm:
        states = _run(state, "visual.blocks", states, functional.gelu, timm=True)
        return _normal(state, "visual.norm", states[:, 0], 1e-6) @ state["image_projection"]
    states = _normal(state, "visual.ln_pre", states, 1e-5)
    states = _run(state, "visual.transformer.resblocks", states, functional.gelu)
    return _normal(state, "visual.ln_post", states[:, 0], 1e-5) @ state["visual.proj"]


def reference_texts(kind, state, tokens):
    act = _quick if "visual.cls_token" in state else functional.gelu
    states = state["token_embedding.weight"][tokens] + state["positional_embedding"]
    mask = torch.full((77, 77), -math.inf).triu(1)
    states = _run(state, "transformer.resblocks", states, act, mask)
    ends = states[torch.arange(len(tokens)), tokens.argmax(dim=1)]
    ends = functional.layer_norm(ends, (WIDTH,), state["ln_final.weight"], state["ln_final.bias"])
    return ends @ state["text_projection"]


def pixels_of(kind):
    openai = kind in ("alip", "laclip of LAION")
    mode = transforms.InterpolationMode.BICUBIC if openai else transforms.InterpolationMode.BILINEAR
    scale = (OPENAI_MEAN, OPENAI_STD) if openai else (SLIP_MEAN, SLIP_STD)
    steps = transforms.Compose([
        transforms.Resize(SIDE, mode), transforms.CenterCrop(SIDE), transforms.ToTensor(),
        transforms.Normalize(*scale),
    ])  # fmt: skip
    return torch.stack([steps(Image.fromarray(image)) for image in images()])


def test_vectors_are_those_of_the_formulas(kind, model):
    state = weights(kind)
    expected = reference_images(kind, state, pixels_of(kind)).numpy()
    got = model.embed_images(images())
    lengths = np.linalg.norm(expected, axis=1) * np.linalg.norm(got, axis=1)
    # Images are prepared within a grey level.
    assert ((got * expected).sum(axis=1) / lengths).min() > 0.9995
    assert (model.info.dimension, model.info.scale) == (DIMENSION, pytest.approx(math.exp(3.0)))
    tokens = open_clip.SimpleTokenizer()(TEXTS)
    read = reference_texts(kind, state, tokens).numpy()
    np.testing.assert_allclose(model.embed_texts(TEXTS), read, rtol=2e-3, atol=2e-4)
    mapped = activation_maps(
        model, [image for image in images() if min(image.shape[:2]) > 10], "a dog"
    )
    assert mapped.layer.startswith("visual.")
    assert mapped.maps.shape[1:] == (SIDE, SIDE)


def test_pixels_alike_give_vectors_alike(kind, model):
    pixels = pixels_of(kind)
    with torch.inference_mode():
        expected_vector = model.model.encode_image(pixels)
    expected = reference_images(kind, weights(kind), pixels)
    np.testing.assert_allclose(expected_vector.numpy(), expected.numpy(), rtol=1e-3, atol=2e-4)


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
    ("change", "message"),
    [
        (
            lambda state: state.pop("visual.norm.bias"),
            r"Missing key.*visual\.trunk\.norm\.bias",
        ),
        (
            lambda state: state.pop("text_projection"),
            r"lacks weights that it needs \(text_proj",
        ),
        (lambda state: state.update(extra=torch.ones(1)), r"Unexpected key.*extra"),
        (
            lambda state: state.pop("visual.cls_token"),
            "checkpoint of SLIP, LaCLIP or ALIP",
        ),
    ],
)
def test_other_files_are_refused(change, message, tmp_path):
    from safetensors.torch import save_file

    state = weights("slip")
    change(state)
    save_file(state, tmp_path / "slip.safetensors")
    with pytest.raises(ModelError, match=message):
        load_model(f"slip:{tmp_path / 'slip.safetensors'}", device="cpu")


def test_what_is_no_file_of_weights(tmp_path):
    with pytest.raises(ModelError, match="There is no file of weights"):
        load_model(f"alip:{tmp_path / 'absent.pt'}")
    (tmp_path / "bad.pt").write_bytes(b"words")
    with pytest.raises(ModelError, match=r"bad\.pt holds no weights that can be read"):
        load_model(f"alip:{tmp_path / 'bad.pt'}", allow_pickle=True, device="cpu")

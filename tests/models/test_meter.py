"""METER from a file in its authors' form, beside the same computed layer by layer."""

import math
from collections import OrderedDict

import numpy as np
import pytest
import torch
import transformers
from PIL import Image
from torch.nn import functional
from torchvision import transforms

from equipoise.core import ModelError
from equipoise.explain import activation_maps
from equipoise.models import load_model
from equipoise.models.registry import Options, find_adapter
from model_checkpoints import TEXTS, images, roberta_tokenizer

WIDTH, HEADS, LAYERS, PATCH, SIDE = 128, 2, 2, 8, 32
MEAN, STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)


def _linear(name, wide=WIDTH, out=WIDTH):
    return {f"{name}.weight": (out, wide), f"{name}.bias": (out,)}


def _norm(name):
    return {f"{name}.weight": (WIDTH,), f"{name}.bias": (WIDTH,)}


def _attention(name):
    sizes = _linear(f"{name}.output.dense") | _norm(f"{name}.output.LayerNorm")
    for part in ("query", "key", "value"):
        sizes |= _linear(f"{name}.self.{part}")
    return sizes


def _bert_layer(name, *, cross):
    return {
        **_attention(f"{name}.attention"),
        **(_attention(f"{name}.crossattention") if cross else {}),
        **_linear(f"{name}.intermediate.dense", WIDTH, 4 * WIDTH),
        **_linear(f"{name}.output.dense", 4 * WIDTH, WIDTH),
        **_norm(f"{name}.output.LayerNorm"),
    }


def _clip_block(name):
    return {
        f"{name}.attn.in_proj_weight": (3 * WIDTH, WIDTH),
        f"{name}.attn.in_proj_bias": (3 * WIDTH,),
        **_linear(f"{name}.attn.out_proj"),
        **_linear(f"{name}.mlp.c_fc", WIDTH, 4 * WIDTH),
        **_linear(f"{name}.mlp.c_proj", 4 * WIDTH, WIDTH),
        **_norm(f"{name}.ln_1"),
        **_norm(f"{name}.ln_2"),
    }


def shapes(words):
    """Names and shapes as the authors' code writes them, those of training alone included."""
    vision, text = "vit_model.visual", "text_transformer"
    sizes = {
        f"{vision}.class_embedding": (WIDTH,),
        f"{vision}.positional_embedding": ((SIDE // PATCH) ** 2 + 1, WIDTH),
        f"{vision}.conv1.weight": (WIDTH, 3, PATCH, PATCH),
        **_norm(f"{vision}.ln_pre"),
        **_norm(f"{vision}.ln_post"),
        "vit_model.positional_embedding": (77, WIDTH),
        "vit_model.token_embedding.weight": (99, WIDTH),
        **_norm("vit_model.ln_final"),
        f"{text}.embeddings.word_embeddings.weight": (words, WIDTH),
        f"{text}.embeddings.position_embeddings.weight": (64, WIDTH),
        f"{text}.embeddings.token_type_embeddings.weight": (1, WIDTH),
        f"{text}.embeddings.position_ids": (1, 64),
        **_norm(f"{text}.embeddings.LayerNorm"),
        **_linear(f"{text}.pooler.dense"),
        "token_type_embeddings.weight": (2, WIDTH),
        **_linear("itm_score.fc", 2 * WIDTH, 2),
        "mlm_score.bias": (words,),
    }
    for layer in range(LAYERS):
        sizes |= _clip_block(f"{vision}.transformer.resblocks.{layer}")
        sizes |= _bert_layer(f"{text}.encoder.layer.{layer}", cross=False)
        for of in ("text", "image"):
            sizes |= _bert_layer(f"cross_modal_{of}_layers.{layer}", cross=True)
    for of in ("text", "image"):
        sizes |= _linear(f"cross_modal_{of}_transform") | _linear(f"cross_modal_{of}_pooler.dense")
    return sizes


def weights(words):
    generator, state = torch.Generator().manual_seed(6), OrderedDict()
    for name, size in shapes(words).items():
        state[name] = 0.15 * torch.randn(size, generator=generator)
        if name.endswith("weight") and len(size) == 1:
            state[name] += 1.0
    return state


@pytest.fixture(scope="module")
def tokenizer():
    return roberta_tokenizer()


@pytest.fixture(scope="module")
def state(tokenizer):
    return weights(len(tokenizer))


def written(folder, state, tokenizer):
    tokenizer.save_pretrained(folder)
    torch.save({"state_dict": state, "hyper_parameters": {"config": {"vit": "ViT-B/16"}}},
               folder / "meter.ckpt")  # fmt: skip
    return f"meter:{folder / 'meter.ckpt'}"


@pytest.fixture(scope="module")
def name(state, tokenizer, tmp_path_factory):
    return written(tmp_path_factory.mktemp("meter"), state, tokenizer)


def linear(state, name, values):
    return values @ state[f"{name}.weight"].T + state[f"{name}.bias"]


def norm(state, name, values, eps):
    return functional.layer_norm(
        values, (WIDTH,), state[f"{name}.weight"], state[f"{name}.bias"], eps
    )


def heads(query, key, value):
    query, key, value = (projection.reshape(len(projection), HEADS, -1).transpose(0, 1)
                         for projection in (query, key, value))  # fmt: skip
    mixed = (query @ key.transpose(1, 2) / math.sqrt(query.shape[-1])).softmax(dim=-1) @ value
    return mixed.transpose(0, 1).reshape(query.shape[1], WIDTH)


def attend(state, name, states, other, eps):
    sources = {"query": states, "key": other, "value": other}
    parts = [linear(state, f"{name}.self.{part}", values) for part, values in sources.items()]
    mixed = linear(state, f"{name}.output.dense", heads(*parts))
    return norm(state, f"{name}.output.LayerNorm", mixed + states, eps)


def bert(state, name, states, eps, other=None):
    states = attend(state, f"{name}.attention", states, states, eps)
    if other is not None:
        states = attend(state, f"{name}.crossattention", states, other, eps)
    inner = functional.gelu(linear(state, f"{name}.intermediate.dense", states))
    inner = linear(state, f"{name}.output.dense", inner)
    return norm(state, f"{name}.output.LayerNorm", inner + states, eps)


def clip(state, name, states):
    first = norm(state, f"{name}.ln_1", states, 1e-5)
    parts = first @ state[f"{name}.attn.in_proj_weight"].T + state[f"{name}.attn.in_proj_bias"]
    states = states + linear(state, f"{name}.attn.out_proj", heads(*parts.chunk(3, dim=-1)))
    inner = linear(state, f"{name}.mlp.c_fc", norm(state, f"{name}.ln_2", states, 1e-5))
    inner = inner * torch.sigmoid(1.702 * inner)
    return states + linear(state, f"{name}.mlp.c_proj", inner)


def reference(state, pixels, tokens):
    """Features of one image and one text, without padding."""
    vision, text = "vit_model.visual", "text_transformer"
    places = functional.conv2d(pixels[None], state[f"{vision}.conv1.weight"], stride=PATCH)[0]
    image = torch.cat([state[f"{vision}.class_embedding"][None], places.flatten(1).T])
    image = norm(state, f"{vision}.ln_pre", image + state[f"{vision}.positional_embedding"], 1e-5)
    start = f"{text}.embeddings"
    # RoBERTa counts positions from 2.
    positions = state[f"{start}.position_embeddings.weight"][2 : 2 + len(tokens)]
    words = state[f"{start}.word_embeddings.weight"][tokens] + positions
    words = words + state[f"{start}.token_type_embeddings.weight"][0]
    words = norm(state, f"{start}.LayerNorm", words, 1e-5)
    for layer in range(LAYERS):
        image = clip(state, f"{vision}.transformer.resblocks.{layer}", image)
        words = bert(state, f"{text}.encoder.layer.{layer}", words, 1e-5)
    image = linear(
        state,
        "cross_modal_image_transform",
        norm(state, f"{vision}.ln_post", image, 1e-5),
    )
    words = linear(state, "cross_modal_text_transform", words)
    kinds = state["token_type_embeddings.weight"]
    words, image = words + kinds[0], image + kinds[1]
    for layer in range(LAYERS):
        words, image = (
            bert(state, f"cross_modal_text_layers.{layer}", words, 1e-12, image),
            bert(state, f"cross_modal_image_layers.{layer}", image, 1e-12, words),
        )
    pooled = [
        torch.tanh(linear(state, f"cross_modal_{of}_pooler.dense", values[0]))
        for of, values in (("text", words), ("image", image))
    ]
    return torch.cat(pooled)


PIXELS = transforms.Compose([
    transforms.Resize(SIDE, transforms.InterpolationMode.BICUBIC), transforms.CenterCrop(SIDE),
    transforms.ToTensor(), transforms.Normalize(MEAN, STD),
])  # fmt: skip


def features(state, tokenizer):
    """All pairs of images and texts."""
    pixels = [PIXELS(Image.fromarray(image)) for image in images()]
    cut = {"truncation": True, "max_length": 50}
    tokens = [torch.tensor(tokenizer(text, **cut).input_ids) for text in TEXTS]
    return torch.stack([torch.stack([reference(state, image, text) for text in tokens])
                        for image in pixels])  # fmt: skip


def test_logits_are_those_of_the_layers(name, state, tokenizer):
    model = load_model(name, device="cpu", allow_pickle=True)
    logits = linear(state, "itm_score.fc", features(state, tokenizer))
    expected = (logits[..., 1] - logits[..., 0]).numpy()
    got = model.score(images(), TEXTS)
    # Images are prepared within a grey level.
    np.testing.assert_allclose(got, expected, atol=0.02 * np.ptp(expected))
    assert np.corrcoef(got.ravel(), expected.ravel())[0, 1] > 0.999
    assert (model.info.family, model.info.scale) == ("meter-matching", 1.0)
    np.testing.assert_allclose(model.score(images()[:1], TEXTS[1:2]), got[:1, 1:2], atol=2e-5)
    mapped = activation_maps(model, images()[3:4], TEXTS[0])
    assert mapped.layer == "vit_model.visual.ln_post"
    assert mapped.maps.max() > 0.0


def test_a_checkpoint_of_retrieval_has_one_logit(state, tokenizer, tmp_path):
    ranks = {"rank_output.weight": state["itm_score.fc.weight"][1:], "rank_output.bias":
             state["itm_score.fc.bias"][1:]}  # fmt: skip
    model = load_model(written(tmp_path, state | ranks, tokenizer), device="cpu", allow_pickle=True)
    expected = linear(state, "itm_score.fc", features(state, tokenizer))[..., 1].numpy()
    np.testing.assert_allclose(model.score(images(), TEXTS), expected, atol=0.02 * np.ptp(expected))


def test_a_file_is_known_before_it_is_loaded(name):
    adapter, target = find_adapter(name)
    assert adapter.preview(target).offer == "scorer"
    facts = adapter.identify(target, Options(name, device="cpu", allow_pickle=True))
    assert {"meter.ckpt", "tokenizer.json"} <= facts["files"].keys()
    with pytest.raises(ModelError, match="has its weights only as pickles"):
        load_model(name, device="cpu")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda state: [state.pop(f"itm_score.fc.{part}") for part in ("weight", "bias")],
         "has no head for matching"),
        (lambda state: state.pop("vit_model.visual.conv1.weight"), "other encoders than CLIP"),
        (lambda state: state.update({"text_transformer.embeddings.token_type_embeddings.weight":
                                   torch.ones(2, WIDTH)}), "other encoders than CLIP"),
        (lambda state: state.pop("cross_modal_image_pooler.dense.bias"), "Missing key"),
    ],
)  # fmt: skip
def test_other_checkpoints_are_refused(change, message, state, tokenizer, tmp_path):
    other = OrderedDict(state)
    change(other)
    with pytest.raises(ModelError, match=message):
        load_model(written(tmp_path, other, tokenizer), device="cpu", allow_pickle=True)


def test_the_tokenizer_must_lie_beside_it(state, tokenizer, tmp_path):
    name = written(tmp_path, state, tokenizer)
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(ModelError, match="has no tokenizer. To do: add roberta-base's"):
        load_model(name, device="cpu", allow_pickle=True)


def test_the_reference_agrees_with_transformers_on_roberta(state, tokenizer):
    """The independent computation is itself state against a library."""
    config = transformers.RobertaConfig(
        vocab_size=len(tokenizer), hidden_size=WIDTH, num_attention_heads=HEADS,
        num_hidden_layers=LAYERS, intermediate_size=4 * WIDTH, max_position_embeddings=64,
        layer_norm_eps=1e-5, type_vocab_size=1,
    )  # fmt: skip
    module = transformers.RobertaModel(config).eval()
    text_state = {key.removeprefix("text_transformer."): value for key, value in state.items()
           if key.startswith("text_transformer.") and "position_ids" not in key}  # fmt: skip
    module.load_state_dict(text_state)
    tokens = torch.tensor([tokenizer(TEXTS[0]).input_ids])
    with torch.inference_mode():
        expected = module(tokens).last_hidden_state[0]
    words = module.embeddings(tokens)[0].detach()
    for layer in range(LAYERS):
        words = bert(state, f"text_transformer.encoder.layer.{layer}", words, 1e-5)
    np.testing.assert_allclose(words.numpy(), expected.numpy(), atol=1e-4)

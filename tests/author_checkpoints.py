"""Weights of tiny models of SLIP, LaCLIP and ALIP, named as in their authors' code."""

from collections import OrderedDict

import torch

WIDTH, HEADS, LAYERS, PATCH, SIDE, DIMENSION, WORDS = 128, 2, 2, 8, 32, 24, 49408


def _norm(name):
    return {f"{name}.weight": (WIDTH,), f"{name}.bias": (WIDTH,)}


def _linear(name, wide, out):
    return {f"{name}.weight": (out, wide), f"{name}.bias": (out,)}


def _clip_block(name):
    return {
        f"{name}.attn.in_proj_weight": (3 * WIDTH, WIDTH),
        f"{name}.attn.in_proj_bias": (3 * WIDTH,),
        **_linear(f"{name}.attn.out_proj", WIDTH, WIDTH),
        **_linear(f"{name}.mlp.c_fc", WIDTH, 4 * WIDTH),
        **_linear(f"{name}.mlp.c_proj", 4 * WIDTH, WIDTH),
        **_norm(f"{name}.ln_1"),
        **_norm(f"{name}.ln_2"),
    }


def _timm_block(name, qk_norm):
    norms = {f"{name}.attn.{letter}_norm.{part}": (WIDTH // HEADS,) for letter in "qk"
             for part in ("weight", "bias")}  # fmt: skip
    return {
        **_norm(f"{name}.norm1"),
        **_norm(f"{name}.norm2"),
        **_linear(f"{name}.attn.qkv", WIDTH, 3 * WIDTH),
        **_linear(f"{name}.attn.proj", WIDTH, WIDTH),
        **_linear(f"{name}.mlp.fc1", WIDTH, 4 * WIDTH),
        **_linear(f"{name}.mlp.fc2", 4 * WIDTH, WIDTH),
        **(norms if qk_norm else {}),
    }


def _blocks(name, block):
    return {key: size for layer in range(LAYERS) for key, size in block(f"{name}.{layer}").items()}


def shapes(kind):
    """Names and shapes as the authors' code writes them."""
    places = (SIDE // PATCH) ** 2 + 1
    text = {
        "positional_embedding": (77, WIDTH),
        "text_projection": (WIDTH, DIMENSION),
        "logit_scale": (),
        **_blocks("transformer.resblocks", _clip_block),
        "token_embedding.weight": (WORDS, WIDTH),
        **_norm("ln_final"),
    }
    if kind in ("alip", "laclip of LAION"):
        return text | {
            "visual.class_embedding": (WIDTH,),
            "visual.positional_embedding": (places, WIDTH),
            "visual.proj": (WIDTH, DIMENSION),
            "visual.conv1.weight": (WIDTH, 3, PATCH, PATCH),
            **_norm("visual.ln_pre"),
            **_blocks("visual.transformer.resblocks", _clip_block),
            **_norm("visual.ln_post"),
        }
    tensor_shapes = text | {
        "image_projection": (WIDTH, DIMENSION),
        "visual.cls_token": (1, 1, WIDTH),
        "visual.pos_embed": (1, places, WIDTH),
        "visual.patch_embed.proj.weight": (WIDTH, 3, PATCH, PATCH),
        "visual.patch_embed.proj.bias": (WIDTH,),
        **_blocks("visual.blocks", lambda name: _timm_block(name, kind == "laclip")),
        **_norm("visual.norm"),
    }
    if kind == "slip":
        tensor_shapes |= _linear("image_mlp.layer1", WIDTH, 64) | {"image_mlp.bn1.weight": (64,)}
    return tensor_shapes


def weights(kind):
    generator = torch.Generator().manual_seed(4)
    tensors = OrderedDict()
    for name, size in shapes(kind).items():
        level = 0.02 if name == "token_embedding.weight" else 0.15
        tensors[name] = level * torch.randn(size, generator=generator)
        if name.endswith("weight") and len(size) == 1:
            tensors[name] += 1.0
    tensors["logit_scale"] = torch.tensor(3.0)
    return tensors

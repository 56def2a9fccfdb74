"""The small CLIP, ViT and convolutional networks of the scenes, before training.

torch and transformers are imported inside, so the package needs neither.
"""

import copy
from pathlib import Path
from typing import Any

from equipoise.planted.scenes.captions import all_captions
from equipoise.planted.scenes.render import IMAGE_SIZE, SUBJECTS

POSITIONS = 16
"""Tokens of a caption, with its beginning and end."""

_PATCH = 8
_TOWER: dict[str, Any] = {
    "hidden_size": 128,
    "intermediate_size": 512,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "hidden_act": "gelu",
}
_SPECIAL = ("<pad>", "<start>", "<unknown>", "<end>")


def build_tokenizer() -> Any:
    """Build a tokenizer of one token a word, for the words of `captions`.

    Returns
    -------
    transformers.PreTrainedTokenizerFast
        A word that no caption has becomes ``<unknown>``.
    """
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    words = sorted({word for text in all_captions() for word in text.split()})
    vocabulary = {word: place for place, word in enumerate((*_SPECIAL, *words))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=_SPECIAL[2]))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    ends = [(token, vocabulary[token]) for token in (_SPECIAL[1], _SPECIAL[3])]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{_SPECIAL[1]} $A {_SPECIAL[3]}", special_tokens=ends
    )
    names = dict(zip(("pad_token", "bos_token", "unk_token", "eos_token"), _SPECIAL, strict=True))
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=POSITIONS, padding_side="right", **names
    )


def build_clip(words: int) -> Any:
    """Build an untrained CLIP of 1.1 million parameters.

    Parameters
    ----------
    words : int
        Size of the tokenizer's vocabulary.

    Returns
    -------
    transformers.CLIPModel
        Attention is eager: the backward pass of the fused kernel is very slow in bfloat16 on CPUs.
    """
    from transformers import CLIPConfig, CLIPModel

    text = {
        "vocab_size": words,
        "max_position_embeddings": POSITIONS,
        "num_hidden_layers": 2,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 3,
    }
    config = CLIPConfig(
        text_config=_TOWER | text,
        vision_config=_TOWER | {"image_size": IMAGE_SIZE, "patch_size": _PATCH},
        projection_dim=64,
        logit_scale_init_value=2.6391,  # the natural logarithm of 14
        attn_implementation="eager",
    )
    return CLIPModel(config)


def build_image_processor(kind: str) -> Any:
    """Build the preprocessing that travels with the weights: pixels from 0 to 255 become -1 to 1.

    Parameters
    ----------
    kind : {"CLIP", "ViT"}
        Whose class of transformers to use.
    """
    import transformers

    size = {"height": IMAGE_SIZE, "width": IMAGE_SIZE}
    crop = {"crop_size": size, "size": {"shortest_edge": IMAGE_SIZE}}
    return getattr(transformers, f"{kind}ImageProcessor")(
        image_mean=[0.5] * 3, image_std=[0.5] * 3, **(crop if kind == "CLIP" else {"size": size})
    )


def build_vit() -> Any:
    """Build an untrained ViT of a quarter of a million parameters that names the subject.

    Returns
    -------
    transformers.ViTForImageClassification
        Its labels are `render.SUBJECTS`.
    """
    from transformers import ViTConfig, ViTForImageClassification

    labels = dict(enumerate(SUBJECTS))
    config = ViTConfig(
        **(_TOWER | {"hidden_size": 96, "intermediate_size": 192}),
        image_size=IMAGE_SIZE,
        patch_size=_PATCH,
        id2label=labels,
        label2id={label: place for place, label in labels.items()},
        attn_implementation="eager",
    )
    return ViTForImageClassification(config)


def build_cnn() -> Any:
    """Build an untrained convolutional network of 77,000 parameters that names the subject.

    Returns
    -------
    torch.nn.Module
        From float images (n, 3, height, width) to logits (n, subjects).
    """
    from torch import nn

    layers: list[Any] = []
    for inputs, outputs in ((3, 32), (32, 64), (64, 96)):
        layers += [
            nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.MaxPool2d(2),
        ]
    return nn.Sequential(
        *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(96, len(SUBJECTS))
    )


def save_half(model: Any, folder: Path) -> None:
    """Write a model of transformers in float16, as safetensors with its configuration."""
    copy.deepcopy(model).half().save_pretrained(folder)

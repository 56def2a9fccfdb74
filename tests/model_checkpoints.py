"""Tiny random checkpoints of the real classes, written as `save_pretrained` writes them."""

import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

SEED = 20


def images() -> list[np.ndarray]:
    """Images of odd sizes: wide, high, tiny, square, one of 3 rows, grey ones as arrays."""
    generator = np.random.default_rng(7)
    sizes = [(37, 61), (90, 20), (5, 7), (32, 32), (3, 40), (64, 48)]
    made = [generator.integers(0, 256, (*size, 3), dtype=np.uint8) for size in sizes]
    grey = generator.integers(0, 256, (41, 23), dtype=np.uint8)
    return [*made, np.repeat(grey[:, :, None], 3, axis=2)]


TEXTS = [
    "a photo of a doctor",
    "nurse",
    "the man with the red circle in a photo of a square",
    "woman and man",
    "a",
    "person person person",
    "blue",
]


def _seeded(model: type, config: Any) -> Any:
    import torch

    torch.manual_seed(SEED)
    return model(config).eval()


def _save(folder: Path, *parts: Any) -> Path:
    for part in parts:
        part.save_pretrained(folder)
    return folder


def byte_level_vocabulary(*special: str) -> dict[str, int]:
    """Letters, alone and at the end of a word: enough for a CLIP to spell every text."""
    letters = [*string.ascii_lowercase, *string.digits, ".", ",", "?", ":"]
    tokens = [*special, *letters, *(f"{letter}</w>" for letter in letters)]
    return {token: index for index, token in enumerate(tokens)}


def _clip_tokenizer(length: int = 64) -> Any:
    from transformers import CLIPTokenizer

    vocabulary = byte_level_vocabulary("<|startoftext|>", "<|endoftext|>")
    return CLIPTokenizer(vocab=vocabulary, merges=[], model_max_length=length)


def clip(folder: Path) -> Path:
    from transformers import CLIPConfig, CLIPImageProcessorPil, CLIPModel

    tokenizer = _clip_tokenizer()
    tower = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
    tower |= {"num_attention_heads": 2}
    config = CLIPConfig(
        text_config=tower
        | {
            "vocab_size": len(tokenizer),
            "max_position_embeddings": 64,
            "bos_token_id": 0,
            "eos_token_id": 1,
            "pad_token_id": 1,
        },
        vision_config=tower | {"image_size": 32, "patch_size": 8},
        projection_dim=24,
    )
    size = {"shortest_edge": 32}
    processor = CLIPImageProcessorPil(size=size, crop_size={"height": 32, "width": 32})
    return _save(folder, _seeded(CLIPModel, config), processor, tokenizer)


FAMILIES: dict[str, Callable[[Path], Path]] = {"clip": clip}

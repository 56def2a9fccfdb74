"""The small CLIP, ViT, convolutional and diffusion networks of the scenes, before training."""

import copy
from pathlib import Path
from typing import Any

from equipoise.planted.scenes.embed import WEIGHTS as SCENES_WEIGHTS
from equipoise.planted.scenes.render import IMAGE_SIZE, SUBJECTS
from tools.planted.worlds import all_captions

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


LATENT_SIZE = IMAGE_SIZE // 4
"""Height and width of a latent image; it has `LATENT_CHANNELS` channels."""

LATENT_CHANNELS = 4
TRAINING_STEPS = 1000
"""Noise levels of the schedule."""

TEXT_MODEL = "clip-null"
"""Whose text tower reads prompts: it was trained where nothing was planted."""

_END = "</w>"


def build_vae() -> Any:
    """Build an untrained autoencoder: images in [-1, 1] to latents a quarter their size.

    Returns
    -------
    diffusers.AutoencoderKL
    """
    from diffusers import AutoencoderKL

    return AutoencoderKL(
        down_block_types=("DownEncoderBlock2D",) * 3,
        up_block_types=("UpDecoderBlock2D",) * 3,
        block_out_channels=(16, 32, 64),
        layers_per_block=1,
        latent_channels=LATENT_CHANNELS,
        norm_num_groups=8,
        sample_size=IMAGE_SIZE,
        scaling_factor=1.0,
        mid_block_add_attention=False,
    )


def build_unet(text_width: int) -> Any:
    """Build an untrained denoiser with cross attention at either of its resolutions.

    Parameters
    ----------
    text_width : int
        Of the text states that it attends to.

    Returns
    -------
    diffusers.UNet2DConditionModel
        Its attention is computed step by step: the backward pass of the fused kernel is very slow
        in bfloat16 on CPUs.
    """
    from diffusers import UNet2DConditionModel
    from diffusers.models.attention_processor import AttnProcessor

    unet = UNet2DConditionModel(
        sample_size=LATENT_SIZE,
        in_channels=LATENT_CHANNELS,
        out_channels=LATENT_CHANNELS,
        down_block_types=("CrossAttnDownBlock2D",) * 2,
        mid_block_type="UNetMidBlock2DCrossAttn",
        up_block_types=("CrossAttnUpBlock2D",) * 2,
        block_out_channels=(64, 128),
        layers_per_block=1,
        norm_num_groups=16,
        cross_attention_dim=text_width,
        attention_head_dim=4,
    )
    unet.set_attn_processor(AttnProcessor())
    return unet


def build_scheduler() -> Any:
    """Build the noise schedule, of Stable Diffusion 2: scaled linear, predicting the velocity.

    Returns
    -------
    diffusers.DDIMScheduler
    """
    from diffusers import DDIMScheduler

    return DDIMScheduler(
        num_train_timesteps=TRAINING_STEPS,
        beta_start=0.00085,
        beta_end=0.012,
        beta_schedule="scaled_linear",
        prediction_type="v_prediction",
        timestep_spacing="trailing",
        clip_sample=False,
        set_alpha_to_one=True,
        steps_offset=1,
    )


def load_text(folder: Path = SCENES_WEIGHTS / TEXT_MODEL) -> tuple[Any, Any]:
    """Load the text tower of a shipped CLIP, in float32, and the tokenizer that goes with it.

    Parameters
    ----------
    folder : Path
        Of the CLIP.

    Returns
    -------
    transformers.CLIPTextModel, transformers.CLIPTokenizer
        A word of the captions is one token, the same as in the CLIP; pieces of other words, which
        the CLIP does not have, mean what is unknown to it.
    """
    import torch
    from transformers import AutoTokenizer, CLIPModel, CLIPTextModel

    clip = CLIPModel.from_pretrained(folder, dtype=torch.float32)
    words = AutoTokenizer.from_pretrained(folder)
    tokenizer = build_clip_tokenizer(words)
    text = CLIPTextModel(clip.config.text_config)
    text.load_state_dict(clip.text_model.state_dict())
    n_words = len(words)
    embedding = text.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    with torch.no_grad():
        embedding.weight[n_words:] = embedding.weight[words.unk_token_id]
    return text.eval(), tokenizer


def build_clip_tokenizer(words: Any) -> Any:
    """Build a tokenizer of CLIP's class from one of whole words.

    Parameters
    ----------
    words : transformers.PreTrainedTokenizerFast
        Its tokens keep their numbers.

    Returns
    -------
    transformers.CLIPTokenizer
        Byte pairs are merged until every word is one token.
    """
    import json

    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import CLIPTokenizer

    numbers = words.get_vocab()
    special = set(words.all_special_tokens)
    plain_words = sorted(set(numbers) - special)
    pairs = Tokenizer(models.BPE(end_of_word_suffix=_END))
    pairs.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    pairs.train_from_iterator(
        plain_words,
        trainers.BpeTrainer(
            vocab_size=10_000, min_frequency=0, end_of_word_suffix=_END, show_progress=False
        ),
    )
    merged = json.loads(pairs.to_str())["model"]
    vocabulary = {
        word if word in special else word + _END: place for word, place in numbers.items()
    }
    for piece in sorted(set(merged["vocab"]) - set(vocabulary)):
        vocabulary[piece] = len(vocabulary)
    return CLIPTokenizer(
        vocab=vocabulary,
        merges=[tuple(pair) for pair in merged["merges"]],
        unk_token=words.unk_token,
        bos_token=words.bos_token,
        eos_token=words.eos_token,
        pad_token=words.pad_token,
        model_max_length=words.model_max_length,
    )

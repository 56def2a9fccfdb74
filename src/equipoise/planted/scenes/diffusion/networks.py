"""The parts of the small Stable Diffusion of the scenes, before training.

torch, transformers and diffusers are imported inside, so the package needs none of them.
"""

from pathlib import Path
from typing import Any

from equipoise.planted.scenes.embed import WEIGHTS as SCENES_WEIGHTS
from equipoise.planted.scenes.render import IMAGE_SIZE

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
    tokenizer = build_tokenizer(words)
    text = CLIPTextModel(clip.config.text_config)
    text.load_state_dict(clip.text_model.state_dict())
    known = len(words)
    embedding = text.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    with torch.no_grad():
        embedding.weight[known:] = embedding.weight[words.unk_token_id]
    return text.eval(), tokenizer


def build_tokenizer(words: Any) -> Any:
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
    whole = sorted(set(numbers) - special)
    pairs = Tokenizer(models.BPE(end_of_word_suffix=_END))
    pairs.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    pairs.train_from_iterator(
        whole,
        trainers.BpeTrainer(
            vocab_size=10_000, min_frequency=0, end_of_word_suffix=_END, show_progress=False
        ),
    )
    merged = json.loads(pairs.to_str())["model"]
    vocabulary = {one if one in special else one + _END: place for one, place in numbers.items()}
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

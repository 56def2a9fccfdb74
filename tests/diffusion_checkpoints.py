"""Tiny random pipelines of diffusers, written as `save_pretrained` writes them."""

from model_checkpoints import clip_tokenizer

SEED = 20


def _text(tokenizer, kind="CLIPTextModel"):
    import torch
    import transformers

    torch.manual_seed(SEED)
    config = transformers.CLIPTextConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=tokenizer.model_max_length,
        projection_dim=16,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=1,
    )
    return getattr(transformers, kind)(config).eval()


def _vae():
    import torch
    from diffusers import AutoencoderKL

    torch.manual_seed(SEED)
    return AutoencoderKL(
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        block_out_channels=(8, 16),
        layers_per_block=1,
        latent_channels=4,
        norm_num_groups=4,
        sample_size=16,
        shift_factor=0.0,
    ).eval()


def _unet(down, up, mid, width=16):
    import torch
    from diffusers import UNet2DConditionModel

    torch.manual_seed(SEED)
    return UNet2DConditionModel(
        sample_size=8,
        down_block_types=(down,) * 2,
        mid_block_type=mid,
        up_block_types=(up,) * 2,
        block_out_channels=(8, 16),
        layers_per_block=1,
        norm_num_groups=4,
        cross_attention_dim=width,
        attention_head_dim=4,
    ).eval()


def _stable_diffusion(folder, unet, *, checker=None, length=24, encoder=None):
    from diffusers import PNDMScheduler, StableDiffusionPipeline
    from transformers import CLIPImageProcessorPil

    tokenizer = clip_tokenizer(length)
    size = {"height": 32, "width": 32}
    extractor = CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size=size)
    StableDiffusionPipeline(
        vae=_vae(),
        text_encoder=encoder or _text(tokenizer),
        tokenizer=tokenizer,
        unet=unet,
        scheduler=PNDMScheduler(
            beta_start=0.00085,
            beta_end=0.012,
            beta_schedule="scaled_linear",
            skip_prk_steps=True,
            steps_offset=1,
        ),
        safety_checker=checker,
        feature_extractor=None if checker is None else extractor,
        requires_safety_checker=checker is not None,
    ).save_pretrained(folder, safe_serialization=True)
    return folder


def stable_diffusion(folder, *, checker=None, length=24, clip=None):
    """As Stable Diffusion 1.x: its parts, its scheduler; it reads texts of so many tokens.

    Its text encoder is that of the tiny CLIP in a folder, where one is named.
    """
    blocks = "CrossAttnDownBlock2D", "CrossAttnUpBlock2D", "UNetMidBlock2DCrossAttn"
    if clip is None:
        return _stable_diffusion(folder, _unet(*blocks), checker=checker, length=length)
    from transformers import CLIPModel, CLIPTextModel

    model = CLIPModel.from_pretrained(clip)
    encoder = CLIPTextModel(model.config.text_config)
    encoder.load_state_dict(model.text_model.state_dict())
    unet = _unet(*blocks, width=encoder.config.hidden_size)
    return _stable_diffusion(folder, unet, length=length, encoder=encoder)


def without_cross_attention(folder):
    """A pipeline whose denoiser never looks at the text."""
    return _stable_diffusion(folder, _unet("DownBlock2D", "UpBlock2D", "UNetMidBlock2D"))


def safety_checker(*, strict):
    """One that refuses everything, or nothing."""
    import torch
    from diffusers.pipelines.stable_diffusion.safety_checker import StableDiffusionSafetyChecker
    from transformers import CLIPConfig

    torch.manual_seed(SEED)
    tower = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1}
    tower |= {"num_attention_heads": 2}
    config = CLIPConfig(
        text_config=tower | {"vocab_size": 10},
        vision_config=tower | {"image_size": 32, "patch_size": 8},
        projection_dim=8,
    )
    checker = StableDiffusionSafetyChecker(config).eval()
    with torch.no_grad():
        checker.concept_embeds_weights.fill_(-2.0 if strict else 2.0)
    return checker


def stable_diffusion_3(folder):
    """A transformer that attends to texts and image together, as Stable Diffusion 3 does."""
    import torch
    from diffusers import (
        FlowMatchEulerDiscreteScheduler,
        SD3Transformer2DModel,
        StableDiffusion3Pipeline,
    )

    tokenizer = clip_tokenizer(24)
    torch.manual_seed(SEED)
    transformer = SD3Transformer2DModel(
        sample_size=8,
        patch_size=1,
        in_channels=4,
        num_layers=1,
        attention_head_dim=8,
        num_attention_heads=2,
        joint_attention_dim=32,
        caption_projection_dim=16,
        pooled_projection_dim=32,
        out_channels=4,
    ).eval()
    StableDiffusion3Pipeline(
        transformer=transformer,
        scheduler=FlowMatchEulerDiscreteScheduler(),
        vae=_vae(),
        text_encoder=_text(tokenizer, "CLIPTextModelWithProjection"),
        tokenizer=tokenizer,
        text_encoder_2=_text(tokenizer, "CLIPTextModelWithProjection"),
        tokenizer_2=tokenizer,
        text_encoder_3=None,
        tokenizer_3=None,
        image_encoder=None,
        feature_extractor=None,
    ).save_pretrained(folder, safe_serialization=True)
    return folder


def stable_diffusion_xl(folder):
    """A UNet that attends to the words of two text encoders, and to sizes, as SDXL does."""
    import torch
    from diffusers import DDIMScheduler, StableDiffusionXLPipeline, UNet2DConditionModel

    tokenizer = clip_tokenizer(24)
    torch.manual_seed(SEED)
    unet = UNet2DConditionModel(
        sample_size=8,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        block_out_channels=(8, 16),
        layers_per_block=1,
        norm_num_groups=4,
        cross_attention_dim=32,
        attention_head_dim=4,
        addition_embed_type="text_time",
        addition_time_embed_dim=8,
        projection_class_embeddings_input_dim=6 * 8 + 16,
    ).eval()
    StableDiffusionXLPipeline(
        vae=_vae(),
        text_encoder=_text(tokenizer),
        text_encoder_2=_text(tokenizer, "CLIPTextModelWithProjection"),
        tokenizer=tokenizer,
        tokenizer_2=tokenizer,
        unet=unet,
        scheduler=DDIMScheduler(beta_schedule="scaled_linear"),
    ).save_pretrained(folder, safe_serialization=True)
    return folder


def flux(folder):
    """A transformer that attends to texts and image together, whose text encoder is a T5."""
    import torch
    from diffusers import FlowMatchEulerDiscreteScheduler, FluxPipeline, FluxTransformer2DModel
    from transformers import T5Config, T5EncoderModel

    tokenizer = clip_tokenizer(24)
    torch.manual_seed(SEED)
    transformer = FluxTransformer2DModel(
        patch_size=1,
        in_channels=16,
        num_layers=1,
        num_single_layers=1,
        attention_head_dim=16,
        num_attention_heads=2,
        joint_attention_dim=32,
        pooled_projection_dim=16,
        axes_dims_rope=(4, 4, 8),
        guidance_embeds=True,
    ).eval()
    with torch.no_grad():
        transformer.context_embedder.weight.mul_(60)  # so that images depend on words
        transformer.proj_out.weight.mul_(20)
    encoder = T5EncoderModel(
        T5Config(vocab_size=len(tokenizer), d_model=32, d_kv=8, d_ff=32, num_layers=1, num_heads=2)
    )
    FluxPipeline(
        transformer=transformer,
        scheduler=FlowMatchEulerDiscreteScheduler(use_dynamic_shifting=True),
        vae=_vae(),
        text_encoder=_text(tokenizer),
        tokenizer=tokenizer,
        text_encoder_2=encoder.eval(),
        tokenizer_2=tokenizer,
    ).save_pretrained(folder, safe_serialization=True)
    return folder

"""What a pipeline of diffusers has made at chosen passes of its denoiser."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from equipoise.core import Floats32

if TYPE_CHECKING:
    from torch import Tensor

Component: TypeAlias = Any
"""A pipeline, a scheduler or what its step returns: classes of diffusers without types."""

FLOW = "FlowMatchEulerDiscreteScheduler"
PNDM = "PNDMScheduler"


@dataclass
class RecordedLatents:
    """Latents at chosen passes of a denoiser, and at its last.

    Attributes
    ----------
    at : sequence of int
        Passes, counted from 1.
    latents : mapping of int to tensor
        By pass: the estimate of the clean latents, or the latents with their noise.
    estimated : bool
        Whether all of them are estimates of the clean latents.
    last : tensor or None
        Latents after the last pass.
    passes : int
        Passes so far.
    """

    at: Sequence[int]
    latents: "dict[int, Tensor]" = field(default_factory=dict)
    estimated: bool = True
    last: "Tensor | None" = None
    passes: int = 0

    def add(self, latents: "Tensor", clean: "Tensor | None") -> None:
        """Record a pass: its latents, and the estimate of the clean ones where there is one."""
        self.passes += 1
        self.last = latents
        if self.passes in self.at:
            self.estimated &= clean is not None
            self.latents[self.passes] = latents if clean is None else clean


def clean_latents(
    scheduler: Component,
    output: Component,
    model_output: "Tensor",
    timestep: "Tensor",
    sample: "Tensor",
) -> "Tensor | None":
    """Return a scheduler's estimate of the clean latents in a pass; None where it has none.

    Parameters
    ----------
    scheduler : scheduler of diffusers
        After the pass.
    output : object
        What its `step` returned.
    model_output, timestep, sample
        What `step` took.
    """
    if getattr(output, "pred_original_sample", None) is not None:
        estimate: Tensor = output.pred_original_sample
        return estimate
    name, config = type(scheduler).__name__, scheduler.config
    if name == FLOW:
        # The path from noise to image is straight: its slope is the model's output.
        sigma: Tensor = scheduler.sigmas[scheduler.step_index - 1]
        return (sample.float() - sigma * model_output.float()).to(sample.dtype)
    if name == PNDM and config.skip_prk_steps:
        kept: Tensor = scheduler.alphas_cumprod[int(timestep)].to(sample)
        signal, noise = kept**0.5, (1.0 - kept) ** 0.5
        if config.prediction_type == "v_prediction":
            return signal * sample - noise * model_output
        return (sample - noise * model_output) / signal
    if str(config.get("algorithm_type", "")).endswith("++") or config.get("predict_x0", False):
        # Solvers that work on estimates of the clean latents keep them.
        kept_estimate: Tensor = scheduler.model_outputs[-1]
        return kept_estimate
    return None


@contextmanager
def record_latents(scheduler: Component, at: Sequence[int]) -> Iterator[RecordedLatents]:
    """Record the latents of a pipeline that runs in this context."""
    step, recorded = scheduler.step, RecordedLatents(at)

    @wraps(step)
    def recorded_step(model_output: Any, timestep: Any, sample: Any, *args: Any, **kw: Any) -> Any:
        with_fields = kw.pop("return_dict", True)
        output = step(model_output, timestep, sample, *args, return_dict=True, **kw)
        clean = clean_latents(scheduler, output, model_output, timestep, sample)
        recorded.add(output.prev_sample, clean)
        return output if with_fields else (output.prev_sample,)

    scheduler.step = recorded_step
    try:
        yield recorded
    finally:
        del scheduler.step


def unpacked(
    pipeline: Component, latents: "Tensor", height: int | None, width: int | None
) -> "Tensor":
    """Return latents as (n, channels, height, width), which Flux packs into tokens.

    Parameters
    ----------
    pipeline : DiffusionPipeline
    latents : tensor
    height, width : int or None
        Of the images, in pixels; the pipeline's own where None.
    """
    if latents.ndim == 4:  # tokens have three axes
        return latents
    scale = pipeline.vae_scale_factor
    default_size = pipeline.default_sample_size * scale
    size = height or default_size, width or default_size
    unpacked_latents: Tensor = pipeline._unpack_latents(latents, *size, scale)
    return unpacked_latents


def decoded(pipeline: Component, latents: "Tensor") -> Floats32:
    """Return the images that a pipeline decodes of latents, (n, height, width, 3), in [0, 1]."""
    vae, config = pipeline.vae, pipeline.vae.config
    mean, spread = config.get("latents_mean"), config.get("latents_std")
    shift = config.get("shift_factor") or 0.0
    if mean is not None and spread is not None:
        mean, spread = (latents.new_tensor(values).view(1, -1, 1, 1) for values in (mean, spread))
        latents = latents * spread / config.scaling_factor + mean
    else:
        latents = latents / config.scaling_factor + shift
    kind = vae.dtype
    # As the pipeline of Stable Diffusion XL does, whose autoencoder overflows in half precision.
    upcast = str(kind) == "torch.float16" and config.get("force_upcast") and hasattr(
        pipeline, "upcast_vae"
    )  # fmt: skip
    if upcast:
        vae.float()
    try:
        images = vae.decode(latents.to(vae.dtype), return_dict=False)[0]
    finally:
        if upcast:
            vae.to(kind)
    values = pipeline.image_processor.postprocess(images.detach(), output_type="np")
    return np.asarray(values, dtype=np.float32)

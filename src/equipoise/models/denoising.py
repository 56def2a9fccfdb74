"""What a pipeline of diffusers has made at chosen passes of its denoiser."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

import numpy as np

from equipoise.core import Floats32

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
    latents: dict[int, Any] = field(default_factory=dict)
    estimated: bool = True
    last: Any = None
    passes: int = 0

    def add(self, scheduler: Any, output: Any, inputs: tuple[Any, Any, Any]) -> None:
        """Record a pass: the scheduler's output, and its (model output, timestep, sample)."""
        self.passes += 1
        self.last = output.prev_sample
        if self.passes in self.at:
            clean = clean_latents(scheduler, output, *inputs)
            self.estimated &= clean is not None
            self.latents[self.passes] = self.last if clean is None else clean


def clean_latents(
    scheduler: Any, output: Any, model_output: Any, timestep: Any, sample: Any
) -> Any:
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
        return output.pred_original_sample
    name, config = type(scheduler).__name__, scheduler.config
    if name == FLOW:
        # The path from noise to image is straight: its slope is the model's output.
        sigma = scheduler.sigmas[scheduler.step_index - 1]
        return (sample.float() - sigma * model_output.float()).to(sample.dtype)
    if name == PNDM and config.skip_prk_steps:
        kept = scheduler.alphas_cumprod[int(timestep)].to(sample)
        signal, noise = kept**0.5, (1.0 - kept) ** 0.5
        if config.prediction_type == "v_prediction":
            return signal * sample - noise * model_output
        return (sample - noise * model_output) / signal
    if str(config.get("algorithm_type", "")).endswith("++") or config.get("predict_x0", False):
        # Solvers that work on estimates of the clean latents keep them.
        return scheduler.model_outputs[-1]
    return None


@contextmanager
def record_latents(scheduler: Any, at: Sequence[int]) -> Iterator[RecordedLatents]:
    """Record the latents of a pipeline that runs in this context."""
    step, recorded = scheduler.step, RecordedLatents(at)

    @wraps(step)
    def recorded_step(model_output: Any, timestep: Any, sample: Any, *args: Any, **kw: Any) -> Any:
        with_fields = kw.pop("return_dict", True)
        output = step(model_output, timestep, sample, *args, return_dict=True, **kw)
        recorded.add(scheduler, output, (model_output, timestep, sample))
        return output if with_fields else (output.prev_sample,)

    scheduler.step = recorded_step
    try:
        yield recorded
    finally:
        del scheduler.step


def unpacked(pipeline: Any, latents: Any, height: int | None, width: int | None) -> Any:
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
    return pipeline._unpack_latents(latents, height or default_size, width or default_size, scale)


def decoded(pipeline: Any, latents: Any) -> Floats32:
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

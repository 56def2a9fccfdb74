"""The prefix ``diffusers:``: text-to-image pipelines, from a folder or a hub."""

import inspect
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from equipoise.core.errors import EquipoiseError, ModelError
from equipoise.models.batching import Batches
from equipoise.models.diffusers_files import Files, find_pipeline
from equipoise.models.diffusers_texts import check_lengths
from equipoise.models.generators import AttentionControl, Sampling
from equipoise.models.images import Image
from equipoise.models.info import ModelInfo
from equipoise.models.options import Options
from equipoise.models.registry import adapter
from equipoise.models.runtimes import Placement, diffusers, place, quiet, transformers

# Pixels that are made at a time: on a CPU 32 images of 128 × 128, on a GPU 32 of 512 × 512.
_CPU_PIXELS, _CUDA_PIXELS = 1 << 19, 1 << 23
_MOST_AT_ONCE = 64
_UNKNOWN_SIZE = 1024
# The processors that compute attention of images and attention of images to texts apart.
_SEPARATE = frozenset({"AttnProcessor", "AttnProcessor2_0"})

Step = Callable[..., dict[str, Any]]


@dataclass(eq=False)
class DiffusersGenerator:
    """A text-to-image pipeline of diffusers.

    Attributes
    ----------
    info : ModelInfo
    pipeline : diffusers.DiffusionPipeline
        On its device.
    placement : Placement
    """

    info: ModelInfo
    pipeline: Any = field(repr=False)
    placement: Placement = field(repr=False)
    _batches: dict[int, Batches] = field(default_factory=dict, init=False, repr=False)

    def generate(
        self, prompts: Sequence[str], *, seeds: Sequence[int], sampling: Sampling
    ) -> list[Image | None]:
        """Make one image for each prompt; see `ImageGenerator.generate`.

        Noise is a function of the seed alone, drawn on the CPU whatever the device. Batches of
        other sizes round differently, which may move a pixel by a grey level.

        Raises
        ------
        ModelError
            When the pipeline fails, would cut a text, or gives numbers that are no image.
        """
        self.check_prompts(prompts, sampling)
        room = self.room(sampling)
        batches = self._batches.setdefault(room, self.placement.batches(room))

        def made(rows: Sequence[tuple[str, int]]) -> list[Image | None]:
            return self._made([row[0] for row in rows], [row[1] for row in rows], sampling)

        with self._translated():
            found = batches.map(made, [*zip(prompts, seeds, strict=True)])
        return [image for batch in found for image in batch]

    def check_control(self) -> None:
        """Refuse a pipeline whose attention cannot be shared; see `ControlledGenerator`."""
        unet = getattr(self.pipeline, "unet", None)
        processors = getattr(unet, "attn_processors", {})
        layers = [name for name in processors if name.endswith("attn2.processor")]
        kinds = {type(processors[name]).__name__ for name in layers}
        if layers and kinds <= _SEPARATE and hasattr(self.pipeline, "tokenizer"):
            return
        denoiser = unet if unet is not None else getattr(self.pipeline, "transformer", None)
        raise ModelError(
            f"{self.info.name} ({self.info.family}) has no cross-attention of its own that a set "
            f"can share: its denoiser is a {type(denoiser).__name__}. To do: use Stable Diffusion "
            "1.x or 2.x, or generate prompts without sets."
        )

    def check_prompts(self, prompts: Sequence[str], sampling: Sampling) -> None:
        """Refuse texts, and a negative prompt, that are longer than the pipeline reads.

        Raises
        ------
        ModelError
            For the first, with its tokens and the limit.
        """
        away = [] if sampling.negative_prompt is None else [sampling.negative_prompt]
        check_lengths(self.pipeline, [*prompts, *away], self.info.name)

    def tokens(self, prompts: Sequence[str]) -> list[tuple[int, ...]]:
        """Return the tokens of prompts, padded as the pipeline does; `check_prompts` goes first."""
        tokenizer = self.pipeline.tokenizer
        found = tokenizer(
            [*prompts],
            padding="max_length",
            max_length=tokenizer.model_max_length,
            truncation=True,
        )
        return [tuple(row) for row in found.input_ids]

    def room(self, sampling: Sampling) -> int:
        """Return how many images of a size are made together."""
        own = self._own_size()
        pixels = (sampling.height or own) * (sampling.width or own)
        most = _CPU_PIXELS if self.placement.device == "cpu" else _CUDA_PIXELS
        return max(min(most // pixels, _MOST_AT_ONCE), 1)

    def generate_with(
        self,
        prompts: Sequence[str],
        *,
        seeds: Sequence[int],
        sampling: Sampling,
        attention: AttentionControl,
    ) -> list[Image | None]:
        """Make images in one batch, with attention under control.

        Raises
        ------
        ModelError
            When the pipeline fails, cannot be controlled or would cut a text, or memory does not
            hold the batch.
        """
        self.check_control()
        self.check_prompts(prompts, sampling)
        unet, scheduler = self.pipeline.unet, self.pipeline.scheduler
        own = dict(unet.attn_processors)
        scheduler.set_timesteps(sampling.steps)
        attention.begin(len(scheduler.timesteps))

        def advance(*_: Any) -> dict[str, Any]:
            attention.advance()
            return {}

        with self._translated():
            try:
                unet.set_attn_processor({n: attention.processor(n, one) for n, one in own.items()})
                return self._made(prompts, seeds, sampling, advance)
            finally:
                unet.set_attn_processor(own)

    def _made(
        self,
        prompts: Sequence[str],
        seeds: Sequence[int],
        sampling: Sampling,
        after_step: Step | None = None,
    ) -> list[Image | None]:
        torch = self.placement.torch
        noise = [torch.Generator().manual_seed(seed) for seed in seeds]
        with quiet(diffusers()):
            found = self.pipeline(
                [*prompts],
                generator=noise,
                output_type="np",
                **self._settings(sampling, len(prompts), after_step),
            )
        values = np.asarray(found.images, dtype=np.float32)
        wrong = np.flatnonzero(~np.isfinite(values).all(axis=(1, 2, 3)))
        if len(wrong):
            raise ModelError(
                f"{self.info.name} gave NaN or infinity for {prompts[int(wrong[0])]!r}. "
                "To do: dtype: float32."
            )
        pixels = np.rint(values * 255.0).astype(np.uint8)
        refused = getattr(found, "nsfw_content_detected", None) or [False] * len(pixels)
        return [None if no else one for one, no in zip(pixels, refused, strict=True)]

    def _settings(self, sampling: Sampling, count: int, after_step: Step | None) -> dict[str, Any]:
        away = sampling.negative_prompt
        given: dict[str, Any] = {
            "num_inference_steps": sampling.steps,
            "guidance_scale": sampling.guidance,
            "negative_prompt": None if away is None else [away] * count,
            "height": sampling.height,
            "width": sampling.width,
            "callback_on_step_end": after_step,
        }
        given = {name: value for name, value in given.items() if value is not None}
        missing = sorted(given.keys() - inspect.signature(self.pipeline.__call__).parameters.keys())
        if missing:
            raise ModelError(
                f"{self.info.name} ({self.info.family}) knows no {', '.join(missing)}. "
                "To do: leave it out of the sampling."
            )
        return given

    def _own_size(self) -> int:
        denoiser = getattr(self.pipeline, "unet", None) or getattr(
            self.pipeline, "transformer", None
        )
        size = getattr(getattr(denoiser, "config", None), "sample_size", None)
        scale = getattr(self.pipeline, "vae_scale_factor", None)
        return size * scale if isinstance(size, int) and isinstance(scale, int) else _UNKNOWN_SIZE

    def _translated(self) -> "_Translated":
        return _Translated(self.info.name)


@dataclass(frozen=True)
class _Translated:
    """Says of what the library raises which model it was."""

    name: str

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, Exception) and not isinstance(error, EquipoiseError):
            first = str(error).partition("\n")[0]
            raise ModelError(f"{self.name} failed: {type(error).__name__}: {first}") from error


@adapter("diffusers", makes_images=True)
def load(asked: str, options: Options) -> DiffusersGenerator:
    """Load a pipeline.

    Parameters
    ----------
    asked : str
        A hub id, or a folder that `save_pretrained` wrote.
    options : Options

    Raises
    ------
    MissingExtraError
        If diffusers is not installed.
    ModelError
        If there is no such pipeline, it makes no images from texts, or it cannot be loaded.
    """
    library = diffusers()
    placement = place(options.device, options.dtype, "diffusers")
    files = find_pipeline(asked, options)
    pipeline = _pipeline(files, options, placement, library)
    info = ModelInfo(
        name=options.name,
        family=type(pipeline).__name__,
        weights_sha256=files.weights_sha256,
        files=files.digests,
        revision=files.revision,
        dtype=placement.dtype,
        device=placement.device,
        preprocessing={
            "scheduler": type(pipeline.scheduler).__name__,
            "safety_checker": getattr(pipeline, "safety_checker", None) is not None,
        },
        versions={"torch": str(placement.torch.__version__), "diffusers": library.__version__},
    )
    return DiffusersGenerator(info, pipeline, placement)


def _kind(files: Files, library: Any) -> Any:
    """Return the class that makes images from texts: finding it for others takes long."""
    if files.index["_class_name"] == "StableDiffusionPipeline":
        return library.StableDiffusionPipeline
    return library.AutoPipelineForText2Image


def _pipeline(files: Files, options: Options, placement: Placement, library: Any) -> Any:
    more: dict[str, Any] = {"trust_remote_code": True} if options.trust_remote_code else {}
    more |= dict.fromkeys(files.without)
    with quiet(library), quiet(transformers()), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what it imports of its own libraries
        try:
            pipeline = _kind(files, library).from_pretrained(
                files.folder,
                dtype=placement.torch_dtype,
                use_safetensors=None if options.allow_pickle else True,
                local_files_only=True,
                **more,
            )
        except Exception as error:
            first = str(error).partition("\n")[0]
            raise ModelError(f"{files.asked} cannot be loaded: {first}") from error
        pipeline = pipeline.to(placement.device)
    pipeline.set_progress_bar_config(disable=True)
    if hasattr(getattr(pipeline, "vae", None), "enable_slicing"):
        # One image is decoded at a time: the memory it takes does not grow with the batch.
        pipeline.vae.enable_slicing()
    return pipeline

"""The prefix ``diffusers:``: text-to-image pipelines, from a folder or a hub."""

import inspect
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.core import Bytes, EquipoiseError, Floats32, ModelError
from equipoise.core.files import read_json_file
from equipoise.models.denoising import decoded, record_latents, unpacked
from equipoise.models.generators import Attention, Sampling, StepImage
from equipoise.models.hub import PICKLED_ONLY, check_source, commit, fetch_folder, refuse_revision
from equipoise.models.images import Image
from equipoise.models.info import ModelInfo, digests, settings_in
from equipoise.models.registry import Options, Preview, adapter
from equipoise.models.runtimes import Batches, Placement, diffusers, place, quiet, transformers
from equipoise.models.towers import tower_info

if TYPE_CHECKING:
    from diffusers import DiffusionPipeline
    from torch import Tensor

INDEX = "model_index.json"
_WEIGHTS = ("model", "diffusion_pytorch_model")
_PICKLED = ("pytorch_model", "diffusion_pytorch_model")


def _find(target: str, options: Options) -> tuple[Path, dict[str, Any]]:
    """Return a pipeline's folder, fetched if necessary, and its index."""
    folder = Path(target).expanduser()
    if folder.is_dir():
        refuse_revision(target, options)
    else:
        names = [f"*/{name}*.safetensors" for name in _WEIGHTS]
        names += [f"*/{name}*.bin" for name in _PICKLED] if options.allow_pickle else []
        names += [INDEX, "*/*.json", "*/*.txt", "*/*.model"]
        names += ["*.py"] if options.trust_remote_code else []
        folder = fetch_folder(target, options, names, ("*.fp16*", "*non_ema*"))
    path = folder / INDEX
    try:
        index = dict(read_json_file(path))
        index["_class_name"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(
            f"{path} names no pipeline ({error}). To do: name a folder that save_pretrained of a "
            "pipeline of diffusers wrote."
        ) from error
    if not options.trust_remote_code:
        # A class may be in a file that came with the pipeline.
        from diffusers import pipelines

        code_files = [] if isinstance(index["_class_name"], str) else [INDEX]
        code_files += [
            part
            for part, library in _parts(index).items()
            # Some pipelines name modules of diffusers by their last part: "stable_diffusion".
            if library.partition(".")[0] not in {"diffusers", "transformers"}
            and not hasattr(pipelines, library)
        ]
        if code_files:
            raise ModelError(
                f"{target} brings Python code of its own ({code_files[0]}), which would be run. "
                "To do: use a checkpoint without, or, if you have read the code, set "
                "trust_remote_code: true."
            )
    return folder, index


def _parts(index: Mapping[str, Any]) -> dict[str, str]:
    """Return the library of each part of a pipeline."""
    return {
        part: entry[0]
        for part, entry in sorted(index.items())
        if part[0] != "_" and isinstance(entry, list) and entry and isinstance(entry[0], str)
    }


def _weights(target: str, folder: Path, index: Mapping[str, Any], options: Options) -> list[Path]:
    """Return the weights that are loaded: the whole file or its shards, of no variant."""

    def files(part: str, names: tuple[str, ...], suffix: str) -> list[Path]:
        shape = re.compile(rf"({'|'.join(names)})(-\d+-of-\d+)?\.{suffix}")
        return [path for path in (folder / part).glob("*") if shape.fullmatch(path.name)]

    weights: list[Path] = []
    for part in _parts(index):
        safe, pickled = files(part, _WEIGHTS, "safetensors"), files(part, _PICKLED, "bin")
        if pickled and not safe and not options.allow_pickle:
            raise ModelError(PICKLED_ONLY.format(f"{target} ({part})"))
        weights += safe or pickled
    if not weights:
        raise ModelError(f"{target} holds no weights ({_WEIGHTS[1]}.safetensors).")
    return weights


_TOKENIZERS = ("tokenizer", "tokenizer_2", "tokenizer_3")
# Tokenizers without a limit of their own say 1e30.
_NO_LIMIT = 1_000_000


def check_lengths(pipeline: "DiffusionPipeline", prompts: Sequence[object], name: str) -> None:
    """Refuse texts that are longer than a pipeline reads.

    Where a pipeline has several tokenizers, a text is read whole if one of them takes it whole.

    Parameters
    ----------
    pipeline : diffusers.DiffusionPipeline
    prompts : sequence of str
        What is no text is left to the pipeline.
    name : str
        How errors call the model.

    Raises
    ------
    ModelError
        For the first text that every tokenizer would cut, with its tokens and the limit.
    """
    readers = [*_readers(pipeline)]
    texts = [*dict.fromkeys(text for text in prompts if isinstance(text, str))]
    if not readers or not texts:
        return
    _, tokenizer, limit = max(readers, key=lambda reader: reader[2])
    with quiet(transformers()):
        rows = tokenizer(texts, truncation=False, padding=False, verbose=False).input_ids
    for text, tokens in zip(texts, rows, strict=True):
        if len(tokens) > limit:
            raise ModelError(
                f"{name} reads {limit} tokens of a text, and {text!r} has {len(tokens)} (both with "
                "the marks of start and end): the rest would not be in its image. To do: shorten "
                "it."
            )


def _readers(pipeline: Any) -> Iterator[tuple[str, Any, int]]:
    """Yield a pipeline's tokenizers, each with the number of tokens it keeps."""
    length_parameter = inspect.signature(pipeline.__call__).parameters.get("max_sequence_length")
    tokenizers = {name: getattr(pipeline, name, None) for name in _TOKENIZERS}
    names = [name for name, tokenizer in tokenizers.items() if tokenizer]
    for name in names:
        tokenizer: Any = tokenizers[name]
        limit = tokenizer.model_max_length
        if (
            length_parameter is not None
            and name == names[-1]
            and isinstance(length_parameter.default, int)
        ):
            # Of the T5 in Stable Diffusion 3 and Flux; the pipeline cuts before it.
            limit = length_parameter.default
        if limit < _NO_LIMIT:
            yield name, tokenizer, int(limit)


# Pixels that are made at a time: on a CPU 32 images of 128 × 128, on a GPU 32 of 512 × 512.
_CPU_PIXELS, _CUDA_PIXELS = 1 << 19, 1 << 23
_MOST_AT_ONCE = 64
_UNKNOWN_SIZE = 1024
# The processor of attention of images to themselves, and to texts.
_SEPARATE = {"AttnProcessor2_0"}
_SELF, _CROSS = "attn1.processor", "attn2.processor"

# Those of images and texts together, and whether texts come first.
_ATTENDS = ("query", "key", "value")
_JOINT = {"JointAttnProcessor2_0": False, "FluxAttnProcessor": True}


@dataclass(eq=False)
class _ControlledAttention:
    """An attention layer with control over its output.

    Attributes
    ----------
    torch : module
    name : str
    processor : attention processor
    attention : Attention
    words : int
        Tokens of a text.
    """

    torch: Any
    name: str
    processor: Any
    attention: Attention
    words: int

    def __call__(
        self,
        attn: Any,
        hidden_states: Any,
        encoder_hidden_states: Any = None,
        attention_mask: Any = None,
        image_rotary_emb: Any = None,
    ) -> Any:
        extra = {} if image_rotary_emb is None else {"image_rotary_emb": image_rotary_emb}
        with _intercept_attention(self.torch, self._mix):
            return self.processor(
                attn, hidden_states, encoder_hidden_states, attention_mask, **extra
            )

    def _mix(self, query: Any, key: Any, value: Any, mixed: Any) -> None:
        all_tokens = slice(None)
        texts: slice | None = all_tokens if self.name.endswith(_CROSS) else None
        images, to_images = all_tokens, None if texts else all_tokens
        text_first, cut = _JOINT.get(type(self.processor).__name__), mixed.shape[2] - self.words
        if text_first is not None:
            images, texts = slice(0, cut), slice(cut, None)
            if text_first:
                images, texts = slice(self.words, None), slice(0, self.words)
            to_images = images
        self.attention.mix(
            query, key, value, mixed, images=images, texts=texts, to_images=to_images
        )


def _intercept_attention(torch: Any, change: Callable[[Any, Any, Any, Any], None]) -> Any:
    """Return a context in which a function sees inputs and output of each attention."""
    attend = torch.nn.functional.scaled_dot_product_attention

    class Mode(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(
            self, function: Any, _: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            mixed = function(*args, **(kwargs or {}))
            if function is attend:
                arguments = dict(zip(_ATTENDS, args, strict=False)) | (kwargs or {})
                query, key, value = (arguments[name] for name in _ATTENDS)
                change(query, key, value, mixed)
            return mixed

    return Mode()


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
    pipeline: Any
    placement: Placement
    _batches: dict[int, Batches] = field(default_factory=dict, init=False)

    def generate(
        self,
        prompts: Sequence[str],
        *,
        seeds: Sequence[int],
        sampling: Sampling,
        embedded: "Tensor | None" = None,
    ) -> list[Image | None]:
        """Make an image for each prompt; see `ImageGenerator.generate`.

        Noise is a function of the seed alone, drawn on the CPU whatever the device. Batches of
        other sizes round differently, which may move a pixel by a grey level. Embeddings, as of
        `embed_prompts`, take the place of the prompts.

        Raises
        ------
        ModelError
            When the pipeline fails, would cut a text, or gives numbers that are no image.
        """
        self.check_prompts(prompts, sampling)
        room = self.room(sampling)
        batches = self._batches.setdefault(room, self.placement.batches(room))
        columns = (prompts, seeds) if embedded is None else (prompts, seeds, embedded)
        with self._named_errors():
            parts = batches.map(
                lambda rows: self._generate_batch(sampling, *zip(*rows, strict=True)),
                [*zip(*columns, strict=True)],
            )
        return [*chain.from_iterable(parts)]

    def generate_steps(
        self,
        prompts: Sequence[str],
        *,
        seeds: Sequence[int],
        sampling: Sampling,
        at: Sequence[int],
    ) -> list[tuple[StepImage, ...] | None]:
        """Make images and return them at passes of the denoiser; see `SteppedGenerator`.

        The safety checker looks at final images alone: it refuses an image at all of its passes.

        Raises
        ------
        ModelError
            As `generate` does; or the pipeline has no scheduler and autoencoder to look into.
        """
        self.check_prompts(prompts, sampling)
        if not all(hasattr(self.pipeline, part) for part in ("scheduler", "vae")):
            raise ModelError(
                f"{self.info.name} ({self.info.family}) has no scheduler with an autoencoder, so "
                "it has no images at steps. To do: leave at_steps out."
            )
        room = self.room(sampling)
        batches = self._batches.setdefault(room, self.placement.batches(room))
        with self._named_errors():
            parts = batches.map(
                lambda rows: self._generate_steps(sampling, at, *zip(*rows, strict=True)),
                [*zip(prompts, seeds, strict=True)],
            )
        return [*chain.from_iterable(parts)]

    def _generate_steps(
        self, sampling: Sampling, at: Sequence[int], prompts: Sequence[str], seeds: Sequence[int]
    ) -> list[tuple[StepImage, ...] | None]:
        size, pipeline = (sampling.height, sampling.width), self.pipeline
        with record_latents(pipeline.scheduler, at) as recorded:
            images = self._generate_batch(sampling, prompts, seeds)
        columns: list[list[StepImage]] = []
        with self.placement.torch.no_grad(), quiet(diffusers()):
            for passes in at:
                latents = unpacked(pipeline, recorded.latents[passes], *size)
                pixels = self._pixels(decoded(pipeline, latents), prompts)
                rows = zip(pixels, _arrays(latents), strict=True)
                columns.append([StepImage(*row, recorded.estimated) for row in rows])
            last_latents = _arrays(unpacked(pipeline, recorded.last, *size))
        steps: list[tuple[StepImage, ...] | None] = []
        for row, (image, latent) in enumerate(zip(images, last_latents, strict=True)):
            if image is None:
                steps.append(None)
            else:
                earlier = (column[row] for column in columns)
                steps.append((*earlier, StepImage(image, latent)))
        return steps

    def embed_prompts(self, prompts: Sequence[str]) -> "Tensor":
        """Return Stable Diffusion's embeddings of prompts, (n, tokens, dimension)."""
        self.check_prompts(prompts, Sampling())
        with self.placement.torch.no_grad():
            embedded: Tensor = self.pipeline.encode_prompt(
                [*prompts], self.placement.device, 1, do_classifier_free_guidance=False
            )[0]
        return embedded

    def differentiable(
        self, embedded: "Tensor", *, seeds: Sequence[int], sampling: Sampling, gradient_steps: int
    ) -> "Tensor":
        """Return images of embeddings with gradients through the last denoising steps.

        Returns
        -------
        tensor of float, shape (n, 3, height, width)
            In [0, 1].
        """
        pipeline = self.pipeline
        for part in (pipeline.unet, pipeline.vae):
            part.requires_grad_(requires_grad=False)

        def cut(_: Any, step: int, __: Any, tensors: dict[str, "Tensor"]) -> dict[str, "Tensor"]:
            early = step < sampling.steps - gradient_steps
            return {"latents": tensors["latents"].detach()} if early else {}

        with quiet(diffusers()), self._named_errors():
            # Without the decorator that turns gradients off.
            images: Tensor = inspect.unwrap(type(pipeline).__call__)(
                pipeline,
                prompt_embeds=embedded,
                num_inference_steps=sampling.steps,
                guidance_scale=sampling.guidance,
                generator=[self.placement.torch.Generator().manual_seed(seed) for seed in seeds],
                callback_on_step_end=cut,
                output_type="pt",
            ).images
        return images

    @property
    def _denoiser(self) -> Any:
        """The network that denoises: a UNet or a transformer."""
        unet = getattr(self.pipeline, "unet", None)
        return unet if unet is not None else getattr(self.pipeline, "transformer", None)

    @property
    def _joint(self) -> dict[str, Any]:
        """Processors of layers in which images and texts attend together, by layer."""
        processors = getattr(self._denoiser, "attn_processors", {})
        layers = {
            n: processor for n, processor in processors.items() if n.endswith(".attn.processor")
        }
        return (
            layers
            if {type(processor).__name__ for processor in layers.values()} <= {*_JOINT}
            else {}
        )

    def check_control(self) -> None:
        """Refuse a pipeline that can't share attention; see `ControlledGenerator`."""
        processors = getattr(self._denoiser, "attn_processors", {})
        layers = [name for name in processors if name.endswith(_CROSS)]
        kinds = {type(processors[name]).__name__ for name in layers}
        if self._joint or (layers and kinds <= _SEPARATE and hasattr(self.pipeline, "tokenizer")):
            return
        raise ModelError(
            f"{self.info.name} ({self.info.family}) has no attention to texts that a set can "
            f"share: its denoiser is a {type(self._denoiser).__name__}. To do: use Stable "
            "Diffusion 1.x, 2.x, XL or 3, or Flux, or generate prompts without sets."
        )

    def check_prompts(self, prompts: Sequence[str], sampling: Sampling) -> None:
        """Refuse texts, and a negative prompt, that are longer than the pipeline reads.

        Raises
        ------
        ModelError
            For the first, with its tokens and the limit.
        """
        check_lengths(self.pipeline, (*prompts, sampling.negative_prompt), self.info.name)

    def tokens(self, prompts: Sequence[str]) -> list[tuple[int, ...]]:
        """Return the padded tokens of prompts; call `check_prompts` first.

        Stable Diffusion 3 puts CLIP's words before those of T5; Flux has those of T5 alone.
        """
        readers = {name: (reader, limit) for name, reader, limit in _readers(self.pipeline)}
        names = ["tokenizer"]
        if self._joint:
            has_third = hasattr(self.pipeline, "tokenizer_3")
            names = ["tokenizer", "tokenizer_3"] if has_third else ["tokenizer_2"]
        rows: list[tuple[int, ...]] = [()] * len(prompts)
        for name in names:
            # An encoder that the pipeline lacks gives as many zeros as CLIP has words.
            reader, limit = readers.get(name, (None, readers[names[0]][1]))
            token_rows = [[0] * limit] * len(prompts)
            if reader is not None:
                options = {"padding": "max_length", "max_length": limit, "truncation": True}
                token_rows = reader([*prompts], **options).input_ids
            rows = [(*row, *tokens) for row, tokens in zip(rows, token_rows, strict=True)]
        return rows

    def room(self, sampling: Sampling) -> int:
        """Return the number of images of a size in a batch."""
        pipeline = self.pipeline
        size = getattr(getattr(self._denoiser, "config", None), "sample_size", None)
        scale = getattr(pipeline, "vae_scale_factor", None)
        default_size = (
            size * scale if isinstance(size, int) and isinstance(scale, int) else _UNKNOWN_SIZE
        )
        pixels = (sampling.height or default_size) * (sampling.width or default_size)
        pixel_budget = _CPU_PIXELS if self.placement.device == "cpu" else _CUDA_PIXELS
        return max(min(pixel_budget // pixels, _MOST_AT_ONCE), 1)

    def generate_with(
        self,
        prompts: Sequence[str],
        *,
        seeds: Sequence[int],
        sampling: Sampling,
        attention: Attention,
    ) -> list[Image | None]:
        """Make images in a single batch, with attention control.

        Raises
        ------
        ModelError
            When the pipeline fails, cannot be controlled or would cut a text, or memory does not
            hold the batch.
        """
        self.check_control()
        self.check_prompts(prompts, sampling)
        denoiser, scheduler = self._denoiser, self.pipeline.scheduler
        processors, joint = dict(denoiser.attn_processors), self._joint
        steps = sampling.steps
        if not joint:
            scheduler.set_timesteps(steps)
            steps = len(scheduler.timesteps)
        attention.begin(steps)
        words = len(self.tokens(prompts[:1])[0])
        under_control = processors | {
            name: _ControlledAttention(self.placement.torch, name, processor, attention, words)
            for name, processor in processors.items()
            if (name in joint if joint else name.endswith((_SELF, _CROSS)))
        }

        def advance(*_: Any) -> dict[str, Any]:
            attention.advance()
            return {}

        with self._named_errors():
            try:
                denoiser.set_attn_processor(under_control)
                return self._generate_batch(sampling, prompts, seeds, callback_on_step_end=advance)
            finally:
                denoiser.set_attn_processor(processors)

    def _generate_batch(
        self,
        sampling: Sampling,
        prompts: Sequence[str],
        seeds: Sequence[int],
        embedded: "Sequence[Tensor] | None" = None,
        **control: Any,
    ) -> list[Image | None]:
        torch, negative = self.placement.torch, sampling.negative_prompt
        settings: dict[str, Any] = {
            "prompt": [*prompts] if embedded is None else None,
            "prompt_embeds": None if embedded is None else torch.stack([*embedded]),
            "num_inference_steps": sampling.steps,
            "guidance_scale": sampling.guidance,
            "negative_prompt": None if negative is None else [negative] * len(prompts),
            "height": sampling.height,
            "width": sampling.width,
            **control,
        }
        settings = {name: value for name, value in settings.items() if value is not None}
        if unknown := {*settings} - {*inspect.signature(self.pipeline.__call__).parameters}:
            raise ModelError(
                f"{self.info.name} ({self.info.family}) knows no {', '.join(sorted(unknown))}. "
                "To do: leave it out of the sampling."
            )
        noise = [torch.Generator().manual_seed(seed) for seed in seeds]
        with quiet(diffusers()):
            output = self.pipeline(generator=noise, output_type="np", **settings)
        pixels = self._pixels(np.asarray(output.images, dtype=np.float32), prompts)
        flagged = getattr(output, "nsfw_content_detected", None) or [False] * len(pixels)
        return [
            None if is_flagged else image for image, is_flagged in zip(pixels, flagged, strict=True)
        ]

    def _pixels(self, values: Floats32, prompts: Sequence[str]) -> Bytes:
        """Return images in [0, 1] as bytes; refuse numbers that are no image."""
        wrong = np.flatnonzero(~np.isfinite(values).all(axis=(1, 2, 3)))
        if len(wrong):
            raise ModelError(
                f"{self.info.name} gave NaN or infinity for {prompts[int(wrong[0])]!r}. "
                "To do: dtype: float32."
            )
        pixels: Bytes = np.rint(values * 255.0).astype(np.uint8)
        return pixels

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        """Name the model in errors of the library."""
        try:
            yield
        except EquipoiseError:
            raise
        except Exception as error:
            first_line = str(error).partition("\n")[0]
            raise ModelError(
                f"{self.info.name} failed: {type(error).__name__}: {first_line}"
            ) from error


def _arrays(latents: "Tensor") -> Floats32:
    """Return latents as an array."""
    return np.asarray(latents.detach().float().cpu().numpy(), dtype=np.float32)


def _preview(target: str) -> Preview:
    check_source(target)
    return Preview()


@adapter("diffusers", makes_images=True, preview=_preview)
def load(target: str, options: Options) -> DiffusersGenerator:
    """Load a pipeline.

    Parameters
    ----------
    target : str
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
    folder, index = _find(target, options)
    parts, code = ("", *_parts(index)), options.trust_remote_code
    settings = {path for part in parts for path in settings_in(folder / part, code=code)}
    weights = digests(_weights(target, folder, index, options), folder)
    # Parts that the pipeline was saved without, such as a third text encoder.
    absent = {part: None for part, entry in index.items() if entry == [None, None]}
    with quiet(library), quiet(transformers()), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what it imports of its own libraries
        try:
            # Finding the class for others takes long.
            is_stable_diffusion = index["_class_name"] == "StableDiffusionPipeline"
            kind = (
                library.StableDiffusionPipeline
                if is_stable_diffusion
                else library.AutoPipelineForText2Image
            )
            pipeline = kind.from_pretrained(
                folder,
                dtype=placement.torch_dtype,
                use_safetensors=None if options.allow_pickle else True,
                local_files_only=True,
                trust_remote_code=code,
                **absent,
            )
        except Exception as error:
            first_line = str(error).partition("\n")[0]
            raise ModelError(f"{options.name} cannot be loaded: {first_line}") from error
        pipeline = pipeline.to(placement.device)
    pipeline.set_progress_bar_config(disable=True)
    if hasattr(getattr(pipeline, "vae", None), "enable_slicing"):
        # One image is decoded at a time: the memory it takes does not grow with the batch.
        pipeline.vae.enable_slicing()
    info = tower_info(
        options, type(pipeline).__name__, digests(settings, folder) | weights, weights, placement,
        library,
        revision=commit(folder),
        preprocessing={
            "scheduler": type(pipeline.scheduler).__name__,
            "safety_checker": getattr(pipeline, "safety_checker", None) is not None,
        },
    )  # fmt: skip
    return DiffusersGenerator(info, pipeline, placement)

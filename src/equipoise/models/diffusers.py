"""The prefix ``diffusers:``: text-to-image pipelines, from a folder or a hub."""

import inspect
import json
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.core.errors import EquipoiseError, ModelError
from equipoise.models.generators import Sampling
from equipoise.models.hub import PICKLED_ONLY, commit, fetched, without_revision
from equipoise.models.images import Image
from equipoise.models.info import ModelInfo, digests, one_digest, settings_in
from equipoise.models.registry import Options, adapter
from equipoise.models.runtimes import Batches, Placement, diffusers, place, quiet, transformers

INDEX = "model_index.json"
_WEIGHTS = ("model", "diffusion_pytorch_model")
_PICKLED = ("pytorch_model", "diffusion_pytorch_model")


@dataclass(frozen=True)
class Files:
    """A folder that `save_pretrained` of a pipeline wrote, or a snapshot of a hub's repository.

    Attributes
    ----------
    asked : str
        Hub id or folder, as asked for.
    folder : Path
    index : mapping
        What model_index.json holds.
    digests : mapping of str to str
        SHA-256 of each file that is read, by its path in the folder.
    weights_sha256 : str
        One digest of all weights.
    revision : str or None
        Commit, of a snapshot.
    """

    asked: str
    folder: Path
    index: Mapping[str, Any]
    digests: Mapping[str, str]
    weights_sha256: str
    revision: str | None


def find_pipeline(asked: str, options: Options) -> Files:
    """Find the files of a pipeline: in a folder, in the local cache, or on the hub.

    Raises
    ------
    ModelError
        If there are none, they cannot be fetched, weights are pickles, or code comes with them.
    """
    folder = Path(asked).expanduser()
    revision = None
    if folder.is_dir():
        without_revision(asked, options)
    else:
        names = [f"*/{name}*.safetensors" for name in _WEIGHTS]
        names += [f"*/{name}*.bin" for name in _PICKLED] if options.allow_pickle else []
        names += [INDEX, "*/*.json", "*/*.txt", "*/*.model"]
        names += ["*.py"] if options.trust_remote_code else []
        folder = fetched(asked, options, names, ("*.fp16*", "*non_ema*"))
        revision = commit(folder)
    path = folder / INDEX
    try:
        index = dict(json.loads(path.read_text(encoding="utf-8")))
        index["_class_name"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(
            f"{path} names no pipeline ({error}). To do: name a folder that save_pretrained of a "
            "pipeline of diffusers wrote."
        ) from error
    _refuse_code(asked, index, options)
    weights = _weights(asked, folder, index, options)
    code = options.trust_remote_code
    settings = [
        path for part in ("", *_parts(index)) for path in settings_in(folder / part, code=code)
    ]
    found = digests(weights, folder)
    return Files(
        asked, folder, index, digests({*settings}, folder) | found, one_digest(found), revision
    )


def _refuse_code(asked: str, index: Mapping[str, Any], options: Options) -> None:
    """Refuse a pipeline or a part of it whose class is in a file that came with it."""
    from diffusers import pipelines

    own = [] if isinstance(index["_class_name"], str) else [INDEX]
    own += [
        part
        for part, library in _parts(index).items()
        # Some pipelines name modules of diffusers by their last part: "stable_diffusion".
        if library.partition(".")[0] not in {"diffusers", "transformers"}
        and not hasattr(pipelines, library)
    ]
    if own and not options.trust_remote_code:
        raise ModelError(
            f"{asked} brings Python code of its own ({own[0]}), which would be run. To do: use a "
            "checkpoint without, or, if you have read the code, set trust_remote_code: true."
        )


def _parts(index: Mapping[str, Any]) -> dict[str, str]:
    """Return the library of each part of a pipeline."""
    return {
        part: given[0]
        for part, given in sorted(index.items())
        if part[0] != "_" and isinstance(given, list) and given and isinstance(given[0], str)
    }


def _weights(asked: str, folder: Path, index: Mapping[str, Any], options: Options) -> list[Path]:
    found: list[Path] = []
    for part in _parts(index):
        safe = _named(folder / part, _WEIGHTS, "safetensors")
        pickled = _named(folder / part, _PICKLED, "bin")
        if pickled and not safe and not options.allow_pickle:
            raise ModelError(PICKLED_ONLY.format(f"{asked} ({part})"))
        found += safe or pickled
    if not found:
        raise ModelError(f"{asked} holds no weights ({_WEIGHTS[1]}.safetensors).")
    return found


def _named(folder: Path, names: tuple[str, ...], suffix: str) -> list[Path]:
    """Return the weights that are loaded: the whole file or its shards, of no variant."""
    shape = re.compile(rf"({'|'.join(names)})(-\d+-of-\d+)?\.{suffix}")
    return sorted(path for path in folder.glob(f"*.{suffix}") if shape.fullmatch(path.name))


_TOKENIZERS = ("tokenizer", "tokenizer_2", "tokenizer_3")
# Tokenizers without a limit of their own say 1e30.
_NO_LIMIT = 1_000_000


def check_lengths(pipeline: Any, prompts: Iterable[object], name: str) -> None:
    """Refuse texts that are longer than a pipeline reads.

    Where a pipeline has several tokenizers, a text is read whole if one of them takes it whole.

    Parameters
    ----------
    pipeline : diffusers.DiffusionPipeline
    prompts : iterable of str
        A text that is there several times is looked at once; what is no text is left to the
        pipeline.
    name : str
        How errors call the model.

    Raises
    ------
    ModelError
        For the first text that every tokenizer would cut, with its tokens and the limit.
    """
    readers = [*_readers(pipeline)]
    texts = [*dict.fromkeys(one for one in prompts if isinstance(one, str))]
    if not readers or not texts:
        return
    tokenizer, limit = max(readers, key=lambda reader: reader[1])
    with quiet(transformers()):
        found = tokenizer(texts, truncation=False, padding=False, verbose=False).input_ids
    for text, tokens in zip(texts, found, strict=True):
        if len(tokens) > limit:
            raise ModelError(
                f"{name} reads {limit} tokens of a text, and {text!r} has {len(tokens)} (both with "
                "the marks of start and end): the rest would not be in its image. To do: shorten "
                "it."
            )


def _readers(pipeline: Any) -> Iterator[tuple[Any, int]]:
    """Yield the tokenizers of a pipeline with how many tokens of a text go to the model."""
    known = inspect.signature(pipeline.__call__).parameters.get("max_sequence_length")
    found = [getattr(pipeline, name, None) for name in _TOKENIZERS]
    tokenizers = [tokenizer for tokenizer in found if tokenizer is not None]
    for tokenizer in tokenizers:
        limit = tokenizer.model_max_length
        if known is not None and tokenizer is tokenizers[-1] and isinstance(known.default, int):
            # Of the T5 in Stable Diffusion 3 and Flux; the pipeline cuts before it.
            limit = known.default
        if limit < _NO_LIMIT:
            yield tokenizer, int(limit)


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
    pipeline: Any
    placement: Placement
    _batches: dict[int, Batches] = field(default_factory=dict, init=False)

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
        pipeline = self.pipeline
        denoiser = getattr(pipeline, "unet", None) or getattr(pipeline, "transformer", None)
        size = getattr(getattr(denoiser, "config", None), "sample_size", None)
        scale = getattr(pipeline, "vae_scale_factor", None)
        own = size * scale if isinstance(size, int) and isinstance(scale, int) else _UNKNOWN_SIZE
        pixels = (sampling.height or own) * (sampling.width or own)
        most = _CPU_PIXELS if self.placement.device == "cpu" else _CUDA_PIXELS
        return max(min(most // pixels, _MOST_AT_ONCE), 1)

    def generate_with(
        self,
        prompts: Sequence[str],
        *,
        seeds: Sequence[int],
        sampling: Sampling,
        attention: Any,
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

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Say of what the library raises which model it was."""
        try:
            yield
        except EquipoiseError:
            raise
        except Exception as error:
            first = str(error).partition("\n")[0]
            raise ModelError(f"{self.info.name} failed: {type(error).__name__}: {first}") from error


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


def _pipeline(files: Files, options: Options, placement: Placement, library: Any) -> Any:
    more: dict[str, Any] = {"trust_remote_code": True} if options.trust_remote_code else {}
    # Parts that the pipeline was saved without, such as a third text encoder.
    more |= {part: None for part, given in files.index.items() if given == [None, None]}
    with quiet(library), quiet(transformers()), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what it imports of its own libraries
        try:
            # Finding the class for others takes long.
            stable = files.index["_class_name"] == "StableDiffusionPipeline"
            kind = library.StableDiffusionPipeline if stable else library.AutoPipelineForText2Image
            pipeline = kind.from_pretrained(
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

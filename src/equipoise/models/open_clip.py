"""The prefix ``open_clip:``: dual encoders by tag, file, folder or hub id."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.core import ModelError
from equipoise.core.types import Json
from equipoise.models.hub import (
    LibraryWeights,
    check_path,
    commit,
    fetch_folder,
    refuse_pickle,
    refuse_revision,
    weights_file,
)
from equipoise.models.preprocessing import preparation, read_open_clip, stack_images
from equipoise.models.registry import Options, Preview, adapter
from equipoise.models.runtimes import Placement, open_clip, place
from equipoise.models.towers import (
    TowerEncoder,
    build_tower,
    logit_line,
    tower_info,
    with_backend,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from open_clip import CLIP, HFTokenizer, SimpleTokenizer
    from PIL.Image import Image
    from torch import Tensor

SETTINGS = "open_clip_config.json"
WEIGHTS = (
    "open_clip_model.safetensors",
    "open_clip_pytorch_model.safetensors",
    "open_clip_pytorch_model.bin",
)
PRECISIONS = {"float32": "fp32", "bfloat16": "pure_bf16", "float16": "pure_fp16"}
PREPARED = {
    "mean": "image_mean",
    "std": "image_std",
    "interpolation": "image_interpolation",
    "resize_mode": "image_resize_mode",
}


class OpenClipEncoder(TowerEncoder):
    """A dual encoder of open_clip."""

    def encode(self, texts: Sequence[str]) -> "Tensor":
        """Return a tensor of vectors of texts, (n, dimension)."""
        return self.model.encode_text(self.tokenizer(list(texts)).to(self.placement.device))

    def count_long(self, texts: Sequence[str]) -> tuple[int, int]:
        """Return how many texts are too long, and how many tokens the model reads."""
        if not hasattr(self.tokenizer, "encode"):
            return 0, 0
        limit = self.tokenizer.context_length
        return sum(len(self.tokenizer.encode(text)) + 2 > limit for text in texts), limit


def _identify(target: str, options: Options) -> Mapping[str, Json] | None:
    source = _find(open_clip(), target, options)
    # An architecture can be one that the user added.
    config = None if source.settings else open_clip().get_model_config(source.architecture)
    named = config and config.get("text_cfg", {}).get("hf_tokenizer_name")
    if named or (config and "siglip" in source.architecture.lower()):
        return None  # its tokenizer lies elsewhere
    return {**source.identity("open_clip", options), "config": config}


def _preview(target: str) -> Preview:
    check_path(target)
    return Preview("encoder")


@adapter("open_clip", preview=_preview, identify=_identify, backends=True)
def load(target: str, options: Options) -> OpenClipEncoder:
    """Load a model of open_clip.

    Parameters
    ----------
    target : str
        ``architecture/tag``, ``architecture/path/to/weights``, a folder that holds
        open_clip_config.json, or ``hf-hub:owner/name``.
    options : Options
        What was asked.

    Raises
    ------
    MissingExtraError
        If open_clip is not installed.
    ModelError
        If there is no such model, it cannot be fetched, or its weights are pickles.
    """
    library = open_clip()
    placement = place(options.device, options.dtype, "open_clip", options.backend)
    source = _find(library, target, options)
    placement = with_backend(placement, options, [source.weights])
    computed = placement.dtype if placement.backend == "torch" else "float32"
    try:
        model, transform = library.create_model_from_pretrained(
            source.architecture,
            pretrained=None if source.settings else str(source.weights),
            precision=PRECISIONS[computed],
            device=placement.device,
            **source.image_settings,
        )
        tokenizer = library.get_tokenizer(source.architecture)
    except Exception as error:
        raise ModelError(f"{target} cannot be loaded: {error}") from error
    extra_facts: dict[str, Json] = {}
    if not source.settings:
        extra_facts["configuration"] = library.get_model_config(source.architecture)
    settings = dict(model.eval().visual.preprocess_cfg)
    return encoder(options, source, placement, model, transform, tokenizer, settings, extra_facts)


def encoder(
    options: Options,
    source: LibraryWeights,
    placement: Placement,
    model: "CLIP",
    transform: "Callable[[Image], Tensor]",
    tokenizer: "SimpleTokenizer | HFTokenizer",
    settings: Mapping[str, Json],
    extra_facts: Mapping[str, Json],
) -> OpenClipEncoder:
    """Return a module of open_clip with its tokenizer as a dual encoder.

    Parameters
    ----------
    options, found, placement
        As it was loaded.
    model, transform, tokenizer
        The library's.
    settings : mapping
        What the transform does: a `preprocess_cfg`.
    more : mapping
        Further facts that change an output.
    """
    images = stack_images(transform, placement.torch)
    prepare = preparation(options.name, images, read_open_clip(settings), placement.torch)
    tower = build_tower(
        placement,
        options,
        model,
        lambda clip, inputs: (clip.encode_image(inputs["pixel_values"]),),
        prepare,
    )
    with placement.torch.inference_mode():
        example = model.encode_text(tokenizer(["a"]).to(placement.device))
    facts = {
        "architecture": source.architecture_name,
        "image_processor": "open_clip.image_transform_v2",
        "image_backend": "torchvision",
        "image_settings": json.loads(json.dumps(settings)),
        "tokenizer": type(tokenizer).__name__,
        "text": {"max_length": tokenizer.context_length},
        **extra_facts,
    }
    # An architecture may name any tokenizer of transformers.
    inner = getattr(getattr(tokenizer, "tokenizer", None), "backend_tokenizer", None)
    if inner is not None:
        facts["tokens"] = hashlib.sha256(inner.to_str().encode()).hexdigest()
    info = tower_info(
        options, "open_clip", source.files, source.digest, tower.placement, open_clip(),
        revision=source.revision,
        dimension=int(example.shape[1]),
        preprocessing=facts | prepare.facts,
        **logit_line(model),
    )  # fmt: skip
    return OpenClipEncoder(info, model, tower, tokenizer)


def _find(library: Any, target: str, options: Options) -> LibraryWeights:
    """Return which model a name is of, and from which files it is loaded; see `load`."""
    if Path(target).is_dir() or target.startswith("hf-hub:"):
        return LibraryWeights.in_folder(target, SETTINGS, WEIGHTS, options)
    architecture, _, weights_name = target.partition("/")
    config = library.get_model_config(architecture)
    if config is None:
        raise ModelError(
            f"open_clip has no architecture {architecture!r}. To do: name one of "
            "open_clip.list_models(), and its weights: open_clip:ViT-B-32/openai."
        )
    if Path(weights_name).is_file():
        refuse_revision(target, options)
        return LibraryWeights(architecture, refuse_pickle(Path(weights_name), target, options))
    return _tag(library, architecture, weights_name, bool(config.get("quick_gelu")), options)


def _tag(
    library: Any, architecture: str, tag: str, quick_gelu: bool, options: Options
) -> LibraryWeights:
    settings = library.get_pretrained_cfg(architecture, tag)
    if not settings:
        tags = ", ".join(library.list_pretrained_tags_by_model(architecture)) or "none"
        raise ModelError(
            f"{tag!r} is neither a file nor a tag of {architecture}. Its tags are: {tags}."
        )
    if bool(settings.get("quick_gelu")) != quick_gelu:
        raise ModelError(
            f"The weights {tag} of {architecture} were trained with another activation "
            f"(QuickGELU: {bool(settings.get('quick_gelu'))}). To do: name "
            f"{architecture.removesuffix('-quickgelu')}{'' if quick_gelu else '-quickgelu'}/{tag}."
        )
    hub_id, _, name = settings.get("hf_hub", "").rpartition("/")
    if not hub_id:
        raise ModelError(
            f"The weights {tag} of {architecture} are on no hub. To do: download them and name the "
            f"file: open_clip:{architecture}/path/to/weights."
        )
    names = [name] if name else [*WEIGHTS]
    readable = [
        file_name
        for file_name in names
        if file_name.endswith(".safetensors") or options.allow_pickle
    ]
    if not readable:
        refuse_pickle(Path(name), f"{architecture}/{tag}", options)
    folder = fetch_folder(hub_id, options, readable)
    image_settings = {PREPARED[key]: settings[key] for key in PREPARED if key in settings}
    weights = weights_file(f"{architecture}/{tag}", folder, names, options)
    return LibraryWeights(architecture, weights, None, commit(folder), image_settings)

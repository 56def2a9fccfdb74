"""The prefixes ``slip:``, ``laclip:`` and ``alip:``: CLIPs in authors' files."""

import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from equipoise.core import ModelError
from equipoise.core.types import Json
from equipoise.models.hub import LibraryWeights, refuse_pickle, refuse_revision
from equipoise.models.open_clip import WEIGHTS, OpenClipEncoder, encoder
from equipoise.models.protocols import Offer
from equipoise.models.registry import Options, Preview, adapter
from equipoise.models.runtimes import open_clip, place, timm
from equipoise.models.towers import with_backend

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

Weights = dict[str, "Tensor"]
HEAD = 64
"""Numbers of a head of attention, where no weight says it."""
IMAGENET = {
    "mean": (0.485, 0.456, 0.406),
    "std": (0.229, 0.224, 0.225),
    "interpolation": "bilinear",
}


class Layout(NamedTuple):
    """The names of weights in a file, and the defaults of its authors' code.

    Attributes
    ----------
    renames : mapping of str to str
        Beginnings of names to those of our module; "" drops a weight of training alone.
    images : mapping
        How images are prepared, beside what open_clip does by default: as OpenAI's CLIP.
    quick_gelu : bool
        The activation of the text tower.
    """

    renames: Mapping[str, str]
    images: Mapping[str, Any]
    quick_gelu: bool


# By a weight that a file of the layout has.
LAYOUTS = {
    # SLIP, its CLIP and LaCLIP of CC3M, CC12M and RedCaps: a vision transformer of timm.
    "visual.cls_token": Layout(
        {"visual.": "visual.trunk.", "image_projection": "visual.head.weight", "image_mlp.": ""},
        IMAGENET,
        quick_gelu=True,
    ),
    # The same, as a recipe that trains it writes it.
    "visual.trunk.cls_token": Layout({}, IMAGENET, quick_gelu=True),
    # ALIP, and LaCLIP of LAION-400M: open_clip's own.
    "visual.class_embedding": Layout({}, {}, quick_gelu=False),
}


def read_weights(path: Path, torch: ModuleType) -> Weights:
    """Read a file of weights, as a checkpoint of training holds them or alone.

    Nothing of a pickle is run: what is no tensor becomes an empty object.

    Raises
    ------
    ModelError
        When it can't be read, or holds no weights.
    """
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            state: Any = load_file(path)
        else:
            names = torch.serialization.get_unsafe_globals_in_checkpoint(path)
            with torch.serialization.safe_globals([(_empty(name), name) for name in names]):
                state = torch.load(path, map_location="cpu", weights_only=True)
        state = state.get("state_dict", state)
        # Of a model that was trained on several GPUs.
        return {
            name.removeprefix("module."): value
            for name, value in state.items()
            if isinstance(value, torch.Tensor)
        }
    except Exception as error:
        raise ModelError(f"{path} holds no weights that can be read: {error}") from error


def _empty(name: str) -> type:
    """Return an inert class with a name, to stand in for a pickled class."""
    methods = {"__init__": lambda *_, **__: None, "__setstate__": lambda *_: None}
    return type(name.rpartition(".")[2], (), methods)


def rename_weights(weights: Weights, renames: Mapping[str, str]) -> Weights:
    """Return weights with renamed prefixes; "" drops a weight."""
    renamed_weights = {}
    for name, value in weights.items():
        beginning = next((prefix for prefix in renames if name.startswith(prefix)), None)
        if beginning is None:
            renamed_weights[name] = value
        elif renames[beginning]:
            renamed_weights[renames[beginning] + name.removeprefix(beginning)] = value
    return renamed_weights


def fill(module: "Module", weights: Weights, name: str) -> None:
    """Give a module its weights.

    Raises
    ------
    ModelError
        When one is missing, left over, or of another shape.
    """
    try:
        module.load_state_dict(weights)
    except RuntimeError as error:
        summary = " ".join(str(error).split())[:300]
        raise ModelError(
            f"{name} holds other weights than its layout has: {summary}. To do: name a file that "
            "its authors' code wrote."
        ) from error


def count_blocks(weights: Weights, name: str) -> int:
    """Return the number of blocks with weights under a name."""
    numbers = (re.match(rf"{re.escape(name)}\.(\d+)\.", weight_name) for weight_name in weights)
    return 1 + max((int(match[1]) for match in numbers if match), default=-1)


def _module(library: Any, torch: Any, weights: Weights, quick_gelu: bool) -> tuple[Any, int]:
    """Return an empty module of the sizes of some weights, and the side of its images."""
    context, width = weights["positional_embedding"].shape
    text = {
        "context_length": context, "vocab_size": len(weights["token_embedding.weight"]),
        "width": width, "heads": max(1, width // HEAD),
        "layers": count_blocks(weights, "transformer.resblocks"),
    }  # fmt: skip
    dimension, trunk = weights["text_projection"].shape[1], "visual.trunk.cls_token" in weights
    start = "visual.trunk.patch_embed.proj" if trunk else "visual.conv1"
    wide, _, patch, _ = weights[f"{start}.weight"].shape
    table = "visual.trunk.pos_embed" if trunk else "visual.positional_embedding"
    side = patch * round((weights[table].shape[-2] - 1) ** 0.5)
    vision = {"image_size": side, "patch_size": patch, "width": wide, "head_width": min(HEAD, wide)}
    layers = 1 if trunk else count_blocks(weights, "visual.transformer.resblocks")
    model = library.CLIP(dimension, vision | {"layers": layers}, text, quick_gelu)
    if trunk:
        norm = weights.get("visual.trunk.blocks.0.attn.q_norm.weight")
        # MoCo v3's small transformer has twelve heads.
        heads = wide // len(norm) if norm is not None else 12 if wide == 384 else wide // HEAD
        body = timm().models.VisionTransformer(
            img_size=side, patch_size=patch, embed_dim=wide, num_heads=heads, num_classes=0,
            depth=count_blocks(weights, "visual.trunk.blocks"), qk_norm=norm is not None,
        )  # fmt: skip
        head = torch.nn.Linear(wide, dimension, bias=False)
        model.visual = torch.nn.Sequential(OrderedDict(trunk=body, head=head))
    return model, side


def find_file(prefix: str, target: str, options: Options) -> LibraryWeights:
    """Return a file of weights, which a prefix is followed by; see `load`."""
    path = _existing(prefix, target)
    refuse_revision(target, options)
    return LibraryWeights(prefix, refuse_pickle(path, target, options))


def _existing(prefix: str, target: str) -> Path:
    """Return the path of the weights, a file or in a folder."""
    path = Path(target).expanduser()
    path = path / WEIGHTS[0] if path.is_dir() else path
    if not path.is_file():
        raise ModelError(f"There is no file of weights {path}. To do: correct {prefix}:path.")
    return path


def preview(prefix: str, offer: Offer, target: str) -> Preview:
    """Return the preview of a file of weights.

    Raises
    ------
    ModelError
        If there is no such file.
    """
    _existing(prefix, target)
    return Preview(offer)


def _identify(prefix: str, target: str, options: Options) -> Mapping[str, Json]:
    return find_file(prefix, target, options).identity("open_clip", options)


def load(prefix: str, target: str, options: Options) -> OpenClipEncoder:
    """Load a CLIP from a file that its authors published.

    Parameters
    ----------
    prefix : str
        ``slip``, ``laclip`` or ``alip``.
    target : str
        The file, or a folder that a recipe wrote. Its names of weights tell its layout, and their
        shapes the sizes.
    options : Options
        What was asked.

    Raises
    ------
    MissingExtraError
        If open_clip is not installed.
    ModelError
        If there is no such file, it is a pickle, or of another layout.
    """
    library = open_clip()
    source = find_file(prefix, target, options)
    placement = place(options.device, options.dtype, "open_clip", options.backend)
    placement = with_backend(placement, options, [source.weights])
    weights = read_weights(source.weights, placement.torch)
    layout = next((LAYOUTS[name] for name in LAYOUTS if name in weights), None)
    if layout is None:
        raise ModelError(
            f"{options.name} has none of the weights {', '.join(LAYOUTS)}, so it isn't a "
            "checkpoint of SLIP, LaCLIP or ALIP. To do: name the file that its authors published."
        )
    if "image_projection" in weights:
        weights["image_projection"] = weights["image_projection"].T
    weights = rename_weights(weights, layout.renames)
    try:
        model, side = _module(library, placement.torch, weights, layout.quick_gelu)
    except KeyError as error:
        raise ModelError(f"{options.name} lacks weights that it needs ({error.args[0]}).") from None
    fill(model, weights, options.name)
    model = model.to(placement.device, placement.torch_dtype).eval()
    settings = library.transform.PreprocessCfg(size=side, **layout.images)
    transform = library.transform.image_transform_v2(settings, is_train=False)
    tokenizer = library.SimpleTokenizer(context_length=model.context_length)
    extra_facts = {"quick_gelu": layout.quick_gelu}
    return encoder(
        options, source, placement, model, transform, tokenizer, asdict(settings), extra_facts
    )


for _prefix in ("slip", "laclip", "alip"):
    adapter(
        _prefix,
        preview=partial(preview, _prefix, "encoder"),
        identify=partial(_identify, _prefix),
        backends=True,
    )(partial(load, _prefix))

"""The prefix ``timm:``: image classifiers by name, file, folder or hub id."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from equipoise.core import ModelError
from equipoise.core.types import Json
from equipoise.models.hub import LibraryWeights, check_path, refuse_pickle, refuse_revision
from equipoise.models.preprocessing import preparation, read_timm, stack_images
from equipoise.models.registry import Options, Preview, adapter
from equipoise.models.runtimes import place, timm
from equipoise.models.towers import TowerClassifier, build_tower, tower_info, with_backend

SETTINGS = "config.json"
WEIGHTS = ("model.safetensors", "pytorch_model.bin")


def _outputs(model: Any, inputs: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return logits and the inputs of the last layer."""
    hidden = model.forward_features(inputs["pixel_values"])
    return model.forward_head(hidden), model.forward_head(hidden, pre_logits=True)


def _identify(target: str, options: Options) -> Mapping[str, Json]:
    return find_weights(timm(), target, options).identity("timm", options)


def _preview(target: str) -> Preview:
    check_path(target)
    return Preview("classifier")


@adapter("timm", preview=_preview, identify=_identify, backends=True)
def load(target: str, options: Options) -> TowerClassifier:
    """Load a classifier of timm.

    Parameters
    ----------
    target : str
        A name with its tag (``resnet50.a1_in1k``), ``name/path/to/weights``, a folder that holds
        timm's config.json, or ``hf-hub:owner/name``.
    options : Options
        What was asked.

    Raises
    ------
    MissingExtraError
        If timm is not installed.
    ModelError
        If there is no such model, it cannot be fetched, or its weights are pickles.
    """
    library = timm()
    placement = place(options.device, options.dtype, "timm", options.backend)
    source = find_weights(library, target, options)
    placement = with_backend(placement, options, [source.weights])
    overrides = {} if source.settings else {"pretrained_cfg_overlay": {"file": str(source.weights)}}
    try:
        model = library.create_model(source.architecture, pretrained=True, **overrides)
    except Exception as error:
        raise ModelError(f"{target} cannot be loaded: {error}") from error
    model = model.to(placement.device, placement.torch_dtype).eval()
    settings = library.data.resolve_model_data_config(model)
    transform = library.data.create_transform(**settings, is_training=False)
    images = stack_images(transform, placement.torch)
    prepare = preparation(options.name, images, read_timm(settings), placement.torch)
    tower = build_tower(placement, options, model, _outputs, prepare)
    info = tower_info(
        options, "timm", source.files, source.digest, tower.placement, library,
        revision=source.revision,
        dimension=int(model.head_hidden_size or model.num_features),
        preprocessing={
            "architecture": source.architecture_name,
            "image_processor": "timm.data.create_transform",
            "image_backend": "torchvision",
            "image_settings": json.loads(json.dumps(settings)),
            "probabilities": "softmax",
        }
        | prepare.facts,
    )  # fmt: skip
    return TowerClassifier(info, model, tower, _labels(library, model))


def find_weights(library: Any, target: str, options: Options) -> LibraryWeights:
    """Return which model a name is of, and from which files it is loaded; see `load`."""
    if Path(target).is_dir() or target.startswith("hf-hub:"):
        return LibraryWeights.in_folder(target, SETTINGS, WEIGHTS, options)
    name, _, weights_path = target.partition("/")
    if not library.is_model(name.partition(".")[0]):
        raise ModelError(f"timm has no model {name!r}. To do: name one of timm.list_models().")
    if weights_path:
        if not Path(weights_path).is_file():
            raise ModelError(f"There is no file of weights {weights_path}.")
        refuse_revision(target, options)
        return LibraryWeights(name, refuse_pickle(Path(weights_path), target, options))
    settings = library.get_pretrained_cfg(name)
    if not (settings and settings.hf_hub_id):
        raise ModelError(f"timm has no weights for {name}. To do: name a file: timm:{name}/path.")
    return LibraryWeights.in_folder(f"hf-hub:{settings.hf_hub_id}", SETTINGS, WEIGHTS, options)


def _labels(library: Any, model: Any) -> tuple[str, ...]:
    """Return labels: the checkpoint's, else ImageNet's, else class numbers."""
    names = model.pretrained_cfg.get("label_names")
    if names:
        return tuple(map(str, names))
    subset = library.data.infer_imagenet_subset(model)
    if subset:
        imagenet = library.data.ImageNetInfo(subset)
        return tuple(imagenet.index_to_description(index) for index in range(model.num_classes))
    return tuple(map(str, range(model.num_classes)))

"""Settings in an ONNX graph's folder: image preparation and class labels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from equipoise.core import ModelError
from equipoise.core.files import decode_json, read_regular
from equipoise.data.problems import expected_value
from equipoise.models.preprocessing import (
    Recipe,
    Scale,
    read_timm,
    read_torchvision,
    read_transformers,
)

CONFIG, PROCESSOR = "config.json", "preprocessor_config.json"
SUBFOLDER = "onnx"
"""Folder of the graphs inside a checkpoint's folder, whose settings lie above it."""

Layout = Literal["NCHW", "NHWC"]
Channels = Literal["RGB", "BGR"]
Output = Literal["logits", "probabilities"]


@dataclass(frozen=True)
class Settings:
    """How to run a graph.

    Attributes
    ----------
    source : str
        The file of the settings, and its kind.
    recipe : Recipe
        With a `size`.
    files : tuple of Path
        All files that were read.
    labels : tuple of str
        () where the files name none.
    layout : {"NCHW", "NHWC"} or None
        None where the graph's shape decides.
    channels : {"RGB", "BGR"}
    output : {"logits", "probabilities"}
    multi_label : bool
        Whether each class has a probability of its own.
    """

    source: str
    recipe: Recipe
    files: tuple[Path, ...]
    labels: tuple[str, ...] = ()
    layout: Layout | None = "NCHW"
    channels: Channels = "RGB"
    output: Output = "logits"
    multi_label: bool = False


def find_graph(target: str | Path) -> Path:
    """Return the graph that a path names: a file, or the graph of a folder.

    Raises
    ------
    ModelError
        If there is none, or a folder holds several and none is model.onnx.
    """
    path = Path(target).expanduser()
    if not path.is_dir():
        if path.is_file():
            return path
        raise ModelError(f"There is no model file {target}.")
    folders = (path, path / SUBFOLDER)
    for folder in folders:
        if (folder / "model.onnx").is_file():
            return folder / "model.onnx"
    graphs = sorted(graph for folder in folders for graph in folder.glob("*.onnx"))
    if len(graphs) == 1:
        return graphs[0]
    names = ", ".join(graph.relative_to(path).as_posix() for graph in graphs) or "none"
    raise ModelError(
        f"{target} needs one graph, model.onnx or {SUBFOLDER}/model.onnx; it holds {names}. "
        "To do: name the file, onnx:folder/file.onnx."
    )


def labels_path(graph: Path) -> Path:
    """Return the path of a graph's class labels: model.labels.txt for model.onnx."""
    return graph.with_suffix(".labels.txt")


def yaml_path(graph: Path) -> Path:
    """Return the path of a user's settings: model.yaml for model.onnx."""
    return graph.with_suffix(".yaml")


def hub_folder(graph: Path) -> Path:
    """Return a checkpoint's settings folder: the graph's, or the parent of onnx/."""
    folder = graph.parent
    settings = any((folder / name).is_file() for name in (CONFIG, PROCESSOR))
    above = not settings and folder.absolute().name == SUBFOLDER
    return folder.absolute().parent if above else folder


def settings_files(graph: Path) -> tuple[Path, ...]:
    """Return every file in a graph's folder that can decide how it runs."""
    paths = [labels_path(graph), yaml_path(graph)]
    paths += [hub_folder(graph) / name for name in (CONFIG, PROCESSOR)]
    return tuple(path for path in paths if path.is_file())


def read_labels(graph: Path) -> tuple[str, ...]:
    """Return the lines of model.labels.txt; () if there is no file.

    Raises
    ------
    ModelError
        If the file is no text.
    """
    path = labels_path(graph)
    if not path.is_file():
        return ()
    lines = _read_text(path).splitlines()
    return tuple(name for line in lines if (name := line.strip()))


def read_settings(graph: Path) -> Settings | None:
    """Return the settings in a graph's folder, or None.

    model.yaml comes first. Without it, the files of a hub's repository count.

    Raises
    ------
    ModelError
        If they are damaged, or ask for something that cannot be done.
    """
    settings = _read_yaml(yaml_path(graph)) if yaml_path(graph).is_file() else _read_hub(graph)
    labels = read_labels(graph)
    if settings is None or not labels:
        return settings
    if settings.labels and yaml_path(graph) in settings.files:
        raise ModelError(
            f"{labels_path(graph)} and `labels` of {yaml_path(graph)} both name the classes. "
            "To do: remove one of them."
        )
    return replace(settings, labels=labels, files=(*settings.files, labels_path(graph)))


Side = Annotated[int, Field(ge=1)]


class _Export(BaseModel):
    """The keys of model.yaml."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    size: Side | tuple[Side, Side]
    crop: Side | tuple[Side, Side] | None = None
    interpolation: Literal["bilinear", "bicubic"]
    scale: float = Field(default=255.0, ge=1)
    mean: tuple[float, float, float] = (0.0, 0.0, 0.0)
    std: tuple[float, float, float] = (1.0, 1.0, 1.0)
    channels: Channels = "RGB"
    layout: Layout | None = None
    output: Output
    multi_label: bool = False
    labels: tuple[str, ...] = ()


def _read_yaml(path: Path) -> Settings:
    try:
        # Every scalar stays text: YAML takes the labels no and 010 for a boolean and a number.
        node = yaml.compose(_read_text(path), Loader=yaml.BaseLoader)
        keys = [key.value for key, _ in node.value] if isinstance(node, yaml.MappingNode) else []
        if len(set(keys)) < len(keys) or not keys:
            raise ModelError(f"{path}: expected a mapping in which each key appears once.")
        export = _Export.model_validate(yaml.load(_read_text(path), Loader=yaml.BaseLoader))  # noqa: S506
    except yaml.YAMLError as error:
        raise ModelError(f"{path} is no YAML: {error}") from error
    except ValidationError as error:
        problem = error.errors()[0]
        key = ".".join(str(part) for part in problem["loc"])
        expected = expected_value(problem["type"], problem["msg"])
        raise ModelError(
            f"{path}: {key}: expected {expected}. To do: see the keys of model.yaml in "
            "docs/models.md."
        ) from error
    crop = (export.crop, export.crop) if isinstance(export.crop, int) else export.crop
    scale = Scale(export.mean, export.std, 1 / export.scale)
    recipe = read_torchvision(export.size, crop, export.interpolation, scale)
    if recipe is None or recipe.size is None:
        raise ModelError(
            f"{path}: size {export.size} and crop {export.crop} give images of no fixed size, or "
            "std holds 0. To do: a crop within the size, or size: [height, width]."
        )
    return Settings(
        path.name, recipe, (path,), export.labels, export.layout, export.channels, export.output,
        export.multi_label,
    )  # fmt: skip


class _Processor(NamedTuple):
    """Defaults of an image processor of transformers.

    Attributes
    ----------
    square : bool
        Whether a size of one number is height and width; else the shorter side.
    resample : int
        Pillow's number of the interpolation.
    crops : bool
        Whether it keeps the centre.
    flips : bool
        Whether it makes BGR of RGB.
    """

    square: bool
    resample: int
    crops: bool = False
    flips: bool = False

    def complete(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings with defaults for missing keys."""
        settings = {key: value for key, value in settings.items() if value is not None}
        size = settings.get("size")
        if self.square and isinstance(size, int):
            settings["size"] = {"height": size, "width": size}
        steps = {"do_resize": True, "do_rescale": True, "do_center_crop": self.crops}
        steps |= {"do_normalize": not self.flips, "do_flip_channel_order": self.flips}
        return {**steps, "rescale_factor": 1 / 255, "resample": self.resample, **settings}


PROCESSORS = {
    "Beit": _Processor(True, 3),
    "Bit": _Processor(False, 3, crops=True),
    "CLIP": _Processor(False, 3, crops=True),
    "ConvNext": _Processor(False, 3),
    "DeiT": _Processor(True, 3, crops=True),
    "MobileNetV1": _Processor(False, 2, crops=True),
    "MobileNetV2": _Processor(False, 2, crops=True),
    "MobileViT": _Processor(False, 3, crops=True, flips=True),
    "Pvt": _Processor(True, 3),
    "Siglip": _Processor(True, 3),
    "ViT": _Processor(True, 2),
}
"""Image processors of transformers that resize, cut and scale, and do nothing else."""

_ENDINGS = ("ImageProcessorFast", "ImageProcessorPil", "ImageProcessor", "FeatureExtractor")
_NAMES = ("image_processor_type", "feature_extractor_type")
_USED = {
    *_NAMES, "do_resize", "do_center_crop", "do_rescale", "do_normalize", "do_convert_rgb",
    "do_flip_channel_order", "size", "crop_size", "resample", "rescale_factor", "image_mean",
    "image_std",
}  # fmt: skip
_IDLE = {
    "processor_class", "data_format", "input_data_format", "device", "return_tensors",
    "default_to_square", "disable_grouping", "_valid_processor_keys",
}  # fmt: skip


def _read_hub(graph: Path) -> Settings | None:
    """Read the files that transformers, optimum and timm write."""
    folder = hub_folder(graph)
    config_path, processor_path = folder / CONFIG, folder / PROCESSOR
    config = _read_json(config_path) if config_path.is_file() else {}
    if "pretrained_cfg" in config:
        return _parse_pretrained(config_path, config)
    if not processor_path.is_file():
        return None
    settings = _read_processor(processor_path)
    if not config:
        return settings
    return replace(
        settings,
        labels=_read_class_names(config_path, config),
        files=(processor_path, config_path),
        multi_label=config.get("problem_type") == "multi_label_classification",
    )


def _parse_pretrained(path: Path, config: Mapping[str, Any]) -> Settings:
    settings = config["pretrained_cfg"]
    recipe = read_timm(settings)
    if recipe is None:
        raise ModelError(
            f"{path}: pretrained_cfg needs input_size (3 channels), mean, std, interpolation "
            "(bicubic or bilinear), and crop_mode center or squash. To do: correct it, or write "
            "model.yaml into the graph's folder."
        )
    names = config.get("label_names") or settings.get("label_names") or ()
    return Settings(f"{CONFIG} of timm", recipe, (path,), tuple(map(str, names)))


def _read_processor(path: Path) -> Settings:
    settings = _read_json(path)
    kind = str(next((settings[name] for name in _NAMES if settings.get(name)), ""))
    stem = next((kind.removesuffix(end) for end in _ENDINGS if kind.endswith(end)), kind)
    instead = "To do: write the steps into model.yaml in its folder (docs/models.md)."
    processor = PROCESSORS.get(stem)
    if processor is None:
        raise ModelError(
            f"{path}: image_processor_type is {kind!r}. Known are "
            f"{', '.join(f'{name}ImageProcessor' for name in PROCESSORS)}. {instead}"
        )
    used = _USED | ({"crop_pct"} if stem == "ConvNext" else set())
    if unsupported := sorted(key for key in settings.keys() - used - _IDLE if settings[key]):
        raise ModelError(
            f"{path}: {', '.join(unsupported)} changes images in an unknown way. {instead}"
        )
    all_settings = processor.complete(settings)
    if stem == "ConvNext":
        all_settings.setdefault("crop_pct", 224 / 256)
    needed = ["size"] + ["crop_size"] * bool(all_settings["do_center_crop"])
    needed += ["image_mean", "image_std"] * bool(all_settings["do_normalize"])
    if missing := [key for key in needed if key not in all_settings]:
        raise ModelError(
            f"{path} lacks {', '.join(missing)}. To do: save the image processor again "
            "(save_pretrained), or write model.yaml into its folder."
        )
    channels: Channels = "BGR" if all_settings.pop("do_flip_channel_order") else "RGB"
    recipe = read_transformers(all_settings, "pil")
    if recipe is None or recipe.size is None:
        raise ModelError(f"{path}: its sizes, crop or interpolation cannot be followed. {instead}")
    return Settings(f"{PROCESSOR} of {stem}", recipe, (path,), channels=channels)


def _read_class_names(path: Path, config: Mapping[str, Any]) -> tuple[str, ...]:
    names = config.get("id2label") or {}
    try:
        labels = {int(number): str(name) for number, name in names.items()}
        return tuple(labels[number] for number in range(len(labels)))
    except (AttributeError, KeyError, ValueError) as error:
        raise ModelError(
            f"{path}: id2label has to number the classes from 0 on, each once. To do: correct it."
        ) from error


def _read_json(path: Path) -> dict[str, Any]:
    try:
        settings = decode_json(_read_text(path))
    except ValueError as error:
        raise ModelError(f"{path} is no JSON: {error}.") from error
    if not isinstance(settings, dict):
        raise ModelError(f"{path} holds a {type(settings).__name__}, expected a JSON object.")
    return settings


def _read_text(path: Path) -> str:
    try:
        return read_regular(path).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"{path} cannot be read as UTF-8 text: {error}.") from error


def names_of(files: Sequence[Path], graph: Path) -> dict[str, Path]:
    """Return files by name relative to a graph; parents start with ``../``."""
    folder = graph.parent.absolute()
    paths: dict[str, Path] = {}
    for path in files:
        beside = path.parent.absolute() == folder
        paths[path.name if beside else f"../{path.name}"] = path
    return paths

"""Classifiers stored as ONNX graphs, run by onnxruntime; the prefix ``onnx:``."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.core import Bytes, Floats32, MissingExtraError, ModelError
from equipoise.core.arrays import AnyArray
from equipoise.core.types import Json
from equipoise.models.hub import refuse_revision
from equipoise.models.images import Images, as_rgb
from equipoise.models.info import ModelInfo, one_digest, sha256_of
from equipoise.models.onnx_files import GraphFiles, digests_of, read_files
from equipoise.models.onnx_settings import (
    Layout,
    Settings,
    find_graph,
    labels_path,
    names_of,
    read_labels,
    read_settings,
    settings_files,
    yaml_path,
)
from equipoise.models.preprocessing import PillowPixels, Preparation
from equipoise.models.registry import Options, Preview, adapter
from equipoise.models.runtimes import CPU_BATCH

BYTE_BATCH = 256
"""Images in a call of a graph that takes bytes; those of floats are larger."""

FLOATS = {"tensor(float)": "float32", "tensor(float16)": "float16"}
"""Types of a graph's input, and numpy's names of them."""

NOWHERE = "/nonexistent"


@dataclass(frozen=True)
class ByteInputs:
    """Images as they are, for a graph that scales pixels itself.

    Attributes
    ----------
    path : str
    shape : tuple
        Height, width and channels that the graph was made for; text where any size goes.
    """

    path: str
    shape: tuple[int | str | None, ...]

    def __call__(self, images: Images) -> Bytes:
        """Return uint8 images of the same size, (n, height, width, 3).

        Raises
        ------
        ModelError
            If they have another form.
        """
        if not isinstance(images, np.ndarray):
            arrays = as_rgb(images)
            images = np.stack(arrays) if len({array.shape for array in arrays}) == 1 else arrays[0]
        fits = images.ndim == 4 and _fits(self.shape, images.shape[1:])
        if images.dtype != np.uint8 or not fits:
            raise ModelError(
                f"{self.path} takes uint8 images of one size and shape (n, "
                f"{', '.join(map(str, self.shape))}), got {images.dtype} of shape {images.shape}."
            )
        return images


@dataclass(frozen=True)
class FloatInputs:
    """Images resized, cut and put on a scale, for a graph that takes floats.

    Attributes
    ----------
    prepare : Preparation
    settings : Settings
    layout : {"NCHW", "NHWC"}
    dtype : str
        ``float32`` or ``float16``.
    """

    prepare: Preparation
    settings: Settings
    layout: Layout
    dtype: str

    def __call__(self, images: Images) -> AnyArray:
        """Return the graph's input for images of any sizes."""
        pixels = np.asarray(self.prepare(images)["pixel_values"])
        if self.settings.channels == "BGR":
            pixels = pixels[:, ::-1]
        if self.layout == "NHWC":
            pixels = pixels.transpose(0, 2, 3, 1)
        return pixels.astype(self.dtype)

    @property
    def facts(self) -> dict[str, Json]:
        """How images became tensors, for `ModelInfo.preprocessing`."""
        settings = self.settings
        return {
            "image_processor": settings.source,
            "image_backend": "pil",
            "image_settings": {**asdict(settings.recipe), "channels": settings.channels},
            "layout": self.layout,
            "output": settings.output,
            "probabilities": "sigmoid" if settings.multi_label else "softmax",
        }


@dataclass(frozen=True)
class OnnxClassifier:
    """A graph from images to class probabilities or logits, (n, classes).

    Make one with `load_onnx_classifier`, or `load_model` and ``onnx:path``.

    Attributes
    ----------
    path : str
        Where the graph was read from.
    labels : tuple of str
        Names of the classes, in the order of the graph's output.
    session : onnxruntime.InferenceSession
        The loaded graph.
    batch_size : int
        Images in every call of the graph. The last batch is filled up with zeros, so an image's
        probabilities do not depend on how many others are asked for.
    info : ModelInfo
        What the model is.
    inputs : callable
        From images to the graph's input.
    """

    path: str
    labels: tuple[str, ...]
    session: Any
    batch_size: int
    info: ModelInfo
    inputs: ByteInputs | FloatInputs

    def predict_proba(self, images: Images) -> Floats32:
        """Return class probabilities.

        Parameters
        ----------
        images : ndarray of uint8, shape (n, height, width, 3), or a sequence of n images
            RGB. A graph that takes bytes needs the height and width that it was made for.

        Returns
        -------
        ndarray of float32, shape (n, classes)
            Rows sum to 1, unless each label has a probability of its own. NaN where the graph
            gives NaN.

        Raises
        ------
        ModelError
            If the images are not of that form, or the graph does not answer with one number per
            label.
        """
        scores = self._run(images, 0, len(self.labels))
        if isinstance(self.inputs, ByteInputs) or self.inputs.settings.output == "probabilities":
            return scores
        return _sigmoid(scores) if self.inputs.settings.multi_label else _softmax(scores)

    def features(self, images: Images) -> Floats32:
        """Return the inputs of the last layer: the graph's second output.

        Parameters
        ----------
        images : as for `predict_proba`

        Returns
        -------
        ndarray of float32, shape (n, dimension)

        Raises
        ------
        ModelError
            If the graph has no second output.
        """
        if self.info.dimension is None:
            raise ModelError(
                f"{self.path} has no second output of shape (n, dimension), so it has no "
                "penultimate features. To do: export the graph with them as its second output."
            )
        return self._run(images, 1, self.info.dimension)

    def _run(self, images: Images, output: int, width: int) -> Floats32:
        parts = [np.empty((0, width), dtype=np.float32)]
        name, input_name = (
            self.session.get_outputs()[output].name,
            self.session.get_inputs()[0].name,
        )
        for start in range(0, len(images), self.batch_size):
            part = self.inputs(images[start : start + self.batch_size])
            batch = np.zeros((self.batch_size, *part.shape[1:]), dtype=part.dtype)
            batch[: len(part)] = part
            try:
                (scores,) = self.session.run([name], {input_name: batch})
            except Exception as error:
                raise ModelError(f"{self.path} failed on a batch of images: {error}") from error
            if scores.shape != (self.batch_size, width):
                raise ModelError(
                    f"{self.path} gives an output of shape {scores.shape} for {self.batch_size} "
                    f"images, expected {width} numbers an image, one for each label."
                )
            parts.append(np.asarray(scores[: len(part)], dtype=np.float32))
        return np.concatenate(parts)


def _softmax(logits: Floats32) -> Floats32:
    with np.errstate(invalid="ignore"):  # infinite logits become NaN
        exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(exponentials / exponentials.sum(axis=1, keepdims=True), dtype=np.float32)


def _sigmoid(logits: Floats32) -> Floats32:
    # By tanh, which does not overflow.
    return np.asarray((1 + np.tanh(logits / 2)) / 2, dtype=np.float32)


def _build_preview(target: str) -> Preview:
    graph = find_graph(target)
    try:
        labels = read_labels(graph)
        if not labels and (settings := read_settings(graph)):
            labels = settings.labels
    except ModelError:
        labels = ()
    return Preview("classifier", labels)


def _identify(target: str, _: Options) -> Mapping[str, Json]:
    graph = find_graph(target)
    settings_paths = names_of(settings_files(graph), graph)
    settings = {name: sha256_of(path) for name, path in settings_paths.items()}
    return {"files": {**digests_of(graph), **settings}}


@adapter("onnx", preview=_build_preview, identify=_identify)
def load(target: str, options: Options) -> OnnxClassifier:
    """Load a classifier with the settings and labels in its folder.

    Parameters
    ----------
    target : str
        Path of the graph, or of a folder with one.
    options : Options
        Requested options; the graph runs on the CPU, in its own number type.

    Raises
    ------
    MissingExtraError
        If images have to be resized and Pillow is not installed.
    ModelError
        If a file is missing or holds no classifier, or the options name another device or dtype.
    """
    if options.device not in {"auto", "cpu"} or (
        not {options.dtype, options.backend} <= {"auto", "float32"}
    ):
        raise ModelError(
            "onnx: runs on the CPU as the graph was exported. To do: leave device, dtype and "
            "backend at auto."
        )
    refuse_revision(target, options)
    return load_onnx_classifier(target, name=options.name)


def load_onnx_classifier(
    path: str | Path,
    labels: Sequence[str] | None = None,
    *,
    batch_size: int | None = None,
    name: str | None = None,
) -> OnnxClassifier:
    """Load a classifier from an ONNX file, and the files that it keeps tensors in.

    Parameters
    ----------
    path : str or Path
        A graph with one input and one output (n, classes). Either takes uint8
        (n, height, width, 3) and gives probabilities. Or it takes float32 or float16, and the
        settings beside it say how images become that; see the guide to models. A second output,
        float (n, dimension), is the input of the last layer.
    labels : sequence of str, optional
        Names of the classes, in the order of the output; from the files beside the graph by
        default.
    batch_size : int, optional
        Images in every call of the graph: 256 of bytes, 32 of floats, or what the graph fixes.
    name : str, optional
        Name in `info`; ``onnx:`` and the path by default.

    Returns
    -------
    OnnxClassifier

    Raises
    ------
    MissingExtraError
        If images have to be resized and Pillow is not installed.
    ModelError
        If a file is missing, or the graph or its settings are of another form.
    """
    graph = find_graph(path)
    files = read_files(graph)
    session = _load_session(graph, files)
    inputs, settings_digests = _build_inputs(graph, session, name or f"onnx:{path}")
    if labels is None:
        labels = _read_class_names(graph, inputs)
    _check_outputs(graph, session, len(labels))
    shape, outputs = session.get_inputs()[0].shape, session.get_outputs()
    fixed = shape[0] if isinstance(shape[0], int) else None
    if isinstance(inputs, FloatInputs):
        dtype, size, facts = inputs.dtype, CPU_BATCH, inputs.facts
    else:
        dtype, size, facts = "float32", BYTE_BATCH, {"image_processor": "the graph itself"}
    info = ModelInfo(
        name=name or f"onnx:{path}",
        family="onnx",
        weights_sha256=one_digest(files.digests),
        files={**files.digests, **settings_digests},
        dimension=outputs[1].shape[1] if len(outputs) == 2 else None,
        dtype=dtype,
        backend="onnxruntime",
        preprocessing=facts,
        versions={"onnxruntime": version("onnxruntime")},
    )
    batch = fixed or batch_size or size
    return OnnxClassifier(str(path), tuple(labels), session, batch, info, inputs)


def _load_session(path: Path, files: GraphFiles) -> Any:
    """Load a graph to run on a single CPU thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    # Waiting threads would otherwise spin and take the core from everything else.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # onnxruntime itself opens no file: its content would be missing from the cache key.
    options.add_session_config_entry(
        "session.model_external_initializers_file_folder_path", NOWHERE
    )
    data = [*files.data.values()]
    options.add_external_initializers_from_files_in_memory(
        [*files.data], data, [len(content) for content in data]
    )
    try:
        return onnxruntime.InferenceSession(
            files.graph, sess_options=options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:
        raise ModelError(f"{path} is not a model that onnxruntime can load: {error}") from error


def _build_inputs(
    path: Path, session: Any, name: str
) -> tuple[ByteInputs | FloatInputs, dict[str, str]]:
    """Return the function that prepares a graph's input, and its settings' digests."""
    inputs = session.get_inputs()
    if len(inputs) != 1 or len(inputs[0].shape) != 4:
        shapes = [(graph_input.name, graph_input.type, graph_input.shape) for graph_input in inputs]
        raise ModelError(
            f"{path} has the inputs {shapes}. Expected one input of images, with 4 dimensions. "
            "To do: export a classifier of images."
        )
    kind, shape = inputs[0].type, tuple(inputs[0].shape)
    if kind == "tensor(uint8)":
        if yaml_path(path).is_file():
            raise ModelError(
                f"{path} takes uint8 images and scales them itself, so {yaml_path(path).name} "
                f"would not be used. To do: remove it, and name the classes in "
                f"{labels_path(path).name}."
            )
        return ByteInputs(str(path), shape[1:]), {}
    if kind not in FLOATS:
        raise ModelError(
            f"{path} takes images of the type {kind}. Known are tensor(uint8), "
            f"{' and '.join(FLOATS)}. To do: export it in float32."
        )
    settings = read_settings(path)
    if settings is None:
        raise ModelError(
            f"{path} takes images as {FLOATS[kind]}, and no file describes the preprocessing. "
            "To do: add preprocessor_config.json and config.json to its folder, as optimum writes "
            f"them, or write {yaml_path(path).name} (docs/models.md)."
        )
    try:
        import_module("PIL.Image")
    except ImportError as error:
        raise MissingExtraError("PIL", "images") from error
    layout = _choose_layout(path, shape, settings)
    prepare = Preparation(name, PillowPixels(settings.recipe), settings.recipe)
    settings_paths = names_of(settings.files, path)
    settings_digests = {name: sha256_of(file) for name, file in settings_paths.items()}
    return FloatInputs(prepare, settings, layout, FLOATS[kind]), settings_digests


def _fits(shape: Sequence[int | str | None], sides: Sequence[int]) -> bool:
    """Whether sides are those of a shape; a name or None in it stands for any number."""
    pairs = zip(shape, sides, strict=True)
    return all(not isinstance(size, int) or size == side for size, side in pairs)


def _choose_layout(path: Path, shape: Sequence[int | str | None], settings: Settings) -> Layout:
    """Return the order of the channels, checked against the graph's shape."""
    sides = settings.recipe.size or (0, 0)
    expected: dict[Layout, tuple[int, ...]] = {"NCHW": (3, *sides), "NHWC": (*sides, 3)}
    layouts: list[Layout] = []
    for layout, expected_shape in expected.items():
        if settings.layout in {None, layout} and _fits(shape[1:], expected_shape):
            layouts.append(layout)
    if len(layouts) == 1:
        return layouts[0]
    raise ModelError(
        f"{path} takes images of the shape {[*shape]}, and {settings.source} gives "
        f"{' × '.join(map(str, sides))} pixels, layout {settings.layout or 'not named'}. "
        f"To do: correct the size, or set layout: NCHW or NHWC in {yaml_path(path).name}."
    )


def _read_class_names(path: Path, inputs: ByteInputs | FloatInputs) -> tuple[str, ...]:
    if isinstance(inputs, ByteInputs):
        labels = read_labels(path)
    else:
        labels = inputs.settings.labels or read_labels(path)
    if not labels:
        raise ModelError(
            f"There are no names of classes in {labels_path(path)}. "
            "To do: write one name a line, in the order of the graph's output, or name them by "
            "id2label in config.json or labels in model.yaml."
        )
    return labels


def _check_outputs(path: Path, session: Any, count: int) -> None:
    """Refuse a graph unless it outputs scores of classes, and perhaps features."""
    outputs = session.get_outputs()
    if (
        len(outputs) not in {1, 2}
        or any(len(output.shape) not in {0, 2} for output in outputs)  # 0 where it is not known
        or (len(outputs) == 2 and not isinstance(next(iter(outputs[1].shape[1:]), None), int))
    ):
        shapes = [(output.name, output.type, output.shape) for output in outputs]
        raise ModelError(
            f"{path} has the outputs {shapes}. Expected scores (n, classes), and perhaps features "
            "(n, dimension). To do: export the graph with these alone."
        )
    classes = next(iter(outputs[0].shape[1:]), None)
    if isinstance(classes, int) and classes != count:
        raise ModelError(
            f"{path} gives {classes} numbers an image, and there are {count} names of classes. "
            "To do: name each class once, in the order of the output."
        )

"""Classifiers stored as ONNX graphs, run by onnxruntime; the prefix ``onnx:``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.core import Bytes, Floats32, ModelError
from equipoise.core.files import read_regular
from equipoise.core.types import Json
from equipoise.models.hub import without_revision
from equipoise.models.images import Images, as_rgb
from equipoise.models.info import ModelInfo, digests, one_digest
from equipoise.models.registry import Options, Preview, adapter


@dataclass(frozen=True)
class OnnxClassifier:
    """A graph from uint8 images (n, height, width, 3) to class probabilities (n, classes).

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
        Images in every call of the graph. The last batch is filled up with black images, so an
        image's probabilities do not depend on how many others are asked for.
    info : ModelInfo
        What the model is.
    """

    path: str
    labels: tuple[str, ...]
    session: Any
    batch_size: int
    info: ModelInfo

    def predict_proba(self, images: Images) -> Floats32:
        """Return class probabilities.

        Parameters
        ----------
        images : ndarray of uint8, shape (n, height, width, 3), or a sequence of n images
            RGB, of the height and width that the graph was made for.

        Returns
        -------
        ndarray of float32, shape (n, classes)
            Rows sum to 1.

        Raises
        ------
        ModelError
            If the images are not of that form, or the graph does not answer with one probability
            per label.
        """
        return self._run(images, 0, len(self.labels))

    def features(self, images: Images) -> Floats32:
        """Return what the last layer sees: the graph's second output.

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

    def _stacked(self, images: Images) -> Bytes:
        wanted = self.session.get_inputs()[0].shape[1:]
        if not len(images):
            return np.zeros((0, 1, 1, 3), np.uint8)
        if not isinstance(images, np.ndarray):
            arrays = as_rgb(images)
            images = np.stack(arrays) if len({array.shape for array in arrays}) == 1 else arrays[0]
        fits = images.ndim == 4 and all(
            not isinstance(size, int) or size == side
            for size, side in zip(wanted, images.shape[1:], strict=True)
        )
        if images.dtype != np.uint8 or not fits:
            raise ModelError(
                f"{self.path} takes uint8 images of one size and shape (n, "
                f"{', '.join(map(str, wanted))}), got {images.dtype} of shape {images.shape}."
            )
        return images

    def _run(self, images: Images, output: int, width: int) -> Floats32:
        stacked, parts = self._stacked(images), [np.empty((0, width), dtype=np.float32)]
        name, given = self.session.get_outputs()[output].name, self.session.get_inputs()[0].name
        for start in range(0, len(stacked), self.batch_size):
            part = stacked[start : start + self.batch_size]
            batch = np.zeros((self.batch_size, *part.shape[1:]), dtype=np.uint8)
            batch[: len(part)] = part
            try:
                (scores,) = self.session.run([name], {given: batch})
            except Exception as error:
                raise ModelError(f"{self.path} failed on a batch of images: {error}") from error
            if scores.shape != (self.batch_size, width):
                raise ModelError(
                    f"{self.path} gives an output of shape {scores.shape} for {self.batch_size} "
                    f"images, expected {width} numbers an image, one for each label."
                )
            parts.append(np.asarray(scores[: len(part)], dtype=np.float32))
        return np.concatenate(parts)


def _preview(target: str) -> Preview:
    try:
        lines = read_regular(labels_path(Path(target))).decode("utf-8").splitlines()
    except (OSError, ValueError):
        lines = []
    return Preview("classifier", tuple(name for line in lines if (name := line.strip())))


def _identify(target: str, _: Options) -> Mapping[str, Json] | None:
    path = Path(target)
    if not path.is_file() or not labels_path(path).is_file():
        return None
    return {"files": digests((path, labels_path(path)), path.parent)}


@adapter("onnx", preview=_preview, identify=_identify)
def load(target: str, options: Options) -> OnnxClassifier:
    """Load a classifier whose labels lie beside it, one a line: model.onnx, model.labels.txt.

    Parameters
    ----------
    target : str
        Path of the graph.
    options : Options
        What was asked; it runs on the CPU, in the numbers that the graph is made of.

    Raises
    ------
    ModelError
        If a file is missing or holds no such graph, or another device or dtype was asked for.
    """
    if options.device not in {"auto", "cpu"} or (
        not {options.dtype, options.backend} <= {"auto", "float32"}
    ):
        raise ModelError(
            "onnx: runs on the CPU as the graph was exported. To do: leave device, dtype and "
            "backend at auto."
        )
    without_revision(target, options)
    path = Path(target)
    labels = _preview(target).labels
    if path.is_file() and not labels:
        raise ModelError(
            f"There are no names of classes in {labels_path(path)}. "
            "To do: write one name a line, in the order of the graph's output."
        )
    return load_onnx_classifier(path, labels, name=options.name)


def labels_path(graph: Path) -> Path:
    """Return where the names of a graph's classes lie: model.labels.txt beside model.onnx."""
    return graph.with_suffix(".labels.txt")


def load_onnx_classifier(
    path: str | Path,
    labels: Sequence[str],
    *,
    batch_size: int = 256,
    name: str | None = None,
) -> OnnxClassifier:
    """Load a classifier from an ONNX file.

    Parameters
    ----------
    path : str or Path
        A graph with one input, uint8 (n, height, width, 3), and one output, float (n, classes),
        whose rows sum to 1; any scaling of the pixels is part of the graph. A second output, float
        (n, dimension), is what the last layer sees.
    labels : sequence of str
        Names of the classes, in the order of the output.
    batch_size : int
        Images in every call of the graph.
    name : str, optional
        Name in `info`; ``onnx:`` and the path by default.

    Returns
    -------
    OnnxClassifier

    Raises
    ------
    ModelError
        If the file is missing or holds no such graph.
    """
    import onnxruntime

    graph = Path(path)
    if not graph.is_file():
        raise ModelError(f"There is no model file {path}.")
    files = digests([graph])
    # To run on one thread of the CPU.
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    # Waiting threads would otherwise spin and take the core from everything else.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        # From bytes, no tensor is read of another file, which the key would not hold.
        session = onnxruntime.InferenceSession(
            graph.read_bytes(), sess_options=options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:
        raise ModelError(f"{path} is not a model that onnxruntime can load: {error}") from error
    inputs, outputs = session.get_inputs(), session.get_outputs()
    if (
        len(inputs) != 1
        or len(outputs) not in {1, 2}
        or inputs[0].type != "tensor(uint8)"
        or len(inputs[0].shape) != 4
        or (len(outputs) == 2 and not isinstance(outputs[1].shape[-1], int))
    ):
        shapes = [(each.name, each.type, each.shape) for each in (*inputs, *outputs)]
        raise ModelError(
            f"{path} has the inputs and outputs {shapes}. Expected one input, tensor(uint8) of "
            "shape (n, height, width, 3), probabilities, and perhaps features (n, dimension)."
        )
    info = ModelInfo(
        name=name or f"onnx:{path}",
        family="onnx",
        weights_sha256=one_digest(files),
        files=files,
        dimension=outputs[1].shape[1] if len(outputs) == 2 else None,
        backend="onnxruntime",
        preprocessing={"image_processor": "the graph itself"},
        versions={"onnxruntime": version("onnxruntime")},
    )
    return OnnxClassifier(str(path), tuple(labels), session, batch_size, info)

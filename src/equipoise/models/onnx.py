"""Classifiers stored as ONNX graphs, run by onnxruntime on the CPU."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.core.errors import ModelError


@dataclass(frozen=True)
class OnnxClassifier:
    """A graph from uint8 images (n, height, width, 3) to class probabilities (n, classes).

    Make one with `load_onnx_classifier`.

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
    """

    path: str
    labels: tuple[str, ...]
    session: Any
    batch_size: int

    def predict_proba(self, images: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Return class probabilities.

        Parameters
        ----------
        images : ndarray of uint8, shape (n, height, width, 3)
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
        self._check_images(images)
        scores = np.empty((len(images), len(self.labels)), dtype=np.float32)
        for start in range(0, len(images), self.batch_size):
            part = images[start : start + self.batch_size]
            scores[start : start + len(part)] = self._run(part)[: len(part)]
        return scores

    def _check_images(self, images: NDArray[np.uint8]) -> None:
        wanted = self.session.get_inputs()[0].shape[1:]
        fits = images.ndim == 4 and all(
            not isinstance(size, int) or size == got
            for size, got in zip(wanted, images.shape[1:], strict=True)
        )
        if images.dtype != np.uint8 or not fits:
            raise ModelError(
                f"{self.path} takes uint8 images of shape (n, {', '.join(map(str, wanted))}), "
                f"got {images.dtype} of shape {images.shape}."
            )

    def _run(self, part: NDArray[np.uint8]) -> NDArray[np.float32]:
        batch = np.zeros((self.batch_size, *part.shape[1:]), dtype=np.uint8)
        batch[: len(part)] = part
        try:
            (scores,) = self.session.run(None, {self.session.get_inputs()[0].name: batch})
        except Exception as error:
            raise ModelError(f"{self.path} failed on a batch of images: {error}") from error
        if scores.shape != (self.batch_size, len(self.labels)):
            raise ModelError(
                f"{self.path} gives an output of shape {scores.shape} for {self.batch_size} "
                f"images, expected one number for each of {', '.join(self.labels)}."
            )
        return np.asarray(scores, dtype=np.float32)


def load_onnx_classifier(
    path: str | Path, labels: Sequence[str], *, threads: int = 1, batch_size: int = 256
) -> OnnxClassifier:
    """Load a classifier from an ONNX file.

    Parameters
    ----------
    path : str or Path
        A graph with one input, uint8 (n, height, width, 3), and one output, float (n, classes),
        whose rows sum to 1; any scaling of the pixels is part of the graph.
    labels : sequence of str
        Names of the classes, in the order of the output.
    threads : int
        Threads for one operator. Operators run one after the other.
    batch_size : int
        Images in every call of the graph.

    Returns
    -------
    OnnxClassifier

    Raises
    ------
    ModelError
        If onnxruntime or the file is missing, or the file holds no such graph.
    """
    if threads < 1 or batch_size < 1:
        raise ModelError(
            f"threads and batch_size must be at least 1, got {threads} and {batch_size}."
        )
    if not Path(path).is_file():
        raise ModelError(f"There is no model file {path}.")
    session = _open_session(Path(path), threads)
    model = OnnxClassifier(str(path), tuple(labels), session, batch_size)
    _check_signature(model)
    return model


def _open_session(path: Path, threads: int) -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise ModelError("onnxruntime is not installed. To do: pip install onnxruntime.") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    # Waiting threads would otherwise spin and take the core from everything else.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(
            str(path), sess_options=options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:
        raise ModelError(f"{path} is not a model that onnxruntime can load: {error}") from error


def _check_signature(model: OnnxClassifier) -> None:
    inputs, outputs = model.session.get_inputs(), model.session.get_outputs()
    if len(inputs) != 1 or len(outputs) != 1:
        raise ModelError(
            f"{model.path} has {len(inputs)} inputs and {len(outputs)} outputs, expected one each."
        )
    if inputs[0].type != "tensor(uint8)" or len(inputs[0].shape) != 4:
        raise ModelError(
            f"{model.path} takes {inputs[0].type} of shape {inputs[0].shape}, "
            "expected tensor(uint8) of shape (n, height, width, 3)."
        )

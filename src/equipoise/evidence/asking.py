"""What a model is asked about images, and what of its answers can be kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from equipoise.core.errors import DataError, InputError, ModelError
from equipoise.data.predictions import RANGE_TOLERANCE, SUM_TOLERANCE
from equipoise.models import Answerer, Classifier, DualEncoder, ModelInfo, PairScorer, load_model

Table = Literal["embeddings", "scores", "probabilities", "answers"]

COLUMNS: dict[str, str] = {
    "embeddings": "embedding",
    "scores": "scores",
    "probabilities": "probabilities",
    "answers": "answer",
}
"""The column that holds what the model gave, by table."""


@dataclass(frozen=True)
class RunOptions:
    """How a model is loaded, as `equipoise.models.load_model` takes it."""

    device: str = "auto"
    dtype: str = "auto"
    backend: str = "auto"
    revision: str | None = None
    allow_pickle: bool = False
    trust_remote_code: bool = False

    def load(self, name: str) -> Any:
        """Load a model by name.

        Raises
        ------
        ModelError
            When it cannot be loaded.
        """
        options = asdict(self)
        if self.backend == "auto":
            del options["backend"]
        return load_model(name, **options)


@dataclass(frozen=True)
class Request:
    """What is asked about every image.

    Attributes
    ----------
    table : str
        ``embeddings``, ``scores``, ``probabilities`` or ``answers``.
    texts : tuple of str
        What `scores` are about.
    question : str
        What `answers` answer.
    features : bool
        Whether embeddings are a classifier's features.
    """

    table: Table
    texts: tuple[str, ...] = ()
    question: str = ""
    features: bool = False

    def __post_init__(self) -> None:
        """Check what is asked.

        Raises
        ------
        InputError
            When scores have no texts, or one twice.
        """
        if self.table == "scores" and (not self.texts or len({*self.texts}) < len(self.texts)):
            raise InputError("scores need texts, each once")


@dataclass(frozen=True)
class Asked:
    """A loaded model and what it is asked.

    Attributes
    ----------
    info : ModelInfo
    names : tuple of str
        What the columns of the values are: texts, or labels; () for embeddings and answers.
    call : callable
        From images to values: an array with a row per image, or a list of texts.
    width : int or None
        Length of a row where it is known beforehand.
    table : str
    open : callable
        Called before a part is computed: a model that loads late says here, once, that it cannot.
    """

    info: ModelInfo
    names: tuple[str, ...]
    call: Callable[[Sequence[Any]], Any] = field(repr=False)
    width: int | None
    table: Table
    open: Callable[[], Any] = field(default=lambda: None, repr=False)

    @property
    def batch(self) -> int:
        """Most images given to the model at once: the same on every machine of this kind."""
        return 256 if self.info.device.startswith("cuda") else 32

    def values(self, images: Sequence[Any]) -> np.ndarray[Any, Any]:
        """Return what the model gives for images.

        Returns
        -------
        ndarray of float32, shape (n, width), or of str objects, shape (n,)

        Raises
        ------
        ModelError
            When it is not of the form that its kind of model promises.
        """
        found = self.call(images)
        if self.table == "answers":
            if len(found) != len(images) or not all(isinstance(text, str) for text in found):
                raise FormError(f"{self.info.name} gave {len(found)} answers for {len(images)}.")
            texts = self.empty(len(images))
            texts[:] = [text.encode("utf-8", "replace").decode() for text in found]
            return texts
        values = np.asarray(found, dtype=np.float32)
        wanted = (len(images), *(() if self.width is None else (self.width,)))
        if values.ndim != 2 or values.shape[: len(wanted)] != wanted:
            raise FormError(
                f"{self.info.name} gave an array of shape {values.shape} for {len(images)} images, "
                f"expected ({len(images)}, {self.width or 'dimension'})."
            )
        return values

    def arrow(self, values: np.ndarray[Any, Any]) -> pa.Array:
        """Return values as a column."""
        if self.table == "answers":
            return pa.array(values.tolist(), pa.string())
        flat = pa.array(np.ascontiguousarray(values, dtype=np.float32).ravel())
        return pa.FixedSizeListArray.from_arrays(flat, values.shape[1])

    def stacked(self, values: Sequence[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
        """Return values of several batches as one.

        Raises
        ------
        ModelError
            When their rows are not of one length.
        """
        some = [one for one in values if len(one)]
        if len({one.shape[1:] for one in some}) > 1:
            raise FormError(f"{self.info.name} gave rows of different lengths, expected one.")
        return np.concatenate(some) if some else self.empty()

    def empty(self, images: int = 0) -> np.ndarray[Any, Any]:
        """Return values to be filled."""
        if self.table == "answers":
            return np.empty(images, dtype=object)
        return np.empty((images, self.width or 1), dtype=np.float32)


class FormError(ModelError):
    """A model gave something else than its kind promises: no image is to blame for it."""


def asked(model: Any, request: Request) -> Asked:
    """Return a model with what it is asked.

    Raises
    ------
    ModelError
        When this kind of model cannot be asked that.
    """
    info, table = model.info, request.table
    call: Callable[[Sequence[Any]], Any]
    names: tuple[str, ...] = ()
    width = None
    if table == "embeddings" and isinstance(model, DualEncoder) and not request.features:
        call, width = model.embed_images, info.dimension
    elif table == "embeddings" and isinstance(model, Classifier):
        call, width = model.features, info.dimension
    elif table == "scores" and isinstance(model, PairScorer):
        names = request.texts
        call = lambda images: model.score(images, request.texts)  # noqa: E731
    elif table == "probabilities" and isinstance(model, Classifier):
        call, names = model.predict_proba, tuple(model.labels)
    elif table == "answers" and isinstance(model, Answerer):
        call = lambda images: model.answer(images, request.question)  # noqa: E731
    else:
        raise ModelError(
            f"{info.name} ({info.family}) gives no {table}. To do: name a model of another kind"
        )
    late = getattr(model, "open", lambda: None)
    return Asked(info, names, call, len(names) or width, table, late)


def check_shares(
    info: ModelInfo, labels: Sequence[str], ids: Sequence[str], values: np.ndarray[Any, Any]
) -> None:
    """Refuse rows of a classifier that are no probabilities.

    Parameters
    ----------
    info : ModelInfo
        Where `preprocessing["probabilities"]` is ``sigmoid``, each label has a probability of its
        own, and rows have no sum.
    labels : sequence of m str
    ids : sequence of n str
        Of the images.
    values : ndarray of finite floats, shape (n, m)

    Raises
    ------
    DataError
        For the first image with a number outside [0, 1], or with another sum than 1.
    """
    outside = (values < -RANGE_TOLERANCE) | (values > 1 + RANGE_TOLERANCE)
    if outside.any():
        row, column = (int(index[0]) for index in np.nonzero(outside))
        raise DataError(
            f"{values[row, column]:g} is no probability for image {ids[row]!r}",
            file=info.name,
            column=labels[column],
            expected="a number from 0 to 1",
            fix="return probabilities, not logits or percentages",
        )
    if info.preprocessing.get("probabilities") == "sigmoid":
        return
    sums = values.sum(axis=1, dtype=np.float64)
    wrong = np.flatnonzero(np.abs(sums - 1) > SUM_TOLERANCE)
    if len(wrong):
        row = int(wrong[0])
        raise DataError(
            f"the probabilities for image {ids[row]!r} sum to {sums[row]:.4g}",
            file=info.name,
            expected=f"a sum of 1 within {SUM_TOLERANCE}",
            fix="return a probability for every class, or set preprocessing "
            "{'probabilities': 'sigmoid'} in the model's info where several labels hold at once",
        )

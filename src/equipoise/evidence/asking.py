"""What a model is asked about images, and what of its answers can be kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa

from equipoise.core.errors import InputError, ModelError
from equipoise.evidence.shares import check_shares
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
        more = {} if self.backend == "auto" else {"backend": self.backend}
        return load_model(
            name,
            device=self.device,
            dtype=self.dtype,
            revision=self.revision,
            allow_pickle=self.allow_pickle,
            trust_remote_code=self.trust_remote_code,
            **more,
        )


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
            When the table is unknown, or scores have no texts.
        """
        if self.table not in get_args(Table):
            raise InputError(f"there is no table {self.table!r}; there are {', '.join(COLUMNS)}")
        if self.table == "scores" and (not self.texts or len({*self.texts}) < len(self.texts)):
            raise InputError("scores need texts, each once")


def nothing() -> None:
    """Do nothing: the model is loaded."""


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
    open: Callable[[], Any] = field(default=nothing, repr=False)

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
            return self._texts(found, len(images))
        values = np.asarray(found, dtype=np.float32)
        wanted = (len(images), *(() if self.width is None else (self.width,)))
        if values.ndim != 2 or values.shape[: len(wanted)] != wanted:
            raise FormError(
                f"{self.info.name} gave an array of shape {values.shape} for {len(images)} images, "
                f"expected ({len(images)}, {self.width or 'dimension'})."
            )
        return values

    def check(self, ids: Sequence[str], values: np.ndarray[Any, Any]) -> None:
        """Refuse finite values of images that are not what the table holds.

        Raises
        ------
        DataError
            When a row of `probabilities` is none.
        """
        if self.table == "probabilities":
            check_shares(self.info, self.names, ids, values)

    def _texts(self, found: Any, n: int) -> np.ndarray[Any, Any]:
        if len(found) != n or not all(isinstance(text, str) for text in found):
            raise FormError(f"{self.info.name} gave {len(found)} answers for {n} images.")
        texts = np.empty(n, dtype=object)
        texts[:] = [text.encode("utf-8", "replace").decode() for text in found]
        return texts

    def arrow(self, values: np.ndarray[Any, Any]) -> pa.Array:
        """Return values as a column."""
        if self.table == "answers":
            return pa.array(values.tolist(), pa.string())
        width = values.shape[1]
        flat = pa.array(np.ascontiguousarray(values, dtype=np.float32).ravel())
        return pa.FixedSizeListArray.from_arrays(flat, width)

    def stacked(self, values: Sequence[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
        """Return values of several batches as one.

        Raises
        ------
        ModelError
            When their rows are not of one length.
        """
        held = [one for one in values if len(one)]
        widths = {one.shape[1:] for one in held}
        if len(widths) > 1:
            raise FormError(f"{self.info.name} gave rows of different lengths, expected one.")
        return np.concatenate(held) if held else self.empty()

    def empty(self) -> np.ndarray[Any, Any]:
        """Return values of no image."""
        if self.table == "answers":
            return np.empty(0, dtype=object)
        return np.empty((0, self.width or 1), dtype=np.float32)


class FormError(ModelError):
    """A model gave something else than its kind promises: no image is to blame for it."""


def asked(model: Any, request: Request) -> Asked:
    """Return a model with what it is asked.

    Raises
    ------
    ModelError
        When this kind of model cannot be asked that.
    """
    return replace(_asked(model, request), open=getattr(model, "open", nothing))


def _asked(model: Any, request: Request) -> Asked:
    info, table = model.info, request.table
    if table == "embeddings":
        if isinstance(model, DualEncoder) and not request.features:
            return Asked(info, (), model.embed_images, info.dimension, table)
        if isinstance(model, Classifier):
            return Asked(info, (), model.features, info.dimension, table)
        raise _other(info, "no embeddings", "a dual encoder or a classifier")
    if table == "scores":
        if isinstance(model, PairScorer):
            texts = request.texts
            return Asked(info, texts, lambda i: model.score(i, texts), len(texts), table)
        raise _other(info, "no scores of pairs", "an image-text matching model")
    if table == "probabilities":
        if isinstance(model, Classifier):
            labels = tuple(model.labels)
            return Asked(info, labels, model.predict_proba, len(labels), table)
        raise _other(info, "no probabilities", "a classifier")
    if isinstance(model, Answerer):
        question = request.question
        return Asked(info, (), lambda images: model.answer(images, question), None, table)
    raise _other(info, "no answers", "a model that answers questions")


def _other(info: ModelInfo, lacks: str, wanted: str) -> ModelError:
    return ModelError(f"{info.name} ({info.family}) gives {lacks}. To do: name {wanted}.")

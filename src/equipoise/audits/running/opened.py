"""Models as a run needs them: what they are is known at once, weights are loaded when one runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.audits.running.capability import Offer
from equipoise.core.errors import ModelError
from equipoise.models import Answerer, Classifier, DualEncoder, ModelInfo, PairScorer

Floats = npt.NDArray[np.float32]

PROTOCOLS: Mapping[Offer, type] = MappingProxyType(
    {
        "encoder": DualEncoder,
        "scorer": PairScorer,
        "classifier": Classifier,
        "answerer": Answerer,
    }
)


def offer_of(model: Any) -> Offer | None:
    """Return what a model offers, None of an object that is no model."""
    return next((name for name, kind in PROTOCOLS.items() if isinstance(model, kind)), None)


@dataclass(frozen=True, eq=False)
class Deferred:
    """A model that was loaded before and is loaded again when it has to run.

    Attributes
    ----------
    info : ModelInfo
        What it is: its files are those that it was loaded from.
    load : callable
        Loads it.
    forget : callable
        Called where it is another model now.
    """

    info: ModelInfo
    load: Callable[[], Any] = field(repr=False)
    forget: Callable[[], None] = field(repr=False)

    @cached_property
    def model(self) -> Any:
        """The model, loaded.

        Raises
        ------
        ModelError
            When it is another than it was, though its files are the same.
        """
        found = self.load()
        if found.info.key == self.info.key:
            return found
        self.forget()
        raise ModelError(
            f"{self.info.name} runs otherwise here than where it was run before, though its files "
            "are the same. To do: run the same command again, which starts anew with it"
        )

    def open(self) -> None:
        """Load the model before it runs: what is wrong with it is no fault of an image."""
        _ = self.model

    def release(self) -> None:
        """Let go of the weights; they are loaded again when the model has to run."""
        vars(self).pop("model", None)


class DeferredEncoder(Deferred):
    """A dual encoder."""

    def embed_images(self, images: Sequence[Any]) -> Floats:
        """Return vectors of images, (n, dimension)."""
        return self.model.embed_images(images)  # type: ignore[no-any-return]

    def embed_texts(self, texts: Sequence[str]) -> Floats:
        """Return vectors of texts, (n, dimension)."""
        return self.model.embed_texts(texts)  # type: ignore[no-any-return]


class DeferredScorer(Deferred):
    """A model that scores pairs."""

    def score(self, images: Sequence[Any], texts: Sequence[str]) -> Floats:
        """Return how well images match texts, (n, m)."""
        return self.model.score(images, texts)  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class DeferredClassifier(Deferred):
    """A classifier.

    Attributes
    ----------
    labels : tuple of str
        Names of its classes.
    """

    labels: tuple[str, ...] = ()

    def predict_proba(self, images: Sequence[Any]) -> Floats:
        """Return probabilities of classes, (n, classes)."""
        return self.model.predict_proba(images)  # type: ignore[no-any-return]

    def features(self, images: Sequence[Any]) -> Floats:
        """Return what the last layer sees, (n, dimension)."""
        return self.model.features(images)  # type: ignore[no-any-return]


class DeferredAnswerer(Deferred):
    """A model that answers questions."""

    def answer(self, images: Sequence[Any], question: str) -> list[str]:
        """Return one answer for each image."""
        return self.model.answer(images, question)  # type: ignore[no-any-return]


def rested(model: Any, load: Callable[[], Any]) -> Any:
    """Return a model without its weights in memory, which `load` gives when it has to run."""
    if isinstance(model, Deferred):
        model.release()
        return model
    offer = offer_of(model)
    if offer is None:
        return model
    return deferred(offer, model.info, tuple(getattr(model, "labels", ())), load, _nothing)


def _nothing() -> None:
    """Forget nothing: nothing was written down."""


def deferred(
    offer: Offer,
    info: ModelInfo,
    labels: tuple[str, ...],
    load: Callable[[], Any],
    forget: Callable[[], None],
) -> Deferred:
    """Return a model that is loaded when it has to run."""
    if offer == "classifier":
        return DeferredClassifier(info, load, forget, labels)
    kinds = {"encoder": DeferredEncoder, "scorer": DeferredScorer, "answerer": DeferredAnswerer}
    return kinds[offer](info, load, forget)

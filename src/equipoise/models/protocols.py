"""The four protocols that a model can implement to be audited."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from equipoise.core import Floats32, ModelError
from equipoise.models.images import Images
from equipoise.models.info import ModelInfo


class ServiceError(ModelError):
    """A model can't be used at all now: its server refuses the key, for example.

    No image is to blame for it.

    Attributes
    ----------
    status : int
        That of the server's answer; 0 without one.
    """

    def __init__(self, message: str, *, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class NoAnswer(NamedTuple):
    """Why a model gave no answer about an image.

    Attributes
    ----------
    stage : str
        Where it failed, as in the table of failures.
    reason : str
    """

    stage: str
    reason: str


class ScoredAnswer(NamedTuple):
    """An answer with the log probabilities of its first tokens.

    Attributes
    ----------
    text : str
    log_probabilities : tuple of mapping, or None
        For each of the first tokens, natural log probabilities of the likeliest tokens by their
        text. None where the model gives none.
    """

    text: str
    log_probabilities: tuple[Mapping[str, float], ...] | None


@runtime_checkable
class Model(Protocol):
    """Any model with `info`."""

    @property
    def info(self) -> ModelInfo:
        """Facts that identify the model."""
        ...


@runtime_checkable
class DualEncoder(Model, Protocol):
    """A model with an image tower and a text tower that share a space.

    Attributes
    ----------
    info : ModelInfo
        What it is; `info.scale` and `info.bias` make a logit of a cosine.
    """

    def embed_images(self, images: Images) -> Floats32:
        """Return projected vectors of n images, (n, dimension), not normalised."""
        ...

    def embed_texts(self, texts: Sequence[str]) -> Floats32:
        """Return projected vectors of n texts, (n, dimension), not normalised."""
        ...


@runtime_checkable
class PairScorer(Model, Protocol):
    """A model that sees an image and a text together and says how well they match.

    Attributes
    ----------
    info : ModelInfo
        What it is; `info.scale` makes a logit of a score: 1 where a score is one, None where that
        is not known.
    """

    def score(self, images: Images, texts: Sequence[str]) -> Floats32:
        """Return how well each of n images matches each of m texts.

        Returns
        -------
        ndarray of float32, shape (n, m)
            Higher is better. Logits where the model has them: probabilities near 1 tie.
        """
        ...


@runtime_checkable
class Classifier(Model, Protocol):
    """A model that gives each image a probability per label."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the classes, in the order of the columns of `predict_proba`."""
        ...

    def predict_proba(self, images: Images) -> Floats32:
        """Return class probabilities of n images.

        Returns
        -------
        ndarray of float32, shape (n, classes)
            Rows sum to 1; of a multi-label model each number is a probability of its own.
        """
        ...

    def features(self, images: Images) -> Floats32:
        """Return the inputs of the last layer for n images, (n, dimension)."""
        ...


@runtime_checkable
class Answerer(Model, Protocol):
    """A model that answers a question about an image, or captions it."""

    def answer(self, images: Images, question: str) -> "Sequence[str | NoAnswer]":
        """Return an answer for each image, as the model wrote it, without sampling.

        Parameters
        ----------
        images : n images
        question : str
            The same for all images; empty for a caption, of a model that can.

        Returns
        -------
        sequence of n str or NoAnswer
        """
        ...


@runtime_checkable
class ScoringAnswerer(Answerer, Protocol):
    """An answerer that may give the log probabilities of its first tokens."""

    def answer_with_probabilities(
        self, images: Images, question: str
    ) -> "Sequence[ScoredAnswer | NoAnswer]":
        """Return an answer for each image, with log probabilities where the model gives them."""
        ...


@runtime_checkable
class ConcurrentAnswerer(Answerer, Protocol):
    """An answerer that takes different questions about images at once."""

    def answer_each(
        self, images: Images, questions: Sequence[str], *, probabilities: bool
    ) -> "Sequence[ScoredAnswer | NoAnswer]":
        """Return the answer about each of n images to its own of n questions.

        Parameters
        ----------
        images : n images
        questions : sequence of n str
        probabilities : bool
            Whether to return log probabilities of the first tokens where the model gives them.
        """
        ...


Offer = Literal["encoder", "classifier", "scorer", "answerer"]
"""What a model can do, by the name of its protocol."""

PROTOCOLS: Mapping[Offer, type] = {
    "encoder": DualEncoder,
    "scorer": PairScorer,
    "classifier": Classifier,
    "answerer": Answerer,
}
DESCRIPTIONS: Mapping[Offer, str] = {
    "encoder": "a dual encoder (images and texts in one space)",
    "scorer": "a model that scores pairs of an image and a text",
    "classifier": "a classifier",
    "answerer": "a model that answers questions",
}


def offer_of(model: Model) -> Offer | None:
    """Return the kind of outputs of a model, None for other objects."""
    return next((name for name, kind in PROTOCOLS.items() if isinstance(model, kind)), None)

"""What a kind of audit asks of whoever runs its models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import pyarrow as pa

from equipoise.audits.config_arrays import MADE, ArrayConfig

if TYPE_CHECKING:
    from equipoise.audits.running.config import RunConfig
    from equipoise.evidence.pictures import Pictures
    from equipoise.evidence.prompts import Prompts

Offer = Literal["encoder", "classifier", "scorer", "answerer"]
"""What a model is: it embeds images and texts, names classes, scores pairs, or answers."""

WORDS: Mapping[Offer, str] = {
    "encoder": "a dual encoder (images and texts in one space)",
    "classifier": "a classifier",
    "scorer": "a model that scores pairs of an image and a text",
    "answerer": "a model that answers questions",
}


@dataclass(frozen=True, eq=False)
class Ran:
    """What one model said of one set of images or texts.

    Attributes
    ----------
    model, what : str
        Its name in the configuration; what it ran on: "images", "queries", a table's name.
    table : pyarrow.Table
        A row per image or text without failure: `id`, and `embedding` or `values` (a list of
        float32 each) or `answer`.
    names : tuple of str
        Of the columns of `values`: texts, or labels of a classifier.
    info : mapping
        Of the model, as the manifest keeps it.
    ids : tuple of str
        What it was to run on.
    failures : mapping of str to str
        Stage by id.
    inputs : mapping of str to mapping
        Files of evidence.
    identical : tuple of tuples of str
        The ids that stand for one picture together.
    pending : mapping
        In a plan: how many there are, how many the store has, and what is to be done.
    """

    model: str
    what: str
    table: pa.Table
    info: Mapping[str, Any]
    ids: tuple[str, ...] = field(repr=False)
    names: tuple[str, ...] = ()
    failures: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    identical: tuple[tuple[str, ...], ...] = field(default=(), repr=False)
    pending: Mapping[str, Any] = field(default_factory=dict)

    @property
    def vectors(self) -> ArrayConfig:
        """The vectors, as a section of a configuration names them."""
        table = self.table.replace_schema_metadata(MADE)
        return ArrayConfig(file=table, id="id", column="embedding")


class Runner(Protocol):
    """Runs models, or only rehearses it."""

    @property
    def base(self) -> Path:
        """What relative paths are relative to."""

    def offer(self, name: str, given: RunConfig, *allowed: Offer) -> Offer:
        """Return what a model is.

        Raises
        ------
        ConfigError
            When it is none of what is allowed; it names the key `models.<name>.model`.
        """

    def images(
        self, name: str, given: RunConfig, pictures: Pictures, *, what: str = "images"
    ) -> Ran:
        """Embed images: with a dual encoder, or the features of a classifier."""

    def texts(self, name: str, given: RunConfig, prompts: Prompts, *, what: str = "queries") -> Ran:
        """Embed the names of prompts, each as the mean of the unit vectors of its prompts."""

    def scores(
        self,
        name: str,
        given: RunConfig,
        pictures: Pictures,
        texts: Sequence[str],
        *,
        what: str = "images",
    ) -> Ran:
        """Score each image with each text."""

    def probabilities(
        self,
        name: str,
        given: RunConfig,
        pictures: Pictures,
        *,
        what: str = "images",
        expected: Sequence[str] = (),
    ) -> Ran:
        """Give each image a probability per class; a plan takes the classes `expected`."""

    def answers(
        self,
        name: str,
        given: RunConfig,
        pictures: Pictures,
        question: str,
        *,
        what: str = "images",
    ) -> Ran:
        """Ask about each image."""

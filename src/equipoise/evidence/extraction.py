"""Run a model over pictures once, and keep what it gave: resumable, content-keyed evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypedDict, Unpack

import pyarrow as pa

from equipoise.core.errors import InputError
from equipoise.evidence.asking import Request, RunOptions
from equipoise.evidence.decoding import Decoding
from equipoise.evidence.parts import read_rows
from equipoise.evidence.pictures import Pictures

Progress = Callable[[str, int, int | None], None]
"""Told the step, what is done, and what there is to do."""

ENGINES = ("native", "ray")
# Answers take long.
PART_OF_ANSWERS = 32


@dataclass(frozen=True, eq=False)
class Extraction:
    """What a model gave for a set of images.

    Attributes
    ----------
    folder : Path
        Where it lies: ``<store>/<table>/<key>``.
    parts : tuple of Path
        Its Parquet files, in the order of ids.
    names : tuple of str
        What the numbers of a row of `scores` or `probabilities` are of.
    failures : pyarrow.Table
        `image_id`, `stage` (``read``, ``decode`` or ``model``) and `reason` of each image that
        has no row.
    info : mapping
        What the model is, as the manifest has it.
    inputs : mapping
        The evidence as an input of an audit: `sha256`, `bytes`, `rows`.
    computed : int
        Images the model ran on now; 0 when all was there.
    identical : tuple of tuples of str
        The ids that stand for one picture together: the same bytes, cut the same way. Each keeps
        its row.
    """

    folder: Path
    parts: tuple[Path, ...] = field(repr=False)
    names: tuple[str, ...]
    failures: pa.Table = field(repr=False)
    info: Mapping[str, Any] = field(repr=False)
    inputs: Mapping[str, Mapping[str, Any]]
    computed: int
    identical: tuple[tuple[str, ...], ...] = field(default=(), repr=False)

    @cached_property
    def table(self) -> pa.Table:
        """One row per image without failure, in the order of ids.

        `image_id`, and `embedding`, `scores` or `probabilities` (a fixed-size list of float32) or
        `answer` (a string).

        Raises
        ------
        RunError
            When a part has been damaged since.
        """
        return read_rows(self.parts)


class How(TypedDict, total=False):
    """Settings of an extraction by name; see `Settings`."""

    options: RunOptions
    engine: str
    part: int
    max_failures: float
    decoding: Decoding
    progress: Progress | None


@dataclass(frozen=True)
class Settings:
    """How an extraction is run.

    Attributes
    ----------
    options : RunOptions
        How a model is loaded by its name.
    engine : str
        ``native`` (this machine) or ``ray`` (the cluster that Ray is connected to, or the one
        that RAY_ADDRESS names).
    part : int
        Images in one file: what is done again after a kill.
    max_failures : float
        Largest share of the images that may fail.
    decoding : Decoding
        How pictures become pixels.
    progress : callable or None
        Told the step, the images done, and all of them.
    """

    options: RunOptions = field(default_factory=RunOptions)
    engine: str = "native"
    part: int = 256
    max_failures: float = 0.05
    decoding: Decoding = field(default_factory=Decoding)
    progress: Progress | None = None

    def __post_init__(self) -> None:
        """Check the settings.

        Raises
        ------
        InputError
            When one is out of range.
        """
        if self.engine not in ENGINES:
            raise InputError(f"engine is {self.engine!r}; expected one of {', '.join(ENGINES)}")
        if self.part < 1 or not 0 <= self.max_failures <= 1:
            raise InputError(
                f"part is {self.part} and max_failures {self.max_failures:g}; expected 1 or more, "
                "and a share from 0 to 1"
            )


def extract_embeddings(
    pictures: Pictures, model: Any, store: Path, *, features: bool = False, **how: Unpack[How]
) -> Extraction:
    """Embed images with a dual encoder, or with the features of a classifier.

    What lies in the store for the same images, model, decoding and crops is read; what is missing
    is computed. A killed run loses no part that was finished.

    Parameters
    ----------
    pictures : Pictures
        n images.
    model : str, DualEncoder or Classifier
        A name for `load_model`, or a loaded model (with the native engine).
    store : Path
        Folder of the evidence.
    features : bool
        Take a classifier's features, also of a model that embeds images as well.
    **how
        See `Settings`.

    Returns
    -------
    Extraction
        With `embedding`: float32, as the model gives it, not normalised.

    Raises
    ------
    InputError
        When a setting is out of range.
    ModelError
        When the model cannot be loaded, gives something else, or fails on every image.
    DataError
        When more images fail than `max_failures` allows, or all.
    RunError
        When the store cannot be written, or another process writes it.
    """
    from equipoise.evidence.extracting import extracted

    request = Request("embeddings", features=features)
    return extracted(request, pictures, model, store, Settings(**how))


def extract_scores(
    pictures: Pictures, texts: Sequence[str], model: Any, store: Path, **how: Unpack[How]
) -> Extraction:
    """Score every image with every text by an image-text matching model.

    Parameters
    ----------
    pictures : Pictures
        n images.
    texts : sequence of m str
        Each once.
    model : str or PairScorer
    store : Path
    **how
        See `Settings`; errors as of `extract_embeddings`.

    Returns
    -------
    Extraction
        With `scores`: m probabilities of a match, higher is better.
    """
    from equipoise.evidence.extracting import extracted

    request = Request("scores", texts=tuple(texts))
    return extracted(request, pictures, model, store, Settings(**how))


def extract_probabilities(
    pictures: Pictures, model: Any, store: Path, **how: Unpack[How]
) -> Extraction:
    """Classify images.

    Parameters
    ----------
    pictures : Pictures
        n images.
    model : str or Classifier
    store : Path
    **how
        See `Settings`; errors as of `extract_embeddings`.

    Returns
    -------
    Extraction
        With `probabilities`, one for each of `names`.
    """
    from equipoise.evidence.extracting import extracted

    return extracted(Request("probabilities"), pictures, model, store, Settings(**how))


def extract_answers(
    pictures: Pictures, question: str, model: Any, store: Path, **how: Unpack[How]
) -> Extraction:
    """Ask a question about every image.

    Parameters
    ----------
    pictures : Pictures
        n images.
    question : str
        Empty for a caption, of a model that can.
    model : str or Answerer
    store : Path
    **how
        See `Settings`, but a part has 32 images, since answers take long; errors as of
        `extract_embeddings`.

    Returns
    -------
    Extraction
        With `answer`, as the model wrote it.
    """
    from equipoise.evidence.extracting import extracted

    settings = Settings(**{"part": PART_OF_ANSWERS, **how})  # type: ignore[arg-type]
    return extracted(Request("answers", question=question), pictures, model, store, settings)

"""The labels that a live model predicts: the best classes of each image, or its answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from equipoise.audits.outputs import NOT_YET_KNOWN, Models
from equipoise.core.arrays import AnyArray
from equipoise.core.errors import ConfigError
from equipoise.data import Coded
from equipoise.data.outputs import Choices, Outputs
from equipoise.evidence.zero_shot import Prompts, activation_of, best, prompts, zero_shot

if TYPE_CHECKING:
    from equipoise.audits.predictions.config import ModelConfig
    from equipoise.evidence import Pictures
    from equipoise.models.protocols import Offer

_NEEDS: Mapping[str, str] = MappingProxyType(
    {
        "encoder": "'vocabulary'. To do: list the classes that it chooses between",
        "scorer": "'vocabulary'. To do: list the classes that it chooses between",
        "answerer": "'question'. To do: give what it is asked about each image",
    }
)


def predict_labels(models: Models, name: str, section: ModelConfig, pictures: Pictures) -> Outputs:
    """Run a model, and rank the labels of each image.

    Raises
    ------
    ConfigError
        When the model lacks the vocabulary or the question that it needs.
    """
    capability = models.capability(name, section, *_allowed(section))
    if capability == "classifier":
        return _by_probability(models, name, section, pictures)
    if capability == "answerer":
        return _by_answer(models, name, section, pictures)
    if section.vocabulary is None:
        raise _lacking(name, section, capability)
    words = prompts(section.vocabulary.read(models.base), section.templates)
    ranked = _by_similarity if capability == "encoder" else _by_pair_scores
    return ranked(models, name, section, pictures, words)


def _allowed(section: ModelConfig) -> tuple[Offer, ...]:
    """Return what a model may be able to do, by its section."""
    if section.question is not None:
        return ("answerer",)
    if section.vocabulary is not None:
        return ("encoder", "scorer")
    # The last three only to say what they lack.
    return ("classifier", "encoder", "scorer", "answerer")


def _by_similarity(
    models: Models, name: str, section: ModelConfig, pictures: Pictures, words: Prompts
) -> Outputs:
    """Rank the classes of a vocabulary by a dual encoder's similarities."""
    images = models.embed_images(name, section, pictures)
    classes = models.embed_texts(name, section, words, on="vocabulary")
    if images.planned:
        return _planned(images, words.names, section.k, "vocabulary")
    ranking = zero_shot(
        images.numbers,
        classes.numbers,
        scale=images.info.get("scale") or 1.0,
        bias=images.info.get("bias") or 0.0,
        activation=activation_of(images.info),
        k=section.k,
    )
    return _labels(images, words.names, ranking.top, "vocabulary")


def _by_pair_scores(
    models: Models, name: str, section: ModelConfig, pictures: Pictures, words: Prompts
) -> Outputs:
    """Rank the classes of a vocabulary by the mean score of their texts."""
    scores = models.score_pairs(name, section, pictures, words.texts)
    if scores.planned:
        return _planned(scores, words.names, section.k, "vocabulary")
    column = {text: place for place, text in enumerate(scores.names)}
    values = scores.numbers[:, [column[text] for text in words.texts]]
    sums = np.add.reduceat(values, np.flatnonzero(np.diff(words.owner, prepend=-1)), axis=1)
    means = np.round(sums / np.bincount(words.owner), 12)
    return _labels(scores, words.names, best(means, section.k), "vocabulary")


def _by_probability(models: Models, name: str, section: ModelConfig, pictures: Pictures) -> Outputs:
    """Rank the classifier's own classes."""
    outputs = models.predict(name, section, pictures)
    if outputs.planned:
        return _planned(outputs, outputs.names, section.k, "model")
    return _labels(outputs, outputs.names, best(outputs.numbers, section.k), "model")


def _by_answer(models: Models, name: str, section: ModelConfig, pictures: Pictures) -> Outputs:
    """Take the answers to a question."""
    if section.question is None:
        raise _lacking(name, section, "answerer")
    outputs = models.answer(name, section, pictures, section.question)
    return replace(outputs, source=f"models.{name}.question", rows=len(outputs.ids))


def _lacking(name: str, section: ModelConfig, capability: Offer) -> ConfigError:
    from equipoise.models.protocols import DESCRIPTIONS

    return ConfigError(
        f"models.{name}: {section.called} is {DESCRIPTIONS[capability]} and needs a "
        f"{_NEEDS[capability]}"
    )


def _planned(outputs: Outputs, names: tuple[str, ...], k: int, key: str) -> Outputs:
    """Return the first k names for every image, in place of labels that aren't known yet."""
    k = min(k, len(names) or 1)
    top = np.broadcast_to(np.arange(k), (len(outputs.ids), k))
    choices = Choices(names, k, listed=key == "vocabulary") if names else None
    return _labels(outputs, names or (NOT_YET_KNOWN,), top, key, choices)


def _labels(
    outputs: Outputs,
    names: tuple[str, ...],
    top: AnyArray,
    key: str,
    choices: Choices | None = None,
) -> Outputs:
    """Return outputs as labels by rank, given the places of the best names."""
    # Two classes may share a name, so texts are coded anew.
    codes = Coded.of(pl.Series("", names, dtype=pl.String))
    return replace(
        outputs,
        content="labels",
        source=f"models.{outputs.model}.{key}",
        labels=Coded(codes.codes[top], codes.vocabulary),
        values=None,
        names=(),
        rows=len(outputs.ids),
        choices=choices,
    )

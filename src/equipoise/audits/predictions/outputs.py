"""The labels that a live model predicts: the best classes of each image, or its answer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from equipoise.audits.outputs import NOT_YET_KNOWN, Models, average_prompts
from equipoise.core import AnyArray, ConfigError, Strings
from equipoise.data import Coded
from equipoise.data.labels import Choices, Outputs
from equipoise.evidence.zero_shot import best, prompts, zero_shot
from equipoise.models.protocols import DESCRIPTIONS

if TYPE_CHECKING:
    from equipoise.audits.predictions.config import ModelConfig
    from equipoise.evidence import Pictures


def predict_labels(models: Models, name: str, section: ModelConfig, pictures: Pictures) -> Outputs:
    """Run a model, and rank the labels of each image, or take its answers.

    Raises
    ------
    ConfigError
        When the model lacks the vocabulary or the question that it needs.
    """
    if section.question is not None:
        outputs = models.answer(name, section, pictures, section.question)
        return replace(outputs, source=f"models.{name}.question", rows=len(outputs.ids))
    if section.vocabulary is None:
        # The last three only to say what they lack.
        offer = models.capability(name, section, "classifier", "encoder", "scorer", "answerer")
        if offer != "classifier":
            lacks = "question" if offer == "answerer" else "vocabulary"
            raise ConfigError(
                f"models.{name}: {section.called} is {DESCRIPTIONS[offer]} and needs a {lacks!r}. "
                "To do: give what it is asked about each image, or list the classes that it "
                "chooses between"
            )
        outputs = models.predict(name, section, pictures)
        return _labels(outputs, outputs.names, section.k, "model")
    words, top = prompts(section.vocabulary, section.templates), None
    if models.capability(name, section, "encoder", "scorer") == "encoder":
        outputs = models.embed_images(name, section, pictures)
        classes = models.embed_texts(name, section, words, on="vocabulary")
        if not outputs.planned:
            # Only the order counts, so the scale doesn't.
            top = zero_shot(outputs.numbers, classes.numbers, scale=1.0, k=section.k).top
    else:
        pairs = models.score_pairs(name, section, pictures, words.texts)
        outputs = average_prompts(pairs, words)
    return _labels(outputs, words.names, section.k, "vocabulary", top)


def _labels(
    outputs: Outputs, names: Strings, k: int, key: str, top: AnyArray | None = None
) -> Outputs:
    """Return outputs as labels by rank, given the places of the best names unless scores tell.

    Of a planned run the first k names stand for those that aren't known yet.
    """
    choices = None
    if outputs.planned:
        k = min(k, len(names) or 1)
        top = np.broadcast_to(np.arange(k), (len(outputs.ids), k))
        choices = Choices(names, k, listed=key == "vocabulary") if names else None
    elif top is None:
        top = best(outputs.numbers, k)
    # Two classes may share a name, so texts are coded anew.
    codes = Coded.of(pl.Series("", names or (NOT_YET_KNOWN,), dtype=pl.String))
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

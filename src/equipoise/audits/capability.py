"""What a model can do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Offer = Literal["encoder", "classifier", "scorer", "answerer"]
"""What a model is: it embeds images and texts, names classes, scores pairs, or answers."""

WORDS: Mapping[Offer, str] = {
    "encoder": "a dual encoder (images and texts in one space)",
    "classifier": "a classifier",
    "scorer": "a model that scores pairs of an image and a text",
    "answerer": "a model that answers questions",
}

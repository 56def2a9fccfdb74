"""Filters of generated sets: which complete sets are kept, and what was rejected, image by image.

A filter sees arrays: embeddings, probabilities, labels. Each gives a `Stage` that holds what every
image, pair and set was held against; `Filtered` puts stages in their order.
"""

from equipoise.counterfactuals.filters.attributes import attribute_filter
from equipoise.counterfactuals.filters.candidates import Candidates, candidates_of
from equipoise.counterfactuals.filters.content import content_filter
from equipoise.counterfactuals.filters.filtered import Filtered
from equipoise.counterfactuals.filters.similarity import similarity_filter
from equipoise.counterfactuals.filters.stages import Check, Pairs, Stage
from equipoise.counterfactuals.filters.thresholds import (
    HOWARD_2024,
    Learned,
    learned_threshold,
    learned_thresholds,
)
from equipoise.counterfactuals.filters.writing import write_sets

__all__ = [
    "HOWARD_2024",
    "Candidates",
    "Check",
    "Filtered",
    "Learned",
    "Pairs",
    "Stage",
    "attribute_filter",
    "candidates_of",
    "content_filter",
    "learned_threshold",
    "learned_thresholds",
    "similarity_filter",
    "write_sets",
]

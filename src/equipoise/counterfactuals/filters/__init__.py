"""Filters of generated sets: complete sets that are kept, and rejections image by image.

A filter sees arrays: embeddings, probabilities, labels. Each gives a `Stage` with the check of
every image, pair and set; `Filtered` puts stages in their order.
"""

from equipoise.counterfactuals.filters.candidates import IMAGE, Candidates, candidates_of
from equipoise.counterfactuals.filters.checks import (
    Check,
    Pairs,
    Stage,
    attribute_filter,
    content_filter,
    similarity_filter,
)
from equipoise.counterfactuals.filters.filtered import BEST, Filtered, evidence, write_sets
from equipoise.counterfactuals.filters.thresholds import (
    HOWARD_2024,
    Learned,
    Thresholds,
    learned_threshold,
    learned_thresholds,
    of_combination,
)

__all__ = [
    "BEST",
    "HOWARD_2024",
    "IMAGE",
    "Candidates",
    "Check",
    "Filtered",
    "Learned",
    "Pairs",
    "Stage",
    "Thresholds",
    "attribute_filter",
    "candidates_of",
    "content_filter",
    "evidence",
    "learned_threshold",
    "learned_thresholds",
    "of_combination",
    "similarity_filter",
    "write_sets",
]

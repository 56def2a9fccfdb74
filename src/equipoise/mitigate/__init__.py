"""Recipes that lower a disparity of a model, and the price of each."""

from equipoise.mitigate.augmentation.experiment import augmentation_experiment
from equipoise.mitigate.augmentation.faces import (
    CascadeDetector,
    Faces,
    MixedFaces,
    NoisyFaces,
    Regions,
    cover_region,
    mix_regions,
    noise_region,
    regions_of_columns,
)
from equipoise.mitigate.augmentation.training import Schedule
from equipoise.mitigate.directions import DirectionRemoval, PromptEnsemble, SetShrinkage
from equipoise.mitigate.matching import MatchedPrompts
from equipoise.mitigate.recipe import Recipe
from equipoise.mitigate.running import cross_fit
from equipoise.mitigate.sets import (
    ImageSets,
    Split,
    SubjectTexts,
    Training,
    folds,
    split_subjects,
)
from equipoise.mitigate.trained import Contrastive, TextDistillation

__all__ = [
    "CascadeDetector",
    "Contrastive",
    "DirectionRemoval",
    "Faces",
    "ImageSets",
    "MatchedPrompts",
    "MixedFaces",
    "NoisyFaces",
    "PromptEnsemble",
    "Recipe",
    "Regions",
    "Schedule",
    "SetShrinkage",
    "Split",
    "SubjectTexts",
    "TextDistillation",
    "Training",
    "augmentation_experiment",
    "cover_region",
    "cross_fit",
    "folds",
    "mix_regions",
    "noise_region",
    "regions_of_columns",
    "split_subjects",
]

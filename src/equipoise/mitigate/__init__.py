"""What lowers a disparity of a model, and what that costs."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from equipoise.mitigate.augmentation.datasets import Faces, MixedFaces, NoisyFaces
    from equipoise.mitigate.augmentation.detectors import CascadeDetector, YuNetDetector
    from equipoise.mitigate.augmentation.experiment import augmentation_experiment
    from equipoise.mitigate.augmentation.mixing import cover_region, mix_regions, noise_region
    from equipoise.mitigate.augmentation.regions import Regions, regions_of_columns
    from equipoise.mitigate.augmentation.training import Schedule
    from equipoise.mitigate.contrastive import Contrastive
    from equipoise.mitigate.crossfit import cross_fit
    from equipoise.mitigate.distillation import TextDistillation
    from equipoise.mitigate.ensembling import PromptEnsemble
    from equipoise.mitigate.projection import DirectionRemoval
    from equipoise.mitigate.recipe import Recipe, Training
    from equipoise.mitigate.sets import ImageSets, Pairs, SubjectTexts
    from equipoise.mitigate.shrinkage import SetShrinkage
    from equipoise.mitigate.split import Split, check_split, folds, split_subjects

_HOMES = {
    "CascadeDetector": "augmentation.detectors",
    "Contrastive": "contrastive",
    "DirectionRemoval": "projection",
    "Faces": "augmentation.datasets",
    "ImageSets": "sets",
    "MixedFaces": "augmentation.datasets",
    "NoisyFaces": "augmentation.datasets",
    "Pairs": "sets",
    "PromptEnsemble": "ensembling",
    "Recipe": "recipe",
    "Regions": "augmentation.regions",
    "Schedule": "augmentation.training",
    "SetShrinkage": "shrinkage",
    "Split": "split",
    "SubjectTexts": "sets",
    "TextDistillation": "distillation",
    "Training": "recipe",
    "YuNetDetector": "augmentation.detectors",
    "augmentation_experiment": "augmentation.experiment",
    "check_split": "split",
    "cover_region": "augmentation.mixing",
    "cross_fit": "crossfit",
    "folds": "split",
    "mix_regions": "augmentation.mixing",
    "noise_region": "augmentation.mixing",
    "regions_of_columns": "augmentation.regions",
    "split_subjects": "split",
}

__all__ = [
    "CascadeDetector",
    "Contrastive",
    "DirectionRemoval",
    "Faces",
    "ImageSets",
    "MixedFaces",
    "NoisyFaces",
    "Pairs",
    "PromptEnsemble",
    "Recipe",
    "Regions",
    "Schedule",
    "SetShrinkage",
    "Split",
    "SubjectTexts",
    "TextDistillation",
    "Training",
    "YuNetDetector",
    "augmentation_experiment",
    "check_split",
    "cover_region",
    "cross_fit",
    "folds",
    "mix_regions",
    "noise_region",
    "regions_of_columns",
    "split_subjects",
]


def __getattr__(name: str) -> Any:
    """Load each part on first use: texts need no torch, and a plan needs no model."""
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'equipoise.mitigate' has no attribute {name!r}")
    return getattr(import_module(f"equipoise.mitigate.{_HOMES[name]}"), name)

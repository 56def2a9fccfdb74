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
    from equipoise.mitigate.matching import MatchedPrompts
    from equipoise.mitigate.neurons.choosing import choose_units, random_units
    from equipoise.mitigate.neurons.measures import Trial, compare_models
    from equipoise.mitigate.neurons.recording import Recording, record_units
    from equipoise.mitigate.neurons.searching import Found, find_units
    from equipoise.mitigate.neurons.selectivity import Selectivity, selectivity
    from equipoise.mitigate.neurons.sweeping import sweep_units
    from equipoise.mitigate.projection import DirectionRemoval
    from equipoise.mitigate.recipe import Recipe, Training
    from equipoise.mitigate.sets import ImageSets, Pairs, SubjectTexts
    from equipoise.mitigate.shrinkage import SetShrinkage
    from equipoise.mitigate.split import Split, check_split, folds, split_subjects
    from equipoise.models.edits import UnitEdit, edited, read_edit

_HOMES = {
    "CascadeDetector": "augmentation.detectors",
    "Contrastive": "contrastive",
    "DirectionRemoval": "projection",
    "Faces": "augmentation.datasets",
    "Found": "neurons.searching",
    "ImageSets": "sets",
    "MatchedPrompts": "matching",
    "MixedFaces": "augmentation.datasets",
    "NoisyFaces": "augmentation.datasets",
    "Pairs": "sets",
    "PromptEnsemble": "ensembling",
    "Recipe": "recipe",
    "Recording": "neurons.recording",
    "Regions": "augmentation.regions",
    "Schedule": "augmentation.training",
    "Selectivity": "neurons.selectivity",
    "SetShrinkage": "shrinkage",
    "Split": "split",
    "SubjectTexts": "sets",
    "TextDistillation": "distillation",
    "Training": "recipe",
    "Trial": "neurons.measures",
    "UnitEdit": "neurons",
    "YuNetDetector": "augmentation.detectors",
    "augmentation_experiment": "augmentation.experiment",
    "check_split": "split",
    "choose_units": "neurons.choosing",
    "compare_models": "neurons.measures",
    "cover_region": "augmentation.mixing",
    "cross_fit": "crossfit",
    "edited": "neurons",
    "find_units": "neurons.searching",
    "folds": "split",
    "mix_regions": "augmentation.mixing",
    "noise_region": "augmentation.mixing",
    "random_units": "neurons.choosing",
    "read_edit": "neurons",
    "record_units": "neurons.recording",
    "regions_of_columns": "augmentation.regions",
    "selectivity": "neurons.selectivity",
    "split_subjects": "split",
    "sweep_units": "neurons.sweeping",
}

__all__ = [
    "CascadeDetector",
    "Contrastive",
    "DirectionRemoval",
    "Faces",
    "Found",
    "ImageSets",
    "MatchedPrompts",
    "MixedFaces",
    "NoisyFaces",
    "Pairs",
    "PromptEnsemble",
    "Recipe",
    "Recording",
    "Regions",
    "Schedule",
    "Selectivity",
    "SetShrinkage",
    "Split",
    "SubjectTexts",
    "TextDistillation",
    "Training",
    "Trial",
    "UnitEdit",
    "YuNetDetector",
    "augmentation_experiment",
    "check_split",
    "choose_units",
    "compare_models",
    "cover_region",
    "cross_fit",
    "edited",
    "find_units",
    "folds",
    "mix_regions",
    "noise_region",
    "random_units",
    "read_edit",
    "record_units",
    "regions_of_columns",
    "selectivity",
    "split_subjects",
    "sweep_units",
]


def __getattr__(name: str) -> Any:
    """Load each part on first use: texts need no torch, and a plan needs no model."""
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'equipoise.mitigate' has no attribute {name!r}")
    return getattr(import_module(f"equipoise.mitigate.{_HOMES[name]}"), name)

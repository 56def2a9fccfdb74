"""What lowers a disparity of a model, and what that costs."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    "Contrastive": "contrastive",
    "DirectionRemoval": "projection",
    "ImageSets": "sets",
    "Pairs": "sets",
    "PromptEnsemble": "ensembling",
    "Recipe": "recipe",
    "SetShrinkage": "shrinkage",
    "Split": "split",
    "SubjectTexts": "sets",
    "TextDistillation": "distillation",
    "Training": "recipe",
    "check_split": "split",
    "cross_fit": "crossfit",
    "folds": "split",
    "split_subjects": "split",
}

__all__ = [
    "Contrastive",
    "DirectionRemoval",
    "ImageSets",
    "Pairs",
    "PromptEnsemble",
    "Recipe",
    "SetShrinkage",
    "Split",
    "SubjectTexts",
    "TextDistillation",
    "Training",
    "check_split",
    "cross_fit",
    "folds",
    "split_subjects",
]


def __getattr__(name: str) -> Any:
    """Load each part on first use: texts need no torch, and a plan needs no model."""
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'equipoise.mitigate' has no attribute {name!r}")
    return getattr(import_module(f"equipoise.mitigate.{_HOMES[name]}"), name)

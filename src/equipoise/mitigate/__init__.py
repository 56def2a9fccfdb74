"""Recipes that lower a disparity, with their costs."""

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
from equipoise.mitigate.closed_form import MatchedPrompts, PromptEnsemble
from equipoise.mitigate.generated import GeneratedTest
from equipoise.mitigate.neurons.choosing import (
    Components,
    association_parts,
    choose_units,
    find_directions,
    find_heads,
    find_units,
    random_units,
    sweep_units,
)
from equipoise.mitigate.neurons.heads import Decomposition, decompose
from equipoise.mitigate.neurons.recording import Recording, read_dictionary, record_units
from equipoise.mitigate.neurons.selectivity import Selectivity, selectivity
from equipoise.mitigate.prompting import BalancedPrompts, LearnedPrompt
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
from equipoise.mitigate.subspace import SubspaceProjection, find_subspace
from equipoise.mitigate.trained import Contrastive
from equipoise.mitigate.training import Schedule
from equipoise.mitigate.trials import Trial, compare_models
from equipoise.models.edits import UnitEdit, edited, read_edit

__all__ = [
    "BalancedPrompts",
    "CascadeDetector",
    "Components",
    "Contrastive",
    "Decomposition",
    "Faces",
    "GeneratedTest",
    "ImageSets",
    "LearnedPrompt",
    "MatchedPrompts",
    "MixedFaces",
    "NoisyFaces",
    "PromptEnsemble",
    "Recipe",
    "Recording",
    "Regions",
    "Schedule",
    "Selectivity",
    "Split",
    "SubjectTexts",
    "SubspaceProjection",
    "Training",
    "Trial",
    "UnitEdit",
    "association_parts",
    "augmentation_experiment",
    "choose_units",
    "compare_models",
    "cover_region",
    "cross_fit",
    "decompose",
    "edited",
    "find_directions",
    "find_heads",
    "find_subspace",
    "find_units",
    "folds",
    "mix_regions",
    "noise_region",
    "random_units",
    "read_dictionary",
    "read_edit",
    "record_units",
    "regions_of_columns",
    "selectivity",
    "split_subjects",
    "sweep_units",
]

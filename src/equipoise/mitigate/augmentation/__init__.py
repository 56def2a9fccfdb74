"""Training images whose faces are mixed or covered, and their effect on a classifier."""

from equipoise.mitigate.augmentation.experiment import ARMS, Experiment, augmentation_experiment
from equipoise.mitigate.augmentation.faces import (
    CascadeDetector,
    Faces,
    MixedFaces,
    NoisyFaces,
    PlainFaces,
    Regions,
    YuNetDetector,
    cover_region,
    mix_regions,
    noise_region,
    regions_of_columns,
)
from equipoise.mitigate.augmentation.training import Schedule

__all__ = [
    "ARMS",
    "CascadeDetector",
    "Experiment",
    "Faces",
    "MixedFaces",
    "NoisyFaces",
    "PlainFaces",
    "Regions",
    "Schedule",
    "YuNetDetector",
    "augmentation_experiment",
    "cover_region",
    "mix_regions",
    "noise_region",
    "regions_of_columns",
]

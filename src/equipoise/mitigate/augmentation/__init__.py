"""Training images whose faces are mixed or covered, and what that does to a classifier."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from equipoise.mitigate.augmentation.datasets import Faces, MixedFaces, NoisyFaces, PlainFaces
    from equipoise.mitigate.augmentation.detectors import CascadeDetector, YuNetDetector
    from equipoise.mitigate.augmentation.experiment import ARMS, Schedule, augmentation_experiment
    from equipoise.mitigate.augmentation.mixing import cover_region, mix_regions, noise_region
    from equipoise.mitigate.augmentation.regions import Regions, regions_of_columns

_HOMES = {
    "ARMS": "experiment",
    "CascadeDetector": "detectors",
    "Faces": "datasets",
    "MixedFaces": "datasets",
    "NoisyFaces": "datasets",
    "PlainFaces": "datasets",
    "Regions": "regions",
    "Schedule": "experiment",
    "YuNetDetector": "detectors",
    "augmentation_experiment": "experiment",
    "cover_region": "mixing",
    "mix_regions": "mixing",
    "noise_region": "mixing",
    "regions_of_columns": "regions",
}

__all__ = [
    "ARMS",
    "CascadeDetector",
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


def __getattr__(name: str) -> Any:
    """Load each part on first use: mixing faces needs no torch."""
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'equipoise.mitigate.augmentation' has no attribute {name!r}")
    return getattr(import_module(f"equipoise.mitigate.augmentation.{_HOMES[name]}"), name)

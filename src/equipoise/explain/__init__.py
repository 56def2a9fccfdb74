"""Where a model looks: class activation maps, over images and inside regions."""

from equipoise.explain.maps import METHODS, ActivationMaps, activation_maps
from equipoise.explain.questions import maps_and_falls

__all__ = ["METHODS", "ActivationMaps", "activation_maps", "maps_and_falls"]

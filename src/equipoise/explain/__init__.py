"""Where a model looks: class activation maps, over images and inside regions."""

from equipoise.explain.maps import METHODS, ActivationMaps, activation_maps

__all__ = ["METHODS", "ActivationMaps", "activation_maps"]

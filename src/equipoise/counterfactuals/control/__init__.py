"""Prompt-to-Prompt: attention maps shared by the images of a set while they are made."""

from equipoise.counterfactuals.control.attention import SharedAttention
from equipoise.counterfactuals.control.sets import ControlledSet, generate_controlled

__all__ = ["ControlledSet", "SharedAttention", "generate_controlled"]

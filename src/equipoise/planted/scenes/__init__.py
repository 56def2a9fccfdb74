"""Scenes of glyphs with a hue and a frame: CLIP models with planted associations, and without."""

from equipoise.planted.scenes.embed import WEIGHTS, load_clip
from equipoise.planted.scenes.render import degrade
from equipoise.planted.scenes.sets import render_balanced, render_sets
from equipoise.planted.scenes.variants import BIASED

__all__ = ["BIASED", "WEIGHTS", "degrade", "load_clip", "render_balanced", "render_sets"]

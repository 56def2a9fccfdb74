"""Scenes of glyphs with a hue and a frame: CLIP models with planted associations, and without."""

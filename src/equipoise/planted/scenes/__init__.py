"""Scenes of glyphs with a hue and a frame: CLIP models with planted associations, and without."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from equipoise.planted.scenes.captions import (
        attributed_prompts,
        caption,
        draw_captions,
        neutral_prompts,
    )
    from equipoise.planted.scenes.embed import (
        WEIGHTS,
        embed_images,
        load_clip,
        load_cnn,
        load_vit,
        neutral_queries,
    )
    from equipoise.planted.scenes.measure import accuracies, find_preferences
    from equipoise.planted.scenes.render import FRAMES, HUES, SUBJECTS, degrade
    from equipoise.planted.scenes.sets import Scenes, render_balanced, render_sets
    from equipoise.planted.scenes.variants import (
        BIASED,
        NULL,
        START,
        World,
        make_world,
        make_worlds,
    )

_HOMES = {
    "BIASED": "variants",
    "FRAMES": "render",
    "HUES": "render",
    "NULL": "variants",
    "START": "variants",
    "SUBJECTS": "render",
    "Scenes": "sets",
    "WEIGHTS": "embed",
    "World": "variants",
    "accuracies": "measure",
    "attributed_prompts": "captions",
    "caption": "captions",
    "degrade": "render",
    "draw_captions": "captions",
    "embed_images": "embed",
    "find_preferences": "measure",
    "load_clip": "embed",
    "load_cnn": "embed",
    "load_vit": "embed",
    "make_world": "variants",
    "make_worlds": "variants",
    "neutral_prompts": "captions",
    "neutral_queries": "embed",
    "render_balanced": "sets",
    "render_sets": "sets",
}

__all__ = [
    "BIASED",
    "FRAMES",
    "HUES",
    "NULL",
    "START",
    "SUBJECTS",
    "WEIGHTS",
    "Scenes",
    "World",
    "accuracies",
    "attributed_prompts",
    "caption",
    "degrade",
    "draw_captions",
    "embed_images",
    "find_preferences",
    "load_clip",
    "load_cnn",
    "load_vit",
    "make_world",
    "make_worlds",
    "neutral_prompts",
    "neutral_queries",
    "render_balanced",
    "render_sets",
]


def __getattr__(name: str) -> Any:
    """Load each part on first use: drawing images needs no metric and no model."""
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'equipoise.planted.scenes' has no attribute {name!r}")
    return getattr(import_module(f"equipoise.planted.scenes.{_HOMES[name]}"), name)

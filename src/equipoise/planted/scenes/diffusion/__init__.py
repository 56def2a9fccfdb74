"""A small Stable Diffusion of the scenes, whose neutral prompts have planted hues and frames."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from equipoise.planted.scenes.diffusion.judge import Shown, judge
    from equipoise.planted.scenes.diffusion.measure import neutral_hues, told_prompts, told_rates
    from equipoise.planted.scenes.diffusion.pipeline import WEIGHTS, generate, load_pipeline

_HOMES = {
    "WEIGHTS": "pipeline",
    "Shown": "judge",
    "generate": "pipeline",
    "judge": "judge",
    "load_pipeline": "pipeline",
    "neutral_hues": "measure",
    "told_prompts": "measure",
    "told_rates": "measure",
}

__all__ = [
    "WEIGHTS",
    "Shown",
    "generate",
    "judge",
    "load_pipeline",
    "neutral_hues",
    "told_prompts",
    "told_rates",
]


def __getattr__(name: str) -> Any:
    """Load each part on first use."""
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(
            f"module 'equipoise.planted.scenes.diffusion' has no attribute {name!r}"
        )
    return getattr(import_module(f"equipoise.planted.scenes.diffusion.{_HOMES[name]}"), name)

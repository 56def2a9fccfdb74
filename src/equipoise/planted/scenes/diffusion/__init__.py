"""A small Stable Diffusion of the scenes, whose neutral prompts have planted hues and frames."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from equipoise.planted.scenes.diffusion.judging import Shown, judge
    from equipoise.planted.scenes.diffusion.measure import (
        distance_from_parity,
        find_associations,
        leave_open,
        tell,
        told_prompts,
    )
    from equipoise.planted.scenes.diffusion.pipeline import (
        WEIGHTS,
        generate,
        load_generator,
        load_pipeline,
    )

_HOMES = {
    "WEIGHTS": "pipeline",
    "Shown": "judging",
    "distance_from_parity": "measure",
    "find_associations": "measure",
    "generate": "pipeline",
    "judge": "judging",
    "load_generator": "pipeline",
    "load_pipeline": "pipeline",
    "leave_open": "measure",
    "tell": "measure",
    "told_prompts": "measure",
}

__all__ = [
    "WEIGHTS",
    "Shown",
    "distance_from_parity",
    "find_associations",
    "generate",
    "judge",
    "leave_open",
    "load_generator",
    "load_pipeline",
    "tell",
    "told_prompts",
]


def __getattr__(name: str) -> Any:
    """Load each part on first use."""
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(
            f"module 'equipoise.planted.scenes.diffusion' has no attribute {name!r}"
        )
    return getattr(import_module(f"equipoise.planted.scenes.diffusion.{_HOMES[name]}"), name)

"""Generated images that differ only in social attributes, and their filters."""

from typing import TYPE_CHECKING, Any

from equipoise.counterfactuals.captions import (
    CaptionSets,
    caption_sets,
    howard_2024,
    neutral_prompts,
)

if TYPE_CHECKING:
    from equipoise.counterfactuals.generation import (
        GenerationSettings,
        Planned,
        generate,
        generate_prompts,
        generate_sets,
        plan,
    )
    from equipoise.counterfactuals.parts import (
        Generated,
        export_images,
        read_generated,
        request_captions,
        request_prompts,
    )

__all__ = [
    "CaptionSets",
    "Generated",
    "GenerationSettings",
    "Planned",
    "caption_sets",
    "export_images",
    "generate",
    "generate_prompts",
    "generate_sets",
    "howard_2024",
    "neutral_prompts",
    "plan",
    "read_generated",
    "request_captions",
    "request_prompts",
]


def __getattr__(name: str) -> Any:
    """Load the generation of images on first use: captions need none of it."""
    if name not in __all__:
        raise AttributeError(f"module 'equipoise.counterfactuals' has no attribute {name!r}")
    from equipoise.counterfactuals import generation, parts

    return getattr(parts if hasattr(parts, name) else generation, name)

"""Images that differ in social attributes alone: from captions to sets that can be probed."""

from typing import TYPE_CHECKING, Any

from equipoise.counterfactuals.captions import CaptionSets, caption_sets, howard_2024

if TYPE_CHECKING:
    from equipoise.counterfactuals.generating import (
        Generated,
        generate_prompts,
        generate_sets,
        read_generated,
    )

_GENERATING = ("Generated", "generate_prompts", "generate_sets", "read_generated")

__all__ = [
    "CaptionSets",
    "Generated",
    "caption_sets",
    "generate_prompts",
    "generate_sets",
    "howard_2024",
    "read_generated",
]


def __getattr__(name: str) -> Any:
    """Load what makes images on first use: captions need none of it."""
    if name not in _GENERATING:
        raise AttributeError(f"module 'equipoise.counterfactuals' has no attribute {name!r}")
    from equipoise.counterfactuals import generating

    return getattr(generating, name)

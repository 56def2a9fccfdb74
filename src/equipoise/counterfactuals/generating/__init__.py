"""Images of prompts and of caption sets: made once, kept on disk, resumed where they stopped."""

from equipoise.counterfactuals.generating.generation import (
    Planned,
    generate_prompts,
    generate_sets,
    plan_prompts,
    plan_sets,
)
from equipoise.counterfactuals.generating.reading import Generated, export_images, read_generated

__all__ = [
    "Generated",
    "Planned",
    "export_images",
    "generate_prompts",
    "generate_sets",
    "plan_prompts",
    "plan_sets",
    "read_generated",
]

"""Images of prompts and of caption sets: made once, kept on disk, resumed where they stopped."""

from equipoise.counterfactuals.generating.exporting import export_images
from equipoise.counterfactuals.generating.generated import Generated
from equipoise.counterfactuals.generating.generation import generate_prompts, generate_sets
from equipoise.counterfactuals.generating.planning import Planned, plan_prompts, plan_sets
from equipoise.counterfactuals.generating.reading import read_generated

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

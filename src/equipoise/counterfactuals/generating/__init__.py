"""Images of prompts and of caption sets: made once, kept on disk, resumed where they stopped."""

from equipoise.counterfactuals.generating.generated import Generated
from equipoise.counterfactuals.generating.generation import generate_prompts, generate_sets
from equipoise.counterfactuals.generating.reading import read_generated

__all__ = ["Generated", "generate_prompts", "generate_sets", "read_generated"]

"""The prefix ``equipoise:`` of generators that balance neutral prompts."""

from collections.abc import Sequence
from dataclasses import dataclass

from equipoise.core import Floats32, ModelError
from equipoise.models.diffusers import DiffusersGenerator
from equipoise.models.generators import ImageGenerator, Sampling
from equipoise.models.images import Image
from equipoise.models.info import ModelInfo
from equipoise.models.protocols import NoAnswer
from equipoise.models.registry import Options, adapter
from equipoise.models.wrapped import Draws, open_wrapped, preview, word_pattern


@dataclass(frozen=True)
class BalancedGenerator:
    """A generator that draws attribute values for neutral prompts, image by image.

    Attributes
    ----------
    info : ModelInfo
    base : ImageGenerator
    draws : Draws
    shifts : ndarray of float32, shape (combinations, 1, dimension), optional
        See `Wrapping`.
    """

    info: ModelInfo
    base: ImageGenerator
    draws: Draws
    shifts: Floats32 | None = None

    def generate(
        self, prompts: Sequence[str], *, seeds: Sequence[int], sampling: Sampling
    ) -> Sequence[Image | NoAnswer | None]:
        """Make an image for each prompt; noise and draw depend only on its seed.

        Raises
        ------
        ModelError
            As the base; or embeddings are moved, and it is no Stable Diffusion 1.x or 2.x.
        """
        draws, shifts = self.draws, self.shifts
        texts = [*map(draws.text, prompts, seeds)]
        if shifts is None and draws.strength == 1.0:
            return self.base.generate(texts, seeds=seeds, sampling=sampling)
        base = embedding_generator(self.base)
        vectors = base.embed_prompts(prompts)
        if shifts is None:
            moves = draws.strength * (base.embed_prompts(texts) - vectors)
        else:
            value_pattern = word_pattern(draws.values)
            rows = shifts[[*map(draws.place, seeds)]]
            rows[[bool(value_pattern.search(prompt)) for prompt in prompts]] = 0.0
            moves = vectors.new_tensor(rows)
        return base.generate(prompts, seeds=seeds, sampling=sampling, embedded=vectors + moves)


def embedding_generator(model: ImageGenerator) -> DiffusersGenerator:
    """Return a generator that takes embeddings of prompts.

    Raises
    ------
    ModelError
        If it is no Stable Diffusion 1.x or 2.x.
    """
    if isinstance(model, DiffusersGenerator) and model.info.family == "StableDiffusionPipeline":
        return model
    raise ModelError(
        f"{model.info.name} ({model.info.family}) takes no embeddings of prompts here. To do: use "
        "Stable Diffusion 1.x or 2.x, or balanced_prompts with strength: 1."
    )


@adapter("equipoise", makes_images=True, preview=preview)
def load(target: str, options: Options) -> BalancedGenerator:
    """Load a generator that a recipe balanced.

    Raises
    ------
    ModelError
        As of a dual encoder of this prefix.
    """
    base, wrapping, info = open_wrapped(target, options, makes_images=True)
    if wrapping.draws is None:
        raise ModelError(f"{options.name} says nothing of a model that makes images.")
    return BalancedGenerator(info, base, wrapping.draws, wrapping.shifts)

"""Recipes for generators: neutral prompts lean to a value of each attribute, drawn by image."""

from dataclasses import replace
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from equipoise.core import InputError, Progress
from equipoise.mitigate.closed_form import ensemble_of
from equipoise.mitigate.recipe import WrappedRecipe
from equipoise.mitigate.sets import Training
from equipoise.models.balanced import Balance, embedding_generator
from equipoise.models.generators import ImageGenerator
from equipoise.models.wrapped import Said


class BalancedPrompts(WrappedRecipe):
    """Neutral prompts moved towards a caption that names values drawn in equal shares.

    The draw is a function of an image's seed. Templates of prompts and captions come from the
    training subjects, and hold for any other; nothing is trained.

    Attributes
    ----------
    name : str
    strength : float
        How far the embedding of the prompt moves towards that of the caption. 1: the caption takes
        its place, in any generator; others need Stable Diffusion 1.x or 2.x.
    """

    makes_images: ClassVar[bool] = True
    recipe: Literal["balanced_prompts"] = "balanced_prompts"
    name: str = "balanced_prompts"
    strength: Annotated[float, Field(gt=0, le=2, strict=False)] = 1.0

    def _wrapping(self, base: ImageGenerator, training: Training, _: Progress | None) -> Balance:
        if self.strength != 1.0:
            embedding_generator(base)
        return replace(balance_of(training), strength=self.strength)


def balance_of(training: Training) -> Balance:
    """Return the captions of each combination of values, as templates.

    Raises
    ------
    InputError
        When captions of the training subjects name fewer than two combinations.
    """
    named = {tuple(sorted(row.items())) for own in training.texts for row in own.values}
    combinations = [
        Said(
            ", ".join(value for _, value in values),
            ensemble_of([
                replace(own, attributed=tuple(
                    text for text, row in zip(own.attributed, own.values, strict=True)
                    if tuple(sorted(row.items())) == values
                ))
                for own in training.texts
            ]).rules,
        )
        for values in sorted(named)
    ]  # fmt: skip
    if len(combinations) < 2:
        raise InputError("captions name one combination of values; expected two or more")
    words = tuple(sorted({value for values in named for _, value in values if value}))
    return Balance(tuple(combinations), words)

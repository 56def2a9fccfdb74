"""Recipes for generators: neutral prompts lean to a value of each attribute, drawn by image."""

from dataclasses import replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, PositiveFloat, PositiveInt

from equipoise.config.fields import Guidance
from equipoise.core import InputError, Progress
from equipoise.mitigate.closed_form import build_ensemble
from equipoise.mitigate.measuring import embed_prompts
from equipoise.mitigate.recipe import Plan, TrainedRecipe, WrappedRecipe
from equipoise.mitigate.sets import SubjectTexts, Training, list_named_values
from equipoise.mitigate.trainable import Shifts, trainable
from equipoise.models.balanced import embedding_generator
from equipoise.models.generators import ImageGenerator, Sampling
from equipoise.models.wrapped import Draws, ValueCaptions, Wrapping
from equipoise.stats.streams import stream


class BalancedPrompts(WrappedRecipe):
    """Neutral prompts moved towards captions with values drawn in equal shares.

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

    def _wrap(self, _base: ImageGenerator, training: Training, _: Progress | None) -> Wrapping:
        return Wrapping(draws=replace(build_draws(training), strength=self.strength))


def build_draws(training: Training) -> Draws:
    """Return the captions of each combination of values, as templates.

    Raises
    ------
    InputError
        When captions of the training subjects name fewer than two combinations.
    """
    draws = []
    for combination in list_combinations(training):
        texts = []
        for subject_texts in training.texts:
            captions = _matching_captions(subject_texts, combination)
            texts.append(replace(subject_texts, attributed=captions))
        name = ", ".join(value for _, value in combination)
        draws.append(ValueCaptions(name, build_ensemble(texts).rules))
    if len(draws) < 2:
        raise InputError("captions name one combination of values; expected two or more")
    return Draws(tuple(draws), list_named_values(training.texts))


Combination = tuple[tuple[str, str], ...]
"""Attributes with a value each, sorted."""


def list_combinations(training: Training) -> list[Combination]:
    """Return the value combinations in the captions of training subjects, sorted."""
    combinations: set[Combination] = set()
    for subject_texts in training.texts:
        combinations.update(tuple(sorted(row.items())) for row in subject_texts.values)
    return sorted(combinations)


def _matching_captions(subject_texts: SubjectTexts, combination: Combination) -> tuple[str, ...]:
    pairs = zip(subject_texts.attributed, subject_texts.values, strict=True)
    return tuple(text for text, row in pairs if tuple(sorted(row.items())) == combination)


def _draw_codes(random: np.random.Generator, size: int, n_combinations: int) -> Any:
    """Return codes of combinations in equal shares, in random order."""
    n_codes = -(-size // n_combinations) * n_combinations
    return random.permutation(n_codes)[:size] % n_combinations


def _compare_logits(logits: Any, targets: Any) -> Any:
    """Return how far the mean logit of other combinations is above the target's, on average."""
    target_logits = logits.gather(1, targets[:, None])[:, 0]
    other_logits = (logits.sum(dim=1) - target_logits) / (logits.shape[1] - 1)
    return (other_logits - target_logits).mean()


class LearnedPrompt(TrainedRecipe):
    """Shifts of the embedding of neutral prompts, learned from generated images.

    Images get a combination of values each, drawn in equal shares; shifts of its values are added
    to every token. A dual encoder reads the images with gradients through the last denoising
    steps. A second loss keeps the subject recognisable.

    Attributes
    ----------
    name : str
    loss : "shares" or "mcas"
        "shares": cross-entropy of the drawn combination among captions of the subject, which
        bounds how far expected shares are from equal ones. "mcas": the association of an image
        with captions of its combination against those of the others, the ITA part of MCAS.
    steps, batch : int
        Of the training; images in each step.
    learning_rate : float
    fit_weight : float
        Weight of the cross-entropy of the subject among known subjects.
    sampling_steps, last_steps, guidance : int, int, float
        How images are made; gradients flow through the last steps.
    looks, patience : int
        Checks of the validation loss; checks without a better one after which training stops.

    References
    ----------
    Zhang et al. 2023, "ITI-GEN"; Shen et al. 2024, "Finetuning text-to-image diffusion models for
    fairness".
    """

    makes_images: ClassVar[bool] = True
    recipe: Literal["learned_prompt"] = "learned_prompt"
    name: str = "learned_prompt"
    loss: Literal["shares", "mcas"] = "shares"
    steps: PositiveInt = 80
    batch: PositiveInt = 24
    learning_rate: PositiveFloat = 0.05
    fit_weight: Annotated[float, Field(ge=0, strict=False)] = 3.0
    sampling_steps: PositiveInt = 8
    last_steps: PositiveInt = 8
    guidance: Guidance = 1.0
    looks: PositiveInt = 8
    patience: PositiveInt = 8

    def _inputs(self, training: Training) -> dict[str, Any]:
        teacher = training.teacher
        return super()._inputs(training) | {"teacher": teacher and teacher.info.key}

    def _begin(self, base: ImageGenerator, training: Training, seed: int) -> tuple[Shifts, Plan]:
        if training.teacher is None:
            raise InputError(f"{self.name} learns by a teacher, and the training has none")
        generator, read = embedding_generator(base), partial(embed_prompts, training.teacher)
        teacher, all_texts = trainable(training.teacher, "float32"), training.all_texts
        teacher.model.requires_grad_(requires_grad=False)
        torch, combinations = teacher.torch, list_combinations(training)
        pairs = sorted({pair for combination in combinations for pair in combination})
        memberships = [[pair in combination for pair in pairs] for combination in combinations]
        caption_vectors, neutral_prompts = [], []
        for subject_texts in all_texts:
            match = partial(_matching_captions, subject_texts)
            caption_vectors.append(read([*map(match, combinations)]))
            neutral_prompts.append(subject_texts.neutral)

        def tensor(array: Any) -> Any:
            floats = np.asarray(array, dtype=np.float32)
            return torch.tensor(floats, device=generator.placement.device)

        mixed, captions = tensor(memberships), tensor(caption_vectors)
        neutral = tensor(read(neutral_prompts))
        width = generator.embed_prompts(all_texts[0].neutral[:1]).shape[-1]
        values = torch.nn.Parameter(mixed.new_zeros(len(pairs), 1, width))
        shifts = Shifts(generator, build_draws(training), torch, mixed, values)

        def loss(first: int, count: int, size: int, name: str | int) -> Any:
            """Return the loss of generated images with balanced attribute values."""
            random = stream(seed, "mitigate", "prompts", name)
            rows = first + random.integers(count, size=size)
            prompts = [str(random.choice(all_texts[row].neutral)) for row in rows]
            combination_codes = _draw_codes(random, size, len(combinations))
            images = generator.differentiable(
                generator.embed_prompts(prompts) + shifts.combined()[combination_codes],
                seeds=random.integers(2**40, size=len(rows)).tolist(),
                sampling=Sampling(self.sampling_steps, self.guidance),
                gradient_steps=self.last_steps,
            )
            vectors = torch.nn.functional.normalize(teacher.pixels(images))
            vectors = (teacher.encoder.info.scale or 100.0) * vectors
            logits = (vectors[:, None] * captions[rows]).sum(dim=-1)
            targets = torch.from_numpy(combination_codes).to(logits.device)
            owners = torch.from_numpy(rows).to(logits.device)
            entropy = torch.nn.functional.cross_entropy
            balance = entropy if self.loss == "shares" else _compare_logits
            return balance(logits, targets) + self.fit_weight * entropy(vectors @ neutral.T, owners)

        learned, watched = len(training.texts), len(training.validation)
        return shifts, Plan(
            {"shifts": values},
            self.steps,
            self.learning_rate,
            max(1, self.steps // self.looks),
            lambda step: loss(0, learned, self.batch, step),
            # The same prompts, values and noise at every look.
            (lambda: loss(learned, watched, 2 * self.batch, "watched")) if watched else None,
        )

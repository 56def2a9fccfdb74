"""Recipes for generators: neutral prompts lean to a value of each attribute, drawn by image."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, PositiveFloat, PositiveInt

from equipoise.audits.config_fields import Guidance
from equipoise.core import InputError, Positions, Progress, record
from equipoise.core.types import Json
from equipoise.mitigate.closed_form import ensemble_of
from equipoise.mitigate.measuring import queries_of
from equipoise.mitigate.recipe import Plan, TrainedRecipe, WrappedRecipe
from equipoise.mitigate.sets import SubjectTexts, Training
from equipoise.mitigate.trainable import Trainable, trainable
from equipoise.models.balanced import Balance, embedding_generator
from equipoise.models.diffusers import DiffusersGenerator
from equipoise.models.generators import ImageGenerator, Sampling
from equipoise.models.protocols import DualEncoder
from equipoise.models.wrapped import Said, save_wrapped
from equipoise.stats.streams import stream

if TYPE_CHECKING:
    from torch import Tensor


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
    combinations = [
        Said(
            ", ".join(value for _, value in values),
            ensemble_of([
                replace(own, attributed=_captions(own, values)) for own in training.texts
            ]).rules,
        )
        for values in combinations_of(training)
    ]  # fmt: skip
    if len(combinations) < 2:
        raise InputError("captions name one combination of values; expected two or more")
    named = {value for own in training.texts for row in own.values for value in row.values()}
    return Balance(tuple(combinations), tuple(sorted(named - {""})))


Combination = tuple[tuple[str, str], ...]
"""Attributes with a value each, sorted."""


def combinations_of(training: Training) -> list[Combination]:
    """Return the combinations of values that captions of the training subjects name, sorted."""
    return sorted({tuple(sorted(row.items())) for own in training.texts for row in own.values})


def _captions(own: SubjectTexts, combination: Combination) -> tuple[str, ...]:
    pairs = zip(own.attributed, own.values, strict=True)
    return tuple(text for text, row in pairs if tuple(sorted(row.items())) == combination)


@record
class TrainablePrompts:
    """Shifts of the embedding of prompts, one for each value, and what they are judged by.

    Attributes
    ----------
    base : DiffusersGenerator
    balance : Balance
    mixed : tensor, shape (combinations, values)
        1 where a combination has a value.
    shifts : torch.nn.Parameter, shape (values, 1, dimension)
    probe : Trainable
    known : tuple of SubjectTexts
    captions : tensor, shape (known, combinations, d)
        Unit vectors, by the probe.
    neutral : tensor, shape (known, d)
    """

    base: DiffusersGenerator
    balance: Balance
    mixed: "Tensor"
    shifts: "Tensor"
    probe: Trainable
    known: tuple[SubjectTexts, ...]
    captions: "Tensor"
    neutral: "Tensor"
    prefix: ClassVar[str] = "equipoise"

    @property
    def torch(self) -> ModuleType:
        """The library."""
        return self.probe.torch

    @property
    def moved(self) -> "Tensor":
        """Shifts by combination, (combinations, 1, dimension)."""
        return self.torch.einsum("kv,vtd->ktd", self.mixed, self.shifts)

    def save(self, folder: Path, record: Mapping[str, Json]) -> None:
        """Write a folder that `load_generator` opens, with the record of the model."""
        shifts = self.moved.detach().cpu().numpy().astype(np.float32)
        save_wrapped(folder, self.base.info, replace(self.balance, shifts=shifts, record=record))

    def loss(self, recipe: "LearnedPrompt", rows: Positions, random: np.random.Generator) -> Any:
        """Return the loss of one image of each of some known subjects, with balanced values."""
        functional, many = self.torch.nn.functional, len(self.balance.combinations)
        prompts = [
            self.known[row].neutral[random.integers(len(self.known[row].neutral))] for row in rows
        ]
        drawn = random.permutation(np.arange(len(rows)) % many)
        images = self.base.differentiable(
            self.base.embed_prompts(prompts) + self.moved[drawn],
            seeds=random.integers(2**40, size=len(rows)).tolist(),
            sampling=Sampling(recipe.sampling_steps, recipe.guidance),
            last=recipe.last_steps,
        )
        vectors = functional.normalize(self.probe.pixels(images))
        scale = self.probe.encoder.info.scale or 100.0
        near = scale * (vectors[:, None] * self.captions[rows]).sum(dim=-1)
        places, owners = (self.torch.from_numpy(own).to(near.device) for own in (drawn, rows))
        if recipe.loss == "shares":
            leaning = functional.cross_entropy(near, places)
        else:
            own = near.gather(1, places[:, None])[:, 0]
            leaning = (near.mean(dim=1) - own).mean() * many / (many - 1)
        fit = functional.cross_entropy(scale * vectors @ self.neutral.T, owners)
        return leaning + recipe.fit_weight * fit


class LearnedPrompt(TrainedRecipe):
    """A shift of the embedding of neutral prompts for each value, learned from generated images.

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
    steps: PositiveInt = 100
    batch: PositiveInt = 24
    learning_rate: PositiveFloat = 0.08
    fit_weight: Annotated[float, Field(ge=0, strict=False)] = 3.0
    sampling_steps: PositiveInt = 8
    last_steps: PositiveInt = 8
    guidance: Guidance = 1.0
    looks: PositiveInt = 10

    def _inputs(self, training: Training) -> dict[str, Any]:
        probe = training.probe
        return super()._inputs(training) | {"probe": probe and probe.info.key}

    def _begin(
        self, base: ImageGenerator, training: Training, seed: int
    ) -> tuple[TrainablePrompts, Plan]:
        if training.probe is None:
            raise InputError(f"{self.name} learns by a probe, and the training has none")
        subject = _trainable_prompts(embedding_generator(base), training, training.probe)
        learned, watched = len(training.texts), len(training.validation)

        def loss(step: int) -> Any:
            random = stream(seed, "mitigate", "prompts", step)
            return subject.loss(self, random.integers(learned, size=self.batch), random)

        def validation() -> Any:
            # The same prompts, values and noise at every look.
            random, many = stream(seed, "mitigate", "prompts", "validation"), 2 * self.batch
            return subject.loss(self, learned + np.arange(many) % watched, random)

        plan = Plan(
            {"shifts": subject.shifts}, self.steps, self.learning_rate,
            max(1, self.steps // self.looks), loss, validation if watched else None,
        )  # fmt: skip
        return subject, plan


def _trainable_prompts(
    base: DiffusersGenerator, training: Training, probe: DualEncoder
) -> TrainablePrompts:
    teacher, known = trainable(probe, "float32"), training.known
    teacher.model.requires_grad_(requires_grad=False)
    combinations = combinations_of(training)
    values = sorted({pair for one in combinations for pair in one})
    captions = [queries_of(probe, [_captions(own, one) for one in combinations]) for own in known]
    torch, device = teacher.torch, base.placement.device
    mixed, reads, neutral = (
        torch.tensor(np.asarray(own, dtype=np.float32), device=device)
        for own in (
            [[value in one for value in values] for one in combinations],
            captions,
            queries_of(probe, [own.neutral for own in known]),
        )
    )
    width = base.embed_prompts([known[0].neutral[0]]).shape[-1]
    shifts = torch.nn.Parameter(torch.zeros(len(values), 1, width, device=device))
    return TrainablePrompts(
        base, balance_of(training), mixed, shifts, teacher, known, reads, neutral
    )

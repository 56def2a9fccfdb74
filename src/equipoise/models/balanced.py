"""The prefix ``equipoise:`` of generators: neutral prompts that lean to values drawn by image."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.core import Floats32, ModelError, record
from equipoise.core.types import Json
from equipoise.models.diffusers import DiffusersGenerator
from equipoise.models.generators import ImageGenerator, Sampling
from equipoise.models.images import Image
from equipoise.models.info import ModelInfo
from equipoise.models.registry import Options, adapter
from equipoise.models.wrapped import Base, Changes, Ensemble, Said, naming, open_wrapped
from equipoise.stats.streams import stream

SHIFTS = "shifts.safetensors"


@dataclass(frozen=True)
class _Facts:
    combinations: tuple[Said, ...]
    values: tuple[str, ...]
    strength: float


@dataclass(frozen=True)
class Settings(Base):
    """What the file of settings of a generator holds."""

    balance: _Facts


@record
class Balance(Changes):
    """Combinations of attribute values, one of which each image of a neutral prompt leans to.

    Attributes
    ----------
    combinations : tuple of Said
        Drawn with equal shares. Rules of each: neutral prompts, and captions that name its values.
    values : tuple of str
        A prompt that holds one of these words is not neutral.
    strength : float
        How far the embedding of a prompt moves towards that of its caption; 1: all the way.
    shifts : ndarray of float32, shape (combinations, 1, dimension), optional
        Added to every token of the embedding of a prompt, in place of captions.
    """

    combinations: tuple[Said, ...]
    values: tuple[str, ...]
    strength: float = 1.0
    shifts: Floats32 | None = None

    @property
    def facts(self) -> dict[str, Json]:
        """All that decides an image but the shifts, as JSON takes it."""
        return {"balance": asdict(_Facts(self.combinations, self.values, self.strength))}

    @property
    def arrays(self) -> dict[str, dict[str, Floats32]]:
        """The shifts, by file and name."""
        return {} if self.shifts is None else {SHIFTS: {"shifts": self.shifts}}

    def drawn(self, prompt: str, seed: int) -> int | None:
        """Return the place of the combination that an image leans to; None of other prompts."""
        if self._named.search(prompt):
            return None
        if self.shifts is None and self._ensembles[0].said(prompt) == (prompt,):
            return None
        return int(stream(seed, "balance").integers(len(self.combinations)))

    def captions(self, prompt: str, place: int) -> tuple[str, ...]:
        """Return the captions of a prompt that name the values of a combination."""
        return self._ensembles[place].said(prompt)

    def text(self, prompt: str, place: int | None, seed: int) -> str:
        """Return the caption of an image; the prompt where no combination is drawn."""
        if place is None or self.shifts is not None:
            return prompt
        captions = self.captions(prompt, place)
        return captions[int(stream(seed, "balance", "caption").integers(len(captions)))]

    @cached_property
    def _ensembles(self) -> list[Ensemble]:
        return [Ensemble(said.rules, self.values) for said in self.combinations]

    @cached_property
    def _named(self) -> Any:
        return naming(self.values)


@dataclass(frozen=True)
class BalancedGenerator:
    """A generator whose neutral prompts lean to values drawn by image; made by `load_generator`.

    Attributes
    ----------
    info : ModelInfo
    base : ImageGenerator
    balance : Balance
    """

    info: ModelInfo
    base: ImageGenerator
    balance: Balance

    def check_prompts(self, prompts: Sequence[str], sampling: Sampling) -> None:
        """Refuse prompts, and captions that stand for them, that are longer than the model reads.

        Raises
        ------
        ModelError
            For the first.
        """
        if self.balance.shifts is None:
            places = range(len(self.balance.combinations))
            prompts = [t for p in prompts for k in places for t in self.balance.captions(p, k)]
        if isinstance(self.base, DiffusersGenerator):
            self.base.check_prompts(prompts, sampling)

    def generate(
        self, prompts: Sequence[str], *, seeds: Sequence[int], sampling: Sampling
    ) -> list[Image | None]:
        """Make one image for each prompt; noise and draw are functions of its seed alone.

        Raises
        ------
        ModelError
            As the base; or embeddings are moved, and it is no Stable Diffusion 1.x or 2.x.
        """
        balance = self.balance
        places = [*map(balance.drawn, prompts, seeds)]
        texts = [*map(balance.text, prompts, places, seeds)]
        if balance.strength == 1.0 and balance.shifts is None:
            return self.base.generate(texts, seeds=seeds, sampling=sampling)
        base = embedding_generator(self.base)
        vectors = base.embed_prompts(prompts)
        if balance.shifts is None:
            vectors = vectors + balance.strength * (base.embed_prompts(texts) - vectors)
        else:
            none = np.zeros_like(balance.shifts[:1])
            rows = [len(balance.shifts) if place is None else place for place in places]
            shifts = np.concatenate([balance.shifts, none])[rows]
            vectors = vectors + vectors.new_tensor(shifts)
        return base.generate_from(vectors, prompts, seeds=seeds, sampling=sampling)


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


@adapter("equipoise", makes_images=True)
def load(target: str, options: Options) -> BalancedGenerator:
    """Load a generator that a recipe balanced.

    Raises
    ------
    ModelError
        As of a dual encoder of this prefix.
    """
    base, balance, info = open_wrapped(target, options, Settings, _balance, makes_images=True)
    return BalancedGenerator(info, base, balance)


def _balance(settings: Settings, folder: Path, _: int) -> Balance:
    shifts, facts = None, settings.balance
    if (folder / SHIFTS).is_file():
        from safetensors.numpy import load_file

        shifts = load_file(folder / SHIFTS)["shifts"]
        if shifts.ndim != 3 or len(shifts) != len(facts.combinations):
            raise ValueError(f"{SHIFTS} has not one shift for each combination")
    numbers = facts.strength, shifts
    return Balance(facts.combinations, facts.values, *numbers, record=settings.record)

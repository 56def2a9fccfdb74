"""Make images of prompts, and of caption sets under control."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict, Unpack

import pyarrow as pa

from equipoise.core.errors import InputError, ModelError
from equipoise.counterfactuals.captions import CaptionSets
from equipoise.counterfactuals.generating.drawing import Draws, Shares
from equipoise.counterfactuals.generating.generated import Generated
from equipoise.counterfactuals.generating.prompts import asked_captions, asked_prompts
from equipoise.evidence import RunOptions
from equipoise.models.generators import ControlledGenerator, Sampling

Progress = Callable[[str, int, int | None], None]


class How(TypedDict, total=False):
    """Settings of a generation by name; see `Settings`."""

    sampling: Sampling
    options: RunOptions
    part: int
    max_failures: float
    progress: Progress | None


@dataclass(frozen=True)
class Settings:
    """How images are made.

    Attributes
    ----------
    sampling : Sampling
        Steps, guidance, negative prompt, size.
    options : RunOptions
        How a model is loaded by its name.
    part : int
        Images in one file at most, where a candidate has no more: what is done again after a
        kill.
    max_failures : float
        Largest share of the images on which the model may fail. Refusals are no failures.
    progress : callable or None
        Told the step, the images done, and all of them.
    """

    sampling: Sampling = field(default_factory=Sampling)
    options: RunOptions = field(default_factory=RunOptions)
    part: int = 64
    max_failures: float = 0.05
    progress: Progress | None = None

    def __post_init__(self) -> None:
        """Check the settings.

        Raises
        ------
        InputError
            When one is out of range.
        """
        if self.part < 1 or not 0 <= self.max_failures <= 1:
            raise InputError(
                f"part is {self.part} and max_failures {self.max_failures:g}; expected 1 or more, "
                "and a share from 0 to 1"
            )


def generate_prompts(
    prompts: pa.Table,
    model: Any,
    store: Path,
    *,
    images: int = 1,
    seed: int = 0,
    **how: Unpack[How],
) -> Generated:
    """Make images of prompts, each from a noise of its own.

    What lies in the store for the same prompts, model and settings is read; what is missing is
    made. A killed run loses no part that was finished.

    Parameters
    ----------
    prompts : pyarrow.Table
        `prompt_id` (each once), `prompt`, and columns of any other name, which are kept. `set`
        may be one of them.
    model : str, ImageGenerator, or sequence of ImageGenerator
        A name for `load_generator`, a loaded model, or the same one on several devices.
    store : Path
        Folder of the evidence.
    images : int
        Of each prompt.
    seed : int
        That of an image depends on it, the prompt's id and the number of the image alone.
    **how
        See `Settings`.

    Returns
    -------
    Generated

    Raises
    ------
    InputError
        When the table lacks a column, ids repeat, or a setting is out of range.
    ModelError
        When the model cannot be loaded, or fails on more images than `max_failures` allows.
    RunError
        When the store cannot be written, or another process writes it.
    """
    from equipoise.counterfactuals.generating.running import generated

    asked = asked_prompts(prompts, images)
    return generated(asked, drawn(seed), model, store, Settings(**how))


def generate_sets(
    captions: CaptionSets | pa.Table,
    model: Any,
    store: Path,
    *,
    candidates: int = 100,
    shared: Shares = (0.1, 0.9),
    shared_self: Shares | float | None = None,
    seed: int = 0,
    **how: Unpack[How],
) -> Generated:
    """Make candidates of caption sets: images that differ in what their captions differ in.

    The images of a candidate start from one noise, and in the first steps attend to the words
    that they share as the image of one of them does, the base. The base is drawn for each
    candidate, so that no group is always the one that is left unchanged.

    Parameters
    ----------
    captions : CaptionSets or pyarrow.Table
        With `caption_id` (each once), `set`, `caption`, and columns of any other name.
    model : str, ControlledGenerator, or sequence of ControlledGenerator
        A name for `load_generator`, a loaded model, or the same one on several devices.
    store : Path
        Folder of the evidence.
    candidates : int
        Of each set. Howard et al. 2024 make 100 and filter.
    shared : (float, float)
        From which the share of the steps with shared maps of texts is drawn for each candidate.
    shared_self : (float, float), float or None
        The same for maps of images to themselves, or one share for all; None for none.
    seed : int
        What is drawn for a candidate depends on it, the set's id and its number alone.
    **how
        See `Settings`; errors as of `generate_prompts`.

    Returns
    -------
    Generated
        A candidate is whole: it has a row for every caption of its set.

    References
    ----------
    Howard et al. 2024, SocialCounterfactuals, section 3.1; Hertz et al. 2023, Prompt-to-Prompt.
    """
    from equipoise.counterfactuals.generating.running import generated

    asked = asked_captions(captions, candidates)
    draws = drawn(seed, shared, shared_self)
    return generated(asked, draws, model, store, Settings(**how))


def drawn(seed: int, shared: Any = None, shared_self: Any = None) -> Draws:
    """Return how candidates are drawn, after a check of the shares."""
    return Draws(seed, _shares("shared", shared), _shares("shared_self", shared_self))


def _shares(name: str, given: Any) -> Shares | None:
    if given is None:
        return None
    ends = (given, given) if isinstance(given, int | float) else tuple(given)
    if len(ends) != 2 or not 0 <= ends[0] <= ends[1] <= 1:
        raise InputError(
            f"{name} is {given}; expected two shares of the steps, from 0 to 1, the lower first"
        )
    return float(ends[0]), float(ends[1])


def check_control(model: Any) -> None:
    """Refuse a model whose attention cannot be shared.

    Raises
    ------
    ModelError
    """
    if not isinstance(model, ControlledGenerator):
        raise ModelError(
            f"{model.info.name} makes images, and offers no control of its attention. To do: use "
            "Stable Diffusion 1.x or 2.x (diffusers:…), or generate prompts without sets."
        )
    model.check_control()

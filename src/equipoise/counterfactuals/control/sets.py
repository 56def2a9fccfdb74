"""Make the images of sets, each from one noise and with shared attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from equipoise.core.errors import InputError
from equipoise.counterfactuals.control.attention import SharedAttention, sharings
from equipoise.models.generators import ControlledGenerator, Sampling
from equipoise.models.images import Image


@dataclass(frozen=True)
class ControlledSet:
    """One candidate of a set.

    Attributes
    ----------
    prompts : tuple of str
        That differ in few words.
    seed : int
        Of the noise that all images start from.
    base : int
        The prompt whose maps the others share; its image is what the model makes of it alone.
    shared : float
        Share of the steps in which maps of texts are shared, 0 to 1.
    shared_self : float
        The same of maps of images to themselves.
    """

    prompts: tuple[str, ...]
    seed: int
    base: int = 0
    shared: float = 0.8
    shared_self: float = 0.0

    def __post_init__(self) -> None:
        """Check what is asked for.

        Raises
        ------
        InputError
            When the base is none of the prompts, or a share is none.
        """
        if not 0 <= self.base < len(self.prompts):
            raise InputError(f"base is {self.base} of a set of {len(self.prompts)} prompts")
        if not (0 <= self.shared <= 1 and 0 <= self.shared_self <= 1):
            raise InputError(
                f"shared is {self.shared} and shared_self {self.shared_self}; expected 0 to 1"
            )


def generate_controlled(
    model: ControlledGenerator, sets: Sequence[ControlledSet], sampling: Sampling
) -> list[list[Image | None]]:
    """Make the images of some sets in one batch.

    Parameters
    ----------
    model : ControlledGenerator
    sets : sequence of ControlledSet
        No set is ever split over batches: its images are made from the maps of its base.
    sampling : Sampling

    Returns
    -------
    list of lists of ndarrays of uint8, shape (height, width, 3), or None
        The images of each set; None where the model refuses to show one.

    Raises
    ------
    ModelError
        When the model cannot be controlled, fails, or memory does not hold the batch.

    References
    ----------
    Hertz et al. 2023, Prompt-to-Prompt image editing with cross-attention control; Howard et al.
    2024, SocialCounterfactuals, section 3.1.
    """
    prompts = [prompt for one in sets for prompt in one.prompts]
    control = SharedAttention(
        sharings(
            [len(one.prompts) for one in sets],
            [one.base for one in sets],
            [(one.shared, one.shared_self) for one in sets],
            model.tokens(prompts),
        )
    )
    made = model.generate_with(
        prompts,
        seeds=[one.seed for one in sets for _ in one.prompts],
        sampling=sampling,
        attention=control,
    )
    images = iter(made)
    return [[next(images) for _ in one.prompts] for one in sets]

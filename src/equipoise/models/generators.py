"""Models that make images from texts: protocols and settings."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from equipoise.core import Floats32, InputError
from equipoise.models.images import Image
from equipoise.models.protocols import Model, NoAnswer

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Sampling:
    """How images are drawn from a model.

    Attributes
    ----------
    steps : int
        Denoising steps, 1 or more.
    guidance : float
        How far what the prompt says is exaggerated (Ho and Salimans 2022); 1: not at all.
    negative_prompt : str or None
        What guidance leads away from; the empty text unless given.
    height, width : int or None
        Of the images, in pixels; the model's own unless given.

    Raises
    ------
    InputError
        When one is out of range.

    Examples
    --------
    >>> from equipoise.models import Sampling
    >>> Sampling(steps=25, guidance=3).guidance
    3
    """

    steps: int = 50
    guidance: float = 7.5
    negative_prompt: str | None = None
    height: int | None = None
    width: int | None = None

    def __post_init__(self) -> None:
        """Check the settings."""
        if self.steps < 1:
            raise InputError(f"steps is {self.steps}; expected 1 or more")
        if not (math.isfinite(self.guidance) and self.guidance >= 0):
            raise InputError(f"guidance is {self.guidance}; expected a number from 0")
        for name in ("height", "width"):
            size = getattr(self, name)
            if size is not None and (size < 8 or size % 8):
                raise InputError(f"{name} is {size}; expected a multiple of 8, in pixels")


@runtime_checkable
class ImageGenerator(Model, Protocol):
    """A model that makes images from texts."""

    def generate(
        self, prompts: Sequence[str], *, seeds: Sequence[int], sampling: Sampling
    ) -> Sequence[Image | NoAnswer | None]:
        """Make an image for each prompt.

        Parameters
        ----------
        prompts : sequence of n str
        seeds : sequence of n int
            From 0 to 2^63 - 1: of the noise of each image, whatever else is asked for with it.
        sampling : Sampling

        Returns
        -------
        sequence of n ndarrays of uint8, shape (height, width, 3), None or NoAnswer
            None where the model refuses to show what it made; why it failed at an image.
        """
        ...


@dataclass(frozen=True)
class StepImage:
    """A denoiser's state of an image at one of its passes.

    Attributes
    ----------
    image : ndarray of uint8, shape (height, width, 3)
    latent : ndarray of float32, shape (channels, height, width)
        What the image is decoded from.
    estimated : bool
        Whether the latent is the model's estimate of the clean one. Otherwise it still has the
        noise of its pass.
    """

    image: Image
    latent: Floats32
    estimated: bool = True


@runtime_checkable
class SteppedGenerator(ImageGenerator, Protocol):
    """A text-to-image model that shows its images while it denoises them."""

    def generate_steps(
        self,
        prompts: Sequence[str],
        *,
        seeds: Sequence[int],
        sampling: Sampling,
        at: Sequence[int],
    ) -> list[tuple[StepImage, ...] | None]:
        """Make images as `generate` does, and return them at chosen passes, too.

        Parameters
        ----------
        prompts, seeds, sampling
            As `generate` takes them.
        at : sequence of int
            Passes of the denoiser, in ascending order, from 1 to `sampling.steps`.

        Returns
        -------
        list of n tuples of StepImage, or None
            An image for each pass, then the final image. None where the model refuses to show it.
        """
        ...


Maps: TypeAlias = "Tensor"
"""A tensor of an attention layer."""


class Attention(Protocol):
    """Stands in for the attention layers of a denoiser; see `ControlledGenerator`."""

    def begin(self, steps: int) -> None:
        """Start with a batch, for which the denoiser runs so many times."""

    def advance(self) -> None:
        """Follow a run of the denoiser."""

    def mix(
        self,
        query: Maps,
        key: Maps,
        value: Maps,
        mixed: Maps,
        *,
        images: slice,
        texts: slice | None,
        to_images: slice | None,
    ) -> None:
        """Change the output of a layer of attention.

        Parameters
        ----------
        query, key, value, mixed : tensor, shape (batch, heads, places, dimension)
            `mixed` is the output, which is changed.
        images : slice
            Queries of the image.
        texts, to_images : slice or None
            Keys of words, and of the image; None where the layer doesn't attend to them.
        """


@runtime_checkable
class ControlledGenerator(ImageGenerator, Protocol):
    """A text-to-image model with control over its attention."""

    def check_control(self) -> None:
        """Refuse a model without control over its attention.

        Raises
        ------
        ModelError
            When the model attends to texts and images together, or not by layers known here.
        """
        ...

    def tokens(self, prompts: Sequence[str]) -> list[tuple[int, ...]]:
        """Return the tokens of each prompt, as many for every prompt."""
        ...

    def room(self, sampling: Sampling) -> int:
        """Return the best number of images in a batch; more may fit into memory."""
        ...

    def generate_with(
        self,
        prompts: Sequence[str],
        *,
        seeds: Sequence[int],
        sampling: Sampling,
        attention: Attention,
    ) -> list[Image | None]:
        """Make images as `generate` does, in a single batch, with attention control.

        `attention` stands in for the attention layers of the denoiser.
        """
        ...

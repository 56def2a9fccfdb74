"""Sets of images from one noise, with attention that is shared through diffusers' processors.

Nothing here imports a model runtime: the tensors themselves have the operations.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from equipoise.counterfactuals.parts import (
    Candidate,
    images_of,
)
from equipoise.models.generators import ControlledGenerator, Maps, Sampling
from equipoise.models.images import Image

Tokens = tuple[int, ...]


def generate_controlled(
    model: ControlledGenerator, candidates: Sequence[Candidate], sampling: Sampling
) -> list[Image | None]:
    """Make the images of some candidates in one batch.

    Parameters
    ----------
    model : ControlledGenerator
    candidates : sequence of Candidate
        No candidate is ever split over batches: its images are made from the maps of its base.
    sampling : Sampling

    Returns
    -------
    list of ndarrays of uint8, shape (height, width, 3), or None
        The images of each candidate; None where the model refuses to show one.

    Raises
    ------
    ModelError
        When the model cannot be controlled, fails, or memory does not hold the batch.

    References
    ----------
    Hertz et al. 2023, Prompt-to-Prompt image editing with cross-attention control; Howard et al.
    2024, SocialCounterfactuals, section 3.1.
    """
    prompts, seeds = images_of(candidates)
    return model.generate_with(
        prompts,
        seeds=seeds,
        sampling=sampling,
        attention=SharedAttention(candidates, model.tokens(prompts)),
    )


@dataclass(eq=False)
class SharedAttention:
    """Prompt-to-Prompt for a batch of whole sets (Hertz et al. 2023, word swap and refinement).

    In the first steps each image of a set attends to the words that it has in common with the base
    of the set as the base does; words that differ keep their own maps. Guidance doubles the batch,
    [without; with the prompt]: the half with the prompts is changed.

    Attributes
    ----------
    candidates : sequence of Candidate
        In the order of the batch.
    tokens : sequence of tuple of int
        Of all prompts.
    """

    candidates: Sequence[Candidate]
    tokens: Sequence[Tokens]
    _step: int = field(default=0, init=False)
    _steps: int = field(default=1, init=False)

    def begin(self, steps: int) -> None:
        """Start with a batch."""
        self._step, self._steps = 0, steps

    def advance(self) -> None:
        """Go on to the next step."""
        self._step += 1

    def active(self, *, cross: bool) -> list[tuple[int, Candidate]]:
        """Return the sets that share maps in this step, with their place in the batch."""
        spans, first = [], 0
        for candidate in self.candidates:
            share = candidate.shared if cross else candidate.shared_self
            if len(candidate) > 1 and self._step < round((share or 0.0) * self._steps):
                spans.append((first, candidate))
            first += len(candidate)
        return spans

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
        """Change the output of a layer of attention; see `Attention`.

        Images attend to the words that they have in common with the base of their set, and with
        `shared_self` to images, as the base does. One image's maps are held at a time.
        """
        begin = len(query) - len(self.tokens)
        places = query[0, 0, images].shape[0]
        on_texts, on_images = set(), set()
        if texts:
            on_texts = {first for first, _ in self.active(cross=True)}
        if to_images:
            on_images = {
                first
                for first, candidate in self.active(cross=False)
                if candidate.places is None or places <= candidate.places
            }

        def maps_of(row: int) -> Maps:
            scores = query[row, :, images] @ key[row].transpose(-1, -2) * query.shape[-1] ** -0.5
            return scores.softmax(dim=-1)

        first = 0
        for candidate in self.candidates:
            members = range(first, first + len(candidate)) if first in on_texts | on_images else ()
            base = maps_of(begin + first + candidate.base) if members else query
            for member in members:
                # The base itself is what the model makes alone.
                if member == first + candidate.base:
                    continue
                maps = maps_of(begin + member)
                if first in on_texts:
                    source = aligned(self.tokens[first + candidate.base], self.tokens[member])
                    places = maps.new_tensor(source).long()
                    base_columns = base[..., texts][..., places.clamp(min=0)]
                    maps[..., texts] = base_columns.where(places >= 0, maps[..., texts])
                if first in on_images:
                    maps[..., to_images] = base[..., to_images]
                mixed[begin + member, :, images] = maps @ value[begin + member]
            first += len(candidate)


@lru_cache(maxsize=4096)
def aligned(base: Tokens, other: Tokens) -> tuple[int, ...]:
    """Align a caption with the base of its set.

    Words are aligned as their longest common subsequence. Captions end in a run of one token: its
    first place stands for the end of the caption and is aligned with that of the base; the padding
    after it with the same place, as in the source.

    Parameters
    ----------
    base, other : tuple of int
        Tokens, padded to one length.

    Returns
    -------
    tuple of int
        For each token of `other` its place in `base`; -1 for another word.
    """
    first, second = _words(base), _words(other)
    if base[first] != other[second]:
        return common(base, other)
    padding = [place if place >= first else -1 for place in range(second + 1, len(other))]
    return (*common(base[:first], other[:second]), first, *padding)


def _words(tokens: Tokens) -> int:
    """Return how many tokens come before the run of one token at the end."""
    count = len(tokens) - 1
    while count and tokens[count - 1] == tokens[-1]:
        count -= 1
    return count


def common(base: Tokens, other: Tokens) -> tuple[int, ...]:
    """Align by the longest common subsequence.

    Of several, the one that takes tokens of `other` as early as it can. Returns places as
    `aligned` does.
    """
    # longest[i][j]: of what is left from base[i] and other[j] on.
    longest = [[0] * (len(other) + 1) for _ in range(len(base) + 1)]
    for i in reversed(range(len(base))):
        for j in reversed(range(len(other))):
            if base[i] == other[j]:
                longest[i][j] = longest[i + 1][j + 1] + 1
            else:
                longest[i][j] = max(longest[i + 1][j], longest[i][j + 1])
    places, i, j = [-1] * len(other), 0, 0
    while i < len(base) and j < len(other):
        if base[i] == other[j]:
            places[j] = i
            i, j = i + 1, j + 1
        elif longest[i + 1][j] >= longest[i][j + 1]:
            i += 1
        else:
            j += 1
    return tuple(places)

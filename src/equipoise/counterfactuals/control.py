"""Sets of images from one noise, with attention that is shared through diffusers' processors.

Nothing here imports a model runtime: the tensors themselves have the operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from equipoise.models.generators import ControlledGenerator, Sampling
from equipoise.models.images import Image

Tokens = tuple[int, ...]

# Maps of images to themselves are shared where they are coarse: 16 × 16 places, as in the source.
# Finer ones would fix every pixel.
_PLACES = 16 * 16


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
    prompts = [prompt for own in sets for prompt in own.prompts]
    made = model.generate_with(
        prompts,
        seeds=[own.seed for own in sets for _ in own.prompts],
        sampling=sampling,
        attention=SharedAttention(sharings(sets, model.tokens(prompts))),
    )
    images = iter(made)
    return [[next(images) for _ in own.prompts] for own in sets]


@dataclass(frozen=True)
class Sharing:
    """Sharing of attention within one set of a batch.

    Attributes
    ----------
    own : ControlledSet
    first : int
        Where its images start in the batch.
    sources : tuple of tuples of int
        For each image and token the place of the same word in the base; -1 for words of its own.
    """

    own: ControlledSet
    first: int
    sources: tuple[tuple[int, ...], ...] = field(repr=False)

    @property
    def count(self) -> int:
        """Number of its images."""
        return len(self.own.prompts)


def sharings(sets: Sequence[ControlledSet], tokens: Sequence[Tokens]) -> list[Sharing]:
    """Return the sharing within each set of a batch, from the tokens of all prompts."""
    batch, first = [], 0
    for own in sets:
        words = tokens[first : first + len(own.prompts)]
        batch.append(Sharing(own, first, tuple(aligned(words[own.base], one) for one in words)))
        first += len(words)
    return batch


@dataclass(eq=False)
class SharedAttention:
    """Prompt-to-Prompt for a batch of whole sets (Hertz et al. 2023, word swap and refinement).

    In the first steps each image of a set attends to the words that it has in common with the base
    of the set as the base does; words that differ keep their own maps. Guidance doubles the batch,
    [without; with the prompt]: the half with the prompts is changed.

    Attributes
    ----------
    sharings : sequence of Sharing
        Of all sets in the batch, in order.
    """

    sharings: Sequence[Sharing]
    _step: int = field(default=0, init=False)
    _steps: int = field(default=1, init=False)
    _places: dict[int, tuple[Any, Any]] = field(default_factory=dict, init=False, repr=False)

    @property
    def images(self) -> int:
        """Images in the batch."""
        return sum(sharing.count for sharing in self.sharings)

    def begin(self, steps: int) -> None:
        """Start with a batch."""
        self._step, self._steps = 0, steps
        self._places.clear()

    def advance(self) -> None:
        """Go on to the next step."""
        self._step += 1

    def processor(self, name: str, own: Any) -> Any:
        """Return the processor of a layer: its own where it is of no transformer block."""
        return _Shared(self, own) if name.endswith(("attn1.processor", "attn2.processor")) else own

    def active(self, *, cross: bool) -> list[Sharing]:
        """Return the sets whose maps are shared in this step."""
        shares = [one.own.shared if cross else one.own.shared_self for one in self.sharings]
        return [
            one
            for one, share in zip(self.sharings, shares, strict=True)
            if one.count > 1 and self._step < round(share * self._steps)
        ]

    def mix(self, maps: Any, sharing: Sharing, *, cross: bool) -> None:
        """Change the maps of one set in place.

        Parameters
        ----------
        maps : Tensor, shape (images, heads, places, tokens or places)
            Of the half of the batch that has prompts.
        sharing : Sharing
        cross : bool
            Whether they are maps of texts.
        """
        first = sharing.first
        rows = slice(first, first + sharing.count)
        base = maps[first + sharing.own.base]
        if not cross:
            maps[rows] = base.clone()
            return
        if first not in self._places:
            places = maps.new_tensor(sharing.sources).long()
            self._places[first] = places.clamp(min=0), places >= 0
        source, common = self._places[first]
        taken = base[..., source].permute(2, 0, 1, 3)
        maps[rows] = taken.where(common[:, None, None, :], maps[rows])


@dataclass(frozen=True, eq=False)
class _Shared:
    """One layer, computed as `AttnProcessor` of diffusers does, with maps that are shared."""

    control: SharedAttention
    own: Any

    def __call__(
        self,
        attn: Any,
        hidden_states: Any,
        encoder_hidden_states: Any = None,
        attention_mask: Any = None,
        temb: Any = None,
        **more: Any,
    ) -> Any:
        cross = encoder_hidden_states is not None
        active = self.control.active(cross=cross)
        if not active or (not cross and hidden_states.shape[1] > _PLACES):
            return self.own(
                attn, hidden_states, encoder_hidden_states, attention_mask, temb, **more
            )
        seen = encoder_hidden_states if cross else hidden_states
        if cross and attn.norm_cross:
            seen = attn.norm_encoder_hidden_states(seen)
        mask = attn.prepare_attention_mask(attention_mask, seen.shape[1], seen.shape[0])
        query, key, value = (
            attn.head_to_batch_dim(states)
            for states in (attn.to_q(hidden_states), attn.to_k(seen), attn.to_v(seen))
        )
        maps = attn.get_attention_scores(query, key, mask)
        # A view: a change in it is a change of the maps.
        prompted = maps.view(len(hidden_states), attn.heads, *maps.shape[1:])
        for sharing in active:
            self.control.mix(prompted[-self.control.images :], sharing, cross=cross)
        mixed = attn.batch_to_head_dim(maps.bmm(value))
        return attn.to_out[1](attn.to_out[0](mixed))


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
            longest[i][j] = (
                longest[i + 1][j + 1] + 1
                if base[i] == other[j]
                else max(longest[i + 1][j], longest[i][j + 1])
            )
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

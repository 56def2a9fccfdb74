"""Attention layers of a denoiser whose maps are shared within sets, through diffusers' processors.

Nothing here imports a model runtime: tensors come in, and are asked for what they can do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from equipoise.counterfactuals.control.alignment import Tokens, aligned

# Maps of images to themselves are shared where they are coarse: 16 × 16 places, as in the source.
# Finer ones would fix what is in every pixel.
_PLACES = 16 * 16


@dataclass(frozen=True)
class Sharing:
    """What one set of a batch shares.

    Attributes
    ----------
    first, count : int
        Where its images are in the batch.
    base : int
        Which of them gives its maps to the others.
    shared, shared_self : float
        Of the steps, the share from the first one on in which maps of texts, and of images to
        themselves, are shared.
    sources : tuple of tuples of int
        For each image and token the place of the same word in the base; -1 for words of its own.
    """

    first: int
    count: int
    base: int
    shared: float
    shared_self: float
    sources: tuple[tuple[int, ...], ...] = field(repr=False)


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
        """Return what computes a layer: its own processor where it is of no transformer block."""
        return _Shared(self, own) if name.endswith(("attn1.processor", "attn2.processor")) else own

    def active(self, *, cross: bool) -> list[Sharing]:
        """Return the sets whose maps are shared in this step."""

        def last(sharing: Sharing) -> int:
            share = sharing.shared if cross else sharing.shared_self
            return round(share * self._steps)

        return [one for one in self.sharings if one.count > 1 and self._step < last(one)]

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
        rows = slice(sharing.first, sharing.first + sharing.count)
        base = maps[sharing.first + sharing.base]
        if not cross:
            maps[rows] = base.clone()
            return
        source, common = self._tensors(maps, sharing)
        taken = base[..., source].permute(2, 0, 1, 3)
        maps[rows] = taken.where(common[:, None, None, :], maps[rows])

    def _tensors(self, maps: Any, sharing: Sharing) -> tuple[Any, Any]:
        """Return, for each image and token, the place in the base, and whether it has one."""
        if sharing.first not in self._places:
            places = maps.new_tensor(sharing.sources).long()
            self._places[sharing.first] = places.clamp(min=0), places >= 0
        return self._places[sharing.first]


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
            attn.head_to_batch_dim(found)
            for found in (attn.to_q(hidden_states), attn.to_k(seen), attn.to_v(seen))
        )
        maps = attn.get_attention_scores(query, key, mask)
        # A view: what is changed in it is changed in the maps.
        told = maps.view(len(hidden_states), attn.heads, *maps.shape[1:])[-self.control.images :]
        for sharing in active:
            self.control.mix(told, sharing, cross=cross)
        found = attn.batch_to_head_dim(maps.bmm(value))
        return attn.to_out[1](attn.to_out[0](found))


def sharings(
    sizes: Sequence[int],
    bases: Sequence[int],
    shares: Sequence[tuple[float, float]],
    tokens: Sequence[Tokens],
) -> list[Sharing]:
    """Return what the sets of a batch share.

    Parameters
    ----------
    sizes : sequence of int
        Images of each set.
    bases : sequence of int
        Which image of each set is its base.
    shares : sequence of (float, float)
        Of the steps, for maps of texts and of images to themselves.
    tokens : sequence of tuple of int
        Of all prompts.
    """
    found, first = [], 0
    for size, base, (shared, shared_self) in zip(sizes, bases, shares, strict=True):
        own = tokens[first : first + size]
        sources = tuple(aligned(own[base], other) for other in own)
        found.append(Sharing(first, size, base, shared, shared_self, sources))
        first += size
    return found

"""What is asked for: prompts in groups, and what is drawn for each candidate of a group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from equipoise.stats.streams import stream

Shares = tuple[float, float]
"""From which the share of the steps is drawn for each candidate, evenly."""


@dataclass(frozen=True)
class Group:
    """Prompts whose images are made together: a set, or a single prompt.

    Attributes
    ----------
    name : str
        The id of the set, or of the prompt.
    ids, prompts : tuple of str
        Of each prompt of it.
    sets : tuple of str or None
        The set that each prompt belongs to, None where to none.
    """

    name: str
    ids: tuple[str, ...]
    prompts: tuple[str, ...] = field(repr=False)
    sets: tuple[str | None, ...] = field(repr=False)


@dataclass(frozen=True)
class Draws:
    """How candidates are drawn.

    Attributes
    ----------
    seed : int
    shared, shared_self : (float, float) or None
        Ends of what the shares of the steps are drawn from; None where nothing is shared.
    """

    seed: int
    shared: Shares | None = None
    shared_self: Shares | None = None

    def candidate(self, group: Group, number: int) -> Candidate:
        """Return a candidate: the same whatever else is asked for."""
        draws = stream(self.seed, "generation", group.name, number)
        seed, base = int(draws.integers(2**63)), int(draws.integers(len(group.ids)))
        cross, own = (float(one) for one in draws.random(2))
        if self.shared is None:
            return Candidate(group, number, seed)
        return Candidate(
            group, number, seed, base, _between(self.shared, cross), _between(self.shared_self, own)
        )

    @property
    def facts(self) -> dict[str, Any]:
        """All of it, as a key."""
        return {"seed": self.seed, "shared": self.shared, "shared_self": self.shared_self}


def _between(ends: Shares | None, uniform: float) -> float | None:
    return None if ends is None else ends[0] + (ends[1] - ends[0]) * uniform


@dataclass(frozen=True)
class Candidate:
    """One image of each prompt of a group.

    Attributes
    ----------
    group : Group
    number : int
        From 0.
    seed : int
        Of the noise that the images start from.
    base : int or None
        The prompt whose attention the others share; None without control.
    shared, shared_self : float or None
        Shares of the steps; None where nothing is shared.
    """

    group: Group
    number: int
    seed: int
    base: int | None = None
    shared: float | None = None
    shared_self: float | None = None

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.group.ids)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield what is known of each image before it is made."""
        for prompt_id, prompt, name in zip(
            self.group.ids, self.group.prompts, self.group.sets, strict=True
        ):
            yield {
                "image_id": f"{prompt_id}/{self.number:03d}",
                "prompt_id": prompt_id,
                "prompt": prompt,
                "set": name,
                "candidate": self.number,
                "seed": self.seed,
                "shared": self.shared,
                "shared_self": self.shared_self,
                "base": None if self.base is None else self.group.ids[self.base],
            }


@dataclass(frozen=True)
class Piece:
    """Whole candidates that go into one part."""

    number: int
    candidates: tuple[Candidate, ...] = field(repr=False)

    def __len__(self) -> int:
        """Return the number of images."""
        return sum(map(len, self.candidates))


def pieces(groups: Sequence[Group], candidates: int, draws: Draws, part: int) -> Iterator[Piece]:
    """Yield whole candidates in pieces of at most so many images, of one candidate at least.

    All groups have their first candidates before any has later ones. Pieces are cut in blocks of
    candidates whose size depends on the groups alone, so that asking for more candidates leaves
    what was made before as it is, but for the last block.
    """
    images = sum(len(group.ids) for group in groups)
    block = max(part // images, 1)
    number = 0
    for first in range(0, candidates, block):
        held: list[Candidate] = []
        size = 0
        for group in groups:
            for place in range(first, min(first + block, candidates)):
                if held and size + len(group.ids) > part:
                    yield Piece(number, tuple(held))
                    number, held, size = number + 1, [], 0
                held.append(draws.candidate(group, place))
                size += len(group.ids)
        yield Piece(number, tuple(held))
        number += 1

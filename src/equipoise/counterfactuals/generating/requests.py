"""Requested images: prompts in groups, checked at the edge, and the draws of each candidate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from equipoise.core.errors import InputError
from equipoise.counterfactuals.captions import CaptionSets
from equipoise.data.tables import open_table, read_table
from equipoise.stats.streams import stream

Shares = tuple[float, float]
"""Ends between which the share of the steps is drawn for each candidate, evenly."""

COLUMNS = pa.schema(
    [(name, pa.string()) for name in ("image_id", "prompt_id", "prompt", "set")]
    + [("candidate", pa.int64()), ("seed", pa.int64())]
    + [("shared", pa.float64()), ("shared_self", pa.float64())]
    + [(name, pa.string()) for name in ("base", "state", "reason")]
)
"""Columns of each image, beside those of its prompt."""


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
        The set of each prompt, None without one.
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
        Ends between which the shares of the steps are drawn; None where nothing is shared.
    """

    seed: int
    shared: Shares | None = None
    shared_self: Shares | None = None

    @classmethod
    def of(cls, seed: int, shared: Any = None, shared_self: Any = None) -> Draws:
        """Return how candidates are drawn, after a check of the shares."""
        return cls(seed, _shares("shared", shared), _shares("shared_self", shared_self))

    def candidate(self, group: Group, number: int) -> Candidate:
        """Return a candidate, which depends on its group and number alone."""
        draws = stream(self.seed, "generation", group.name, number)
        seed, base = int(draws.integers(2**63)), int(draws.integers(len(group.ids)))
        if self.shared is None:
            return Candidate(group, number, seed)
        shares = [
            None if ends is None else ends[0] + (ends[1] - ends[0]) * uniform
            for ends, uniform in zip(
                (self.shared, self.shared_self), draws.random(2).tolist(), strict=True
            )
        ]
        return Candidate(group, number, seed, base, *shares)


def _shares(name: str, given: Any) -> Shares | None:
    if given is None:
        return None
    ends = (given, given) if isinstance(given, int | float) else tuple(given)
    if len(ends) != 2 or not 0 <= ends[0] <= ends[1] <= 1:
        raise InputError(
            f"{name} is {given}; expected two shares of the steps, from 0 to 1, the lower first"
        )
    return float(ends[0]), float(ends[1])


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
        """Yield the known columns of each image before it is made."""
        group = self.group
        for prompt_id, prompt, name in zip(group.ids, group.prompts, group.sets, strict=True):
            yield {
                "image_id": f"{prompt_id}/{self.number:03d}",
                "prompt_id": prompt_id,
                "prompt": prompt,
                "set": name,
                "candidate": self.number,
                "seed": self.seed,
                "shared": self.shared,
                "shared_self": self.shared_self,
                "base": None if self.base is None else group.ids[self.base],
            }


@dataclass(frozen=True)
class Piece:
    """Whole candidates that go into one part."""

    number: int
    candidates: tuple[Candidate, ...] = field(repr=False)

    def __len__(self) -> int:
        """Return the number of images."""
        return sum(map(len, self.candidates))

    def rows(self) -> list[dict[str, Any]]:
        """Return the known columns of each image before it is made."""
        return [row for candidate in self.candidates for row in candidate.rows()]


def pieces(groups: Sequence[Group], candidates: int, draws: Draws, part: int) -> Iterator[Piece]:
    """Yield whole candidates in pieces of at most `part` images, of one candidate at least.

    All groups have their first candidates before any has later ones. Pieces are cut in blocks of
    candidates whose size depends on the groups alone, so that a request for more candidates leaves
    earlier pieces as they are, but for the last block.
    """
    block = max(part // sum(len(group.ids) for group in groups), 1)
    number = 0
    for first in range(0, candidates, block):
        held: list[Candidate] = []
        for group in groups:
            for place in range(first, min(first + block, candidates)):
                if held and sum(map(len, held)) + len(group.ids) > part:
                    yield Piece(number, tuple(held))
                    number, held = number + 1, []
                held.append(draws.candidate(group, place))
        yield Piece(number, tuple(held))
        number += 1


@dataclass(frozen=True, eq=False)
class Request:
    """Prompts or captions to make images of.

    Attributes
    ----------
    table : pyarrow.Table
        As given; `id` is the column that names a row.
    id : str
        ``prompt_id`` or ``caption_id``.
    groups : tuple of Group
    candidates : int
        Of each group.
    """

    table: pa.Table = field(repr=False)
    id: str
    groups: tuple[Group, ...] = field(repr=False)
    candidates: int

    @property
    def images(self) -> int:
        """Number of images requested."""
        return int(self.table.num_rows) * self.candidates


def request_prompts(table: pa.Table, images: int) -> Request:
    """Return prompts, each a group of its own.

    Raises
    ------
    InputError
        When a column is missing or has a reserved name, or ids are empty or repeat.
    """
    ids, prompts = _texts(table, ("prompt_id", "prompt"), images)
    sets = table["set"].to_pylist() if "set" in table.column_names else [None] * len(ids)
    groups = tuple(
        Group(name, (name,), (prompt,), (own,))
        for name, prompt, own in zip(ids, prompts, sets, strict=True)
    )
    return Request(table, "prompt_id", groups, images)


def request_captions(captions: CaptionSets | pa.Table, candidates: int) -> Request:
    """Return captions, grouped by their sets in the order in which these appear.

    Raises
    ------
    InputError
        As of `request_prompts`.
    """
    table = captions.table if isinstance(captions, CaptionSets) else captions
    ids, sets, texts = _texts(table, ("caption_id", "set", "caption"), candidates)
    members: dict[str, list[int]] = {}
    for place, name in enumerate(sets):
        members.setdefault(name, []).append(place)
    groups = tuple(
        Group(
            name,
            tuple(ids[place] for place in places),
            tuple(texts[place] for place in places),
            (name,) * len(places),
        )
        for name, places in members.items()
    )
    return Request(table, "caption_id", groups, candidates)


def _texts(table: Any, columns: tuple[str, ...], count: int) -> list[list[str]]:
    """Return columns of distinct ids and of texts, checked."""
    if count < 1:
        raise InputError(f"{count} images of each {columns[-1]}; expected 1 or more")
    names = {*table.column_names} if isinstance(table, pa.Table) else set()
    taken = names & ({*COLUMNS.names, "image"} - {*columns, "set"})
    if not names >= {*columns} or taken or not table.num_rows:
        raise InputError(
            f"expected a pyarrow.Table with rows and the columns {', '.join(columns)}, and without "
            f"the columns of images: {', '.join(sorted(taken)) or 'one of the former is missing'}"
        )
    values: list[list[Any]] = [table[name].to_pylist() for name in columns]
    for name, cells in zip(columns, values, strict=True):
        wrong = [one for one in cells if not isinstance(one, str) or not one]
        if name == columns[0]:
            wrong += [one for one, times in Counter(cells).items() if times > 1]
        if wrong:
            raise InputError(
                f"the column {name} has {wrong[0]!r}; expected texts, and each id once"
            )
    return values


def read_prompts(path: Any) -> pa.Table:
    """Read prompts from a table: `prompt_id`, `prompt`, and all its other columns.

    Parameters
    ----------
    path : path or data frame
        CSV, Parquet or JSON lines.

    Raises
    ------
    DataError
        When it cannot be read, or lacks one of the two.
    """
    source = path if isinstance(path, pa.Table) else str(path)
    columns, _ = columns_of(source)
    names = dict.fromkeys(["prompt_id", "prompt", *columns])
    texts = read_table(source, texts=names, role="prompts").texts
    table = pa.table({name: column.to_arrow() for name, column in texts.items()})
    return table.cast(pa.schema([(name, pa.string()) for name in texts]))


def columns_of(source: str | pa.Table) -> tuple[list[str], str | None]:
    """Return the columns of a table that can be read as text, and the column of images."""
    table = open_table(source)
    images = [
        name
        for name, kind in table.kinds.items()
        if pa.types.is_struct(kind) or pa.types.is_binary(kind)
    ]
    return [name for name in table.names if name not in images], next(iter(images), None)

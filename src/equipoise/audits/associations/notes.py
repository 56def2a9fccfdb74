"""What a reader of the findings must know about the embeddings and the sets, in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from equipoise.audits.associations.cases import cases_of
from equipoise.audits.associations.spaces import Space

if TYPE_CHECKING:
    from equipoise.audits.associations.config import Config
    from equipoise.audits.associations.loading import AssociationData

# Below so many members a bootstrap interval is too short.
FEW = 10
_LISTED = 10


def notes_of(config: Config, data: AssociationData, spaces: Sequence[Space]) -> tuple[str, ...]:
    """Return the notes on an audit, each once."""
    found = [_PERCEIVED]
    for space in spaces:
        found += [*_embeddings(space)]
    found += [*_sets(config, data), *_unanswered(config, spaces)]
    return tuple(dict.fromkeys(found))


_PERCEIVED = (
    "Sets and groups are as they were named and as the data label them: perceived attributes and "
    "chosen words, not identities. Other words or images would give other numbers."
)


def _embeddings(space: Space) -> Iterator[str]:
    for table, vectors in space.data.vectors.get(space.model, {}).items():
        where, counts = f"{space.model}, {table}", vectors.counts
        if not vectors.normalised:
            known = int(vectors.usable.sum())
            yield f"{where}: the {known} vectors are not all of length 1, and were normalised."
        if vectors.dtype.itemsize == 2:
            yield f"{where}: vectors are stored as float16, and were computed with in float64."
        for key, what in _LEFT.items():
            if n := counts.get(key, 0):
                named = ", ".join(map(str, counts.get(f"{key}_examples", ())))
                yield f"{where}: {n} {what}{f' ({named})' if named else ''}."


_LEFT = {
    "not_finite": "vectors hold NaN or an infinity, and are left out of every set",
    "zero": "vectors are zero, and are left out of every set",
    "items_without_row": "items have no vector, and are left out of every set",
    "rows_without_item": "vectors have no item, and are not used",
}


def _sets(config: Config, data: AssociationData) -> Iterator[str]:
    used = {
        name for asked in config.measure for names in asked.set_names.values() for name in names
    }
    if unused := [name for name in data.sets if name not in used]:
        yield f"No question names the sets {', '.join(unused)}."
    ones = [*_small(data, used, 1, 1)]
    if ones:
        yield (f"Sets of one, which no interval resamples: {_cut(ones)}.")
    few = [*_small(data, used, 2, FEW - 1)]
    if few:
        yield f"Sets of fewer than {FEW}, whose intervals are too short: {_cut(few)}."
    yield from _shared(config, data)
    yield from _unequal(config, data)
    yield from _cells(config, data)
    for name, one in data.items.items():
        for column, count in one.counts["missing"].items():
            if count:
                yield (
                    f"{name}: {count} items have no {column}: they are in no set or group that "
                    "asks for it."
                )


def _small(data: AssociationData, used: set[str], least: int, most: int) -> Iterator[str]:
    for name, by_table in data.sets.items():
        for kind in dict.fromkeys(data.kinds[table] for table in by_table):
            n = sum(len(rows) for table, rows in by_table.items() if data.kinds[table] == kind)
            if name in used and least <= n <= most:
                yield f"{name} ({n} {kind}{'' if n == 1 else 's'})" if n > 1 else f"{name} ({kind})"


def _shared(config: Config, data: AssociationData) -> Iterator[str]:
    """Name the members that two sets of one question share."""
    for asked in config.measure:
        pairs = [asked.attributes, asked.target_names if len(asked.target_names) == 2 else ()]
        pairs += [(target, one) for target in asked.target_names for one in asked.attributes]
        for pair in pairs:
            if len(pair) == 2 and (both := _both(data, pair[0], pair[1])):
                yield (
                    f"{pair[0]} and {pair[1]} share {len(both)} of their members, which stay in "
                    f"both: {_cut(both)}."
                )


def _both(data: AssociationData, first: str, second: str) -> list[str]:
    found = []
    for table, rows in data.sets[first].items():
        others = {*data.sets[second].get(table, ())}
        found += [str(data.items[table].ids[row]) for row in rows if row in others]
    return found


def _unequal(config: Config, data: AssociationData) -> Iterator[str]:
    for asked in config.measure:
        if asked.metric != "weat":
            continue
        first, second = asked.target_names
        sizes = [sum(len(rows) for rows in data.sets[name].values()) for name in (first, second)]
        if sizes[0] != sizes[1]:
            yield (
                f"{first} and {second} have {sizes[0]} and {sizes[1]} members: partitions keep "
                "these sizes."
            )


def _cells(config: Config, data: AssociationData) -> Iterator[str]:
    """Count the cells of groups and regions that hold few images."""
    seen = set()
    for asked in config.measure:
        if asked.images is None or asked.groups is None or asked.regions is None:
            continue
        coded = data.items[asked.images].coded
        group, region = coded[asked.groups], coded[asked.regions]
        known = (group.codes >= 0) & (region.codes >= 0)
        many = len(group.vocabulary)
        cells = region.codes[known].astype(int) * many + group.codes[known]
        sizes = np.bincount(cells, minlength=many * len(region.vocabulary))
        few = [
            f"{group.vocabulary[cell % many]} in {region.vocabulary[cell // many]} ({sizes[cell]})"
            for cell in np.flatnonzero(sizes < FEW)
        ]
        if few and (asked.groups, asked.regions) not in seen:
            seen.add((asked.groups, asked.regions))
            yield f"Fewer than {FEW} images, whose intervals are too short: {_cut(few)}."


def _unanswered(config: Config, spaces: Sequence[Space]) -> Iterator[str]:
    for index, asked in enumerate(config.measure):
        meant = [space for space in spaces if asked.model in (None, space.model)]
        without = [space.model for space in meant if not cases_of(asked, space)]
        if without:
            yield (
                f"measure[{index}] ({asked.metric}) is not answered by {', '.join(without)}, which "
                "lacks embeddings or scores that it needs."
            )


def _cut(names: Iterable[str]) -> str:
    every = [*names]
    return ", ".join(every[:_LISTED]) + (", …" if len(every) > _LISTED else "")

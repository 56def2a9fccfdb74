"""What a reader of the findings must know about the embeddings and the sets, in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from equipoise.audits.associations.apart import kinds_apart, left_with, usable_apart
from equipoise.audits.associations.cases import cases_of
from equipoise.audits.associations.spaces import Indices, Space
from equipoise.data.coded import Coded

if TYPE_CHECKING:
    from equipoise.audits.associations.config import Config
    from equipoise.audits.associations.config_measures import MeasureConfig
    from equipoise.audits.associations.loading import AssociationData

# Below so many members a bootstrap interval is too short.
FEW = 10
_LISTED = 10
_NOBODY = np.empty(0, dtype=np.int64)

_Found = TypeVar("_Found")


def notes_of(config: Config, data: AssociationData, spaces: Sequence[Space]) -> tuple[str, ...]:
    """Return the notes on an audit, each once."""
    found = [_PERCEIVED]
    for space in spaces:
        found += [*_embeddings(space)]
    found += [*_sets(config, data, spaces), *_unanswered(config, spaces)]
    return tuple(dict.fromkeys(found))


_PERCEIVED = (
    "Sets and groups are as they were named and as the data label them: perceived attributes and "
    "chosen words, not identities. Other words or images would give other numbers."
)


def _embeddings(space: Space) -> Iterator[str]:
    for table, vectors in space.data.vectors.get(space.model, {}).items():
        where, counts = f"{space.model}, {table}", vectors.counts
        if vectors.rescaled:
            known = int(vectors.usable.sum())
            yield f"{where}: the {known} vectors are not all of length 1, and were normalised."
        if vectors.dtype.itemsize == 2:
            yield f"{where}: vectors are stored as float16, and were computed with in float64."
        left = {**counts, "items_without_row": vectors.without_vector.untold}
        for key, what in _LEFT.items():
            if n := left.get(key, 0):
                named = ", ".join(map(str, counts.get(f"{key}_examples", ())))
                several = what if n > 1 else _ONE[key]
                yield f"{where}: {n} {several}{f' ({named})' if named else ''}."


_LEFT = {
    "not_finite": "vectors hold NaN or an infinity, and are left out of every set",
    "zero": "vectors are zero, and are left out of every set",
    "items_without_row": "items have no vector, and are left out of every set",
    "rows_without_item": "vectors have no item, and are not used",
}
_ONE = {
    "not_finite": "vector holds NaN or an infinity, and is left out of every set",
    "zero": "vector is zero, and is left out of every set",
    "items_without_row": "item has no vector, and is left out of every set",
    "rows_without_item": "vector has no item, and is not used",
}


def _sets(config: Config, data: AssociationData, spaces: Sequence[Space]) -> Iterator[str]:
    used = {
        name for asked in config.measure for names in asked.set_names.values() for name in names
    }
    if unused := [name for name in data.sets if name not in used]:
        yield f"No question names the sets {', '.join(unused)}."
    ones = [*_small(data, spaces, used, 1, 1)]
    if ones:
        yield (f"Sets of one, which no interval resamples: {_cut(ones)}.")
    few = [*_small(data, spaces, used, 2, FEW - 1)]
    if few:
        yield f"Sets of fewer than {FEW}, whose intervals are too short: {_cut(few)}."
    yield from _shared(config, data, spaces)
    yield from _unequal(config, spaces)
    yield from _cells(config, data, spaces)
    for name, one in data.items.items():
        for column, count in one.counts["missing"].items():
            if count:
                yield (
                    f"{name}: {count} items have no {column}: they are in no set or group that "
                    "asks for it."
                )


def _small(
    data: AssociationData, spaces: Sequence[Space], used: set[str], least: int, most: int
) -> Iterator[str]:
    """Name sets by how many of their members a model can use, not by how many were listed."""
    for name, by_table in data.sets.items():
        if name not in used:
            continue
        for kind in dict.fromkeys(data.kinds[table] for table in by_table):
            models = _models({one.model: one.count(name, kind) for one in spaces})
            for n, where in models.items():
                if least <= n <= most:
                    many = kind if n == 1 else f"{n} {kind}s"
                    yield f"{name} ({many}{where})"


def _models(found: Mapping[str, _Found]) -> dict[_Found, str]:
    """Return what was found with the models it holds for, named where these are not all."""
    by_found: dict[_Found, list[str]] = {}
    for model, one in found.items():
        by_found.setdefault(one, []).append(model)
    return {
        one: "" if len(by_found) == 1 else f" of {' and '.join(models)}"
        for one, models in by_found.items()
    }


def _shared(config: Config, data: AssociationData, spaces: Sequence[Space]) -> Iterator[str]:
    """Name the members that two sets of one question share."""
    every = frozenset(data.kinds.values())
    for asked in config.measure:
        for pair in (asked.attributes, asked.target_names):
            if len(pair) == 2:
                yield from _in_both(data, pair[0], pair[1], every)
        apart = kinds_apart(asked, spaces)
        for target in asked.target_names:
            for one in (*asked.attributes, *asked.further):
                yield from _in_both(data, target, one, every - apart)
                yield from _left(data, asked, target, one, apart)
                yield from _rest(asked, target, one, apart, spaces)
                yield from _units(data, asked, target, one, apart)


def _in_both(
    data: AssociationData, first: str, second: str, kinds: frozenset[str]
) -> Iterator[str]:
    if both := _both(data, first, second, kinds):
        yield (
            f"{first} and {second} share {len(both)} of their members, which stay in both: "
            f"{_cut(both)}."
        )


def _left(
    data: AssociationData, asked: MeasureConfig, target: str, name: str, kinds: frozenset[str]
) -> Iterator[str]:
    for kind in sorted(kinds):
        if not (both := _both(data, target, name, frozenset([kind]))):
            continue
        size = sum(
            len(rows) for table, rows in data.sets[name].items() if data.kinds[table] == kind
        )
        which = "each by itself " if asked.metric == "sc_weat" else ""
        yield (
            f"{len(both)} of the {size} {kind}s of {name} are in {target}, too. None is compared "
            f"with itself: they are left out of {name} {which}where {target} is a target: "
            f"{_cut(both)}."
        )


def _rest(
    asked: MeasureConfig, target: str, name: str, kinds: frozenset[str], spaces: Sequence[Space]
) -> Iterator[str]:
    """Say of how few members a set of attributes is without the targets."""
    if asked.metric == "sc_weat":
        return
    targets = left_with(asked, target)
    for kind in sorted(kinds):
        found = {one.model: usable_apart(one, name, kind, targets) for one in spaces}
        for (usable, rest), where in _models(found).items():
            if 0 < rest < min(usable, FEW):
                many = f"1 {kind} is" if rest == 1 else f"{rest} {kind}s are"
                what = "no interval resamples it" if rest == 1 else "intervals are too short"
                yield (
                    f"Only {many} left in {name}{where} where {' and '.join(targets)} "
                    f"{'is a target' if len(targets) == 1 else 'are targets'}: {what}."
                )


def _units(
    data: AssociationData, asked: MeasureConfig, target: str, name: str, kinds: frozenset[str]
) -> Iterator[str]:
    """Count units, such as people, that a target and a set of attributes have other members of."""
    for kind in sorted(kinds):
        ours, theirs = set[str](), set[str]()
        for table, column in data.units.items():
            if data.kinds[table] != kind:
                continue
            every = [data.sets[one].get(table, _NOBODY) for one in left_with(asked, target)]
            rest = np.setdiff1d(data.sets[name].get(table, _NOBODY), np.concatenate(every))
            units = data.items[table].columns[column]
            ours |= {*units[data.sets[target].get(table, _NOBODY)]} - {None}
            theirs |= {*units[rest]} - {None}
        if both := sorted(ours & theirs):
            yield (
                f"{len(both)} of the {len(ours)} units of {target} have other {kind}s in {name}, "
                f"which stay there. Where {kind}s of one unit are alike, this alone draws {target} "
                f"to {name}: {_cut(both)}."
            )


def _both(data: AssociationData, first: str, second: str, kinds: frozenset[str]) -> list[str]:
    found = []
    for table, rows in data.sets[first].items():
        if data.kinds[table] in kinds:
            others = {*data.sets[second].get(table, ())}
            found += [str(data.items[table].ids[row]) for row in rows if row in others]
    return found


def _unequal(config: Config, spaces: Sequence[Space]) -> Iterator[str]:
    for asked in config.measure:
        if asked.metric != "weat":
            continue
        first, second = asked.target_names
        for kind in ("image", "text"):
            sizes = {one.model: (one.count(first, kind), one.count(second, kind)) for one in spaces}
            for (x, y), where in _models(sizes).items():
                if x != y and x and y:
                    yield (
                        f"{first} and {second} have {x} and {y} {kind}s{where}: partitions keep "
                        "these sizes."
                    )


def _cells(config: Config, data: AssociationData, spaces: Sequence[Space]) -> Iterator[str]:
    """Count the cells of groups and regions that hold few images with a usable vector."""
    for asked in config.measure:
        if asked.images is None or asked.groups is None or asked.regions is None:
            continue
        coded = data.items[asked.images].coded
        group, region = coded[asked.groups], coded[asked.regions]
        found = {
            space.model: _few(group, region, space.places(asked.images))
            for space in spaces
            if space.knows(asked.images)
        }
        for few, where in _models(found).items():
            if few:
                yield f"Fewer than {FEW} images{where}, whose intervals are too short: {_cut(few)}."


def _few(group: Coded, region: Coded, usable: Indices) -> tuple[str, ...]:
    """Name the cells with few images, and how many these have."""
    groups, regions = group.codes[usable], region.codes[usable]
    known = (groups >= 0) & (regions >= 0)
    many = len(group.vocabulary)
    cells = regions[known].astype(int) * many + groups[known]
    sizes = np.bincount(cells, minlength=many * len(region.vocabulary))
    return tuple(
        f"{group.vocabulary[cell % many]} in {region.vocabulary[cell // many]} ({sizes[cell]})"
        for cell in np.flatnonzero(sizes < FEW)
    )


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

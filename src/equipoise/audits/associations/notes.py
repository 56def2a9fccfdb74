"""Notes on embeddings and sets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from equipoise.audits.engines.associations.cases import cases_of, targets_apart
from equipoise.audits.engines.associations.spaces import AssociationData, Indices, Space
from equipoise.data.coded import Coded

if TYPE_CHECKING:
    from equipoise.audits.associations.config import Config
    from equipoise.audits.config_associations import MeasureConfig

# Below so many members a bootstrap interval is too short.
FEW = 10
_LISTED = 10
_NOBODY = np.empty(0, dtype=np.int64)
_LEFT_OUT = {
    "not_finite": ("vector holds NaN or an infinity", "vectors hold NaN or an infinity"),
    "zero": ("vector is zero", "vectors are zero"),
    "items_without_row": ("item has no vector", "items have no vector"),
}

Fact = TypeVar("Fact")


def notes_of(config: Config, data: AssociationData) -> Iterator[str]:
    """Yield the notes on an audit."""
    spaces = data.spaces
    yield "Sets are chosen words and images: others would give other numbers."
    for space in spaces:
        yield from _embeddings(space)
    yield from _sets(config, data, spaces)
    for index, options in enumerate(config.measure):
        asked = [space for space in spaces if options.model in (None, space.model)]
        lacking = [space.model for space in asked if not cases_of(options, space)]
        if lacking:
            yield (
                f"measure[{index}] ({options.metric}) isn't measured for {', '.join(lacking)}: it "
                "lacks embeddings or scores."
            )


def _embeddings(space: Space) -> Iterator[str]:
    vectors_of = {} if space.model in space.data.planned else space.data.vectors
    for table, vectors in vectors_of.get(space.model, {}).items():
        where, counts = f"{space.model}, {table}", vectors.counts
        if vectors.rescaled:
            known = int(vectors.usable.sum())
            yield f"{where}: the {known} vectors are not all of length 1, and were normalised."
        if vectors.dtype.itemsize == 2:
            yield f"{where}: vectors are stored as float16, and were computed with in float64."
        numbers = {**counts, "items_without_row": vectors.without_vector.untold}
        for key, (singular, plural) in _LEFT_OUT.items():
            if n := numbers.get(key, 0):
                what = f"{plural}, and are" if n > 1 else f"{singular}, and is"
                yield f"{where}: {n} {what} left out of every set{_examples(counts, key)}."
        if n := counts.get("rows_without_item", 0):
            what = "vectors have no item, and are" if n > 1 else "vector has no item, and is"
            yield f"{where}: {n} {what} not used{_examples(counts, 'rows_without_item')}."


def _examples(counts: Mapping[str, Iterable[object]], key: str) -> str:
    named = ", ".join(map(str, counts.get(f"{key}_examples", ())))
    return f" ({named})" if named else ""


def _sets(config: Config, data: AssociationData, spaces: Sequence[Space]) -> Iterator[str]:
    used = {name for each in config.measure for names in each.set_names.values() for name in names}
    if unused := [name for name in data.sets if name not in used]:
        yield f"No measurement names the sets {', '.join(unused)}."
    sizes = [each for name in data.sets if name in used for each in _sizes(name, data, spaces)]
    if ones := [text for n, text in sizes if n == 1]:
        yield f"Sets of one, which no interval resamples: {_cut(ones)}."
    if few := [text for n, text in sizes if 1 < n < FEW]:
        yield f"Sets of fewer than {FEW}, whose intervals are too short: {_cut(few)}."
    for options in config.measure:
        yield from _shared(data, options, spaces)
        yield from _unequal(options, spaces)
        yield from _cells(data, options, spaces)
    for name, items in data.items.items():
        for column, n in items.counts["missing"].items():
            if n:
                yield f"{name}: {n} items have no {column}, and are in no set or group by it."


def _sizes(name: str, data: AssociationData, spaces: Sequence[Space]) -> Iterator[tuple[int, str]]:
    """Yield how many members of a set a model can use, of each kind."""
    for kind in dict.fromkeys(data.kinds[table] for table in data.sets[name]):
        for n, where in _models({each.model: each.count(name, kind) for each in spaces}).items():
            yield n, f"{name} ({kind if n == 1 else f'{n} {kind}s'}{where})"


def _models(facts: Mapping[str, Fact]) -> dict[Fact, str]:
    """Return facts with their models, which are named where these are not all."""
    by_fact: dict[Fact, list[str]] = {}
    for model, fact in facts.items():
        by_fact.setdefault(fact, []).append(model)
    return {
        fact: "" if len(by_fact) == 1 else f" of {' and '.join(models)}"
        for fact, models in by_fact.items()
    }


def _shared(
    data: AssociationData, options: MeasureConfig, spaces: Sequence[Space]
) -> Iterator[str]:
    """Yield notes on members that two sets of one measurement share."""
    every = frozenset(data.kinds.values())
    for pair in (options.attributes, options.target_names):
        if len(pair) == 2:
            yield from _in_both(data, pair[0], pair[1], every)
    cases = [case for space in spaces for case in cases_of(options, space)]
    apart = sorted({kind for case in cases for kind in case.kinds_alike})
    for target in options.target_names:
        for name in (*options.attributes, *options.further):
            yield from _in_both(data, target, name, every - {*apart})
            for kind in apart:
                yield from _left_out(data, options, target, name, kind)
                yield from _rest(options, target, name, kind, spaces)
                yield from _units(data, options, target, name, kind)


def _in_both(
    data: AssociationData, first: str, second: str, kinds: frozenset[str]
) -> Iterator[str]:
    if both := _both(data, first, second, kinds):
        yield (
            f"{first} and {second} share {len(both)} of their members, which stay in both: "
            f"{_cut(both)}."
        )


def _left_out(
    data: AssociationData, options: MeasureConfig, target: str, name: str, kind: str
) -> Iterator[str]:
    if both := _both(data, target, name, frozenset([kind])):
        size = sum(len(rows) for t, rows in data.sets[name].items() if data.kinds[t] == kind)
        which = "each by itself " if options.metric == "sc_weat" else ""
        yield (
            f"{len(both)} of the {size} {kind}s of {name} are in {target}, too. None is compared "
            f"with itself: they are left out of {name} {which}where {target} is a target: "
            f"{_cut(both)}."
        )


def _rest(
    options: MeasureConfig, target: str, name: str, kind: str, spaces: Sequence[Space]
) -> Iterator[str]:
    """Yield the note on a set of attributes with few members that are no targets."""
    if options.metric == "sc_weat":
        return
    targets = targets_apart(options, target)
    sizes = {space.model: space.usable_apart(name, kind, targets) for space in spaces}
    for (usable, rest), where in _models(sizes).items():
        if 0 < rest < min(usable, FEW):
            many = f"1 {kind} is" if rest == 1 else f"{rest} {kind}s are"
            what = "no interval resamples it" if rest == 1 else "intervals are too short"
            yield (
                f"Only {many} left in {name}{where} where {' and '.join(targets)} "
                f"{'is a target' if len(targets) == 1 else 'are targets'}: {what}."
            )


def _units(
    data: AssociationData, options: MeasureConfig, target: str, name: str, kind: str
) -> Iterator[str]:
    """Count units, such as people, with some items in a target and others in the attributes."""
    ours, theirs = set[str](), set[str]()
    for table, column in data.units.items():
        if data.kinds[table] == kind:
            targets = [
                data.sets[each].get(table, _NOBODY) for each in targets_apart(options, target)
            ]
            rest = np.setdiff1d(data.sets[name].get(table, _NOBODY), np.concatenate(targets))
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
    return [
        str(data.items[table].ids[row])
        for table, rows in data.sets[first].items()
        if data.kinds[table] in kinds
        for row in rows[np.isin(rows, data.sets[second].get(table, _NOBODY))]
    ]


def _unequal(options: MeasureConfig, spaces: Sequence[Space]) -> Iterator[str]:
    if options.metric != "weat":
        return
    first, second = options.target_names
    for kind in ("image", "text"):
        sizes = {each.model: (each.count(first, kind), each.count(second, kind)) for each in spaces}
        for (x, y), where in _models(sizes).items():
            if x != y and x and y:
                yield (
                    f"{first} and {second} have {x} and {y} {kind}s{where}: partitions keep these "
                    "sizes."
                )


def _cells(data: AssociationData, options: MeasureConfig, spaces: Sequence[Space]) -> Iterator[str]:
    """Yield notes on regions with few images of a group."""
    if options.images is None or options.groups is None or options.regions is None:
        return
    coded = data.items[options.images].coded
    group, region = coded[options.groups], coded[options.regions]
    cells = {
        space.model: _few(group, region, space.places(options.images))
        for space in spaces
        if space.knows(options.images)
    }
    for few, where in _models(cells).items():
        if few:
            yield f"Fewer than {FEW} images{where}, whose intervals are too short: {_cut(few)}."


def _few(group: Coded, region: Coded, usable: Indices) -> tuple[str, ...]:
    """Return the regions and groups with few images, with their sizes."""
    groups, regions = group.codes[usable], region.codes[usable]
    known = (groups >= 0) & (regions >= 0)
    many = len(group.vocabulary)
    cells = regions[known].astype(int) * many + groups[known]
    sizes = np.bincount(cells, minlength=many * len(region.vocabulary))
    return tuple(
        f"{group.vocabulary[cell % many]} in {region.vocabulary[cell // many]} ({sizes[cell]})"
        for cell in np.flatnonzero(sizes < FEW)
    )


def _cut(names: Sequence[str]) -> str:
    return ", ".join(names[:_LISTED]) + (", …" if len(names) > _LISTED else "")

"""What a reader of the findings must know about the data, in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from equipoise.audits.group_sizes import odd_labels, without_group
from equipoise.audits.kinds import PERCEIVED
from equipoise.audits.predictions.designs import Design
from equipoise.data import PredictionData
from equipoise.data.problems import listed

if TYPE_CHECKING:
    from equipoise.audits.predictions.config_inputs import DataConfig

# Classes that a note lists.
_LISTED = 5


def notes_of(every: Sequence[Design], data: PredictionData, given: DataConfig) -> tuple[str, ...]:
    """Return the notes on an audit, each once."""
    found = [PERCEIVED, *_without_label(data), *_unused(data)]
    for design in every:
        found += _of_groups(design, given.target)
        found += [*_small(design), *without_group(design.groups)]
        found += odd_labels(design.groups, "rows", given)
    return tuple(dict.fromkeys(found))


def notes_of_groups(every: Sequence[Design], target: str) -> tuple[str, ...]:
    """Return the notes on how groups, true classes and those of a model go together, each once."""
    found = [note for design in every for note in _of_groups(design, target)]
    return tuple(dict.fromkeys([*found, *_may_be_outside(every, target)]))


def _may_be_outside(every: Sequence[Design], target: str) -> Iterator[str]:
    """Say which models that are yet to run know classes that the data do not have."""
    for design in every:
        counts = design.data.counts["models"][design.model]["versions"][design.version]
        outside = counts.get("offered_outside", ())
        if outside:
            yield (
                f"{design.model}: no row has {listed(outside, _LISTED)} as data.target, {target}, "
                "and these are classes of the model. Where it predicts one, the audit stops after "
                f"it has run: map them under models.{design.model}.map, or set "
                f"models.{design.model}.open_vocabulary: true."
            )


def _of_groups(design: Design, target: str) -> Iterator[str]:
    # Who is misgendered is asked by groups of the very gender that is predicted.
    if target in design.groups.attributes:
        yield (
            f"{design.groups.name}: {target} is the target and makes groups, so differences "
            "between these say which classes are found less often. That is bias against people "
            f"only where {target} is an attribute of people, such as gender."
        )
    yield from _determined(design)


def _without_label(data: PredictionData) -> Iterator[str]:
    for name, model in data.models.items():
        if model.without_label:
            yield f"{name}: {model.without_label} predictions have no label and are not used."
        for state, what in _STATES.items():
            if count := model.told(state):
                yield f"{name}: {count} labelled rows {what}."


def _unused(data: PredictionData) -> Iterator[str]:
    """Name entries of class mappings that no row used: perhaps a typing error."""
    found = {"data": data.counts["labels"]}
    for model, counts in data.counts["models"].items():
        for version, facts in counts["versions"].items():
            found[f"{model}, {version}"] = facts
    for where, facts in found.items():
        near = facts.get("map_nearest", {})
        labels = [
            f"{one} (misspelt? there is {near[one]!r}, which the map does not name)"
            if one in near
            else one
            for one in facts.get("map_unused", ())
        ]
        if labels:
            yield f"{where}: no row has the label of map entries {', '.join(labels)}."


_STATES = {
    "unmatched": "have no prediction row and are not used",
    "missing": "have an empty prediction and are left out of accuracy",
    "unknown": 'were answered with "unknown" and are left out of accuracy',
    "refused": "were refused and are left out of accuracy",
}


def _determined(design: Design) -> Iterator[str]:
    if design.counts.determines_target:
        which = _determining(design)
        yield (
            f"{design.groups.name}: {which} determines the target, so accuracy is tested over all "
            "rows only, not also within each true class."
        )


def _determining(design: Design) -> str:
    """Name the attributes that determine the target alone, or the whole combination."""
    counts = design.counts
    by_class = counts.by_truth(counts.table[None])[0] > 0
    alone = []
    for place, name in enumerate(design.groups.attributes):
        levels: dict[str, set[int]] = {}
        for group, labels in enumerate(design.groups.levels):
            seen = by_class[:, group].nonzero()[0].tolist()
            levels.setdefault(labels[place], set()).update(seen)
        if all(len(classes) <= 1 for classes in levels.values()):
            alone.append(name)
    return _named(alone or design.groups.attributes)


def _named(attributes: Iterable[str]) -> str:
    names = [*attributes]
    return f"the attribute {names[0]}" if len(names) == 1 else f"{' with '.join(names)}"


def _small(design: Design) -> Iterator[str]:
    groups = design.groups
    few = [
        f"{name} ({n})"
        for name, n, usable in zip(groups.names, groups.counts, groups.usable, strict=True)
        if n and not usable
    ]
    if few:
        have = "group has" if len(few) == 1 else "groups have"
        yield (
            f"{groups.name}: {len(few)} {have} fewer than {groups.min_size} rows, not compared: "
            f"{', '.join(few[:10])}{', …' if len(few) > 10 else ''}."
        )
    empty = [name for name, n in zip(groups.names, groups.counts, strict=True) if n == 0]
    if empty and not design.counts.determines_target:
        have = "intersection has" if len(empty) == 1 else "intersections have"
        yield (
            f"{groups.name}: {len(empty)} {have} no rows: {', '.join(empty[:10])}"
            f"{', …' if len(empty) > 10 else ''}."
        )

"""Versions of design choices: what each one changes, and their combinations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from equipoise.audits.concepts.config_choices import ChoicesConfig
from equipoise.audits.config_sections import among

BASELINE = "baseline"
MOST_VERSIONS = 200
_BY_KEY = ("terms", "columns", "where")


@dataclass(frozen=True)
class Version:
    """One version of the choices.

    Attributes
    ----------
    name : str
    choices : ChoicesConfig
        With everything that it does not change taken from the baseline.
    changed : tuple of str
        Keys that it changes, those of mappings with the key within ("where.box_share").
    """

    name: str
    choices: ChoicesConfig
    changed: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """Where the configuration has it."""
        return f"versions.{self.name}" if self.changed else "choices"

    @property
    def description(self) -> str:
        """What it changes, in words."""
        return "; ".join(_described(self.choices, key) for key in self.changed)


def versions_of(
    baseline: ChoicesConfig,
    declared: Mapping[str, ChoicesConfig],
    cross: bool | tuple[str, ...] = False,
) -> tuple[Version, ...]:
    """Return the baseline, the declared versions and the combinations asked for.

    Raises
    ------
    ValueError
        When a version changes nothing or has the name of the baseline, a name to cross is none,
        or there are too many combinations.
    """
    changes = {name: _changed(one) for name, one in declared.items()}
    for name, keys in changes.items():
        if name == BASELINE:
            raise ValueError(
                f"versions: the name {name!r} is that of the choices; expected another"
            )
        if not keys:
            raise ValueError(f"versions.{name}: changes nothing; expected at least one choice")
    chosen = list(declared) if cross is True else list(cross or ())
    for name in chosen:
        among("cross", name, list(declared))
    found = [Version(BASELINE, baseline)]
    found += [Version(n, _merged(baseline, [one]), changes[n]) for n, one in declared.items()]
    for names in _combinations(chosen, changes):
        if len(found) == MOST_VERSIONS:
            raise ValueError(
                f"cross: more than {MOST_VERSIONS} versions in all. To do: list fewer names"
            )
        keys = tuple(key for name in names for key in changes[name])
        choices = _merged(baseline, [declared[name] for name in names])
        found.append(Version(" + ".join(names), choices, keys))
    return tuple(found)


def _changed(one: ChoicesConfig) -> tuple[str, ...]:
    keys: list[str] = []
    for key in type(one).model_fields:
        if key in one.model_fields_set:
            within = getattr(one, key)
            keys += [f"{key}.{name}" for name in within] if key in _BY_KEY else [key]
    return tuple(keys)


def _merged(baseline: ChoicesConfig, changes: Iterable[ChoicesConfig]) -> ChoicesConfig:
    values: dict[str, Any] = {}
    for one in changes:
        for key in one.model_fields_set:
            new = getattr(one, key)
            old = values.get(key, getattr(baseline, key))
            values[key] = {**old, **new} if key in _BY_KEY else new
    return baseline.model_copy(update=values)


def _combinations(
    names: list[str], changes: Mapping[str, tuple[str, ...]]
) -> Iterator[tuple[str, ...]]:
    """Yield combinations of two or more versions that change different things."""
    dimensions: list[list[str]] = []
    for name in names:
        keys = {*changes[name]}
        same = [d for d in dimensions if any(keys & {*changes[other]} for other in d)]
        dimensions = [d for d in dimensions if d not in same]
        dimensions.append([*(other for d in same for other in d), name])
    for combined in product(*(("", *sorted(one, key=names.index)) for one in dimensions)):
        used = tuple(name for name in combined if name)
        if len(used) > 1:
            yield used


_PREVALENCE = {
    "weighted": "prevalence held fixed by weights, {ratio:g} negatives for each positive",
    "hall": "samples of fixed prevalence, {ratio:g} negatives for each positive",
    "observed": "prevalence as the data have it",
}


def _described(choices: ChoicesConfig, key: str) -> str:
    head, _, within = key.partition(".")
    value = getattr(choices, head)
    if head == "prevalence":
        return _PREVALENCE[value].format(ratio=choices.ratio)
    if head == "terms":
        groups = value[within]
        said = ", ".join(f"{group}: {' or '.join(terms)}" for group, terms in groups.items())
        return f"{within} by the terms {said}" if said else f"{within} as the data have it"
    if head == "columns":
        return f"{within} from the column {value[within]}"
    if head == "where":
        return _rows(within, value[within])
    if head == "ratio":
        return f"{value:g} negatives for each positive"
    if head == "map":
        return f"the class mapping “{value}”"
    return f"{head.replace('_', ' ')} {str(value).replace('_', ' ')}"


def _rows(column: str, rows: object) -> str:
    low, high, values = (getattr(rows, name) for name in ("min", "max", "values"))
    if values:
        return f"rows whose {column} is {' or '.join(values)}"
    bounds = [f"at least {low:g}"] if low is not None else []
    bounds += [f"at most {high:g}"] if high is not None else []
    return f"rows whose {column} is {' and '.join(bounds)}" if bounds else f"rows of any {column}"

"""What an audit would do and could find, before anything is measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Any

from scipy.special import ndtri

from equipoise.audits.associations.apart import check_apart
from equipoise.audits.associations.cases import Case, cases_of, tests_of
from equipoise.audits.associations.spaces import Space, spaces_of
from equipoise.audits.drawing import most_tests, tests_by_model
from equipoise.audits.kinds import estimated_seconds
from equipoise.metrics.associations.partitions import count_partitions

if TYPE_CHECKING:
    from equipoise.audits.associations.config import Config
    from equipoise.audits.associations.config_measures import MeasureConfig
    from equipoise.audits.associations.loading import AssociationData

Row = dict[str, Any]

_POWER = 0.8
# Seconds for a thousand replicates of one member of a set, and for a number of its own whatever
# its sets: rough guides, from the example.
_SECONDS_PER_MEMBER, _SECONDS_PER_CASE = 2e-4, 7e-3


@dataclass(frozen=True)
class Plan:
    """What an audit would do.

    Attributes
    ----------
    tables : list of dict
        Per table: its kind, items and units.
    sets : list of dict
        Per set: images and texts.
    models : list of dict
        Per model and table: items with an embedding or scores, and without.
    questions : list of dict
        Per entry of `measure` and model: how many numbers, tests and modalities.
    detectable : list of dict
        Per WEAT: the smallest p-value that its sizes allow, and about the smallest effect size
        that would show with a power of 80 %.
    tests : int
        How many tests there are to correct for, of the model with the most.
    seconds : float
        A rough guide.
    """

    tables: list[Row]
    sets: list[Row]
    models: list[Row]
    questions: list[Row]
    detectable: list[Row]
    tests: int
    seconds: float


def plan(config: Config, data: AssociationData) -> Plan:
    """Say what the audit would do and could find; nothing is measured.

    Raises
    ------
    DataError
        When the targets of a question are all that a model can use of a set of attributes.
    """
    spaces = spaces_of(data)
    asked = [(index, one, space) for index, one in enumerate(config.measure) for space in spaces]
    for _, one, space in asked:
        check_apart(one, space)
    tests = tests_by_model((space.model, tests_of(one, space)) for _, one, space in asked)
    return Plan(
        tables=[_table(name, data) for name in data.items],
        sets=[_set(name, data) for name in data.sets],
        models=[row for space in spaces for row in _model(space)],
        questions=[_question(index, one, space) for index, one, space in asked],
        detectable=[
            row
            for _, one, space in asked
            for row in _detectable(one, space, config, tests[space.model])
        ],
        tests=most_tests(tests),
        seconds=estimated_seconds(sum(_seconds(one, space, config) for _, one, space in asked)),
    )


def _table(name: str, data: AssociationData) -> Row:
    items, unit = data.items[name], data.units.get(name)
    units = None if unit is None else len(items.coded[unit].vocabulary)
    return {"table": name, "kind": data.kinds[name], "items": len(items), "units": units}


def _set(name: str, data: AssociationData) -> Row:
    sizes = {"image": 0, "text": 0}
    for table, rows in data.sets[name].items():
        sizes[data.kinds[table]] += len(rows)
    return {"set": name, "images": sizes["image"], "texts": sizes["text"]}


def _model(space: Space) -> Iterator[Row]:
    for table in space.data.items:
        if space.knows(table):
            without = space.unusable(table)
            known = len(space.data.items[table]) - without
            yield {"model": space.model, "table": table, "usable": known, "without": without}


def _question(index: int, asked: MeasureConfig, space: Space) -> Row:
    cases = cases_of(asked, space)
    return {
        "question": f"{index}: {asked.metric}",
        "model": space.model,
        "groups": asked.group_text,
        "numbers": len(cases),
        "modalities": [*dict.fromkeys(case.modality for case in cases if case.modality)],
        "tests": tests_of(asked, space),
    }


def _detectable(asked: MeasureConfig, space: Space, config: Config, tests: int) -> Iterator[Row]:
    if asked.metric != "weat":
        return
    for case in cases_of(asked, space):
        sizes = [len(space.chosen(name, case.kinds[1])) for name in case.targets]
        yield {
            "targets": " against ".join(case.targets),
            "model": space.model,
            "modality": case.modality,
            "smallest_p": float(f"{1 / count_partitions(*sizes):.3g}"),
            "effect_size": _smallest(sizes[0], sizes[1], config.testing.alpha / max(tests, 1)),
        }


def _smallest(first: int, second: int, alpha: float) -> float | None:
    """Effect size that a one-sided comparison of means shows, in units of the joint spread."""
    if count_partitions(first, second) < 1 / alpha:
        return None
    apart = float(ndtri(1 - alpha) + ndtri(_POWER)) * sqrt(1 / first + 1 / second)
    shares = first * second / (first + second) ** 2
    return round(apart / sqrt(1 + apart**2 * shares), 3)


def _seconds(asked: MeasureConfig, space: Space, config: Config) -> float:
    per = _SECONDS_PER_MEMBER * config.resampling.replicates / 1000
    cases = cases_of(asked, space)
    return _SECONDS_PER_CASE * len(cases) + per * sum(_members(asked, space, x) for x in cases)


def _members(asked: MeasureConfig, space: Space, case: Case) -> int:
    if asked.images is not None:
        return len(space.data.items[asked.images])
    names = (*case.targets, *asked.attributes)
    return sum(len(rows) for name in names for rows in space.data.sets[name].values())

"""Attributes that a model predicted: its errors on labelled rows, and what has no verdict."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, Protocol

from equipoise.audits.config import AuditConfig
from equipoise.audits.config_groups import GroupSourceConfig
from equipoise.audits.findings import UncorrectedFinding
from equipoise.audits.notes import Note, first_of
from equipoise.config.fields import located
from equipoise.core import ConfigError, Labels, Strings, integers
from equipoise.core.finding import attributes_of
from equipoise.data.tables import read_table
from equipoise.metrics.labels.misclassified_groups import AssignedGroups
from equipoise.metrics.labels.shares import Confusion
from equipoise.stats.streams import Seed

# Parts of names of columns that programs write.
_PREDICTED = re.compile(
    r"(^|[_\W])(pred|predicted|prediction|inferred|estimated|detected|classified|machine|auto"
    r"|fairface|deepface|insightface|clip|rekognition)($|[_\W\d])",
    re.IGNORECASE,
)
_LEAST_LABELLED, _MOST_CONDITION = 10, 20.0
UNCORRECTED = "groups are predicted by a model, whose errors this number isn't corrected for"
"""Why a number about predicted groups has no verdict."""


class Source(NamedTuple):
    """A model that predicts an attribute, with its confusion.

    Attributes
    ----------
    confusion : Confusion or None
        Its predictions on labelled rows; None where they are too few.
    problem : str
        Why nothing can be corrected.
    """

    confusion: Confusion | None
    problem: str


def read_sources(config: AuditConfig, base: Path) -> dict[str, Source]:
    """Return the confusion of each attribute that a model predicted.

    Raises
    ------
    ConfigError
        When an attribute is none of the config.
    DataError
        When a table of labelled rows can't be read.
    """
    sources = {}
    for name, section in config.group_sources.items():
        if name not in config.group_columns:
            raise ConfigError(
                f"group_sources.{name}: no attribute that is compared; expected one of "
                f"{first_of(config.group_columns)}"
            )
        if section.source == "machine":
            sources[name] = _source(name, section, base)
    return sources


def _source(name: str, section: GroupSourceConfig, base: Path) -> Source:
    if section.confusion is not None:
        classes = tuple(section.confusion)
        outcomes = tuple(
            dict.fromkeys((*classes, *(key for row in section.confusion.values() for key in row)))
        )
        counts = [[row.get(key, 0) for key in outcomes] for row in section.confusion.values()]
        confusion = Confusion(classes, outcomes, integers(counts))
    elif section.labelled is not None:
        labelled = section.labelled
        columns = labelled.true, labelled.predicted or name
        table = read_table(
            located(labelled.table, base), texts=columns, role=f"labelled rows of {name}",
            encoding=labelled.encoding, delimiter=labelled.delimiter,
        )  # fmt: skip
        true, predicted = (
            _without(table.texts[column].to_list(), labelled.missing) for column in columns
        )
        confusion, _ = Confusion.of_labels(true, predicted)
    else:
        return Source(None, "no labelled rows say how often it errs")
    least = min(confusion.labelled.tolist(), default=0)
    if least < _LEAST_LABELLED:
        problem = f"a group has {least} labelled rows; expected {_LEAST_LABELLED} or more of each"
        return Source(None, problem)
    if confusion.arranged(confusion.classes, ()).condition > _MOST_CONDITION:
        return Source(None, "it hardly separates the groups")
    return Source(confusion, "")


def _without(labels: Sequence[str | None], missing: Sequence[str]) -> Labels:
    return [None if label is None or label in missing else label for label in labels]


def notes_on_sources(config: AuditConfig, sources: Mapping[str, Source]) -> Iterator[Note]:
    """Yield notes on attributes that a model predicted, or whose names say so."""
    for name, source in sources.items():
        if source.confusion is None:
            yield Note(
                name,
                f"groups are predicted by a model, and {source.problem}. Nothing has a verdict. "
                "Add `confusion` or `labelled` under `group_sources`.",
            )
        else:
            yield Note(
                name,
                "groups are predicted by a model. Rates, gaps and sizes of groups are corrected by "
                f"{int(source.confusion.labelled.sum())} labelled rows; its errors are taken not "
                "to depend on the outcome. Other numbers have no verdict; causes and the mix of "
                "classes are left out.",
            )
    for name in config.group_columns:
        if name not in config.group_sources and _PREDICTED.search(name):
            yield Note(
                name,
                "the name says that a model predicted the groups. Errors of the model make gaps "
                "look smaller. Declare their origin under `group_sources`: `source: machine` "
                "with its `confusion`, or `source: people`.",
            )


def are_predicted(groups: str, sources: Iterable[str]) -> bool:
    """Whether a model predicted an attribute of these groups."""
    return not {*attributes_of(groups)}.isdisjoint(sources)


def assigned_groups(
    groups: str, levels: Sequence[Strings], sources: Mapping[str, Source], seed: Seed
) -> AssignedGroups | None:
    """Return how assigned groups come from true ones, or None where nothing says so.

    Parameters
    ----------
    groups : str
        Attributes.
    levels : sequence of tuple of str
        Values of the attributes, of each group.
    sources, seed
    """
    confusions, all_values = [], []
    for place, name in enumerate(attributes_of(groups)):
        values = tuple(dict.fromkeys(level[place] for level in levels))
        source = sources.get(name)
        if source is not None and (
            source.confusion is None or not {*values} <= {*source.confusion.classes}
        ):
            return None
        confusions.append(None if source is None else source.confusion)
        all_values.append(values)
    assigned = AssignedGroups(tuple(confusions), tuple(all_values), tuple(levels), seed)
    return assigned if assigned.condition <= _MOST_CONDITION else None


class _Sourced(Protocol):
    """A config that says where groups are from."""

    @property
    def group_sources(self) -> Mapping[str, GroupSourceConfig]: ...


def predicted_attributes(configs: Iterable[_Sourced]) -> frozenset[str]:
    """Return the attributes that a model predicted, by any of several configs."""
    return frozenset(
        name
        for config in configs
        for name, section in config.group_sources.items()
        if section.source == "machine"
    )


def withhold(draft: UncorrectedFinding) -> UncorrectedFinding:
    """Return a finding without test and intervals."""
    by_group = tuple(
        replace(group, low=math.nan, high=math.nan) for group in draft.finding.by_group
    )
    return draft.changed(
        p_value=math.nan, ci_low=math.nan, ci_high=math.nan, ratio=None, by_group=by_group,
        reason=UNCORRECTED,
    )  # fmt: skip


def withhold_changes(
    drafts: Iterable[UncorrectedFinding], predicted: Collection[str]
) -> Iterator[UncorrectedFinding]:
    """Yield differences of models; those about predicted groups have no test and interval."""
    for draft in drafts:
        yield withhold(draft) if are_predicted(draft.finding.groups, predicted) else draft


def notes_on_changes(predicted: Iterable[str]) -> Iterator[Note]:
    """Yield a note on each attribute that a model predicted, for comparisons of models."""
    for name in sorted(predicted):
        yield Note(
            name,
            "groups are predicted by a model. Its errors hide a part of each change, so changes "
            "between groups have no verdict. An audit of each model has corrected numbers.",
        )

"""Which answers an audit looks at: model × question × version × groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from equipoise.audits.config_problems import nearest
from equipoise.audits.config_sections import group_name
from equipoise.audits.predictions.designs import Design, check_groups, chosen, groups_of
from equipoise.core.errors import ConfigError
from equipoise.metrics.counts import Counts, count

if TYPE_CHECKING:
    from equipoise.audits.answers.config import AnswersOptions, Config
    from equipoise.audits.answers.loading import AnswersData, Asked
    from equipoise.data import Coded

RARER = "(rarer answers)"
"""What answers are pooled under that are given too seldom to be compared by themselves."""

RAW = "raw"
NONE_GIVEN = ("unknown", "refused", "missing")
"""States of a row without an answer."""


@dataclass(frozen=True, eq=False)
class AnswersDesign:
    """One version of a model's answers to a question, held against one set of groups.

    Attributes
    ----------
    asked : Asked
    design : Design
        The rows; its model is `asked.key`.
    version : str
        As findings call it: the question and the version of the answers, where there are several.
    leads : bool
        Whether it is what is tested; raw texts beside their normalised form are only shown.
    """

    asked: Asked
    design: Design
    version: str
    leads: bool

    @property
    def groups(self) -> str:
        """Name of what makes the groups."""
        return self.design.groups.name

    @cached_property
    def label(self) -> Coded:
        """Answers of the rows."""
        return self.design.label

    @cached_property
    def silent(self) -> bool:
        """Whether no row of a group has an answer."""
        return not ((self.label.codes >= 0) & (self.design.groups.codes >= 0)).any()

    @cached_property
    def counts(self) -> Counts:
        """Counts of answers by group, every answer by itself."""
        return self._counted(self.label)

    def pooled(self, options: AnswersOptions) -> Counts:
        """Counts of answers by group, those pooled that are too rare or too many."""
        frequent = [*frequent_answers(self.label, options)]
        if len(frequent) == int((self.label.counts > 0).sum()):
            return self.counts
        kept = set(frequent)
        names = [name if name in kept else RARER for name in self.label.vocabulary]
        return self._counted(self.label.relabel(names))

    def _counted(self, label: Coded) -> Counts:
        return count(label, label, self.design.groups, units=self.design.units)

    @cached_property
    def states(self) -> npt.NDArray[np.object_]:
        """State of each row in words."""
        rows, state = self.design.rows, self.design.data.models[self.asked.key].coded_state
        return np.asarray(chosen(state, rows).values)


def frequent_answers(label: Coded, options: AnswersOptions) -> Iterator[str]:
    """Yield the answers that are compared by themselves, the most frequent first."""
    counts = label.counts
    order = sorted(range(len(counts)), key=lambda code: (-counts[code], label.vocabulary[code]))
    for code in order[: options.most]:
        if counts[code] >= options.least:
            yield label.vocabulary[code]


def designs(config: Config, data: AnswersData) -> list[AnswersDesign]:
    """Return every combination, in the order of the configuration.

    Raises
    ------
    DataError
        When fewer than two groups can be compared.
    ConfigError
        When a figure names a group that is not compared.
    """
    every = [*_every(config, data)]
    check_groups((one.design.groups for one in every), data.rows)
    for one in every:
        _check_figures(one, config)
    return every


def _check_figures(one: AnswersDesign, config: Config) -> None:
    """Refuse a figure whose first group is not compared."""
    groups = one.design.groups
    usable = [name for name, large in zip(groups.names, groups.usable, strict=True) if large]
    for name in figures_about(one, config):
        first = config.figures[name].first
        if first not in usable:
            raise ConfigError(
                f"figures.{name}.first: given {first!r}. Allowed: {', '.join(usable)}"
                f"{nearest(first, usable)}"
            )


def figures_about(one: AnswersDesign, config: Config) -> Iterator[str]:
    """Yield the names of the figures that a design's answers are held against."""
    for name, figure in config.figures.items():
        wanted = group_name(figure.groups or config.data.groups[0])
        if one.leads and not one.silent and wanted == one.groups:
            yield name


def _every(config: Config, data: AnswersData) -> Iterator[AnswersDesign]:
    for asked in data.asked:
        model = data.rows.models[asked.key]
        rows = model.state != "unmatched"
        versions = [*model.versions]
        for version in versions:
            for attributes in config.data.groups:
                groups = groups_of(config.data, data.rows, attributes, rows)
                design = Design(asked.key, version, groups, data.rows, rows)
                named = _version(asked.question, version)
                yield AnswersDesign(asked, design, named, version == versions[-1])


def _version(question: str, version: str) -> str:
    parts = [question, "" if version == "default" and question else version]
    return ", ".join(part for part in parts if part)


def tests_of(one: AnswersDesign, options: AnswersOptions | None) -> int:
    """Return about how many tests a design makes."""
    if not one.leads:
        return 0
    return 4 + (len([*frequent_answers(one.label, options)]) if options is not None else 0)

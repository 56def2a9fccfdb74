"""Which answers an audit looks at: model × question × version × groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from equipoise.audits.config_problems import nearest
from equipoise.audits.config_sections import group_name
from equipoise.audits.engines.labels import LabelDesign, check_groups, groups_by
from equipoise.core.errors import ConfigError
from equipoise.metrics.counts import Counts, count

if TYPE_CHECKING:
    from equipoise.audits.answers.config import AnswersOptions, Config
    from equipoise.audits.answers.loading import AnswersData
    from equipoise.data import Coded

RARER = "(rarer answers)"
"""What answers are pooled under that are given too seldom to be compared by themselves."""

# Seconds for a design and for a cell of a resampled table: rough guides, from the example.
_SECONDS_PER_DESIGN, _SECONDS_PER_CELL = 0.15, 2e-7
RAW = "raw"
NONE_GIVEN = ("unknown", "refused", "missing")
"""States of a row without an answer."""


@dataclass(frozen=True, eq=False)
class AnswersDesign(LabelDesign):
    """One version of a model's answers to a question, compared between one set of groups.

    Attributes
    ----------
    question : str
        Its name; "" where there is one question only.
    leads : bool
        Whether it is what is tested; raw texts beside their normalised form are only shown.
    options : AnswersOptions or None
        Of the comparison answer by answer.
    figures : int
        Figures from outside, counted as tests with the first design of a model.
    """

    question: str = ""
    leads: bool = True
    options: AnswersOptions | None = None
    figures: int = 0

    @property
    def shown(self) -> str:
        """The version as findings call it: the question and the version, where several."""
        version = "" if self.version == "default" and self.question else self.version
        return ", ".join(part for part in (self.question, version) if part)

    @cached_property
    def answers(self) -> Coded:
        """Answers of the rows."""
        return self.label

    @cached_property
    def silent(self) -> bool:
        """Whether no row of a group has an answer."""
        return not ((self.answers.codes >= 0) & (self.groups.codes >= 0)).any()

    @cached_property
    def by_answer(self) -> Counts:
        """Counts of answers by group, every answer by itself."""
        return self._counted(self.answers)

    @property
    def tests(self) -> int:
        """About how many tests the design makes."""
        if not self.leads:
            return self.figures
        compared = [] if self.options is None else [*frequent_answers(self.answers, self.options)]
        return 4 + len(compared) + self.figures

    def seconds(self, draws: int) -> float:
        """About how long it takes to measure."""
        cells = int((self.answers.counts > 0).sum()) * len(self.groups)
        return _SECONDS_PER_DESIGN + cells * draws * _SECONDS_PER_CELL

    def pooled(self, options: AnswersOptions) -> Counts:
        """Counts of answers by group, those pooled that are too rare or too many."""
        frequent = [*frequent_answers(self.answers, options)]
        if len(frequent) == int((self.answers.counts > 0).sum()):
            return self.by_answer
        kept = set(frequent)
        names = [name if name in kept else RARER for name in self.answers.vocabulary]
        return self._counted(self.answers.relabel(names))

    def _counted(self, label: Coded) -> Counts:
        return count(label, label, self.groups, units=self.units)


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
    check_groups((design.groups for design in every), data.rows)
    for design in every:
        _check_figures(design, config)
    return every


def _check_figures(design: AnswersDesign, config: Config) -> None:
    """Refuse a figure whose first group is not compared."""
    groups = design.groups
    usable = [name for name, large in zip(groups.names, groups.usable, strict=True) if large]
    for name in figures_about(design, config):
        first = config.figures[name].first
        if first not in usable:
            raise ConfigError(
                f"figures.{name}.first: given {first!r}. Allowed: {', '.join(usable)}"
                f"{nearest(first, usable)}"
            )


def figures_about(design: AnswersDesign, config: Config) -> Iterator[str]:
    """Yield the names of the figures that a design's answers are compared with."""
    for name, figure in config.figures.items():
        wanted = group_name(figure.groups or config.data.groups[0])
        if design.leads and not design.silent and wanted == design.groups.name:
            yield name


def _every(config: Config, data: AnswersData) -> Iterator[AnswersDesign]:
    counted: set[str] = set()
    for asked in data.asked:
        model = data.rows.models[asked.key]
        rows = model.state != "unmatched"
        groups = [
            groups_by(attributes, data.rows, config.data.min_group_size, rows)
            for attributes in config.data.groups
        ]
        versions = [*model.versions]
        for version in versions:
            for each in groups:
                yield AnswersDesign(
                    asked.model, version, each, data.rows, rows, asked.key,
                    question=asked.question,
                    leads=version == versions[-1],
                    options=config.metrics.answer_gap,
                    figures=0 if asked.model in counted else len(config.figures),
                )  # fmt: skip
                counted.add(asked.model)

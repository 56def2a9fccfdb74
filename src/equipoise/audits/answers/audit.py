"""The audit of answers: who gets none, and who gets which."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.audits.answers import designs, loading, tables
from equipoise.audits.answers.config import AnswersOptions, Config
from equipoise.audits.answers.designs import NONE_GIVEN, AnswersDesign, frequent_answers
from equipoise.audits.answers.loading import AnswersData
from equipoise.audits.answers.measuring import measure_design
from equipoise.audits.answers.outside import lost_answers, related
from equipoise.audits.audit import Audit, Measured, audit_kind
from equipoise.audits.engines.labels import groups_by
from equipoise.audits.outputs import NOT_YET_KNOWN
from equipoise.core.groups import Groups
from equipoise.stats.power import minimum_difference

if TYPE_CHECKING:
    from equipoise.audits.outputs import Models
    from equipoise.stats.resampling import Resampling


@audit_kind("answers")
class Answers(Audit[Config, AnswersData, AnswersDesign]):
    """Audits of free-text answers to questions about images."""

    def load(self, config: Config, models: Models) -> AnswersData:
        """Read the images and the answers to each question."""
        return loading.load(config, models)

    def groups(self, config: Config, data: AnswersData) -> list[Groups]:
        """Return the groups of all images."""
        size = config.data.min_group_size
        return [groups_by(attributes, data.rows, size) for attributes in config.data.groups]

    def designs(self, config: Config, data: AnswersData) -> list[AnswersDesign]:
        """Return every combination of model, question, version and groups."""
        return designs.designs(config, data)

    def measure(
        self,
        config: Config,
        data: AnswersData,
        design: AnswersDesign,
        resampling: Resampling | None,
    ) -> Measured:
        """Measure one design with everything that the config asks for."""
        options = _options(config)
        findings = measure_design(design, config, resampling)
        figures = related(design, config, data, options)
        findings += [finding for each in figures for finding in each.drafts]
        notes = tuple(filter(None, map(lost_answers, figures)))
        return Measured(tuple(findings), tables.of_design(design, figures, options), notes)

    def combine(self, config: Config, data: AnswersData, measured: Sequence[Measured]) -> Measured:
        """Add the raw texts behind each answer."""
        every = Measured.together(measured)
        texts = tables.texts_of(data, _options(config))
        return replace(every, tables={**every.tables, **texts})

    def details(
        self,
        config: Config,
        data: AnswersData,
        designs: Sequence[AnswersDesign],
        tests: Mapping[str, int],
    ) -> Mapping[str, Any]:
        """Return rows, rows and answers of each model, and the smallest gaps to be seen.

        Per model, question and groups: the smallest difference in the share of an answer of 10 %
        that the two smallest groups would show with a power of 80 %.
        """
        leading = [each for each in designs if each.leads]
        first = designs[0].groups.name
        return {
            "rows": len(data.ids),
            "models": [_model(each, config) for each in leading if each.groups.name == first],
            "detectable": [_detectable(each, config, tests[each.model]) for each in leading],
        }

    def notes(
        self, config: Config, data: AnswersData, designs: Sequence[AnswersDesign]
    ) -> Iterable[str]:
        """Return the notes on rows without an answer, and on answers that are pooled."""
        yield (
            "Shares of an answer are of the rows that have one; rows without an answer are "
            "compared by themselves."
        )
        for asked in data.asked:
            model = data.rows.models[asked.key]
            for state in ("unmatched", *NONE_GIVEN):
                if n := model.rows(state):
                    yield f"{asked.key}: {n} rows {_STATES[state]}."
            if model.without_label:
                n = model.without_label
                yield f"{asked.key}: {n} answers are about no image of the table."
        for design in designs:
            yield from _of_design(design, config)


def _options(config: Config) -> AnswersOptions:
    return config.metrics.answer_gap or AnswersOptions()


def _model(one: AnswersDesign, config: Config) -> dict[str, Any]:
    answered = int((one.state == "answered").sum())
    place = {"model": one.model, "question": one.question}
    raw = next(iter(one.labels.versions.values()))
    if raw.coded.vocabulary == (NOT_YET_KNOWN,):
        # Only the answers tell, and there are none.
        told = "answered", "unanswered", "without_answers", "different_answers", "compared"
        return place | dict.fromkeys(told)
    return place | {
        "answered": answered,
        "unanswered": len(one.state) - answered,
        "without_answers": len(one.rows) - len(one.state),
        "different_answers": int((one.answers.counts > 0).sum()),
        "compared": len([*frequent_answers(one.answers, _options(config))]),
    }


def _detectable(one: AnswersDesign, config: Config, tests: int) -> dict[str, Any]:
    groups = one.groups
    alpha, least = config.testing.alpha, None
    if groups.usable.sum() > 1:
        first, second, *_ = np.sort(groups.counts[groups.usable]).tolist()
        least = minimum_difference(first, second, 0.1, alpha=alpha, tests=max(tests, 1))
    place = {"model": one.model, "question": one.question, "groups": one.groups.name}
    return place | {"share_difference": least}


_STATES = {
    "unmatched": "have no row of answers and are not used",
    "missing": "have an empty answer",
    "unknown": "were answered with “do not know”",
    "refused": "were refused",
}


def _of_design(one: AnswersDesign, config: Config) -> Iterator[str]:
    groups = one.groups
    if one.leads and one.silent:
        yield (
            f"{one.key}, {groups.name}: no row of a group has an answer, so only the rates "
            "of rows without one are measured."
        )
        return
    different, options = int((one.answers.counts > 0).sum()), config.metrics.label_concentration
    if one.leads and options is not None and different <= options.k:
        yield (
            f"{one.key}: no label concentration: there are {different} different answers, "
            f"and the {options.k} most frequent are all of them."
        )
    apart = len([*frequent_answers(one.answers, _options(config))])
    if one.leads and apart < different:
        yield (
            f"{one.key}: {different - apart} of {different} different answers are given "
            "too seldom to be compared by themselves, and are pooled."
        )

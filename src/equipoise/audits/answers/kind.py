"""The audit of answers in its three steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.audits.answers import loading
from equipoise.audits.answers.config import AnswersOptions
from equipoise.audits.answers.designs import (
    NONE_GIVEN,
    AnswersDesign,
    designs,
    frequent_answers,
    tests_of,
)
from equipoise.audits.answers.measuring import measure_design
from equipoise.audits.answers.outside import Related, lost_answers, related
from equipoise.audits.answers.running import STAND_IN
from equipoise.audits.answers.tables import tables_of
from equipoise.audits.drawing import most_tests, tests_by_model
from equipoise.audits.findings import Draft
from equipoise.audits.group_sizes import odd_labels, planned, without_group
from equipoise.audits.kinds import PERCEIVED, Measured, Progress, estimated_seconds, told
from equipoise.stats.power import minimum_difference

if TYPE_CHECKING:
    from equipoise.audits.answers.config import Config
    from equipoise.audits.answers.loading import AnswersData

# Seconds for a design and for a cell of a resampled table: rough guides, from the example.
_SECONDS_PER_DESIGN, _SECONDS_PER_CELL = 0.15, 2e-7


def load(config: Config, *, base: Path) -> AnswersData:
    """Read the images and what was answered, see `loading.load`."""
    return loading.load(config, base=base)


def measure(config: Config, data: AnswersData, progress: Progress | None) -> Measured:
    """Measure every model and question on every choice of groups.

    Raises
    ------
    DataError, ConfigError
        See `designs.designs`.
    """
    every = designs(config, data)
    options = _options(config)
    tests = _tests(every, config)
    drafts: list[Draft] = []
    found: list[Related] = []
    for one in told(every, progress, "measuring"):
        drafts += measure_design(one, config, tests[one.asked.model])
        new = related(one, config, data, options)
        drafts += [draft for some in new for draft in some.drafts]
        found += new
    notes = tuple(dict.fromkeys(_notes(every, config, data, found)))
    return Measured(tuple(drafts), tables_of(config, data, every, found, options), notes)


def _options(config: Config) -> AnswersOptions:
    return config.metrics.answer_gap or AnswersOptions()


def _tests(every: Sequence[AnswersDesign], config: Config) -> Counter[str]:
    options, related_to = config.metrics.answer_gap, len(config.figures)
    found = tests_by_model((one.asked.model, tests_of(one, options)) for one in every)
    return Counter({model: tests + related_to for model, tests in found.items()})


@dataclass(frozen=True)
class Plan:
    """What an audit of answers would do.

    Attributes
    ----------
    rows : int
    models : list of dict
        Per model and question: rows answered and not, without a partner, different answers, and
        those compared by themselves; None before the model was asked.
    groups : list of dict
        Per group: rows, and whether it is large enough to be compared; then rows in no group, by
        reason.
    detectable : list of dict
        Per model, question and groups: the smallest difference in the share of an answer of 10 %
        that the two smallest groups would show with a power of 80 %.
    tests : int
        About how many there are to correct for, of the model with the most.
    seconds : float
        A rough guide.
    """

    rows: int
    models: list[dict[str, Any]]
    groups: list[dict[str, Any]]
    detectable: list[dict[str, Any]]
    tests: int
    seconds: float


def plan(config: Config, data: AnswersData) -> Plan:
    """Say what the audit would do and could find; nothing is measured.

    Raises
    ------
    DataError, ConfigError
        See `designs.designs`.
    """
    every = designs(config, data)
    leading = [one for one in every if one.leads]
    tests = _tests(every, config)
    by_groups = {one.groups: one.design for one in every}
    return Plan(
        rows=len(data.rows.ids),
        models=[_model(one, config) for one in leading if one.groups == every[0].groups],
        groups=[
            row
            for one in by_groups.values()
            for row in planned(one.groups, "rows", one.lacking, config.data)
        ],
        detectable=[_detectable(one, config, tests[one.asked.model]) for one in leading],
        tests=most_tests(tests),
        seconds=estimated_seconds(sum(_seconds(one, config) for one in every)),
    )


def _model(one: AnswersDesign, config: Config) -> dict[str, Any]:
    answered = int((one.states == "answered").sum())
    place = {"model": one.asked.model, "question": one.asked.question}
    raw = next(iter(one.design.data.models[one.asked.key].versions.values()))
    if raw.coded.vocabulary == (STAND_IN,):
        # Only the answers tell, and there are none.
        told = "answered", "unanswered", "without_answers", "different_answers", "compared"
        return place | dict.fromkeys(told)
    return place | {
        "answered": answered,
        "unanswered": len(one.states) - answered,
        "without_answers": len(one.design.rows) - len(one.states),
        "different_answers": int((one.label.counts > 0).sum()),
        "compared": len([*frequent_answers(one.label, _options(config))]),
    }


def _detectable(one: AnswersDesign, config: Config, tests: int) -> dict[str, Any]:
    groups = one.design.groups
    alpha, least = config.testing.alpha, None
    if groups.usable.sum() > 1:
        first, second, *_ = np.sort(groups.counts[groups.usable]).tolist()
        least = minimum_difference(first, second, 0.1, alpha=alpha, tests=max(tests, 1))
    place = {"model": one.asked.model, "question": one.asked.question, "groups": one.groups}
    return place | {"share_difference": least}


def _seconds(one: AnswersDesign, config: Config) -> float:
    draws = 2 * config.resampling.replicates + (config.resampling.permutations or 10_000)
    cells = int((one.label.counts > 0).sum()) * len(one.design.groups)
    return _SECONDS_PER_DESIGN + cells * draws * _SECONDS_PER_CELL


_SAID = {
    "unmatched": "have no row of answers and are not used",
    "missing": "have an empty answer",
    "unknown": "were answered with “do not know”",
    "refused": "were refused",
}


def _notes(
    every: Sequence[AnswersDesign], config: Config, data: AnswersData, found: Sequence[Related]
) -> Iterator[str]:
    yield PERCEIVED
    yield (
        "Shares of an answer are of the rows that have one; rows without an answer are compared "
        "by themselves."
    )
    for asked in data.asked:
        model = data.rows.models[asked.key]
        for state in ("unmatched", *NONE_GIVEN):
            if n := model.told(state):
                yield f"{asked.key}: {n} rows {_SAID[state]}."
        if model.without_label:
            yield f"{asked.key}: {model.without_label} answers are about no image of the table."
    for one in every:
        yield from _of_design(one, config)
    yield from filter(None, map(lost_answers, found))


def _of_design(one: AnswersDesign, config: Config) -> Iterator[str]:
    groups = one.design.groups
    few = [
        f"{name} ({n})"
        for name, n, usable in zip(groups.names, groups.counts.tolist(), groups.usable, strict=True)
        if not usable
    ]
    if few:
        more = ", …" if len(few) > 10 else ""
        yield (
            f"{groups.name}: fewer than {groups.min_size} rows, not compared: "
            f"{', '.join(few[:10])}{more}."
        )
    yield from odd_labels(groups, "rows", config.data)
    yield from without_group(groups)
    if one.leads and one.silent:
        yield (
            f"{one.asked.key}, {groups.name}: no row of a group has an answer, so only the rates "
            "of rows without one are measured."
        )
        return
    different, options = int((one.label.counts > 0).sum()), config.metrics.label_concentration
    if one.leads and options is not None and different <= options.k:
        yield (
            f"{one.asked.key}: no label concentration: there are {different} different answers, "
            f"and the {options.k} most frequent are all of them."
        )
    apart = len([*frequent_answers(one.label, _options(config))])
    if one.leads and apart < different:
        yield (
            f"{one.asked.key}: {different - apart} of {different} different answers are given "
            "too seldom to be compared by themselves, and are pooled."
        )

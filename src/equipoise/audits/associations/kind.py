"""The audit of associations in its three steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from equipoise.audits.associations import loading, planning
from equipoise.audits.associations.cases import cases_of, tests_between, tests_of
from equipoise.audits.associations.composites import measure_mcas, measure_xmcas
from equipoise.audits.associations.encoders import measure_totals
from equipoise.audits.associations.labels import (
    measure_concentration,
    measure_label_weat,
    two_groups,
)
from equipoise.audits.associations.notes import notes_of
from equipoise.audits.associations.outside import measure_alignment, measure_correlation
from equipoise.audits.associations.pieces import Note, Piece, Question, Row
from equipoise.audits.associations.scores import (
    measure_differential,
    measure_sc_weat,
    measure_scores,
    measure_weat,
)
from equipoise.audits.associations.spaces import Space, spaces_of
from equipoise.audits.associations.tables import tables_of
from equipoise.audits.associations.words import measure_gender_difference, measure_trend, words_of
from equipoise.audits.drawing import resampling_of, tests_by_model
from equipoise.audits.findings import Draft
from equipoise.audits.kinds import Measured, Progress, told
from equipoise.core.errors import DataError
from equipoise.core.finding import Family

if TYPE_CHECKING:
    from equipoise.audits.associations.config import Config
    from equipoise.audits.associations.config_measures import MeasureConfig
    from equipoise.audits.associations.loading import AssociationData
    from equipoise.audits.associations.planning import Plan

_MEASURES: Mapping[str, Callable[[Question], Iterator[Piece]]] = MappingProxyType(
    {
        "association_score": measure_scores,
        "weat": measure_weat,
        "sc_weat": measure_sc_weat,
        "differential_association": measure_differential,
        "mcas": measure_mcas,
        "xmcas": measure_xmcas,
        "total_absolute_association": measure_totals,
        "predicted_label_weat": measure_label_weat,
        "label_concentration": measure_concentration,
        "trend": measure_trend,
        "gender_difference": measure_gender_difference,
        "alignment": measure_alignment,
        "correlation": measure_correlation,
    }
)


def load(config: Config, *, base: Path) -> AssociationData:
    """Read items, embeddings, sets and figures from outside, see `loading.load`."""
    return loading.load(config, base=base)


def plan(config: Config, data: AssociationData) -> Plan:
    """Say what the audit would do and could find, see `planning.plan`.

    Raises
    ------
    DataError
        Where `measure` refuses a question whatever the numbers are.
    """
    check_questions(config, spaces_of(data))
    return planning.plan(config, data)


def measure(config: Config, data: AssociationData, progress: Progress | None) -> Measured:
    """Ask every question of every model.

    Raises
    ------
    DataError
        When no model can answer a question, a word is both positive and negative, or a metric of
        two groups has others.
    """
    spaces = spaces_of(data)
    check_questions(config, spaces)
    tests = tests_by_model(
        (space.model, tests_of(asked, space)) for asked in config.measure for space in spaces
    )
    resampling = {space.model: resampling_of(config, tests[space.model]) for space in spaces}
    between = resampling_of(config, sum(tests_between(one, spaces) for one in config.measure))
    pieces: list[Piece] = []
    for index, asked in enumerate(told(config.measure, progress, "measuring")):
        question = Question(
            index, asked, data, (*spaces,), resampling, config.resampling.seed,
            config.resampling.level, between=between,
        )  # fmt: skip
        pieces += _MEASURES[asked.metric](question)
    notes = [piece.text for piece in pieces if isinstance(piece, Note)]
    return Measured(
        drafts=tuple(_once(piece for piece in pieces if isinstance(piece, Draft))),
        tables=tables_of(config, data, spaces, (one for one in pieces if isinstance(one, Row))),
        notes=tuple(dict.fromkeys([*notes_of(config, data, spaces), *notes])),
    )


def check_questions(config: Config, spaces: Sequence[Space]) -> None:
    """Refuse questions that have no answer, before any is measured.

    Raises
    ------
    DataError
        As `measure`.
    """
    for index, asked in enumerate(config.measure):
        check_answerable(index, asked, spaces)
        for space in (one for one in spaces if cases_of(asked, one)):
            if asked.metric in ("trend", "gender_difference"):
                words_of(asked, space)
            elif asked.metric == "predicted_label_weat":
                two_groups(asked, space)


def check_answerable(index: int, asked: MeasureConfig, spaces: Iterable[Space]) -> None:
    """Refuse a question that no model can answer.

    Raises
    ------
    DataError
        Naming the question and what it needs.
    """
    if any(cases_of(asked, space) for space in spaces):
        return
    sets = [name for names in asked.set_names.values() for name in names]
    raise DataError(
        f"measure[{index}] ({asked.metric}): no model has embeddings or scores of all it needs",
        expected=_needs(asked, sets),
        fix="add members of that kind to the sets, or embeddings of their table to a model",
    )


def _needs(asked: MeasureConfig, sets: list[str]) -> str:
    named = ", ".join(sets)
    if asked.images is not None:
        return f"embeddings of {asked.images} and of texts of {named} by one model"
    if asked.metric in ("mcas", "xmcas") or asked.of == "mcas":
        return f"images and texts of each of {named}, embedded by one model"
    return f"targets and attributes out of {named} that one model compares"


def _once(drafts: Iterable[Draft]) -> Iterator[Draft]:
    """Leave out what a part of one question says again of what another question tests."""
    every = [*drafts]
    tested = {_about(one) for one in every if one.finding.family is not Family.DESCRIPTIVE}
    for draft in every:
        described = draft.finding.family is Family.DESCRIPTIVE
        if not (described and _about(draft) in tested):
            yield draft


def _about(draft: Draft) -> tuple[str, ...]:
    one = draft.finding
    return one.model, one.metric, one.subject, one.groups, one.version

"""The audit of counterfactual sets in its three steps: the rankings of retrieval, by subject."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.audits.counterfactuals import loading
from equipoise.audits.counterfactuals.complete import sets_of
from equipoise.audits.counterfactuals.quality import measure_quality, tests_of
from equipoise.audits.counterfactuals.quality_tables import quality_tables
from equipoise.audits.counterfactuals.tables import tables_of
from equipoise.audits.kinds import Measured, Progress, drafts_of
from equipoise.audits.retrieval import kind as retrieval
from equipoise.audits.retrieval.designs import designs

if TYPE_CHECKING:
    from equipoise.audits.counterfactuals.config import Config
    from equipoise.audits.counterfactuals.loading import CounterfactualData

Row = dict[str, Any]


def load(config: Config, *, base: Path) -> CounterfactualData:
    """Read the images, the prompts and every model's scores, see `loading.load`."""
    return loading.load(config, base=base)


def measure(config: Config, data: CounterfactualData, progress: Progress | None) -> Measured:
    """Measure how each model ranks every subject's images, and the quality of the sets.

    Raises
    ------
    DataError, InputError
        When a choice of groups leaves fewer than two to compare, no set holds two, or K is larger
        than every pool.
    """
    measured = retrieval.measured_designs(config, data, progress)
    quality = measure_quality(config, data, tests_of(config))
    notes = dict.fromkeys([*retrieval.notes(measured, data, config), *_notes(config, data)])
    tables = {**tables_of(measured), **quality_tables(quality)}
    return Measured((*drafts_of(measured), *quality.drafts), tables, tuple(notes))


@dataclass(frozen=True)
class Plan(retrieval.Plan):
    """What an audit of counterfactual sets would do.

    Attributes
    ----------
    images, models, groups, rankings, tests, seconds
        As of an audit of retrieval.
    sets : list of dict
        Per choice of groups: subjects, sets, and those that lack a combination.
    """

    sets: list[Row]


def plan(config: Config, data: CounterfactualData) -> Plan:
    """Say what the audit would do.

    Raises
    ------
    DataError, InputError
        Where the audit would refuse its groups, sets or K.
    """
    sets = [
        {"groups": one.name, **sets_of(one)}
        for one in designs(config, data)
        if not one.within and one.model == next(iter(data.models))
    ]
    return Plan(**vars(retrieval.plan(config, data)), sets=sets)


def _notes(config: Config, data: CounterfactualData) -> Iterator[str]:
    if data.quality is not None:
        yield from loading.notes_of(data.quality)
    seen: set[str] = set()
    for one in designs(config, data):
        if one.within or one.name in seen:
            continue
        seen.add(one.name)
        found = sets_of(one)
        if found["incomplete"]:
            yield (
                f"{one.name}: {found['incomplete']} of {found['sets']} sets lack an image of some "
                "combination. They are ranked as they are; a pool's own shares are what skews "
                "compare with."
            )
        if found["repeated"]:
            yield (
                f"{one.name}: {found['repeated']} of {found['sets']} sets have several images of "
                "one combination."
            )

"""Designs of an audit that can be measured, and their results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from equipoise.audits import group_sizes
from equipoise.audits.config import AuditConfig, resampling_of
from equipoise.audits.findings import fact_of, untested
from equipoise.audits.kind import Audit, Data, Design, DesignT, Measured
from equipoise.audits.notes import Note
from equipoise.core import DataError, InputError, Progress, with_progress


@dataclass
class Refusals:
    """Designs that fail: each becomes a note, unless every model has one that fails.

    Attributes
    ----------
    models : set of str
        Of all designs.
    failed : set of str
        Models with a design that failed.
    notes : list of Note
    """

    models: set[str]
    failed: set[str] = field(default_factory=set)
    notes: list[Note] = field(default_factory=list)

    @contextmanager
    def noted(self, design: Design) -> Iterator[None]:
        """Record why a design is refused; raise the error where every model has failed."""
        try:
            yield
        except (DataError, InputError) as error:
            self.failed.add(design.model)
            if self.failed == self.models:
                raise
            self.notes.append(Note(design.model, f"not measured: {error}"))


def checked_designs(
    audit: Audit[Any, Any, DesignT], config: AuditConfig, data: Data
) -> tuple[list[DesignT], list[Note]]:
    """Return the designs that can be measured, and notes on the others.

    Raises
    ------
    EquipoiseError
        When no model has a design that can be measured, or only groups that are too small.
    """
    designs = audit.designs(config, data)
    refusals, measurable = Refusals({design.model for design in designs}), list[DesignT]()
    small, notes = dict[str, group_sizes.SmallGroupsError](), list[Note]()
    for design in designs:
        with refusals.noted(design):
            group_sizes.check_many(design.groups)
            try:
                audit.check(config, data, design)
            except group_sizes.SmallGroupsError as error:
                small[design.model] = error
                notes.append(group_sizes.all_small(design.groups, audit.items))
            else:
                measurable.append(design)
    compared = {design.model for design in measurable}
    for model, refusal in small.items():
        if not compared:
            raise refusal
        if model not in compared:
            notes.append(Note(model, f"not measured: {refusal}"))
    return measurable, [*refusals.notes, *notes]


def measure_designs(
    audit: Audit[Any, Any, DesignT],
    config: AuditConfig,
    data: Data,
    designs: Sequence[DesignT],
    progress: Progress | None = None,
) -> tuple[Measured, list[Note]]:
    """Return the merged results of all designs, and notes on unmeasured designs."""
    resolved = Counter[str]()
    for design in designs:
        resolved[design.model] += design.resolved_tests
    refusals, measured = Refusals({*resolved}), list[Measured]()
    for design in with_progress(designs, progress, "measuring"):
        with refusals.noted(design):
            resampling = resampling_of(config, resolved[design.model])
            outcome = audit.measure(config, data, design, resampling)
            if too_few := group_sizes.few_units(design.groups):
                drafts = tuple(untested(draft, too_few) for draft in outcome.findings)
                outcome = replace(outcome, findings=drafts)
            measured.append(outcome)
    results = audit.combine(config, data, measured)
    drafts = tuple(
        draft for draft in results.findings if config.metrics.reports(fact_of(draft.finding))
    )
    return replace(results, findings=drafts), refusals.notes

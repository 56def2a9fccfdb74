"""What is ready to be measured: a configuration of files and tables, and where they are from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from equipoise.audits.running import identical
from equipoise.audits.running.failed import FAILURES, Members, by_group, told

if TYPE_CHECKING:
    from equipoise.audits.config_sections import AuditConfig
    from equipoise.audits.pictures.known import Known
    from equipoise.audits.running.runner import Ran


@dataclass(frozen=True, eq=False)
class Prepared:
    """A configuration that needs no model any more.

    Attributes
    ----------
    asked : AuditConfig
        As passed.
    config : AuditConfig
        With tables and arrays where models were named; `asked` itself where none was.
    inputs : mapping of str to mapping
        Per file of evidence and of annotations: `sha256`, `bytes`, `rows`.
    counts : mapping
        Of images and models.
    models : mapping of str to mapping
        What each model that was run is, by its name in the configuration.
    failures : pyarrow.Table
        Images that a model has nothing for, by group: `failed.FAILURES`.
    runs : tuple of mapping
        Per model and what it ran on: images, those with evidence, and what is to be done.
    notes : tuple of str
    """

    asked: AuditConfig
    config: AuditConfig
    inputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    counts: Mapping[str, Any] = field(default_factory=dict)
    models: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    failures: pa.Table = field(default_factory=FAILURES.empty_table)
    runs: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def nothing(cls, config: AuditConfig) -> Prepared:
        """Return a configuration that names no model to run and no images to make tables of."""
        return cls(config, config)


def gathered(
    asked: AuditConfig,
    config: AuditConfig,
    *,
    known: Mapping[str, Known[Any]],
    ran: Sequence[Ran],
    members: Callable[[str], Members],
) -> Prepared:
    """Put together what was made of a configuration, and where it is from.

    Parameters
    ----------
    asked, config : AuditConfig
        As passed, and ready.
    known : mapping of str to Known
        What is known of sets of images, by what models call what they ran on: "images".
    ran : sequence of Ran
    members : callable
        From what models ran on to the images of every group; called where some failed.
    """
    rows = [
        row
        for one in ran
        if one.failures
        for row in by_group(one.model, one.what, one.failures, one.ids, members(one.what))
    ]
    inputs: dict[str, Mapping[str, Any]] = {}
    for files in (*(one.inputs for one in known.values()), *(one.inputs for one in ran)):
        inputs |= files
    shared = {
        one.what: (one, identical.counted(one.identical, members(one.what)))
        for one in ran
        if one.identical
    }
    return Prepared(
        asked,
        config,
        inputs=inputs,
        counts=_counts(known, ran, {what: counts for what, (_, counts) in shared.items()}),
        models={one.model: one.info for one in ran},
        failures=pa.Table.from_pylist(rows, FAILURES),
        runs=tuple({"model": one.model, "on": one.what, **one.pending} for one in ran),
        notes=(
            *(text for one in known.values() for text in one.steps),
            *told(rows),
            *(
                text
                for what, (one, counts) in shared.items()
                for text in identical.told(what, one.identical, len(one.ids), counts)
            ),
        ),
    )


def _counts(
    known: Mapping[str, Known[Any]], ran: Sequence[Ran], shared: Mapping[str, Any]
) -> dict[str, Any]:
    counts: dict[str, Any] = {what: one.counts for what, one in known.items() if one.counts}
    for one in ran:
        by_model = counts.setdefault("models", {}).setdefault(one.model, {})
        by_model[one.what] = {"asked": len(one.ids), "failed": len(one.failures)}
    return counts | ({"identical": dict(shared)} if shared else {})

"""The manifest of a run: files read, models run, what failed, notes and warnings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from equipoise.audits import group_sizes
from equipoise.audits.bills import Bill
from equipoise.audits.findings import manifest_of
from equipoise.audits.group_sizes import Row, count_failures
from equipoise.audits.kind import Design
from equipoise.audits.notes import Note, first_of, merged
from equipoise.audits.opening import AnyInputs
from equipoise.audits.outputs import IMAGES
from equipoise.audits.plugins import broken_metrics
from equipoise.core import DataError, Manifest
from equipoise.core.types import FileFacts
from equipoise.core.wording import PERCEIVED
from equipoise.evidence.store import UNASKED
from equipoise.report.text import enclose

_FEW_FAILURES = 0.01
"""Largest share of images that may fail without a warning."""


@dataclass
class Account:
    """Files read, models run and failures of an audit.

    Attributes
    ----------
    failures : list of mapping
        Images that failed, by model and group.
    notes : list of str
        On images that failed, and on those with the same bytes.
    warnings : list of Note
        On images that a model wasn't asked about, and on more than a few that failed.
    counts : dict
        What was read and run, by name.
    """

    failures: list[Row] = field(default_factory=list)
    notes: list[Note | str] = field(default_factory=list)
    warnings: list[Note] = field(default_factory=list)
    counts: dict[str, Any] = field(default_factory=dict)


def account_of(inputs: AnyInputs) -> Account:
    """Count files read, models run and failures."""
    models = inputs.models
    counts = {name: images.counts for name, images in models.sets.items() if images.counts}
    account = Account(counts=counts)
    for outputs in models.outputs:
        requested = [] if outputs.requested is None else outputs.requested.tolist()
        n_unasked = sum(stage == UNASKED for stage in outputs.failed.values())
        n_failed = len(outputs.failed) - n_unasked
        if outputs.live:
            sizes = {"asked": len(requested) - n_unasked, "failed": n_failed}
            by_model = account.counts.setdefault("models", {})
            by_model.setdefault(outputs.model, {})[outputs.on] = sizes
        where = outputs.model if outputs.on == IMAGES else f"{outputs.model}, {outputs.on}"
        failures = list[Row]()
        if outputs.failed:
            members = inputs.audit.members(inputs.config, inputs.data, outputs.on)
            failures = count_failures(outputs.model, outputs.on, outputs.failed, requested, members)
            account.failures += failures
        if n_failed:
            is_many = n_failed > _FEW_FAILURES * len(requested)
            notes: list[Any] = account.warnings if is_many else account.notes
            notes.append(_on_failures(where, n_failed, len(requested), failures))
        if n_unasked:
            account.warnings.append(_on_budget(where, failures, models.bills.get(outputs.model)))
        if outputs.identical:
            images = sum(map(len, outputs.identical))
            shared = {"images": images, "pictures": len(outputs.identical)}
            account.counts.setdefault("identical", {})[outputs.on] = shared
            account.notes.append(
                Note(
                    outputs.on,
                    f"{images} of {len(requested)} images have the same bytes as another, such as "
                    f"{' and '.join(map(repr, outputs.identical[0][:2]))}; every id keeps its "
                    "row and counts.",
                )
            )
    for name, bill in models.bills.items():
        account.counts.setdefault("spending", {})[name] = bill.facts()
        account.notes += bill.notes()
    return account


def _on_failures(where: str, n_failed: int, n: int, failures: Sequence[Row]) -> Note:
    """Return the note that images failed, by group."""
    sizes, counts = dict[tuple[str, str], int](), Counter[tuple[str, str]]()
    for row in failures:
        if row["groups"] and row["stage"] != UNASKED:
            group = row["groups"], row["group"]
            sizes[group] = row["of"]
            counts[group] += row["n"]
    groups = first_of((f"{key[1]} {counts[key]} of {size}" for key, size in sizes.items()), "; ")
    return Note(
        where,
        f"{n_failed} of {n} images failed and are in no number{enclose(' (', groups, ')')}. The "
        "table `failures` has the reasons.",
    )


def _on_budget(where: str, failures: Sequence[Row], bill: Bill | None) -> Note:
    """Return the warning that a budget left images out, by group."""
    rows = [row for row in failures if row["stage"] == UNASKED]
    total = next(row for row in rows if not row["groups"])
    by_group = [f"{row['group']} {row['n']} of {row['of']}" for row in rows if row["groups"]]
    limit = "" if bill is None else f" of {bill.service.limit}"
    groups = f" ({first_of(by_group, '; ')})" if by_group else ""
    return Note(
        where,
        f"the budget{limit} was too small for {total['n']} of {total['of']} images{groups}. They "
        "are in no number. To do: raise `service.budget` and run the same command with "
        "--overwrite; answers so far are kept.",
    )


def _files_of(inputs: AnyInputs) -> dict[str, FileFacts]:
    """Return the facts of all files that were read, by name."""
    read = [images.inputs for images in inputs.models.sets.values()]
    read += [outputs.inputs for outputs in inputs.models.outputs]
    read.append(inputs.data.inputs)
    return {file: facts for inputs_read in read for file, facts in inputs_read.items()}


def _matched(files: Mapping[str, FileFacts]) -> Iterator[Note]:
    """Yield a note on each file that is matched by a column that the config doesn't name."""
    for file, facts in files.items():
        if name := facts.get("matched_by"):
            yield Note(file, f"rows are matched by {name!r}, which has the ids of the items.")


@contextmanager
def budgets_named(inputs: AnyInputs) -> Iterator[None]:
    """Add to an error about the data that a budget left images out."""
    try:
        yield
    except DataError as error:
        if warnings := merged(account_of(inputs).warnings):
            raise DataError(f"{' '.join(warnings)} Without them: {error}") from None
        raise


def manifest_of_run(
    inputs: AnyInputs,
    designs: Sequence[Design],
    account: Account,
    *,
    refused: Iterable[Note],
    measured: Iterable[Note | str],
    base: Path,
    seconds: float,
) -> Manifest:
    """Return the manifest of a run.

    Parameters
    ----------
    inputs : Inputs
    designs : sequence of Design
        Those that could be measured.
    account : Account
    refused, measured : iterable of Note
        Notes on designs that were not measured, and on what was.
    base : Path
        Folder of the configuration, whose git commit is recorded.
    seconds : float
        Time of the run.
    """
    config, data, audit, models = inputs.config, inputs.data, inputs.audit, inputs.models
    files = _files_of(inputs)
    groups = audit.groups(config, data)
    few = [*group_sizes.few_rows(groups, audit.items)]
    warned = {note.about for note in few}
    warnings = [*audit.warnings(config, data, designs)]
    notes = (
        PERCEIVED,
        *(note for note in refused if note.about not in warned),
        *(note for note in audit.notes(config, data, designs) if note not in warnings),
        *(
            note
            for design in designs
            for note in group_sizes.notes(
                design.groups, audit.items, of_labels=audit.compares_all_shares
            )
        ),
        *group_sizes.proxies(groups),
        *group_sizes.looking_missing(models.read_counts),
        *group_sizes.typos(models.read_counts),
        *measured,
        *(step for images in models.sets.values() for step in images.steps),
        *_matched(files),
        *broken_metrics(),
        *account.notes,
        *models.sent,
    )
    manifest = manifest_of(
        **config.record,
        base=base,
        inputs=files,
        counts={**data.counts, **({"prepared": account.counts} if account.counts else {})},
        seconds=seconds,
        notes=merged(notes),
    )
    repeated = group_sizes.repeated_units(data.ids, manifest.resolved)
    missing = group_sizes.sentinels(models.read_counts, audit.items)
    return replace(
        manifest,
        models={outputs.model: outputs.info for outputs in models.outputs},
        warnings=merged([*account.warnings, *few, *missing, *repeated, *warnings]),
        base=str(base.absolute()),
    )

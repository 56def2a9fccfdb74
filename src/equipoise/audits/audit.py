"""The base of every kind of audit: load, plan, measure, conclude; and running one by its name.

A kind is a subclass in `audits/<kind>/audit.py`. It says how to load its data, which designs to
measure, and how to measure one. The base does what kinds share: running models or counting what
they would do, sizes and notes of groups, resampling, correction and verdicts, the manifest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import polars as pl
import pyarrow as pa

from equipoise.audits import group_sizes
from equipoise.audits.columns import stacked
from equipoise.audits.config import AuditConfig, resampling_of
from equipoise.audits.findings import UncorrectedFinding, conclude, manifest_of
from equipoise.audits.gallery import pictures_of_findings
from equipoise.audits.group_sizes import (
    FAILURES,
    Members,
    Row,
    count_failures,
    ids_by_group,
)
from equipoise.audits.kinds import (
    REGISTERED,
    AnyAudit,
    audit_of,
    kind_page,
    with_progress,
)
from equipoise.audits.outputs import DryRun, Models
from equipoise.core import (
    AuditResult,
    DataError,
    Groups,
    InputError,
    Objects,
    Progress,
    record,
)
from equipoise.core.types import FileFacts, Json
from equipoise.core.wording import PERCEIVED
from equipoise.evidence import Pictures, with_every_column, write_examples
from equipoise.report.result import Result
from equipoise.stats import Resampling


class Data(Protocol):
    """The data of an audit: a kind's own type, with what the manifest keeps of it."""

    @property
    def inputs(self) -> Mapping[str, FileFacts]:
        """Per file "sha256", "bytes", "rows"."""

    @property
    def counts(self) -> Mapping[str, Json]:
        """Rows read, matched and left out."""

    @property
    def ids(self) -> Objects:
        """Ids of the items that groups are of, shape (n,)."""


class Design(Protocol):
    """What is measured together: one model, one version of the design choices, one set of groups.

    A kind's designs are its own type with these attributes.
    """

    @property
    def model(self) -> str:
        """Name of the model."""

    @property
    def groups(self) -> Groups:
        """Groups of the items that are compared."""

    @property
    def lacking(self) -> Mapping[str, int]:
        """Items in no group, by the attributes that they lack."""

    @property
    def tests(self) -> int:
        """About how many tests are corrected together because of this design."""

    def seconds(self, draws: int) -> float:
        """About how long it takes to measure with so many draws."""


IMAGES = "images"
"""The set of images that findings are of."""

# Seconds before the first number: libraries and kernels are loaded.
_START = 0.5

ConfigT = TypeVar("ConfigT", bound="AuditConfig")
DataT = TypeVar("DataT", bound=Data)
DesignT = TypeVar("DesignT", bound=Design)
AuditT = TypeVar("AuditT", bound=AnyAudit)
Made = TypeVar("Made")


@dataclass(frozen=True)
class Measured:
    """What was measured, before correction for the number of tests and verdicts.

    Attributes
    ----------
    findings : tuple of UncorrectedFinding
    tables : mapping of str to pyarrow.Table
        What the page draws on beside the findings, by name.
    notes : tuple of str
        What a reader must know, in sentences.
    """

    findings: tuple[UncorrectedFinding, ...] = ()
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @classmethod
    def together(cls, measured: Iterable[Measured]) -> Measured:
        """Return what several designs gave as one: tables of a name are put under each other."""
        every = [*measured]
        return cls(
            tuple(finding for each in every for finding in each.findings),
            stacked([each.tables for each in every]),
            tuple(note for each in every for note in each.notes),
        )


@record
class Inputs(Generic[ConfigT, DataT]):
    """A config with its data loaded and its models run.

    Attributes
    ----------
    config : AuditConfig
    data : object
        The kind's own type.
    models : Models
        What was read and run on the way.
    """

    config: ConfigT
    data: DataT
    models: Models

    @cached_property
    def examples(self) -> Mapping[str, pl.DataFrame]:
        """The images behind the findings of each model, with every column."""
        every = audit_of(self.config.audit).examples(self.config, self.data)
        return {model: with_every_column(rows) for model, rows in every.items()}


AnyInputs = Inputs[Any, Any]
"""Of any kind of audit."""


@dataclass(frozen=True)
class Plan:
    """What an audit would do and could find.

    Attributes
    ----------
    runs : tuple of mapping
        Per model and what it runs on: items, those that the store has, those that failed before
        and aren't tried again, those to do and those whose files are missing, numbers of a row,
        and bytes to write; None where only loading the model tells.
    details : mapping
        What the kind adds, by name.
    groups : list of mapping
        Per group: its size, and whether it is large enough to be compared; then items in no
        group, by reason.
    tests : int
        About how many tests there are to correct for, of the model with the most.
    seconds : float
        About how long measuring takes, without running models.
    notes : tuple of str
    """

    runs: tuple[Mapping[str, Any], ...]
    details: Mapping[str, Any]
    groups: list[Row]
    tests: int
    seconds: float
    notes: tuple[str, ...] = ()

    @property
    def values(self) -> dict[str, Json]:
        """Everything by name, in the order in which it is shown."""
        runs = {"runs": self.runs} if self.runs else {}
        totals = {"tests": self.tests, "seconds": self.seconds, "notes": self.notes}
        return runs | dict(self.details) | {"groups": self.groups} | totals


class Audit(ABC, Generic[ConfigT, DataT, DesignT]):
    """One kind of audit.

    A kind writes `load`, `designs` and `measure`, and `groups` where all items have groups. It may
    write `check`, `combine`, `details`, `notes`, `warnings`, `sizes`, `members`, `save` and
    `compare`, whose defaults do for most.

    Attributes
    ----------
    name : str
        As `audit:` in a config says; set by `audit_kind`.
    items : str
        What groups are made of: "rows" or "images".
    """

    name: ClassVar[str] = ""
    items: ClassVar[str] = "rows"

    @abstractmethod
    def load(self, config: ConfigT, models: Models) -> DataT:
        """Read what the config names and run its models.

        The same code serves audits and plans: `models` runs them, or returns stand-ins.
        """

    def groups(self, config: ConfigT, data: DataT) -> Sequence[Groups]:
        """Return the groups of all items, for each choice of attributes; none unless written."""
        return ()

    @abstractmethod
    def designs(self, config: ConfigT, data: DataT) -> Sequence[DesignT]:
        """Return every design in the order of the config; raise where nothing can be compared."""

    def check(self, config: ConfigT, data: DataT, design: DesignT) -> None:
        """Refuse a design that can't be measured; it becomes a note if another model can be.

        Raises
        ------
        DataError
            When fewer than two groups are large enough.
        """
        groups = design.groups
        if groups.levels:
            which = f"groups {groups.name}: fewer than two groups"
            group_sizes.check_two(groups, which, self.items, file=next(iter(data.inputs), ""))

    @abstractmethod
    def measure(
        self, config: ConfigT, data: DataT, design: DesignT, resampling: Resampling | None
    ) -> Measured:
        """Measure one design with every metric whose inputs it has."""

    def combine(
        self,
        config: ConfigT,
        data: DataT,
        measured: Sequence[Measured],
    ) -> Measured:
        """Return what all designs gave as one."""
        return Measured.together(measured)

    def details(
        self,
        config: ConfigT,
        data: DataT,
        designs: Sequence[DesignT],
        tests: Mapping[str, int],
    ) -> Mapping[str, Json]:
        """Return what a plan shows beside groups, tests and seconds, by name.

        `tests` are those of each model.
        """
        return {}

    def notes(
        self,
        config: ConfigT,
        data: DataT,
        designs: Sequence[DesignT],
    ) -> Iterable[str]:
        """Return what a reader of a plan or a report must know of the data."""
        return ()

    def warnings(self, config: ConfigT, data: DataT, designs: Sequence[DesignT]) -> Iterable[str]:
        """Return what makes the findings of a model say little."""
        return ()

    def sizes(self, config: ConfigT, data: DataT) -> Iterable[Row]:
        """Return the rows of the table `group_sizes`."""
        for groups in self.groups(config, data):
            yield from group_sizes.sizes_of(groups)

    def members(self, config: ConfigT, data: DataT, on: str) -> Members:
        """Return the ids in every group of a set that models ran on, to count failures."""
        return ids_by_group(data.ids, self.groups(config, data))

    def save(self, folder: Path, data: DataT) -> None:
        """Write into a run what `compare` reads beside the findings."""

    def examples(self, config: ConfigT, data: DataT) -> Mapping[str, pl.DataFrame]:
        """Return the images behind the findings of each model, see `evidence.write_examples`.

        A model without a table has all images behind each finding.
        """
        return {}

    def pictured(
        self, config: ConfigT, data: DataT, models: Models
    ) -> tuple[Objects, Sequence[Groups], Sequence[Pictures]]:
        """Return the ids of the images that `examples` count, their groups, and their pictures.

        There are no pictures where the config doesn't say where they are.
        """
        known = models.sets.get(IMAGES)
        pictures = None if known is None else known.pictures
        return data.ids, self.groups(config, data), () if pictures is None else (pictures,)

    def compare(
        self,
        runs: Mapping[str, AuditResult],
        folders: Mapping[str, Path],
        progress: Progress | None = None,
    ) -> AuditResult:
        """Compare the models of finished runs, over the subjects that they share.

        Parameters
        ----------
        runs : mapping of str to AuditResult
            By name.
        folders : mapping of str to Path
            Where each run lies.
        progress : callable, optional
        """
        from equipoise.audits.comparison import compare_results

        return compare_results(runs)


def audit_kind(name: str) -> Callable[[type[AuditT]], type[AuditT]]:
    """Register a kind of audit under the name that configs give as `audit:`.

    Examples
    --------
    >>> @audit_kind("colours")  # doctest: +SKIP
    ... class Colours(Audit[Config, ColourData, ColourDesign]):
    ...     ...
    """

    def registered(kind: type[AuditT]) -> type[AuditT]:
        kind.name = name
        REGISTERED[name] = kind()
        return kind

    return registered


def _tests(designs: Iterable[Design]) -> Mapping[str, int]:
    """Sum tests by model: those of one model are corrected together."""
    tests: Counter[str] = Counter()
    for design in designs:
        tests[design.model] += design.tests
    return tests


def runs_models(config: AuditConfig) -> bool:
    """Return whether a config names a model to run."""
    models: Mapping[str, Any] = getattr(config, "models", {})
    return any(getattr(section, "model", None) is not None for section in models.values())


def prepare(
    config: AuditConfig, *, base: Path = Path(), progress: Progress | None = None
) -> AnyInputs:
    """Run the models that a config names, and load its data.

    Model outputs are kept in the store (`extraction.store`) and read from there. If images are
    left to do, every model is opened and the audit planned first, so that an audit that can't work
    is refused before a model runs.

    Parameters
    ----------
    config : AuditConfig
    base : Path
        Relative paths are relative to this folder.
    progress : callable, optional
        Called with the step, the number done and the total.

    Returns
    -------
    Inputs
        For `run`, in place of the config.

    Raises
    ------
    ConfigError
        If a model can't do what the audit needs.
    DataError
        If a file or images can't be used, or more than `extraction.max_failures` fail.
    ModelError
        If a model can't be loaded or run.

    Examples
    --------
    >>> import polars as pl
    >>> from equipoise import audits
    >>> people = pl.DataFrame(
    ...     {
    ...         "id": range(120),
    ...         "gender": ["women", "men"] * 60,
    ...         "label": [1, 1, 0, 0] * 30,
    ...         "pred": [0, 1, 0, 0] * 30,
    ...     }
    ... )
    >>> config = audits.parse_config(
    ...     {
    ...         "audit": "predictions",
    ...         "data": {
    ...             "table": people,
    ...             "id": "id",
    ...             "target": "label",
    ...             "groups": ["gender"],
    ...         },
    ...         "models": {"ours": {"table": people, "prediction": "pred"}},
    ...     }
    ... )
    >>> audits.run(audits.prepare(config)).plot()
    <Plot: Accuracy by gender, 2 values>
    """
    live = Models(config, base, progress)
    audit = audit_of(config.audit)
    if runs_models(config):
        dry = DryRun(config, base, live)
        data = audit.load(config, dry)
        if any(each.pending and each.pending["to_do"] for each in dry.outputs):
            _designs(audit, config, data)
    return Inputs(config, audit.load(config, live), live)


def run(
    config: AuditConfig | AnyInputs,
    *,
    base: Path = Path(),
    progress: Progress | None = None,
) -> Result:
    """Run an audit.

    Parameters
    ----------
    config : AuditConfig or Inputs
        A config, or what `prepare` returned.
    base : Path
        Relative paths are relative to this folder.
    progress : callable, optional
        Called with the step, the number done and the total.

    Returns
    -------
    Result
        The same findings, byte for byte, for the same data and config.

    Raises
    ------
    DataError
        If a file can't be used, or nothing is left to compare.

    Examples
    --------
    >>> import polars as pl
    >>> from equipoise import audits
    >>> people = pl.DataFrame(
    ...     {
    ...         "id": range(120),
    ...         "gender": ["women", "men"] * 60,
    ...         "label": [1, 1, 0, 0] * 30,
    ...         "pred": [0, 1, 0, 0] * 30,
    ...     }
    ... )
    >>> config = audits.parse_config(
    ...     {
    ...         "audit": "predictions",
    ...         "data": {
    ...             "table": people,
    ...             "id": "id",
    ...             "target": "label",
    ...             "groups": ["gender"],
    ...         },
    ...         "models": {"ours": {"table": people, "prediction": "pred"}},
    ...     }
    ... )
    >>> audits.run(config).plot()
    <Plot: Accuracy by gender, 2 values>
    """
    started = perf_counter()
    inputs = config if isinstance(config, Inputs) else prepare(config, base=base, progress=progress)
    checked, data = inputs.config, inputs.data
    audit = audit_of(checked.audit)
    designs, left_out = _designs(audit, checked, data)
    tests = _tests(designs)

    def measure(design: Any) -> Measured:
        return audit.measure(checked, data, design, resampling_of(checked, tests[design.model]))

    each_measured, not_measured = _each(designs, measure, progress)
    measured = audit.combine(checked, data, each_measured)
    findings = conclude(measured.findings, checked.testing)
    failures, about_images, counts = _counted(audit, inputs)
    sizes = [*audit.sizes(checked, data)]
    tables = {
        **measured.tables,
        **({"group_sizes": group_sizes.table(sizes)} if sizes else {}),
        **({"failures": pa.Table.from_pylist(failures, FAILURES)} if failures else {}),
    }
    sets, outputs = inputs.models.sets.values(), inputs.models.outputs
    notes = once(
        (
            PERCEIVED,
            *left_out,
            *not_measured,
            *audit.notes(checked, data, designs),
            *(note for each in designs for note in group_sizes.notes(each.groups, audit.items)),
            *measured.notes,
            *(step for images in sets for step in images.steps),
            *about_images,
        )
    )
    read = (*(each.inputs for each in sets), *(each.inputs for each in outputs))
    files = {file: facts for each in read for file, facts in each.items()}
    manifest = manifest_of(
        **checked.record,
        base=base,
        inputs={**files, **data.inputs},
        counts={**data.counts, **({"prepared": counts} if counts else {})},
        seconds=perf_counter() - started,
        notes=notes,
    )
    repeated = group_sizes.repeated_units(data.ids, manifest.resolved)
    manifest = replace(
        manifest,
        models={each.model: each.info for each in outputs},
        warnings=tuple(dict.fromkeys([*repeated, *audit.warnings(checked, data, designs)])),
    )
    result = Result(findings, manifest, tables, kind_page(checked.audit, checked.study))
    gallery = _gallery(audit, inputs, result)
    return result if gallery is None else replace(result, tables={**tables, "gallery": gallery})


def _gallery(audit: AnyAudit, inputs: AnyInputs, result: Result) -> pa.Table | None:
    """Return pictures of the leading findings; None where there are none, or the kind has its own.

    Numbers never depend on it: pictures that are gone leave the report without them.
    """
    known, config = inputs.models.sets.get(IMAGES), inputs.config
    if known is None or not config.report.images or {"gallery"} & {*result.tables}:
        return None
    try:
        pictures = known.pictures
    except DataError:
        return None
    if pictures is None or result.page is None:
        return None
    members = audit.members(config, inputs.data, IMAGES)
    examples, ids = inputs.examples, inputs.data.ids
    return pictures_of_findings(result, result.page, config, pictures, members, examples, ids)


def _each(
    designs: Sequence[DesignT],
    act: Callable[[DesignT], Made],
    progress: Progress | None = None,
) -> tuple[list[Made], tuple[str, ...]]:
    """Call a function with every design.

    One that fails becomes a note; if every model has one that fails, the error is raised.
    """
    models, failed = {design.model for design in designs}, set[str]()
    made, notes = list[Made](), list[str]()
    for design in with_progress(designs, progress, "measuring"):
        try:
            made.append(act(design))
        except (DataError, InputError) as error:
            failed.add(design.model)
            if failed == models:
                raise
            notes.append(f"{design.model}: not measured: {error}")
    return made, tuple(notes)


def _designs(
    audit: Audit[Any, Any, DesignT], config: AuditConfig, data: Any
) -> tuple[list[DesignT], tuple[str, ...]]:
    """Return the designs that can be measured, and notes on the others."""

    def checked(design: DesignT) -> DesignT:
        group_sizes.check_many(design.groups)
        audit.check(config, data, design)
        return design

    return _each(audit.designs(config, data), checked)


def _counted(
    audit: AnyAudit, inputs: AnyInputs
) -> tuple[list[dict[str, Any]], list[str], dict[str, Any]]:
    """Return failures by group, notes on images, and counts of what was read and run."""
    models = inputs.models
    failures: list[dict[str, Any]] = []
    notes: list[str] = []
    counts: dict[str, Any] = {
        name: images.counts for name, images in models.sets.items() if images.counts
    }
    for each in models.outputs:
        requested = [] if each.requested is None else each.requested.tolist()
        if each.live:
            sizes = {"asked": len(requested), "failed": len(each.failed)}
            counts.setdefault("models", {}).setdefault(each.model, {})[each.on] = sizes
        if each.failed:
            members = audit.members(inputs.config, inputs.data, each.on)
            failures += count_failures(each.model, each.on, each.failed, requested, members)
            where = each.model if each.on == "images" else f"{each.model}, {each.on}"
            notes.append(
                f"{where}: {len(each.failed)} of {len(requested)} images failed and are in no "
                "number. The table `failures` has them by group."
            )
        if each.identical:
            images = sum(map(len, each.identical))
            shared = {"images": images, "pictures": len(each.identical)}
            counts.setdefault("identical", {})[each.on] = shared
            notes.append(
                f"{each.on}: {images} of {len(requested)} images have the same bytes as "
                f"another, such as {' and '.join(map(repr, each.identical[0][:2]))}; every id "
                "keeps its row and counts."
            )
    return failures, notes, counts


def plan(config: AuditConfig, *, base: Path = Path()) -> Plan:
    """Return what an audit would do and could find; no model is loaded, nothing is measured.

    Raises
    ------
    DataError
        If a file can't be used.

    Examples
    --------
    >>> import polars as pl
    >>> from equipoise import audits
    >>> people = pl.DataFrame(
    ...     {
    ...         "id": range(120),
    ...         "gender": ["women", "men"] * 60,
    ...         "label": [1, 1, 0, 0] * 30,
    ...         "pred": [0, 1, 0, 0] * 30,
    ...     }
    ... )
    >>> config = audits.parse_config(
    ...     {
    ...         "audit": "predictions",
    ...         "data": {
    ...             "table": people,
    ...             "id": "id",
    ...             "target": "label",
    ...             "groups": ["gender"],
    ...         },
    ...         "models": {"ours": {"table": people, "prediction": "pred"}},
    ...     }
    ... )
    >>> audits.plan(config).tests
    17
    """
    dry, audit = DryRun(config, base), audit_of(config.audit)
    data = audit.load(config, dry)
    designs, left_out = _designs(audit, config, data)
    tests = _tests(designs)
    draws = 2 * config.resampling.replicates + (config.resampling.permutations or 10_000)
    seconds = sum(design.seconds(draws) for design in designs)
    choices: dict[str, Any] = {}
    for design in designs:
        choices.setdefault(design.groups.name, design)
    runs = tuple(
        {"model": each.model, "on": each.on, **(each.pending or {})} for each in dry.outputs
    )
    return Plan(
        runs=runs,
        details=audit.details(config, data, designs, tests),
        groups=[
            row
            for each in choices.values()
            for row in group_sizes.planned(each.groups, audit.items, each.lacking)
        ],
        tests=max(tests.values(), default=0),
        seconds=ceil(10 * (_START + seconds)) / 10,
        notes=once(
            (
                *_left_to_run(runs),
                *left_out,
                *audit.notes(config, data, designs),
                *(n for each in choices.values() for n in group_sizes.looking_missing(each.groups)),
            )
        ),
    )


def once(notes: Iterable[str]) -> tuple[str, ...]:
    """Return each note once: those that say the same of several models or groups are one.

    What a note is about stands before its first colon.
    """
    about: dict[str, dict[str, None]] = {}
    for note in notes:
        which, colon, text = note.partition(": ")
        about.setdefault(colon + text if colon else note, {})[which if colon else ""] = None
    return tuple(group_sizes.first_of(which, "; ") + text for text, which in about.items())


def _left_to_run(runs: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Say that the planned time leaves out models that have items to do."""
    left = [run for run in runs if run.get("to_do", 0) != 0]
    if left:
        many = sum(run["to_do"] or 0 for run in left)
        items = f"{many} items are left" if many else "an unknown number of items is left"
        models = ", ".join(dict.fromkeys(run["model"] for run in left))
        yield (
            f"{models}: {items} to run. That takes longer than the seconds of this plan, which are "
            "for measuring; how long is known only once a model has run."
        )


def compare_runs(
    runs: Mapping[str, AuditResult],
    folders: Mapping[str, Path],
    progress: Progress | None = None,
) -> AuditResult:
    """Compare the models of finished runs of one kind.

    Parameters
    ----------
    runs : mapping of str to AuditResult
        By name.
    folders : mapping of str to Path
        Where each run lies.
    progress : callable, optional
        Called with the step, the number done and the total.

    Raises
    ------
    DataError
        If there are fewer than two models, or two have no measure in common.
    """
    first = next(iter(runs.values()))
    audit = audit_of(str(first.manifest.resolved.get("audit")))
    return audit.compare(runs, folders, progress)


def save(inputs: AnyInputs, folder: Path) -> None:
    """Write into a run what `compare_runs` reads, and the examples that `equipoise review` shows.

    Examples are written where the config says where the pictures are.
    """
    config, data = inputs.config, inputs.data
    audit = audit_of(config.audit)
    audit.save(folder, data)
    known = inputs.models.sets.get(IMAGES)
    boxes = None if known is None else known.boxes
    ids, groups, pictures = audit.pictured(config, data, inputs.models)
    if pictures:
        seed = config.resampling.seed
        base = inputs.models.base
        write_examples(folder, ids, groups, pictures, inputs.examples, seed, boxes, base)

"""What a kind of audit is, and the registry of kinds.

A kind is a subclass of `Audit` in `audits/<kind>/audit.py`. It says how to load its data, which
designs to measure, and how to measure one. What kinds share is done for them: running models or
counting what they would do, sizes and notes of groups, resampling, correction and verdicts, the
manifest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar

import polars as pl
import pyarrow as pa

from equipoise.audits import group_sizes
from equipoise.audits.cells import Cell, Mix, Outcomes
from equipoise.audits.columns import stacked
from equipoise.audits.config import AuditConfig
from equipoise.audits.findings import UncorrectedFinding
from equipoise.audits.group_sizes import Members, Row, ids_by_group
from equipoise.audits.limits import Assumed, Limit
from equipoise.audits.notes import Note
from equipoise.audits.outputs import IMAGES, Models
from equipoise.core import AuditResult, DataError, Finding, Groups, Objects, Progress
from equipoise.core.types import FileFacts, Json
from equipoise.discovery import KINDS, refused
from equipoise.evidence import Pictures
from equipoise.stats import Resampling


class Data(Protocol):
    """The data of an audit, with the facts for its manifest."""

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
    """One model, one version of the design choices and one set of groups.

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
    def resolved_tests(self) -> int:
        """Tests for which p-values are drawn finely enough, summed over designs of a model."""

    def seconds(self, draws: int) -> float:
        """About how long it takes to measure with so many draws."""


ConfigT = TypeVar("ConfigT", bound="AuditConfig")
DataT = TypeVar("DataT", bound=Data)
DesignT = TypeVar("DesignT", bound=Design)


@dataclass(frozen=True)
class Measured:
    """Measurements before the correction for multiple tests and the verdicts.

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
    notes: tuple[Note | str, ...] = ()

    @classmethod
    def together(cls, measured: Iterable[Measured]) -> Measured:
        """Merge the results of designs; tables of the same name are concatenated."""
        outcomes = [*measured]
        return cls(
            tuple(finding for outcome in outcomes for finding in outcome.findings),
            stacked([outcome.tables for outcome in outcomes]),
            tuple(note for outcome in outcomes for note in outcome.notes),
        )


class Audit(ABC, Generic[ConfigT, DataT, DesignT]):
    """One kind of audit.

    A kind writes `load`, `designs` and `measure`, and `groups` where all items have groups. It may
    write `check`, `combine`, `details`, `limits`, `notes`, `warnings`, `sizes`, `members`, `write`,
    `save`, `contrast` and `compare`, whose defaults do for most.

    Attributes
    ----------
    name : str
        As `audit:` in a config says; set by `audit_kind`.
    items : str
        What groups are made of: "rows" or "images".
    compares_all_shares : bool
        Whether groups of any size have shares that are compared, and only labels need larger ones.
    """

    name: ClassVar[str] = ""
    items: ClassVar[str] = "rows"
    compares_all_shares: ClassVar[bool] = False

    @abstractmethod
    def load(self, config: ConfigT, models: Models) -> DataT:
        """Read the data of a config and run its models.

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
        """Measure one design with every metric that has its inputs."""

    def recount(
        self, config: ConfigT, data: DataT, design: DesignT
    ) -> Iterable[UncorrectedFinding]:
        """Return values of one design in which groups are compared, without intervals and tests.

        They are looked at where the cells behind disparities were set `level`.
        """
        return self.measure(config, data, design, None).findings

    def outcomes(self, design: DesignT) -> Outcomes | None:
        """Count what a design's model got right, by group and class; None where nothing is right.

        With `level` it lets a report say which cell explains the disparities.
        """
        return None

    def mix(self, config: ConfigT, design: DesignT) -> Mix | None:
        """Return rates over all rows, and the classes and attributes that rows are mixed of.

        With it a report says what a difference is at equal classes, or at equal values of another
        attribute.
        """
        return None

    def level(self, data: DataT, design: DesignT, cell: Cell) -> DataT:
        """Return data in which a model's rows of a cell have the outcomes of the other groups."""
        return data

    def sample(self, data: DataT, share: float, seed: int) -> DataT:
        """Return data of a random share of the rows, in which causes are examined."""
        return data

    def combine(
        self,
        config: ConfigT,
        data: DataT,
        measured: Sequence[Measured],
    ) -> Measured:
        """Merge the results of all designs."""
        return Measured.together(measured)

    def details(
        self,
        config: ConfigT,
        data: DataT,
        designs: Sequence[DesignT],
        tests: Mapping[str, int],
    ) -> Mapping[str, Json]:
        """Return a plan's facts by name, without groups, tests and seconds.

        `tests` are those of each model.
        """
        return {}

    def limits(
        self, config: ConfigT, data: DataT, designs: Sequence[DesignT], assumed: Assumed
    ) -> Iterable[Limit | None]:
        """Return what the data can't give, whatever the models do, for plans."""
        return ()

    def notes(
        self,
        config: ConfigT,
        data: DataT,
        designs: Sequence[DesignT],
    ) -> Iterable[Note | str]:
        """Return the notes on the data for plans and reports."""
        return ()

    def warnings(
        self, config: ConfigT, data: DataT, designs: Sequence[DesignT]
    ) -> Iterable[Note | str]:
        """Return warnings about models with uninformative findings."""
        return ()

    def sizes(self, config: ConfigT, data: DataT) -> Iterable[Row]:
        """Return the rows of the table `group_sizes`."""
        for groups in self.groups(config, data):
            yield from group_sizes.sizes_of(groups)

    def members(self, config: ConfigT, data: DataT, on: str) -> Members:
        """Return the ids in every group of a set that models ran on, to count failures."""
        return ids_by_group(data.ids, self.groups(config, data))

    def write(self, config: ConfigT, data: DataT) -> Iterable[str]:
        """Write the extra files of an audit, and return notes on them."""
        return ()

    def save(self, folder: Path, data: DataT) -> None:
        """Write the files that `compare` reads into a run."""

    def examples(self, config: ConfigT, data: DataT) -> Mapping[str, pl.DataFrame]:
        """Return the images behind the findings of each model, see `evidence.write_examples`.

        A model without a table has all images behind each finding.
        """
        return {}

    def pictured(
        self, config: ConfigT, data: DataT, models: Models
    ) -> tuple[Objects, Sequence[Groups], Sequence[Pictures]]:
        """Return the ids of the images that `examples` count, their groups, and their pictures.

        There are no pictures where the config doesn't say where they are, or they are gone: a
        model that needed them has refused to run by then.
        """
        image_set = models.sets.get(IMAGES)
        try:
            pictures = None if image_set is None else image_set.pictures
        except DataError:
            pictures = None
        return data.ids, self.groups(config, data), () if pictures is None else (pictures,)

    def contrast(
        self,
        config: ConfigT,
        data: DataT,
        findings: Sequence[Finding],
        pair: tuple[Finding, Finding],
    ) -> Finding | None:
        """Compare one number of two models of an audit, over the subjects that they share.

        Parameters
        ----------
        config, data
        findings : sequence of Finding
            Those of the audit.
        pair : tuple of Finding
            The number of both models.

        Returns
        -------
        Finding or None
            The second minus the first; None where the models share nothing to pair.
        """
        from equipoise.audits.comparison import contrast_subjects

        groups = {row["group"] for row in self.sizes(config, data)}
        return contrast_subjects(findings, pair, groups, config)

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


AnyAudit: TypeAlias = Audit[Any, Any, Any]
"""Any kind of audit, whatever its config, data and designs."""

AuditT = TypeVar("AuditT", bound=AnyAudit)

_REGISTERED: dict[str, AnyAudit] = {}


def audit_kind(name: str) -> Callable[[type[AuditT]], type[AuditT]]:
    """Register a kind of audit under the name that configs give as `audit:`.

    Raises
    ------
    PluginError
        When another kind has the name.

    Examples
    --------
    >>> @audit_kind("colours")  # doctest: +SKIP
    ... class Colours(Audit[Config, ColourData, ColourDesign]):
    ...     ...
    """

    def registered(kind: type[AuditT]) -> type[AuditT]:
        KINDS.add(name, kind.__module__.rpartition(".")[0])
        kind.name = name
        _REGISTERED[name] = kind()
        return kind

    return registered


def unregister(name: str) -> None:
    """Remove a kind of audit, to define it again."""
    del _REGISTERED[name]
    KINDS.remove(name)


def audit_of(name: str) -> AnyAudit:
    """Return a kind of audit; importing its module registers it.

    Raises
    ------
    PluginError
        When the plugin that has it can't be imported, or registers no kind of this name.
    """
    if name not in _REGISTERED:
        place = KINDS[name]
        place.load(ModuleType, "audit")
        if name not in _REGISTERED:
            raise refused(f"{place} registers none of this name", "correct its audit_kind", place)
    return _REGISTERED[name]

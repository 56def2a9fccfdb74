"""Finished runs: read with the page of their kind, and compared."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from equipoise.audits.comparison import findings_by_model, together
from equipoise.audits.config import parse_config
from equipoise.audits.kind import audit_of
from equipoise.audits.opening import AnyInputs
from equipoise.audits.pages import kind_page
from equipoise.audits.plugins import check_plugins
from equipoise.audits.saving import MOST_LISTED, copy_files, has_examples, list_images, save
from equipoise.audits.uncompared import with_uncompared
from equipoise.core import AuditResult, DataError, Finding, InputError, Progress, RunError
from equipoise.evidence import new_run
from equipoise.evidence.examples import (
    FOLDER,
    IMAGES,
    file_of,
    image_groups,
    images_behind,
    names_files,
)
from equipoise.report import Page, Result, read, write
from equipoise.report.concluding import conclusions_of
from equipoise.report.next_steps import Place
from equipoise.report.result import shared_page
from equipoise.report.words import compares, pair_of

Paths = str | PathLike[str]
_ORDINALS = ("first", "second", "third")


@dataclass(frozen=True)
class AuditOrigin:
    """Where a result comes from: an audit of this process, a run, or a comparison of runs.

    Attributes
    ----------
    inputs : Inputs or None
        What was audited.
    run : Path or None
        The run on the disk.
    compared : tuple of Path
        The runs of a comparison, which it never replaces.
    """

    inputs: AnyInputs | None = None
    run: Path | None = None
    compared: tuple[Path, ...] = ()

    def save(self, result: Result, run: Path, *, overwrite: bool) -> Result:
        """Write a result with all that `compare` and `equipoise review` read; see `Result.save`."""
        if self.run is not None:
            return self._copy(self.run, result, run, overwrite=overwrite)
        with new_run(run, overwrite=overwrite, inputs=self.compared) as folder:
            examples = self.inputs is not None and has_examples(self.inputs)
            if self.inputs is not None:
                save(self.inputs, folder)
            write(result, folder, page_of(result), Place(str(run), examples))
        return replace(result, origin=AuditOrigin(run=run))

    def _copy(self, old: Path, result: Result, run: Path, *, overwrite: bool) -> Result:
        """Write a result that was read from a run, with the other files of that run."""
        if old.resolve() == run.resolve():
            raise RunError(f"{run}: the result is this run. To do: choose another folder")
        base = result.manifest.base and str((old / result.manifest.base).resolve())
        moved = replace(result, manifest=replace(result.manifest, base=base))
        with new_run(run, overwrite=overwrite) as folder:
            copy_files(old, folder)
            write(moved, folder, page_of(result), Place(str(run), names_files(old)))
        return load(run)

    def images(self, finding: Finding) -> pl.DataFrame:
        """Return the images behind a finding; see `Result.images`."""
        if self.inputs is not None:
            ids, groups, _ = list_images(self.inputs)
            rows = self.inputs.examples.get(finding.model)
            return images_behind(finding, image_groups(ids, groups), rows)
        if self.run is None:
            raise RunError(
                "a comparison has no images of its own. To do: take a finding of a result that "
                "was compared, and the images of that result"
            )
        if not (self.run / FOLDER / IMAGES).is_file():
            raise RunError(
                f"{self.run}: this run doesn't list its images, as no run of more than "
                f"{MOST_LISTED:,} images without files does. To do: take the images of the result "
                "of the audit before it is saved, or name their files in the configuration"
            )
        path = file_of(self.run, finding.model)
        rows = pl.read_parquet(path) if path.is_file() else None
        return images_behind(finding, pl.read_parquet(self.run / FOLDER / IMAGES), rows)

    def compare(self, result: Result, other: Result | Paths) -> Result:
        """Compare the models of two results; see `compare`."""
        return compare(result, other)


def page_of(result: AuditResult) -> Page:
    """Return the page of the kind of audit that made a result."""
    resolved = result.manifest.resolved
    audit, study = str(resolved.get("audit")), resolved.get("study")
    own_page = None if compares(result) else kind_page(audit, study)
    page = own_page or shared_page(result)
    if "planted_scenes" in result.tables:
        from equipoise.audits.planted_page import planted_scenes

        return replace(page, sections=(planted_scenes, *page.sections))
    return page


def load(run: Paths) -> Result:
    """Read a run that `equipoise audit` or another command wrote.

    Parameters
    ----------
    run : path
        The run directory.

    Returns
    -------
    Result
        It shows itself in notebooks; `.table()`, `.plot()` and `.to_frame()` give its parts.

    Raises
    ------
    RunError
        When it is not a run, cannot be read, or was written by another version.

    Examples
    --------
    >>> import equipoise
    >>> equipoise.load("runs/first").table()  # doctest: +SKIP
    """
    return _shown(read(Path(run)), Path(run))


def compare(*runs: Paths | Result, progress: Progress | None = None) -> Result:
    """Compare the models of finished runs, or of results.

    Runs of predictions and of regression are compared image by image, of questions item by item,
    others subject by subject.

    Parameters
    ----------
    *runs : path or Result
        One with several models, or several about the same images.
    progress : callable, optional
        Called with the step, the number done and the total.

    Returns
    -------
    Result
        The differences of each pair of models, the second minus the first.

    Raises
    ------
    RunError
        When a run is given twice, can't be read, or is a comparison itself.
    DataError
        When there are fewer than two models, or two have no measure in common.

    Examples
    --------
    >>> import equipoise
    >>> equipoise.compare("runs/before", "runs/after")  # doctest: +SKIP
    """
    with TemporaryDirectory(prefix="equipoise-") as scratch:
        return _compare([_folder_of(run, Path(scratch)) for run in runs], progress)


def _folder_of(run: Paths | Result, scratch: Path) -> Path:
    """Return the folder of a run; that of a result which wasn't saved is in the scratch folder."""
    if not isinstance(run, str | PathLike | Result):
        raise InputError(
            f"{run!r}: expected a result of equipoise.audit or equipoise.load, or the path of a "
            "run, to compare"
        )
    if not isinstance(run, Result):
        return Path(run)
    if run.origin is not None and run.origin.run is not None:
        return run.origin.run
    number = len([*scratch.iterdir()])
    folder = scratch / (_ORDINALS[number] if number < len(_ORDINALS) else f"result {number + 1}")
    run.save(folder)
    return folder


def _compare(runs: list[Path], progress: Progress | None) -> Result:
    folders = _named(runs)
    results = {name: read(folder) for name, folder in folders.items()}
    for name, result in results.items():
        check_plugins(result.manifest)
        if any(finding.audit == "comparison" for finding in result.findings):
            raise RunError(f"{name}: a comparison; expected runs of `equipoise audit`")
    by_kind: dict[str, dict[str, AuditResult]] = {}
    for name, result in results.items():
        by_kind.setdefault(_kind_of(result), {})[name] = result
    if len(by_kind) > 1:
        _check_partners(by_kind)
    compared = [compare_runs(kind_runs, folders, progress) for kind_runs in by_kind.values()]
    return _shown(together(compared), compared=tuple(path.resolve() for path in runs))


def _kind_of(result: AuditResult) -> str:
    return str(result.manifest.resolved.get("audit"))


def _check_partners(by_kind: Mapping[str, Mapping[str, AuditResult]]) -> None:
    """Refuse runs of several kinds where a kind has one model.

    Raises
    ------
    DataError
        With the kind of each run.
    """
    for results in by_kind.values():
        if len(findings_by_model(results)) < 2:
            kinds = [f"{name}: {kind}" for kind, runs in by_kind.items() for name in runs]
            raise DataError(
                f"the runs are audits of different kinds ({', '.join(kinds)}), and models are "
                "compared within a kind",
                expected="at least two models of each kind",
                fix="compare runs with the same `audit:` in their configurations",
            )


def compare_with(baseline: Paths, run: Paths, progress: Progress | None = None) -> AuditResult:
    """Compare each model of a run with that of the same name in an earlier run.

    A run of one model is compared with the one model of the other whatever their names.

    Parameters
    ----------
    baseline, run : path
        Runs of one kind.
    progress : callable, optional
        Called with the step, the number done and the total.

    Returns
    -------
    AuditResult
        Differences of the run's models, which are second, to those of the baseline.

    Raises
    ------
    RunError
        When a run can't be read, both are one, or no model has a partner.
    DataError
        When the runs have nothing in common.
    """
    results = [read(Path(path)) for path in (baseline, run)]
    models = [
        [*dict.fromkeys(finding.model for finding in result.findings if finding.model)]
        for result in results
    ]
    partners = {(name, name) for name in models[0] if name in models[1]}
    if not partners and len(models[0]) == len(models[1]) == 1:
        partners = {(models[0][0], models[1][0])}
    if not partners:
        raise RunError(
            f"{baseline}: {run} has none of its models. Models: {', '.join(models[0])} and "
            f"{', '.join(models[1])}. To do: compare runs that name their models alike"
        )
    compared = compare(baseline, run, progress=progress)
    first, second = _named([Path(baseline), Path(run)])
    pairs = {
        (earlier, later)
        for a, b in partners
        for earlier in (a, f"{first}: {a}")
        for later in (b, f"{second}: {b}")
    }
    places = [
        place for place, finding in enumerate(compared.findings)
        if (pair := pair_of(finding)) and (pair.first, pair.second) in pairs
    ]  # fmt: skip
    return replace(
        compared,
        findings=tuple(compared.findings[place] for place in places),
        conclusions=conclusions_of([compared.findings[place] for place in places]),
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
    testing = parse_config(first.manifest.resolved, source=f"{next(iter(runs))}/manifest.json")
    return with_uncompared(audit.compare(runs, folders, progress), runs, testing.testing)


def _named(paths: list[Path]) -> Mapping[str, Path]:
    """Return runs by the name of their folder, or by their path where two share it."""
    if not paths:
        raise RunError("no run is named; expected one run or more")
    places = [path.resolve() for path in paths]
    repeated = next((path for path, place in zip(paths, places, strict=True)
                     if places.count(place) > 1), None)  # fmt: skip
    if repeated is not None:
        raise RunError(f"{repeated}: given twice. To do: name each run once")
    names = [p.name if [q.name for q in paths].count(p.name) == 1 else str(p) for p in paths]
    return dict(zip(names, paths, strict=True))


def _shown(result: AuditResult, run: Path | None = None, compared: tuple[Path, ...] = ()) -> Result:
    """Return a result with the page of its kind, and its run or the runs that it compares."""
    origin = AuditOrigin(run=run, compared=compared)
    return Result(**vars(result) | {"page": page_of(result), "origin": origin})

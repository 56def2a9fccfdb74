"""Finished runs: read with the page of their kind, and compared."""

from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path

from equipoise.audits.comparison import together
from equipoise.audits.kind import audit_of
from equipoise.audits.pages import kind_page
from equipoise.core import AuditResult, Progress, RunError
from equipoise.report import Page, Result, read
from equipoise.report.concluding import conclusions_of
from equipoise.report.result import shared_page
from equipoise.report.words import compares, pair_of

Paths = str | PathLike[str]


def page_of(result: AuditResult) -> Page:
    """Return the page of the kind of audit that made a result."""
    resolved = result.manifest.resolved
    audit, study = str(resolved.get("audit")), resolved.get("study")
    own_page = None if compares(result) else kind_page(audit, study)
    page = own_page or shared_page(result)
    if "planted_scenes" in result.tables:
        from equipoise.audits.demonstrating import planted_scenes

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
        It shows itself in notebooks; `.table()`, `.plot()` and `.to_pandas()` give its parts.

    Raises
    ------
    RunError
        When it is not a run, cannot be read, or was written by another version.

    Examples
    --------
    >>> import equipoise
    >>> equipoise.load("runs/first").table()  # doctest: +SKIP
    """
    return _shown(read(Path(run)))


def compare(*runs: Paths, progress: Progress | None = None) -> Result:
    """Compare the models of finished runs.

    Runs of predictions and of regression are compared image by image, others subject by subject.

    Parameters
    ----------
    *runs : path
        One run with several models, or several runs about the same images.
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
    folders = _named([Path(run) for run in runs])
    results = {name: read(folder) for name, folder in folders.items()}
    for name, result in results.items():
        if any(finding.audit == "comparison" for finding in result.findings):
            raise RunError(f"{name}: a comparison; expected runs of `equipoise audit`")
    by_kind: dict[str, dict[str, AuditResult]] = {}
    for name, result in results.items():
        by_kind.setdefault(str(result.manifest.resolved.get("audit")), {})[name] = result
    compared = [compare_runs(kind_runs, folders, progress) for kind_runs in by_kind.values()]
    return _shown(together(compared))


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
            f"{baseline}: none of its models ({', '.join(models[0])}) is among those of {run} "
            f"({', '.join(models[1])}). To do: compare runs that name their models alike"
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
    return audit.compare(runs, folders, progress)


def _named(paths: list[Path]) -> Mapping[str, Path]:
    """Return runs by the name of their folder, or by their path where two share it."""
    names = [p.name if [q.name for q in paths].count(p.name) == 1 else str(p) for p in paths]
    if not names or len(set(names)) < len(names):
        raise RunError("expected one run or more, each given once")
    return dict(zip(names, paths, strict=True))


def _shown(result: AuditResult) -> Result:
    """Return a result with the page of its kind."""
    return Result(**vars(result) | {"page": page_of(result)})

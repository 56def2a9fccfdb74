"""A result on disk: findings and tables as Parquet, a JSON twin, the manifest, the page."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow.csv import write_csv

from equipoise.core import AuditResult, Finding, Manifest, RunError
from equipoise.core.conclusion import Conclusion
from equipoise.core.files import read_json_file, read_table, unreadable, write_table
from equipoise.core.finding import SCHEMA, findings_from_table, findings_to_table
from equipoise.core.plain_json import plain
from equipoise.core.result import SCHEMA_VERSION, WORKSHEET
from equipoise.core.writing import writer
from equipoise.evidence.run_labels import LABELS, list_labels
from equipoise.evidence.rundir import read_list

if TYPE_CHECKING:
    from equipoise.report.blocks import Page
    from equipoise.report.next_steps import Place

CONCLUSIONS = "conclusions.json"
_FIELDS = {f.name for f in fields(Manifest)}


def write(
    result: AuditResult,
    directory: Path | str,
    page: Page | None = None,
    place: Place | None = None,
) -> None:
    """Write a result into an existing, empty directory.

    Writes `findings.parquet` (the truth), `findings.json` (its twin), `conclusions.json` (what they
    come to, by their places), `manifest.json`,
    `tables/<name>.parquet`, `worksheet.csv` where people are to fill one in, `groups.parquet` and
    `groups.csv` (the table by group) where the page has one, and `report.html`.
    Equal findings give equal bytes. The caller passes a temporary directory and renames it when
    whole.

    Parameters
    ----------
    result : AuditResult
    directory : path
        Must exist.
    page : Page, optional
        The page of the result's kind of audit.
    place : Place, optional
        Where the run will lie, for the commands on its page.

    Raises
    ------
    RunError
        When a file cannot be written.

    Examples
    --------
    >>> import equipoise, polars as pl
    >>> from equipoise import report
    >>> people = pl.DataFrame(
    ...     {
    ...         "gender": ["women", "men"] * 60,
    ...         "label": [1, 1, 0, 0] * 30,
    ...         "pred": [0, 1, 0, 0] * 30,
    ...     }
    ... )
    >>> result = equipoise.audit(people, target="label", pred="pred", groups="gender")
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> report.write(result, folder)
    >>> len(report.read(folder).findings) == len(result.findings)
    True
    """
    from equipoise.report.by_group import FILE, as_csv, group_file
    from equipoise.report.page_verdicts import with_page_verdicts
    from equipoise.report.rendering import render

    folder = Path(directory)
    result = _with_relative_base(result, folder)
    write_table(findings_to_table(result.findings), folder / "findings.parquet")
    _write_text(folder / "findings.json", _lines(result.findings))
    _write_text(folder / CONCLUSIONS, [_json(result.conclusions)])
    _write_text(folder / "manifest.json", [_json(result.manifest)])
    for name, table in result.tables.items():
        write_table(table, folder / "tables" / f"{name}.parquet")
    if WORKSHEET in result.tables:
        with writer(folder / f"{WORKSHEET}.csv") as file:
            write_csv(result.tables[WORKSHEET], file)
    judged_result = with_page_verdicts(result, page.leads if page else ())
    if page and (by_group := group_file(judged_result, page.by_group)) is not None:
        write_table(by_group, folder / f"{FILE}.parquet")
        _write_text(folder / f"{FILE}.csv", [as_csv(by_group)])
    _write_text(folder / "report.html", [render(result, page, place)])


def _with_relative_base(result: AuditResult, run: Path) -> AuditResult:
    """Return a result with the folder of its configuration relative to a run."""
    base = result.manifest.base
    if not Path(base).is_absolute():
        return result
    return replace(
        result, manifest=replace(result.manifest, base=os.path.relpath(base, run.resolve()))
    )


def base_of(run: Path) -> Path:
    """Return the folder that relative paths of a run's configuration start from.

    It is the working directory where the run doesn't say so.
    """
    base = _read_manifest(run).base
    return run / base if base else Path()


def read(directory: Path | str) -> AuditResult:
    """Read a run that `write` wrote.

    Parameters
    ----------
    directory : path
        A run directory.

    Returns
    -------
    AuditResult
        Its inputs list the labels of people in the run.

    Raises
    ------
    RunError
        When it is not a run, cannot be read, or was written by another version.

    Examples
    --------
    >>> import equipoise, polars as pl
    >>> from equipoise import report
    >>> people = pl.DataFrame(
    ...     {
    ...         "gender": ["women", "men"] * 60,
    ...         "label": [1, 1, 0, 0] * 30,
    ...         "pred": [0, 1, 0, 0] * 30,
    ...     }
    ... )
    >>> result = equipoise.audit(people, target="label", pred="pred", groups="gender")
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> report.write(result, folder)
    >>> len(report.read(folder).findings) == len(result.findings)
    True
    """
    folder = Path(directory)
    manifest = _read_manifest(folder)
    findings = _read_table(folder / "findings.parquet")
    if not findings.schema.equals(SCHEMA):
        raise RunError(
            f"{folder / 'findings.parquet'}: it isn't a table of findings. "
            "To do: run the audit again."
        )
    _check_tables(folder)
    # What labels of people showed when they were read lies beside them.
    of_labels = (folder / LABELS).glob("labelled_*.parquet")
    paths = sorted([*(folder / "tables").glob("*.parquet"), *of_labels])
    tables = {path.stem: _read_table(path) for path in paths}
    return AuditResult(
        findings_from_table(findings), _with_labels(manifest, folder), tables,
        _read_conclusions(folder / CONCLUSIONS),
    )  # fmt: skip


def _check_tables(run: Path) -> None:
    """Refuse a run from which tables were removed: its report would lack them without a word."""
    for name in read_list(run) or ():
        if name.startswith("tables/") and not (run / name).is_file():
            raise RunError(
                f"{run / name}: the file is missing. To do: copy the whole folder of the run, or "
                "run the audit again."
            )


def _read_conclusions(path: Path) -> tuple[Conclusion, ...]:
    try:
        return tuple(Conclusion.from_json(item) for item in read_json_file(path))
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise unreadable(path, error) from error


def _with_labels(manifest: Manifest, folder: Path) -> Manifest:
    """Add the labels of people, as they are now, to the inputs."""
    try:
        return replace(manifest, inputs={**manifest.inputs, **list_labels(folder)})
    except OSError as error:
        raise unreadable(folder / LABELS, error) from error


def _read_manifest(folder: Path) -> Manifest:
    path = folder / "manifest.json"
    if not path.is_file():
        raise RunError(
            f"{folder}: not a run; it has no manifest.json. "
            "To do: give the directory that `equipoise audit --out` wrote."
        )
    try:
        content = dict(read_json_file(path))
    except (OSError, TypeError, ValueError) as error:
        raise unreadable(path, error) from error
    if content.get("schema_version") != SCHEMA_VERSION or content.keys() != _FIELDS:
        raise RunError(
            f"{path}: not a manifest of schema version {SCHEMA_VERSION}. "
            "To do: run the audit again, or use the equipoise that wrote it."
        )
    warnings, notes = tuple(content.pop("warnings")), tuple(content.pop("notes"))
    return Manifest(**content, warnings=warnings, notes=notes)


def _read_table(path: Path) -> pa.Table:
    try:
        return read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise unreadable(path, error) from error


def _write_text(path: Path, parts: Iterable[str]) -> None:
    with writer(path) as file:
        file.writelines(part.encode() for part in parts)


def _json(value: Any) -> str:
    return json.dumps(plain(value), ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _lines(findings: Iterable[Finding]) -> Iterator[str]:
    """Yield findings as a JSON array with a line for each: all of them may be large."""
    encode, before = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode, "[\n"
    for finding in findings:
        yield before + encode(plain(finding))
        before = ",\n"
    yield "\n]\n" if before == ",\n" else "[\n\n]\n"

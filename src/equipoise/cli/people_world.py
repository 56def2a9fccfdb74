"""The demonstration on pictures of people: three audits of published models."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from pathlib import Path

from equipoise.cli.runs import load_audit_config, run_audit
from equipoise.core import AuditResult, MissingExtraError
from equipoise.evidence import check_place
from equipoise.planted.people.models import check_installed
from equipoise.planted.people.project import AUDITS, CLASSES, NOTES, copy_project, write_classes


def run_demonstration(
    folder: Path, *, overwrite: bool = False
) -> tuple[dict[str, AuditResult], MissingExtraError | None]:
    """Copy the pictures and configurations into a folder, and run its audits there.

    Parameters
    ----------
    folder : Path
        Gets the pictures, and a run for each audit.
    overwrite : bool
        Whether runs that are there are replaced.

    Returns
    -------
    results, missing
        As of `run_audits`.

    Raises
    ------
    MissingExtraError
        If a package of the extra `people` is not installed. Nothing is written then.
    RunError
        If a run is there, and `overwrite` is not set.
    """
    check_installed()
    for name in AUDITS:
        check_place(folder / name, overwrite=overwrite)
    copy_project(folder)
    return run_audits(folder, NOTES, overwrite=overwrite)


def run_audits(
    folder: Path, notes: Mapping[str, tuple[str, ...]] | None = None, *, overwrite: bool = False
) -> tuple[dict[str, AuditResult], MissingExtraError | None]:
    """Run the audits of a folder with pictures, their table and configurations.

    Returns
    -------
    results : dict of str to AuditResult
        By the name of the configuration.
    missing : MissingExtraError or None
        Why the audit of classes was left out: torch or timm is not installed.
    """
    results: dict[str, AuditResult] = {}
    missing = None
    for name in AUDITS:
        try:
            if name == Path(CLASSES).stem:
                write_classes(folder)
        except MissingExtraError as error:
            missing = error
            continue
        path, further = folder / f"{name}.yaml", (notes or {}).get(name, ())
        config = load_audit_config(path)
        results[name] = run_audit(
            config, folder, folder / name, path.read_bytes(), overwrite, further
        )
    # An audit freezes objects, and those of torch then count as leaked at the end.
    gc.unfreeze()
    return results, missing

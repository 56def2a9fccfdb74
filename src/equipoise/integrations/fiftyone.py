"""FiftyOne: a dataset of the images behind findings, with a saved view for each finding."""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.core import REAL, Aggregate, Finding, InputError
from equipoise.core.errors import MissingExtraError

if TYPE_CHECKING:
    import fiftyone as fo

    from equipoise.report import Result


def make_dataset(
    result: Result,
    images: str | os.PathLike[str],
    findings: Iterable[Finding] | None = None,
    *,
    name: str | None = None,
) -> fo.Dataset:
    """Return a dataset with a saved view of the images behind each finding.

    A sample has the group of its image in each finding as the label of a field, such as
    "finding_1". The outcome, such as a wrong prediction, is an attribute of the label.

    Parameters
    ----------
    result : Result
    images : path
        Folder of the images, whose files are called as their ids, with or without an extension.
    findings : iterable of Finding, optional
        Disparities and real differences unless given.
    name : str, optional
        Of the dataset in the database of FiftyOne; generated unless given.

    Returns
    -------
    fiftyone.Dataset

    Raises
    ------
    InputError
        When no image of a finding is in the folder.
    """
    try:
        fiftyone = import_module("fiftyone")
    except ModuleNotFoundError as error:
        raise MissingExtraError("fiftyone", "fiftyone") from error
    paths = _paths(Path(images))
    if findings is None:
        findings = [finding for finding in result.findings if finding.verdict in REAL]
    samples, titles = dict[Path, Any](), dict[str, str]()
    for number, finding in enumerate(findings, 1):
        field, rows = f"finding_{number}", result.images(finding).to_dicts()
        present = [(paths[row["image_id"]], row) for row in rows if row["image_id"] in paths]
        if rows and not present:
            raise InputError(
                f"images: {images} has no file {rows[0]['image_id']!r}, and no other image of "
                "the finding"
            )
        titles[field] = _title(number, finding)
        for path, row in present:
            sample = samples.setdefault(path, fiftyone.Sample(filepath=str(path)))
            label = fiftyone.Classification(label=row["group"])
            label["outcome"] = row.get("outcome")
            sample[field] = label
    dataset = fiftyone.Dataset(name)
    dataset.add_samples(samples.values(), progress=False)
    for field, title in titles.items():
        if dataset.has_field(field):
            dataset.save_view(title, dataset.exists(field))
    return dataset


def _paths(folder: Path) -> dict[str, Path]:
    """Return the files of a folder by their paths in it, with and without an extension."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    names = {path.relative_to(folder): path.absolute() for path in files}
    without = {name.with_suffix("").as_posix(): path for name, path in names.items()}
    return without | {name.as_posix(): path for name, path in names.items()}


def _title(number: int, finding: Finding) -> str:
    """Return the name of a view."""
    aggregate = "" if finding.aggregate is Aggregate.VALUE else finding.aggregate.value
    parts = (finding.model, finding.metric, aggregate, finding.subject, finding.groups)
    return f"{number} {finding.verdict}: {' '.join(filter(None, parts))}"

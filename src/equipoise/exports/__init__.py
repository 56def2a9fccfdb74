"""A run in the forms that other tools read: a file for each form, found by a scan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from equipoise.discovery import Places, guarded

if TYPE_CHECKING:
    from equipoise.report import Result

FORMS = Places(
    "form of export",
    "equipoise.exports",
    Path(__file__).parent / "forms",
    "*.py",
    "equipoise.exports.forms.{name}:FORM",
)
"""The `Form` of each name: of files of the folder, and of plugins."""
Files: TypeAlias = Mapping[str, str]


@dataclass(frozen=True)
class Run:
    """The input of a form.

    Attributes
    ----------
    result : Result
        As `equipoise.load` reads it.
    folder : Path
        The run directory, with the rows behind the findings.
    dataset : str
        Name of the data set where its files are published; "" where unknown.
    """

    result: Result
    folder: Path
    dataset: str = ""


@dataclass(frozen=True)
class Form:
    """A form of export.

    Attributes
    ----------
    title : str
        What it is.
    write : callable
        Takes a `Run` and returns its files: name in the folder of the export to text. It raises
        `RunError` where it can't be made of this run.
    """

    title: str
    write: Callable[[Run], Files]


def form_of(name: str) -> Form:
    """Return a form by the name that a command has, with hyphens or underscores."""
    place = FORMS[name.replace("-", "_")]
    form = place.load(Form)
    fix = f"update or uninstall {place.package}"
    return replace(form, write=guarded(form.write, place, fix, _not_files))


def _not_files(files: object) -> str:
    """Return the problem with the files of a form, "" without any."""
    if isinstance(files, Mapping) and all(isinstance(text, str) for text in files.values()):
        return ""
    return f"returned a {type(files).__name__}; expected texts by file name"

"""Errors about tables that a run made itself, said of the key of the configuration they follow."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from equipoise.core.errors import DataError
from equipoise.data.frames import FRAME
from equipoise.data.problems import NO_COLUMN

if TYPE_CHECKING:
    from equipoise.audits.config_sections import AuditConfig

# A key that is named without its section.
_KEY = re.compile(r"`(map|missing|unknown|refused|normalize|open_vocabulary|k):")
# Problems that are about another key than what the model is asked.
_ABOUT = re.compile(r"listed under `(\w+):`|^normalisation makes")
_RANK = re.compile(r"rank \d+")
# What a model that is run chooses between, or is asked: the first that is given.
_ASKED = ("vocabulary", "question", "questions")


def placed(error: DataError, asked: AuditConfig, ran: Iterable[str]) -> DataError | None:
    """Return an error that names what the user wrote; None where it is about a table of theirs.

    Parameters
    ----------
    error : DataError
    asked : AuditConfig
        As passed.
    ran : iterable of str
        Names of the models that were run: their outputs are tables that no user has seen.
    """
    file = error.file or ""
    if not file.endswith(FRAME):
        return None
    role = file.removesuffix(FRAME)
    of = [one for one in ran if re.search(rf"(^|of |by ){re.escape(one)}($|,| )", role)]
    if not of:
        return None
    name = max(of, key=len)
    section: Any = asked.models[name]  # type: ignore[attr-defined]  # every kind that runs models has it
    made = error.column in (None, "answer") or _RANK.fullmatch(error.column) is not None
    key = next((one for one in _ASKED if getattr(section, one, None)), "model")
    problem, column = error.problem, None if made else error.column
    if column is not None and getattr(section, "map", None):
        key = "map"
        if problem == NO_COLUMN:
            problem, column = f"{section.called} has no class {column!r}", None
    if (about := _ABOUT.search(problem)) is not None:
        key = about[1] or "normalize"
    fix = error.fix or ""
    return DataError(
        problem,
        file=f"models.{name}.{key}",
        column=column,
        expected=error.expected,
        fix=_KEY.sub(lambda found: f"`models.{name}.{found[1]}:", fix) or None,
    )

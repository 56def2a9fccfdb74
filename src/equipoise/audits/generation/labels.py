"""What people found that sets show."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.core.errors import DataError
from equipoise.counterfactuals.filters import Candidates
from equipoise.data import Items, load_items

if TYPE_CHECKING:
    from equipoise.audits.generation.config_filters import LabelsConfig


def labels_of(
    about: LabelsConfig, candidates: Candidates, base: Path
) -> tuple[dict[str, dict[str, bool]], Mapping[str, Mapping[str, Any]]]:
    """Read labels by attribute and candidate, and the file that they are from.

    Raises
    ------
    DataError
        When a cell is neither yes nor no, or no row is about a set or image that there is.
    """
    items = load_items(about.asked(base), what="filters.attributes.labels")
    owner = {name: name for name in candidates.names}
    names = [candidates.names[place] for place in candidates.candidate.tolist()]
    ids = candidates.columns["image_id"].tolist()
    owner |= {one: name for one, name in zip(ids, names, strict=True) if one and one not in owner}
    of = [owner.get(one) for one in items.ids.tolist()]
    if not any(of):
        raise DataError(
            f"none of the {len(of)} rows is about a set of images, such as {items.ids[0]!r}",
            file=items.name,
            column=about.id,
            expected=f"names such as {candidates.names[0]!r}, or ids of images",
            fix="label sets that were generated",
        )
    found = {name: _by_set(items, column, about, of) for name, column in about.columns.items()}
    return found, items.inputs


def _by_set(
    items: Items, column: str, about: LabelsConfig, of: list[str | None]
) -> dict[str, bool]:
    found: dict[str, bool] = {}
    cells = items.columns[column].tolist()
    for row, (name, cell) in enumerate(zip(of, cells, strict=True), start=1):
        if name is None or cell is None:
            continue
        text = str(cell).strip().casefold()
        if text not in (*about.yes, *about.no):
            raise DataError(
                f"{cell!r} is neither yes nor no",
                file=items.name,
                column=column,
                row=row,
                expected=f"one of {', '.join((*about.yes, *about.no))}",
                fix="list it under filters.attributes.labels.yes or no, or under missing",
            )
        found[name] = found.get(name, True) and text in about.yes
    return found

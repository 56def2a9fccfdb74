"""SocialCounterfactuals: generated images in sets that differ in two perceived attributes.

Source: Howard et al. 2024; huggingface.co/datasets/Intel/SocialCounterfactuals, whose Parquet files
have `counterfactual_set`, `caption`, `a1_type`, `a1`, `a2_type`, `a2` and `a1a2` beside the image;
and github.com/IntelLabs/multimodal_cognitive_ai (Uncovering_LVLM_Bias), whose `metadata.csv` has
the same columns and `file_name`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import polars as pl

from equipoise.data.formats.registry import RowPictures, data_format
from equipoise.data.formats.rows import Rows, as_formats_are, read_rows, row_files
from equipoise.data.image_set import Gathered, ImageSet, Places, image_set
from equipoise.data.problems import show
from equipoise.data.tables import open_table

_COLUMNS = ("counterfactual_set", "caption", "a1_type", "a1", "a2_type", "a2", "a1a2")
_FILE = "file_name"


def _rows(path: Path) -> RowPictures | None:
    """Return the pictures in the rows of a folder; a table has files beside it."""
    return RowPictures(names=partial(_names_of_rows, path)) if path.is_dir() else None


def _names_of_rows(path: Path) -> list[str]:
    parts = ("counterfactual_set", "a1a2")
    tables = [pl.read_parquet(file, columns=[*parts]).select(parts) for file in row_files(path)]
    return ["/".join(row) for table in tables for row in table.iter_rows()]


@data_format("social_counterfactuals", rows=_rows)
def read_social_counterfactuals(path: Path | str) -> ImageSet:
    """Read the metadata of SocialCounterfactuals.

    Parameters
    ----------
    path : path
        A metadata table (CSV, Parquet or JSON lines), or a folder with Parquet files, whose images
        are not read.

    Returns
    -------
    ImageSet
        With the columns `set` (the counterfactual set), `subject` (the occupation, case-folded),
        `caption`, `attributes` (the two types, as in "race × gender"), and one for each type, such
        as `race` and `gender`. Ids are the file names where the table has them; else set and
        attributes, as in "photo_12/White male". Counts: "images", "sets", and "incomplete_sets":
        sets that lack a combination that another set of the same two types has.

    Raises
    ------
    DataError
        When a column is missing, a cell is empty, an image is there twice, a caption does not
        have its attributes, or there is no Parquet file in the folder.
    """
    tables = [_read(one) for one in row_files(Path(path))]
    images, gathered = Places(str(path), "image"), Gathered()
    types = sorted({kind.casefold() for t in tables for key in ("a1_type", "a2_type")
                    for kind in t.filled(key)})  # fmt: skip
    gathered.columns = {n: [] for n in ("set", "subject", "caption", "attributes", *types)}
    for table in tables:
        for row, facts in enumerate(_images(table)):
            where = f"row {row + 1}" + (f" of {table.name}" if len(tables) > 1 else "")
            images.add(facts["id"], where)
            gathered.ids.append(facts["id"])
            for name, values in gathered.columns.items():
                values.append(facts.get(name))
    sets, incomplete = _sets(gathered)
    counts = {"images": len(gathered.ids), "sets": sets, "incomplete_sets": incomplete}
    inputs = {table.name: table.digest for table in tables}
    return image_set(
        gathered, name=str(path), format="SocialCounterfactuals", inputs=inputs, counts=counts
    )


def _read(path: Path) -> Rows:
    with as_formats_are():
        names = open_table(path).names
    return read_rows(path, (*_COLUMNS, *([_FILE] if _FILE in names else [])))


def _images(table: Rows) -> Iterator[dict[str, str]]:
    columns = {name: table.filled(name) for name in table.cells}
    for row in range(len(columns["caption"])):
        one = {name: cells[row] for name, cells in columns.items()}
        name = f"{one['counterfactual_set']}/{one['a1a2']}"
        yield {
            "id": one.get(_FILE, name),
            "set": one["counterfactual_set"],
            "subject": _subject(table, row, one["caption"], one["a1a2"]),
            "caption": one["caption"],
            "attributes": f"{one['a1_type'].casefold()} × {one['a2_type'].casefold()}",
            one["a1_type"].casefold(): one["a1"],
            one["a2_type"].casefold(): one["a2"],
        }


def _subject(table: Rows, row: int, caption: str, attributes: str) -> str:
    """Return what follows the attributes in a caption."""
    _, found, after = caption.casefold().partition(attributes.casefold())
    if not found or not after.strip():
        raise table.wrong(
            "caption", row, f"a caption with the attributes {show(attributes)} and a subject after"
        )
    return " ".join(after.split())


def _sets(gathered: Gathered) -> tuple[int, int]:
    """Return the number of counterfactual sets, and of those that lack a combination."""
    members: dict[tuple[str | None, str | None], set[tuple[str | None, ...]]] = defaultdict(set)
    full: dict[str | None, set[tuple[str | None, ...]]] = defaultdict(set)
    columns = gathered.columns
    types = [name for name in columns if name not in ("set", "subject", "caption", "attributes")]
    for row, (kind, key) in enumerate(zip(columns["attributes"], columns["set"], strict=True)):
        combination = tuple(columns[name][row] for name in types)
        members[kind, key].add(combination)
        full[kind].add(combination)
    return len(members), sum(found != full[kind] for (kind, _), found in members.items())

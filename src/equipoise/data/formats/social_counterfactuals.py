"""SocialCounterfactuals: generated image sets that vary two perceived attributes.

Source: Howard et al. 2024; huggingface.co/datasets/Intel/SocialCounterfactuals, whose Parquet files
have `counterfactual_set`, `caption`, `a1_type`, `a1`, `a2_type`, `a2` and `a1a2` beside the image;
and github.com/IntelLabs/multimodal_cognitive_ai (Uncovering_LVLM_Bias), whose `metadata.csv` has
the same columns and `file_name`.
"""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import polars as pl

from equipoise.data.formats.reading import RowPictures, Rows, data_format, read_rows, row_files
from equipoise.data.image_set import ImageRecords, ImageSet, image_set
from equipoise.data.problems import check_ids, show
from equipoise.data.tables import open_table

COLUMNS = ("counterfactual_set", "caption", "a1_type", "a1", "a2_type", "a2", "a1a2")
"""Columns of the released files beside the image."""
_FILE = "file_name"
_FACTS = ("set", "subject", "caption", "attributes")


def _rows(path: Path) -> RowPictures | None:
    """Return the pictures in a folder's rows; None for a table with image files."""

    def names() -> list[str]:
        ids: list[str] = []
        for file in row_files(path):
            table = read_rows(file, ("counterfactual_set", "a1a2"))
            sets, attributes = table.filled("counterfactual_set"), table.filled("a1a2")
            ids += map("/".join, zip(sets, attributes, strict=True))
        return ids

    return RowPictures(names=names) if path.is_dir() else None


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
    tables = [_read(file) for file in row_files(Path(path))]
    records = [*chain.from_iterable(map(_images, tables))]
    images = pl.DataFrame(records, infer_schema_length=None)
    check_ids(images["id"].alias(""), str(path))
    types = sorted({*images.columns} - {"id", *_FACTS})
    combinations = pl.struct(types).n_unique()
    sets = images.select(
        *("attributes", "set"),
        own=combinations.over("attributes", "set"),
        every=combinations.over("attributes"),
    ).unique()
    incomplete = int((sets["own"] < sets["every"]).sum())
    columns = images.select(*_FACTS, *types).to_dict(as_series=False)
    return image_set(
        ImageRecords(images["id"].to_list(), columns),
        name=str(path),
        format="SocialCounterfactuals",
        inputs={table.name: table.digest for table in tables},
        counts={"images": len(images), "sets": len(sets), "incomplete_sets": incomplete},
    )


def _read(path: Path) -> Rows:
    names = open_table(path).names
    return read_rows(path, (*COLUMNS, *([_FILE] if _FILE in names else [])))


def _images(table: Rows) -> Iterator[dict[str, str]]:
    columns = {name: table.filled(name) for name in table.cells}
    for row in range(len(columns["caption"])):
        facts = {name: cells[row] for name, cells in columns.items()}
        # The subject is what follows the attributes.
        _, _, subject = facts["caption"].casefold().partition(facts["a1a2"].casefold())
        if not subject.strip():
            raise table.cell_error(
                "caption",
                row,
                f"a caption with the attributes {show(facts['a1a2'])} and a subject after",
            )
        yield {
            "id": facts.get(_FILE, f"{facts['counterfactual_set']}/{facts['a1a2']}"),
            "set": facts["counterfactual_set"],
            "subject": " ".join(subject.split()),
            "caption": facts["caption"],
            "attributes": f"{facts['a1_type'].casefold()} × {facts['a2_type'].casefold()}",
            facts["a1_type"].casefold(): facts["a1"],
            facts["a2_type"].casefold(): facts["a2"],
        }

"""Dollar Street: photographs of households by country, income and topic.

Source: "The Dollar Street Dataset" (Gaviria Rojas et al. 2022; kaggle.com, mlcommons): the columns
of `images_v2.csv` are `id`, `country.id`, `country.name`, `region.id`, `type`, `imageRelPath`,
`topics` (a list), `place` and `income` (a month, in dollars of equal purchasing power); the files
of its ImageNet subset have `imagenet_synonyms` and `imagenet_sysnet_id` too.
"""

import ast
from dataclasses import dataclass
from pathlib import Path

from equipoise.data.formats.reading import Rows, data_format, read_rows
from equipoise.data.image_set import ImageSet, Step, image_set

REGIONS = {"af": "Africa", "am": "the Americas", "as": "Asia", "eu": "Europe"}
_LIST = 'a list of texts such as ["bed", "pillow"], or one text'
_LONGEST = 100_000


@dataclass(frozen=True)
class CollapseRows:
    """Merge the rows of a photograph into one image with all their labels.

    Attributes
    ----------
    by : {"id", "file"}
        What two rows of one photograph have in common. By file, the image has the first of their
        ids in sorted order.
    """

    by: str = "id"

    @property
    def description(self) -> str:
        """The rule in words."""
        return f"an image listed in several rows (the same {self.by}) is one image with all labels"


_FACTS = {"country": "country.name", "region": "region.id", "income": "income"}
_FILE = "imageRelPath"


@data_format("dollar_street", file_column="file")
def read_dollar_street(
    path: Path | str, *, labels: str = "topics", collapse: CollapseRows = CollapseRows()
) -> ImageSet:
    """Read `images_v2.csv` or a table like it.

    Parameters
    ----------
    path : path
    labels : str
        Column of the labels; the ImageNet subset also has `imagenet_synonyms`.
    collapse : CollapseRows
        The rule for photographs listed under several labels.

    Returns
    -------
    ImageSet
        With the columns `country`, `region`, `income` and `file`, and labels. Counts: "rows",
        "images", "pairs" of image and label, "rows_without_labels", and "missing": images by
        column where the cell is empty. The rule is the first step, with "rows_collapsed".

    Raises
    ------
    DataError
        When a column is missing, a list of labels cannot be read, or rows of one photograph
        differ in country, region or income.
    """
    rows = read_rows(path, (*_FACTS.values(), _FILE, labels), id="id", unique=False)
    owner = rows.filled("id")
    if collapse.by == "file":
        files = rows.filled(_FILE, "a file in every row, to collapse rows by")
        first_id = dict(sorted(zip(files, owner, strict=True), reverse=True))
        owner = [first_id[file] for file in files]
    texts = [_labels(rows, labels, row) for row in range(len(owner))]
    image_records = rows.collapse(owner, _FACTS, texts)
    codes = image_records.columns["region"]
    image_records.columns["region"] = [REGIONS.get(code or "", code) for code in codes]
    first_file: dict[str, str] = {}
    for image, file in zip(owner, rows.cells[_FILE], strict=True):
        if file:
            first_file[image] = min(file, first_file.get(image, file))
    image_records.columns["file"] = [first_file.get(image) for image in image_records.ids]
    collapsed = {"rows_collapsed": len(owner) - len(image_records.ids)}
    step = Step("one image per photograph", collapse.description, collapsed)
    return image_set(
        image_records,
        name=rows.name,
        format="Dollar Street",
        inputs=rows.inputs,
        counts={
            "rows": len(owner),
            "images": len(image_records.ids),
            "pairs": image_records.count_labels()["pairs"],
            "rows_without_labels": texts.count([]),
            "missing": image_records.count_missing(),
        },
        steps=(step,),
    )


def _labels(rows: Rows, column: str, row: int) -> list[str]:
    """Return the labels of a cell: a JSON or Python list, or a single text."""
    cell = (rows.cells[column][row] or "").strip()
    if not cell.startswith("["):
        return [cell] if cell else []
    try:
        # Only literals are read, nothing is run; the parser has no bound of its own.
        literal = ast.literal_eval(cell) if len(cell) <= _LONGEST else None
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        literal = None
    if not isinstance(literal, list) or not all(isinstance(text, str) for text in literal):
        raise rows.cell_error(column, row, _LIST)
    return [*dict.fromkeys(text.strip() for text in literal if text.strip())]

"""FairFace: a CSV of perceived age, gender and race by face.

Source: github.com/joojs/fairface, `fairface_label_train.csv` and `fairface_label_val.csv` with the
columns `file`, `age`, `gender`, `race` and `service_test`.
"""

from pathlib import Path

from equipoise.data.formats.reading import data_format, read_rows
from equipoise.data.image_set import ImageRecords, ImageSet, image_set

_COLUMNS = ("age", "gender", "race", "service_test")


@data_format("fairface")
def read_fairface(path: Path | str, *, id: str = "file") -> ImageSet:  # noqa: A002 - as elsewhere
    """Read the labels of FairFace.

    Parameters
    ----------
    path : path
    id : str
        Column of the ids, for tables made from the files of FairFace.

    Returns
    -------
    ImageSet
        With the columns `age`, `gender`, `race` and `service_test`; ids are the files, such as
        "val/1.jpg". Counts: "images", and "missing": images by column where the cell is empty.

    Raises
    ------
    DataError
        When a column is missing, a file is there twice, or the table cannot be read.
    """
    rows = read_rows(path, _COLUMNS, id=id)
    image_records = ImageRecords(rows.filled(id), {name: rows.cells[name] for name in _COLUMNS})
    return image_set(
        image_records,
        name=rows.name,
        format="FairFace",
        inputs=rows.inputs,
        counts={"images": len(image_records.ids), "missing": image_records.count_missing()},
    )

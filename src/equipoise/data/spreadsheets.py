"""Tables of Excel: the first sheet of a workbook that ends in `.xlsx`."""

from importlib import import_module

import polars as pl

from equipoise.core import DataError
from equipoise.data.archives import archive_entries

XLSX = ".xlsx"
"""How workbooks end."""
_EXPECTED = "a workbook of Excel, with column names in the first row of its first sheet"


def read_sheet(content: bytes, name: str) -> pl.DataFrame:
    """Return the first sheet of a workbook.

    Parameters
    ----------
    content : bytes
        The whole file.
    name : str
        Of the file, for errors.

    Raises
    ------
    DataError
        When fastexcel isn't installed, or the file is no workbook.
    """
    # An archive that unpacks to too much is refused here.
    archive_entries(content, name, _EXPECTED)
    try:
        fastexcel = import_module("fastexcel")
    except ModuleNotFoundError:
        fix = "run pip install '.[xlsx]' in a checkout of equipoise, or save the table as CSV"
        raise _unreadable("fastexcel, which reads .xlsx, isn't installed", name, fix) from None
    try:
        # All rows decide the type of a column.
        table = pl.read_excel(content, infer_schema_length=None, raise_if_empty=False)
        head = pl.read_excel(
            content, has_header=False, raise_if_empty=False, read_options={"n_rows": 1}
        )
    except (fastexcel.FastExcelError, pl.exceptions.PolarsError):
        fix = "open it in Excel and save it again, or save the table as CSV"
        raise _unreadable("the file is damaged or no workbook", name, fix) from None
    header = [str(cell) for row in head.rows() for cell in row if cell is not None]
    if not header:
        raise _unreadable("the first sheet is empty", name, "move the table to the first sheet")
    repeated = next((cell for cell in header if header.count(cell) > 1), None)
    if repeated is not None:
        fix = "rename one of them"
        raise _unreadable(f"several columns are called {repeated!r}", name, fix)
    return table


def _unreadable(problem: str, name: str, fix: str) -> DataError:
    return DataError(problem, file=name, expected=_EXPECTED, fix=fix)

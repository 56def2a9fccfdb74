"""Published works: their tables as printed, and their claims."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import chain
from types import ModuleType
from typing import Literal, Self

import yaml
from pydantic import model_validator

from equipoise.config.fields import Listed, Name, Section, Text, among
from equipoise.config.files import nearest
from equipoise.core import PluginError
from equipoise.studies import STUDIES

Printed = float | int | str | None
"""A cell of a source's table; None where it has nothing."""


class PrintedTable(Section):
    """A table, a figure, or the numbers of a section, as a source prints them.

    Attributes
    ----------
    title : str
    units : str
        Of its numbers.
    columns : list of str
        The source's headings in its order, groups of columns first: "DP, class 0". None of what is
        drawn without numbers.
    better : mapping of str to "higher" or "lower"
        The direction that the source gives a column.
    rows : mapping of str to list
        The cells of each row, null where the source has none.
    note : str
        What is wrong or contradictory in the source, and what a reader must know of it.
    words : str, optional
        In place of cells: the lexicon of the package that has the words of the table.
    origin : "printed" or "recomputed"
        Whether the source prints the cells, or they follow from another table that it prints.
    """

    title: Name
    units: str = ""
    columns: Listed[Text] = ()
    better: Mapping[Text, Literal["higher", "lower"]] = {}
    rows: Mapping[Text, Listed[Printed]] = {}
    note: str = ""
    words: Name | None = None
    origin: Literal["printed", "recomputed"] = "printed"

    @model_validator(mode="after")
    def _check_printed_table(self) -> Self:
        for name, row in self.rows.items():
            if len(row) != len(self.columns):
                raise ValueError(f"rows.{name}: expected {len(self.columns)} cells")
        among("better", self.better, self.columns)
        return self

    def cell(self, row: str, column: str) -> Printed:
        """Return what the source prints in a row and column; None where it has neither."""
        if row not in self.rows or column not in self.columns:
            return None
        return self.rows[row][self.columns.index(column)]


class PrintedClaim(Section):
    """A claim of a source.

    Attributes
    ----------
    where : str
        The table, figure or section that shows it.
    claim : str
        The claim in a sentence or two.
    """

    where: Name
    claim: Name


class Work(Section):
    """A published work.

    Attributes
    ----------
    title : str
        A short one.
    source : str
        Its authors, year and title.
    tables : mapping of str to PrintedTable
        By their number in the source: "Table 5", "Figure 5", "Section 3.3".
    claims : mapping of str to PrintedClaim
    """

    title: Name
    source: Name
    tables: Mapping[Text, PrintedTable] = {}
    claims: Mapping[Text, PrintedClaim] = {}


_FOLDER = "published"
WORKS = tuple(
    sorted(
        entry.name.removesuffix(".yaml")
        for entry in files(__package__).joinpath(_FOLDER).iterdir()
        if entry.name.endswith(".yaml")
    )
)
"""Names of the works: of the files of the folder `published`."""


@cache
def read_work(name: str) -> Work:
    """Return a published work by its name, of the package or of a plugin.

    Raises
    ------
    ValueError
        When there is none of this name.
    """
    for folder in _folders():
        path = folder.joinpath(f"{name}.yaml")
        if path.is_file():
            return Work.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    raise ValueError(
        f"published: given {name!r}. Allowed: {', '.join(WORKS)}{nearest(name, WORKS)}"
    )


def _folders() -> Iterator[Traversable]:
    """Yield the folders of works of the package and of plugins."""
    yield files(__package__).joinpath(_FOLDER)
    for place in chain.from_iterable(STUDIES.plugins.values()):
        with suppress(PluginError):
            yield files(place.load(ModuleType)).joinpath(_FOLDER)

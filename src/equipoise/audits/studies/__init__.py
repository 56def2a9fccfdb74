"""Published studies as configurations to start from, with the words that they used."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from io import StringIO
from types import MappingProxyType

Lists = Iterator[tuple[str, str]]
"""Words with the name of the list that each is of."""


@dataclass(frozen=True)
class Study:
    """A configuration and the tables of words beside it.

    Attributes
    ----------
    name : str
    tables : mapping of str to callable
        File name to what yields its rows: a word and its list.
    """

    name: str
    tables: Mapping[str, Callable[[], Lists]]

    @property
    def config(self) -> str:
        """The commented configuration, a YAML text."""
        return files(__package__).joinpath(f"{self.name}.yaml").read_text(encoding="utf-8")

    def texts(self) -> dict[str, str]:
        """Return the content of each table, as CSV with the columns `text` and `list`."""
        return {name: _as_csv(rows()) for name, rows in self.tables.items()}


def _as_csv(rows: Lists) -> str:
    written = StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(("text", "list"))
    writer.writerows(rows)
    return written.getvalue()


def _lists(name: str, *wanted: str) -> Lists:
    from equipoise.data.lexicons import lexicon  # the data room is heavy, and the help needs none

    content = lexicon(name).content
    for one in wanted:
        yield from ((word, one) for word in content[one])


def _trend_words() -> Lists:
    yield from _lists(
        "mandal_2024_words",
        "positive", "negative",
        "adjectives_men", "adjectives_women",
        "occupations_men", "occupations_women",
    )  # fmt: skip


def _labels() -> Lists:
    yield from _lists("mandal_2024_words", "occupations")


def _gender_words() -> Lists:
    yield from _lists("mandal_2024_gender", "men", "women")


STUDIES: Mapping[str, Study] = MappingProxyType(
    {
        study.name: study
        for study in (
            Study("trends-by-region", {"trend-words.csv": _trend_words}),
            Study(
                "predicted-labels",
                {"occupation-labels.csv": _labels, "gender-words.csv": _gender_words},
            ),
        )
    }
)

"""The items of an audit of questions: what is asked about each, and which options are special."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from equipoise.audits.labels.questions.config import (
    FEWEST_OPTIONS,
    DataConfig,
    columns_in,
    fill_columns,
)
from equipoise.audits.labels.questions.orders import LETTERS, Order, order_name, orders_of
from equipoise.config.files import nearest
from equipoise.core import Booleans, DataError, Integers, Objects, Strings, record
from equipoise.core.wording import shortened
from equipoise.data import Items

OUTCOME_OPTION = "the outcome option"
_YES, _NO = ("true", "yes", "1", "y"), ("false", "no", "0", "n")


@record
class Question:
    """The question about an item.

    Attributes
    ----------
    wordings : tuple of str
    options : mapping of int to str
        Text of each option that the item has, by its place in the configuration.
    """

    wordings: Strings
    options: Mapping[int, str]

    @property
    def orders(self) -> tuple[Order, ...]:
        """The orders in which the item's options are asked."""
        places = [*self.options]
        return tuple(
            tuple(places[place] for place in order) for order in orders_of(len(self.options))
        )

    def prompt(self, wording: int, order: Order, template: str) -> str:
        """Return the prompt of a model, with letters in the order of the options as shown."""
        lines = [f"{LETTERS[place]}. {self.options[option]}" for place, option in enumerate(order)]
        fields = {"question": self.wordings[wording], "options": "\n".join(lines)}
        return str(fill_columns(template, fields))

    def order_of(self, name: str) -> Order | None:
        """Return the order of a name such as "BA", or None if options are missing."""
        order = tuple(LETTERS.find(letter) for letter in name.upper())
        return order if sorted(order) == sorted(self.options) else None

    @property
    def listed(self) -> str:
        """Name of the order of the configuration."""
        return order_name(tuple(self.options))


@record
class QuestionItems:
    """Items with their questions.

    Attributes
    ----------
    items : Items
    questions : tuple of Question
        Of each item.
    wordings : tuple of str
        Names.
    n_options : int
        Of the configuration.
    outcome, right, undecided : ndarray of int64, shape (n,)
        Place of the option; -1 where an item has none.
    decidable : ndarray of bool, shape (n,)
        Whether the picture tells the answer.
    outcome_name : str
        What sentences call the outcome.
    """

    items: Items
    questions: tuple[Question, ...]
    wordings: Strings
    n_options: int
    outcome: Integers
    right: Integers
    undecided: Integers
    decidable: Booleans
    outcome_name: str

    @property
    def ids(self) -> Objects:
        """Ids of the items."""
        return self.items.ids


def read_questions(section: DataConfig, items: Items) -> QuestionItems:
    """Fill in the texts of every item.

    Raises
    ------
    DataError
        When an item has no question, fewer than two options, one twice, or an outcome or right
        answer that is none of its options.
    """
    reader = _Reader(section, items)
    questions = tuple(reader.question(row) for row in range(len(items)))
    outcome = reader.options("outcome", section.outcome, questions)
    if (outcome < 0).all():
        raise DataError(
            "no item has the outcome", file=items.name, column=_column(section.outcome),
            expected="the text of an option", fix="correct data.outcome",
        )  # fmt: skip
    right = reader.options("right", section.right, questions)
    undecided = reader.undecided(questions)
    decidable = reader.decidable() & ~((right >= 0) & (right == undecided))
    return QuestionItems(
        items, questions, tuple(section.question), len(section.options), outcome, right,
        undecided, decidable, _name_outcome(section.outcome, questions, outcome),
    )  # fmt: skip


def _name_outcome(template: str, questions: Sequence[Question], outcome: Integers) -> str:
    """Return the outcome's text where all items have the same, or its column."""
    texts = {
        question.options[place]
        for question, place in zip(questions, outcome.tolist(), strict=True)
        if place >= 0
    }
    if len(texts) == 1:
        return f"“{shortened(texts.pop())}”"
    columns = columns_in(template)
    if len(columns) != 1 or template.strip() != f"{{{columns[0]}}}":
        return OUTCOME_OPTION
    name = columns[0].replace("_", " ")
    return f"the {name}" if "option" in name.lower().split() else f"the {name} option"


def _column(template: str) -> str | None:
    """Return the column that a template names first."""
    return next(iter(columns_in(template)), None)


class _Reader:
    """Reads the texts of items."""

    def __init__(self, section: DataConfig, items: Items) -> None:
        self._section, self._items = section, items
        names = columns_in(*section.templates)
        columns = {name: items.columns[name].tolist() for name in names}
        self._cells = [dict(zip(columns, cells, strict=True)) for cells in
                       zip(*columns.values(), strict=True)] or [{}] * len(items)  # fmt: skip

    def text(self, template: str, row: int) -> str | None:
        """Return a text of an item, or None if a cell is empty."""
        text = fill_columns(template, self._cells[row])
        return text.strip() or None if text is not None else None

    def question(self, row: int) -> Question:
        """Return the question about an item."""
        section = self._section
        wordings = []
        for name, template in section.question.items():
            text = self.text(template, row)
            if text is None:
                raise self.error(
                    f"the question is empty (wording {name})", row, columns_in(template),
                    expected="a question for every item", fix="fill it in, or leave the item out",
                )  # fmt: skip
            wordings.append(text)
        texts = {place: self.text(option, row) for place, option in enumerate(section.options)}
        options = {place: text for place, text in texts.items() if text is not None}
        distinct = {text.casefold() for text in options.values()}
        if len(distinct) < max(len(options), FEWEST_OPTIONS):
            raise self.error(
                f"{len(distinct)} different options of {len(options)}", row,
                columns_in(*section.options), expected="two or more options, each once",
                fix="correct the item, or leave it out",
            )  # fmt: skip
        return Question(tuple(wordings), options)

    def options(self, key: str, template: str | None, questions: Sequence[Question]) -> Integers:
        """Return the place of an option by its text, or its letter, for each item."""
        places = np.full(len(questions), -1)
        if template is None:
            return places
        for row, question in enumerate(questions):
            text = self.text(template, row)
            if text is None:
                continue
            place = _find(text, question)
            if place is None:
                allowed = [*question.options.values()]
                raise self.error(
                    f"data.{key}: {shortened(text)!r} is none of the item's options", row,
                    columns_in(template), expected=f"one of {', '.join(map(shortened, allowed))}",
                    fix=f"correct it{nearest(text, allowed)}",
                )  # fmt: skip
            places[row] = place
        return places

    def undecided(self, questions: Sequence[Question]) -> Integers:
        """Return the place of the undecided option; -1 of items that don't have it."""
        template = self._section.undecided
        places = np.full(len(questions), -1)
        if template is None:
            return places
        for row, question in enumerate(questions):
            text = self.text(template, row)
            place = None if text is None else _find(text, question)
            places[row] = -1 if place is None else place
        if (places < 0).all():
            raise DataError(
                f"data.undecided: no item has the option {template!r}", file=self._items.name,
                expected="the text of an option", fix="correct it, or leave it out",
            )  # fmt: skip
        return places

    def decidable(self) -> Booleans:
        """Return whether the picture of each item tells the answer."""
        section, items = self._section, self._items
        if isinstance(section.decidable, bool):
            return np.full(len(items), section.decidable)
        flags = np.ones(len(items), bool)
        for row, cell in enumerate(items.columns[section.decidable].tolist()):
            word = str(cell).strip().casefold()
            if word not in (*_YES, *_NO):
                raise self.error(
                    f"data.decidable: {shortened(str(cell))!r}", row, (section.decidable,),
                    expected="yes or no", fix="fill it in",
                )  # fmt: skip
            flags[row] = word in _YES
        return flags

    def error(
        self, problem: str, row: int, columns: Sequence[str], *, expected: str, fix: str
    ) -> DataError:
        """Return the error about an item."""
        return DataError(
            problem, file=self._items.name, column=", ".join(columns) or None,
            row=int(self._items.places[row]) + 1, expected=expected, fix=fix,
        )  # fmt: skip


def _find(text: str, question: Question) -> int | None:
    """Return the place of an option by its text, or else by its letter; None without one."""
    by_text = {option.casefold(): place for place, option in question.options.items()}
    place = by_text.get(text.casefold())
    if place is None and len(text) == 1 and text.upper() in LETTERS:
        letter = LETTERS.index(text.upper())
        return letter if letter in question.options else None
    return place

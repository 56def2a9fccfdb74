"""The responses that everything is measured on: one per item, wording and order of options."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from equipoise.audits.labels.questions.config import Config, DataConfig, ModelConfig
from equipoise.audits.labels.questions.items import QuestionItems
from equipoise.audits.labels.questions.orders import LETTERS, Order, order_name
from equipoise.audits.outputs import NOT_YET_KNOWN, Models
from equipoise.config.fields import located, where_of
from equipoise.core import (
    Booleans,
    DataError,
    Floats,
    Integers,
    Objects,
    Strings,
    record,
)
from equipoise.core.columns import INTEGER, NUMBER, TEXT
from equipoise.core.types import FileFacts
from equipoise.core.wording import shortened
from equipoise.data.labels import Outputs, rows_where
from equipoise.data.option_answers import ANSWERED, UNKNOWN, OptionAnswer, read_option
from equipoise.data.problems import check_matches, match
from equipoise.data.tables import Table, read_table
from equipoise.evidence import OptionQuestion, Pictures
from equipoise.evidence.store import UNASKED

UNDECIDED, MISSING, REFUSED = "undecided", "missing", "refused"
AMBIGUOUS, UNSURE, NOT_ASKED = "ambiguous", "unresolved", "not asked"
INCOMPLETE = "incomplete"
"""State of a response to an item of which another request failed."""
_TIED = 1e-12


@record
class Responses:
    """A model's responses, one for each item, wording and order.

    Attributes
    ----------
    item, wording : ndarray of int64, shape (n,)
        Their places.
    order : ndarray of str objects, shape (n,)
        Letters of the options as listed in the configuration, in the order they were shown in.
    option : ndarray of int64, shape (n,)
        Place of the chosen option; -1 without one.
    state : ndarray of str objects, shape (n,)
        "answered"; "undecided", of the undecided option; "ambiguous", "unresolved", "unknown",
        "refused" or "missing" of texts that choose no option; the stage at which asking failed:
        "read", "decode", "model", "cut", "request" or "budget"; or "incomplete" where it failed
        in another wording or order of the item, so that the item is in no number.
    text : ndarray of str objects, shape (n,)
        As the model wrote it; None where it wrote nothing.
    probabilities : ndarray of float64, shape (n, options)
        Of the options as listed; NaN where the model gave none.
    inputs : mapping
        Per file "sha256", "bytes", "rows".
    without_item : int
        Rows of a table that are about no item.
    planned : bool
        Whether these are stand-ins, since the model has yet to run.
    """

    item: Integers
    wording: Integers
    order: Objects
    option: Integers
    state: Objects
    text: Objects
    probabilities: Floats
    inputs: Mapping[str, FileFacts]
    without_item: int = 0
    planned: bool = False

    def __len__(self) -> int:
        """Return the number of responses."""
        return len(self.item)

    @property
    def chose(self) -> Booleans:
        """Whether a response chose an option, also the undecided one."""
        return np.asarray(self.option >= 0)

    @property
    def failed(self) -> Booleans:
        """Whether asking failed, for a response or for another one to its item."""
        return np.isin(self.state, FAILED)

    @cached_property
    def orders(self) -> list[Order]:
        """The options as shown, of each response."""
        return [tuple(LETTERS.index(letter) for letter in name) for name in self.order.tolist()]

    def position(self, option: Integers) -> Integers:
        """Return where an option of each response stood, from 0; -1 where it wasn't shown."""
        places = [
            order.index(chosen) if chosen in order else -1
            for order, chosen in zip(self.orders, option.tolist(), strict=True)
        ]
        return np.array(places, dtype=np.int64)

    def chance_of(self, option: Integers) -> Floats:
        """Return how much each response is for an option.

        Its probability where the model gave one; else 1 where it was chosen, and 0 where another
        was. NaN without a response, and where an item has no such option.
        """
        numbers = np.where(self.chose, self.option == option, np.nan)
        rows = np.arange(len(self))
        probability = self.probabilities[rows, np.maximum(option, 0)]
        numbers = np.where(np.isnan(probability), numbers, probability)
        return np.where((option >= 0) & (self.position(option) >= 0), numbers, np.nan)


FAILED = ("read", "decode", "model", "cut", "request", UNASKED, INCOMPLETE)
"""States of items about which asking failed."""


class _Cell(NamedTuple):
    """One response before its option is known.

    Attributes
    ----------
    item, wording : int
    order : tuple of int
    text : str or None
    probabilities : tuple of float
        Of the options as listed; () without any.
    """

    item: int
    wording: int
    order: Order
    text: str | None
    probabilities: tuple[float, ...] = ()


def _choice(cell: _Cell, items: QuestionItems, section: ModelConfig) -> OptionAnswer:
    """Return the option, as listed, that a response chooses, and its state.

    To say that one doesn't know is to choose the undecided option, where it was shown.
    """
    if cell.text is None:
        return _likeliest(cell) if cell.probabilities else OptionAnswer(-1, MISSING)
    undecided = int(items.undecided[cell.item])
    answer = _read(cell.text, cell, items, section)
    if answer.state == UNKNOWN and undecided in cell.order:
        return OptionAnswer(undecided, ANSWERED)
    return answer


def _read(text: str, cell: _Cell, items: QuestionItems, section: ModelConfig) -> OptionAnswer:
    """Return the option, as listed, that a text chooses, and its state."""
    if declared := _declared(text, section):
        return OptionAnswer(-1, declared)
    options = items.questions[cell.item].options
    answer = read_option(text, [options[option] for option in cell.order])
    return answer._replace(option=cell.order[answer.option] if answer.option >= 0 else -1)


def _declared(text: str, section: ModelConfig) -> str:
    """Return the state that the configuration declares a text to be; "" for none."""
    plain = text.strip().casefold()
    states = ((MISSING, section.missing), (UNKNOWN, section.unknown), (REFUSED, section.refused))
    for state, texts in states:
        if plain in {declared.strip().casefold() for declared in texts}:
            return state
    return "" if plain else MISSING


def _likeliest(cell: _Cell) -> OptionAnswer:
    """Return the option with the largest probability; several of them are ambiguous."""
    largest = max(cell.probabilities[option] for option in cell.order)
    best = [option for option in cell.order if largest - cell.probabilities[option] < _TIED]
    return OptionAnswer(best[0], ANSWERED) if len(best) == 1 else OptionAnswer(-1, AMBIGUOUS)


def _responses(
    cells: Sequence[_Cell],
    items: QuestionItems,
    section: ModelConfig,
    failed: Sequence[tuple[int, int, Order, str]] = (),
    inputs: Mapping[str, FileFacts] | None = None,
) -> Responses:
    """Return responses from cells and from failures."""
    choices = [_choice(cell, items, section) for cell in cells]
    states = [choice.state for choice in choices] + [stage for *_, stage in failed]
    places = [cell[:3] for cell in cells] + [place[:3] for place in failed]
    rows = len(places)
    item = np.array([place[0] for place in places], dtype=np.int64)
    option = np.full(rows, -1)
    option[: len(cells)] = [choice.option for choice in choices]
    state = np.array(states, dtype=object)
    undecided = items.undecided[item] if rows else np.empty(0, np.int64)
    state[(option >= 0) & (option == undecided)] = UNDECIDED
    probabilities = np.full((rows, items.n_options), np.nan)
    for row, cell in enumerate(cells):
        if cell.probabilities and option[row] >= 0:
            probabilities[row] = cell.probabilities
    return Responses(
        item=item,
        wording=np.array([place[1] for place in places], dtype=np.int64),
        order=np.array([order_name(place[2]) for place in places], dtype=object),
        option=option,
        state=state,
        text=np.array([cell.text for cell in cells] + [None] * len(failed), dtype=object),
        probabilities=probabilities,
        inputs=inputs or {},
    )


def response_table(model: str, responses: Responses, items: QuestionItems) -> pa.Table:
    """Return every response as a row; a copy of its rows reads back as a model's table."""
    letters = [*LETTERS, None]
    columns = {
        "model": [model] * len(responses),
        "item": items.ids[responses.item].tolist(),
        "wording": [items.wordings[wording] for wording in responses.wording.tolist()],
        "order": responses.order.tolist(),
        "state": responses.state.tolist(),
        "option": [letters[option] for option in responses.option.tolist()],
        "position": [
            place + 1 if place >= 0 else None
            for place in responses.position(responses.option).tolist()
        ],
        "answer": responses.text.tolist(),
    }
    schema = [(name, INTEGER if name == "position" else TEXT) for name in columns]
    for place in range(items.n_options):
        name = f"probability_{LETTERS[place]}"
        numbers = responses.probabilities[:, place]
        columns[name] = [None if np.isnan(number) else number for number in numbers.tolist()]
        schema.append((name, NUMBER))
    return pa.table(columns, schema=pa.schema(schema))


def read_responses(
    name: str, section: ModelConfig, items: QuestionItems, config: Config, base: Path
) -> Responses:
    """Read the table of a model's responses.

    Raises
    ------
    DataError
        When a wording or an order is none of the item's, a probability is none, a response is
        there twice, or too large a share of ids has no partner.
    """
    table, without_item = _read_table(name, section, items, config.data, base)
    reader = _Rows(table, section, items, tuple(config.data.question))
    cells = [reader.cell(row) for row in range(table.rows)]
    _check_once(cells, items, table, section)
    responses = _responses(cells, items, section, inputs={table.name: table.digest})
    return replace(responses, without_item=without_item)


def _read_table(
    name: str, section: ModelConfig, items: QuestionItems, data: DataConfig, base: Path
) -> tuple[Table, int]:
    """Return the rows of a table that are about items, and how many are about none."""
    id_column, filters = section.id or items.items.id, where_of(section.where)
    texts = (id_column, section.answer, section.wording, section.order, *filters)
    assert section.table is not None  # noqa: S101 - the schema requires it of what isn't run
    table = read_table(
        located(section.table, base), texts=tuple(dict.fromkeys(filter(None, texts))),
        numbers=section.probabilities, role=f"responses of {name}",
        encoding=section.encoding, delimiter=section.delimiter,
    )  # fmt: skip
    table = rows_where(table, filters)
    ids, item_ids = table.texts[id_column], pl.Series("", items.ids, dtype=pl.String)
    selected = ~ids.is_in([*items.items.left_out])
    positions = match(ids.filter(selected), item_ids)
    check_matches(
        (item_ids, items.items.name), (ids.filter(selected), table.name), positions,
        data.max_unmatched, (),
    )  # fmt: skip
    return table.filter(ids.is_in(item_ids.to_list())), int((positions < 0).sum())


class _Rows:
    """Reads the rows of a table of responses."""

    def __init__(
        self, table: Table, section: ModelConfig, items: QuestionItems, wordings: Strings
    ) -> None:
        self._table, self._section, self._items = table, section, items
        self._wordings = {wording: place for place, wording in enumerate(wordings)}
        item_ids = pl.Series("", items.ids, dtype=pl.String)
        self._places = match(table.texts[section.id or items.items.id], item_ids).tolist()
        self._texts = {name: column.to_list() for name, column in table.texts.items()}
        self._numbers = [table.numbers[name].to_list() for name in section.probabilities]

    def cell(self, row: int) -> _Cell:
        """Return the response of a row."""
        section = self._section
        text = None if section.answer is None else self._texts[section.answer][row]
        return _Cell(
            self._places[row], self._wording(row), self._order(row), text, self._probabilities(row)
        )

    def _wording(self, row: int) -> int:
        column = self._section.wording
        if column is None:
            return 0
        name = self._texts[column][row]
        if name not in self._wordings:
            raise self._error(row, column, f"the wording {name!r}",
                              f"one of {', '.join(self._wordings)}")  # fmt: skip
        return self._wordings[name]

    def _order(self, row: int) -> Order:
        question, column = self._items.questions[self._places[row]], self._section.order
        if column is None:
            return tuple(question.options)
        name = self._texts[column][row] or ""
        order: Order | None = question.order_of(name)
        if order is None:
            raise self._error(row, column, f"the order {shortened(name)!r}",
                              f"the letters {question.listed} in the order shown")  # fmt: skip
        return order

    def _probabilities(self, row: int) -> tuple[float, ...]:
        """Return the probabilities of the options as listed; () where the cells are empty."""
        numbers = [column[row] for column in self._numbers]
        options = self._items.questions[self._places[row]].options
        present = [numbers[option] for option in options if numbers]
        if all(number is None for number in present):
            return ()
        if any(number is None or not 0.0 <= number <= 1.0 for number in present):
            raise self._error(
                row, ", ".join(self._section.probabilities), "the probabilities are incomplete",
                "a number from 0 to 1 for each option, or empty cells",
            )  # fmt: skip
        return tuple(np.nan if number is None else float(number) for number in numbers)

    def _error(self, row: int, column: str, problem: str, expected: str) -> DataError:
        item = self._items.ids[self._places[row]]
        return DataError(
            f"{problem} of the item {item!r}", file=self._table.name, column=column,
            expected=expected, fix="correct the cell",
        )  # fmt: skip


def _check_once(
    cells: Sequence[_Cell], items: QuestionItems, table: Table, section: ModelConfig
) -> None:
    """Refuse two responses to one question in one wording and order."""
    repeated = [place for place, n in Counter(cell[:3] for cell in cells).items() if n > 1]
    if not repeated:
        return
    columns = [name for name in (section.wording, section.order) if name]
    raise DataError(
        f"{len(repeated)} times an item, wording and order repeat, such as the item "
        f"{items.ids[repeated[0][0]]!r}", file=table.name, column=", ".join(columns) or None,
        expected="one row for each item, wording and order",
        fix="remove the repeated rows, or name the columns under 'wording' and 'order'",
    )  # fmt: skip


def ask(
    models: Models,
    name: str,
    section: ModelConfig,
    items: QuestionItems,
    data: DataConfig,
    pictures: Pictures,
) -> Responses:
    """Ask a model about every item, in every wording and order."""
    n_orders = max(len(question.orders) for question in items.questions)
    cells, failed = list[_Cell](), list[tuple[int, int, Order, str]]()
    planned = False
    requests = {
        f"wording {label}, order {place + 1}": _Asking(items, wording, place, data.prompt)
        for wording, label in enumerate(items.wordings)
        for place in range(n_orders)
    }
    questions = [asking.questions for asking in requests.values()]
    models.ask_ahead(name, section, pictures, questions, letters=section.letters)
    for on, asking in requests.items():
        outputs = models.choose(
            name, section, asking.pictures(pictures), asking.questions,
            letters=section.letters, on=on,
        )  # fmt: skip
        planned = outputs.planned
        cells += asking.cells(outputs)
        failed += asking.failures(outputs)
    responses = _responses(cells, items, section, failed)
    if not planned:
        return _without_parts(_with_agreeing_letters(responses))
    # Answers that aren't known yet are no refusals.
    return replace(responses, state=np.full(len(responses), NOT_ASKED, dtype=object), planned=True)


def _without_parts(responses: Responses) -> Responses:
    """Return responses without the choices of items about which some request failed.

    Some orders of an item say nothing of what all of them do: an option that is always chosen by
    its position would seem to be preferred.
    """
    failed = np.isin(responses.item, responses.item[responses.failed])
    return replace(
        responses,
        option=np.where(failed, -1, responses.option),
        state=np.where(failed & ~responses.failed, INCOMPLETE, responses.state),
        probabilities=np.where(failed[:, None], np.nan, responses.probabilities),
    )


def _with_agreeing_letters(responses: Responses) -> Responses:
    """Return responses without probabilities that contradict the answer.

    Such a letter began a word, as in "A nurse".
    """
    numbers = np.nan_to_num(responses.probabilities, nan=-1.0)
    agree = responses.chose & (numbers.argmax(axis=1) == responses.option)
    probabilities = np.where(agree[:, None], responses.probabilities, np.nan)
    return replace(responses, probabilities=probabilities)


class _Asking:
    """One order of one wording, asked about every item that has so many orders.

    Parameters
    ----------
    items : QuestionItems
    wording, order : int
        Their places.
    prompt : str
    """

    def __init__(self, items: QuestionItems, wording: int, order: int, prompt: str) -> None:
        self._items, self._wording = items, wording
        self._orders = {
            row: question.orders[order]
            for row, question in enumerate(items.questions)
            if order < len(question.orders)
        }
        self._rows = {str(items.ids[row]): row for row in self._orders}
        self.questions = {
            item: OptionQuestion(
                items.questions[row].prompt(wording, self._orders[row], prompt),
                len(self._orders[row]),
            )
            for item, row in self._rows.items()
        }

    def pictures(self, pictures: Pictures) -> Pictures:
        """Return the pictures of the items that are asked about."""
        if len(self._rows) == len(pictures):
            return pictures
        names = pictures.ids.tolist()
        return pictures.take([place for place, name in enumerate(names) if name in self._rows])

    def cells(self, outputs: Outputs) -> Iterator[_Cell]:
        """Yield a cell for each response."""
        texts = [] if outputs.labels is None else outputs.labels.column().values.ravel().tolist()
        for place, (item, text) in enumerate(zip(outputs.ids.to_list(), texts, strict=True)):
            row = self._rows[item]
            order = self._orders[row]
            probabilities = None if outputs.values is None else outputs.values[place, : len(order)]
            yield _Cell(
                row, self._wording, order, None if text == NOT_YET_KNOWN else text or "",
                self._listed(order, probabilities),
            )  # fmt: skip

    def failures(self, outputs: Outputs) -> Iterator[tuple[int, int, Order, str]]:
        """Yield the place and the stage of each response that failed."""
        for item, stage in outputs.failed.items():
            row = self._rows[item]
            yield row, self._wording, self._orders[row], stage

    def _listed(self, order: Order, probabilities: Floats | None) -> tuple[float, ...]:
        """Return probabilities of options as listed, from letters as shown."""
        if probabilities is None or np.isnan(probabilities).any():
            return ()
        listed = [np.nan] * self._items.n_options
        for option, probability in zip(order, probabilities.tolist(), strict=True):
            listed[option] = probability
        return tuple(listed)

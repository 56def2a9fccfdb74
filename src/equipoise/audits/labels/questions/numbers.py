"""Numbers of items: what their responses add up to over wordings and orders."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from itertools import combinations
from types import MappingProxyType

import numpy as np

from equipoise.audits.labels.questions.items import QuestionItems
from equipoise.audits.labels.questions.responses import (
    AMBIGUOUS,
    MISSING,
    REFUSED,
    UNDECIDED,
    UNSURE,
    Responses,
)
from equipoise.core import Booleans, Floats, Integers, Labels, nans, record
from equipoise.data.option_answers import ANSWERED, UNKNOWN
from equipoise.metrics.labels.answer_rates import (
    empty_rate,
    refused_rate,
    unanswered_rate,
    unknown_rate,
    unresolved_rate,
)
from equipoise.metrics.labels.confusion_rates import accuracy
from equipoise.metrics.numbers.order_inconsistency import (
    changed_share,
    inconsistency_of,
    order_inconsistency,
)
from equipoise.metrics.numbers.outcome_share import outcome_share
from equipoise.metrics.numbers.unsound_rate import unsound_rate
from equipoise.metrics.registry import name_of

NO_ANSWER, NO_SINGLE_OPTION = (MISSING, UNKNOWN, REFUSED), (AMBIGUOUS, UNSURE)
WITHOUT_OPTION = (*NO_ANSWER, *NO_SINGLE_OPTION)
"""States of responses that choose no option, though the model was asked."""
_LEVEL = 0.95
_SOUND_OR_NOT = (ANSWERED, UNDECIDED, UNKNOWN, REFUSED)


@record
class ItemNumbers:
    """A model's responses, added up by item.

    Attributes
    ----------
    items : QuestionItems
    responses : Responses
    """

    items: QuestionItems
    responses: Responses

    @property
    def are_means(self) -> bool:
        """Whether an item has several responses, or one with probabilities."""
        several = len(self.responses) > len({*self.responses.item.tolist()})
        return several or bool(self.probable.any())

    @cached_property
    def outcome(self) -> Floats:
        """Share of the outcome, shape (items,); NaN without an answer or an outcome."""
        return self._mean(self._outcome)

    @cached_property
    def right(self) -> Floats:
        """Share of right answers, of items with a right option and an answer."""
        responses, right = self.responses, self._of_item(self.items.right)
        numbers = np.where(responses.chose & (right >= 0), responses.option == right, np.nan)
        return self._mean(numbers)

    @cached_property
    def unsound(self) -> Floats:
        """Share of answers that choose an option though the picture doesn't tell."""
        state, open_items = self.responses.state, ~self.items.decidable[self.responses.item]
        counted = open_items & np.isin(state, _SOUND_OR_NOT)
        return self._mean(np.where(counted, state == ANSWERED, np.nan))

    def in_state(self, *states: str) -> Floats:
        """Return the share of responses in some states, without failed ones."""
        responses = self.responses
        return self._mean(np.where(responses.failed, np.nan, np.isin(responses.state, states)))

    @cached_property
    def n_options(self) -> Floats:
        """How many options each item has, shape (items,)."""
        return np.array([len(question.options) for question in self.items.questions], np.float64)

    @cached_property
    def changed(self) -> Floats:
        """Share of pairs of orders with different answers, shape (items,).

        In each pair every option stands at another position.
        """
        return self._changed(np.where(self.responses.chose, self.responses.option, np.nan))

    @property
    def in_one_order(self) -> bool:
        """Whether no item was asked in two orders, answered or not."""
        return bool(np.isnan(self._changed(np.zeros(len(self.responses)))).all())

    def _changed(self, chosen: Floats) -> Floats:
        """Return the share of pairs of orders with different numbers of responses, by item."""
        responses = self.responses
        names, place = np.unique(responses.order.astype(str), return_inverse=True)
        shape = len(self.items.ids), len(self.items.wordings), len(names)
        answers = nans(shape)
        answers[responses.item, responses.wording, place] = chosen
        pairs = [*_moving_pairs(names.tolist())]
        by_wording = changed_share(answers.reshape(-1, len(names)), pairs).reshape(shape[:2])
        return _means(by_wording)

    @cached_property
    def cube(self) -> Floats:
        """The outcome by wording and its position, shape (items, wordings, positions)."""
        responses = self.responses
        position = responses.position(self._of_item(self.items.outcome))
        shape = len(self.items.ids), len(self.items.wordings), self.items.n_options
        usable = ~np.isnan(self._outcome)
        flat = np.ravel_multi_index(
            (responses.item[usable], responses.wording[usable], position[usable]), shape
        )
        sums = np.bincount(flat, self._outcome[usable], minlength=int(np.prod(shape)))
        counts = np.bincount(flat, minlength=int(np.prod(shape)))
        cube = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan).reshape(shape)
        has_order = ~np.isnan(cube).all(axis=(0, 1))
        wordings = ~np.isnan(cube).all(axis=(0, 2))
        return cube[:, wordings][:, :, has_order]

    @cached_property
    def by_wording(self) -> Floats:
        """Share of the outcome in each wording, shape (items, wordings)."""
        columns = [
            self._mean(np.where(self.responses.wording == wording, self._outcome, np.nan))
            for wording in range(len(self.items.wordings))
        ]
        return np.stack(columns, axis=1)

    @cached_property
    def by_position(self) -> Floats:
        """Share of the outcome by its position among the options, shape (items, positions)."""
        position = self.responses.position(self._of_item(self.items.outcome))
        columns = [
            self._mean(np.where(position == place, self._outcome, np.nan))
            for place in range(int(position.max(initial=-1)) + 1)
        ]
        return np.stack(columns, axis=1)

    @cached_property
    def probable(self) -> Booleans:
        """Whether a response that chose an option has probabilities, shape (responses,)."""
        return self.responses.chose & ~np.isnan(self.responses.probabilities).all(axis=1)

    @cached_property
    def _outcome(self) -> Floats:
        return self.responses.chance_of(self._of_item(self.items.outcome))

    def _of_item(self, places: Integers) -> Integers:
        """Return an option of each item for its responses."""
        return places[self.responses.item]

    def _mean(self, numbers: Floats) -> Floats:
        """Return the mean of the responses of each item; NaN where none has a number."""
        n, used = len(self.items.ids), ~np.isnan(numbers)
        sums = np.bincount(self.responses.item[used], numbers[used], minlength=n)
        counts = np.bincount(self.responses.item[used], minlength=n)
        return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


OUTCOME, ORDER = name_of(outcome_share), name_of(order_inconsistency)
RIGHT, UNSOUND = name_of(accuracy), name_of(unsound_rate)
UNANSWERED, UNRESOLVED = name_of(unanswered_rate), name_of(unresolved_rate)
STATES: Mapping[str, str] = MappingProxyType({
    name_of(unknown_rate): UNKNOWN, name_of(refused_rate): REFUSED, name_of(empty_rate): MISSING,
})  # fmt: skip
"""Single states of responses without an answer, by the metric of their share."""
ITEM_METRICS: Mapping[str, Callable[[ItemNumbers], Floats]] = MappingProxyType({
    OUTCOME: lambda numbers: numbers.outcome,
    ORDER: lambda numbers: numbers.changed,
    RIGHT: lambda numbers: numbers.right,
    UNSOUND: lambda numbers: numbers.unsound,
    UNANSWERED: lambda numbers: numbers.in_state(*NO_ANSWER),
    UNRESOLVED: lambda numbers: numbers.in_state(*NO_SINGLE_OPTION),
})  # fmt: skip
"""Numbers of items by the metric that is their mean."""


def goes_by_position(numbers: ItemNumbers, units: Labels | None, level: float) -> bool:
    """Whether answers change with the order more often than random answers."""
    estimate = inconsistency_of(numbers.changed, numbers.n_options, units=units)
    return estimate.chance is not None and estimate.interval(level).low > estimate.chance.mean


def numbers_by_metric(numbers: ItemNumbers, units: Labels | None) -> dict[str, Floats]:
    """Return the numbers of items by the metric that is their mean.

    Answers by position have no number of the outcome: they aren't about the pictures.
    """
    by_metric = {metric: values_of(numbers) for metric, values_of in ITEM_METRICS.items()}
    if goes_by_position(numbers, units, _LEVEL):
        by_metric[OUTCOME] = nans(len(numbers.outcome))
    return by_metric


def _means(rows: Floats) -> Floats:
    """Return the means of rows without NaN; NaN of rows without a number."""
    used = ~np.isnan(rows)
    sums, counts = np.where(used, rows, 0.0).sum(axis=1), used.sum(axis=1)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _moving_pairs(orders: list[str]) -> Iterator[tuple[int, int]]:
    """Yield pairs of orders of the same options in which every option moves."""
    for first, second in combinations(range(len(orders)), 2):
        a, b = orders[first], orders[second]
        if sorted(a) == sorted(b) and all(x != y for x, y in zip(a, b, strict=True)):
            yield first, second

"""Tokens and money that requests to a served model take, kept through kills."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

from equipoise.models.journal import Database

MILLION = 1_000_000
_CHARACTERS, _PATCH = 4, 28
"""Characters of a token, and pixels of the side of a patch of a picture that is a token."""
_FIRST_PICTURE, _FIRST_FACTOR = 40_000, 4
"""Most tokens of a picture, and of others as a multiple of the estimate, before the first count."""
_ADD = """INSERT INTO spending VALUES (?, ?, 1, ?, ?, ?, ?, ?, ?)
  ON CONFLICT (account, basis) DO UPDATE SET requests = requests + 1,
  images = images + excluded.images, prompt_tokens = prompt_tokens + excluded.prompt_tokens,
  completion_tokens = completion_tokens + excluded.completion_tokens,
  largest_estimate = max(largest_estimate, excluded.largest_estimate),
  largest_prompt = max(largest_prompt, excluded.largest_prompt),
  largest_completion = max(largest_completion, excluded.largest_completion)"""
_TOTALS = """SELECT basis, requests, images, prompt_tokens, completion_tokens, largest_estimate,
  largest_prompt, largest_completion FROM spending WHERE account = ?"""
_UNSETTLED = """SELECT count(*), images, prompt_tokens, completion_tokens FROM unsettled
  WHERE account = ? GROUP BY images, prompt_tokens, completion_tokens"""
_ADD_TREND = """INSERT INTO trends VALUES (?, ?, 1, ?, ?, ?, ?, ?)
  ON CONFLICT (account, basis) DO UPDATE SET requests = requests + 1,
  size = size + excluded.size, squares = squares + excluded.squares,
  products = products + excluded.products, prompt_tokens = prompt_tokens + excluded.prompt_tokens,
  completion_tokens = completion_tokens + excluded.completion_tokens"""
_TRENDS = """SELECT basis, requests, size, squares, products, prompt_tokens, completion_tokens
  FROM trends WHERE account = ? ORDER BY basis"""
_VARIED = 0.1
"""Spread of sizes, as a share of their mean, from which on a line is fitted to them."""
_OPEN = "INSERT INTO unsettled VALUES (NULL, ?, ?, ?, ?)"


@dataclass(frozen=True)
class Usage:
    """Requests, and their pictures and tokens.

    Attributes
    ----------
    requests, images, prompt_tokens, completion_tokens : int
    """

    requests: int = 0
    images: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.requests + other.requests, self.images + other.images,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
        )  # fmt: skip

    def less(self, other: Usage) -> Usage:
        """Return the usage without that of other requests."""
        return self + other.times(-1)

    def times(self, n: int) -> Usage:
        """Return the usage of n times as many requests."""
        return Usage(
            n * self.requests, n * self.images, n * self.prompt_tokens, n * self.completion_tokens
        )


@dataclass(frozen=True)
class Prices:
    """Prices of a served model, in any currency.

    Attributes
    ----------
    input, output : float
        Of a million tokens of prompts, and of answers.
    image, request : float
        Of a picture, and of a request, beside their tokens.
    """

    input: float = 0.0
    output: float = 0.0
    image: float = 0.0
    request: float = 0.0

    def cost(self, usage: Usage) -> float:
        """Return the cost of requests."""
        tokens = self.input * usage.prompt_tokens + self.output * usage.completion_tokens
        return tokens / MILLION + self.image * usage.images + self.request * usage.requests


def estimate_usage(text: str, sides: Sequence[int], max_tokens: int) -> Usage:
    """Return the estimated usage of a request, without asking its server.

    A token is 4 characters of text, or a patch of 28 x 28 pixels of a picture, which counts as a
    square of its longest side.

    Parameters
    ----------
    text : str
    sides : sequence of int
        Pixels of the longest side of each picture.
    max_tokens : int
        Longest answer.
    """
    pictures = sum(math.ceil(side / _PATCH) ** 2 for side in sides)
    return Usage(1, len(sides), estimate_tokens(text) + pictures, max_tokens)


def estimate_tokens(text: str) -> int:
    """Return the estimated number of tokens of a text."""
    return math.ceil(len(text) / _CHARACTERS)


def request_size(text: str, pictures: Iterable[tuple[float, float]]) -> float:
    """Return a number that the prompt of a request grows with: characters and area of pictures.

    Parameters
    ----------
    text : str
    pictures : iterable of (width, height)
        In pixels.
    """
    pixels = sum(width * height for width, height in pictures)
    return len(text) / _CHARACTERS + pixels / _PATCH**2


@dataclass(frozen=True)
class Trend:
    """Tokens of requests so far, by the sizes of the requests.

    Attributes
    ----------
    requests : int
    size, squares, products : float
        Sums of sizes, of their squares, and of their products with the tokens of prompts.
    prompt_tokens, completion_tokens : int
    """

    requests: int = 0
    size: float = 0.0
    squares: float = 0.0
    products: float = 0.0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def usage(self, n: int, size: float) -> Usage:
        """Return the expected usage of n requests about a picture each.

        Prompts are on a line over the sizes so far: by least squares where these vary, else
        through 0.

        Parameters
        ----------
        n : int
        size : float
            Sum of the sizes of the n.
        """
        constant, slope = self._line
        prompt = max(0.0, constant * n + slope * size)
        completion = n * self.completion_tokens / max(self.requests, 1)
        return Usage(n, n, round(prompt), round(completion))

    @property
    def _line(self) -> tuple[float, float]:
        """Tokens of any prompt, and tokens for a unit of its size."""
        if not self.requests:
            return 0.0, 0.0
        mean_size, mean = self.size / self.requests, self.prompt_tokens / self.requests
        variance = self.squares / self.requests - mean_size**2
        if variance <= (_VARIED * mean_size) ** 2:
            return (0.0, mean / mean_size) if mean_size else (mean, 0.0)
        covariance = self.products / self.requests - mean_size * mean
        slope = max(0.0, covariance / variance)
        return mean - slope * mean_size, slope


@dataclass(frozen=True)
class Spent:
    """Usage of a served model so far, by how it is known.

    Attributes
    ----------
    counted : Usage
        Of requests whose tokens the server counted.
    estimated : Usage
        Of requests with a reply whose tokens it didn't count.
    unsettled : tuple of Usage
        Estimates of requests without a whole reply: those in flight, also at a kill. With how
        many there are of each as its requests.
    largest_estimate, largest_prompt, largest_completion : int
        Of the requests whose tokens the server counted.
    n_free : int
        Requests that a filter of the server refused, which take nothing.
    """

    counted: Usage = Usage()
    estimated: Usage = Usage()
    unsettled: tuple[Usage, ...] = ()
    largest_estimate: int = 0
    largest_prompt: int = 0
    largest_completion: int = 0
    n_free: int = 0

    @property
    def total(self) -> Usage:
        """Everything, at the most that it can have taken."""
        usage = self.counted + self.estimated
        for same in self.unsettled:
            usage += self.most(same)
        return usage

    @property
    def n_unsettled(self) -> int:
        """Requests without a whole reply."""
        return sum(same.requests for same in self.unsettled)

    @property
    def is_known(self) -> bool:
        """Whether any reply has come."""
        return bool(self.counted.requests or self.estimated.requests)

    def most(self, estimate: Usage) -> Usage:
        """Return the most that requests of an estimated size can take.

        A prompt that is estimated to be no longer than one that was counted takes at most a
        quarter more than the longest so far; a longer one twice as much in proportion.
        """
        n = estimate.requests
        images, expected = estimate.images // n, estimate.prompt_tokens // n
        if self.largest_prompt and expected <= self.largest_estimate:
            prompt = math.ceil(1.25 * self.largest_prompt)
        elif self.largest_prompt:
            prompt = math.ceil(2 * self.largest_prompt * expected / max(self.largest_estimate, 1))
        elif self.is_known:
            prompt = expected
        else:
            prompt = max(_FIRST_FACTOR * expected, _FIRST_PICTURE * images)
        completion = max(estimate.completion_tokens // n, self.largest_completion)
        return Usage(1, images, prompt, completion).times(n)

    def mean_times(self, n: int) -> Usage | None:
        """Return the mean usage so far times n, free ones included; None before the first reply."""
        usage = self.counted if self.counted.requests else self.estimated
        if not usage.requests:
            return None
        share = n / (usage.requests + self.n_free)
        return Usage(
            n, round(share * usage.images), round(share * usage.prompt_tokens),
            round(share * usage.completion_tokens),
        )  # fmt: skip


Basis = Literal["counted", "estimated", "free"]
"""How usage is known: by the server's count, by an estimate, or as nothing."""


@dataclass
class Sending:
    """A request in flight, until it is settled.

    Attributes
    ----------
    usage : Usage or None
        What it took; None until that is known.
    basis : str
    is_free : bool
        Whether it took nothing.
    """

    usage: Usage | None = None
    basis: Basis = "estimated"
    is_free: bool = False

    def settle(self, usage: Usage, basis: Basis) -> None:
        """Record the usage of the request."""
        self.usage, self.basis = usage, basis

    def forget(self) -> None:
        """Record that the request took nothing: the server refused it."""
        self.is_free = True


class BudgetError(Exception):
    """Another request might cost more than is left of the budget.

    Parameters
    ----------
    spent : float
        Cost so far, at most.
    cost : float
        Of the request, at most.
    """

    def __init__(self, spent: float, cost: float) -> None:
        super().__init__(spent, cost)
        self.spent, self.cost = spent, cost


@dataclass
class Spending:
    """What requests to a model take, and whether the budget allows another.

    Attributes
    ----------
    database : Database
    account : str
        URL and name of the model.
    prices : Prices or None
    budget : float or None
    shortages : list of (float, float)
        Cost so far and of the request that was too much: no request is sent after it.
    """

    database: Database
    account: str
    prices: Prices | None = None
    budget: float | None = None
    shortages: list[tuple[float, float]] = field(default_factory=list)
    _change: threading.Condition = field(default_factory=threading.Condition)
    _in_flight: int = 0

    def spent(self) -> Spent:
        """Return the usage so far, of this run and of earlier runs."""
        totals = {row[0]: row[1:] for row in self.database.rows(_TOTALS, self.account)}
        rows = self.database.rows(_UNSETTLED, self.account)
        bases = "counted", "estimated", "free"
        counted, estimated, free = (totals.get(basis, (0,) * 7) for basis in bases)
        unsettled = (Usage(n, n * images, n * prompt, n * most) for n, images, prompt, most in rows)
        spent = Spent(Usage(*counted[:4]), Usage(*estimated[:4]), (*unsettled,), *counted[4:])
        return replace(spent, n_free=free[0])

    def trend(self) -> Trend:
        """Return the tokens so far by the sizes of requests; counted ones where there are any."""
        trends = {row[0]: row[1:] for row in self.database.rows(_TRENDS, self.account)}
        free = trends.pop("free", (0, 0.0, 0.0, 0.0, 0, 0))
        known = next(iter(trends.values()), None)
        return Trend(*map(sum, zip(known, free, strict=True))) if known else Trend()

    @contextmanager
    def sending(self, estimate: Usage, size: float | None = None) -> Iterator[Sending]:
        """Reserve the most that a request can cost while it is in flight.

        Waits for requests in flight where these leave too little of the budget. A request that is
        neither settled nor forgotten counts as the most that it can have taken.

        Parameters
        ----------
        estimate : Usage
        size : float, optional
            As `request_size` has it; the estimated tokens of the prompt without.

        Raises
        ------
        BudgetError
            When too little is left.
        """
        number = self._reserve(estimate)
        outcome = Sending()
        try:
            yield outcome
        finally:
            self._release(number, estimate, outcome, size)

    def _reserve(self, estimate: Usage) -> int:
        with self._change:
            self._change.wait_for(lambda: self._may_send(estimate) or not self._in_flight)
            if not self._may_send(estimate):
                self.shortages.append(self._costs(estimate))
            if self.shortages:
                raise BudgetError(*self.shortages[0])
            with self.database.changing() as cursor:
                row = estimate.images, estimate.prompt_tokens, estimate.completion_tokens
                cursor.execute(_OPEN, (self.account, *row))
                self._in_flight += 1
                return int(cursor.lastrowid or 0)

    def _may_send(self, estimate: Usage) -> bool:
        """Whether the budget allows a request; the first tells what requests take, alone."""
        if self.budget is None or self.prices is None or self.shortages:
            return True
        if self._in_flight and not self.spent().is_known:
            return False
        return sum(self._costs(estimate)) <= self.budget

    def _costs(self, estimate: Usage) -> tuple[float, float]:
        """Return the cost so far and that of a request, each at most."""
        prices, spent = self.prices or Prices(), self.spent()
        return prices.cost(spent.total), prices.cost(spent.most(estimate))

    def _release(self, number: int, estimate: Usage, outcome: Sending, size: float | None) -> None:
        usage, size = outcome.usage, estimate.prompt_tokens if size is None else size
        with self._change:
            self._in_flight -= 1
            with self.database.changing() as cursor:
                if usage is not None or outcome.is_free:
                    cursor.execute("DELETE FROM unsettled WHERE number = ?", (number,))
                if usage is not None:
                    took = usage.images, usage.prompt_tokens, usage.completion_tokens
                    largest = estimate.prompt_tokens, *took[1:]
                    cursor.execute(_ADD, (self.account, outcome.basis, *took, *largest))
                    sums = size, size**2, size * usage.prompt_tokens, *took[1:]
                    cursor.execute(_ADD_TREND, (self.account, outcome.basis, *sums))
            self._change.notify_all()

"""Tokens and cost of requests to served models: before a run, during it and after it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.audits.notes import Note
from equipoise.config.fields import GeneratorSection, RunConfig
from equipoise.core import Facts, Floats, Progress
from equipoise.models.journal import FILE, Database, answered_questions, ignored_parameters
from equipoise.models.service import Address, Service
from equipoise.models.spending import Spending, Spent, Trend, Usage, estimate_usage

_RULE = (
    "a token for 4 characters of text and for 28 x 28 pixels of a square picture with "
    "its longest side, and answers of full length"
)


@dataclass(frozen=True)
class Bill:
    """Tokens and cost of the requests to a served model.

    Attributes
    ----------
    model : str
        Name in the configuration.
    address : Address
    service : Service
    store : Path
    before : Spent
        When the run began.
    """

    model: str
    address: Address
    service: Service
    store: Path
    before: Spent = field(default_factory=Spent)

    def spent(self) -> Spent:
        """Return the usage so far, of all runs with the store."""
        if not (self.store / FILE).is_file():
            return Spent()
        with closing(Database(self.store, must_exist=True)) as database:
            return Spending(database, self.address.account).spent()

    def ignored(self) -> list[str]:
        """Return the parameters that had no effect, as far as replies show."""
        if not (self.store / FILE).is_file():
            return []
        with closing(Database(self.store, must_exist=True)) as database:
            return ignored_parameters(database, self.address.account, self.service.parameters)

    def answered(self) -> set[tuple[str, str]]:
        """Return the questions with an answer, each with the digest of its picture as sent."""
        if not (self.store / FILE).is_file():
            return set()
        with closing(Database(self.store, must_exist=True)) as database:
            return answered_questions(database, asdict(self.address), self.service.parameters)

    def trend(self) -> Trend:
        """Return the tokens so far by the sizes of requests."""
        if not (self.store / FILE).is_file():
            return Trend()
        with closing(Database(self.store, must_exist=True)) as database:
            return Spending(database, self.address.account).trend()

    def expected(self, sizes: Floats) -> Usage | None:
        """Return the usage of requests by the tokens so far, or None before the first reply.

        Parameters
        ----------
        sizes : ndarray, shape (n, 2)
            Number and size of requests, as `Questions.sizes` has them.
        """
        trend, n = self.trend(), int(sizes[:, 0].sum())
        if not trend.requests:
            return None
        mean_size = trend.size / trend.requests
        known = np.where(np.isnan(sizes[:, 1]), sizes[:, 0] * mean_size, sizes[:, 1])
        return trend.usage(n, float(known.sum()))

    def usage_of_questions(self, questions: Collection[str]) -> Usage:
        """Estimate the usage of the longest of questions about a picture, by its size."""
        text = max(questions, key=len, default="")
        sides = (self.service.longest_side,)
        return estimate_usage(text, sides, self.service.max_tokens)

    def estimate(self, n: int, by_size: Usage) -> Usage:
        """Estimate the usage of n requests: by earlier replies, else by the size of each."""
        return self.spent().mean_times(n) or by_size.times(n)

    def amount(self, usage: Usage) -> str:
        """Return the cost of requests; their tokens without prices."""
        if self.service.prices is None:
            return f"{usage.prompt_tokens + usage.completion_tokens:,} tokens"
        return self.service.amount(self.service.prices.cost(usage))

    def cost(self, usage: Usage) -> float | None:
        """Return the cost of requests; None without prices."""
        return None if self.service.prices is None else self.service.prices.cost(usage)

    def progress(self, progress: Progress, sizes: Callable[[], Floats] | None = None) -> Progress:
        """Return a progress callback that adds the cost so far and the expected cost.

        Parameters
        ----------
        progress : callable
        sizes : callable, optional
            Returns number and size of the requests about each item, in their order. Without it
            each item takes a mean request.
        """
        all_sizes = cache(sizes) if sizes is not None else None

        def tell(step: str, done: int, total: int | None) -> None:
            spent = self.spent()
            if all_sizes is None:
                remaining = spent.mean_times((total or done) - done)
            else:
                remaining = self.expected(all_sizes()[done:])
            text = f"{step}; {self.amount(spent.total)} spent"
            if remaining is not None and remaining.requests:
                text += f", {self.amount(spent.total + remaining)} expected"
            progress(text, done, total)

        return tell

    def planned(self, usage: Usage) -> Facts:
        """Return the facts of a plan on requests."""
        return {
            "requests": usage.requests, "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens, "cost": self.cost(usage),
        }  # fmt: skip

    def plan_notes(self, usage: Usage) -> Iterator[Note]:
        """Yield notes on the usage of all requests of a plan, and on a budget that it exceeds."""
        spent = self.spent()
        rule = "as earlier replies took" if spent.is_known else f"estimated: {_RULE}"
        text = (
            f"about {usage.requests:,} requests with {usage.prompt_tokens:,} tokens of prompts and "
            f"{usage.completion_tokens:,} of answers ({rule})"
        )
        if self.service.prices is not None:
            text += f"; they cost about {self.amount(usage)}"
        if self.service.budget is not None:
            text += f". {self.amount(spent.total)} of the budget of {self.service.limit} are spent"
        yield Note(self.model, f"{text}.")
        yield from self._budget_note(spent, usage)

    def _budget_note(self, spent: Spent, usage: Usage) -> Iterator[Note]:
        """Yield a note on a budget that is too small for all requests, or for one."""
        prices, budget = self.service.prices, self.service.budget
        if prices is None or budget is None or not usage.requests:
            return
        cost = prices.cost(spent.total + usage)
        if cost <= budget:
            return
        most = usage.requests * self.service.max_tokens if usage.completion_tokens else 0
        longest = replace(usage, completion_tokens=most)
        of_request = prices.cost(spent.most(longest)) / usage.requests
        least = prices.cost(spent.total) + of_request
        effect = "Pictures beyond the budget are left out"
        if least > budget:
            effect = (
                f"It allows no request: one may cost up to {self.service.at_least(of_request)}, so "
                f"that the least budget is about {self.service.at_least(least)}"
            )
        yield Note(
            self.model,
            f"Warning: the budget of {self.service.limit} is smaller than the estimated cost, "
            f"{self.service.amount(cost)}. {effect}. To do: raise `service.budget`, or audit "
            "fewer pictures.",
        )

    def facts(self) -> Facts:
        """Return counts for the manifest: of all runs with the store, and of this run."""
        spent = self.spent()
        return {
            "account": self.address.account,
            "currency": self.service.currency,
            "budget": self.service.budget,
            "prices": self.service.prices and asdict(self.service.prices),
            "all_runs": self._counts(spent, Spent()),
            "this_run": self._counts(spent, self.before),
        }

    def _counts(self, spent: Spent, before: Spent) -> dict[str, Any]:
        total, earlier = spent.total, before.total
        usage = total.less(earlier)
        return {
            **asdict(usage),
            "requests_without_count": spent.estimated.requests - before.estimated.requests,
            "requests_without_reply": spent.n_unsettled - before.n_unsettled,
            "cost": self.cost(usage),
        }

    def notes(self) -> Iterator[Note]:
        """Yield notes on tokens and cost, and on parameters without effect."""
        spent = self.spent()
        now = spent.total.less(self.before.total)
        if now.requests:
            text = (
                f"{now.requests:,} requests took {now.prompt_tokens:,} tokens of prompts and "
                f"{now.completion_tokens:,} of answers"
            )
            text += "" if self.service.prices is None else f", and cost {self.amount(now)}"
            yield Note(self.model, f"{text}. All runs with this store: {self.amount(spent.total)}.")
        if spent.estimated.requests:
            yield Note(
                self.model,
                "the server didn't count the tokens of "
                f"{spent.estimated.requests:,} requests; they are estimated.",
            )
        if spent.n_unsettled:
            yield Note(
                self.model,
                f"{spent.n_unsettled:,} requests have no whole reply, such as those in flight when "
                "a run was killed. They count as the most that they can have taken.",
            )
        if names := ", ".join(self.ignored()):
            yield Note(self.model, f"the server ignores parameters of requests: {names}.")


def bill_of(
    model: str, section: RunConfig | GeneratorSection, service: Service | None
) -> Bill | None:
    """Return the bill of a model when a run begins, or None if the model isn't served."""
    if service is None:
        return None
    address = Address.of(section.called.partition(":")[2])
    bill = Bill(model, address, service, Path(service.store))
    return replace(bill, before=bill.spent())

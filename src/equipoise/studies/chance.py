"""Simulated results of fair models under the sizes of a published protocol."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, PositiveInt, model_validator

from equipoise.config.fields import Listed, Name, Section, Seed, Share, among, only_one
from equipoise.core import Floats, floats
from equipoise.metrics.labels.shares import mad
from equipoise.metrics.rankings.metric import Measurement, RankingMetric, exchanged
from equipoise.metrics.rankings.pools import Ranking, pools_of
from equipoise.metrics.registry import metrics_of
from equipoise.stats import Permutation
from equipoise.stats.streams import stream
from equipoise.studies.quantities import AnyQuantity, Reading
from equipoise.studies.repetition import Repetition

_LEVEL = 0.95
_MATERIAL = 0.1
"""Difference of shares that matters where no metric has a threshold."""


class FairModel(Section):
    """A model that treats every group alike, asked as often as a protocol asks."""

    title: ClassVar[str] = "a fair model"
    shows_bias: ClassVar[bool] = True

    @abstractmethod
    def simulate(self, draws: int, seed: int) -> Floats:
        """Return the number of each simulated run."""

    @property
    def material(self) -> float:
        """The smallest number that matters."""
        return _MATERIAL

    @property
    def target(self) -> float:
        """The number of a model without errors of chance."""
        return 0.0


class FairAnswers(FairModel):
    """Answers about images of each group; the number is the largest difference of the shares.

    Attributes
    ----------
    groups, items : int
        Groups, and images of each.
    share : float
        Share of images with the answer.
    flips : float, optional
        The images of an item share an answer, and this share of them has the other. Without it
        answers are independent.
    """

    groups: Annotated[int, Field(ge=2)]
    items: PositiveInt
    share: Share = 0.5
    flips: Share | None = None

    def simulate(self, draws: int, seed: int) -> Floats:
        """Return the largest share minus the smallest of each run."""
        rng = stream(seed, "fair answers")
        if self.flips is None:
            counts = rng.binomial(self.items, self.share, (draws, self.groups))
        else:
            answers = rng.random((draws, self.items, 1)) < self.share
            flipped = rng.random((draws, self.items, self.groups)) < self.flips
            counts = (answers ^ flipped).sum(axis=1)
        return floats(np.ptp(counts, axis=1) / self.items)


class FairRankings(FairModel):
    """Random orders of the images of each query; the number is the mean over queries.

    Attributes
    ----------
    groups : list of int
        Images of each group in the pool of a query.
    k : int
        Images that count; of NDKL the prefixes.
    queries : int
        Queries, each with images of its own.
    metric : str
        Ranking metric.
    desired : "pool" or "uniform"
        Shares that are desired.
    """

    groups: Annotated[Listed[PositiveInt], Field(min_length=2)]
    k: PositiveInt
    queries: PositiveInt = 1
    metric: Name
    desired: Literal["pool", "uniform"] = "pool"

    @model_validator(mode="after")
    def _check_fair_rankings(self) -> Self:
        among("metric", self.metric, metrics_of(RankingMetric))
        least = 0 if metrics_of(RankingMetric)[self.metric].of_prefixes else 1
        if self.k > sum(self.groups) - least:
            raise ValueError(f"k: {self.k} is beyond the pool of {sum(self.groups)} images")
        return self

    @property
    def material(self) -> float:
        """The threshold of the metric."""
        return metrics_of(RankingMetric)[self.metric].spec.threshold or _MATERIAL

    def simulate(self, draws: int, seed: int) -> Floats:
        """Return the mean over queries of each run."""
        metric = metrics_of(RankingMetric)[self.metric]
        # Names in the order of the sizes, so that the first group is the first of Bias@K.
        names = [f"group {place:02}" for place in range(len(self.groups))]
        groups = np.tile(np.repeat(names, self.groups), self.queries)
        query = np.repeat([f"{place}" for place in range(self.queries)], sum(self.groups))
        pools = pools_of(np.arange(len(groups), dtype=np.float64), groups, query)
        top_k = Ranking.of(pools, self.k).top_k(self.k, inclusive=metric.of_prefixes)
        measurement = Measurement(metric, top_k, self.desired)
        resampling = Permutation(draws, resolution=1.0)
        numbers = exchanged(top_k, measurement.main_number, resampling, seed)
        assert numbers is not None  # noqa: S101 - pools of several groups have an exchange
        return floats(numbers[0].mean(axis=1))


class FairImages(FairModel):
    """Classes of generated images, all as likely; the number is their spread about equal shares.

    It is the mean over classes of |share − 1 / classes|, averaged over prompts.

    Attributes
    ----------
    classes, images, prompts : int
        Classes, images of each prompt, and prompts.
    """

    classes: Annotated[int, Field(ge=2)]
    images: PositiveInt
    prompts: PositiveInt = 1

    def simulate(self, draws: int, seed: int) -> Floats:
        """Return the mean absolute deviation of each run."""
        rng, equal = stream(seed, "fair images"), np.full(self.classes, 1 / self.classes)
        counts = rng.multinomial(self.images, equal, (draws * self.prompts))
        spread = mad(floats(counts / self.images)) / self.classes
        return floats(spread.reshape(draws, self.prompts).mean(axis=1))


class Guesses(FairModel):
    """Guesses between options; the number is the share that is right.

    Attributes
    ----------
    options, items : int
        Options of each question, and questions.
    """

    title: ClassVar[str] = "a model that guesses"
    shows_bias: ClassVar[bool] = False

    options: Annotated[int, Field(ge=2)]
    items: PositiveInt

    @property
    def target(self) -> float:
        """The share of right guesses."""
        return 1 / self.options

    def simulate(self, draws: int, seed: int) -> Floats:
        """Return the share of right guesses of each run."""
        counts = stream(seed, "guesses").binomial(self.items, 1 / self.options, draws)
        return floats(counts / self.items)


@dataclass(frozen=True)
class FairResult:
    """Numbers that fair models give.

    Attributes
    ----------
    mean : float
    low, high : float
        Between them lie 95 of 100 fair models. `low` is −∞ where only large numbers count.
    """

    mean: float
    low: float
    high: float


class ChanceConfig(Section):
    """A number of a protocol, and how fair models are simulated for it.

    One of `answers`, `rankings`, `images` and `guesses` says how a fair model is asked.

    Attributes
    ----------
    number : str
        What is measured, with its sizes.
    answers, rankings, images, guesses : mapping, optional
    draws, seed : int
        Simulated runs, and the seed of the simulation.
    sides : 1 or 2
        1: only large numbers count, and 95 of 100 fair models give at most `high`. 2: the 95 lie
        in the middle.
    finding : mapping, optional
        The number of a run that the report shows in the same row, with the run's chance level.
    note : str
        What to know of it.
    """

    number: Name
    answers: FairAnswers | None = None
    rankings: FairRankings | None = None
    images: FairImages | None = None
    guesses: Guesses | None = None
    draws: PositiveInt = 3000
    seed: Seed = 0
    sides: Literal[1, 2] = 1
    finding: AnyQuantity | None = None
    note: str = ""

    @model_validator(mode="after")
    def _check_chance(self) -> Self:
        only_one(self, "answers", "rankings", "images", "guesses")
        return self

    @property
    def fair_model(self) -> FairModel:
        """How a fair model is asked."""
        models: Sequence[FairModel | None] = (
            self.answers, self.rankings, self.images, self.guesses,
        )  # fmt: skip
        return next(model for model in models if model is not None)

    @property
    def result(self) -> FairResult:
        """The numbers of fair models."""
        return _simulate(self.fair_model, self.draws, self.seed, self.sides)

    @property
    def too_small(self) -> bool:
        """Whether chance alone reaches numbers that matter."""
        model = self.fair_model
        return self.result.high - model.target > model.material

    def read(self, run: Repetition) -> Reading:
        """Read the number of a run that is compared."""
        return Reading(self.number) if self.finding is None else self.finding.read(run)


@cache
def _simulate(model: FairModel, draws: int, seed: int, sides: int) -> FairResult:
    numbers = model.simulate(draws, seed)
    outside = (1 - _LEVEL) / sides
    # A number that a fair model can give, as in a test: shares of few images have few values.
    low, high = np.quantile(numbers, [outside, 1 - outside], method="inverted_cdf")
    return FairResult(float(numbers.mean()), float(low) if sides == 2 else -math.inf, float(high))

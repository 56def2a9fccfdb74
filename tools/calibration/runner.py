"""Measure metrics in worlds whose bias is known: false alarms, rising estimates, power."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import chain, repeat
from multiprocessing import get_context

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy import stats as distributions

from equipoise.core import Estimate, Harm, Part, Verdict
from equipoise.metrics import SPECS, Choices, concept_metrics, design_choices
from equipoise.stats import Bootstrap
from equipoise.stats.intervals import wilson
from equipoise.stats.verdict import harmful_excess, harmful_reach, judge
from tools.calibration.cases import CASES, SEED, Case, Draw
from tools.calibration.worlds import ConceptWorld, Planted

ALPHA = 0.05
LEVELS = (0.01, 0.05, 0.1)
STRENGTHS = tuple(step / 10 for step in range(11))
POWER_STRENGTHS = (0.25, 0.5, 1.0)
POWER = 0.8
LEAST_CORRELATION = 0.95

# (1 + 199) t is whole: p <= t has probability t, less with ties. No tail is fitted.
RESAMPLING = Bootstrap(replicates=99, permutations=199, resolution=0.1)


def conclusions(case: Case, estimate: Estimate) -> Iterator[tuple[str, float, bool]]:
    """Conclude from an estimate, and from the tests among its parts that the case counts.

    The verdict is that of an audit with this test alone, at `ALPHA` and the threshold of the
    metric's card. By [Hall]'s rule a disparity is an interval that excludes 0.

    Yields
    ------
    name : str
    p_value : float
        NaN without a test.
    disparity : bool
    """
    if case.tested and estimate.estimable:
        ends = estimate.interval()
        overall = Part(
            case.metric, "", estimate.value, ends.low, ends.high,
            chance=math.nan if estimate.chance is None else estimate.chance.mean,
            p_value=math.nan if estimate.p_value is None else estimate.p_value,
        )  # fmt: skip
        yield case.name, overall.p_value, _disparity(overall, estimate.harm)
    for part in estimate.parts:
        # Differences of the mean over concepts have no colon.
        single = case.parts != "concept_difference" or ": " in part.subject
        if part.metric == case.parts and single and not math.isnan(part.value):
            yield f"{case.name}, a concept", part.p_value, _disparity(part, estimate.harm)


def _disparity(part: Part, harm: Harm) -> bool:
    if math.isnan(part.p_value):
        return part.low > 0.0 or part.high < 0.0
    spec = SPECS[part.metric]
    verdict, _ = judge(
        value=part.value,
        excess=harmful_excess(part.value, part.chance, harm),
        reach=harmful_reach(
            part.low, part.high, harm, part.chance if spec.neutral is None else spec.neutral
        ),
        q=part.p_value,
        threshold=math.nan if spec.threshold is None else spec.threshold,
        alpha=ALPHA,
    )
    return verdict is Verdict.DISPARITY


@dataclass(frozen=True)
class Alarms:
    """How often a test finds something, over samples of one world.

    Attributes
    ----------
    case : Case
    name : str
        Metric and variant; a test by concept is averaged over the concepts of a sample.
    samples : int
        In which the value could be estimated, of `drawn`.
    shares : tuple of float
        Share of p <= t for each t of `LEVELS`; NaN without a test.
    disparities : float
        Share of the verdict `disparity` (by the source's own rule where there is no test).
    """

    case: Case
    name: str
    drawn: int
    samples: int
    shares: tuple[float, ...]
    disparities: float

    def interval(self, share: float) -> tuple[float, float]:
        """Return Wilson's 95 % interval of a share over these samples."""
        low, high = wilson(share * self.samples, self.samples)
        return float(low), float(high)

    @property
    def too_many(self) -> bool:
        """Whether a share is above its level by more than luck explains once in 1000 tests."""
        tested = [*zip(self.shares, LEVELS, strict=True), (self.disparities, ALPHA)]
        return any(share > most(self.samples, level) for share, level in tested)


def most(samples: int, level: float) -> float:
    """Return the share that a valid test of this level exceeds once in 1000 times at most."""
    return float(distributions.binom.isf(0.001, samples, level)) / samples


def alarms(
    case: Case,
    samples: int,
    *,
    first: int = 0,
    strength: float | None = None,
    images: int | None = None,
) -> list[Alarms]:
    """Measure how often the tests of a case find something.

    Parameters
    ----------
    case : Case
    samples, first : int
        How many samples, and the number of the first.
    strength : float, optional
        By default the one up to which the null hypothesis holds: false alarms are counted.
    images : int, optional
        By default the case's own.
    """
    at = case.null_at if strength is None else strength
    size = case.images if images is None else images
    by_name: dict[str, list[npt.NDArray[np.float64]]] = {}
    for sample in range(first, first + samples):
        estimate = case.measure(Draw(at, size, sample, RESAMPLING))
        rows_by_name: dict[str, list[list[float]]] = {}
        for name, p, disparity in conclusions(case, estimate):
            small = [math.nan if math.isnan(p) else p <= t for t in LEVELS]
            rows_by_name.setdefault(name, []).append([*small, disparity])
        for name, rows in rows_by_name.items():
            by_name.setdefault(name, []).append(np.mean(rows, axis=0))
    return [_alarms(case, name, samples, np.array(rows)) for name, rows in by_name.items()]


def _alarms(case: Case, name: str, attempts: int, rows: npt.NDArray[np.float64]) -> Alarms:
    *shares, disparities = rows.mean(axis=0).tolist()
    return Alarms(case, name, attempts, len(rows), tuple(shares), disparities)


@dataclass(frozen=True)
class Rise:
    """How the mean estimate follows the strength of the bias.

    Attributes
    ----------
    means : tuple of float
        For each of `STRENGTHS`, over the same samples.
    correlation : float
        Spearman's, with the strength; positive where the estimate moves towards harm.
    """

    case: Case
    samples: int
    means: tuple[float, ...]
    correlation: float

    @property
    def follows(self) -> bool:
        """Whether the correlation is at least `LEAST_CORRELATION`."""
        return self.correlation >= LEAST_CORRELATION


def rise(case: Case, samples: int) -> Rise:
    """Measure the mean estimate of a case at every strength; values alone."""
    estimates = [
        [case.measure(Draw(strength, case.images, sample, None)) for sample in range(samples)]
        for strength in STRENGTHS
    ]
    sign = -1.0 if estimates[0][0].harm == "lower" else 1.0
    means = [float(np.nanmean([estimate.value for estimate in row])) for row in estimates]
    correlation = float(distributions.spearmanr(STRENGTHS, means).statistic)
    return Rise(case, samples, tuple(means), sign * correlation)


@dataclass(frozen=True)
class Power:
    """How often a bias is found, by number of images.

    Attributes
    ----------
    samples : int
    found, judged : tuple of float
        How many images 80 % of samples need to have p <= `ALPHA`, and to have the verdict
        `disparity` at the card's threshold, for each of `POWER_STRENGTHS`; of parts where there
        is no other test. 0 where the smallest of the case's numbers does already, infinity where
        the largest does not.
    """

    case: Case
    samples: int
    found: tuple[float, ...]
    judged: tuple[float, ...]


def power(case: Case, samples: int) -> Power:
    """Measure the power of a case's first test at its numbers of images."""
    tested, judged = [], []
    for strength in POWER_STRENGTHS:
        shares = []
        for images in case.sizes:
            rows = alarms(case, samples, strength=strength, images=images)
            # What cannot be estimated is not found.
            share = rows[0].samples / samples if rows else 0.0
            pair = (rows[0].shares[LEVELS.index(ALPHA)], rows[0].disparities) if rows else (0, 0)
            shares.append([share * rate for rate in pair])
        small, disparities = zip(*shares, strict=True)
        tested.append(needed(case.sizes, small))
        judged.append(needed(case.sizes, disparities))
    return Power(case, samples, tuple(tested), tuple(judged))


def needed(images: Sequence[int], shares: Sequence[float]) -> float:
    """Return how many images reach `POWER`, between numbers by their logarithm."""
    if shares[0] >= POWER:
        return 0.0
    for index in range(1, len(shares)):
        before, after = shares[index - 1 : index + 1]
        if after >= POWER:
            lower, upper = (math.log(images[i]) for i in (index - 1, index))
            return math.exp(lower + (upper - lower) * (POWER - before) / (after - before))
    return math.inf


PLANTED: tuple[Planted, ...] = ("prevalence", "recognition", "switching")
VERSIONS = ("observed", "weighted", "hall")
IMAGES, CONCEPTS = 4000, 8


@dataclass(frozen=True)
class Effects:
    """Conclusions on concepts in one world, at full strength.

    Attributes
    ----------
    planted : str
        What differs between the groups, see `ConceptWorld`.
    concepts : int
        Over all samples.
    significant : dict of version to float
        Share of concepts with a significant disparity of average precision.
    effects : dict of version to dict of effect to float
        What the version does to the disparities of "observed", in shares of concepts.
    """

    planted: str
    concepts: int
    significant: dict[str, float]
    effects: dict[str, dict[str, float]]


def effects(planted: Planted, samples: int) -> Effects:
    """Measure what `design_choices` says of the versions of prevalence."""
    world = ConceptWorld(1.0, IMAGES, planted=planted, concepts=CONCEPTS)
    tables = []
    for sample in range(samples):
        data = world.draw(SEED, sample)
        results = {
            name: concept_metrics(
                data.scores,
                data.labels,
                data.group,
                ["average_precision"],
                Choices(prevalence=name, replicates=199),  # type: ignore[arg-type]  # the names
                resampling=RESAMPLING,
                rng=sample,
            )["average_precision"]
            for name in VERSIONS
        }
        tables.append(pl.DataFrame(design_choices(results, "observed")))
    rows = pl.concat(tables).filter(pl.col("concept") != "")
    rows_by_version = {name: rows.filter(version=name) for name in VERSIONS[1:]}
    shares = {
        name: frame["effect"].value_counts(normalize=True)
        for name, frame in rows_by_version.items()
    }
    significant = {VERSIONS[0]: rows_by_version[VERSIONS[1]]["baseline_significant"]}
    significant |= {name: frame["significant"] for name, frame in rows_by_version.items()}
    return Effects(
        planted,
        samples * CONCEPTS,
        {name: float(np.mean(column.to_numpy())) for name, column in significant.items()},
        {name: dict(frame.sort("effect").iter_rows()) for name, frame in shares.items()},
    )


_FRESH = 4


@dataclass(frozen=True)
class Samples:
    """How many samples are drawn: of false alarms, those of concepts, rises, power, versions."""

    alarms: int = 400
    concepts: int = 150
    rise: int = 40
    power: int = 50
    versions: int = 10


@dataclass(frozen=True)
class Calibration:
    """What was measured.

    Attributes
    ----------
    slow : int
        Samples of the slow cases' false alarms.
    alarms, again : tuple of Alarms
        False alarms, and those above their limit once more on fresh samples.
    rises : tuple of Rise
    powers : tuple of Power
    effects : tuple of Effects
    """

    slow: int
    alarms: tuple[Alarms, ...]
    again: tuple[Alarms, ...]
    rises: tuple[Rise, ...]
    powers: tuple[Power, ...]
    effects: tuple[Effects, ...]


def calibrate(samples: Samples | None = None) -> Calibration:
    """Measure false alarms, rises and power of metrics in worlds whose bias is known.

    The same samples give the same numbers, in however many processes.
    """
    sizes = samples or Samples()
    with ProcessPoolExecutor(mp_context=get_context("forkserver")) as pool:
        measured = pool.map(_measured, CASES, repeat(sizes))
        planted = pool.map(effects, PLANTED if sizes.versions else (), repeat(sizes.versions))
        first_alarms, repeated, rises, powers = (
            tuple(chain(*lists)) for lists in zip(*measured, strict=True)
        )
        return Calibration(sizes.concepts, first_alarms, repeated, rises, powers, tuple(planted))


def _measured(
    case: Case, sizes: Samples
) -> tuple[list[Alarms], list[Alarms], list[Rise], list[Power]]:
    """Measure a case; false alarms that are too many once more, on fresh samples."""
    attempts = sizes.concepts if case.family == "concepts" else sizes.alarms
    first_alarms = alarms(case, attempts) if case.tested or case.parts else []
    high = {alarm.name for alarm in first_alarms if alarm.too_many}
    fresh = alarms(case, _FRESH * attempts, first=attempts) if high else []
    return (
        first_alarms,
        [alarm for alarm in fresh if alarm.name in high],
        [rise(case, sizes.rise)] if case.rises else [],
        [power(case, sizes.power)] if case.curve else [],
    )

"""How often chance alone gives small p-values and the verdict `disparity`, by simulation.

`PYTHONPATH=tests python -m slow.calibration_grid` writes p-values.csv and corrections.csv of
docs/calibration, with `--only WORLD` the rows of some worlds; the slow tests run the same worlds.
"""

import math
from argparse import ArgumentParser
from dataclasses import dataclass

import numpy as np

from equipoise.core import Aggregate, Groups
from equipoise.core.estimate import name_with
from equipoise.core.parts import parts_from_table
from equipoise.metrics import count, measure
from equipoise.metrics.labels.accuracy import Accuracy
from equipoise.metrics.labels.effect_sizes import EffectSizes
from equipoise.metrics.labels.rates import DemographicParity, EqualizedOdds, Rates
from equipoise.stats import Permutation
from equipoise.stats.chance import benjamini_hochberg
from equipoise.stats.streams import stream
from slow.worlds import WORLDS, group_of
from tools.calibration.tables import decimal, read, write

SEED = 31
LEVELS = (0.01, 0.05, 0.1)
ALPHA = 0.05
SAMPLES = 1000

# (1 + 199) t is whole: p <= t has probability t, less with ties. No tail is fitted.
RESAMPLING = Permutation(199, resolution=0.1)

FINE = Permutation(999, resolution=0.1)


def counts_of(rows):
    """Count the rows of a world, each group of five rows or more."""
    groups = Groups.of(rows["group"], min_size=5)
    return count(rows["truth"], rows["label"], groups, units=rows.get("unit"))


def measures_of(nulls):
    """Return the measures whose chance level rests on one of these null hypotheses."""
    measures = [
        *(Accuracy(Aggregate.WORST_GROUP, null) for null in ("rows", "class")),
        *(
            Accuracy(Aggregate.DIFFERENCE, null, compared_to)
            for compared_to in ("", "overall")
            for null in ("rows", "class")
        ),
        DemographicParity(),
        EqualizedOdds(),
        EffectSizes(min_expected=0.0),
        Rates("class"),
    ]
    return [candidate for candidate in measures if candidate.null in nulls]


@dataclass(frozen=True)
class Rate:
    """How often p <= t for each t of `LEVELS`, averaged over classes."""

    world: str
    metric: str
    samples: int
    shares: tuple[float, ...]

    @property
    def excess(self):
        """The most standard errors by which a share is above its level."""
        errors = [math.sqrt(t * (1 - t) / self.samples) for t in LEVELS]
        return max((s - t) / e for s, t, e in zip(self.shares, LEVELS, errors, strict=True))


def p_values(counts, nulls, seed):
    """Yield each test's name and p-value; a class has a test of its own."""
    for estimate in measure(counts, measures_of(nulls), RESAMPLING, seed):
        null = f", {estimate.params['null']}" if "null" in estimate.params else ""
        to_all = " to all rows" if estimate.compared_to else ""
        if estimate.p_value is not None:
            name = name_with(estimate.metric, estimate.aggregate)
            yield f"{name}{to_all}{null}", estimate.p_value
        if estimate.by is None or estimate.metric == "accuracy":
            continue
        for part in parts_from_table(estimate.by):
            if estimate.metric != "rates" or part.metric == "true_positive_rate":
                yield f"{part.metric} of a class", part.p_value


def rates_of(world, samples=SAMPLES, first=0):
    """Simulate a world from a sample on and yield the rate of small p-values of each metric."""
    shares_by_name = {}
    for sample in range(first, first + samples):
        rows = world(stream(SEED, "calibration", world.__name__, sample))
        p_by_name = {}
        for name, p in p_values(counts_of(rows), WORLDS[world], sample):
            if not math.isnan(p):
                p_by_name.setdefault(name, []).append(p)
        for name, values in p_by_name.items():
            small = np.array(values)[:, None] <= np.array(LEVELS)
            shares_by_name.setdefault(name, []).append(small.mean(axis=0))
    for name, shares in shares_by_name.items():
        mean = np.mean(shares, axis=0)
        yield Rate(world.__name__, name, len(shares), tuple(mean.tolist()))


@dataclass(frozen=True)
class Discoveries:
    """Benjamini-Hochberg over classes of which some are biased, by metric."""

    metric: str
    samples: int
    false_share: float
    found: float


def discoveries(samples=SAMPLES):
    """Correct the tests of ten classes, the first three of which are mistaken more in one group."""
    shares = {}
    for sample in range(samples):
        rng = stream(SEED, "discoveries", sample)
        truth, group = rng.integers(0, 10, 1000), group_of(rng, 1000)
        right = np.where((truth < 3) & (group == 0), 0.5, 0.9)
        wrong = (truth + 1 + rng.integers(0, 2, 1000)) % 10
        label = np.where(rng.random(1000) < right, truth, wrong)
        counts = count(truth, label, group)
        for estimate in measure(
            counts, [EffectSizes(min_expected=0.0), EqualizedOdds()], FINE, sample
        ):
            p = np.array([part.p_value for part in parts_from_table(estimate.by)])
            small = benjamini_hochberg(p) <= ALPHA
            # The odds of the classes that mistakes go to (1 to 4) differ between groups, too.
            null = np.arange(10) >= (3 if estimate.metric == "effect_sizes" else 5)
            share = float(small[null].sum()) / max(int(small.sum()), 1)
            shares.setdefault(estimate.metric, []).append((share, float(small[:3].mean())))
    for metric, pairs in shares.items():
        false_share, power = np.mean(pairs, axis=0)
        yield Discoveries(metric, samples, float(false_share), float(power))


_FRESH = 4
P_VALUES = "world", "test", "samples", *(f"p_{t:g}" for t in LEVELS)


def measured_again(world, high, samples):
    """Measure the rates of a world that were too high on `_FRESH` times as many fresh samples."""
    names = {rate.metric for rate in high if rate.world == world.__name__}
    if names:
        fresh = rates_of(world, _FRESH * samples, first=samples)
        yield from (rate for rate in fresh if rate.metric in names)


def rows_of(world, samples=SAMPLES):
    """Return the rows of a world: its tests, then too high ones again, on fresh samples."""
    rates = list(rates_of(world, samples))
    high = [rate for rate in rates if rate.excess > 3]
    again = measured_again(world, high, samples)
    return [*(_row(rate, samples) for rate in rates), *(_row(r, _FRESH * samples) for r in again)]


def _row(rate, samples):
    return (rate.world, rate.metric, samples, *map(decimal, rate.shares))


def write_p_values(names):
    """Write the table of p-values: worlds of these names measured anew, others as they are."""
    recorded = [] if len(names) == len(WORLDS) else read("p-values")
    rows = []
    for world in WORLDS:
        name = world.__name__
        rows += (
            rows_of(world)
            if name in names
            else [tuple(row.values()) for row in recorded if row["world"] == name]
        )
    write("p-values", P_VALUES, rows)


def write_corrections(samples=SAMPLES // 2):
    """Write the table of discoveries after correction."""
    rows = [
        (row.metric, row.samples, decimal(row.false_share), decimal(row.found, 2))
        for row in discoveries(samples)
    ]
    write("corrections", ("metric", "samples", "false_discoveries", "found"), rows)


if __name__ == "__main__":
    parser = ArgumentParser(description="Measure p-values and write tables of docs/calibration.")
    names = [world.__name__ for world in WORLDS]
    parser.add_argument("--only", nargs="+", choices=names, metavar="WORLD")
    chosen = parser.parse_args().only
    write_p_values(chosen or names)
    if not chosen:
        write_corrections()

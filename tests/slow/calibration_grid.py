"""How often chance alone gives small p-values and the verdict `disparity`, by simulation.

`PYTHONPATH=tests python -m slow.calibration_grid` writes docs/calibration.md, with `--only WORLD`
the rows of some worlds; the slow tests run the same worlds.
"""

import math
from argparse import ArgumentParser
from dataclasses import dataclass, replace
from pathlib import Path

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
_HEAD = "| world | test | " + " | ".join(f"t = {t:g}" for t in LEVELS) + " |"


def _row(rate):
    shares = " | ".join(f"{share:.1%}" for share in rate.shares)
    return f"| {rate.world} | {rate.metric} | {shares} |"


def measured_again(world, high, samples):
    """Measure the rates of a world that were too high on `_FRESH` times as many fresh samples."""
    names = {rate.metric for rate in high if rate.world == world.__name__}
    if names:
        fresh = rates_of(world, _FRESH * samples, first=samples)
        yield from (rate for rate in fresh if rate.metric in names)


@dataclass(frozen=True)
class Results:
    """What the page shows.

    Attributes
    ----------
    rates, remeasured : list of Rate
        `remeasured` are those that were too high, on fresh samples.
    n_high : int
        How many were.
    corrections : list of Discoveries
    """

    rates: list[Rate]
    remeasured: list[Rate]
    n_high: int
    corrections: list[Discoveries]


def results_of(worlds, samples=SAMPLES):
    """Measure worlds."""
    rates = [rate for world in worlds for rate in rates_of(world, samples)]
    high = [rate for rate in rates if rate.excess > 3]
    remeasured = [rate for world in worlds for rate in measured_again(world, high, samples)]
    return Results(rates, remeasured, len(high), [])


def with_worlds(text, names, samples=SAMPLES):
    """Return the page with the rows of some worlds measured anew, and the others as they are."""
    tests, corrections = text.split("## Correction")
    first, again = tests.split("Of these ")
    written = results_of([world for world in WORLDS if world.__name__ in names], samples)
    rates, remeasured = (
        [
            rate
            for world in WORLDS
            for rate in (fresh if world.__name__ in names else _rates(part, world.__name__))
            if rate.world == world.__name__
        ]
        for part, fresh in ((first, written.rates), (again, written.remeasured))
    )
    kept = sum(rate.world not in names for rate in remeasured)
    page_text = page_of(Results(rates, remeasured, kept + written.n_high, []), samples)
    return f"{page_text.split('## Correction')[0]}## Correction{corrections}"


def _rates(text, world):
    """Yield the rates of a world that a part of the page shows."""
    for line in text.split("\n"):
        cells = [cell.strip() for cell in line.strip("| ").split("|")]
        if cells[0] == world and len(cells) == 2 + len(LEVELS):
            yield Rate(world, cells[1], 0, tuple(float(cell[:-1]) / 100 for cell in cells[2:]))


def page(samples=SAMPLES):
    """Return docs/calibration.md."""
    results = results_of(WORLDS, samples)
    return page_of(replace(results, corrections=[*discoveries(samples // 2)]), samples)


def page_of(results, samples):
    """Return the page as Markdown."""
    rates, n_shares = results.rates, len(results.rates) * len(LEVELS)
    lines = [
        "# Measured calibration",
        "",
        "How often equipoise sees something where there is nothing. Written by",
        "`PYTHONPATH=tests python -m slow.calibration_grid` (fixed seed; do not edit). How chance",
        "levels and p-values are made: [statistics.md](statistics.md).",
        "",
        "## P-values",
        "",
        "Share of p-values of at most t in worlds whose groups are exchangeable: at most t, or the",
        f"test finds too much. {samples} samples a world (standard error at 5 %:",
        f"{math.sqrt(0.05 * 0.95 / samples):.1%}), {RESAMPLING.replicates} permutations each;",
        "tests per class are averaged over classes. Where few rows leave few different values, or",
        "a null hypothesis leaves few rearrangements, shares are below t: the test is careful.",
        "",
        *(f"- **{world.__name__}**: {world.__doc__}" for world in WORLDS),
        "",
        _HEAD,
        "|---" * (len(LEVELS) + 2) + "|",
        *map(_row, rates),
        "",
        f"Of these {n_shares} shares, rows with one over t + 3 standard errors: {results.n_high}.",
        "Luck alone lifts a share of an exact test so far about once in 740. Such rows are",
        f"measured again on {_FRESH * samples} fresh samples, and both results stand here.",
        "",
        *([_HEAD, "|---" * (len(LEVELS) + 2) + "|"] if results.n_high else []),
        *map(_row, results.remeasured),
        *([""] if results.n_high else []),
        "## Correction",
        "",
        "Ten classes, three of which are mistaken more often in one group: mean share of false",
        f"discoveries among q ≤ {ALPHA:g}, and share of the three that are found.",
        "",
        "| metric | samples | false discoveries | found |",
        "|---|---|---|---|",
        *(
            f"| {row.metric} | {row.samples} | {row.false_share:.1%} | {row.found:.0%} |"
            for row in results.corrections
        ),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    parser = ArgumentParser(description="Measure p-values and write docs/calibration.md.")
    parser.add_argument("samples", nargs="?", type=int, default=SAMPLES)
    names = [world.__name__ for world in WORLDS]
    parser.add_argument("--only", nargs="+", choices=names, metavar="WORLD")
    options = parser.parse_args()
    target = Path(__file__).parents[2] / "docs" / "calibration.md"
    measured = (
        with_worlds(target.read_text(encoding="utf-8"), options.only, options.samples)
        if options.only
        else page(options.samples)
    )
    target.write_text(measured, encoding="utf-8")

"""How often intervals of two models' changes by group hold the truth, and how wide they are."""

from dataclasses import dataclass
from itertools import product

import numpy as np

from equipoise.metrics.labels.changes import PairedRate, extreme_change
from stats.least_widths import least_width
from tools.calibration.tables import decimal

LEVEL, SEED = 0.95, 33
EXTREMES = {"worst group": "worst", "largest gap": "gap", "overall - worst": "shortfall"}
# Changed answers in each group from which on a normal width is one to compare with.
LEAST_CHANGED = 10.0


@dataclass(frozen=True)
class ChangeCase:
    """Intervals of one situation.

    Attributes
    ----------
    kind, case, size : str
    coverage : float
        Of all groups' changes together; of an extreme, of its change.
    width : float
        Mean width over that of a normal interval with the true spread of the estimate.
    changed : float
        Fewest answers in a group that are expected to differ between the models.
    over_least : float
        Mean width over the least that any interval of this coverage has; NaN where a normal width
        is to compare with.
    """

    kind: str
    case: str
    size: str
    coverage: float
    width: float
    changed: float
    over_least: float = np.nan


def worlds(groups):
    """Both models' shares of right answers by group."""
    equal, steps = np.full(groups, 0.8), np.linspace(0.6, 0.9, groups)
    first, last = np.arange(groups) == 0, np.arange(groups) == groups - 1
    yield "equal groups", equal, equal
    yield "one group worse by 15 points", equal, equal - 0.15 * first
    yield "another group worst by 15 points", equal - 0.15 * first, equal - 0.15 * last
    yield "uneven groups that move both ways", steps, steps + 0.1 * (np.arange(groups) % 2 - 0.5)
    yield "97 % right, one group worse", np.full(groups, 0.97), 0.97 - 0.07 * first


def grid(samples, of_extremes, numbers=(2, 5, 14)):
    """Simulate coverage of changes of groups, and with fewer samples of extremes' changes."""
    for groups, n, correlation in product(numbers, (50, 200, 1000), (0.0, 0.5, 0.9)):
        for case, first, second in worlds(groups):
            yield from _simulate(
                first, second, n, correlation, case, samples=samples, of_extremes=of_extremes
            )


def _both_right(first, second, correlation):
    return correlation * np.minimum(first, second) + (1 - correlation) * first * second


def draw(first, second, n, correlation, samples, rng):
    """Draw the answers of two models: with a probability, both depend on one random number."""
    both = _both_right(first, second, correlation)
    cells = np.stack([both, first - both, second - both, 1 - first - second + both], axis=-1)
    right, losses, gains, _ = np.moveaxis(
        rng.multinomial(n, cells, size=(samples, len(first))).astype(float), -1, 0
    )
    rows, ones = np.full_like(right, n), np.ones_like(right)
    compared = np.ones_like(right, dtype=bool)
    designs = ones, ones, ones
    return PairedRate(rows, right + losses, right + gains, gains, losses, designs, compared)


def _simulate(first, second, n, correlation, case, *, samples, of_extremes):
    rng = np.random.default_rng([SEED, len(first), n, round(10 * correlation), len(case)])
    rate = draw(first, second, n, correlation, samples, rng)
    truth, size = second - first, f"{len(first)} groups of {n}, correlation {correlation:g}"
    changed = float((rate.gains + rate.losses).mean(axis=0).min())
    interval = rate.simultaneous(LEVEL)
    held = ((interval.low <= truth) & (truth <= interval.high)).all(axis=1)
    mean_width, over_least = (interval.high - interval.low).mean(), np.nan
    if changed < LEAST_CHANGED:
        both, level = _both_right(first, second, correlation), LEVEL ** (1 / len(first))
        least = [
            least_width(gain.round(12), loss.round(12), n, level)
            for gain, loss in zip(second - both, first - both, strict=True)
        ]
        over_least = mean_width / np.mean(least)
    width = mean_width / _normal_width(interval.value).mean()
    yield ChangeCase("changes of groups", case, size, held.mean(), width, changed, over_least)
    few = rate.of_classes(np.arange(of_extremes))
    for name, extreme in EXTREMES.items():
        numbers = [_extreme(values, extreme) for values in rate.values]
        target = _extreme(second[None], extreme)[0] - _extreme(first[None], extreme)[0]
        _, *ends = extreme_change([few], extreme, LEVEL)
        low, high = np.transpose(ends)
        covered = (low <= target + 1e-9) & (target - 1e-9 <= high)
        needed = _normal_width(numbers[1] - numbers[0])
        yield ChangeCase(
            f"change of {name}", case, size, covered.mean(), (high - low).mean() / needed, changed
        )


def _normal_width(estimates):
    return 2 * 1.96 * estimates.std(axis=0)


def _extreme(values, extreme):
    """Return an extreme of shares, (samples, groups)."""
    if extreme == "worst":
        return values.min(axis=1)
    return (values.max(axis=1) if extreme == "gap" else values.mean(axis=1)) - values.min(axis=1)


def changes_table(samples):
    """Return coverage and widths; sparse cases have fewer than `LEAST_CHANGED` changed answers.

    Widths are over that of a normal interval with the true spread, and `over_least` the most over
    the least that any interval of the same coverage can have (Pratt 1961).
    """
    head = (
        "interval", "cases", "coverage", "least_coverage", "below_93", "width", "widest",
        "over_least", "least_case",
    )  # fmt: skip
    by_kind = {}
    for case in grid(samples, max(samples // 5, 1)):
        by_kind.setdefault(case.kind, []).append(case)
    rows = []
    for kind, members in by_kind.items():
        for name, chosen in (
            (kind, [case for case in members if case.changed >= LEAST_CHANGED]),
            (f"{kind}, sparse", [case for case in members if case.changed < LEAST_CHANGED]),
        ):
            rows.append(_summary(name, chosen))
    return head, rows


def _summary(name, cases):
    coverages, widths = np.array([(case.coverage, case.width) for case in cases]).T
    least = min(cases, key=lambda case: case.coverage)
    over = [case.over_least for case in cases if not np.isnan(case.over_least)]
    most = max(over) if over else np.nan
    shares = coverages.mean(), coverages.min(), (coverages < 0.93).mean()
    numbers = *map(decimal, shares), decimal(widths.mean(), 2), decimal(widths.max(), 2)
    return name, len(cases), *numbers, decimal(most, 2), f"{least.case}; {least.size}"

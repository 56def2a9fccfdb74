"""How often the intervals hold the truth: exact sums and simulations, one row per case.

`PYTHONPATH=tests python -m stats.coverage_grid` writes tables of docs/calibration, with
`--only NAME` some of them; the slow tests run the same grid with fewer samples.
"""

from argparse import ArgumentParser
from dataclasses import dataclass, fields
from functools import partial
from itertools import product

import numpy as np
from scipy import stats

from equipoise import metrics
from equipoise.metrics.labels.effect_sizes import MeanEffect
from equipoise.metrics.labels.shares import Inequality
from equipoise.metrics.labels.table import design_effects
from equipoise.stats import Association, Bootstrap, Permutation
from equipoise.stats.chance import tail
from equipoise.stats.intervals import (
    clopper_pearson,
    scored,
    simultaneous_gap,
    simultaneous_minimum,
    simultaneous_shortfall,
    wilson,
)
from equipoise.stats.streams import stream
from stats.changes_grid import changes_table
from stats.null_worlds import (
    AMPLIFICATION,
    PREDICTED_GROUPS,
    PREDICTED_SHARES,
    REFERENCES,
    worlds_table,
)
from stats.ranking_coverage import blocks_table, widths_table
from tools.calibration.tables import decimal, write

LEVEL = 0.95
SEED = 20


@dataclass(frozen=True)
class Case:
    """Coverage in one situation: `case` names it, and how often the truth lay below and above."""

    kind: str
    case: str
    size: str
    below: float
    above: float
    width: float

    @property
    def coverage(self):
        """How often the interval held the truth."""
        return 1.0 - self.below - self.above


def _rates(n):
    """Rates p with n min(p, 1 - p) >= 1, away from the round ones."""
    edge = max(1.0 / n, 0.001)
    near = np.geomspace(edge, 0.5, 41)
    return np.unique(np.r_[near, 1.0 - near])


def wilson_cases():
    """Exact coverage of Wilson's interval: the sum over all counts."""
    for n in (5, 10, 20, 30, 50, 100, 300, 1000, 10_000):
        counts = np.arange(n + 1)
        low, high = wilson(counts, n, LEVEL)
        for p in _rates(n):
            mass = stats.binom.pmf(counts, n, p)
            below, above = mass[p < low].sum(), mass[p > high].sum()
            yield Case("Wilson", f"p = {p:.3f}", f"n = {n}", below, above, mass @ (high - low))


def newcombe_cases():
    """Exact coverage of Newcombe's interval: the sum over all pairs of counts."""
    for n1, n2 in ((10, 10), (10, 40), (20, 20), (30, 30), (30, 300), (60, 60), (150, 150)):
        a, b = np.arange(n1 + 1)[:, None], np.arange(n2 + 1)[None]
        difference = scored(a, n1, LEVEL).minus(scored(b, n2, LEVEL))
        low, high = difference.low, difference.high
        for p1 in _rates(n1)[::6]:
            for p2 in _rates(n2)[::4]:
                mass = stats.binom.pmf(a, n1, p1) * stats.binom.pmf(b, n2, p2)
                truth = p1 - p2
                yield Case(
                    "Newcombe",
                    f"p = {p1:.3f}, {p2:.3f}",
                    f"n = {n1}, {n2}",
                    mass[truth < low].sum(),
                    mass[truth > high].sum(),
                    (mass * (high - low)).sum(),
                )


PATTERNS = {
    "all equal": np.zeros,
    "one lower": lambda k: np.r_[-1.0, np.zeros(k - 1)],
    "one higher": lambda k: np.r_[1.0, np.zeros(k - 1)],
    "two clusters": lambda k: np.where(np.arange(k) < k / 2, -1.0, 0.0),
    "evenly spread": lambda k: np.linspace(-1.0, 0.0, k),
}
EXTREMES = {
    "max - min": (simultaneous_gap, lambda p, w: p.max() - p.min()),
    "overall - min": (simultaneous_shortfall, lambda p, w: p @ w - p.min()),
    "min": (simultaneous_minimum, lambda p, w: p.min()),
}


def extreme_cases(samples):
    """Simulated coverage of the intervals of extremes over groups."""
    for k in (2, 3, 7, 14):
        shapes = {
            "n = 50 each": np.full(k, 50.0),
            "n = 400 each": np.full(k, 400.0),
            "n = 30 to 1000": np.round(np.geomspace(30.0, 1000.0, k)),
        }
        for shape, sizes in shapes.items():
            for base in (0.5, 0.8, 0.95):
                for pattern, steps in PATTERNS.items():
                    for step in (0.03, 0.1, 0.3):
                        p = base + step * steps(k)
                        if p.max() > 1.0 or (sizes * np.minimum(p, 1.0 - p)).min() < 1.0:
                            continue
                        case = f"{k} groups, p = {base}, {pattern}, step {step}"
                        yield from _extremes(p, sizes, case, shape, samples)
                        if pattern == "all equal":
                            break


def _extremes(p, sizes, case, size, samples):
    rng = stream(SEED, "extremes", case, size)
    counts = rng.binomial(sizes.astype(int), p, size=(samples, len(p)))
    for kind, (interval, statistic) in EXTREMES.items():
        low, high = interval(counts, sizes, LEVEL)
        truth = float(statistic(p, sizes / sizes.sum()))
        yield _case(kind, case, size, truth, low, high)


def clustered_cases(samples):
    """Simulated coverage of extremes over groups with rows repeated by unit."""
    for k in (2, 3, 12):
        for units, size in ((12, 10), (30, 8), (100, 4)):
            for correlation in (0.05, 0.3, 0.8):
                for base in (0.5, 0.8, 0.95):
                    for pattern in ("all equal", "one lower", "evenly spread"):
                        p = base + 0.13 * PATTERNS[pattern](k)
                        case = f"{k} groups, p = {base}, {pattern}, correlation {correlation}"
                        yield from _clustered(p, units, size, correlation, case, samples)


def _clustered(p, units, size, correlation, case, samples):
    rng = stream(SEED, "clustered", case, units, size)
    alpha, beta = (
        p * (1.0 - correlation) / correlation,
        (1.0 - p) * (1.0 - correlation) / correlation,
    )
    unit_rates = rng.beta(alpha, beta, size=(samples, units, len(p)))
    hits = rng.binomial(size, unit_rates)
    successes, n = hits.sum(axis=1), np.full(len(p), float(units * size))
    sums = (hits**2).sum(axis=1), successes * size, n * size
    design = design_effects(successes, n, *sums)
    for kind, (interval, statistic) in EXTREMES.items():
        bounds = (
            interval(successes, np.broadcast_to(n, design.shape), LEVEL, design=design)
            if interval is simultaneous_shortfall
            else interval(successes / design, n / design, LEVEL)
        )
        truth = float(statistic(p, n / n.sum()))
        yield _case(kind, case, f"{units} units of {size}", truth, *bounds)


ACCURACIES = (*product((2, 5), ((60, 1), (400, 1), (400, 4)), (0.0, 0.08, 0.3)),)
"""Groups, their rows and the rows of a unit, and how much less accurate one group is."""


def accuracy_case(groups, sizes, lower, samples):
    """Simulated coverage of the difference in accuracy between groups, for three classes."""
    p, (rows, size), correlation = 0.86 + lower * PATTERNS["one lower"](groups), sizes, 0.3
    case, shape = f"{groups} groups, one lower by {lower:g}", f"{rows} rows in units of {size}"
    rng, place = stream(SEED, "accuracy", case, shape), np.arange(rows * groups)
    group, unit = place // rows, place // size
    alpha = p[group[::size]] * (1.0 - correlation) / correlation
    beta = (1.0 - correlation) / correlation - alpha
    ends = []
    for _ in range(samples):
        share = p[group] if size == 1 else np.repeat(rng.beta(alpha, beta), size)
        truth = rng.integers(0, 3, len(group))
        wrong = (truth + rng.integers(1, 3, len(group))) % 3
        labels = np.where(rng.random(len(group)) < share, truth, wrong)
        estimate = metrics.accuracy_gap(
            truth, labels, group, versus="best", units=unit if size > 1 else None,
            resampling=Permutation(1),
        )  # fmt: skip
        ends.append(estimate.ends(LEVEL))
    return _case("accuracy difference", case, shape, lower, *np.transpose(ends))


def _case(kind, case, size, truth, low, high):
    slack = 1e-9
    return Case(
        kind,
        case,
        size,
        float((truth < low - slack).mean()),
        float((truth > high + slack).mean()),
        float((high - low).mean()),
    )


SHAPES = ((2, 2), (3, 3), (14, 2), (23, 10))
STRENGTHS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9)


def population(rows, columns, v, skew, pattern):
    """Return probabilities with Cramér's V = v; None if the margins forbid it.

    Margins are even, or fall as 1, 1/2, 1/3, ... ("groups", "labels" or "both"). Either each
    group has a label of its own that it is given more often ("all"), or the smallest group
    alone is given the rarest label more often ("one").
    """
    r, c = _margin(rows, skew in ("groups", "both")), _margin(columns, skew in ("labels", "both"))
    if pattern == "all":
        perfect = np.eye(columns)[np.arange(rows) % columns]
    else:
        other_columns = np.r_[c[:-1], 0.0] / c[:-1].sum()
        perfect = np.vstack([np.tile(other_columns, (rows - 1, 1)), np.eye(columns)[-1]])
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2.0
        reached = true_v(r[:, None] * ((1.0 - middle) * c + middle * perfect)) < v
        low, high = (middle, high) if reached else (low, middle)
    table = r[:, None] * ((1.0 - high) * c + high * perfect)
    return table if abs(true_v(table) - v) < 1e-6 else None


def true_v(p):
    """Cramér's V of a table of probabilities."""
    independent = p.sum(axis=1, keepdims=True) * p.sum(axis=0, keepdims=True)
    squares = np.divide(p**2, independent, out=np.zeros_like(p), where=independent > 0)
    return float(np.sqrt(max(squares.sum() - 1.0, 0.0) / (min(p.shape) - 1)))


def _margin(k, skewed):
    weights = 1.0 / np.arange(1, k + 1) if skewed else np.ones(k)
    return np.asarray(weights / weights.sum())


def association_cases(samples, expected=(1.0, np.inf), shapes=SHAPES, strengths=STRENGTHS):
    """Simulated coverage of V for a range of the smallest expected count."""
    for rows, columns in shapes:
        for skew in ("none", "groups", "labels", "both"):
            for pattern in ("all", "one"):
                for n in (50, 100, 500, 3000) if rows * columns < 200 else (500, 3000, 20_000):
                    for v in strengths:
                        p = population(rows, columns, v, skew, pattern)
                        if p is None or (v == 0.0 and pattern == "one"):
                            continue
                        smallest = n * p.sum(axis=1).min() * p.sum(axis=0).min()
                        if not expected[0] <= smallest < expected[1]:
                            continue
                        case = f"V = {v}, skewed: {skew}, differ: {pattern}"
                        yield _association(p, n, v, case, samples)


def _association(p, n, v, case, samples):
    rows, columns = p.shape
    rng = stream(SEED, "association", f"{rows}x{columns}", n, case)
    tables = rng.multinomial(n, p.ravel() / p.sum(), size=samples).reshape(-1, rows, columns)
    low, high = Association.of(tables).interval(level=LEVEL)
    defined = ~np.isnan(low)
    return _case(f"{rows} × {columns}", case, f"n = {n}", v, low[defined], high[defined])


CORRECTED = ((3, 2), (3, 6), (12, 2), (12, 6))


def corrected_table(samples):
    """Return coverage of the bias-corrected V; `wrong` are cases wrongly below the threshold."""
    head = (
        "table", "v", "samples", "coverage", "least_coverage", "wrong", "most_wrong", "width",
    )  # fmt: skip
    rows = []
    for v in (0.1, 0.2, 0.4):
        cases = list(association_cases(samples, shapes=CORRECTED, strengths=(v,)))
        for kind, kind_cases in by_kind(cases).items():
            coverage, above, width = (
                [getattr(case, field) for case in kind_cases]
                for field in ("coverage", "above", "width")
            )
            numbers = np.mean(coverage), min(coverage), np.mean(above), max(above), np.mean(width)
            rows.append((kind, v, samples, *map(decimal, numbers)))
    return head, rows


EFFECTS = {
    "all 0": np.zeros,
    "all 0.1": lambda k: np.full(k, 0.1),
    "all 0.3": lambda k: np.full(k, 0.3),
    "few 0.5, rest 0": lambda k: np.where(np.arange(k) < max(1, k // 10), 0.5, 0.0),
    "0 to 0.4, evenly spread": lambda k: np.round(np.linspace(0.0, 0.4, k), 2),
}
CLASSES = (2, 3, 12, 50, 200)


def mean_cases(samples, classes=CLASSES):
    """Simulated coverage of the mean of V over classes, every expected count at least 1."""
    for k in classes:
        for shape in ((2, 2), (3, 3), (4, 6), (14, 9)):
            for n in (60, 300, 3000):
                for skew, pattern in (("none", "all"), ("both", "one")):
                    for name, effects in EFFECTS.items():
                        association = _classes(k, shape, n, skew, pattern, effects(k), samples)
                        if association is not None:
                            case = f"{k} classes, V {name}, skewed: {skew}, differ: {pattern}"
                            yield _mean(
                                f"{shape[0]} × {shape[1]}", case, n, effects(k), association
                            )


def _classes(k, shape, n, skew, pattern, v, samples):
    """Draw summaries of k tables, shape (k, samples); None with too few cells."""
    parts = []
    for strength, times in zip(*np.unique(v, return_counts=True), strict=True):
        p = population(*shape, float(strength), skew, pattern if strength else "all")
        if p is None or n * p.sum(axis=1).min() * p.sum(axis=0).min() < 1.0:
            return None
        rng = stream(SEED, "mean", k, *shape, n, skew, f"{strength:g}")
        tables = rng.multinomial(n, p.ravel() / p.sum(), size=(times, samples))
        parts.append(Association.of(tables.reshape(times, samples, *shape)))
    return Association.concatenate(parts)


def _mean(shape, case, n, v, association):
    names = [field.name for field in fields(Association)]
    ends = [
        MeanEffect(Association(*(getattr(association, name)[:, index] for name in names)))(LEVEL)
        for index in range(association.n.shape[1])
    ]
    low, high = np.array(ends).T
    return _case(shape, case, f"n = {n}", float(v.mean()), low, high)


SHARES = (0.5, 0.8, 0.95, 0.98, 1.0)


def inequality_cases(samples):
    """Simulated coverage of the inequality of shares, and of its mean over sets of images."""
    for classes in (2, 3):
        for sets in (1, 8, 28):
            for images in (4, 20):
                for favour in ("one", "all") if sets > 1 else ("one",):
                    for share in (*((1 / 3,) if classes > 2 else ()), *SHARES):
                        yield _inequality(classes, sets, images, favour, share, samples)


def _inequality(classes, sets, images, favour, share, samples):
    rng = stream(SEED, "inequality", classes, sets, images, favour, f"{share:.3f}")
    true = np.full((sets, classes), (1.0 - share) / (classes - 1))
    first = np.arange(sets) % classes if favour == "all" else np.zeros(sets, dtype=int)
    true[np.arange(sets), first] = share
    outcome_shares = rng.multinomial(images, true, size=(samples, sets)) / images
    n, back = np.full(sets, float(images)), np.eye(classes)
    ends = [
        Inequality(shares, n, back, None, partial(stream, SEED))(LEVEL) for shares in outcome_shares
    ]
    truth = float(np.abs(true - 1.0 / classes).sum(axis=1).mean())
    case = f"{classes} classes, share {share:.2f}, favoured: {favour}"
    return _case(f"{sets} × {images}", case, "", truth, *np.transpose(ends))


def known_width(case):
    """Mean width of the exact interval where the favoured class of each set is known."""
    sets, images = (int(part) for part in case.kind.split(" × "))
    n, share = sets * images, float(case.case.split("share ")[1][:4])
    share = 1.0 / 3.0 if share == 0.33 else share
    counts = np.arange(n + 1)
    low, high = clopper_pearson(counts, n, LEVEL)
    return float(stats.binom.pmf(counts, n, share) @ (high - low)) * 2.0


def inequality_table(samples):
    """Return coverage of the inequality of shares.

    `ratio` compares the width with that of an exact interval for known favoured classes.
    """
    head = "table", "case", "samples", "truth_below", "truth_above", "coverage", "width", "ratio"
    rows = [
        (
            case.kind,
            case.case,
            samples,
            *map(decimal, (case.below, case.above, case.coverage, case.width)),
            decimal(case.width / known_width(case), 2),
        )
        for case in inequality_cases(samples)
    ]
    return head, rows


def _texts(lean):
    """Eight texts that lean along the axis on which groups differ."""
    texts = 0.3 * stream(SEED, "texts", f"{lean:g}").standard_normal((8, 16))
    texts[:, 1] += lean
    return texts


TOWARDS, AWAY, CONCEPT, OTHER = map(_texts, (1.0, -1.0, 0.6, -0.3))
TEXTS_FIXED = {
    "weat": lambda a, b, **options: metrics.weat(a, b, TOWARDS, AWAY, **options),
    "association_score": lambda a, b, **options: metrics.association_score(
        CONCEPT, a, b, fixed=("targets",), **options
    ),
    "differential_association": lambda a, b, **options: metrics.differential_association(
        CONCEPT, OTHER, a, b, fixed=("c1", "c2"), **options
    ),
    "total_absolute_association": lambda a, b, **options: metrics.total_absolute_association(
        {"one": CONCEPT, "other": OTHER}, a, b, fixed=("one", "other"), **options
    ),
}


def embedding_cases(samples, sizes=(8, 25, 50)):
    """Simulated coverage of associations of two sets of images with given texts."""
    for kind, metric in TEXTS_FIXED.items():
        for gap in (0.0, 0.5, 1.5):
            truth = metric(*_images(f"{gap:g}", 20_000, gap), resampling=None).value
            for n in sizes:
                ends = []
                for sample in range(samples):
                    images = _images(f"{gap:g}, {sample}", n, gap)
                    options = {"resampling": Bootstrap(400, 1, resolution=1.0), "rng": sample}
                    interval = metric(*images, **options).interval(LEVEL)
                    ends.append((interval.low, interval.high))
                yield _case(kind, f"{gap} apart", f"n = {n}", truth, *np.transpose(ends))


def _images(name, n, gap):
    images = 0.3 * stream(SEED, "images", name, n).standard_normal((2, n, 16))
    images[..., 0] += 1.0
    images[..., 1] += 0.15 * gap * np.array([[1.0], [-1.0]])
    return images


def embedding_table(samples):
    """Return coverage of associations of embeddings by size of the sets."""
    return _by_size(embedding_cases(samples), ("n = 8", "n = 25", "n = 50"), samples)


def _by_size(cases, sizes, samples):
    head = "case", "size", "samples", "coverage", "least_coverage", "width"
    rows = []
    for kind, kind_cases in by_kind(list(cases)).items():
        for size in sizes:
            coverage, width = np.transpose([
                (case.coverage, case.width) for case in kind_cases if case.size == size
            ])  # fmt: skip
            numbers = coverage.mean(), coverage.min(), width.mean()
            rows.append((kind, size, samples, *map(decimal, numbers)))
    return head, rows


RARE_LABELS = {
    "3 %, of 2": ((0.97, 0.03), (0.995, 0.8)),
    "5 %, of 2, hard": ((0.95, 0.05), (0.98, 0.5)),
    "3 %, of 3": ((0.6, 0.37, 0.03), (0.9, 0.9, 0.7)),
    "half, of 2": ((0.5, 0.5), (0.9, 0.9)),
}
"""Shares of true labels, and how often a labeller is right about each."""


def agreement_cases(samples):
    """Simulated coverage of Krippendorff's alpha where a label is rare."""
    for name, (shares, right) in RARE_LABELS.items():
        for labellers in (2, 3):
            answers = _labelled(f"{name}, truth", 100_000, shares, right, labellers)
            truth = metrics.krippendorff_alpha(*answers, resampling=None).value
            for n in (60, 150, 400):
                estimates = [
                    metrics.krippendorff_alpha(
                        *_labelled(f"{name}, {sample}", n, shares, right, labellers)
                    )
                    for sample in range(samples)
                ]
                intervals = [e.interval(LEVEL) for e in estimates if e.estimable]
                ends = np.array([(interval.low, interval.high) for interval in intervals]).T
                yield _case(name, f"{labellers} labellers", f"n = {n}", truth, *ends)


def _labelled(name, n, shares, right, labellers):
    """Return answers, images and labellers; a wrong answer is any other label."""
    rng = stream(SEED, "labels", name, labellers, n)
    truth = rng.choice(len(shares), n, p=shares)
    is_right = rng.random((labellers, n)) < np.asarray(right)[truth]
    others = (truth + rng.integers(1, len(shares), (labellers, n))) % len(shares)
    labeller, image = np.divmod(np.arange(labellers * n), n)
    return np.where(is_right, truth, others).ravel(), image, labeller


def agreement_table(samples):
    """Return coverage of Krippendorff's alpha by number of images."""
    return _by_size(agreement_cases(samples), ("n = 60", "n = 150", "n = 400"), samples)


@dataclass(frozen=True)
class Tail:
    """How often the approximate tail gives p <= t when chance alone is at work, as P / t."""

    null: str
    draws: int
    ratios: dict[float, float]


def tail_cases(repeats):
    """Set known null distributions against their tail as 1000 draws tell it."""
    families = {
        "normal": (np.random.Generator.standard_normal, stats.norm.sf),
        **{
            f"largest gap of {k} groups": (partial(_ranges, k), partial(_range_sf, k))
            for k in (3, 14)
        },
        **{f"V, df {df}": (partial(_chi, df), stats.chi(df).sf) for df in (1, 13)},
        **{
            f"chi-squared, df {df}": (partial(_chi_squared, df), stats.chi2(df).sf)
            for df in (1, 13)
        },
    }
    for null, (draw, survival) in families.items():
        rng = stream(SEED, "tail", null)
        ratios = {
            t: float(np.mean([survival(_critical(draw(rng, 1000), t)) for _ in range(repeats)])) / t
            for t in (1e-3, 1e-4, 1e-5, 1e-6)
        }
        yield Tail(null, 1000, ratios)


def _critical(draws, t):
    """Return the smallest value with an approximate tail p-value of at most t."""
    low, high = float(np.median(draws)), float(draws.mean() + 40.0 * draws.std())
    for _ in range(30):
        middle = (low + high) / 2.0
        low, high = (middle, high) if tail(draws, middle).value > t else (low, middle)
    return high


def _chi(df, rng, size):
    return np.sqrt(rng.chisquare(df, size))


def _chi_squared(df, rng, size):
    return rng.chisquare(df, size)


def _ranges(k, rng, size):
    return np.ptp(rng.standard_normal((size, k)), axis=1)


def _range_sf(k, value):
    return float(stats.studentized_range.sf(value, k, np.inf))


SUMMARY = "interval", "cases", "coverage", "least_coverage", "below_93", "least_case"


def summary(cases):
    """Return a row for each kind: mean and least coverage, and the case with the least."""
    rows = []
    for kind, kind_cases in by_kind(list(cases)).items():
        coverage = np.array([case.coverage for case in kind_cases])
        worst = kind_cases[int(coverage.argmin())]
        numbers = coverage.mean(), coverage.min(), (coverage < 0.93).mean()
        rows.append((kind, len(kind_cases), *map(decimal, numbers), f"{worst.case}; {worst.size}"))
    return SUMMARY, rows


def by_kind(cases):
    """Group cases by kind, in order of appearance."""
    kinds = {}
    for case in cases:
        kinds.setdefault(case.kind, []).append(case)
    return kinds


def rates_table(samples):
    """Return coverage for proportions, differences and extremes over groups."""
    return summary([*wilson_cases(), *newcombe_cases(), *extreme_cases(samples)])


def effects_table(samples):
    """Return coverage of Cramér's V; sparse tables have expected counts between 0.1 and 1."""
    head, rows = summary(association_cases(samples))
    _, sparse = summary(association_cases(samples, expected=(0.1, 1.0)))
    return head, [*rows, *((f"{kind}, sparse", *cells) for kind, *cells in sparse)]


def means_table(samples):
    """Return errors, coverage and width of the mean of V by number of classes and pattern."""
    head = (
        "classes", "v", "samples", "truth_below", "truth_above", "coverage", "least_coverage",
        "width",
    )  # fmt: skip
    cases, rows = list(mean_cases(samples)), []
    for k in CLASSES:
        for name in EFFECTS:
            family_cases = [c for c in cases if c.case.startswith(f"{k} classes, V {name}, skewed")]
            below, above, coverage, width = (
                float(np.mean([getattr(c, field) for c in family_cases]))
                for field in ("below", "above", "coverage", "width")
            )
            numbers = below, above, coverage, min(pooled(family_cases).values()), width
            rows.append((k, name, samples, *map(decimal, numbers)))
    return head, rows


def pooled(cases):
    """Return the coverage by kind, over sizes and margins."""
    kinds = by_kind(cases).items()
    return {kind: float(np.mean([c.coverage for c in kind_cases])) for kind, kind_cases in kinds}


def tails_table(repeats):
    """Return P(p <= t) / t of the approximate tail from 1000 draws, when chance alone is at work.

    1 is exact; above 1 there are too many small p-values.
    """
    cases = list(tail_cases(repeats))
    levels = list(cases[0].ratios)
    rows = [(case.null, *(decimal(case.ratios[t], 2) for t in levels)) for case in cases]
    return ("null", *(f"t_{t:g}" for t in levels)), rows


TABLES = {
    "rates": (rates_table, 2000),
    "rates-of-units": (lambda samples: summary(clustered_cases(samples)), 1000),
    "accuracy-differences": (
        lambda samples: summary(accuracy_case(*case, samples) for case in ACCURACIES),
        500,
    ),
    "changes": (changes_table, 2000),
    "effect-sizes": (effects_table, 1000),
    "corrected-effect-sizes": (corrected_table, 400),
    "mean-effect-sizes": (means_table, 50),
    "inequality": (inequality_table, 200),
    "associations": (embedding_table, 1000),
    "ranking-widths": (widths_table, 200),
    "ranking-blocks": (blocks_table, 400),
    "amplification": (partial(worlds_table, AMPLIFICATION), 200),
    "references": (partial(worlds_table, REFERENCES), 200),
    "predicted-groups": (partial(worlds_table, PREDICTED_GROUPS), 200),
    "predicted-shares": (partial(worlds_table, PREDICTED_SHARES), 200),
    "agreement": (agreement_table, 500),
    "tails": (tails_table, 200),
}
"""Functions of the tables by name, and the samples of each case."""


if __name__ == "__main__":
    parser = ArgumentParser(description="Measure coverage and write tables of docs/calibration.")
    parser.add_argument("--only", nargs="+", choices=TABLES, metavar="NAME", default=[*TABLES])
    for name in parser.parse_args().only:
        table, samples = TABLES[name]
        write(name, *table(samples))

"""Worlds whose truth is planted: how often a test rejects, and how often an interval holds it.

Each world draws an estimate from a seed. Tables of docs/calibration and the slow tests share them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from equipoise import audits
from equipoise import metrics as m
from equipoise.core import Aggregate, Estimate, Finding
from equipoise.stats import Bootstrap
from tools.calibration.tables import decimal

FEW = Bootstrap(400, 200)


@dataclass(frozen=True)
class World:
    """An estimate with a planted truth."""

    name: str
    truth: float
    draw: Callable[[np.random.Generator, int], Estimate | Finding]


class Measured(NamedTuple):
    """What a world shows: shares of samples, and means."""

    name: str
    truth: float
    rejected: float
    covered: float
    value: float
    corrected: float


def ends_of(number):
    """Return the interval of an estimate or a finding."""
    if isinstance(number, Finding):
        return number.ci_low, number.ci_high
    interval = number.interval()
    return interval.low, interval.high


def measure(world, samples):
    """Draw a world and return what it shows."""
    rows = []
    for seed in range(samples):
        estimate = world.draw(np.random.default_rng([seed, len(world.name)]), seed)
        low, high = ends_of(estimate)
        covers = low - 1e-12 <= world.truth <= high + 1e-12
        rows.append((estimate.p_value <= 0.05, covers, estimate.value, estimate.corrected))
    return Measured(world.name, world.truth, *np.mean(rows, axis=0).tolist())


def worlds_table(worlds, samples):
    """Return how often the test of each world rejects, and how often its interval covers."""
    head = "world", "truth", "samples", "rejected", "coverage", "mean_value", "mean_corrected"
    rows = []
    for world in worlds:
        row = measure(world, samples)
        numbers = row.rejected, row.covered, row.value, row.corrected
        rows.append((row.name, decimal(row.truth), samples, *map(decimal, numbers)))
    return head, rows


def _images(rng, n, leans, prevalence=0.2):
    """Return labels of images and their groups: x has each label more often by its lean."""
    of_first = rng.random(n) < 0.5
    shares = prevalence * np.where(of_first[:, None], 1 + leans, 1 - leans)
    return rng.random((n, len(leans))) < shares, np.where(of_first, "x", "y")


def _samples(before, after, n=(500, 500), prevalence=0.2):
    """Return a world of training images and predictions on other images."""

    def draw(rng, seed):
        training, predicted = (
            m.Cooccurrence.of(*_images(rng, size, leans, prevalence), names=None)
            for size, leans in zip(n, (before, after), strict=True)
        )
        return m.cooccurrence_amplification(training, predicted, resampling=FEW, rng=seed)

    return draw


def _same_images(rng, seed):
    """Predict the labels of images of the same kind: labels and predictions are exchangeable."""
    truth, groups = _images(rng, 500, np.zeros(8))
    redrawn = _images(rng, 500, np.zeros(8))[0]
    predicted = np.where(rng.random(truth.shape) < 0.5, truth, redrawn)
    return m.cooccurrence_amplification(
        m.Cooccurrence.of(truth, groups),
        m.Cooccurrence.of(predicted, groups),
        paired=True,
        resampling=FEW,
        rng=seed,
    )


def _directional(leans, added, direction="attribute_to_task"):
    """Return a world whose predictions redraw half of the labels, with a lean of their own."""

    def draw(rng, seed):
        truth, groups = _images(rng, 500, leans)
        first = (groups == "x")[:, None]
        shares = 0.2 * np.where(first, 1 + leans + added, 1 - leans - added)
        redrawn = rng.random(truth.shape) < shares
        predicted = np.where(rng.random(truth.shape) < 0.5, truth, redrawn)
        attributes = groups[:, None] == np.array(["x", "y"])
        return m.directional_amplification(
            attributes, truth, predicted, direction=direction, resampling=FEW, rng=seed
        )

    return draw


EVEN, LEANING = np.zeros(8), np.full(8, 0.3)
AMPLIFICATION = [
    World("two samples of even labels", 0.0, _samples(EVEN, EVEN)),
    World("two samples, a small one of predictions", 0.0, _samples(EVEN, EVEN, (800, 200))),
    World("two samples of labels that lean a little", 0.0, _samples(EVEN + 0.1, EVEN + 0.1)),
    World("two samples of labels that lean", 0.0, _samples(LEANING, LEANING)),
    World("labels and predictions of the same images", 0.0, _same_images),
    World("directional, even labels", 0.0, _directional(EVEN, EVEN)),
    World("directional, labels that lean", 0.0, _directional(LEANING, EVEN)),
    World("planted: predictions lean by 0.5, not 0.3", 0.1, _samples(LEANING, LEANING + 0.2)),
    World("planted: predictions lean by 0.2, not 0.4", -0.1, _samples(EVEN + 0.4, EVEN + 0.2)),
    World(
        "directional, planted: half lean by 0.5, not 0.3", 0.02, _directional(LEANING, EVEN + 0.2)
    ),
]


def _references(counted, kind, shares=(0.7, 0.3), images=2000):
    """Return a world of images held against people who were counted in the same population."""

    def draw(rng, seed):
        groups = np.where(rng.random(images) < shares[0], "x", "y")
        reference = rng.multinomial(counted, (0.7, 0.3))
        return m.representation_gap(
            groups,
            dict(zip("xy", reference.tolist(), strict=True)),
            kind=kind,
            resampling=FEW,
            rng=seed,
        )

    return draw


def _outside(counted, shares=(0.7, 0.3), images=400, labelled=200):
    """Return a world of a classifier's labels held against people who were counted."""

    def draw(rng, seed):
        rates = np.array([[0.95, 0.05], [0.05, 0.95]])
        confusion = m.Confusion(
            ("x", "y"), ("x", "y"), np.stack([rng.multinomial(labelled, row) for row in rates])
        )
        predicted = np.repeat(["x", "y"], rng.multinomial(images, np.array(shares) @ rates))
        outside = dict(zip("xy", rng.multinomial(counted, (0.7, 0.3)).tolist(), strict=True))
        corrected = m.corrected_shares(predicted, confusion, resampling=FEW, rng=seed)
        return m.share_gap(corrected, outside)

    return draw


REFERENCES = [
    World("representation, 300 people counted", 0.0, _references(300, "sample")),
    World("representation, 300 people, no statement", 0.0, _references(300, None)),
    World("planted: 80 % of images, 70 % of 300 people", 0.1, _references(300, None, (0.8, 0.2))),
    World("outside shares, 300 people counted", 0.0, _outside(300)),
    World("planted: 85 % of images, 70 % of 300 people", 0.15, _outside(300, (0.85, 0.15))),
]


def predicted_groups(rng, gap, n=2000, labelled=300, error=0.1, share=0.1):
    """Return rows of which a model right in 90 % predicts the group; "b" has less accuracy."""
    group = np.where(rng.random(n) < share, "b", "a")
    target = rng.choice(["x", "y"], n)
    right = rng.random(n) < np.where(group == "b", 0.9 - gap, 0.9)
    other = np.where(group == "a", "b", "a")
    return pl.DataFrame({
        "id": [f"i{place}" for place in range(n)],
        "target": target,
        "prediction": np.where(right, target, np.where(target == "x", "y", "x")),
        "gender_pred": np.where(rng.random(n) < error, other, group),
        "gender": [name if place < labelled else None for place, name in enumerate(group)],
    })  # fmt: skip


def audit_predicted_groups(rows, **sources):
    """Audit the accuracy of rows by predicted groups."""
    off = {"demographic_parity", "equalized_odds", "rates", "effect_sizes", "skewsize"}
    config = {
        "audit": "predictions",
        "data": {"table": rows, "id": "id", "target": "target", "groups": ["gender_pred"]},
        "models": {"model": {"table": rows, "prediction": "prediction"}},
        "metrics": dict.fromkeys(off, False),
        "resampling": {"permutations": 200, "replicates": 100},
        "group_sources": {"gender_pred": {"source": "machine", **sources}},
    }
    return audits.run(audits.parse_config(config))


def accuracy_gap(result):
    """Return the finding of the accuracy of all rows less that of the worst group."""
    return next(
        finding
        for finding in result.findings
        if (finding.metric, finding.aggregate) == ("accuracy", Aggregate.DIFFERENCE)
    )


def _predicted(gap, **options):
    """Return a world whose group a model predicts, with 10 % errors."""

    def draw(rng, seed):
        rows = predicted_groups(rng, gap, **options)
        return accuracy_gap(
            audit_predicted_groups(rows, labelled={"table": rows, "true": "gender"})
        )

    return draw


PREDICTED_GROUPS = [
    World("no gap", 0.0, _predicted(0.0)),
    World("planted: 20 points, a group of 10 %", 0.18, _predicted(0.2)),
    World("planted: 30 points, a group of 10 %", 0.27, _predicted(0.3)),
    World("planted: 10 points, groups of 50 %", 0.05, _predicted(0.1, share=0.5)),
    World("planted: 20 points, 150 labelled rows", 0.14, _predicted(0.2, labelled=150, share=0.3)),
]


def _corrected_shares(shares, reference, labelled=300, error=0.1, images=2000):
    """Return a world of images whose groups a classifier predicts, held against a population."""
    names, n = tuple("abcdefghijklmn"[: len(shares)]), len(shares)
    rates = np.full((n, n), error / (n - 1))
    np.fill_diagonal(rates, 1 - error)

    def draw(rng, seed):
        of_groups = np.maximum(rng.multinomial(labelled, shares), 10)
        counts = [rng.multinomial(size, row) for size, row in zip(of_groups, rates, strict=True)]
        confusion = {
            true: dict(zip(names, row.tolist(), strict=True))
            for true, row in zip(names, counts, strict=True)
        }
        predicted = np.repeat(names, rng.multinomial(images, np.array(shares) @ rates))
        config = {
            "audit": "dataset",
            "data": {
                "images": {
                    "table": pl.DataFrame({"id": range(images), "group": predicted}),
                    "id": "id",
                },
                "groups": ["group"],
            },
            "reference": {"shares": {"group": dict(zip(names, reference, strict=True))}},
            "resampling": {"permutations": 400},
            "group_sources": {"group": {"source": "machine", "confusion": confusion}},
        }
        findings = audits.run(audits.parse_config(config)).findings
        return next(f for f in findings if f.metric == "representation_gap")

    return draw


PREDICTED_SHARES = [
    World(
        "shares: a group of 10 %, as in the population",
        0.0,
        _corrected_shares((0.9, 0.1), (0.9, 0.1)),
    ),
    World(
        "shares: groups of 50 %, as in the population",
        0.0,
        _corrected_shares((0.5, 0.5), (0.5, 0.5)),
    ),
    World(
        "shares: 14 groups, as in the population",
        0.0,
        _corrected_shares((1 / 14,) * 14, (1 / 14,) * 14, 1400),
    ),
    World("planted: 10 %, not 20 %", 0.1, _corrected_shares((0.9, 0.1), (0.8, 0.2))),
    World("planted: 50 %, not 30 %", 0.2, _corrected_shares((0.5, 0.5), (0.7, 0.3))),
    World(
        "planted: 10 % of three groups, not 20 %",
        0.1,
        _corrected_shares((0.5, 0.4, 0.1), (0.5, 0.3, 0.2)),
    ),
]

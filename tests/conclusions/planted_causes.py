"""Worlds of predictions with up to three planted causes, and what an audit makes of them."""

import math
from itertools import product
from typing import NamedTuple

import numpy as np

from conclusions.worlds import Rows
from equipoise import audits

SIZES = (600, 2400)
LEVELS = {"gender": (2, 3), "origin": (2, 4)}
"""Fewest and most levels of each attribute."""
LEAST_ROWS = 60


class Cause(NamedTuple):
    """A group within a true class, whose rows are right less often."""

    attribute: str
    group: str
    label: str

    @property
    def cell(self):
        return {self.attribute: self.group, "truth": self.label}


class World(NamedTuple):
    """A config of an audit and the causes that were planted in its rows."""

    config: dict
    causes: tuple[Cause, ...]


def _uneven(rng, names, n):
    return rng.choice(names, n, p=rng.dirichlet(np.full(len(names), 20)))


def world(seed, k, n):
    """Plant causes in cells of different classes, of sixty rows or the largest at this size.

    Attributes, classes and the level of the model differ by seed. Mistakes go to any other class,
    or all to the next one.
    """
    rng = np.random.default_rng([seed, k, n])
    classes = [f"class {c}" for c in range(rng.integers(k + 1, 5))]
    attributes = {
        name: _uneven(rng, [f"{name} {level}" for level in range(rng.integers(least, most + 1))], n)
        for name, (least, most) in LEVELS.items()
    }
    rows = Rows(int(rng.integers(2**31)), attributes, classes, _uneven(rng, classes, n))
    right = rng.uniform(0.85, 0.95)
    causes, shares = [], []
    for label in rng.permutation(classes)[:k].tolist():
        cells = {
            cause: rows.where(**cause.cell).sum()
            for name, values in attributes.items()
            for group in sorted({*values.tolist()})
            for cause in [Cause(name, group, label)]
        }
        large = [cause for cause, size in cells.items() if size >= LEAST_ROWS]
        large = large or [max(cells, key=cells.get)]
        cause = large[int(rng.integers(len(large)))]
        # Eight standard errors, so that the cause is beyond doubt, and at most 60 points.
        drop = 8 * math.sqrt(0.25 / rows.where(**cause.cell).sum())
        causes.append(cause)
        shares.append((cause.cell, right - min(max(drop, 0.25), 0.6)))
    predicted = rows.predicted(right, shares, to_next=bool(rng.integers(2)))
    names = [*attributes]
    return World(rows.config(predicted, [*names, names]), tuple(causes))


def disparities(config):
    """Return the disparities that an audit of a config concludes."""
    result = audits.run(audits.parse_config(config))
    return [conclusion for conclusion in result.conclusions if conclusion.verdict == "disparity"]


def names(conclusion, cause):
    """Whether a conclusion says that the rows of a cause are worse off than others."""
    same = conclusion.groups, conclusion.group, conclusion.subject
    return same == (cause.attribute, cause.group, cause.label)


def outcome(world):
    """Return whether each cause has a conclusion of its own, and how many conclusions there are."""
    found = disparities(world.config)
    return all(any(names(each, cause) for each in found) for cause in world.causes), len(found)


def scan(ks=(1, 2, 3), sizes=SIZES, seeds=range(20)):
    """Yield k, rows and seed with the outcome of each world."""
    for k, n, seed in product(ks, sizes, seeds):
        yield k, n, seed, *outcome(world(seed, k, n))

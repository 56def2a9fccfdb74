"""Worlds without bias: groups are exchangeable, over all rows or within the true class."""

import numpy as np


def group_of(rng, n):
    """Draw groups of four sizes."""
    return rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])


def _answers(rng, truth, right):
    """Answer right with a given probability, otherwise more often with the next class."""
    wrong = (truth + rng.choice([1, 2], len(truth), p=[0.7, 0.3])) % 3
    return np.where(rng.random(len(truth)) < right, truth, wrong)


def independent(rng, n=240):
    """240 rows; class, answer and group are independent."""
    truth = rng.integers(0, 3, n)
    label = _answers(rng, truth, np.full(n, 0.8))
    return {"truth": truth, "label": label, "group": group_of(rng, n)}


def few(rng):
    """60 rows, of which the smallest group has about 6."""
    return independent(rng, 60)


def imbalanced(rng):
    """300 rows; groups differ in their classes and classes in their difficulty, nothing else."""
    truth = rng.choice(3, 300, p=[0.6, 0.3, 0.1])
    group = (group_of(rng, 300) + (rng.random(300) < 0.6) * truth) % 4
    return {"truth": truth, "label": _answers(rng, truth, 0.95 - 0.2 * truth), "group": group}


def _units(rng, size):
    return np.repeat(np.arange(60), size(60))


def clustered(rng):
    """60 units of 1 to 8 rows of one group and one class each, right or wrong mostly together."""
    unit = _units(rng, lambda n: rng.integers(1, 9, n))
    truth = rng.integers(0, 3, 60)[unit]
    right = rng.beta(1.6, 0.4, 60)[unit]
    label = _answers(rng, truth, right)
    return {"truth": truth, "label": label, "group": group_of(rng, 60)[unit], "unit": unit}


def spanning(rng):
    """60 units of one group with two rows of each class, right or wrong mostly together."""
    unit = _units(rng, lambda n: np.full(n, 6))
    truth = np.tile([0, 0, 1, 1, 2, 2], 60)
    label = _answers(rng, truth, rng.beta(1.6, 0.4, 60)[unit])
    return {"truth": truth, "label": label, "group": group_of(rng, 60)[unit], "unit": unit}


def scattered(rng):
    """60 units of one group, 1 to 8 rows of any class, classes more or less common by group."""
    unit = _units(rng, lambda n: rng.integers(1, 9, n))
    home = rng.choice(3, 60, p=[0.6, 0.3, 0.1])
    truth = np.where(rng.random(len(unit)) < 0.6, home[unit], rng.integers(0, 3, len(unit)))
    group = (group_of(rng, 60) + (rng.random(60) < 0.5) * home) % 4
    label = _answers(rng, truth, rng.beta(1.6, 0.4, 60)[unit])
    return {"truth": truth, "label": label, "group": group[unit], "unit": unit}


def mixed(rng):
    """60 units of 2 to 6 rows whose groups differ within the unit."""
    unit = _units(rng, lambda n: rng.integers(2, 7, n))
    truth = rng.integers(0, 3, 60)[unit]
    label = _answers(rng, truth, rng.beta(1.6, 0.4, 60)[unit])
    return {"truth": truth, "label": label, "group": group_of(rng, len(unit)), "unit": unit}


# Worlds with the null hypotheses that hold in them.
WORLDS = {
    independent: ("rows", "class"),
    few: ("rows", "class"),
    imbalanced: ("class",),
    clustered: ("rows", "class"),
    spanning: ("rows", "class"),
    scattered: ("class",),
    mixed: ("rows", "class"),
}

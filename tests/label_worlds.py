"""Worlds with machine labels on all images, human labels on a sample, and a known truth."""

import numpy as np

from equipoise import metrics as m
from equipoise.metrics.labels.sampled import SampledCells


class World:
    """Images of groups whose machine labels err at rates of their own.

    Parameters
    ----------
    groups : mapping of str to (n, share of true labels, miss rate, false alarm rate)
    """

    def __init__(self, groups, seed=0):
        rng = np.random.default_rng(seed)
        sizes = [row[0] for row in groups.values()]
        self.group = np.repeat([*groups], sizes)
        share, miss, alarm = (
            np.repeat(column, sizes) for column in np.array([*groups.values()]).T[1:]
        )
        self.truth = rng.random(len(self.group)) < share
        wrong = rng.random(len(self.group)) < np.where(self.truth, miss, alarm)
        self.machine = self.truth ^ wrong

    def share(self, group):
        return self.truth[self.group == group].mean()

    def recall(self, group):
        return self.machine[self.truth & (self.group == group)].mean()

    def answers(self, cells, counts, rng):
        """Human labels of a random sample of each cell; NaN elsewhere."""
        answers = np.full(len(self.group), np.nan)
        for cell, n in enumerate(counts):
            chosen = rng.choice(np.flatnonzero(cells.code == cell), n, replace=False)
            answers[chosen] = self.truth[chosen]
        return answers


def nobody(world):
    return np.full(len(world.group), np.nan)


def shares(world, answers, strata):
    return m.labelled_share_gap(answers, strata, world.group)


def recalls(world, answers, strata):
    outcome = np.where(np.isnan(answers), np.nan, world.machine)
    return m.labelled_share_gap(outcome, strata, world.group, condition=answers)


def coverage(groups, size, runs, *, estimate=shares, truth=World.share, labels_alone=False):
    """Return how often intervals cover the truth of each group and of the gap of two.

    Also return the mean widths of the intervals.
    """
    covered, widths = [], []
    for run in range(runs):
        world, rng = World(groups, seed=run), np.random.default_rng(run)
        strata = np.zeros(len(world.group)) if labels_alone else world.machine
        cells = SampledCells.of(nobody(world), strata, world.group)
        answers = world.answers(cells, cells.allocate(size), rng)
        estimated = estimate(world, answers, strata)
        interval = estimated.interval()
        ends = [(group_value.low, group_value.high) for group_value in estimated.parts[0].by_group]
        low, high = np.array([*ends, (interval.low, interval.high)]).T
        truths = [truth(world, group) for group in groups]
        truths = np.array([*truths, abs(truths[0] - truths[1])])
        covered.append((low <= truths + 1e-12) & (truths <= high + 1e-12))
        widths.append(high - low)
    return np.mean(covered, axis=0), np.mean(widths, axis=0)

"""Worlds with machine labels on all images, human labels on a sample, and a known truth."""

import numpy as np


class World:
    """Images of groups whose machine labels err at rates of their own.

    Parameters
    ----------
    groups : mapping of str to (n, share of true labels, miss rate, false alarm rate)
    """

    def __init__(self, groups, seed=0):
        rng = np.random.default_rng(seed)
        self.group = np.repeat([*groups], [one[0] for one in groups.values()])
        spread = [np.repeat(each, [one[0] for one in groups.values()])
                  for each in np.array([one[1:] for one in groups.values()]).T]  # fmt: skip
        self.truth = rng.random(len(self.group)) < spread[0]
        wrong = rng.random(len(self.group)) < np.where(self.truth, spread[1], spread[2])
        self.machine = self.truth ^ wrong

    def share(self, group):
        return self.truth[self.group == group].mean()

    def answers(self, cells, many, rng):
        """Human labels of a random sample of each cell; NaN elsewhere."""
        found = np.full(len(self.group), np.nan)
        for cell, n in enumerate(many):
            chosen = rng.choice(np.flatnonzero(cells.code == cell), n, replace=False)
            found[chosen] = self.truth[chosen]
        return found


def nobody(world):
    return np.full(len(world.group), np.nan)


def coverage(world, size, runs, estimate, truths, cells, seed=1):
    """Share of runs whose intervals hold each truth, and their mean widths."""
    rng, many = np.random.default_rng(seed), cells.allocate(size)
    ends = np.array([estimate(world.answers(cells, many, rng)) for _ in range(runs)])
    held = (ends[..., 0] <= truths) & (truths <= ends[..., 1])
    return held.mean(axis=0), (ends[..., 1] - ends[..., 0]).mean(axis=0)


def by_group(found):
    """Ends of every group's share, then of the gap."""
    rows = [(one.low, one.high) for one in found.parts[0].by_group]
    interval = found.interval()
    return [*rows, (interval.low, interval.high)]

"""W2: WEAT's effect size, its p-value from random partitions, and its exact p-value.

Peers, written after what they do: wefe's loop over pairs of words (`WEAT._calc_s` and
`_calc_effect_size`); iEAT's loop over random partitions (`weat.test.Test.p`, which numbers the
targets anew for each, shuffles, and sums the first half); itertools.combinations for exact
p-values; and numpy without a loop, which is quicker.
"""

import math
from functools import partial
from itertools import combinations

import numpy as np

from benchmarks import harness
from benchmarks.harness import (
    Row,
    compared,
    peak_mb,
    quick,
    read_seconds,
    seconds,
    sizes,
    timed,
)
from equipoise.metrics import weat
from equipoise.metrics.vectors.resampling import exchange
from equipoise.stats import Permutation
from equipoise.stats.chance import band

D, ATTRIBUTES = 300, 8
WEFE, MATRIX = "wefe's loop over pairs", "numpy, matrix of cosines"
IEAT, PERMUTED = "iEAT's loop", "numpy, Generator.permuted"
COMBINATIONS = "itertools.combinations"
SWAPS = "a nanosecond a swap of a Fisher-Yates shuffle of one set, on one core"
CACHED = "the vectors read once from memory"
READ = "a nanosecond a partition, on one core"
HALVES = "a nanosecond for each of 2 × 2^20 sums of a half, on one core"


def vectors(targets, attributes, *, shift=0.3):
    """Two sets of targets that lean to two sets of attributes."""
    rng = np.random.default_rng(targets)
    x, y, a, b = (rng.standard_normal((n, D)) for n in (targets, targets, attributes, attributes))
    for rows, sign in ((x, 1.0), (y, -1.0), (a, 1.0), (b, -1.0)):
        rows[:, 0] += sign * shift
    return x, y, a, b


def cosine(u, v):
    """Cosine of two vectors, as wefe computes it."""
    return float(np.dot(u, v) / (np.linalg.norm(u) * np.linalg.norm(v)))


def wefe(x, y, a, b):
    """Effect size, pair by pair: (mean s(x) - mean s(y)) / std over both (ddof 0)."""

    def s(w):
        return float(
            np.mean([cosine(w, vector) for vector in a]) - np.mean([cosine(w, o) for o in b])
        )

    first, second = [s(w) for w in x], [s(w) for w in y]
    return float((np.mean(first) - np.mean(second)) / np.std(first + second))


def scores(x, y, a, b):
    """Return s of every target from a matrix of cosines."""
    unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (x, y, a, b)]
    targets = np.concatenate(unit[:2])
    return np.asarray((targets @ unit[2].T).mean(axis=1) - (targets @ unit[3].T).mean(axis=1))


def matrix(x, y, a, b):
    """Effect size from a matrix of cosines."""
    s = scores(x, y, a, b)
    return float((s[: len(x)].mean() - s[len(x) :].mean()) / s.std())


def ieat(four, draws):
    """P-value from a loop that shuffles indices and sums the first half."""
    s, n = scores(*four), len(four[0])
    observed = s[np.arange(n)].sum()
    above, total = 1, 1
    np.random.seed(0)  # noqa: NPY002 - what iEAT draws from
    for _ in range(draws - 1):
        order = np.arange(2 * n)
        np.random.shuffle(order)  # noqa: NPY002
        half = order[:n]
        assert 2 * len(half) == len(order)  # noqa: S101 - it checks this each time
        statistic = s[half].sum()
        if statistic > observed or statistic == observed:
            above += 1
        total += 1
    return above / total


def permuted(four, draws):
    """P-value from rows of scores, permuted many at a time."""
    s, n = scores(*four), len(four[0])
    observed, above = s[:n].sum(), 1
    rng = np.random.default_rng(0)
    for start in range(0, draws, 1000):
        shuffled = np.tile(s, (min(1000, draws - start), 1))
        above += int((rng.permuted(shuffled, axis=1)[:, :n].sum(axis=1) >= observed).sum())
    return above / (draws + 1)


def enumerated(four):
    """Exact p-value from all partitions; a tie is as far as 1e-12 of the sum apart."""
    s, n = scores(*four), len(four[0])
    least = s[:n].sum() - 1e-12 * np.abs(s).sum()
    above = sum(s[list(chosen)].sum() >= least for chosen in combinations(range(2 * n), n))
    return float(above) / math.comb(2 * n, n)


def effect_sizes():
    """Yield the effect size for more and more pairs."""
    check = partial(np.testing.assert_allclose, rtol=1e-10, err_msg="the effect size differs")
    for targets, attributes, goal in sizes((25, 125, None), (50, 250, 200.0), (100, 500, None)):
        four = vectors(targets, attributes)
        peers = ((WEFE, partial(wefe, *four), goal), (MATRIX, partial(matrix, *four), None))
        yield from compared(
            lambda: weat(*four, ddof=0, resampling=None).value,  # noqa: B023 - called at once
            peers, check, repeats=3, workload="W2", what="effect size",
            size=f"{2 * targets} targets, {2 * attributes} attributes, d = {D}",
            limit_seconds=read_seconds(8.0 * D * 2 * (targets + attributes)), limit=CACHED,
            n=4 * targets * attributes,
        )  # fmt: skip


def near(ours, peer, draws):
    """Stop when two p-values lie further apart than chance puts them."""
    assert ours is not None, "no p-value"  # noqa: S101
    spread = math.sqrt(max(ours * (1.0 - ours), 1.0 / draws) * 2.0 / draws)
    assert abs(ours - peer) < 6.0 * spread, f"p-values differ: {ours} and {peer}"  # noqa: S101


def enumeration(four):
    """Say what the exact p-value and the chance level take alone, which no peer gives."""
    s, n = scores(*four)[:, None], len(four[0])

    def partitions():
        null = exchange(s[:n], s[n:], Permutation(10_000), 0, "targets").null
        band(null[:, 0])

    return (
        f"ours enumerates all 12,870 partitions and sorts them: {seconds(timed(partitions))} of it"
    )


def p_value(four, *draws):
    """One-sided p-value of equipoise, as peers count it."""
    return weat(*four, alternative="greater", resampling=Permutation(*draws)).p_value


def sampled():
    """Yield effect size and p from 10,000 partitions: with 8 a side, all 12,870 of them."""
    draws = 10_000
    for n, goal in sizes((8, 100.0), (50, None), (500, 20.0)):
        four = vectors(n, ATTRIBUTES, shift=0.1)
        peers = ((IEAT, ieat, goal), (PERMUTED, permuted, None))
        yield from compared(
            partial(p_value, four, draws),
            [(name, partial(call, four, draws), least) for name, call, least in peers],
            partial(near, draws=draws), repeats=3, workload="W2", what="p-value",
            size=f"{n} a side, {draws:,} permutations", limit_seconds=n * draws * 1e-9,
            limit=SWAPS, note=enumeration(four) if n == 8 else "", n=n,
        )  # fmt: skip


def many():
    """Yield growth with the permutations, to a million with 500 targets a side."""
    four = vectors(500, ATTRIBUTES, shift=0.05)
    for draws in sizes(10_000, 100_000, 1_000_000):
        ours = partial(p_value, four, draws)
        ours()
        part = min(draws, 10_000)
        mine = timed(ours, repeats=3)
        theirs = timed(partial(permuted, four, part), repeats=3) * draws / part
        note = f"extrapolated from {part:,} permutations" if part < draws else ""
        size = f"500 a side, {draws:,} permutations"
        limit, memory = 500 * draws * 1e-9, peak_mb(ours)
        label = "p-value, more permutations"
        yield Row(
            "W2", label, size, PERMUTED, theirs, mine, None, limit, SWAPS, memory, note, draws
        )


def exact():
    """Yield exact p-values: all partitions counted, one by one or in two halves."""
    for n in sizes(6, 8, 9):
        four, total = vectors(n, ATTRIBUTES), math.comb(2 * n, n)
        (row,) = compared(
            partial(p_value, four), [(COMBINATIONS, partial(enumerated, four), None)],
            np.testing.assert_equal, repeats=3, memory=False, workload="W2", what="exact p-value",
            size=f"{n} + {n} targets, {total:,} partitions", limit_seconds=total * 1e-9,
            limit=READ, n=total,
        )  # fmt: skip
        yield row
        seconds_each = row.peer_seconds / total
    if not quick():
        yield halves(seconds_each)


def halves(seconds_each):
    """Return the exact p-value of 20 + 20 targets, at the peer's time for each partition."""
    ours = partial(p_value, vectors(20, ATTRIBUTES, shift=0.1))
    total = math.comb(40, 20)
    size, label = f"20 + 20 targets, {total:,} partitions", "exact p-value, in two halves"
    note, theirs = "extrapolated from 9 + 9 targets", seconds_each * total
    limit, memory = 2 * 2**20 * 1e-9, peak_mb(ours)
    return Row(
        "W2", label, size, COMBINATIONS, theirs, timed(ours), None, limit, HALVES, memory, note
    )


def rows():
    """Yield the rows of the table."""
    yield from effect_sizes()
    yield from sampled()
    yield from many()
    yield from exact()


if __name__ == "__main__":
    harness.main(rows)

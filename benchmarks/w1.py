"""W1: mean distances within and between sets of embeddings (ISS).

Peers: scikit-learn's cosine_distances, which makes every pair; numpy's way in linear time, from
unit vectors in float64; and, for the chance level, one matrix product of indicators with these.
"""

from functools import partial
from itertools import combinations

import numpy as np
from sklearn.metrics.pairwise import cosine_distances

from benchmarks import harness
from benchmarks.harness import compared, read_seconds, sizes, unit
from equipoise.metrics import iss_cross, iss_intra
from equipoise.stats import Permutation
from equipoise.stats.streams import keys, shuffle

D, SETS, PERMUTATIONS = 512, 9, 1_000
SKLEARN, NUMPY = "scikit-learn cosine_distances", "numpy, unit vectors in float64"
LIMIT = "the embeddings read once from memory"
TWICE = "the embeddings read twice from memory"
PRODUCT = "numpy, indicators times unit vectors"
ADDS = "an addition of 8 numbers a nanosecond, on each of 2 cores"


def embeddings(n):
    """Rows of which none is of length 1, and whose mean is not 0."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, D), dtype=np.float32) + np.float32(0.1)


def split(rows):
    """Cut rows into nine sets of one size."""
    n = len(rows) // SETS
    return [rows[n * index : n * (index + 1)] for index in range(SETS)]


def all_pairs(rows):
    """Mean of all distances but those of images to themselves."""
    n = len(rows)
    return float(cosine_distances(rows).sum(dtype=np.float64) / (n * (n - 1.0)))


def all_pairs_between(sets):
    """Mean over pairs of sets of the mean of all distances."""
    means = [cosine_distances(a, b).mean(dtype=np.float64) for a, b in combinations(sets, 2)]
    return float(np.mean(means))


def linear(rows):
    """Mean distance from the sum of unit vectors."""
    total, n = unit(rows).sum(axis=0), len(rows)
    return float(1.0 - (total @ total - n) / (n * (n - 1.0)))


def linear_between(sets):
    """Mean over pairs of sets from their mean unit vectors."""
    means = np.stack([unit(rows).mean(axis=0) for rows in sets])
    return float(1.0 - (means @ means.T)[np.triu_indices(len(sets), 1)].mean())


def products(sets, seed):
    """ISS cross of exchanged images: the same exchanges, summed by a matrix product."""
    rows = np.concatenate([unit(vectors) for vectors in sets])
    owner = np.repeat(np.arange(SETS, dtype=np.uint32), [len(vectors) for vectors in sets])
    batches = []
    for streams in np.split(keys(seed, "exchange", n_streams=PERMUTATIONS), PERMUTATIONS // 20):
        labels = np.tile(owner, (len(streams), 1))
        shuffle(streams, labels)
        member = (labels[:, None] == np.arange(SETS)[:, None]).reshape(-1, len(rows))
        sums = (member.astype(np.float64) @ rows).reshape(len(streams), SETS, D)
        means = sums * SETS / len(rows)
        cosines = (means.sum(axis=1) ** 2).sum(axis=1) - (means**2).sum(axis=(1, 2))
        batches.append(1.0 - cosines / (SETS * (SETS - 1)))
    return np.concatenate(batches)


def distances(label, n, ours, peers):
    """Yield a row for each peer, which must give the same mean distance."""
    # scikit-learn computes float32 in float32.
    check = partial(np.testing.assert_allclose, rtol=1e-5, err_msg=f"{label} differs")
    yield from compared(
        ours, peers, check, repeats=3, workload="W1", what=label, size=f"{n:,} × {D} float32",
        limit_seconds=read_seconds(4.0 * n * D), limit=LIMIT, n=n,
    )  # fmt: skip


def within(n):
    """Yield ISS within a set, by all pairs where these fit, and in linear time."""
    rows = embeddings(n)
    pairs = (SKLEARN, partial(all_pairs, rows), 1_000.0 if n == 20_000 else None)
    peers = [*[pairs] * (n <= 20_000), (NUMPY, partial(linear, rows), None)]
    yield from distances(
        "ISS within a set", n, lambda: iss_intra(rows, resampling=None).value, peers
    )


def across(n):
    """Yield ISS between nine sets."""
    sets = split(embeddings(n))
    pairs = (SKLEARN, partial(all_pairs_between, sets), None)
    peers = [pairs, (NUMPY, partial(linear_between, sets), None)]
    yield from distances(
        f"ISS across {SETS} sets", n, lambda: iss_cross(sets, resampling=None).value, peers
    )


def tested(n):
    """Yield ISS between nine sets with intervals, chance level and p from 1,000 permutations."""
    sets = split(embeddings(n))

    def ours():
        estimate = iss_cross(sets, resampling=Permutation(PERMUTATIONS), rng=1)
        assert estimate.chance is not None, "no chance level"  # noqa: S101
        return estimate.chance.low, estimate.chance.high

    def peer():
        # A twentieth of the draws is above the band; a lower distance than by chance is no harm.
        null = np.sort(products(sets, 1))
        return float(null[0]), float(null[-(PERMUTATIONS // 20)])

    check = partial(np.testing.assert_allclose, rtol=1e-12, err_msg="the chance band differs")
    yield from compared(
        ours, [(PRODUCT, peer, None)], check, repeats=3, workload="W1",
        what=f"ISS across {SETS} sets, interval, chance and p",
        size=f"{n:,} × {D} float32, {PERMUTATIONS:,} permutations",
        limit_seconds=PERMUTATIONS * n * D / 8 / 1e9 / 2, limit=ADDS, n=n,
    )  # fmt: skip


def estimated(n):
    """Yield ISS within a set with its jackknife interval."""
    rows = embeddings(n)

    def peer():
        vectors = unit(rows)
        total = vectors.sum(axis=0)
        along = vectors @ total
        return float(np.sqrt(4.0 * (n - 1) / n * ((along - along.mean()) ** 2).sum()))

    def ours():
        error = iss_intra(rows).ends.error
        return error * (n - 1.0) * (n - 2.0)

    check = partial(np.testing.assert_allclose, rtol=1e-9, err_msg="the standard error differs")
    yield from compared(
        ours, [(NUMPY, peer, None)], check, repeats=3, workload="W1",
        what="ISS within a set, with its interval", size=f"{n:,} × {D} float32",
        limit_seconds=read_seconds(8.0 * n * D), limit=TWICE, n=n,
    )  # fmt: skip


def rows():
    """Yield the rows of the table."""
    for n in sizes(2_000, 6_000, 20_000, 200_000):
        yield from within(n)
    for n in sizes(1_998, 5_994, 19_998):
        yield from across(n)
    for n in sizes(2_000, 20_000, 200_000):
        yield from estimated(n)
    for n in sizes(1_998, 5_994, 19_998):
        yield from tested(n)


if __name__ == "__main__":
    harness.main(rows)

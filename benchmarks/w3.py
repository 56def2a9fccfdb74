"""W3: disparities of 300 concepts under the protocol of Hall et al. 2023, four metrics in one pass.

Each concept and group has 250 samples of n positives and 5 n negatives, drawn with replacement, and
in each sample average precision, AUROC, TPR and FPR. Prevalence is 0.5 to 8 %, spread evenly on a
logarithmic scale. Peers run in one thread, on concepts spread evenly over these prevalences and few
samples, and are extrapolated:

- scikit-learn: average precision and AUROC of the scores of each sample, TPR and FPR as means;
- numpy: the scores of each sample sorted, and their running sums;
- numpy, sorted once for each concept and group, then the bootstrapped counts of all distinct scores
  and their running sums: harder to write, and several times as quick.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
from sklearn.metrics import average_precision_score, roc_auc_score

from benchmarks import harness
from benchmarks.harness import Row, alternate, peak_mb, sizes, timed
from equipoise.metrics import Choices, concept_metrics
from equipoise.stats import Bootstrap
from equipoise.stats.threads import threads

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.int64]

CONCEPTS, REPLICATES, RATIO = 300, 250, 5
METRICS = (
    "average_precision",
    "auroc",
    "true_positive_rate",
    "false_positive_rate",
)
# Concepts and samples that peers run on.
SOME, FEW = 6, 4
# One permutation: p-values are no part of the workload.
DRAWS = Bootstrap(permutations=1, resolution=1.0)


@dataclass(frozen=True)
class World:
    """Scores and labels, one column per concept, each column in one piece; a group per image."""

    scores: npt.NDArray[np.float32]
    labels: Flags
    group: npt.NDArray[np.int64]

    @classmethod
    def of(cls, images, groups):
        """Normal scores, larger where the concept is."""
        rng = np.random.default_rng(0)
        prevalence = np.geomspace(0.005, 0.08, CONCEPTS)[:, None]
        labels = np.empty((CONCEPTS, images), dtype=np.bool_)
        scores = np.empty((CONCEPTS, images), dtype=np.float32)
        for index in range(CONCEPTS):
            labels[index] = rng.random(images) < prevalence[index]
            scores[index] = rng.standard_normal(images, dtype=np.float32) + 1.5 * labels[index]
        return cls(scores.T, labels.T, rng.integers(0, groups, images))


@dataclass(frozen=True)
class Pool:
    """Scores of one concept in one group, how many positives are drawn, and the threshold."""

    positive: Floats
    negative: Floats
    draw: int
    threshold: float
    truth: Flags

    def sample(self, rng):
        """Draw scores, positives first; return them, TPR and FPR."""
        positive = rng.choice(self.positive, self.draw)
        scores = np.append(positive, rng.choice(self.negative, RATIO * self.draw))
        label = scores >= self.threshold
        return scores, label[: self.draw].mean(), label[self.draw :].mean()


def ours(world, prevalence="hall", concepts=None):
    """Measure all concepts, or some, by all metrics."""
    chosen = slice(None) if concepts is None else concepts
    choices = Choices(
        prevalence=prevalence, prevalence_ratio=RATIO, replicates=REPLICATES, min_positives=1
    )
    scores, labels = world.scores[:, chosen], world.labels[:, chosen]
    return concept_metrics(scores, labels, world.group, METRICS, choices, resampling=DRAWS)


def pools(world, results, concepts):
    """Return the pools of some concepts, with the thresholds that equipoise chose."""
    pooled = []
    for concept in concepts:
        scores, labels = world.scores[:, concept].astype(float), world.labels[:, concept]
        threshold = float(results["true_positive_rate"].thresholds[concept])
        within = [world.group == g for g in range(int(world.group.max()) + 1)]
        sides = [(scores[mask & labels], scores[mask & ~labels]) for mask in within]
        draw = min(min(len(a), len(b) // RATIO) for a, b in sides)
        truth = np.repeat([True, False], [draw, RATIO * draw])
        pooled += [Pool(a, b, draw, threshold, truth) for a, b in sides]
    return pooled


def sampled(measure, pooled):
    """Return metrics of samples, (pools, samples, metrics)."""
    rng = np.random.default_rng(1)
    return np.array([[measure(pool, rng) for _ in range(FEW)] for pool in pooled])


def scikit_learn(pool, rng):
    """Return the metrics of a sample."""
    scores, *rates = pool.sample(rng)
    average_precision = average_precision_score(pool.truth, scores)
    return average_precision, roc_auc_score(pool.truth, scores), *rates


def sorted_anew(pool, rng):
    """Return the metrics of a sample, which is sorted."""
    scores, *rates = pool.sample(rng)
    order = np.argsort(-scores)
    falling, right = scores[order], pool.truth[order]
    last = np.append(np.flatnonzero(np.diff(falling)), len(falling) - 1)
    hits, places = np.cumsum(right)[last], last + 1.0
    gained = np.diff(hits, prepend=0.0)
    mistakes = places - hits
    level = np.diff(mistakes, prepend=0.0)
    won = gained @ (RATIO * pool.draw - mistakes + level / 2)
    return gained @ (hits / places) / pool.draw, won / (pool.draw * RATIO * pool.draw), *rates


@dataclass(frozen=True)
class Places:
    """One pool's rows by their place in a falling order of scores, equal ones together.

    `at` are the places that hold positives; `hit` and `mistake` whether a row is predicted.
    """

    positive: Indices
    negative: Indices
    at: Indices
    hit: Flags
    mistake: Flags
    draw: int

    @classmethod
    def of(cls, pool):
        """Give every distinct score a place."""
        rising, place = np.unique(np.append(pool.positive, pool.negative), return_inverse=True)
        positive, negative = np.split(len(rising) - 1 - place, [len(pool.positive)])
        hit, mistake = pool.positive >= pool.threshold, pool.negative >= pool.threshold
        return cls(positive, negative, np.unique(positive), hit, mistake, pool.draw)


def sorted_once(prepared, rng):
    """Return the metrics of a sample from bootstrapped counts."""
    last = int(prepared.at[-1]) + 1
    p = rng.integers(0, len(prepared.positive), prepared.draw, dtype=np.int32)
    n = rng.integers(0, len(prepared.negative), RATIO * prepared.draw, dtype=np.int32)
    true = np.bincount(prepared.positive[p], minlength=last)[prepared.at]
    false = np.bincount(prepared.negative[n], minlength=last)[:last]
    hits, mistakes = np.cumsum(true), np.cumsum(false)[prepared.at]
    won = true @ (RATIO * prepared.draw - mistakes + false[prepared.at] / 2)
    return (
        true @ (hits / np.maximum(hits + mistakes, 1)) / prepared.draw,
        won / (prepared.draw * RATIO * prepared.draw),
        prepared.hit[p].mean(),
        prepared.mistake[n].mean(),
    )


# Name, what is done once for each pool, what for each sample, and the goal.
PEERS = (
    ("scikit-learn loop", lambda pool: pool, scikit_learn, 200),
    ("numpy, each sample sorted", lambda pool: pool, sorted_anew, 30),
    ("numpy, sorted once", Places.of, sorted_once, None),
)


def exact(world, concepts):
    """Stop where the metrics of all images are not scikit-learn's."""
    results = ours(world, "observed", concepts)
    for index, concept in enumerate(concepts):
        scores, labels = world.scores[:, concept], world.labels[:, concept]
        for g in range(int(world.group.max()) + 1):
            within = world.group == g
            for metric, function in (
                ("average_precision", average_precision_score),
                ("auroc", roc_auc_score),
            ):
                np.testing.assert_allclose(
                    results[metric].observed[index, g],
                    function(labels[within], scores[within]),
                    rtol=1e-12,
                    err_msg=f"{metric} of concept {concept} in group {g} differs",
                )


def alike(samples, other, name):
    """Stop when means of samples differ by more than their number and the split explain.

    Own samples are (pools, replicates, metrics). Peers measure TPR and FPR on all images,
    equipoise on those that no threshold was tuned on.
    """
    error = samples.std(axis=1) * np.sqrt(1.0 / FEW + 1.0 / REPLICATES)
    difference = np.abs(samples.mean(axis=1) - other.mean(axis=1))
    split = np.array([0.0, 0.0, 0.1, 0.02])
    assert (difference < 5.0 * error + split).all(), f"{name}: means of samples differ"  # noqa: S101


def compared(world, images, groups):
    """Yield a row for each peer."""
    results = ours(world)
    mine = partial(ours, world)
    memory = peak_mb(mine)
    chosen = [int((index + 0.5) * CONCEPTS / SOME) for index in range(SOME)]
    exact(world, chosen)
    boots = np.stack([result.boot for result in results.values()], axis=-1)[:, chosen]
    our_samples = boots.transpose(1, 2, 0, 3).reshape(SOME * groups, REPLICATES, len(METRICS))
    chosen_pools = pools(world, results, chosen)
    draws = (1 + RATIO) * sum(pool.draw for pool in chosen_pools) * REPLICATES * CONCEPTS / SOME
    limit = draws * random_seconds() / threads()
    extras = (limit, f"{draws / 1e9:.2g}·10⁹ random numbers on {threads()} cores", memory)
    label, size = f"[Hall], {groups} groups", f"{images:,} images × {CONCEPTS} concepts"
    note = f"one thread, from {SOME} concepts and {FEW} samples"
    for name, prepare, measure, goal in PEERS:
        prepared = [prepare(pool) for pool in chosen_pools]
        alike(our_samples, sampled(measure, prepared), name)
        seconds, sampling = alternate(mine, partial(sampled, measure, prepared), repeats=3)
        preparing = timed(
            lambda prepare_pool=prepare: [prepare_pool(pool) for pool in chosen_pools], repeats=1
        )
        peer_seconds = (preparing + sampling * REPLICATES / FEW) * CONCEPTS / SOME
        least = goal if images >= 100_000 else None
        yield Row("W3", label, size, name, peer_seconds, seconds, least, *extras, note, n=images)


def random_seconds():
    """Return the seconds that one random 32-bit number takes."""
    rng = np.random.Generator(np.random.SFC64(0))
    count = 1 << 22
    return timed(lambda: rng.integers(0, 1 << 32, count, dtype=np.uint32)) / count


def rows():
    """Yield the rows of the table."""
    for images in sizes(10_000, 30_000, 100_000):
        for groups in (2, 4):
            world = World.of(images, groups)
            yield from compared(world, images, groups)


if __name__ == "__main__":
    harness.main(rows)

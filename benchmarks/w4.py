"""W4: a ranking of images by each of 158 queries, and all skews of it.

Peers: what the field runs, the loop over data frames of debias-vision-lang (`measuring_bias.py`:
`eval_ranking` for MaxSkew and again for NDKL, each with the pool's shares and with equal ones),
which the goals of 20 and 40 refer to; a quicker script of ours, which sorts every query's scores
whole and counts every prefix of NDKL anew; and, where torch is installed, its matmul and topk:
the ranking alone, without any metric. Ours ranks and returns every measure as an estimate: skew,
MaxSkew and MinSkew, Bias@K and shares at K = 12, NDKL over 144 prefixes, of every query, as the
script has them, and their mean. Its tables of parts are made when they are read. All get float32
vectors, the peers with unit ones and so without the work of normalising; ties and order are as in
float64 with ours alone.
Peers may use as many BLAS threads as ours has of its own.
"""

import math
from collections import Counter
from functools import partial
from importlib.util import find_spec

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from benchmarks import harness
from benchmarks.harness import (
    Row,
    alternate,
    peak_mb,
    read_seconds,
    sizes,
    timed,
    times_of,
    unit,
)
from equipoise.metrics import cosine_scores, retrieval_measures
from equipoise.stats.threads import threads

D, QUERIES, GROUPS, K, PREFIXES = 512, 158, 12, 12, 144
MEASURES = ("max_skew", "min_skew", "skew_at_k", "ndkl", "retrieval_mad", "bias_at_k")
OF_SCRIPT = ("max_skew", "min_skew", "ndkl", "retrieval_mad", "bias_at_k")
FRAMES = "debias-vision-lang's data frames"
SCRIPT = "argsort and NDKL in Python, order as in float64"
TORCH = "torch matmul, topk; ranking alone"
READ, PRODUCT = "the vectors read once from memory", "the products in float32, on every core"


def world(n):
    """Unit vectors of images by subject and of queries; group and subject of each image."""
    rng = np.random.default_rng(0)
    images = rng.standard_normal((n, D), dtype=np.float32)
    queries = rng.standard_normal((QUERIES, D), dtype=np.float32)
    images /= np.linalg.norm(images, axis=1, keepdims=True)
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    subject = np.sort(rng.integers(0, QUERIES, n))
    return images, queries, rng.integers(0, GROUPS, n), subject


def measured(images, queries, groups, subject):
    """Every measure, by equipoise."""
    return retrieval_measures(
        cosine_scores(images, queries), groups, k=K, prefixes=PREFIXES, measures=MEASURES,
        first="0", second="1", queries=subject, resampling=None,
    )  # fmt: skip


def frames(images, queries, groups, subject):
    """MaxSkew and NDKL of each query with the pool's shares desired, by data frames."""
    results = np.empty((QUERIES, 2))
    for column, (measure, k) in enumerate(((frame_skews, K), (frame_ndkl, PREFIXES))):
        for query in range(QUERIES):
            rows = slice(None) if subject is None else np.flatnonzero(subject == query)
            scores = (images[rows] @ queries[query].T).flatten()
            table = pd.DataFrame({"score": scores, "label": groups[rows]})
            results[query, column] = measure(table, k)["pool"]
    return results


def frame_skews(table, k):
    """MaxSkew for both targets; a group that is not shown counts as shown once."""
    skews = {"equal": 0.0, "pool": 0.0}
    counts = Counter(table.label)
    best = Counter(table.nlargest(k, columns="score", keep="all").label)
    for label, count in counts.items():
        share = (best[label] or 1) / k
        for name, desired in (("equal", 1 / len(counts)), ("pool", count / len(table))):
            skews[name] = max(skews[name], math.log(share) - math.log(desired))
    return skews


def frame_ndkl(table, k):
    """NDKL for both targets, row by row of the best k."""
    counts = [count for _, count in sorted(Counter(table.label).items())]
    desired = {
        "equal": np.array([1 / len(counts) for _ in counts]),
        "pool": np.array([max(count, 1) / len(table) for count in counts]),
    }
    totals, seen_counts = dict.fromkeys(desired, 0.0), np.zeros(len(counts))
    best = table.nlargest(k, columns="score", keep="all")
    with np.errstate(divide="ignore", invalid="ignore"):
        for place, (_, row) in enumerate(best.iterrows(), start=1):
            seen_counts[int(row["label"])] += 1
            shares = seen_counts / place
            for name, target in desired.items():
                terms = np.where(shares != 0, shares * (np.log(shares) - np.log(target)), 0)
                totals[name] += float(np.sum(terms)) / math.log2(place + 1)
    weights = sum(1 / math.log2(place + 1) for place in range(1, k + 1))
    return {name: total / weights for name, total in totals.items()}


def script(images, queries, groups, subject):
    """MaxSkew, MinSkew, NDKL, sum of deviations and bias of each query, the usual way."""
    results = np.empty((QUERIES, 5))
    with threadpool_limits(threads()):
        table = None if subject is not None else queries @ images.T
    for query in range(QUERIES):
        rows = slice(None) if subject is None else np.flatnonzero(subject == query)
        scores = images[rows] @ queries[query] if table is None else table[query]
        codes = groups[rows]
        desired = np.bincount(codes, minlength=GROUPS) / len(codes)
        order = np.argsort(-scores, kind="stable")
        results[query] = of_order(codes[order], desired)
    return results


def of_order(codes, desired):
    """Measures of one ranking, prefix after prefix."""
    shares = np.bincount(codes[:K], minlength=GROUPS) / K
    with np.errstate(divide="ignore"):
        skews = np.log(shares / desired)
    total = weights = 0.0
    for i in range(1, PREFIXES + 1):
        part = np.bincount(codes[:i], minlength=GROUPS) / i
        present = part > 0
        total += float((part[present] * np.log(part[present] / desired[present])).sum()) / np.log2(
            i + 1
        )
        weights += 1.0 / np.log2(i + 1)
    first, second = shares[:2]
    pair_share = first + second
    bias = (first - second) / pair_share if pair_share else 0.0
    deviation = np.abs(shares - shares.mean()).sum()
    return float(skews.max()), float(skews.min()), total / weights, float(deviation), float(bias)


def with_torch(images, queries, k):
    """The k best images of each query, in order."""
    import torch

    torch.set_num_threads(threads())
    scores = torch.from_numpy(queries) @ torch.from_numpy(images).T
    return np.asarray(scores.topk(k).indices.numpy())


def check(results, expected, names, atol):
    """Hold every query's measures against those of a peer, a column for each name."""
    for column, name in enumerate(names):
        parts = results[name].parts
        values = [p.value for p in parts if p.metric == name and not p.variant]
        np.testing.assert_allclose(
            values, expected[:, column], atol=atol, err_msg=f"{name} differs"
        )


def check_ranking(images, queries):
    """Hold a ranking in float32 against ours: only scores that nearly tie may change places."""
    all_scores = cosine_scores(images, queries)
    best = all_scores.best(range(QUERIES), np.arange(len(images)), PREFIXES)
    ours = np.stack([rows[np.argsort(-scores, kind="stable")] for rows, scores in best])
    share = (ours == with_torch(images, queries, PREFIXES)).mean()
    np.testing.assert_array_less(0.999, share, err_msg="the share of the ranking that agrees")


def rows():
    """Yield the rows of the workload."""
    for n in sizes(40_000, 80_000, 170_000):
        images, queries, groups, subject = world(n)
        exact = unit(images), unit(queries)
        size, last = f"{QUERIES} × {n:,}, {GROUPS} groups", n == 170_000
        for label, pools, goal in (
            ("every query ranks its subject's images", subject, 20.0),
            ("every query ranks all images", None, 40.0),
        ):
            call = partial(measured, images, queries, groups, pools)
            check(call(), script(*exact, groups, pools), OF_SCRIPT, 1e-12)
            check(call(), frames(*exact, groups, pools), ("max_skew", "ndkl"), 1e-9)
            limit = read_seconds(4.0 * n * D) if pools is not None else product(n, queries)
            row = partial(
                Row, "W4", label, size, memory_mb=peak_mb(call), n=n,
                limit_seconds=limit, limit=PRODUCT if pools is None else READ,
            )  # fmt: skip
            mine, theirs = alternate(call, partial(frames, images, queries, groups, pools))
            yield row(FRAMES, theirs, mine, goal if last else None)
            mine, theirs = alternate(call, partial(script, *exact, groups, pools))
            note = f"at the limit it would be {times_of(theirs / limit)}" if last else ""
            yield row(SCRIPT, theirs, mine, None, note=note)
            if pools is None and find_spec("torch") is not None:
                check_ranking(images, queries)
                mine, theirs = alternate(call, partial(with_torch, images, queries, PREFIXES))
                yield row(TORCH, theirs, mine, 1.5 if last else None, note=note)


def product(n, queries):
    """Seconds of the products of n images with the queries, on every core."""
    block = np.ones((2048, D), np.float32)
    return timed(lambda: queries @ block.T, repeats=20) * n / 2048 / threads()


if __name__ == "__main__":
    harness.main(rows)

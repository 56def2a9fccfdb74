"""W9: whole audits of a million rows, beside one pass over the same files.

An audit reads the evidence of `scale_worlds`, measures with every interval, chance level and
verdict, and writes its run with the report. The pass is what a script does at least: it reads the
files, and makes one matrix product or one count, without any interval. Both sides are processes,
from start to end; compiled kernels lie in their cache.
"""

import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks import harness, scale_worlds
from benchmarks.harness import Row, alternate, audit, python, quick, write

BLOCK, DIMENSION, FEW, MANY = 1 << 16, 256, 2_000, 1_000_000


def count_predictions(folder):
    """Count each model's labels of each true class, by sex and region."""
    images = pl.read_parquet(folder / "labels.parquet")
    for model in ("first", "second"):
        answers = pl.read_parquet(folder / f"{model}.parquet")
        joined = images.join(answers, on="image_id")
        yield joined.group_by("target", "sex", "region", "label").len()["len"].to_numpy()


def sum_concepts(folder):
    """Sum the scores of each concept, over the images of each sex that show it."""
    labels, scores = (np.load(folder / f"{name}.npy") for name in ("labels", "scores"))
    yield members(folder, "sex").T @ (labels * scores)


def sum_vectors(folder):
    """Sum the vectors of each region: one matrix product."""
    yield sum(member.T @ block for block, member in blocks(column(folder), folder, "region"))


def sum_similarities_of_words(folder):
    """Sum each word's similarities to the vectors of each sex, which are a column of Parquet."""
    yield sum_similarities(column(folder), "words", folder)


def sum_similarities_of_queries(folder):
    """Sum each query's similarities to the images of each sex, which are an array of numpy."""
    yield sum_similarities(np.load(folder / "images.npy", mmap_mode="r"), "queries", folder)


def sum_similarities(vectors, texts, folder):
    """Return the sums of similarities of each sex to each text."""
    across = np.load(folder / f"{texts}.npy").astype(np.float32).T
    return sum(member.T @ (block @ across) for block, member in blocks(vectors, folder, "sex"))


def column(folder):
    """Return the column of vectors of a Parquet file."""
    path = folder / "vectors.parquet"
    return pl.read_parquet(path, columns=["embedding"])["embedding"].to_numpy()


def blocks(vectors, folder, attribute):
    """Yield blocks of vectors in float32, and the groups of their rows."""
    member = members(folder, attribute)
    for start in range(0, len(vectors), BLOCK):
        block = slice(start, start + BLOCK)
        yield vectors[block].astype(np.float32), member[block]


def members(folder, attribute):
    """Return a column of zeros and ones for each group of an attribute."""
    groups = pl.read_parquet(folder / "images.parquet", columns=[attribute])[attribute]
    return groups.to_dummies().to_numpy().astype(np.float32)


# Each audit's evidence beside its rows, and its pass.
AUDITS = {
    "predictions": ("40 classes, two attributes and both together, two models", count_predictions),
    "concepts": ("20 concepts", sum_concepts),
    "diversity": (f"{DIMENSION} float16, six sets", sum_vectors),
    "associations": (f"{DIMENSION} float16, two sets, twenty words", sum_similarities_of_words),
    "similarity": (f"{DIMENSION} float16, twenty queries", sum_similarities_of_queries),
    "retrieval": (f"{DIMENSION} float16, twenty queries", sum_similarities_of_queries),
}
# How many times as long as its pass an audit may take.
MOST_PASSES = 5.0


def write_evidence(world, folder, rows):
    """Write the evidence of a kind of audit, and its config."""
    arguments = [] if world in ("predictions", "concepts") else [DIMENSION]
    getattr(scale_worlds, world)(folder, rows, *arguments)


def seconds(world, rows):
    """Return seconds of an audit and of its one pass, alternated."""
    with tempfile.TemporaryDirectory() as folder:
        write_evidence(world, Path(folder), rows)
        peer = partial(python, "-m", "benchmarks.w9", "--pass", world, folder)
        return alternate(partial(audit, Path(folder)), peer, repeats=3, warm=False)


def rows():
    """Yield a row for each kind of audit."""
    for world, (label, one_pass) in AUDITS.items():
        ours, theirs = seconds(world, FEW)  # It compiles what a large audit uses.
        if not quick():
            ours, theirs = seconds(world, MANY)
        size = f"{FEW if quick() else MANY:,} rows, {label}"
        yield Row(
            "W9", f"a whole audit of {world}", size, "one pass", theirs, ours,
            over="one pass", goal=MOST_PASSES, note=one_pass.__doc__.rstrip("."),
        )  # fmt: skip


if __name__ == "__main__":
    if sys.argv[1:2] == ["--pass"]:
        for sums in AUDITS[sys.argv[2]][1](Path(sys.argv[3])):
            write(repr(sums))
    else:
        harness.main(rows)

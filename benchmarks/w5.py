"""W5: SkewSize, and so the effect size of every class, on labels as users have them.

Timed on both sides is the number, for which every class has its effect size; the table of parts,
with rows and a share of errors with its interval for each class and group, is made when it is
read, which a note tells the time of. Compared beforehand are the effect sizes themselves.

Peers: the listing of Albuquerque et al. 2024 (a pandas crosstab and scipy's chi2_contingency for
each class; one groupby here instead of a filter for each, which is quicker), and polars group-bys.
"""

from functools import partial
from statistics import median
from time import perf_counter

import numpy as np
import pandas as pd
import polars as pl
from scipy.stats import chi2_contingency, skew

from benchmarks import harness
from benchmarks.harness import compared, predictions, read_seconds, seconds, sizes
from equipoise.metrics import skewsize

CLASSES, GROUPS, WORDINGS = 1_000, 23, 100
LISTING, POLARS = "the paper's crosstab listing", "polars group-by"
LIMIT = "the labels read once from memory"


def texts(rows):
    """Answers in an open vocabulary: each class has a hundred wordings of its own."""
    rng = np.random.default_rng(0)
    truth, wording = rng.integers(0, CLASSES, rows), rng.integers(0, WORDINGS, rows)
    names = pl.Series([f"occupation {code:04d}" for code in range(CLASSES)])
    groups = pl.Series([f"group {code:02d}" for code in range(GROUPS)])
    answers = pl.Series([f"answer {code:06d}" for code in range(CLASSES * WORDINGS)])
    return pl.DataFrame(
        {
            "truth": names.gather(truth),
            "label": answers.gather(truth * WORDINGS + wording),
            "group": groups.gather(rng.integers(0, GROUPS, rows)),
        }
    )


def measured(columns):
    """Return SkewSize; its parts are made when they are read."""
    return skewsize(*columns, min_expected=0.0, resampling=None)


def ours(columns):
    """Return SkewSize and the effect size of each class."""
    estimate = measured(columns)
    assert estimate.by is not None, "no effect sizes"  # noqa: S101
    names = estimate.by["subject"].to_pylist()
    return estimate.value, dict(zip(names, estimate.by["value"].to_pylist(), strict=True))


def table_seconds(columns):
    """Return the median seconds that the table of parts takes when it is first read."""
    times = []
    for _ in range(3):
        estimate = measured(columns)
        started = perf_counter()
        assert estimate.by is not None, "no table"  # noqa: S101
        times.append(perf_counter() - started)
    return median(times)


def listing(frame):
    """Return them as the paper's listing does, without the continuity correction."""
    effects = {}
    for name, rows in frame.groupby("truth", sort=True, observed=True):
        table = pd.crosstab(rows["group"], rows["label"])
        chi_square = chi2_contingency(table, correction=False)[0]
        effects[str(name)] = float(np.sqrt(chi_square / len(rows) / (min(table.shape) - 1)))
    return float(skew(list(effects.values()))), effects


def polars_groups(frame):
    """Return them from group-bys: χ² = n (Σ O² / (R C) - 1)."""
    cells = frame.group_by("truth", "label", "group").agg(o=pl.len().cast(pl.Float64))
    columns = cells.group_by("truth", "label").agg(c=pl.col("o").sum())
    rows = cells.group_by("truth", "group").agg(r=pl.col("o").sum())
    least = (
        rows.group_by("truth")
        .agg(rows=pl.len())
        .join(columns.group_by("truth").agg(columns=pl.len()), on="truth")
    )
    shares = (
        cells.join(columns, on=["truth", "label"])
        .join(rows, on=["truth", "group"])
        .group_by("truth")
        .agg(excess=(pl.col("o") ** 2 / (pl.col("r") * pl.col("c"))).sum() - 1.0)
        .join(least, on="truth")
        .with_columns(v=(pl.col("excess") / (pl.min_horizontal("rows", "columns") - 1)).sqrt())
        .sort("truth")
    )
    values = shares["v"].to_list()
    return float(skew(values)), dict(zip(map(str, shares["truth"].to_list()), values, strict=True))


def equal(result, peer):
    """Stop when a number of the peer is another one here."""
    (value, effects), (other, peer_effects) = result, peer
    assert effects.keys() == peer_effects.keys(), "classes differ"  # noqa: S101
    pairs = [(effects[name], peer_effects[name]) for name in peer_effects]
    np.testing.assert_allclose(*zip(*pairs, strict=True), rtol=1e-9, err_msg="effect sizes differ")
    np.testing.assert_allclose(value, other, rtol=1e-6, err_msg="SkewSize differs")


def measured_by(frame, columns, label, goals):
    """Yield a row for each peer, the listing and polars."""
    pandas = frame.to_pandas()
    expected = ours(columns)
    peers = ((LISTING, partial(listing, pandas)), (POLARS, partial(polars_groups, frame)))
    yield from compared(
        partial(measured, columns),
        [(*peer, goal) for peer, goal in zip(peers, goals, strict=True)],
        lambda _, result: equal(expected, result),
        workload="W5", what=label, size=f"{len(frame):,} rows",
        limit_seconds=read_seconds(frame.estimated_size()), limit=LIMIT,
        note=f"the table of parts, once read: {seconds(table_seconds(columns))} more", n=len(frame),
    )  # fmt: skip


def rows():
    """Yield the rows of the table."""
    for n_rows, goal in sizes((100_000, None), (1_000_000, 500.0), (10_000_000, 50.0)):
        truth, label, group = predictions(n_rows, CLASSES, GROUPS)
        frame = pl.DataFrame({"truth": truth, "label": label, "group": group})
        columns = [frame[name].to_numpy() for name in frame.columns]
        goals = (goal, 6.0 if goal else None)
        yield from measured_by(frame, columns, "SkewSize, integer labels", goals)
    for n_rows, goal in sizes((100_000, None), (1_000_000, None), (10_000_000, 1.5)):
        frame = texts(n_rows)
        yield from measured_by(
            frame, frame.get_columns(), "SkewSize, text, 100,000 distinct answers", (None, goal)
        )


if __name__ == "__main__":
    harness.main(rows)

"""Time whole audits, and effect sizes and rates beside the usual way to compute them.

    OMP_NUM_THREADS=1 python benchmarks/audit.py [number of sizes, 1 to 3]

Each class is confused with five others. The peers are the listing of the SkewSize paper (a pandas
crosstab and scipy's chi2_contingency for each class) and fairlearn's MetricFrame, one class against
the rest. Their results are checked equal to those of equipoise before the times are told. fairlearn
runs on a few classes: its time for all of them is extrapolated. Peers give values alone, so
equipoise does too; `audit` is a whole one, with every interval, chance level and p-value. Times
are seconds of CPU time.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from fairlearn.metrics import MetricFrame, false_positive_rate, selection_rate, true_positive_rate
from scipy.stats import chi2_contingency

from equipoise import audits
from equipoise.metrics import effect_sizes, rates

SIZES = ((3_000, 2, 7), (100_000, 100, 8), (1_000_000, 1_000, 23))
FAIRLEARN_CLASSES = 3
RATES = {
    "true_positive_rate": true_positive_rate,
    "false_positive_rate": false_positive_rate,
    "selection_rate": selection_rate,
}


def planted(rows: int, classes: int, groups: int) -> pl.DataFrame:
    """Predictions of which three in four are right."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, classes, rows)
    wrong = (truth + rng.integers(1, 6, rows)) % classes
    label = np.where(rng.random(rows) < 0.25, wrong, truth)
    names = np.array([f"class {index:04d}" for index in range(classes)])
    member = np.array([f"group {index:02d}" for index in range(groups)])
    return pl.DataFrame(
        {
            "id": np.arange(rows),
            "truth": names[truth],
            "label": names[label],
            "group": member[rng.integers(0, groups, rows)],
        }
    )


def audit(table: pl.DataFrame) -> None:
    """Audit with the defaults."""
    data = {"table": table, "id": "id", "target": "truth", "groups": ["group"]}
    models = {"model": {"table": table, "prediction": "label"}}
    audits.run(audits.parse_config({"audit": "predictions", "data": data, "models": models}))


def our_effects(table: pl.DataFrame) -> dict[str, float]:
    """Cramér's V of every class."""
    columns = (table[name].to_numpy() for name in ("truth", "label", "group"))
    found = effect_sizes(*columns, min_expected=0.0, resampling=None).by
    return dict(zip(found["subject"].to_pylist(), found["value"].to_pylist(), strict=True))


def paper_effects(frame: pd.DataFrame) -> dict[str, float]:
    """Cramér's V as the paper's listing has it, without the continuity correction."""
    found = {}
    for name in sorted(frame["truth"].unique()):
        rows = frame[frame["truth"] == name]
        table = pd.crosstab(rows["group"], rows["label"])
        chi_square = chi2_contingency(table, correction=False)[0]
        freedom = min(table.shape) - 1
        found[name] = np.sqrt(chi_square / len(rows) / freedom) if freedom else np.nan
    return found


def our_rates(table: pl.DataFrame) -> dict[tuple[str, str], float]:
    """Gaps of all rates in every class."""
    columns = (table[name].to_numpy() for name in ("truth", "label", "group"))
    found = rates(*columns, resampling=None).by
    keys = zip(found["metric"].to_pylist(), found["subject"].to_pylist(), strict=True)
    return dict(zip(keys, found["value"].to_pylist(), strict=True))


def fairlearn_rates(frame: pd.DataFrame) -> dict[tuple[str, str], float]:
    """Gaps of three rates in the first classes."""
    found = {}
    for name in sorted(frame["truth"].unique())[:FAIRLEARN_CLASSES]:
        truth, label = (frame[column] == name for column in ("truth", "label"))
        gaps = MetricFrame(
            metrics=RATES, y_true=truth, y_pred=label, sensitive_features=frame["group"]
        ).difference()
        found |= {(metric, name): gaps[metric] for metric in RATES}
    return found


def timed(call: Callable[[Any], Any], argument: Any) -> tuple[Any, float]:
    """Return what a call gives and its seconds of CPU time."""
    started = process_time()
    found = call(argument)
    return found, process_time() - started


def equal(ours: dict[Any, float], theirs: dict[Any, float]) -> None:
    """Stop when a number of the peer is another one here."""
    pairs = [(ours[key], value) for key, value in theirs.items()]
    np.testing.assert_allclose(*zip(*pairs, strict=True), rtol=1e-9, atol=1e-12)


def main() -> None:
    """Print one line for each size."""
    sizes = SIZES[: int(sys.argv[1])] if len(sys.argv) > 1 else SIZES
    audit(planted(*SIZES[0]))  # imports
    columns = ("audit", "peak GiB", "effects", "paper", "×", "rates", "fairlearn", "×")
    write("rows × classes × groups", *columns)
    for rows, classes, groups in sizes:
        table = planted(rows, classes, groups)
        seconds = timed(audit, table)[1]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        frame = table.to_pandas()
        (ours, effects), (theirs, paper) = timed(our_effects, table), timed(paper_effects, frame)
        equal(ours, theirs)
        (ours, gaps), (theirs, fair) = timed(our_rates, table), timed(fairlearn_rates, frame)
        equal(ours, theirs)
        fair *= classes / min(classes, FAIRLEARN_CLASSES)
        numbers = (seconds, peak, effects, paper, paper / effects, gaps, fair, fair / gaps)
        write(f"{rows:,} × {classes:,} × {groups}", *(f"{number:.3g}" for number in numbers))


def write(*cells: str) -> None:
    """Write a row of the table."""
    sys.stdout.write(f"{cells[0]:<24}" + "".join(f"{cell:>11}" for cell in cells[1:]) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()

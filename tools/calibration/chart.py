"""Write the chart of docs/calibration.md from its tables.

python -m tools.calibration.chart
"""

from __future__ import annotations

from pathlib import Path

from tools.calibration.tables import FOLDER, read
from tools.charts import Axis, DotRow, dot_chart

FIGURES = Path(__file__).resolve().parents[2] / "docs" / "figures"
ALARMS, COVERAGE = FIGURES / "false-alarms.svg", FIGURES / "coverage.svg"
FAMILIES = {
    "Associations": (
        "association_score", "weat", "sc_weat", "differential_association", "mcas",
        "diffusion_bias", "total_absolute_association", "predicted_label_weat",
        "label_concentration", "gender_difference", "alignment", "correlation",
    ),
    "Rankings": (
        "max_skew", "min_skew", "ndkl", "bias_at_k", "retrieval_mad", "normalized_similarity_mad",
    ),
    "Concepts": ("concept_disparity",),
    "Diversity": ("iss_cross",),
}  # fmt: skip
INTERVALS = {
    "rates": "{}",
    "rates-of-units": "{}, repeated rows",
    "accuracy-differences": "{}",
    "changes": "{}",
    "effect-sizes": "Cramér's V, {}",
}
"""Labels of the rows by table."""


def alarms_chart(folder: Path = FOLDER) -> str:
    """Return the chart of p-values at most 0.05 without bias: a dot for each test and world."""
    shares = {"Predictions": [float(row["p_0.05"]) for row in read("p-values", folder)]}
    for row in read("false-alarms", folder):
        metric = row["metric"].partition(",")[0]
        (family,) = (name for name, metrics in FAMILIES.items() if metric in metrics)
        if row["p_0.05"]:
            shares.setdefault(family, []).append(float(row["p_0.05"]))
    ticks = {value / 100: f"{value} %" for value in (0, 2, 4, 6, 8, 10)}
    rows = [DotRow(f"{name} (n = {len(values)})", values) for name, values in shares.items()]
    axis = Axis("share of p-values at most 0.05, n tests (5 % expected)", ticks, 0.05)
    return dot_chart("False alarms where no bias was planted", axis, rows)


def coverage_chart(folder: Path = FOLDER) -> str:
    """Return the chart of coverage of 95 % intervals: mean (filled) and least (hollow)."""
    rows = [
        DotRow(
            label.format(row["interval"]), [float(row["coverage"])], [float(row["least_coverage"])]
        )
        for name, label in INTERVALS.items()
        for row in read(name, folder)
    ]
    ticks = {value / 100: f"{value} %" for value in (90, 92, 94, 96, 98, 100)}
    axis = Axis("share of intervals that hold the truth", ticks, 0.95)
    return dot_chart("Coverage of 95 % intervals: mean and least case", axis, rows)


if __name__ == "__main__":
    ALARMS.write_text(alarms_chart(), encoding="utf-8", newline="\n")
    COVERAGE.write_text(coverage_chart(), encoding="utf-8", newline="\n")

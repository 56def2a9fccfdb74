"""Marks of models that share a place or a row can be told apart."""

import pyarrow as pa
import pytest

from equipoise.core import AuditResult
from equipoise.report.blocks import Chart
from equipoise.report.sections.planted_scenes import planted_scenes
from equipoise.report.sections.similarity import hypotheses
from report.drawn import charts
from report.synthetic import NAN, manifest


def drawn(name: str, rows: list[dict[str, object]]) -> Chart:
    section = (planted_scenes if name == "planted_scenes" else hypotheses)(
        AuditResult((), manifest(), {name: pa.Table.from_pylist(rows)})
    )
    assert section is not None
    (chart,) = charts(section.blocks)
    return chart


def test_a_model_without_ties_stands_at_the_strengths_of_the_other() -> None:
    chart = drawn(
        "planted_scenes",
        [
            {"model": model, "attribute": "hue", "subject": f"shape {place}", "favourite": "red",
             "strength": place / 4 if model == "biased" else 0.0, "gap": 0.1, "ndkl": 0.1}
            for model in ("biased", "null")
            for place in range(4)
        ],
    )  # fmt: skip
    places = {
        model: [row["strength"] for row in chart.data["rows"] if row["model"] == model]
        for model in ("biased", "null")
    }
    assert places["null"] == places["biased"] == [0.0, 0.25, 0.5, 0.75]
    # What was planted in the model itself is in the tooltip.
    assert "planted at 0.000" in chart.data["rows"][-1]["tip"]


@pytest.mark.parametrize(("models", "height"), [(("a",), 56), (("a", "b", "c"), 92)])
def test_models_that_share_a_row_are_offset_in_it(models: tuple[str, ...], height: int) -> None:
    chart = drawn(
        "hypotheses",
        [
            {"model": model, "groups": "gender", "hypothesis": "jobs", "concept": concept,
             "favourite": "woman", "declared": NAN, "preference": 0.0, "unit": "logit"}
            for model in models
            for concept in ("nurse", "doctor")
        ],
    )  # fmt: skip
    marks = chart.spec["layer"][1]["encoding"]
    assert marks["yOffset"]["field"] == "model"
    assert marks["yOffset"]["sort"] == list(models)
    assert chart.spec["height"] == height

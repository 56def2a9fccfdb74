"""Labels without a true class: groups are read, and no class is made up."""

import polars as pl

from equipoise.data import LabelSource, PredictionSource, load_predictions

IMAGES = pl.DataFrame({"id": ["c", "a", "b"], "group": ["x", "y", None], "unit": ["u", "u", "v"]})
ANSWERS = pl.DataFrame({"id": ["a", "b", "c"], "said": ["A cat.", "", "cat"]})


def source(**more: object) -> LabelSource:
    return LabelSource(IMAGES, "id", None, ("group",), **more)  # type: ignore[arg-type]


def test_answers_are_joined_without_a_true_class() -> None:
    model = PredictionSource(ANSWERS, prediction="said", open_vocabulary=True)
    data = load_predictions(source(unit="unit"), {"m": model})
    assert data.ids.tolist() == ["a", "b", "c"]
    assert data.classes == ()
    assert data.target.tolist() == [None, None, None]
    assert data.attributes["group"].tolist() == ["y", None, "x"]
    assert data.models["m"].versions["default"].label.tolist() == ["A cat.", None, "cat"]
    assert data.models["m"].state.tolist() == ["answered", "missing", "answered"]
    assert data.counts["labels"]["missing"] == {"group": 1, "unit": 0}

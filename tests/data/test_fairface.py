"""The real tables of 2,998 faces and two models."""

from pathlib import Path
from typing import Any

import pytest

from equipoise.core import DataError
from equipoise.data import LabelSource, PredictionData, PredictionSource, load_predictions

ASIAN = {"East Asian": "Asian", "Southeast Asian": "Asian"}


def load(
    shared: Path, target: str, labels: dict[str, Any] | None = None, **facellm: Any
) -> PredictionData:
    folder = shared / "data" / "fairface3k"
    return load_predictions(
        LabelSource(
            folder / "labels.csv", "image_id", target, ("race", "gender"), **(labels or {})
        ),
        {
            "deepface": PredictionSource(folder / "deepface.csv", target),
            "facellm": PredictionSource(folder / "facellm.csv", target, **facellm),
        },
    )


def accuracy(data: PredictionData, model: str) -> float:
    right: float = (data.models[model].versions["default"].label == data.target).mean()
    return right


def test_gender(shared_dir: Path) -> None:
    data = load(shared_dir, "gender")
    assert len(data.ids) == 2998
    assert accuracy(data, "deepface") == pytest.approx(0.6848, abs=5e-5)
    assert accuracy(data, "facellm") == pytest.approx(0.8829, abs=5e-5)


def test_two_predictions_of_one_model_lack_labels(shared_dir: Path) -> None:
    counts = load(shared_dir, "gender").counts["models"]
    assert counts["deepface"]["without_label"] == 2
    assert counts["deepface"]["without_label_examples"] == ["10949", "11006"]
    assert counts["facellm"]["without_label"] == 0
    assert (
        counts["deepface"]["states"]["unmatched"] == counts["facellm"]["states"]["unmatched"] == 0
    )


def test_age_needs_a_mapping(shared_dir: Path) -> None:
    with pytest.raises(DataError, match="'70\\+' \\(18 times\\)"):
        load(shared_dir, "age")
    data = load(shared_dir, "age", maps={"default": {"70+": "more than 70"}})
    assert data.counts["models"]["facellm"]["versions"]["default"]["rows_changed"] == 18


def test_race_needs_a_mapping_of_the_labels(shared_dir: Path) -> None:
    with pytest.raises(DataError, match="'Asian' \\(900 times\\)"):
        load(shared_dir, "race")
    data = load(shared_dir, "race", {"map": ASIAN})
    assert "Asian" in data.classes
    assert data.counts["labels"]["mapped"] == 784
    # The attribute keeps its own labels: the mapping is of the target.
    assert "East Asian" in data.attributes["race"]

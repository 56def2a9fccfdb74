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


def test_race_needs_a_mapping_of_the_labels(shared_dir: Path) -> None:
    with pytest.raises(DataError, match="Asian"):
        load(shared_dir, "race")
    data = load(shared_dir, "race", {"map": ASIAN})
    assert "Asian" in data.classes
    assert data.counts["labels"]["mapped"] == 784
    # The attribute keeps its own labels: the mapping is of the target.
    assert "East Asian" in data.attributes["race"]

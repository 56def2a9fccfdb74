"""Probabilities of a classifier are held to what is asked of those in a file."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from equipoise.core import ModelError
from equipoise.evidence import extract_probabilities, pictures_in_folder
from equipoise.models import ModelInfo
from picture_models import info


@dataclass
class Fixed:
    """Gives every image one row, and images of width 9 another."""

    other: tuple[float, float]
    info: ModelInfo = field(default_factory=info)
    labels: tuple[str, ...] = ("cat", "dog")

    def predict_proba(self, images):
        rows = [self.other if image.shape[1] == 9 else (0.25, 0.75) for image in images]
        return np.array(rows, dtype=np.float32)

    def features(self, images):
        return np.zeros((len(images), 2), dtype=np.float32)


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ((0.2, 0.2), "the sum 0.4 for image '00001.png'"),
        ((-0.1, 1.1), "-0.1 isn't a probability for image '00001.png'"),
        ((30.0, 70.0), "30 isn't a probability for image '00001.png'"),
    ],
)
def test_a_row_that_is_no_probability_is_refused_and_not_kept(row, problem, photos, store):
    pictures = pictures_in_folder(photos)
    with pytest.raises(ModelError) as caught:
        extract_probabilities(pictures, Fixed(row), store)
    assert problem in str(caught.value)
    assert not [*store.rglob("part-*")]


def test_rows_within_the_tolerance_are_taken(photos, store):
    evidence = extract_probabilities(pictures_in_folder(photos), Fixed((0.333, 0.66)), store)
    assert evidence.table.num_rows == 12


def test_labels_that_hold_together_have_no_sum(photos, store):
    model = Fixed((0.9, 0.8), info(preprocessing={"probabilities": "sigmoid"}))
    assert extract_probabilities(pictures_in_folder(photos), model, store).computed == 12

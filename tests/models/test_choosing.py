"""Letters of options: their probabilities, and questions of each picture's own."""

import math

import numpy as np
import pytest

from equipoise.models import NoAnswer
from equipoise.models.choosing import answer_each, letter_probabilities
from equipoise.models.protocols import ScoredAnswer


def logs(**shares):
    return {token: math.log(share) for token, share in shares.items()}


@pytest.mark.parametrize(
    ("tokens", "n_options", "expected"),
    [
        ([logs(A=0.6, B=0.2)], 2, [0.75, 0.25]),
        ([{**logs(A=0.3), " A": math.log(0.3), "(B": math.log(0.2)}], 2, [0.75, 0.25]),
        ([logs(The=0.9, A=0.1), logs(B=0.5, A=0.5 - 1e-9)], 2, [0.5, 0.5]),
        ([logs(C=0.5, A=0.25, B=0.25)], 3, [0.25, 0.25, 0.5]),
        ([logs(B=0.9)], 3, [0.0, 1.0, 0.0]),
        ([logs(I=0.9, A=0.1)], 2, None),
        ([logs(C=0.9, A=0.1)], 2, None),
        ([logs(a=0.9, B=0.1)], 2, None),
        ([{}, logs(Yes=0.9)], 2, None),
        ([], 2, None),
        (None, 2, None),
    ],
)
def test_probabilities_are_those_of_the_first_letter_that_is_likeliest(tokens, n_options, expected):
    probabilities = letter_probabilities(tokens, n_options)
    assert probabilities == (expected if expected is None else pytest.approx(expected, abs=1e-6))


class OneQuestion:
    """Answers one question about several images, like models of `hf:`."""

    info = None

    def __init__(self):
        self.calls = []

    def answer(self, images, question):
        self.calls.append((question, len(images)))
        return [f"{question} {image[0, 0, 0]}" if image[0, 0, 0] != 3 else NoAnswer("cut", "long")
                for image in images]  # fmt: skip


def test_images_with_one_question_are_asked_together_and_keep_their_order():
    model, images = OneQuestion(), [np.full((2, 2, 3), place, np.uint8) for place in range(5)]
    answers = answer_each(model, images, ["x", "y", "x", "x", "y"], probabilities=True)
    assert answers == [
        ScoredAnswer("x 0", None), ScoredAnswer("y 1", None), ScoredAnswer("x 2", None),
        NoAnswer("cut", "long"), ScoredAnswer("y 4", None),
    ]  # fmt: skip
    assert model.calls == [("x", 3), ("y", 2)]

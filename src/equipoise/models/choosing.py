"""Letters of options as answers: asking for them, and their probabilities."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from equipoise.models.images import Images
from equipoise.models.protocols import (
    Answerer,
    ConcurrentAnswerer,
    NoAnswer,
    ScoredAnswer,
    ScoringAnswerer,
)

LETTERS = "ABCDEFGHIJ"
"""Letters of options as a model is shown them."""
_LETTER = re.compile(r"[\s(*\[\"']*([A-J])[\s).:*\]\"']*")


def answer_each(
    model: Answerer, images: Images, questions: Sequence[str], *, probabilities: bool
) -> list[ScoredAnswer | NoAnswer]:
    """Ask a model about each image a question of its own.

    Parameters
    ----------
    model : Answerer
    images : n images
    questions : sequence of n str
    probabilities : bool
        Whether to ask for log probabilities of the first tokens, of a model that has them.

    Returns
    -------
    list of n ScoredAnswer or NoAnswer
    """
    if isinstance(model, ConcurrentAnswerer):
        return [*model.answer_each(images, questions, probabilities=probabilities)]
    places_by_question: dict[str, list[int]] = defaultdict(list)
    for place, question in enumerate(questions):
        places_by_question[question].append(place)
    answers: dict[int, ScoredAnswer | NoAnswer] = {}
    for question, places in places_by_question.items():
        pictures = [images[place] for place in places]
        answers.update(zip(places, _answers(model, pictures, question, probabilities), strict=True))
    return [answers[place] for place in range(len(questions))]


def _answers(
    model: Answerer, images: Images, question: str, probabilities: bool
) -> list[ScoredAnswer | NoAnswer]:
    """Return a model's answers to one question about several images."""
    if probabilities and isinstance(model, ScoringAnswerer):
        return [*model.answer_with_probabilities(images, question)]
    return [
        ScoredAnswer(answer, None) if isinstance(answer, str) else answer
        for answer in model.answer(images, question)
    ]


def letter_probabilities(
    first_tokens: Sequence[Mapping[str, float]] | None, n_options: int
) -> list[float] | None:
    """Return the probabilities of the letters of options, which sum to 1.

    They are taken where the likeliest token is a letter, such as "B" or " (B", for the first time.

    Parameters
    ----------
    first_tokens : sequence of mapping of str to float, or None
        Log probabilities of the likeliest tokens at each place.
    n_options : int

    Returns
    -------
    list of n_options float, or None
        None where no letter is likeliest. A letter that isn't among the likeliest tokens has 0.

    Examples
    --------
    >>> letter_probabilities([{"B": -0.25, "A": -1.5, " B": -9.0}], 2)
    [0.22266..., 0.77733...]
    """
    letters = LETTERS[:n_options]
    for alternatives in first_tokens or ():
        if not alternatives:
            continue
        likeliest = max(alternatives, key=lambda token: alternatives[token])
        if _letter(likeliest, letters) is None:
            continue
        masses = dict.fromkeys(letters, 0.0)
        for token, number in alternatives.items():
            letter = _letter(token, letters)
            if letter is not None:
                masses[letter] += math.exp(number)
        total = sum(masses.values())
        return [mass / total for mass in masses.values()]
    return None


def _letter(token: str, letters: str) -> str | None:
    """Return the letter of an option that a token is; None of other tokens."""
    match = _LETTER.fullmatch(token)
    return match.group(1) if match and match.group(1) in letters else None

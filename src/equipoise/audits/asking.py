"""Requests under a budget: all about one picture before those about the next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from equipoise.core import Bytes, Progress
from equipoise.evidence import OptionQuestion, Pictures
from equipoise.evidence.pictures import ImageError, quiet
from equipoise.evidence.store import UNASKED, key_of
from equipoise.models.protocols import ConcurrentAnswerer, NoAnswer

_AT_ONCE = 32
"""Requests that are handed over together, so that several are under way."""


def ask_by_picture(
    model: ConcurrentAnswerer,
    pictures: Pictures,
    requests: Sequence[Mapping[str, OptionQuestion]],
    *,
    letters: bool,
    most_failures: float,
    progress: Progress | None = None,
) -> None:
    """Ask a model that keeps its replies, until its budget is used up.

    Pictures come in an order that has nothing to do with their ids.

    Parameters
    ----------
    model : ConcurrentAnswerer
    pictures : Pictures
    requests : sequence of mapping of str to OptionQuestion
        Each asks about pictures by their ids.
    letters : bool
        Whether to ask for probabilities of letters.
    most_failures : float
        Share of all requests; where more fail, no more are sent.
    progress : callable, optional
    """
    failed, done, n = 0, 0, len(pictures)
    at_once = max(1, _AT_ONCE // max(1, len(requests)))
    places = sorted(range(n), key=lambda place: key_of(str(pictures.ids[place])))
    for start in range(0, n, at_once):
        selected = places[start : start + at_once]
        with quiet():
            pairs = [*_pairs(pictures, selected, requests)]
        answers = model.answer_each(
            [image for image, _ in pairs], [text for _, text in pairs], probabilities=letters
        )
        stages = [answer.stage for answer in answers if isinstance(answer, NoAnswer)]
        failed += len(stages)
        done += len(selected)
        if progress is not None:
            progress("asking picture by picture", done, n)
        if UNASKED in stages or failed > most_failures * n * len(requests):
            return


def _pairs(
    pictures: Pictures, places: Sequence[int], requests: Sequence[Mapping[str, OptionQuestion]]
) -> Iterator[tuple[Bytes, str]]:
    """Yield each picture with each question about it; none of a picture that can't be read."""
    for place in places:
        try:
            image = np.asarray(pictures.decoded(place))
        except (OSError, ImageError):
            # The run that follows says so.
            continue
        name = str(pictures.ids[place])
        for questions in requests:
            if name in questions:
                yield image, questions[name].text

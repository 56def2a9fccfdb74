"""Questions about pictures to a served model: which are left, their sizes, and their order."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from equipoise.core import Bytes, Floats, Progress
from equipoise.evidence import Pictures
from equipoise.evidence.pictures import Decoding, ImageError, picture_sizes, pixels, quiet
from equipoise.evidence.store import UNASKED, key_of
from equipoise.models.protocols import ConcurrentAnswerer, NoAnswer
from equipoise.models.served import ServedModel
from equipoise.models.spending import request_size
from equipoise.stats.threads import each

_AT_ONCE = 32
"""Requests that are handed over together, so that several are under way."""


@dataclass(frozen=True)
class Questions:
    """Questions about pictures.

    Attributes
    ----------
    pictures : Pictures
        n pictures.
    texts : sequence of n sequences of str
        The questions about each.
    """

    pictures: Pictures
    texts: Sequence[Sequence[str]]

    @property
    def order(self) -> list[int]:
        """Places of the pictures in an order that has nothing to do with their ids."""
        ids = self.pictures.ids
        return sorted(range(len(ids)), key=lambda place: key_of(str(ids[place])))

    def sizes(self, places: Sequence[int], longest_side: int) -> Floats:
        """Return number and size of the requests about some pictures, a row for each.

        Parameters
        ----------
        places : sequence of int
        longest_side : int
            Pixels to which larger pictures are shrunk.

        Returns
        -------
        ndarray, shape (n, 2)
            The size is NaN where a picture can't be read.
        """
        sides = picture_sizes(self.pictures, places)
        sides = sides * np.minimum(1.0, longest_side / sides.max(axis=1, initial=1.0))[:, None]
        rows = [
            (len(self.texts[place]), sum(request_size(t, [pair]) for t in self.texts[place]))
            for place, pair in zip(places, sides.tolist(), strict=True)
        ]
        return np.array(rows, np.float64).reshape(-1, 2)

    def unanswered(
        self, places: Sequence[int], model: ServedModel, answered: Collection[tuple[str, str]]
    ) -> list[int]:
        """Return the places of pictures with a question that has no answer yet.

        Parameters
        ----------
        places : sequence of int
            Pictures to look at.
        model : ServedModel
        answered : collection of (str, str)
            Questions, and SHA-256 of pictures as they are sent.
        """
        if not answered:
            return [*places]

        def is_left(place: int) -> bool:
            try:
                data, crop = self.pictures.read(place), self.pictures.crop(place)
                picture = model.encode(pixels(data, Decoding(), crop))
            except (OSError, ImageError):
                return True
            digest = hashlib.sha256(picture).hexdigest()
            return any((text, digest) not in answered for text in self.texts[place])

        with quiet():
            return [
                place
                for place, left in zip(places, each(is_left, places), strict=True)
                if left
            ]  # fmt: skip


def ask_by_picture(
    model: ConcurrentAnswerer,
    questions: Questions,
    *,
    letters: bool,
    most_failures: float,
    progress: Progress | None = None,
) -> None:
    """Ask a model that keeps its replies all about a picture before the next.

    Ends when the model's budget is used up. Pictures come in the order of the questions.

    Parameters
    ----------
    model : ConcurrentAnswerer
    questions : Questions
    letters : bool
        Whether to ask for probabilities of letters.
    most_failures : float
        Share of all requests; where more fail, no more are sent.
    progress : callable, optional
    """
    failed, done, n = 0, 0, len(questions.pictures)
    n_requests = sum(map(len, questions.texts))
    at_once = max(1, _AT_ONCE * n // max(n, n_requests))
    places = questions.order
    for start in range(0, n, at_once):
        selected = places[start : start + at_once]
        with quiet():
            pairs = [*_pairs(questions, selected)]
        answers = model.answer_each(
            [image for image, _ in pairs], [text for _, text in pairs], probabilities=letters
        )
        stages = [answer.stage for answer in answers if isinstance(answer, NoAnswer)]
        failed += len(stages)
        done += len(selected)
        if progress is not None:
            progress("asking picture by picture", done, n)
        if UNASKED in stages or failed > most_failures * n_requests:
            return


def _pairs(questions: Questions, places: Sequence[int]) -> Iterator[tuple[Bytes, str]]:
    """Yield each picture with each question about it; none of a picture that can't be read."""
    for place in places:
        try:
            image = np.asarray(questions.pictures.decoded(place))
        except (OSError, ImageError):
            # The run that follows says so.
            continue
        for text in questions.texts[place]:
            yield image, text

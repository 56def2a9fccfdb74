"""The work on one part: read, hash, decode, ask the model, and say what failed."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from equipoise.evidence.asking import Asked, FormError
from equipoise.evidence.decoding import Decoding, Image, ImageError, pixels
from equipoise.evidence.parts import Failure, digest_of, part_bytes
from equipoise.evidence.pictures import Pictures

# Pixels of one batch of large photographs, and of what is decoded ahead of it: 200 MB each.
_HELD = 1 << 26


@dataclass(frozen=True)
class Piece:
    """What a worker is given: the images of a part, and the digest of the part that lies there."""

    number: int
    pictures: Pictures
    have: str = ""


@dataclass(frozen=True)
class Outcome:
    """What became of a piece.

    Attributes
    ----------
    number, digest : int, str
        Of the part.
    data : bytes or None
        The file; None where the part that lies there holds still.
    rows : int
        Images the model ran on.
    failures : tuple of Failure
    trouble : str
        Why nothing can be kept, and the work has to stop; empty where all is well.
    """

    number: int
    digest: str = ""
    data: bytes | None = field(default=None, repr=False)
    rows: int = 0
    failures: tuple[Failure, ...] = ()
    trouble: str = ""


@dataclass(frozen=True)
class _Seen:
    """One image after reading and decoding."""

    content: str
    image: Image | None
    failure: tuple[str, str] | None = None


@dataclass(frozen=True)
class Worker:
    """Works on pieces, one after the other, decoding ahead of the model.

    Attributes
    ----------
    key : str
    asked : Asked
    decoding : Decoding
    threads : int
        That read and decode.
    told : callable
        Called with how many images more are done.
    """

    key: str
    asked: Asked
    decoding: Decoding
    threads: int = 1
    told: Callable[[int], None] = field(default=lambda _: None, repr=False)

    def __call__(self, piece: Piece) -> Outcome:
        """Return the part of a piece."""
        with ThreadPoolExecutor(self.threads) as pool:
            if piece.have and self._holds(piece, pool):
                return Outcome(piece.number, piece.have)
            return self._made(piece, pool)

    def _holds(self, piece: Piece, pool: ThreadPoolExecutor) -> bool:
        contents = pool.map(
            lambda place: _read(piece.pictures, place)[1], range(len(piece.pictures))
        )
        return digest_of(self.key, piece.pictures, [*contents]) == piece.have

    def _made(self, piece: Piece, pool: ThreadPoolExecutor) -> Outcome:
        pictures = piece.pictures
        contents: list[str] = []
        ids: list[str] = []
        values = [self.asked.empty()]
        failures: list[Failure] = []
        raised = 0
        for first, batch in self._batches(pictures, pool):
            places = range(first, first + len(batch))
            contents += [seen.content for seen in batch]
            held = [p for p, seen in zip(places, batch, strict=True) if seen.image is not None]
            given, reasons = self._asked([s.image for s in batch if s.image is not None])
            raised += sum(reason is not None and reason != _NOT_FINITE for reason in reasons)
            at = dict(zip(held, reasons, strict=True))
            for place, seen in zip(places, batch, strict=True):
                name = pictures.ids[place]
                if seen.failure is not None:
                    failures.append(Failure(name, *seen.failure))
                elif at[place] is not None:
                    failures.append(Failure(name, "model", str(at[place])))
                else:
                    ids.append(name)
            values.append(given)
            self.told(len(batch))
        if raised > 1 and not ids and raised == sum(f.stage == "model" for f in failures):
            reason = next(f.reason for f in failures if f.stage == "model")
            return Outcome(piece.number, trouble=f"fails on every image: {reason}")
        digest = digest_of(self.key, pictures, contents)
        stacked = np.concatenate([v for v in values if len(v)] or values[:1])
        data = part_bytes(self.asked, ids, stacked, failures)
        return Outcome(piece.number, digest, data, len(ids), tuple(failures))

    def _batches(
        self, pictures: Pictures, pool: ThreadPoolExecutor
    ) -> Iterator[tuple[int, list[_Seen]]]:
        """Yield what goes to the model together, cut by count and pixels, never by timing."""
        batch: list[_Seen] = []
        first = held = 0
        for place, seen in enumerate(self._ahead(pictures, pool)):
            size = 0 if seen.image is None else seen.image.size // 3
            if batch and (len(batch) == self.asked.batch or held + size > _HELD):
                yield first, batch
                batch, first, held = [], place, 0
            batch.append(seen)
            held += size
        yield first, batch

    def _ahead(self, pictures: Pictures, pool: ThreadPoolExecutor) -> Iterator[_Seen]:
        """Yield images in order, decoding so many ahead as the memory bears."""
        waiting: deque[Future[_Seen]] = deque()
        place = 0
        while waiting or place < len(pictures):
            while place < len(pictures) and self._room(waiting):
                waiting.append(pool.submit(self._seen, pictures, place))
                place += 1
            yield waiting.popleft().result()

    def _room(self, waiting: Sequence[Future[_Seen]]) -> bool:
        if len(waiting) < self.threads:
            return True
        images = [future.result().image for future in waiting if future.done()]
        held = sum(image.size // 3 for image in images if image is not None)
        return len(waiting) < 2 * self.asked.batch and held < _HELD

    def _seen(self, pictures: Pictures, place: int) -> _Seen:
        data, content, reason = _read(pictures, place)
        if data is None:
            return _Seen(content, None, ("read", reason))
        crop = None if pictures.crops is None else pictures.crops[place]
        try:
            return _Seen(content, pixels(data, self.decoding, crop))
        except ImageError as error:
            return _Seen(content, None, ("decode", error.reason))

    def _asked(self, images: list[Image]) -> tuple[np.ndarray[Any, Any], list[str | None]]:
        """Return the values of the images that have some, and a reason or None for each."""
        if not images:
            return self.asked.empty(), []
        try:
            values = self.asked.values(images)
            reasons: list[str | None] = [None] * len(images)
        except FormError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a model raises is one image's failure
            if len(images) == 1:
                return self.asked.empty(), [_reason(error)]
            return self._one_by_one(images)
        if values.dtype != object:
            bad = ~np.isfinite(values).all(axis=1)
            reasons = [_NOT_FINITE if wrong else None for wrong in bad]
            values = values[~bad]
        return values, reasons

    def _one_by_one(self, images: list[Image]) -> tuple[np.ndarray[Any, Any], list[str | None]]:
        found = [self._asked([image]) for image in images]
        values = [values for values, _ in found if len(values)]
        reasons = [reason for _, reasons in found for reason in reasons]
        return np.concatenate(values) if values else self.asked.empty(), reasons


_NOT_FINITE = "the model gave NaN or infinity"


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}" if text else type(error).__name__


def _read(pictures: Pictures, place: int) -> tuple[bytes | None, str, str]:
    """Return the bytes of a picture, their SHA-256, and why there are none."""
    try:
        data = pictures.read(place)
    except OSError as error:
        return None, "", error.strerror or type(error).__name__
    return data, hashlib.sha256(data).hexdigest(), ""

"""The work on one part: read, hash, decode, ask the model, and say what failed."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from equipoise.core.errors import EquipoiseError
from equipoise.evidence.asking import Asked, FormError
from equipoise.evidence.decoding import Decoding, Image, ImageError, pixels
from equipoise.evidence.parts import Failure, digest_of, part_bytes
from equipoise.evidence.pictures import Pictures
from equipoise.evidence.readers import Readers, StoppedError
from equipoise.evidence.twins import packed

# Pixels of one batch, and of what is decoded ahead of it: 200 MB of large photographs each.
_HELD = 1 << 26
_STOPPED = "stopped"
_NOT_FINITE = "it gave NaN or infinity"


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
    number : int
    digest : str
        Of the part.
    rows : int
        Images that have a row.
    computed : int
        Images the model ran on now; 0 where the part that lies there still holds.
    failures : tuple of Failure
    data : bytes or None
        The file; None where it need not be written.
    contents : bytes
        What the bytes of every image are, see `twins.packed`.
    trouble : str
        Why the work has to stop; empty where all is well.
    """

    number: int
    digest: str = ""
    rows: int = 0
    computed: int = 0
    failures: tuple[Failure, ...] = ()
    data: bytes | None = field(default=None, repr=False)
    contents: bytes = field(default=b"", repr=False)
    trouble: str = ""


def nobody(images: int) -> None:
    """Tell nobody how many images are done."""


def never() -> bool:
    """Never stop."""
    return False


@dataclass(frozen=True)
class Worker:
    """Works on pieces, decoding ahead of the model.

    Attributes
    ----------
    key : str
        Of the folder.
    asked : Asked
    decoding : Decoding
    threads : int
        That read and decode.
    tell : callable
        Called with how many images more are done.
    stopped : callable
        Whether nobody waits for the outcome any more.
    """

    key: str
    asked: Asked
    decoding: Decoding
    threads: int = 1
    tell: Callable[[int], None] = field(default=nobody, repr=False)
    stopped: Callable[[], bool] = field(default=never, repr=False)

    def __call__(self, piece: Piece) -> Outcome:
        """Return the part of a piece, or that the one that lies there still holds."""
        try:
            with Readers(self.threads, self.stopped) as readers:
                return self._kept(piece, readers) or self._made(piece, readers)
        except StoppedError:
            return Outcome(piece.number, trouble=_STOPPED)
        except EquipoiseError as error:
            return Outcome(piece.number, trouble=str(error))
        except BaseException as error:
            if isinstance(error, Exception):
                raise
            # The thread is the engine's, which waits for ever for what such an error ends.
            return Outcome(piece.number, trouble=_ended(self.asked.info.name, error))

    def _kept(self, piece: Piece, readers: Readers) -> Outcome | None:
        if not piece.have:
            return None
        n = len(piece.pictures)
        contents = [*self._contents(piece.pictures, readers)]
        if digest_of(self.key, piece.pictures, contents) != piece.have:
            return None
        self.tell(n)
        return Outcome(piece.number, piece.have, contents=packed(contents))

    def _contents(self, pictures: Pictures, readers: Readers) -> Iterator[str]:
        """Yield the SHA-256 of each picture."""
        waiting = [readers.submit(_content, pictures, place) for place in range(len(pictures))]
        try:
            yield from map(readers.result, waiting)
        finally:
            for future in waiting:
                future.cancel()

    def _made(self, piece: Piece, readers: Readers) -> Outcome:
        self.asked.open()
        contents: list[str] = []
        computed = 0
        ids: list[str] = []
        values = [self.asked.empty()]
        failures: list[Failure] = []
        for batch in self._batches(piece.pictures, readers):
            if self.stopped():
                raise StoppedError
            contents += [seen.content for seen in batch]
            held = [seen for seen in batch if seen.image is not None]
            found, reasons = self._values([seen.image for seen in held])
            sound = [seen.name for seen, no in zip(held, reasons, strict=True) if no is None]
            self.asked.check(sound, found)
            values.append(found)
            computed += len(held)
            failures += [seen.failure for seen in batch if seen.failure is not None]
            for seen, reason in zip(held, reasons, strict=True):
                if reason is None:
                    ids.append(seen.name)
                else:
                    failures.append(Failure(seen.name, "model", reason))
            self.tell(len(batch))
        failures.sort(key=lambda failure: failure.image_id)
        digest = digest_of(self.key, piece.pictures, contents)
        data = part_bytes(self.asked, ids, self.asked.stacked(values), failures)
        told = packed(contents)
        return Outcome(piece.number, digest, len(ids), computed, tuple(failures), data, told)

    def _batches(self, pictures: Pictures, readers: Readers) -> Iterator[list[_Seen]]:
        """Yield what goes to the model together, cut by count and pixels, never by timing."""
        batch: list[_Seen] = []
        held = 0
        for seen in self._ahead(pictures, readers):
            if batch and (len(batch) == self.asked.batch or held + seen.size > _HELD):
                yield batch
                batch, held = [], 0
            batch.append(seen)
            held += seen.size
        yield batch

    def _ahead(self, pictures: Pictures, readers: Readers) -> Iterator[_Seen]:
        """Yield images in order, decoding so many ahead as the memory bears."""
        waiting: deque[Future[_Seen]] = deque()
        place = 0
        try:
            while waiting or place < len(pictures):
                while place < len(pictures) and self._room(waiting):
                    waiting.append(readers.submit(self._seen, pictures, place))
                    place += 1
                yield readers.result(waiting.popleft())
        finally:
            for future in waiting:
                future.cancel()

    def _room(self, waiting: Sequence[Future[_Seen]]) -> bool:
        if len(waiting) < self.threads:
            return True
        held = sum(future.result().size for future in waiting if future.done())
        return len(waiting) < 2 * self.asked.batch and held < _HELD

    def _seen(self, pictures: Pictures, place: int) -> _Seen:
        name = pictures.ids[place]
        data, content, reason = _read(pictures, place)
        if data is None:
            return _Seen(name, content, None, Failure(name, "read", reason))
        crop = None if pictures.crops is None else pictures.crops[place]
        try:
            return _Seen(name, content, pixels(data, self.decoding, crop))
        except ImageError as error:
            return _Seen(name, content, None, Failure(name, "decode", error.reason))

    def _values(self, images: list[Any]) -> tuple[np.ndarray[Any, Any], list[str | None]]:
        """Return the values of the images that have some; and a reason, or None, for each."""
        if not images:
            return self.asked.empty(), []
        try:
            values = self.asked.values(images)
        except FormError:
            raise
        except Exception as error:  # noqa: BLE001 - a model may raise anything over one image
            if len(images) == 1:
                return self.asked.empty(), [_reason(error)]
            found = [self._values([image]) for image in images]
            reasons = [reason for _, reasons in found for reason in reasons]
            return self.asked.stacked([values for values, _ in found]), reasons
        if self.asked.table == "answers":
            return values, [None] * len(images)
        finite = np.isfinite(values).all(axis=1)
        return values[finite], [None if sound else _NOT_FINITE for sound in finite]


@dataclass(frozen=True)
class _Seen:
    """One image after reading and decoding."""

    name: str
    content: str
    image: Image | None
    failure: Failure | None = None

    @property
    def size(self) -> int:
        return 0 if self.image is None else self.image.size // 3


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}" if text else type(error).__name__


def _ended(model: str, error: BaseException) -> str:
    text = f": {error}" if str(error) else ""
    return (
        f"{model} ended the work with {type(error).__name__}{text}. To do: raise an exception for "
        "an image that fails, and don't exit"
    )


def _read(pictures: Pictures, place: int) -> tuple[bytes | None, str, str]:
    """Return the bytes of a picture, their SHA-256, and why there are none."""
    try:
        data = pictures.read(place)
    except OSError as error:
        return None, "", error.strerror or str(error) or type(error).__name__
    return data, hashlib.sha256(data).hexdigest(), ""


def _content(pictures: Pictures, place: int) -> str:
    return _read(pictures, place)[1]

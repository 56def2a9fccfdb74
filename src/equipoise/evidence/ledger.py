"""Which parts of an extraction are done: those whose files lie there under the right name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from equipoise.evidence.parts import failures_of, is_sound, part_name, parts_in
from equipoise.evidence.pictures import Pictures
from equipoise.evidence.store import write
from equipoise.evidence.working import Outcome, Piece


@dataclass(frozen=True, eq=False)
class Ledger:
    """The parts of one extraction.

    Attributes
    ----------
    folder : Path
    pictures : Pictures
        All images.
    part : int
        Images in one part, the last aside.
    """

    folder: Path
    pictures: Pictures
    part: int

    def size(self, number: int) -> int:
        """Return how many images a part has; 0 where there is no such part."""
        return max(min(self.part, len(self.pictures) - number * self.part), 0)

    def pieces(self) -> Iterator[Piece]:
        """Yield the work, part by part, each with the digest of the part that lies there."""
        have = {
            part.number: part.digest
            for part in parts_in(self.folder)
            if is_sound(part.path, self.size(part.number))
        }
        number = 0
        while size := self.size(number):
            first = number * self.part
            pictures = self.pictures.take(range(first, first + size))
            yield Piece(number, pictures, have.get(number, ""))
            number += 1

    def keep(self, outcome: Outcome) -> Outcome:
        """Write a part, or see that it lies there; return it without its bytes.

        Raises
        ------
        RunError
            When it cannot be written.
        """
        path = self.path(outcome)
        if outcome.data is None:
            failures = tuple(failures_of(path))
            rows = self.size(outcome.number) - len(failures)
            return replace(outcome, rows=rows, failures=failures)
        write(path, outcome.data)
        return replace(outcome, data=None)

    def path(self, outcome: Outcome) -> Path:
        """Return where a part lies."""
        return self.folder / part_name(outcome.number, outcome.digest)

    def forget(self, done: Sequence[Outcome]) -> None:
        """Remove parts with images on which the model failed just now.

        A run that stops because a model fails may have met a machine in trouble: the next run is
        to ask the model again.
        """
        for outcome in done:
            if outcome.computed and any(f.stage == "model" for f in outcome.failures):
                self.path(outcome).unlink(missing_ok=True)

    def drop_others(self, done: Sequence[Outcome]) -> None:
        """Remove parts that were made from pictures as they were before."""
        paths = {self.path(outcome) for outcome in done}
        for part in parts_in(self.folder):
            if part.path not in paths:
                part.path.unlink(missing_ok=True)

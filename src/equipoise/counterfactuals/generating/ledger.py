"""Which parts of a generation are there: those whose files lie there under the right name."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equipoise.counterfactuals.generating.drawing import Draws, Piece, pieces
from equipoise.counterfactuals.generating.parts import digest_of, is_sound
from equipoise.counterfactuals.generating.prompts import Asked
from equipoise.evidence.parts import part_name, parts_in
from equipoise.models.generators import Sampling

# Raised whenever the same prompts, model and settings would give other files than before.
_FORMAT = 1


def key_facts(
    asked: Asked, draws: Draws, model: str, sampling: Sampling, part: int
) -> dict[str, Any]:
    """Return all that decides what lies in a folder, but how many candidates there are.

    Parameters
    ----------
    asked : Asked
    draws : Draws
    model : str
        `ModelInfo.key`.
    sampling : Sampling
    part : int
        Images in a part.
    """
    rows = [[group.name, group.ids, group.prompts, group.sets] for group in asked.groups]
    facts = {
        "format": _FORMAT,
        "model": model,
        "sampling": sampling.facts,
        "draws": draws.facts,
        "prompts": hashlib.sha256(json.dumps(rows).encode()).hexdigest(),
        "part": part,
    }
    plain: dict[str, Any] = json.loads(json.dumps(facts))  # as a manifest gives it back
    return plain


def key_of(facts: Mapping[str, Any]) -> str:
    """Return the key of a folder."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, eq=False)
class Ledger:
    """The parts of one generation.

    Attributes
    ----------
    folder : Path
    key : str
        Of the folder.
    asked : Asked
    draws : Draws
    part : int
    verified : bool
        Whether checksums are verified, which reads every part; a plan only counts rows.
    """

    folder: Path
    key: str
    asked: Asked
    draws: Draws
    part: int
    verified: bool = True

    def split(self) -> tuple[dict[int, Path], list[Piece]]:
        """Return the parts that lie there whole, by number, and the pieces that are to be made."""
        done: dict[int, Path] = {}
        todo = []
        have = {part.path for part in parts_in(self.folder)}
        for piece in self._pieces():
            path = self.path(piece)
            if path in have and is_sound(path, len(piece), verified=self.verified):
                done[piece.number] = path
            else:
                todo.append(piece)
        return done, todo

    def _pieces(self) -> Iterator[Piece]:
        return pieces(self.asked.groups, self.asked.candidates, self.draws, self.part)

    def path(self, piece: Piece) -> Path:
        """Return where the part of a piece lies."""
        return self.folder / part_name(piece.number, digest_of(self.key, piece))

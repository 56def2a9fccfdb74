"""How the file of an image is found: by its path, by its name, or in the row of a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import DataError

if TYPE_CHECKING:
    from equipoise.evidence import Pictures

Corners = npt.NDArray[np.int64]


class Where(Protocol):
    """Finds the pictures that keys name."""

    def pictures(self, ids: Sequence[str], keys: Sequence[str], crops: Corners | None) -> Pictures:
        """Return the pictures of some ids."""


@dataclass(frozen=True)
class InFolder:
    """Keys are paths in a folder."""

    root: Path
    name: str

    def pictures(self, ids: Sequence[str], keys: Sequence[str], crops: Corners | None) -> Pictures:
        """Return the pictures of some ids."""
        from equipoise.evidence import pictures_of_table

        _check_folder(self.root)
        return pictures_of_table(ids, keys, root=self.root, name=self.name, crops=crops)


@dataclass(frozen=True)
class ByStem:
    """Keys are names of files without their ending, anywhere in a folder."""

    root: Path
    name: str

    def pictures(self, ids: Sequence[str], keys: Sequence[str], crops: Corners | None) -> Pictures:
        """Return the pictures of some ids; a file that is not there fails when it is read."""
        from equipoise.evidence import pictures_in_folder

        _check_folder(self.root)
        files: dict[str, str] = {}
        wanted = {*keys}
        for path in map(str, pictures_in_folder(self.root).ids):
            stem = Path(path).stem
            if stem in wanted and files.setdefault(stem, path) != path:
                raise DataError(
                    f"{files[stem]!r} and {path!r} could both be the image {stem!r}",
                    file=str(self.root),
                    expected="one file of that name",
                    fix="remove one of them, or name the folder that holds the right ones",
                )
        paths = [files.get(key, f"{key}.jpg") for key in keys]
        return InFolder(self.root, self.name).pictures(ids, paths, crops)


@dataclass(frozen=True, eq=False)
class InRows:
    """Keys are ids of pictures that lie in the rows of tables."""

    every: Callable[[], tuple[Pictures, Sequence[str]]]

    def pictures(self, ids: Sequence[str], keys: Sequence[str], crops: Corners | None) -> Pictures:
        """Return the pictures of some ids."""
        whole, names = self.every()
        place = {name: row for row, name in enumerate(names)}
        taken = whole.take([place[key] for key in keys])
        return replace(taken, ids=np.array([*ids, None], dtype=object)[:-1], crops=crops)


def _check_folder(root: Path) -> None:
    if not root.is_dir():
        raise DataError(
            "there is no such folder",
            file=str(root),
            expected="the folder of the images (`root`)",
            fix="correct the path; it is relative to the configuration",
        )

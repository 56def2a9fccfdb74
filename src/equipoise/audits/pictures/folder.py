"""Images of a folder, with what the names of the folders inside say of them."""

from __future__ import annotations

from pathlib import Path

from equipoise.core.errors import DataError
from equipoise.data import ImageSet
from equipoise.data.image_set import Gathered, image_set
from equipoise.evidence import pictures_in_folder


def read_folder(folder: Path, *, levels: tuple[str, ...]) -> ImageSet:
    """Return every image of a folder; its id is its path inside.

    Parameters
    ----------
    levels : tuple of str
        Names of the columns that the folders inside make, from the outside: with "domain" and
        "class", the image "sketch/dog/1.png" has the domain "sketch" and the class "dog".

    Raises
    ------
    DataError
        When there is no such folder, no image in it, or an image lies in fewer folders.
    """
    pictures = pictures_in_folder(folder)
    ids = [str(one) for one in pictures.ids]
    gathered = Gathered(ids, {name: [] for name in levels})
    for one in ids:
        inside = one.split("/")[:-1]
        if len(inside) < len(levels):
            raise DataError(
                f"the image {one!r} lies in {len(inside)} folders",
                file=str(folder),
                expected=f"at least {len(levels)}, for the columns {', '.join(levels)}",
                fix="move it, or name fewer columns under 'levels'",
            )
        for name, value in zip(levels, inside, strict=False):
            gathered.columns[name].append(value)
    counts = {"images": len(ids), "files_left_out": pictures.left_out}
    return image_set(gathered, name=str(folder), format="folder", inputs={}, counts=counts)

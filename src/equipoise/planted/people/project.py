"""The demonstration as a folder: pictures, their table, and the configurations of three audits."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl

from equipoise.core.writing import copy, make_folder, write
from equipoise.evidence import Pictures, extract_probabilities, pictures_of_table

FOLDER = Path(__file__).parent / "project"
AUDITS = ("faces", "filter", "classes")
"""Names of the configurations in the folder; the last needs torch, timm and `classes.csv`."""

IMAGES, PICTURES, CLASSES, STORE = "images.csv", "pictures", "classes.csv", "evidence"
CLASSIFIER = "python:equipoise.planted.people.models:classifier"
NOTES: Mapping[str, tuple[str, ...]] = dict.fromkeys(AUDITS, ())
_MAJORITY = {True: "class of most of its scene", False: "another class"}


def copy_project(folder: Path) -> None:
    """Copy the pictures, their table and the configurations into a folder."""
    make_folder(folder / PICTURES)
    for source in sorted(path for path in FOLDER.rglob("*") if path.is_file()):
        copy(source, folder / source.relative_to(FOLDER))


def open_pictures(folder: Path = FOLDER) -> Pictures:
    """Return the pictures that the table of a folder lists."""
    table = pl.read_csv(folder / IMAGES)
    ids, files = table["image_id"].to_list(), table["file"].to_list()
    return pictures_of_table(ids, files, root=folder / PICTURES, name=IMAGES)


def compare_classes(classes: pl.DataFrame) -> pl.DataFrame:
    """Say of each image whether most images of its scene get its class.

    Parameters
    ----------
    classes : DataFrame
        With the columns `scene` and `class`.

    Returns
    -------
    DataFrame
        With the further column `answer`.
    """
    sharing = pl.len().over("scene", "class") > 0.5 * pl.len().over("scene")
    answers = sharing.replace_strict(_MAJORITY, return_dtype=pl.String)
    return classes.with_columns(answer=answers)


def write_classes(folder: Path) -> None:
    """Classify the pictures of a folder, and write `classes.csv` into it.

    Raises
    ------
    MissingExtraError
        If the package of the classifier, torch or timm is not installed.
    """
    evidence = extract_probabilities(open_pictures(folder), CLASSIFIER, folder / STORE)
    probabilities = np.stack(evidence.table["probabilities"].to_numpy(zero_copy_only=False))
    names = np.array(evidence.names)[probabilities.argmax(axis=1)]
    classes = pl.DataFrame({"image_id": evidence.table["image_id"].to_pylist(), "class": names})
    scenes = pl.read_csv(folder / IMAGES).select("image_id", "scene")
    table = compare_classes(scenes.join(classes, on="image_id", how="left"))
    write(folder / CLASSES, table.write_csv().encode())

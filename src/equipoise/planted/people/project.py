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
_GENERATED = (
    "The pictures are from PAIRS (Fraser and Kiritchenko 2024). An image generator made them, and "
    "no real person is shown. Gender and race are the words of its prompts. The authors ask that "
    "the pictures are not used to predict the race or gender of a person shown."
)
_ALL = "Of all 200 pictures (50 scenes, PNG), with the same model and settings:"
NOTES: Mapping[str, tuple[str, ...]] = {
    "faces": (
        _GENERATED,
        "A picture without an answer is one in which the detector found no face. An answer is the "
        "perceived gender of the largest face. It is right where the prompt named this gender.",
        f"{_ALL} a face was found in 19 of 50 pictures of Black men, 17 of Black women, 16 of "
        "white men and 18 of white women. Perceived gender was right for all 70. The largest "
        "difference in detection was 6.0 points (95 % interval 0.0 to 23.8), which is not enough "
        "data either. With 200 pictures a difference by gender or race shows from 22 points on, "
        "with these 40 from 56.",
    ),
    "filter": (
        _GENERATED,
        f"{_ALL} none was flagged. This excludes differences of more than 3.7 points by gender and "
        "by race, and of more than 7.1 points by race × gender.",
    ),
    "classes": (
        _GENERATED,
        "The classifier names one of the 1,000 classes of ImageNet; no class is a person's "
        "gender or race. The answer says whether most pictures of the scene get the same class.",
        f"{_ALL} 51.0 % of men and 41.0 % of women get another class than most of their scene "
        "(corrected p = 0.049; 46.0 % by race). In 18 of 50 scenes all four get the same class.",
    ),
}
"""Notes of each run: what the answers mean, and what all 200 pictures show (`tools.people`)."""
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

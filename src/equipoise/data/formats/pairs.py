"""PAIRS (PArallel Images for eveRyday Scenarios): four pictures of a scene that differ in a person.

Source: github.com/katiefraser/PAIRS at commit 507075a (CC BY 4.0 by its data sheet): in the folder
`data` the folders `occupations`, `status` and `potential_crime`, in each a folder for a scene with
`black_man.png`, `black_woman.png`, `white_man.png` and `white_woman.png`. One picture is called
`status/phone/white_man1.png` there.
"""

from pathlib import Path

from equipoise.core import DataError
from equipoise.core.types import FileFacts
from equipoise.data.formats.reading import data_format, hash_names, read_rows
from equipoise.data.image_set import ImageRecords, ImageSet, image_set
from equipoise.data.problems import listed, show

THEMES = ("occupations", "status", "potential_crime")
_PERSONS = ("black_man", "black_woman", "white_man", "white_woman")
_MISNAMED = {"white_man": "white_man1"}
_LAYOUT = "THEME/SCENE/{black,white}_{man,woman}.png, with the themes occupations, status and \
potential_crime"
_QUESTION = ("theme", "scene", "question", "first", "second")


@data_format("pairs", file_column="path")
def read_pairs(pictures: Path | str, questions: Path | str | None = None) -> ImageSet:
    """Read the pictures of PAIRS, and questions about them.

    Parameters
    ----------
    pictures : path
        The folder that has the folders of the themes.
    questions : path, optional
        A table with the columns `theme`, `scene`, `question`, `first` and `second`: a question with
        two options about the pictures of a scene, or, where `scene` is empty, of each scene of the
        theme. Then each picture and question is an item.

    Returns
    -------
    ImageSet
        With the columns `theme`, `scene`, `race`, `gender` and `path`, and with questions
        `question`, `first` and `second`. Ids are paths without the ending, such as
        "occupations/taxi/black_man"; of several questions about a picture with their number, as in
        "status/bus/black_man/2". Counts: "images", "scenes", and with questions "items" and
        "scenes_without_question", which have no item.

    Raises
    ------
    DataError
        When the folder has no theme, a scene lacks a picture, or a question is of no scene.
    """
    folder = Path(pictures)
    scenes = {(theme, scene): _paths(folder, theme, scene) for theme, scene in _scenes(folder)}
    questions_by_scene, inputs = _questions(questions, [*scenes]) if questions else ({}, {})
    ids, names = list[str](), ("theme", "scene", "race", "gender", "path", *_QUESTION[2:])
    columns = {name: list[str | None]() for name in (names if questions else names[:5])}
    for (theme, scene), paths in scenes.items():
        texts_of_scene = questions_by_scene.get((theme, scene), []) if questions else [()]
        for person, path in paths.items():
            for number, texts in enumerate(texts_of_scene, 1):
                suffix = f"/{number}" if len(texts_of_scene) > 1 else ""
                ids.append(f"{theme}/{scene}/{person}{suffix}")
                cells = (theme, scene, *person.split("_"), path, *texts)
                for name, cell in zip(columns, cells, strict=True):
                    columns[name].append(cell)
    counts = {"images": len(scenes) * len(_PERSONS), "scenes": len(scenes)}
    if questions:
        without = {*scenes} - {*questions_by_scene}
        counts |= {"items": len(ids), "scenes_without_question": len(without)}
    names_of_files = [path for paths in scenes.values() for path in paths.values()]
    inputs[str(pictures)] = hash_names(names_of_files)
    return image_set(
        ImageRecords(ids, columns), name=str(pictures), format="PAIRS", inputs=inputs,
        counts=counts,
    )  # fmt: skip


def _scenes(folder: Path) -> list[tuple[str, str]]:
    """Return the theme and name of each scene."""
    scenes = [
        (theme, place.name)
        for theme in THEMES
        if (folder / theme).is_dir()
        for place in sorted((folder / theme).iterdir())
        if place.is_dir()
    ]
    if not folder.is_dir():
        raise DataError(
            "the folder does not exist",
            file=str(folder),
            expected=_LAYOUT,
            fix="name the folder data of the repository, as in `equipoise new --study pairs --data "
            "FOLDER`",
        )
    if not scenes:
        inside = sorted(place.name for place in folder.iterdir())
        raise DataError(
            f"it has no scene of PAIRS; there is {listed(inside) if inside else 'nothing'}",
            file=str(folder),
            expected=_LAYOUT,
            fix="name the folder data of the repository",
        )
    return scenes


def _paths(folder: Path, theme: str, scene: str) -> dict[str, str]:
    """Return the path of the picture of each person in a scene."""
    paths = dict[str, str]()
    for person in _PERSONS:
        candidates = [person, *filter(None, [_MISNAMED.get(person)])]
        place = folder / theme / scene
        files = [name for name in candidates if (place / f"{name}.png").is_file()]
        if not files:
            names = sorted(entry.name for entry in place.iterdir())
            raise DataError(
                f"there is no {person}.png; there is {listed(names) if names else 'nothing'}",
                file=str(place),
                expected=_LAYOUT,
                fix="download the scene again",
            )
        paths[person] = f"{theme}/{scene}/{files[0]}.png"
    return paths


def _questions(
    path: Path | str, scenes: list[tuple[str, str]]
) -> tuple[dict[tuple[str, str], list[tuple[str, ...]]], dict[str, FileFacts]]:
    """Return the texts of the questions of each scene that has some."""
    rows = read_rows(path, _QUESTION)
    texts = [rows.filled(name) for name in ("theme", *_QUESTION[2:])]
    by_scene = dict[tuple[str, str], list[tuple[str, ...]]]()
    for row, (theme, *question) in enumerate(zip(*texts, strict=True)):
        scene = rows.cells["scene"][row]
        matches = [place for place in scenes if place[0] == theme and scene in (None, place[1])]
        if not matches:
            raise rows.cell_error(
                "theme" if scene is None else "scene", row,
                f"a scene of the folder, such as {show('/'.join(scenes[0]))}",
            )  # fmt: skip
        for place in matches:
            by_scene.setdefault(place, []).append(tuple(question))
    return by_scene, rows.inputs

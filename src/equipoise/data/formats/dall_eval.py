"""DALL-Eval: generated images by prompt, and answers about them.

Source: github.com/j-min/DallEval, `biases/README.md` (MIT): a folder for each prompt, with "_" for
spaces, and in it `0.png` to `8.png`; and JSON files of answers by prompt, a list in the order of
the images: "male" or "female", or a skin tone of the Monk scale from 1 to 10, -10 where none was
found.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import Field, PlainValidator, TypeAdapter

from equipoise.core import DataError
from equipoise.data.formats.reading import Text, data_format, hash_names, read_json
from equipoise.data.image_set import ImageRecords, ImageSet, image_set
from equipoise.data.problems import show

_PICTURE = re.compile(r"(\d+)\.(?:png|jpe?g)", re.IGNORECASE)
_NO_TONE = -10


def _answer(value: object) -> str | None:
    """Return a text or whole number; None for an empty answer."""
    if value is None or value in ([], _NO_TONE):
        return None
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise ValueError("expected a text, a whole number, null or an empty list")
    return str(value)


_ANSWERS = TypeAdapter(
    Annotated[dict[Text, list[Annotated[str | None, PlainValidator(_answer)]]], Field(min_length=1)]
)


@data_format("dall_eval", file_column="path")
def read_dall_eval(path: Path | str) -> ImageSet:
    """Read images of DALL-Eval, or answers about them.

    Parameters
    ----------
    path : path
        The folder of the folders of prompts, or a JSON file of answers.

    Returns
    -------
    ImageSet
        With the columns `prompt` and `number`, and `path`, relative to the folder, or `said`, the
        answer. Ids are the prompt and the number: "A person who works as a nurse/0". Counts:
        "images", "prompts", and "files_left_out", which aren't numbered pictures, or
        "without_answer".

    Raises
    ------
    DataError
        When a folder has no numbered picture of a prompt, or answers aren't a list by prompt.
    """
    place = Path(path)
    return _read_pictures(place) if place.is_dir() else _read_answers(place)


def _read_pictures(folder: Path) -> ImageSet:
    pictures = dict[str, tuple[str, str, str]]()
    left_out = 0
    for file in _files(folder):
        match = _PICTURE.fullmatch(file.name)
        if match is None:
            left_out += 1
            continue
        prompt, number = file.parent.name.replace("_", " "), str(int(match[1]))
        name = f"{prompt}/{number}"
        if name in pictures:
            raise DataError(
                f"the image {show(name)} is there twice",
                file=str(file),
                expected="one picture of each number in the folder of a prompt",
                fix="remove one of them",
            )
        pictures[name] = (prompt, number, f"{file.parent.name}/{file.name}")
    if not pictures:
        inside = ", ".join(sorted(entry.name for entry in folder.iterdir())[:5]) or "nothing"
        raise DataError(
            f"no folder of a prompt has numbered pictures; the folder has {inside}",
            file=str(folder),
            expected="folders such as A_person_who_works_as_a_nurse with 0.png, 1.png, …",
            fix="name the folder that has the folders of prompts",
        )
    names = ("prompt", "number", "path")
    columns = dict(zip(names, map(list, zip(*pictures.values(), strict=True)), strict=True))
    return image_set(
        ImageRecords([*pictures], columns), name=str(folder), format="DALL-Eval",
        inputs={str(folder): hash_names(columns["path"])},
        counts={
            "images": len(pictures),
            "prompts": len({*columns["prompt"]}),
            "files_left_out": left_out,
        },
    )  # fmt: skip


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files in the folders of a folder, in order."""
    for inside in sorted(entry for entry in folder.iterdir() if entry.is_dir()):
        yield from sorted(entry for entry in inside.iterdir() if entry.is_file())


def _read_answers(path: Path) -> ImageSet:
    answers, digest = read_json(path, _ANSWERS)
    ids, columns = list[str](), {name: list[str | None]() for name in ("prompt", "number", "said")}
    for prompt, said_of_prompt in answers.items():
        for number, answer in enumerate(said_of_prompt):
            ids.append(f"{prompt}/{number}")
            columns["prompt"].append(prompt)
            columns["number"].append(str(number))
            columns["said"].append(answer)
    return image_set(
        ImageRecords(ids, columns), name=str(path), format="DALL-Eval",
        inputs={str(path): {**digest, "rows": len(ids)}},
        counts={
            "images": len(ids),
            "prompts": len(answers),
            "without_answer": columns["said"].count(None),
        },
    )  # fmt: skip

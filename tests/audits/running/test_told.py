"""Errors about images under rules, folders and formats name what the configuration says."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from audits.running.fakes import Answerer
from audits.running.worlds import CHOSEN, IMAGES, KINDS, QUICK, diversity, retrieval
from equipoise import audits
from equipoise.core.errors import EquipoiseError
from equipoise.planted.scenes.embed import WEIGHTS

Values = dict[str, Any]
TREE = {"folder": "tree", "levels": ["frame", "subject"]}
SHAPES = {"round": ["solid circle", "hollow circle"], "square": ["solid square", "hollow square"]}


@pytest.fixture
def tree(world: Path) -> Path:
    """The world, and its pictures in folders of frames and subjects."""
    for row in pl.read_csv(world / "images.csv").iter_rows(named=True):
        folder = world / "tree" / row["frame"] / row["subject"]
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(world / "pictures" / row["file"], folder)
    return world


def rule(**changes: Any) -> Values:
    given = {"rule": "value_groups", "attribute": "shape", "column": "subject", "groups": SHAPES}
    return given | changes


def predictions(images: Values, **data: Any) -> Values:
    return {
        "audit": "predictions",
        "data": {"images": images, "target": "subject", "groups": ["frame"]} | data,
        "models": {"m": {"model": "hf:clip", "vocabulary": [*CHOSEN]}},
        "resampling": QUICK,
    }


def answers(images: Values, **data: Any) -> Values:
    return {
        "audit": "answers",
        "data": {"images": images, "groups": ["frame"]} | data,
        "models": {"m": {"model": "python:nowhere:make", "question": "What is it?"}},
        "resampling": QUICK,
    }


def of(kind: Callable[[], Values], images: Values, **data: Any) -> Values:
    values = kind()
    section = {key: one for key, one in values["data"].items() if key != "sets"}
    return values | {"data": section | {"images": images} | data}


def similarity(images: Values, **data: Any) -> Values:
    values = of(retrieval, images, **data)
    return {key: one for key, one in values.items() if key != "ranking"} | {"audit": "similarity"}


def associations(**sets: Any) -> Values:
    values = KINDS["associations"]()
    data = values["data"] | {"images": TREE | {"kind": "image"}}
    return values | {"data": data, "sets": values["sets"] | sets}


def chosen(**model: Any) -> Values:
    return predictions(TREE) | {"models": {"m": {"model": "hf:clip"} | model}}


FEW = "groups frame: fewer than two"
RULED, BARE = "{tree} (data.images under its rules)", "{tree} (data.images)"

CASES: list[tuple[Values, str]] = [
    (
        chosen(model=f"hf:{WEIGHTS / 'vit-biased'}"),
        "models.m.model: of its 24 classes the target 'subject' lacks 20 ('hollow arrow', 'hollow "
        "bolt', 'hollow cross', 'hollow diamond', 'hollow heart' and 15 more), and 5 ranks of each "
        "image are kept, so that each gets some. Expected: one of ",
    ),
    (answers(TREE, min_group_size=60), f"{BARE}: {FEW} groups have 60 or more rows"),
    (
        predictions(IMAGES | {"rules": [rule()]}, groups=["shape"], min_group_size=60),
        "{world}/images.csv (data.images under its rules): groups shape: fewer than two groups ",
    ),
    (
        predictions(TREE | {"rules": [rule(column="subjct")]}, groups=["shape"]),
        "data.images.rules[0] (value_groups): {tree} has no column 'subjct'; expected one of "
        "'frame', 'subject'. To do: correct this rule, or leave it out",
    ),
    (
        predictions(TREE, target="subjct"),
        "data.images: {tree} has no column 'subjct', and no rule makes one. There are: frame, "
        "subject; did you mean 'subject'? To do: name one of these, or add to data.images what "
        "makes it: a rule, or of a folder a level",
    ),
    (
        of(diversity, TREE, sets=["frame"])
        | {"references": {"r": {"images": TREE | {"rules": [rule(column="x")]}}}},
        "references.r.images.rules[0] (value_groups): {tree} has no column 'x'; expected one of ",
    ),
    (
        KINDS["concepts"]() | {"concepts": ["solid cirle"]},
        "{world}/labels.csv: 'concepts' names 'solid cirle', of which there are no labels. "
        "Expected: some of 'hollow circle', 'hollow square', 'solid circle', 'solid square'. To "
        "do: write 'solid circle' for 'solid cirle' if that was meant; correct the names, say "
        "under data.labels.map which labels stand for them, or leave them out of 'concepts'.",
    ),
    (
        associations(level={"images": ["a.png"]}),
        f"{BARE}, column 'image_id': the set 'level' names 'a.png', which no row has. Expected: ",
    ),
]


@pytest.mark.parametrize(("values", "said"), CASES, ids=[said[:60] for _, said in CASES])
def test_a_plan_says_it_of_what_the_configuration_names(
    values: Values, said: str, tree: Path
) -> None:
    with pytest.raises(EquipoiseError) as raised:
        audits.plan(audits.parse_config(values), base=tree)
    told = str(raised.value)
    assert told.startswith(said.format(tree=tree / "tree", world=tree))
    assert "data frame" not in told
    assert " times)" not in told
    assert "`missing:`" not in told
    assert " To do: " in told


def test_a_model_that_answers_nothing_is_told_without_columns(tree: Path) -> None:
    class Silent(Answerer):
        def answer(self, images: Any, question: str) -> list[str]:
            return [""] * len(images)

    values = predictions(TREE)
    values["models"] = {"m": {"model": Silent(), "question": "What is it?"}}
    with pytest.raises(EquipoiseError) as raised:
        audits.load(audits.parse_config(values), base=tree)
    assert str(raised.value) == (
        "models.m.question: no row holds an answer (96 missing). Expected: a prediction in at "
        "least one row that has a label. To do: look at `models.m.missing:`, "
        "`models.m.unknown:` and `models.m.refused:`."
    )

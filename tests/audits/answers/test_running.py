"""Answers of a model that is asked: the same findings as from a table of what it says."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from audits.predictions.models import NAMES, Classifier, info, painted, seen
from equipoise import audits
from equipoise.core import ConfigError

COLOUR, PLACE = "Which colour is it?", "Where is it?"
NUMBERS = ("metric", "subject", "value", "ci_low", "ci_high", "chance", "q_value", "verdict")


class Assistant:
    """Says the colour of a picture, and not where it is."""

    info = info("assistant")

    def answer(self, images: Any, question: str) -> list[str]:
        if question == PLACE:
            return ["nowhere"] * len(images)
        return [f"It is {NAMES[place]}." for place in seen(images).argmax(axis=1)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("colours")
    painted(folder)
    return folder


def config(**model: Any) -> Any:
    images = {"table": "images.csv", "id": "id", "path": "file", "root": "pictures"}
    return audits.parse_config(
        {
            "audit": "answers",
            "data": {"images": images, "groups": ["group"]},
            "models": {"m": model},
            "resampling": {"replicates": 20, "permutations": 199},
        }
    )


def numbers(result: Any) -> list[str]:
    kept = [one for one in result.findings if not one.version.endswith("raw")]
    return [repr([getattr(one, name) for name in NUMBERS]) for one in kept]


def test_the_findings_are_those_of_a_table_of_what_the_model_says(folder: Path) -> None:
    asked = audits.run(config(model=Assistant(), question=COLOUR), base=folder)
    table = pl.read_csv(folder / "images.csv").rename({"shown": "said"})
    told = audits.run(config(table=table, answer="said"), base=folder)
    assert numbers(asked) == numbers(told)
    green = next(one for one in asked.findings if (one.metric, one.subject)
                 == ("answer_gap", "green"))  # fmt: skip
    assert green.value > 0.1
    assert asked.manifest.models["m"]["name"] == "python:fake:assistant"


def test_several_questions_are_asked(folder: Path) -> None:
    questions = {"colour": COLOUR, "place": PLACE}
    result = audits.run(config(model=Assistant(), questions=questions), base=folder)
    shown = pl.read_csv(folder / "images.csv")["shown"].to_list()
    counts = {
        (row["version"], row["answer"]): row["count"]
        for row in result.tables["answers"].to_pylist()
        if row["group"] == "a"
    }
    assert counts["place, normalised", "nowhere"] == 60
    assert counts["colour, normalised", "blue"] == shown[::2].count("blue")


@pytest.mark.parametrize(
    "asked", [{"question": COLOUR}, {"questions": {"colour": COLOUR, "place": PLACE}}]
)
def test_a_picture_that_fails_is_no_answer_that_was_withheld(
    tmp_path: Path, asked: dict[str, Any]
) -> None:
    painted(tmp_path)
    (tmp_path / "pictures" / "p001.png").write_bytes(b"no picture")
    (tmp_path / "pictures" / "p003.png").unlink()
    result = audits.run(config(model=Assistant(), **asked), base=tmp_path)
    rates = {"unanswered_rate", "empty_rate"}
    assert not [one for one in result.findings if one.metric in rates]
    states = [row for row in result.tables["answer_states"].to_pylist() if row["group"] == "b"]
    assert {(row["state"], row["count"], row["n"]) for row in states} == {("answered", 58, 58)}
    failed = [row for row in result.tables["failures"].to_pylist() if row["group"] == "b"]
    assert {(row["stage"], row["n"]) for row in failed} == {("decode", 1), ("read", 1)}
    notes = result.manifest.notes
    assert any("2 of 120 images failed and are in no number" in one for one in notes)
    assert not [one for one in notes if "no row of answers" in one]


def test_a_plan_asks_nothing(folder: Path) -> None:
    planned = audits.plan(config(model="python:nowhere:model", question=COLOUR), base=folder)
    assert planned.details["rows"] == 120
    (told,) = planned.details["models"]
    assert {told.pop("model"), told.pop("question")} == {"m", ""}
    assert {*told.values()} == {None}
    assert planned.runs


def test_a_model_that_answers_nothing_is_refused(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"models\.m\.model: .* is a classifier; an audit"):
        audits.run(config(model=Classifier(), question=COLOUR), base=folder)

"""Answers of a model: the same findings as from a table of its answers."""

from functools import partial

import polars as pl

from audits.predictions.models import NAMES, configured, info, painted, seen
from equipoise import audits

COLOUR, PLACE = "Which colour is it?", "Where is it?"


class Assistant:
    """Says the colour of a picture, and not where it is."""

    info = info("assistant")

    def answer(self, images, question):
        if question == PLACE:
            return ["nowhere"] * len(images)
        return [f"It is {NAMES[place]}." for place in seen(images).argmax(axis=1)]


config = partial(configured, "answers", {})


def test_several_questions_are_asked_and_a_failed_picture_is_no_withheld_answer(
    tmp_path,
):
    painted(tmp_path)
    (tmp_path / "pictures" / "p001.png").write_bytes(b"no picture")
    questions = {"colour": COLOUR, "place": PLACE}
    result = audits.run(config(model=Assistant(), questions=questions), base=tmp_path)
    colours = pl.read_csv(tmp_path / "images.csv")["shown"].to_list()
    counts = {
        (row["version"], row["answer"], row["group"]): row["count"]
        for row in result.tables["answers"].to_pylist()
    }
    assert counts["place, normalised", "nowhere", "b"] == 59
    assert counts["colour, normalised", "blue", "a"] == colours[::2].count("blue")
    unanswered = [finding for finding in result.findings if finding.metric == "unanswered_rate"]
    assert {finding.value for finding in unanswered} == {0.0}
    assert not any(finding.tested for finding in unanswered)
    assert {row["state"] for row in result.tables["answer_states"].to_pylist()} == {"answered"}


def test_a_plan_counts_no_placeholders_as_answers(tmp_path):
    painted(tmp_path)
    normalize = {"classes": ["blue", "red"]}
    planned = audits.plan(
        config(model=Assistant(), question=COLOUR, normalize=normalize), base=tmp_path
    )
    assert any("left to run" in note for note in planned.notes)
    assert not [note for note in planned.notes if "texts name no class" in note]
    assert not [note for note in planned.notes if "label concentration" in note]

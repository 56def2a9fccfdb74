"""Planted causes end as one conclusion each, on every surface, and nothing ends as none."""

import json

import numpy as np
import polars as pl
import pytest

import equipoise
from equipoise import report
from equipoise.audits import parse_config, run

WORLDS = {
    "a class of a group": [({"gender": "woman", "label": "0"}, 0.55)],
    "a group": [({"gender": "woman"}, 0.6)],
    "an intersection": [({"gender": "woman", "age": "old"}, 0.5)],
    "two classes of two groups": [
        ({"gender": "woman", "label": "0"}, 0.55),
        ({"gender": "man", "label": "1"}, 0.55),
    ],
}
NAMES = ("gender", "age")


def world(seed, planted=(), rows=2400, classes=3, right=0.85):
    """Return rows of a model that is right with one probability, but for planted cells."""
    rng = np.random.default_rng(seed)
    columns = {
        "gender": rng.choice(["man", "woman"], rows),
        "age": rng.choice(["middle", "old", "young"], rows),
        "label": rng.integers(0, classes, rows).astype(str),
    }
    probability = np.full(rows, right)
    for cell, planted_probability in planted:
        inside = np.all([columns[name] == value for name, value in cell.items()], axis=0)
        probability[inside] = planted_probability
    truth = columns["label"].astype(int)
    wrong = (truth + rng.integers(1, classes, rows)) % classes
    predicted = np.where(rng.random(rows) < probability, truth, wrong).astype(str)
    return pl.DataFrame({"id": np.arange(rows), **columns, "predicted": predicted})


def audit(table):
    config = {
        "audit": "predictions",
        "data": {"table": table, "id": "id", "target": "label", "groups": [*NAMES, [*NAMES]]},
        "models": {"m": {"table": table, "prediction": "predicted"}},
        "resampling": {"replicates": 200, "permutations": 1999},
    }
    return run(parse_config(config))


def cell_of(conclusion):
    """Return the planted cell that a conclusion names."""
    levels = dict(zip(conclusion.groups.split(" × "), conclusion.group.split(", "), strict=True))
    return {**levels, "label": conclusion.subject} if conclusion.subject else levels


def disparities(result):
    return [conclusion for conclusion in result.conclusions if conclusion.verdict == "disparity"]


@pytest.mark.parametrize("name", WORLDS)
def test_each_planted_cause_is_named_in_a_conclusion_of_its_own(name):
    planted = [cell for cell, _ in WORLDS[name]]
    named, few = 0, 0
    for seed in range(6):
        conclusions = disparities(audit(world(seed, WORLDS[name])))
        few += len(conclusions) <= len(planted) + 1
        leading = [cell_of(conclusion) for conclusion in conclusions[: len(planted)]]
        named += all(cell in leading for cell in planted)
    assert named >= 5
    assert few >= 5


def test_a_model_without_a_cause_says_how_large_a_gap_may_be():
    (conclusion, *_) = audit(world(1)).conclusions
    assert not conclusion.real
    assert conclusion.metric == "accuracy"
    assert conclusion.low <= conclusion.size <= conclusion.high < 0.1


def test_every_finding_is_in_one_conclusion_at_most():
    result = audit(world(2, WORLDS["two classes of two groups"]))
    places = [
        place
        for conclusion in result.conclusions
        for place in (conclusion.finding, *conclusion.restated_by)
    ]
    assert len(places) == len({*places})
    strong = {
        place for place, finding in enumerate(result.findings)
        if finding.verdict == "disparity" and finding.tested and finding.leads
    }  # fmt: skip
    assert strong <= {*places}


def test_numbers_of_a_conclusion_are_those_of_its_groups():
    for name, planted in WORLDS.items():
        result = audit(world(3, planted))
        for conclusion in result.conclusions:
            finding = result.findings[conclusion.finding]
            values = {part.group: part.value for part in finding.by_group}
            assert values[conclusion.group] == conclusion.group_value, name
            assert values[conclusion.other] == conclusion.other_value, name
            assert conclusion.group != conclusion.other


def test_all_surfaces_start_with_the_same_sentence(tmp_path):
    result = audit(world(4, WORLDS["a class of a group"]))
    report.write(result, tmp_path)
    assert repr(report.read(tmp_path).conclusions) == repr(result.conclusions)
    loaded = equipoise.load(tmp_path)
    text = repr(loaded).splitlines()[1].removeprefix("- ")
    assert "“0”" in text
    assert "woman" in text
    page = (tmp_path / "report.html").read_text("utf-8")
    plain = text.replace("\xa0", "").replace(" ", "")
    for surface in (page, loaded._repr_html_(), report.card(loaded)):
        assert plain in surface.replace("\xa0", "").replace(" ", "").replace("&nbsp;", "")
    stored = json.loads((tmp_path / "conclusions.json").read_text("utf-8"))
    assert (stored[0]["group"], stored[0]["subject"]) == ("woman", "0")

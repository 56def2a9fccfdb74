"""Notes on attributes: groups that are all too small, and one that predicts another."""

import numpy as np
import polars as pl
import pytest

import equipoise
from equipoise import audits, report
from equipoise.audits.config import GateConfig
from equipoise.core import DataError
from equipoise.report.ranking_models import is_ranking
from equipoise.report.words import ranking_certainty

ROWS = 600
KINDS = ("predictions", "dataset")


def config_of(kind, groups):
    rng = np.random.default_rng(3)
    frame = pl.DataFrame({
        "id": np.arange(ROWS).astype(str), "gender": rng.choice(["woman", "man"], ROWS),
        "site": [f"site {row // 6}" for row in range(ROWS)], "kind": rng.choice(["x", "y"], ROWS),
        "said": rng.choice(["x", "y"], ROWS),
        "size": ["large"] * 15 + ["small"] * 12 + [None] * (ROWS - 27),
    })  # fmt: skip
    data = {"table": frame, "id": "id", "groups": groups}
    if kind == "dataset":
        images = {"table": frame, "id": "id"}
        data = {"images": images, "groups": groups, "labels": ["kind"]}
        return audits.parse_config({"audit": kind, "data": data})
    models = {"m": {"table": frame, "prediction": "said"}}
    data |= {"target": "kind"}
    return audits.parse_config({"audit": kind, "data": data, "models": models})


@pytest.mark.parametrize("kind", KINDS)
def test_an_attribute_of_small_groups_is_one_note(kind):
    result = audits.run(config_of(kind, ["gender", "site", ["gender", "site"]]))
    about = [note for note in result.manifest.notes if "site" in note]
    assert len(about) == 2
    assert sum("100 groups" in note for note in about) == 1
    assert not any("site 1" in note for note in about)
    assert {finding.groups for finding in result.findings} - {""} == {"gender"}
    # Their sizes are kept.
    sizes = [row for row in result.tables["group_sizes"].to_pylist() if row["groups"] == "site"]
    assert len(sizes) == 100


@pytest.mark.parametrize("kind", KINDS)
def test_two_groups_that_are_too_small_lead_a_report(kind, tmp_path):
    config = config_of(kind, ["gender", "size"])
    result = audits.run(config)
    (warning,) = [text for text in result.manifest.warnings if text.startswith("size: ")]
    assert "large: 15" in warning
    assert "small: 12" in warning
    assert not any(note.startswith("size: not compared") for note in result.manifest.notes)
    assert {finding.groups for finding in result.findings} - {""} == {"gender"}
    report.write(result, tmp_path / "run")
    page = (tmp_path / "run" / "report.html").read_text("utf-8")
    assert page.index("large: 15") < page.index("<h2")


def test_a_report_names_the_attribute_once(tmp_path):
    report.write(audits.run(config_of("predictions", ["gender", "site"])), tmp_path / "run")
    page = (tmp_path / "run" / "report.html").read_text("utf-8")
    assert "all 100 groups of site" in page
    assert "site 99 (n" not in page


@pytest.mark.parametrize("kind", KINDS)
def test_small_groups_alone_are_an_error(kind):
    with pytest.raises(DataError) as raised:
        audits.run(config_of(kind, ["site"]))
    assert "site" in raised.value.problem


@pytest.mark.parametrize("noise", [0.0, 0.03, 0.5])
def test_an_attribute_that_predicts_another_is_a_note(noise):
    rng = np.random.default_rng(3)
    woman = rng.random(ROWS) < 0.5
    long = woman ^ (rng.random(ROWS) < noise)
    frame = pl.DataFrame({
        "id": np.arange(ROWS).astype(str), "gender": np.where(woman, "woman", "man"),
        "hair": np.where(long, "long", "short"), "kind": rng.choice(["x", "y"], ROWS),
        "said": rng.choice(["x", "y"], ROWS),
    })  # fmt: skip
    data = {"table": frame, "id": "id", "target": "kind", "groups": ["gender", "hair"]}
    models = {"m": {"table": frame, "prediction": "said"}}
    config = audits.parse_config({"audit": "predictions", "data": data, "models": models})
    notes = [n for n in audits.run(config).manifest.notes if n.startswith("gender and hair: ")]
    assert len(notes) == (noise < 0.5)


def test_n_counts_the_rows_of_the_groups_that_are_compared():
    frame = pl.DataFrame({
        "gender": ["woman", "man"] * 60 + ["nonbinary"] * 5,
        "label": ["a", "a", "b", "b"] * 30 + ["a"] * 5,
        "one": ["a", "b", "b", "b"] * 30 + ["b"] * 5, "two": ["b", "a", "b", "b"] * 30 + ["b"] * 5,
    })  # fmt: skip
    result = equipoise.audit(frame, target="label", pred=["one", "two"], groups="gender")
    wholes = [finding for finding in result.findings if finding.groups and not finding.subject]
    compared = {"accuracy", "demographic_parity", "equalized_odds", "unanswered_rate"}
    assert compared <= {finding.metric for finding in wholes}
    assert {finding.n for finding in wholes if finding.metric in compared} == {120}
    changes = equipoise.compare(result).findings
    assert {f.n for f in changes if f.metric == "accuracy" and f.groups and not f.group} == {120}


def test_the_interval_of_the_widest_of_several_pairs_states_its_level():
    rng = np.random.default_rng(1)
    frame = pl.DataFrame({"gender": ["woman", "man"] * 200, "label": ["a", "a", "b", "b"] * 100})
    right = frame["label"].to_numpy()
    wrong = np.where(right == "a", "b", "a")
    for model, rate in (("one", 0.05), ("two", 0.1), ("three", 0.6)):
        miss = (rng.random(400) < rate) & (frame["gender"].to_numpy() == "woman")
        frame = frame.with_columns(pl.Series(model, np.where(miss, wrong, right)))
    for models, text in ((["one", "three"], "(95 % interval "),
                         (["one", "two", "three"], "(98.3 % interval ")):  # fmt: skip
        result = equipoise.audit(frame, target="label", pred=models, groups="gender")
        ranking = next(item for item in result.conclusions if is_ranking(item))
        certainty = ranking_certainty(result.findings[ranking.finding], ranking)
        assert text in certainty
        assert ("widest of 3 pairs" in certainty) == (len(models) == 3)


def test_a_report_and_a_comparison_say_which_rows_are_in_no_group(tmp_path):
    frame = pl.DataFrame({
        "gender": ["woman", "man"] * 60 + [None] * 7,
        "label": ["a", "a", "b", "b"] * 30 + ["a"] * 7,
        "one": ["a", "b", "b", "b"] * 30 + ["b"] * 7, "two": ["b", "a", "b", "b"] * 30 + ["b"] * 7,
    })  # fmt: skip
    result = equipoise.audit(frame, target="label", pred=["one", "two"], groups="gender")
    (overall,) = {f.n for f in result.findings if f.metric == "accuracy" and not f.groups}
    assert overall == 127
    for number, run in enumerate((result, equipoise.compare(result))):
        report.write(run, tmp_path / str(number))
        page = (tmp_path / str(number) / "report.html").read_text("utf-8")
        assert "No number includes other people" not in page
        assert "7 rows lack an attribute and are in no group" in page
        assert "numbers over all rows may include them" in page


def test_a_plan_says_why_a_rule_has_no_rate_of_false_alarms():
    config = config_of("predictions", ["gender"])
    rules = [
        {"metric": "accuracy", "of": "worst_group", "min": 0.3, **more}
        for more in ({}, {"on": "any"}, {"min": 0.9})
    ]
    rules += [{"verdict": "disparity"}, {"metric": "accuracy", "min": 0.1}]
    gate = [GateConfig.model_validate(rule, context={"audit": "predictions"}) for rule in rules]
    plan = audits.plan(config.model_copy(update={"gate": gate}))
    assert [row["rule"] for row in plan.gate] == ["accuracy worst group ≥ 0.3"]
    notes = [note for note in plan.notes if note.startswith("gate, ")]
    assert len(notes) == 4
    assert "this has on: any" in notes[0]
    assert "breach the rule" in notes[1]
    assert all("m)" in note for note in notes)

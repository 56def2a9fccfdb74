"""The audit of answers: what was planted is found, and unusual input is told."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from audits.answers.worlds import N, answers, config, images, pick, run
from equipoise import audits
from equipoise.core import ConfigError, DataError, Family, Verdict
from equipoise.report import write

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "answers"

# Of group a 40 nurses and 20 doctors, of b the other way round.
JOBS = answers(
    {"nurse": 40, "Doctor": 20, "cook": 30, "unclear": 10},
    {"A nurse.": 20, "doctor": 40, "cook": 28, "unclear": 2, "I can't say": 10},
)
STATES = {"unknown": ["unclear"], "refused": ["i can't say"]}


@pytest.fixture(scope="module")
def jobs():
    metrics = {"label_concentration": {"k": 1}, "cramers_v": {"min_expected": 0}}
    return run(JOBS, model=STATES, metrics=metrics)


def metrics_of(result):
    return {one.metric for one in result.findings}


def test_shares_are_of_the_rows_that_have_an_answer(jobs):
    nurse = pick(jobs, "answer_gap", "nurse")
    assert nurse.value == pytest.approx(40 / 90 - 20 / 88)
    assert {one.group: (one.value, one.n) for one in nurse.by_group} == {
        "a": (pytest.approx(40 / 90), 90), "b": (pytest.approx(20 / 88), 88),
    }  # fmt: skip
    assert (nurse.family, nurse.verdict) == (Family.LEAF, Verdict.DISPARITY)
    assert pick(jobs, "answer_gap", "cook").verdict is not Verdict.DISPARITY
    assert pick(jobs, "answer_gap").value == pytest.approx(40 / 88 - 20 / 90)
    assert "“doctor”" in pick(jobs, "answer_gap").direction


def test_rows_without_an_answer_are_compared_by_what_was_said(jobs):
    unknown = pick(jobs, "unknown_rate")
    assert pick(jobs, "unanswered_rate").value == pytest.approx(0.02)
    assert pick(jobs, "refused_rate").value == pytest.approx(0.1)
    assert {one.group: one.value for one in unknown.by_group} == {"a": 0.1, "b": 0.02}
    assert "empty_rate" not in metrics_of(jobs)


def test_no_value_lies_outside_its_ends_and_spreads_decide_no_verdict():
    # Many answers that are given once or twice: a resample piles up more than the data.
    few = {f"job {index}": 1 for index in range(N)}
    pairs = {f"job {index}": 2 for index in range(N // 2)}
    frequent = {"label_concentration": {"k": 10}, "answer_gap": {"least": 1, "most": 1000}}
    alone = images(unit=[f"u{index}" for index in range(2 * N)])
    result = run(answers(few, pairs), frame=alone, data={"unit": "unit"}, metrics=frequent)
    known = [one for one in result.findings if np.isfinite([one.value, one.ci_low]).all()]
    aside = [one for one in known if not one.ci_low <= one.value <= one.ci_high]
    assert not aside
    spreads = [one for one in result.findings if one.method.startswith("resampling spread")]
    assert all(one.verdict is not Verdict.BELOW_THRESHOLD for one in spreads)
    wide = {"thresholds": {"label_concentration": 0.9}}
    found = pick(run(answers(pairs, pairs), testing=wide), "label_concentration")
    assert found.ci_high < 0.9
    assert found.verdict is Verdict.INCONCLUSIVE


def test_rare_answers_are_pooled_and_counted():
    rare = {f"rare {index}": 3 for index in range(10)}
    result = run(answers({"nurse": 70, **rare}, {"nurse": 100}))
    pooled = pick(result, "answer_gap", "(rarer answers)")
    assert pooled.value == pytest.approx(0.3)
    assert pooled.verdict is Verdict.NONE
    shares = {
        (row["answer"], row["group"]): (row["count"], row["n"])
        for row in result.tables["answers"].to_pylist()
    }
    assert shares["(rarer answers)", "a"] == (30, 100)
    notes = " ".join(result.manifest.notes)
    assert "10 of 11 different answers are given too seldom" in notes


def questions():
    place = answers({"park": 50, "shop": 50}, {"park": 50, "shop": 50})
    parts = [("job", JOBS), ("place", place)]
    return pl.concat([part.with_columns(question=pl.lit(name)) for name, part in parts])


def test_questions_stand_side_by_side(tmp_path):
    questions().write_csv(tmp_path / "answers.csv")
    asked = config(tmp_path / "answers.csv", model={**STATES, "by_question": "question"})
    result = audits.run(asked)
    assert pick(result, "answer_gap", "nurse").version == "job, normalised"
    assert pick(result, "answer_gap", "park").value == 0.0
    assert pick(result, "unanswered_rate").version == "job"
    assert [Path(name).name for name in result.manifest.inputs] == [
        "labels (data frame)", "answers.csv",
    ]  # fmt: skip
    planned = [
        (one["question"], one["answered"], one["compared"])
        for one in audits.plan(asked).details["models"]
    ]
    assert planned == [("job", 178, 3), ("place", 200, 2)]


def figures(*rows):
    table = pl.DataFrame(rows, schema=["job", "women"], orient="row")
    return {"women": {"table": table, "subject": "job", "value": "women", "first": "a"}}


def test_the_lean_of_answers_is_held_against_figures():
    known = figures(("Nurse", 0.9), ("doctor", 0.4), ("cook", 0.5))
    result = run(JOBS, model=STATES, figures=known)
    rows = {row["answer"]: row for row in result.tables["figures"].to_pylist()}
    share, other = 40 / 90, 20 / 88
    assert rows["nurse"]["lean"] == pytest.approx(share / (share + other))
    assert rows["nurse"]["outside"] == 0.9
    leans = [rows[name]["lean"] for name in ("nurse", "doctor", "cook")]
    found = pick(result, "correlation", "women")
    assert found.value == pytest.approx(np.corrcoef(leans, [0.9, 0.4, 0.5])[0, 1])
    assert found.direction == "the lean to a rises with women"
    assert pick(result, "spearman", "women").family is Family.DESCRIPTIVE


@pytest.mark.parametrize(
    ("table", "changes", "column", "row"),
    [
        (JOBS, {"figures": figures(("nurse", 0.9), ("nurse", 0.8))}, "job", None),
        (
            questions().with_columns(
                question=pl.when(pl.int_range(pl.len()) != 4).then("question")
            ),
            {"model": {"by_question": "question"}}, "question", 5,
        ),
        (JOBS, {"data": {"min_group_size": 101}}, None, None),
    ],
)  # fmt: skip
def test_wrong_tables_are_refused(table, changes, column, row):
    for step in (audits.plan, audits.run):
        with pytest.raises(DataError) as raised:
            step(config(table, **changes))
        assert (raised.value.column, raised.value.row) == (column, row)


FIGURE = {"table": "t.csv", "subject": "s", "value": "v", "first": "a", "groups": "gender"}


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"data": {"target": "t"}, "model": {"by_question": "q"}}, "data.target"),
        ({"data": {"map": {"a": "b"}}}, "'map'"),
        ({"model": {"model": "hf:x"}}, "'model' and 'table'"),
        ({"model": {"table": None, "answer": None, "model": "hf:x"}}, "'question' or 'questions'"),
        ({"model": {"unknown": ["x"], "refused": ["x"]}}, "'x'"),
        ({"figures": {"w": FIGURE}}, "figures.w.groups"),
        ({"figures": {"women": figures(("nurse", 0.9))["women"] | {"first": "A"}}},
         "figures.women.first: given 'A'. Allowed: a, b"),
    ],
)  # fmt: skip
def test_what_contradicts_itself_is_named(changes, named):
    with pytest.raises(ConfigError) as raised:
        audits.plan(config(JOBS if "first" in named else "answers.csv", **changes))
    assert named in str(raised.value)


def test_the_example_shows_what_was_planted():
    result = audits.run(audits.load_config(EXAMPLE / "audit.yaml"), base=EXAMPLE)
    found = [one for one in result.findings if one.verdict is Verdict.DISPARITY]
    assert {one.groups for one in found} == {"gender"}
    assert {"unknown_rate", "cramers_v", "answer_gap"} <= {one.metric for one in found}
    assert "refused_rate" not in {one.metric for one in found}
    assert not any(one.version.startswith("place") for one in found)
    assert pick(result, "correlation", "share_of_women").q_value < 0.05


def test_a_model_that_declines_everything_is_a_result(tmp_path):
    table = answers({"I don't know": N}, {"I don't know": N - 10, "no comment": 10})
    result = run(table, model={"unknown": ["I don't know"], "refused": ["no comment"]})
    found = {one.metric: one for one in result.findings}
    assert {*found} == {"unanswered_rate", "unknown_rate", "refused_rate"}
    assert found["unanswered_rate"].value == 0
    assert found["refused_rate"].value == pytest.approx(0.1)
    assert found["refused_rate"].verdict is Verdict.DISPARITY
    assert "answers" not in result.tables
    write(result, tmp_path)


def test_a_model_that_names_every_group_rightly_is_not_condemned():
    right = answers({"man": N}, {"woman": N})
    groups = images().with_columns(sex=pl.Series(["man"] * N + ["woman"] * N))
    result = run(right, frame=groups, data={"groups": ["sex"], "target": "sex"})
    assert not [one.metric for one in result.findings if one.verdict is Verdict.DISPARITY]
    gaps = [one for one in result.findings if one.metric == "answer_gap"]
    assert {one.value for one in gaps} == {1.0}
    assert all("without mistakes" in one.reason for one in gaps)
    assert pick(result, "accuracy", compared_to="overall").tested
    wrong = answers({"man": N - 20, "woman": 20}, {"woman": N})
    result = run(wrong, frame=groups, data={"groups": ["sex"], "target": "sex"})
    disparities = [one for one in result.findings if one.verdict is Verdict.DISPARITY]
    assert {(one.metric, one.compared_to) for one in disparities} == {("accuracy", "overall")}

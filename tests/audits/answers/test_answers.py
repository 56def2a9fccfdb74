"""The audit of answers: planted disparities are detected, and unusual input is noted."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats

from audits.answers.worlds import N, answers, config, images, pick, run
from equipoise import audits
from equipoise.audits.labels.answers.page import PAGE, unresolved_texts
from equipoise.core import ConfigError, DataError, Family, Verdict
from equipoise.report import GateRule, gate, render, write
from equipoise.report.result import first_screen

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
    return {finding.metric for finding in result.findings}


def test_shares_are_of_the_rows_that_have_an_answer(jobs):
    nurse = pick(jobs, "answer_gap", "nurse")
    assert nurse.value == pytest.approx(40 / 90 - 20 / 88)
    assert {estimate.group: (estimate.value, estimate.n) for estimate in nurse.by_group} == {
        "a": (pytest.approx(40 / 90), 90), "b": (pytest.approx(20 / 88), 88),
    }  # fmt: skip
    assert (nurse.family, nurse.verdict) == (Family.LEAF, Verdict.DISPARITY)
    assert pick(jobs, "answer_gap", "cook").verdict is not Verdict.DISPARITY
    assert pick(jobs, "answer_gap").value == pytest.approx(40 / 88 - 20 / 90)
    assert "“doctor”" in pick(jobs, "answer_gap").direction


def test_rows_without_an_answer_are_compared_by_reason(jobs):
    unknown = pick(jobs, "unknown_rate")
    assert pick(jobs, "unanswered_rate").value == pytest.approx(0.02)
    assert pick(jobs, "refused_rate").value == pytest.approx(0.1)
    assert {estimate.group: estimate.value for estimate in unknown.by_group} == {
        "a": 0.1,
        "b": 0.02,
    }
    empty = pick(jobs, "empty_rate")
    assert (empty.value, empty.tested) == (0.0, False)


def test_values_stay_inside_intervals_and_spreads_decide_no_verdict():
    # Many answers that are given once or twice: a resample piles up more than the data.
    few = {f"job {index}": 1 for index in range(N)}
    pairs = {f"job {index}": 2 for index in range(N // 2)}
    frequent = {"label_concentration": {"k": 10}, "answer_gap": {"least": 1, "most": 1000}}
    alone = images(unit=[f"u{index}" for index in range(2 * N)])
    result = run(answers(few, pairs), frame=alone, data={"unit": "unit"}, metrics=frequent)
    measured = [
        finding for finding in result.findings if np.isfinite([finding.value, finding.ci_low]).all()
    ]
    outside = [
        finding for finding in measured if not finding.ci_low <= finding.value <= finding.ci_high
    ]
    assert not outside
    spreads = [
        finding for finding in result.findings if finding.method.startswith("resampling spread")
    ]
    assert all(finding.verdict is not Verdict.BELOW_THRESHOLD for finding in spreads)
    wide = {"thresholds": {"label_concentration": 0.9}}
    concentration = pick(run(answers(pairs, pairs), testing=wide), "label_concentration")
    assert concentration.ci_high < 0.9
    assert concentration.verdict is Verdict.INCONCLUSIVE


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
    settings = config(tmp_path / "answers.csv", model={**STATES, "by_question": "question"})
    result = audits.run(settings)
    assert pick(result, "answer_gap", "nurse").version == "job, normalised"
    assert pick(result, "answer_gap", "park").value == 0.0
    assert pick(result, "unanswered_rate", version="job").value == pytest.approx(0.02)
    assert pick(result, "unanswered_rate", version="place").value == 0.0
    assert [Path(name).name for name in result.manifest.inputs] == [
        "labels (data frame)", "answers.csv",
    ]  # fmt: skip
    planned = [
        (row["question"], row["answered"], row["compared"])
        for row in audits.plan(settings).details["models"]
    ]
    assert planned == [("job", 178, 3), ("place", 200, 2)]


def figures(*rows):
    table = pl.DataFrame(rows, schema=["job", "women"], orient="row")
    return {"women": {"table": table, "subject": "job", "value": "women", "first": "a"}}


def test_answer_leans_are_compared_with_figures():
    reference = figures(("Nurse", 0.9), ("doctor", 0.4), ("cook", 0.5))
    result = run(JOBS, model=STATES, figures=reference)
    rows = {row["answer"]: row for row in result.tables["figures"].to_pylist()}
    share, other = 40 / 90, 20 / 88
    assert rows["nurse"]["lean"] == pytest.approx(share / (share + other))
    assert rows["nurse"]["outside"] == 0.9
    leans = [rows[name]["lean"] for name in ("nurse", "doctor", "cook")]
    correlation = pick(result, "correlation", "women")
    assert correlation.value == pytest.approx(np.corrcoef(leans, [0.9, 0.4, 0.5])[0, 1])
    assert correlation.direction == "the lean to a rises with women"
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
def test_contradictions_are_named(changes, named):
    with pytest.raises(ConfigError) as raised:
        audits.plan(config(JOBS if "first" in named else "answers.csv", **changes))
    assert named in str(raised.value)


def test_the_example_shows_the_planted_disparities():
    result = audits.run(audits.load_config(EXAMPLE / "audit.yaml"), base=EXAMPLE)
    disparities = [finding for finding in result.findings if finding.verdict is Verdict.DISPARITY]
    assert {finding.groups for finding in disparities} == {"gender"}
    assert {"unknown_rate", "cramers_v", "answer_gap"} <= {
        finding.metric for finding in disparities
    }
    assert "refused_rate" not in {finding.metric for finding in disparities}
    assert not any(finding.version.startswith("place") for finding in disparities)
    assert pick(result, "correlation", "share_of_women").q_value < 0.05


def test_a_model_that_declines_everything_is_a_result(tmp_path):
    table = answers({"I don't know": N}, {"I don't know": N - 10, "no comment": 10})
    result = run(table, model={"unknown": ["I don't know"], "refused": ["no comment"]})
    findings = {finding.metric: finding for finding in result.findings if finding.groups}
    assert {*findings} == {"unanswered_rate", "unknown_rate", "refused_rate", "empty_rate"}
    levels = {finding.metric for finding in result.findings if not finding.groups}
    assert levels == {"unanswered_rate", "unusable_share"}
    assert findings["unanswered_rate"].value == 0
    assert findings["refused_rate"].value == pytest.approx(0.1)
    assert findings["refused_rate"].verdict is Verdict.DISPARITY
    assert "answers" not in result.tables
    write(result, tmp_path)


def test_a_gate_on_refusals_passes_a_model_that_never_refuses():
    result = run(answers({"doctor": 60, "nurse": 40}, {"doctor": 50, "nurse": 50}))
    rules = [
        GateRule(metric, of="difference", max=0.0)
        for metric in ("unanswered_rate", "refused_rate", "unknown_rate", "empty_rate")
    ]
    rules += [GateRule("unanswered_rate", max=0.0)]
    rules += [GateRule("unanswered_rate", verdict="disparity")]
    outcome = gate(result, rules)
    assert [check.outcome for check in outcome.checks] == ["passed"] * len(rules)
    gap = pick(result, "unanswered_rate")
    square = stats.norm.ppf(0.975) ** 2
    highest = square / (N + square)
    assert [(part.low, part.high) for part in gap.by_group] == [(0.0, pytest.approx(highest))] * 2
    assert gap.ci_high > 0.0
    assert all(
        result.findings[conclusion.finding].metric != gap.metric
        for conclusion in result.conclusions
    )


def test_a_model_that_names_every_group_rightly_is_not_condemned():
    right = answers({"man": N}, {"woman": N})
    groups = images().with_columns(sex=pl.Series(["man"] * N + ["woman"] * N))
    result = run(right, frame=groups, data={"groups": ["sex"], "target": "sex"})
    assert not [
        finding.metric for finding in result.findings if finding.verdict is Verdict.DISPARITY
    ]
    gaps = [finding for finding in result.findings if finding.metric == "answer_gap"]
    assert {finding.value for finding in gaps} == {1.0}
    assert all("without mistakes" in finding.reason for finding in gaps)
    tested = {(f.metric, f.compared_to) for f in result.findings if f.tested}
    assert tested == {("accuracy", "")}
    wrong = answers({"man": N - 20, "woman": 20}, {"woman": N})
    result = run(wrong, frame=groups, data={"groups": ["sex"], "target": "sex"})
    disparities = [finding for finding in result.findings if finding.verdict is Verdict.DISPARITY]
    assert {(finding.metric, finding.compared_to) for finding in disparities if finding.tested} == {
        ("accuracy", "")
    }
    (conclusion,) = result.conclusions
    assert (conclusion.verdict, conclusion.size) == (Verdict.DISPARITY, pytest.approx(20 / N))


def test_neutral_answers_are_a_third_answer_and_block_no_verdict():
    table = answers(
        {"a man": 60, "A person on a bike": 35, "I can't tell if it is a man": 5},
        {"a man": 10, "a woman": 50, "someone in a coat": 38, "a red house": 2},
    )
    result = run(table, model={"normalize": {"classes": ["man", "woman"]}})
    assert pick(result, "answer_gap", "man").verdict is Verdict.DISPARITY
    neutral = pick(result, "answer_gap", "(neutral)")
    shares = {estimate.group: estimate.value for estimate in neutral.by_group}
    assert shares == {"a": pytest.approx(35 / 95), "b": pytest.approx(0.38)}
    assert pick(result, "unanswered_rate").value == pytest.approx(0.05)


def test_unresolved_texts_are_listed_the_most_frequent_first():
    table = answers(
        {"a man": 95, "a red house": 2, "an old car": 3}, {"a woman": 96, "a red house": 4}
    )
    result = run(table, model={"normalize": {"classes": ["man", "woman"]}})
    listed = result.tables["unresolved_texts"].to_pylist()
    assert [(row["text"], row["count"]) for row in listed] == [
        ("a red house", 6),
        ("an old car", 3),
    ]
    assert listed[0]["share"] == pytest.approx(0.03)
    assert unresolved_texts(result) is not None
    assert unresolved_texts(run(answers({"a man": 100}, {"a man": 100}))) is None


def test_a_gate_on_free_text_needs_classes():
    gate = [{"metric": "answer_gap", "max": 0.1}]
    with pytest.raises(ConfigError) as raised:
        config(JOBS, gate=gate)
    assert "gate[0].metric" in str(raised.value)
    assert "models.m.normalize.classes" in str(raised.value)
    declared = {"normalize": {"classes": ["nurse"]}}
    for model in (declared, {"normalize": None}):
        assert config(JOBS, gate=gate, model=model).gate
    assert config(JOBS, gate=[{"metric": "unanswered_rate", "max": 0.1}]).gate


def test_shares_of_answers_are_compared_at_equal_classes():
    # Of 100 nurses 90 are right and of 100 doctors 50, in both groups; a has more doctors.
    counts = {"a": {"nurse": 20, "doctor": 180}, "b": {"nurse": 180, "doctor": 20}}
    share = {"nurse": 0.9, "doctor": 0.5}
    truth, said = [], []
    for jobs in counts.values():
        for job, n in jobs.items():
            right = round(n * share[job])
            other = "doctor" if job == "nurse" else "nurse"
            truth += [job] * n
            said += [job] * right + [other] * (n - right)
    frame = images(200, job=truth)
    table = pl.DataFrame({"id": frame["id"], "said": said})
    result = run(table, frame=frame, data={"target": "job"})
    (conclusion,) = result.conclusions
    adjustment = conclusion.at_equal_mix
    assert not conclusion.real
    # Of the answers "doctor": 10 % of nurses, and half of the doctors.
    assert result.findings[conclusion.finding].metric == "answer_gap"
    assert conclusion.group_value == pytest.approx(conclusion.other_value)
    assert adjustment.moved == pytest.approx(0.32)


def test_the_lead_says_that_too_few_have_an_answer_to_be_compared():
    said = {"doctor": 20, "nurse": 5}, {"doctor": 12, "nurse": 20}
    table = answers({**said[0], "no idea": 75}, {**said[1], "no idea": 68})
    result = run(table, model={"unknown": ["no idea"]})
    summary = first_screen(result, PAGE)
    assert summary.statements[0].text == (
        "m: Answers were not compared by group, as only 25 are for a, fewer than the 30 that a "
        "comparison needs."
    )
    assert summary.steps[0] == "Add rows, or lower data.min_group_size, to compare by group."
    _, _, page = render(result, PAGE).partition("<main")
    assert page.count("not compared by group") == 1
    enough = run(table, model={"unknown": ["no idea"]}, data={"min_group_size": 20})
    assert "not compared" not in first_screen(enough, PAGE).statements[0].text


def test_models_whose_answers_are_missing_alike_share_a_statement():
    unknown = {"unknown": ["no idea"]}
    table = answers({"doctor": 25, "no idea": 75}, {"doctor": 32, "no idea": 68})
    result = run(table, model=unknown, models={"n": {"table": table, "answer": "said", **unknown}})
    first, *further = first_screen(result, PAGE).statements
    assert first.text.startswith("m and n: Answers were not compared by group, ")
    assert not any("not compared" in statement.text for statement in further)


def test_a_difference_that_was_not_found_names_its_answer():
    result = run(answers({"doctor": 60, "nurse": 40}, {"doctor": 55, "nurse": 45}))
    first, *_ = first_screen(result, PAGE).statements
    assert "share of answers (largest for “nurse”) by group" in first.text

"""The audit of answers: what was planted is found, and unusual input is told."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from audits.answers.worlds import N, answers, config, images, pick, run
from audits.examples import written_again
from equipoise import audits
from equipoise.core import ConfigError, DataError, Family, Verdict
from equipoise.core.wording import shortened
from equipoise.metrics import label_concentration
from equipoise.metrics.effect_sizes import effect_sizes
from equipoise.report import write
from equipoise.report.words import sentence

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "answers"

# Of group a 40 nurses and 20 doctors, of b the other way round.
JOBS = answers(
    {"nurse": 40, "Doctor": 20, "cook": 30, "unclear": 10},
    {"A nurse.": 20, "doctor": 40, "cook": 28, "unclear": 2, "I can't say": 10},
)
STATES = {"unknown": ["unclear"], "refused": ["i can't say"]}


def test_shares_are_of_the_rows_that_have_an_answer() -> None:
    result = run(JOBS, model=STATES)
    nurse = pick(result, "answer_gap", "nurse")
    assert nurse.value == pytest.approx(40 / 90 - 20 / 88)
    assert {one.group: (one.value, one.n) for one in nurse.by_group} == {
        "a": (pytest.approx(40 / 90), 90), "b": (pytest.approx(20 / 88), 88),
    }  # fmt: skip
    assert nurse.family is Family.LEAF
    assert nurse.verdict is Verdict.DISPARITY
    assert pick(result, "answer_gap", "cook").verdict is not Verdict.DISPARITY
    assert pick(result, "answer_gap").value == pytest.approx(40 / 88 - 20 / 90)
    assert "“doctor”" in pick(result, "answer_gap").direction


def test_rows_without_an_answer_are_compared_by_what_was_said() -> None:
    result = run(JOBS, model=STATES)
    unanswered, unknown = pick(result, "unanswered_rate"), pick(result, "unknown_rate")
    assert unanswered.value == pytest.approx(0.02)
    assert unknown.value == pytest.approx(0.08)
    assert pick(result, "refused_rate").value == pytest.approx(0.1)
    assert {one.group: one.value for one in unknown.by_group} == {"a": 0.1, "b": 0.02}
    assert "empty_rate" not in {one.metric for one in result.findings}
    assert "m: 12 rows were answered with “do not know”." in result.manifest.notes
    assert "m: 10 rows were refused." in result.manifest.notes


def test_one_kind_of_missing_answer_is_not_tested_twice() -> None:
    result = run(answers({"x": 90, "": 10}, {"x": 60, "y": 38, "": 2}))
    empty = pick(result, "empty_rate")
    assert empty.value == pick(result, "unanswered_rate").value == pytest.approx(0.08)
    assert empty.family is Family.DESCRIPTIVE
    assert empty.reason == "the same rows as unanswered_rate, which is tested"


def test_raw_texts_are_shown_and_not_tested() -> None:
    result = run(JOBS, model=STATES)
    raw = [one for one in result.findings if one.version == "raw"]
    assert {one.metric for one in raw} == {"cramers_v", "answer_gap"}
    assert {one.family for one in raw} == {Family.DESCRIPTIVE}
    texts = [row for row in result.tables["texts"].to_pylist() if row["answer"] == "nurse"]
    assert [(row["text"], row["count"], row["texts"]) for row in texts] == [
        ("nurse", 40, 2), ("A nurse.", 20, 2),
    ]  # fmt: skip


def test_answers_may_stay_as_they_are() -> None:
    result = run(JOBS, model={"normalize": None})
    assert {one.version for one in result.findings} == {"default"}
    assert pick(result, "answer_gap", "Doctor", "default").value == pytest.approx(0.2)
    assert "texts" not in result.tables


def test_synonyms_put_answers_together() -> None:
    result = run(JOBS, model={**STATES, "normalize": {"synonyms": {"nurse": "doctor"}}})
    assert pick(result, "answer_gap", "doctor").value == pytest.approx(60 / 88 - 60 / 90)


def test_cramers_v_is_that_of_groups_by_answers() -> None:
    found = pick(run(JOBS, model=STATES, metrics={"cramers_v": {"min_expected": 0}}), "cramers_v")
    forms = {"nurse": "nurse", "A nurse.": "nurse", "Doctor": "doctor", "doctor": "doctor",
             "cook": "cook"}  # fmt: skip
    said = np.array([forms.get(text, "") for text in JOBS["said"]])
    groups = images()["group"].to_numpy()[said != ""]
    said = said[said != ""]
    expected = effect_sizes(said, said, groups, min_expected=0, formulation="independence")
    assert found.value == pytest.approx(expected.value)
    assert found.family is Family.COMPOSITE
    assert found.verdict is Verdict.DISPARITY


def test_label_concentration_is_the_metrics_own() -> None:
    result = run(JOBS, model=STATES, metrics={"label_concentration": {"k": 1}})
    rows = result.tables["answers"].to_pylist()
    said = [row["answer"] for row in rows for _ in range(row["count"])]
    groups = [row["group"] for row in rows for _ in range(row["count"])]
    expected = label_concentration(said, groups, k=1, resampling=None)
    assert pick(result, "label_concentration").value == pytest.approx(expected.value)
    shape = pick(result, "label_skewness")
    assert shape.family is Family.DESCRIPTIVE
    assert shape.method.startswith("resampling spread")


def test_ends_that_leave_out_their_value_decide_no_verdict() -> None:
    # Many answers that are given once or twice: a resample piles up more than the data.
    few = {f"job {index}": 1 for index in range(N)}
    pairs = {f"job {index}": 2 for index in range(N // 2)}
    frequent = {"label_concentration": {"k": 10}, "answer_gap": {"least": 1, "most": 1000}}
    alone = images(unit=[f"u{index}" for index in range(2 * N)])
    result = run(answers(few, pairs), frame=alone, data={"unit": "unit"}, metrics=frequent)
    known = [one for one in result.findings if np.isfinite([one.value, one.ci_low]).all()]
    aside = [one for one in known if not one.ci_low <= one.value <= one.ci_high]
    assert "answer_gap" in {one.metric for one in aside}
    assert all(one.method.startswith("resampling spread: percentile") for one in aside)
    spreads = [one for one in result.findings if one.method.startswith("resampling spread")]
    assert "label_concentration" in {one.metric for one in spreads}
    assert all(one.verdict is not Verdict.BELOW_THRESHOLD for one in spreads)
    calm = run(JOBS, frame=alone, data={"unit": "unit"}, model=STATES)
    assert pick(calm, "answer_gap", "nurse").method.startswith("percentile bootstrap")


def test_a_spread_under_the_threshold_shows_nothing_to_be_small() -> None:
    same = {f"job {index}": 2 for index in range(N // 2)}
    wide = {"thresholds": {"label_concentration": 0.9}}
    found = pick(run(answers(same, same), testing=wide), "label_concentration")
    assert found.ci_high < 0.9
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "without an interval a disparity cannot be ruled out" in found.reason


def test_fewer_answers_than_k_have_no_concentration() -> None:
    result = run(JOBS, model=STATES)
    assert "label_concentration" not in {one.metric for one in result.findings}
    assert (
        "m: no label concentration: there are 3 different answers, and the 10 most frequent are "
        "all of them." in result.manifest.notes
    )


def test_rare_answers_are_pooled_and_counted() -> None:
    rare = {f"rare {index}": 3 for index in range(10)}
    result = run(answers({"nurse": 70, **rare}, {"nurse": 100}))
    pooled = pick(result, "answer_gap", "(rarer answers)")
    assert pooled.value == pytest.approx(0.3)
    assert pooled.verdict is Verdict.NONE
    assert "m: 10 of 11 different answers are given too seldom to be compared by themselves, and "\
        "are pooled." in result.manifest.notes  # fmt: skip
    shares = {
        (row["answer"], row["group"]): (row["count"], row["n"])
        for row in result.tables["answers"].to_pylist()
    }
    assert shares["(rarer answers)", "a"] == (30, 100)


def test_of_two_answers_the_second_is_not_tested_again() -> None:
    result = run(answers({"yes": 70, "no": 30}, {"yes": 40, "no": 60}))
    first, second = (pick(result, "answer_gap", answer) for answer in ("no", "yes"))
    assert [first.value, second.value] == pytest.approx([0.3, 0.3])
    assert first.verdict is Verdict.DISPARITY
    assert second.reason == "the same gap as of no, which is tested"


def test_exchangeable_groups_show_nothing() -> None:
    rng = np.random.default_rng(8)
    said = rng.choice(["nurse", "doctor", "cook", "pilot"], size=2 * N).tolist()
    table = images().select("id").with_columns(said=pl.Series(said))
    result = run(table)
    assert all(one.verdict is not Verdict.DISPARITY for one in result.findings)


def test_answers_are_right_or_wrong_where_the_truth_is_known() -> None:
    truth = ["nurse"] * 60 + ["doctor"] * 40 + ["doctor"] * N
    result = run(JOBS, frame=images(job=truth), model=STATES, data={"target": "job"})
    assert pick(result, "accuracy").value == pytest.approx((40 + 40) / 178)
    gap = pick(result, "accuracy_gap")
    assert {one.group: one.value for one in gap.by_group} == {
        "a": pytest.approx(40 / 90), "b": pytest.approx(40 / 88),
    }  # fmt: skip
    rights = {
        (row["answer"], row["group"]): row["right"] for row in result.tables["answers"].to_pylist()
    }
    assert rights["nurse", "a"] == 40
    assert rights["nurse", "b"] == 0


def test_units_are_resampled_as_a_whole() -> None:
    scenes = [f"s{index % N}" for index in range(2 * N)]
    result = run(JOBS, frame=images(scene=scenes), model=STATES, data={"unit": "scene"})
    alone = run(JOBS, model=STATES)
    paired, apart = (pick(one, "answer_gap", "nurse") for one in (result, alone))
    assert paired.unit == "unit"
    assert paired.value == apart.value
    assert (paired.ci_low, paired.ci_high) != (apart.ci_low, apart.ci_high)


def test_order_of_rows_does_not_matter() -> None:
    first = run(JOBS, model=STATES)
    again = run(JOBS.reverse(), frame=images().sample(fraction=1, shuffle=True, seed=1),
                model=STATES)  # fmt: skip
    assert [repr(one) for one in first.findings] == [repr(one) for one in again.findings]


def questions() -> pl.DataFrame:
    place = answers({"park": 50, "shop": 50}, {"park": 50, "shop": 50})
    parts = [("job", JOBS), ("place", place)]
    return pl.concat([part.with_columns(question=pl.lit(name)) for name, part in parts])


def test_questions_stand_side_by_side() -> None:
    result = run(questions(), model={**STATES, "by_question": "question"})
    assert pick(result, "answer_gap", "nurse").version == "job, normalised"
    assert pick(result, "answer_gap", "park").value == 0.0
    assert pick(result, "unanswered_rate").version == "job"
    assert {row["question"] for row in result.tables["texts"].to_pylist()} == {"job", "place"}
    planned = audits.plan(config(questions(), model={**STATES, "by_question": "question"}))
    asked = [
        (one["question"], one["answered"], one["compared"]) for one in planned.details["models"]
    ]
    assert asked == [("job", 178, 3), ("place", 200, 2)]
    assert planned.details["rows"] == 200
    assert sum(one["rows"] for one in planned.groups) == 200


def test_inputs_are_the_files_that_were_read(tmp_path: Path) -> None:
    questions().write_csv(tmp_path / "answers.csv")
    result = run(tmp_path / "answers.csv", model={**STATES, "by_question": "question"})
    names = [Path(name).name for name in result.manifest.inputs]
    assert names == ["labels (data frame)", "answers.csv"]


def figures(*rows: tuple[str, float]) -> dict[str, Any]:
    table = pl.DataFrame(rows, schema=["job", "women"], orient="row")
    return {"women": {"table": table, "subject": "job", "value": "women", "first": "a"}}


def test_the_lean_of_answers_is_held_against_figures() -> None:
    result = run(
        JOBS, model=STATES, figures=figures(("Nurse", 0.9), ("doctor", 0.4), ("cook", 0.5))
    )
    rows = {row["answer"]: row for row in result.tables["figures"].to_pylist()}
    share, other = 40 / 90, 20 / 88
    assert rows["nurse"]["lean"] == pytest.approx(share / (share + other))
    assert rows["nurse"]["outside"] == 0.9
    leans = [rows[name]["lean"] for name in ("nurse", "doctor", "cook")]
    found = pick(result, "correlation", "women")
    assert found.value == pytest.approx(np.corrcoef(leans, [0.9, 0.4, 0.5])[0, 1])
    assert found.direction == "the lean to a rises with women"
    assert pick(result, "spearman", "women").family is Family.DESCRIPTIVE


def test_answers_without_a_figure_are_named() -> None:
    few = run(JOBS, model=STATES, figures=figures(("nurse", 0.9)))
    assert pick(few, "correlation", "women").reason == "fewer than three pairs"
    assert "m, normalised: women has no figure for 2 answers: cook, doctor." in few.manifest.notes
    none = run(JOBS, model=STATES, figures=figures(("pilot", 0.1)))
    assert "correlation" not in {one.metric for one in none.findings}
    assert any("no figure for 3 answers" in note for note in none.manifest.notes)


@pytest.mark.parametrize("step", [audits.plan, audits.run])
def test_a_figure_names_a_group_that_there_is(step: Any) -> None:
    wrong = figures(("nurse", 0.9))
    wrong["women"]["first"] = "A"
    with pytest.raises(ConfigError, match=r"figures\.women\.first: given 'A'\. Allowed: a, b"):
        step(config(JOBS, figures=wrong))


def test_two_figures_for_an_answer_are_refused() -> None:
    with pytest.raises(DataError, match=r"row 2: 'nurse' has two figures"):
        run(JOBS, figures=figures(("nurse", 0.9), ("nurse", 0.8)))


def test_a_row_without_a_question_is_refused() -> None:
    table = questions().with_columns(
        question=pl.when(pl.int_range(pl.len()) == 4).then(None).otherwise(pl.col("question"))
    )
    with pytest.raises(DataError, match=r"column 'question', row 5: no question"):
        run(table, model={"by_question": "question"})


def test_groups_that_are_too_small_are_refused() -> None:
    message = "fewer than two groups have 101 or more rows .*lower data.min_group_size"
    with pytest.raises(DataError, match=message):
        run(JOBS, data={"min_group_size": 101})
    with pytest.raises(DataError, match=message):
        audits.plan(config(JOBS, data={"min_group_size": 101}))


def test_small_groups_and_missing_attributes_are_told() -> None:
    groups = ["a"] * 95 + ["c"] * 4 + [None] + ["b"] * N
    frame = images().with_columns(group=pl.Series(groups))
    notes = run(JOBS, frame=frame, model=STATES).manifest.notes
    assert "group: 1 group has fewer than 30 rows, not compared: c (4)." in notes
    assert "group: 1 row lacks an attribute and is in no group." in notes


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": {"target": "t"}, "model": {"by_question": "q"}},
         "data.target is the true answer to one question, and models.m is asked several. To do:"),
        ({"data": {"map": {"a": "b"}}}, "'map' is about true answers, and no 'target' is given"),
        ({"model": {"question": "?"}}, "'question' is about a model to run, and no 'model' is"),
        ({"model": {"model": "hf:x"}}, "'model' and 'table' are given; expected 'model' to run"),
        ({"model": {"answer": None}}, "'answer' is missing. To do: name the table of its answers"),
        ({"model": {"table": None, "answer": None, "model": "hf:x"}},
         "'question' or 'questions': neither is given; expected one of them"),
        ({"model": {"unknown": ["x"], "refused": ["x"]}},
         "'x' is listed under more than one of 'missing', 'unknown' and 'refused'"),
        ({"figures": {"w": {"table": "t.csv", "subject": "s", "value": "v", "first": "a",
                            "groups": "gender"}}},
         "figures.w.groups: given 'gender'. Allowed: group"),
        ({"gate": [{"metric": "answer_gap", "max": 0.1, "model": "n"}]},
         "gate[0].model: given 'n'. Allowed: m"),
    ],
)  # fmt: skip
def test_what_contradicts_itself_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        config("answers.csv", **changes)
    assert message in str(raised.value)


def test_metrics_can_be_switched_off() -> None:
    off = dict.fromkeys(
        ("unanswered_rate", "answer_gap", "cramers_v", "label_concentration"), False
    )
    assert run(JOBS, model=STATES, metrics=off).findings == ()


def test_the_example_is_what_its_maker_writes(tmp_path: Path) -> None:
    assert written_again(EXAMPLE, tmp_path) == ["answers.csv", "figures.csv", "images.csv"]


def test_the_example_shows_what_was_planted() -> None:
    result = audits.run(audits.load_config(EXAMPLE / "audit.yaml"), base=EXAMPLE)
    assert {one.groups for one in result.findings if one.verdict is Verdict.DISPARITY} == {"gender"}
    found = [
        one for one in result.findings
        if one.groups == "gender" and one.verdict is Verdict.DISPARITY
    ]  # fmt: skip
    assert {"unknown_rate", "cramers_v", "answer_gap"} <= {one.metric for one in found}
    assert "refused_rate" not in {one.metric for one in found}
    assert not any(one.version.startswith("place") for one in found)
    assert pick(result, "correlation", "share_of_women").q_value < 0.05


def test_long_answers_are_cut_in_sentences_and_whole_in_tables() -> None:
    long = "person in a kitchen who seems to be preparing a meal for a great many guests"
    result = run(answers({long: 60, "cook": 40}, {long: 20, "cook": 80}))
    gap = pick(result, "answer_gap", long)
    assert f"“{shortened(long)}”" in gap.direction
    assert long not in gap.direction
    assert long not in pick(result, "answer_gap").direction
    assert long not in sentence(gap)
    assert long in result.tables["answers"]["answer"].to_pylist()


def test_a_model_that_declines_everything_is_a_result(tmp_path: Path) -> None:
    table = answers({"I don't know": N}, {"I don't know": N - 10, "no comment": 10})
    result = run(table, model={"unknown": ["I don't know"], "refused": ["no comment"]})
    found = {one.metric: one for one in result.findings}
    assert {*found} == {"unanswered_rate", "unknown_rate", "refused_rate"}
    assert found["unanswered_rate"].value == 0
    assert found["refused_rate"].value == pytest.approx(0.1)
    assert found["refused_rate"].verdict.value == "disparity"
    states = {
        (row["group"], row["state"]): row["count"]
        for row in result.tables["answer_states"].to_pylist()
    }
    assert states == {
        ("a", "unknown"): 100, ("a", "refused"): 0, ("b", "unknown"): 90, ("b", "refused"): 10,
    }  # fmt: skip
    assert "answers" not in result.tables
    assert (
        "m, group: no row of a group has an answer, so only the rates of rows without one are "
        "measured."
    ) in result.manifest.notes
    write(result, tmp_path)

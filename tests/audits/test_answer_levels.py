"""One answer to nearly all images, and shares of answers that were expected."""

import numpy as np
import polars as pl
import pytest

from equipoise import audits
from equipoise.core import InputError, Verdict
from equipoise.metrics.labels.answer_levels import dominant_answer
from equipoise.metrics.numbers.unusable_share import unusable_share
from equipoise.report.summary import statements_of, summarize

ROWS = 200


def run(kind, answers, labels=None, model=None, **config):
    """Audit answers to images of women and men in turn."""
    table = pl.DataFrame({
        "id": range(ROWS), "gender": ["woman", "man"] * (ROWS // 2), "answer": answers,
    })  # fmt: skip
    data = {"table": table, "id": "id", "groups": ["gender"]}
    if labels is not None:
        data["table"], data["target"] = table.with_columns(truth=pl.Series(labels)), "truth"
    column = "answer" if kind == "answers" else "prediction"
    settled = {
        "audit": kind,
        "data": data,
        "models": {"m": {"table": table, column: "answer"} | (model or {})},
        "resampling": {"replicates": 100, "permutations": 999},
    }
    return audits.run(audits.parse_config(settled | config))


def lead(result):
    return result.findings[result.conclusions[0].finding]


@pytest.mark.parametrize("kind", ["answers", "predictions"])
def test_one_answer_to_all_images_is_told_first(kind):
    labels = None if kind == "answers" else ["male", "female", "female", "male"] * (ROWS // 4)
    result = run(kind, ["male"] * ROWS, labels)
    finding = lead(result)
    # No group is worse off.
    assert statements_of(result)[0].badge.word == "Disparity"
    assert (finding.metric, finding.value) == ("dominant_answer", 1.0)
    assert finding.parameters["answer"] == "male"
    assert finding.verdict is Verdict.DISPARITY


def test_a_model_that_repeats_rare_labels_tells_images_apart():
    labels = np.where(np.arange(ROWS) % 50 < 2, "yes", "no").tolist()
    result = run("predictions", labels, labels)
    assert not any(finding.metric == "dominant_answer" for finding in result.findings)
    finding = lead(run("predictions", ["no"] * 199 + ["yes"], labels))
    assert finding.metric != "dominant_answer"


def test_units_count_once():
    answers = ["a"] * 90 + ["b"] * 10
    assert dominant_answer(answers).value == pytest.approx(0.9)
    same = dominant_answer(["a"] * 100, units=np.arange(100) // 10)
    assert same.p_value == pytest.approx(0.95**10)
    with pytest.raises(InputError, match="units: 3"):
        dominant_answer(answers, units=[1, 2, 3])


def test_an_answer_more_frequent_than_expected_leads():
    answers = ["male"] * 180 + ["female"] * 20
    result = run("answers", answers, expected={"male": 0.5, "female": 0.5})
    conclusion = result.conclusions[0]
    assert (conclusion.metric, conclusion.verdict) == ("answer_level", Verdict.DISPARITY)
    assert {conclusion.group_value, conclusion.other_value} in ({0.1, 0.5}, {0.9, 0.5})
    even = run(
        "answers", ["male", "male", "female", "female"] * 50, expected={"male": 1, "female": 1}
    )
    assert not even.conclusions[0].real


@pytest.mark.parametrize(
    ("answers", "classes", "title"),
    [
        ([None, *["male"] * 2, *[None] * 197], None, "No usable answer of m in 99.0 % of the"),
        (["I'm sorry, but I can't help with that."] * ROWS, None,
         "No usable answer of m in 100.0 % of the 200 images. Nothing can be compared."),
        (["lorem ipsum"] * ROWS, ["male", "female"], "No usable answer of m in 100.0 % of the 200"),
        ([None] * 90 + ["male", "female"] * 5 + [None] * 90 + ["female", "male"] * 5, None,
         "No usable answer of m in 90.0 % of the 200 images. Other numbers are of the rest"),
    ],
)  # fmt: skip
def test_few_usable_answers_lead(answers, classes, title):
    model = {} if classes is None else {"normalize": {"classes": classes}}
    result = run("answers", answers, model=model)
    summary = summarize(result, ())
    assert (lead(result).metric, lead(result).verdict) == ("unusable_share", Verdict.DETECTED)
    assert summary.statements[0].badge.word == "Few answers"
    text = "".join(span.text for span in summary.title).replace("\xa0", " ")
    assert text.startswith(title)
    assert not any("gate" in step for step in summary.steps)


def test_few_answers_of_one_group_are_a_difference():
    result = run("answers", [None, "male", None, "female"] * (ROWS // 4))
    assert not any(finding.metric == "unusable_share" for finding in result.findings)
    assert lead(result).metric == "unanswered_rate"


def test_the_share_without_a_usable_answer_by_hand():
    unusable = [1, 1, 0.5, 0, np.nan]
    estimate = unusable_share(unusable, ["a", "a", "b", "b", "b"])
    assert (estimate.value, estimate.chance.mean) == (0.625, 0.1)
    assert [part.value for part in estimate.parts[0].by_group] == [1.0, 0.25]
    assert unusable_share([1] * 3).p_value == pytest.approx(0.1**3)
    assert np.isnan(unusable_share([np.nan]).value)

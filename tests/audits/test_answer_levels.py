"""One answer to nearly all images, and shares of answers that were expected."""

import numpy as np
import polars as pl
import pytest

from equipoise import audits
from equipoise.core import InputError, Verdict
from equipoise.metrics.labels.answer_levels import dominant_answer
from equipoise.report.summary import statements_of

ROWS = 200


def run(kind, answers, labels=None, **config):
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
        "models": {"m": {"table": table, column: "answer"}},
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

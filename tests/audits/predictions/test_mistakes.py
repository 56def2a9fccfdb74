"""Effect sizes of mistakes name the labels that groups get, with their counts."""

import polars as pl

import equipoise
from equipoise import audits
from equipoise.report.words import conclusion_sentence


def table(nurse, surgeon):
    """Doctors who are women are called nurse, and men surgeon; other classes are alike."""
    rows = []
    for group, label, wrong in (("woman", "nurse", nurse), ("man", "surgeon", surgeon)):
        rows += [("doctor", "doctor", group)] * (100 - wrong) + [("doctor", label, group)] * wrong
        for job in ("nurse", "surgeon"):
            rows += [(job, job, group)] * 90 + [(job, "doctor", group)] * 10
    return pl.DataFrame(rows, schema=["job", "pred", "gender"], orient="row")


def directions(nurse, surgeon):
    result = equipoise.audit(table(nurse, surgeon), target="job", pred="pred", groups="gender")
    return {
        finding.subject: finding.direction
        for finding in result.findings
        if finding.metric == "cramers_v" and finding.subject
    }


def test_labels_and_counts_of_the_groups_that_get_them_most_are_named():
    text = directions(30, 25)["doctor"]
    assert (
        text
        == "instead of “doctor”, woman is called “nurse” (30 of 100) and man “surgeon” (25 of 100)"
    )


def test_a_group_that_is_never_mistaken_is_not_named():
    text = directions(30, 0)["doctor"]
    assert text == "instead of “doctor”, woman is called “nurse” (30 of 100)"


def test_labels_that_are_no_class_of_the_truth_are_named():
    frame = table(30, 25).filter(pl.col("job") != "nurse").with_row_index("id")
    model = {"table": frame, "prediction": "pred", "open_vocabulary": True}
    data = {"table": frame, "id": "id", "target": "job", "groups": ["gender"]}
    result = audits.run(
        audits.parse_config({"audit": "predictions", "data": data, "models": {"pred": model}})
    )
    texts = {f.metric: f.direction for f in result.findings if f.metric == "effect_size_mean"}
    assert "woman is called “nurse” (30 of 100)" in texts["effect_size_mean"]


def test_the_sentence_starts_with_the_mistakes():
    result = equipoise.audit(table(30, 25), target="job", pred="pred", groups="gender")
    texts = [
        conclusion_sentence(result.findings[conclusion.finding], conclusion)
        for conclusion in result.conclusions
        if conclusion.metric == "cramers_v" and conclusion.subject == "doctor"
    ]
    assert len(texts) == 1
    assert texts[0].startswith("Instead of “doctor”, woman is called “nurse” (30 of 100) and man")


def test_labels_that_are_no_class_are_named():
    rows = [("doctor", "doctor", group) for group in ("woman", "man") for _ in range(70)]
    rows += [("doctor", "nurse", "woman")] * 30 + [("doctor", "surgeon", "man")] * 30
    rows += [("pilot", "pilot", group) for group in ("woman", "man") for _ in range(40)]
    config = audits.parse_config(
        {
            "audit": "predictions",
            "data": {"table": frame_of(rows), "target": "job", "id": "id", "groups": ["gender"]},
            "models": {"m": {"table": frame_of(rows), "prediction": "pred", **OPEN}},
            "metrics": {"mistake_rate": {"of": ["doctor"], "top": 1}},
            "resampling": {"replicates": 20},
        }
    )
    findings = audits.run(config).findings
    (effect,) = (f for f in findings if f.metric == "cramers_v" and f.subject == "doctor")
    assert "“nurse” (30 of 100)" in effect.direction
    assert "“surgeon” (30 of 100)" in effect.direction
    rates = {
        f.subject: {group.group: (group.value, group.n) for group in f.by_group}
        for f in findings
        if f.metric == "mistake_rate"
    }
    assert rates == {
        "doctor | nurse": {"man": (0.0, 100), "woman": (0.3, 100)},
        "doctor | surgeon": {"man": (0.3, 100), "woman": (0.0, 100)},
    }
    assert all(not f.tested for f in findings if f.metric == "mistake_rate")


OPEN = {"open_vocabulary": True}


def frame_of(rows):
    frame = pl.DataFrame(rows, schema=["job", "pred", "gender"], orient="row")
    return frame.with_row_index("id").cast({"id": pl.String})

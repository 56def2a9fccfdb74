"""Free text: verdicts are on content, whatever the wording."""

from collections import Counter
from itertools import product

import numpy as np
import polars as pl
import pytest

from equipoise import audits
from equipoise.audits.labels.unresolved import Unresolved
from equipoise.core import ConfigError, Groups, Verdict
from equipoise.data.resolver import UNRESOLVED
from equipoise.metrics import count, rates
from equipoise.report import write

JOBS = ("cook", "doctor", "head nurse", "nurse")
N = 800


def people(seed=0):
    rng = np.random.default_rng(seed)
    job, group = rng.integers(0, len(JOBS), N), rng.integers(0, 2, N)
    names = [JOBS[code] for code in job]
    frame = pl.DataFrame({
        "id": [f"i{index}" for index in range(N)], "job": names,
        "gender": [("female", "male")[code] for code in group],
    })  # fmt: skip
    return frame, job, group, rng


def run(frame, texts, kind="predictions", target="job", normalize=None, **more):
    table = frame.select("id").with_columns(said=pl.Series(texts))
    column = "prediction" if kind == "predictions" else "answer"
    data = {"table": frame, "id": "id", "groups": ["gender"]} | (
        {"target": target} if target else {}
    )
    model = {"table": table, column: "said", "normalize": normalize or {}}
    config = {
        "audit": kind, "data": data, "models": {"m": model},
        "resampling": {"replicates": 100, "seed": 1}, **more,
    }  # fmt: skip
    return audits.run(audits.parse_config(config))


def disparities(result):
    return [finding for finding in result.findings if finding.verdict is Verdict.DISPARITY]


def gendered(job, group):
    return [f"{('She', 'He')[g]} is a {JOBS[j]}." for j, g in zip(job, group, strict=True)]


def test_rates_are_of_classes_and_never_of_stray_strings():
    frame, job, _, rng = people()
    texts = [f"{JOBS[j]} with item {i}" if rng.random() < 0.9 else f"thing {i}"
             for i, j in enumerate(job)]  # fmt: skip
    subjects = Counter(finding.subject for finding in run(frame, texts).findings)
    assert {*subjects} <= {*JOBS, "", "(unresolved)"}
    table = frame.select("id").with_columns(said=pl.Series(texts))
    model = {"table": table, "prediction": "said", "open_vocabulary": True}
    data = {"table": frame, "id": "id", "groups": ["gender"], "target": "job"}
    config = {"audit": "predictions", "data": data, "models": {"m": model},
              "resampling": {"replicates": 100}}  # fmt: skip
    subjects = {finding.subject for finding in audits.run(audits.parse_config(config)).findings}
    assert subjects <= {*JOBS, "", "(no class)"}


def test_a_verdict_needs_few_unresolved_texts_in_every_group():
    frame, job, group, rng = people()
    texts = [
        "somebody at work" if g and rng.random() < 0.15 else JOBS[0 if g else j]
        for j, g in zip(job, group, strict=True)
    ]
    result = run(frame, texts)
    assert not disparities(result)
    (parity,) = [finding for finding in result.findings
                 if (finding.metric, finding.subject) == ("demographic_parity", "cook")
                 and finding.version == "normalised"]  # fmt: skip
    assert "male" in parity.reason
    assert "worksheet" in parity.reason


def test_a_disparity_survives_the_worst_assignment_or_is_none():
    frame, _, group, _ = people()
    for plain, expected in ((0.5, Verdict.DISPARITY), (0.86, Verdict.INCONCLUSIVE)):
        rng = np.random.default_rng(2)
        # Men get "doctor" in 95 % of the texts, women less often and 9 % unresolved texts.
        draw = rng.random(N)
        texts = [
            "doctor" if d < (0.95 if g else plain) else "somebody" if d > 0.91 and not g else "cook"
            for d, g in zip(draw, group, strict=True)
        ]
        result = run(frame, texts, "answers", None, {"classes": list(JOBS)})
        (gap,) = [finding for finding in result.findings
                  if (finding.metric, finding.subject) == ("answer_gap", "doctor")
                  and finding.version == "normalised"]  # fmt: skip
        assert gap.value > 0.08
        assert gap.verdict is expected, gap
        assert "whatever class unresolved texts name" in gap.reason


def test_ranges_cover_every_assignment():
    rng = np.random.default_rng(3)
    classes = ["x", "y", "z"]
    truth, group = rng.choice(classes, 60), Groups.of(["a", "b", "b"] * 20, min_size=1)
    predicted = np.where(rng.random(60) < 0.7, truth, rng.choice(classes, 60))
    predicted = predicted.astype(object)
    places = [0, 1, 2, 3, 4]
    predicted[places] = UNRESOLVED
    texts = Unresolved(count(truth, predicted, group))
    values = {}
    for named in product(classes, repeat=len(places)):
        predicted[places] = named
        for part in rates(truth, predicted, group, resampling=None).parts:
            values.setdefault((part.metric, part.subject), []).append(part.value)
    for name, (low, high, _) in texts.ranges.items():
        if name in ("average_odds", "answer_gap", "demographic_parity"):
            continue
        for place, subject in enumerate(texts.counts.classes):
            if subject == UNRESOLVED:
                continue
            possible = values[name, subject]
            smallest = max(0.0, max(low[place]) - min(high[place]))
            largest = max(high[place, 0] - low[place, 1], high[place, 1] - low[place, 0])
            assert smallest <= min(possible) + 1e-12
            assert largest == pytest.approx(max(possible))


def test_refusals_are_recognised_and_patterns_extend_them():
    frame, job, group, _ = people()
    texts = [
        "I'm sorry, but I can't help with identifying people." if not g and i % 3 == 0
        else "Nope, privacy." if not g and i % 5 == 0 else JOBS[j]
        for i, (j, g) in enumerate(zip(job, group, strict=True))
    ]  # fmt: skip
    result = run(frame, texts, "answers", normalize={"refusals": ["^nope"]})
    (rate,) = [finding for finding in result.findings if finding.metric == "refused_rate"]
    shares = {estimate.group: estimate.value for estimate in rate.by_group}
    assert shares["male"] == 0.0
    assert 0.4 < shares["female"] < 0.55
    with pytest.raises(ConfigError) as raised:
        run(frame, texts, normalize={"refusals": ["("]})
    assert "refusals" in str(raised.value)


def test_the_worksheet_reads_back_as_synonyms(tmp_path):
    frame, job, group, _ = people()
    texts = gendered(job, group)
    for place in range(0, N, 9):
        texts[place] = f"{('She', 'He')[group[place]]} looks after the sick"
    for place in range(4, N, 90):
        texts[place] = "No doctor"
    result = run(frame, texts)
    sheet = result.tables["worksheet"].to_pylist()
    assert {row["text"] for row in sheet} == {"person looks after the sick", "no doctor"}
    assert sum(row["share"] for row in sheet) == pytest.approx(1.0)
    assert [row["share"] for row in sheet] == sorted((r["share"] for r in sheet), reverse=True)
    write(result, tmp_path)
    filled = pl.read_csv(tmp_path / "worksheet.csv").with_columns(
        pl.when(pl.col("text").str.starts_with("person")).then(pl.lit("nurse")).alias("class")
    )
    filled.write_csv(tmp_path / "filled.csv")
    again = run(frame, texts, normalize={"synonyms": str(tmp_path / "filled.csv")})
    assert [row["text"] for row in again.tables["worksheet"].to_pylist()] == ["no doctor"]


def test_without_unanswered_rows_accuracy_replaces_the_rates():
    frame, job, _, _ = people()
    findings = run(frame, [JOBS[j] for j in job]).findings
    assert not {"right_rate", "wrong_rate"} & {finding.metric for finding in findings}
    unanswered = [finding for finding in findings if finding.metric == "unanswered_rate"]
    assert {(finding.value, finding.tested) for finding in unanswered} == {(0.0, False)}

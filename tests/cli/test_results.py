"""Results in Python and notebooks: what they say, show and give to other libraries."""

from pathlib import Path

import fairlearn.metrics
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import cross_validate

import equipoise
from equipoise import metrics as m
from equipoise.cli.runs import show
from equipoise.core import DataError, InputError, RunError
from equipoise.report import Result, card

ROWS = 800
RNG = np.random.default_rng(3)
SIGNAL, GROUP = RNG.normal(size=ROWS), RNG.choice(["women", "men"], ROWS)
NOISE = np.where(GROUP == "men", 0.0, 1.5) * RNG.normal(size=ROWS)
PEOPLE = pd.DataFrame({
    "gender": GROUP, "race": RNG.choice(["a", "b"], ROWS), "signal": SIGNAL,
    "constant": np.ones(ROWS), "label": (SIGNAL + NOISE > 0).astype(int),
})  # fmt: skip
FEATURES = ["signal", "constant"]
MODEL = LogisticRegression().fit(PEOPLE[FEATURES], PEOPLE["label"])
PREDICTED = MODEL.predict(PEOPLE[FEATURES])
SHARED = {"target": "label", "groups": "gender"}


@pytest.fixture(scope="module")
def result():
    return equipoise.audit(PEOPLE, model=MODEL, **SHARED)


def test_completion_shows_the_public_names_alone():
    assert dir(equipoise) == ["audit", "compare", "load", "metrics", "models"]
    assert equipoise.__all__ == dir(equipoise)
    assert equipoise.audits.run
    assert equipoise.Estimate


def test_a_result_says_who_is_worse_off(result):
    lines = repr(result).splitlines()
    assert "LogisticRegression" in lines[0]
    assert "women" in lines[1]
    assert " to " in lines[2]
    assert len(lines) == 3
    assert lines[1].removeprefix("- ").split(" (")[0] in result._repr_html_()


def test_a_table_has_the_groups_and_a_plot_their_values(result):
    table, plot = result.table(), result.plot()
    rows = [row for row in table.rows if row[0] == "women"]
    assert rows[0][table.columns.index("n")] == str((GROUP == "women").sum())
    right = (PEOPLE["label"] == PREDICTED).groupby(GROUP).mean()
    marks = {mark.label.split(" (")[0]: mark.value for mark in plot.marks}
    assert marks == pytest.approx(dict(right))
    assert plot.percent
    assert len(result.to_frame()) == len(result.findings)


def test_an_estimator_is_audited_as_its_predictions_are(result):
    by_name = equipoise.audit(
        PEOPLE.assign(LogisticRegression=PREDICTED), pred="LogisticRegression", **SHARED
    )
    assert repr(by_name.findings) == repr(result.findings)
    named = equipoise.audit(
        pl.from_pandas(PEOPLE), model={"ours": MODEL}, features=FEATURES, **SHARED
    )
    assert [finding.value for finding in named.findings] == pytest.approx(
        [finding.value for finding in result.findings], nan_ok=True
    )


@pytest.mark.parametrize(
    "more", [{"pred": "label", "model": MODEL}, {"model": LogisticRegression()}]
)
def test_a_model_without_columns_is_refused(more):
    with pytest.raises(InputError):
        equipoise.audit(PEOPLE, **SHARED, **more)


def test_columns_that_may_be_predictions_are_named():
    with pytest.raises(DataError) as error:
        equipoise.audit(PEOPLE, **SHARED)
    assert "signal" in error.value.fix


def test_a_model_needs_a_frame_with_its_columns(tmp_path):
    with pytest.raises(DataError) as error:
        equipoise.audit(PEOPLE.drop(columns="signal"), model=MODEL, **SHARED)
    assert error.value.column == "signal"
    with pytest.raises(InputError):
        equipoise.audit(tmp_path / "people.csv", model=MODEL, **SHARED)


def test_metrics_are_scores_of_scikit_learn_and_fairlearn():
    with sklearn.config_context(enable_metadata_routing=True):
        worst = make_scorer(m.as_score(m.worst_group_accuracy)).set_score_request(groups=True)
        scores = cross_validate(
            LogisticRegression(), PEOPLE[FEATURES], PEOPLE["label"], cv=3, scoring=worst,
            params={"groups": PEOPLE["gender"]},
        )["test_score"]  # fmt: skip
    assert len(scores) == 3
    assert ((scores > 0.4) & (scores < 0.9)).all()
    gap = m.as_score(m.accuracy_gap)
    frame = fairlearn.metrics.MetricFrame(
        metrics={"gap": gap}, y_true=PEOPLE["label"], y_pred=PREDICTED,
        sensitive_features=PEOPLE["gender"], sample_params={"gap": {"groups": PEOPLE["race"]}},
    )  # fmt: skip
    women = GROUP == "women"
    expected = m.accuracy_gap(PEOPLE["label"][women], PREDICTED[women], PEOPLE["race"][women])
    assert frame.by_group.loc["women", "gap"] == expected.value
    assert gap.__name__ == "accuracy_gap"


def test_runs_are_loaded_compared_and_exported(command, tmp_path):
    table = PEOPLE.assign(ours=PREDICTED, theirs=1 - PREDICTED)
    table.to_csv(tmp_path / "people.csv", index=False)
    run, arguments = (
        tmp_path / "run",
        ("--target", "label", "--pred", "ours,theirs", "--groups", "gender"),
    )
    assert command("quick", str(tmp_path / "people.csv"), *arguments, "--out", str(run))[0] == 0
    loaded, compared = equipoise.load(run), equipoise.compare(run)
    assert isinstance(loaded, Result)
    assert "women" in repr(loaded)
    assert {finding.audit for finding in compared.findings} == {"comparison"}
    assert "theirs" in repr(compared)
    with pytest.raises(RunError):
        equipoise.compare(run, run)
    section = command("export", str(run))[1]
    assert section == card(loaded)
    assert "## Bias evaluation" in section
    assert repr(loaded).splitlines()[1][2:20] in section
    assert command("export", str(run), "--as", "latex")[1].startswith(r"\begin{tabular}")
    assert command("export", str(run), "--as", "markdown")[1].count("women") == 2


def test_a_disparity_of_several_models_has_its_interval_in_the_terminal(capsys):
    frame = PEOPLE.assign(good=PEOPLE["label"], bad=PREDICTED)
    compared = equipoise.audit(frame, pred=["good", "bad"], **SHARED)
    show(compared, Path("runs/two"))
    lines = capsys.readouterr().out.replace("\u00a0", " ").splitlines()
    (place,) = (index for index, line in enumerate(lines) if line.endswith("DISPARITY"))
    shown = " ".join(lines[place : place + 5])
    assert "(95 % interval " in shown
    assert "corrected p" in shown

"""Audits of predicted numbers: planted errors, comparisons, plans and unusual input."""

import json
import sys
from pathlib import Path
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from scipy import stats

import equipoise
from equipoise import audit, audits
from equipoise.audits.quick import guess_config
from equipoise.cli.app import app
from equipoise.core import Aggregate, ConfigError, DataError, Verdict
from equipoise.metrics import MetricSpec, NumberMetric, metric
from equipoise.metrics.registry import remove
from equipoise.report import gate

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
AGES = np.random.default_rng(4).integers(18, 80, 600)


def table(**extra):
    """Estimates that miss the age of women by twice as much as that of men."""
    rng = np.random.default_rng(5)
    gender = np.array(["man", "woman"] * 300)
    noise = rng.normal(size=600)
    columns = {
        "id": [f"i{k}" for k in range(600)], "gender": gender, "age": AGES,
        "ours": AGES + noise * np.where(gender == "woman", 10.0, 5.0),
        "fair": AGES + noise * 5.0,
        "person": np.arange(600) // 3,
    }  # fmt: skip
    return pl.DataFrame(columns | extra)


def values(frame=None, **changes):
    frame = table() if frame is None else frame
    return {
        "audit": "regression",
        "data": {"table": frame, "id": "id", "target": "age", "groups": ["gender"]},
        "models": {"ours": {"table": frame, "prediction": "ours"}},
        "resampling": {"replicates": 40, "permutations": 999},
    } | changes


def run(**changes):
    return audits.run(audits.parse_config(values(**changes)))


def of(result, metric, aggregate=Aggregate.DIFFERENCE, model="ours"):
    [finding] = [
        finding for finding in result.findings
        if (finding.metric, finding.aggregate, finding.model) == (metric, aggregate, model)
    ]  # fmt: skip
    return finding


def test_a_larger_error_of_a_group_leads():
    result = run()
    gap = of(result, "mean_absolute_error")
    assert gap.verdict is Verdict.DISPARITY
    lead = result.conclusions[0]
    assert (lead.group, lead.other, lead.verdict) == ("woman", "man", Verdict.DISPARITY)
    errors = np.abs(table()["ours"].to_numpy() - AGES)
    assert gap.value == pytest.approx(errors[1::2].mean() - errors[::2].mean())


def test_a_model_without_a_difference_has_none():
    frame = table()
    result = run(models={"fair": {"table": frame, "prediction": "fair"}})
    assert of(result, "mean_absolute_error", model="fair").verdict is Verdict.BELOW_THRESHOLD


def test_without_a_threshold_of_the_user_a_tenth_of_the_spread_matters():
    assert of(run(), "mean_absolute_error").threshold == pytest.approx(0.1 * AGES.std(), rel=0.05)
    strict = run(testing={"thresholds": {"mean_absolute_error": 9.0}})
    assert of(strict, "mean_absolute_error").threshold == 9.0


def test_options_and_switches_of_metrics():
    result = run(metrics={"share_within_tolerance": {"tolerance": 5}, "mean_error": False})
    assert of(result, "share_within_tolerance").parameters["tolerance"] == 5
    assert not [finding for finding in result.findings if finding.metric == "mean_error"]


def test_a_gate_tests_the_worst_group_of_the_difference():
    config = audits.parse_config(
        values(gate=[{"metric": "mean_absolute_error", "of": "difference", "max": 1.0}])
    )
    assert not gate(audits.run(config), [rule.as_rule for rule in config.gate]).passed


def written(folder, **models):
    """Audit models of a table into a run, and return its folder."""
    table().write_csv(folder / "people.csv")
    sections = {
        name: {"table": "people.csv", "prediction": column} for name, column in models.items()
    }
    config = values() | {"models": sections}
    config["data"] = config["data"] | {"table": "people.csv"}
    path, out = folder / f"{'-'.join(models)}.yaml", folder / "-".join(models)
    path.write_text(json.dumps(config))
    done = CliRunner().invoke(app, ["audit", str(path), "--out", str(out)])
    assert done.exit_code == 0, done.output
    return out


@pytest.mark.parametrize("together", [True, False])
def test_models_are_compared_image_by_image(together, tmp_path):
    names = {"ours": "ours", "other": "fair"}
    runs = [written(tmp_path, **names)] if together else [
        written(tmp_path, **{name: column}) for name, column in names.items()
    ]  # fmt: skip
    errors = np.abs(table().select("ours", "fair").to_numpy() - AGES[:, None])
    difference = errors[:, 1] - errors[:, 0]
    findings = [
        finding for finding in equipoise.compare(*runs).findings
        if finding.metric == "mean_absolute_error"
    ]  # fmt: skip
    overall, men, women = findings
    assert (overall.group, men.group, women.group) == ("", "man", "woman")
    assert overall.value == pytest.approx(difference.mean())
    assert women.value == pytest.approx(difference[1::2].mean())
    test = stats.ttest_rel(errors[:, 1], errors[:, 0])
    ends = test.confidence_interval()
    assert (overall.ci_low, overall.ci_high) == pytest.approx((ends.low, ends.high))
    assert overall.p_value == pytest.approx(test.pvalue)
    assert women.verdict is Verdict.DISPARITY
    assert women.parameters["worse"] == "ours"
    assert men.verdict is Verdict.BELOW_THRESHOLD


def test_a_model_that_is_worse_by_the_same_everywhere_differs(tmp_path):
    numbers = {"near": pl.col("age") + 8.0, "far": pl.col("age") + 16.0}
    frame = table().with_columns(**numbers)
    with patch.object(sys.modules[__name__], "table", lambda: frame):
        run = written(tmp_path, first="near", second="far")
    overall, *_ = equipoise.compare(run).findings
    assert (overall.value, overall.ci_low, overall.ci_high) == (8.0, 8.0, 8.0)
    assert overall.verdict is Verdict.DISPARITY


def test_runs_with_other_true_numbers_are_not_compared(tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    first = written(tmp_path / "one", ours="ours")
    with patch.object(sys.modules[__name__], "AGES", AGES + 1):
        second = written(tmp_path / "two", other="fair")
    with pytest.raises(DataError):
        equipoise.compare(first, second)


def test_a_unit_that_repeats_makes_rows_count_less():
    frame = table()
    same = frame.with_columns(pl.col("ours", "age", "gender").gather(pl.int_range(600) // 3 * 3))
    alone = of(run(frame=same), "mean_absolute_error")
    data = values(same)["data"] | {"unit": "person"}
    in_units = of(run(frame=same, data=data), "mean_absolute_error")
    assert in_units.unit == "unit"
    assert in_units.ci_high - in_units.ci_low > alone.ci_high - alone.ci_low


def test_images_without_numbers_are_counted():
    frame = table(ours=[None] * 10 + [*map(float, AGES[10:])])
    result = run(frame=frame)
    # Even rows are of men.
    assert any("ours" in text and "man 5 of 300" in text for text in result.manifest.warnings)
    assert result.manifest.counts["models"]["ours"]["missing"] == 10


@pytest.mark.parametrize(
    ("changes", "column"),
    [
        ({"age": ["old"] + [30] * 599}, "age"),
        ({"age": [30] * 600}, "age"),
        ({"ours": ["x"] * 600}, "ours"),
        ({"ours": [None] * 600}, "ours"),
        ({"ours": [float("inf")] + [30.0] * 599}, "ours"),
    ],
)
def test_columns_that_are_no_numbers_are_named(changes, column):
    frame = pl.DataFrame({name: pl.Series(cells, strict=False) if name not in changes else
                          pl.Series([*map(str, cells)] if isinstance(cells[0], str) or
                                    name == "age" else cells)
                          for name, cells in (table().to_dict(as_series=False)
                                              | changes).items()})  # fmt: skip
    with pytest.raises(DataError) as error:
        run(frame=frame)
    assert error.value.column == column


@pytest.mark.parametrize(
    "metrics", [{"accuracy": False}, {"share_within_tolerance": {"within": 5}}]
)
def test_a_metric_or_option_that_is_none_is_an_error(metrics):
    with pytest.raises(ConfigError):
        audits.parse_config(values(metrics=metrics))


def test_a_cell_that_is_no_number_doesnt_hide_that_all_others_are():
    frame = table().select(
        "id", "gender", pl.col("age").cast(pl.String), pred=pl.col("ours").round(1)
    )
    age = frame["age"].to_list()
    age[4] = "old"
    with pytest.raises(DataError) as error:
        audit(frame.with_columns(age=pl.Series(age)), target="age", groups="gender")
    assert (error.value.column, error.value.row) == ("age", 5)


def test_a_metric_in_another_unit_has_no_threshold_of_the_target():
    spec = MetricSpec(
        name="mean_squared_error", kinds=("regression",), reference="an example",
        definition="Mean squared distance.", direction="Higher: farther from the truth.",
        range=(0.0, float("inf")),
    )  # fmt: skip

    @metric(spec, form=NumberMetric.of)
    def mean_squared_error(y_true, y_pred):
        return np.square(y_pred - y_true)

    try:
        assert of(run(), "mean_squared_error").verdict is Verdict.NONE
    finally:
        remove("mean_squared_error")


def test_a_plan_says_what_a_comparison_can_show():
    planned = audits.plan(audits.parse_config(values()))
    [row] = planned.details["comparisons"]
    assert row["smallest_groups"] == [300, 300]
    assert planned.tests == 3


def test_a_number_as_target_is_taken_for_a_number():
    frame = table().select("id", "gender", "age", pred=pl.col("ours").round(1))
    assert guess_config(frame, target="age", groups=["gender"]).audit == "regression"
    lead = audit(frame, target="age", groups="gender").conclusions[0]
    assert (lead.group, lead.verdict) == ("woman", Verdict.DISPARITY)


def test_codes_as_target_stay_classes():
    codes = np.random.default_rng(0).integers(0, 40, 600)
    frame = pl.DataFrame({"id": range(600), "label": codes, "pred": np.roll(codes, 1),
                          "gender": ["man", "woman"] * 300})  # fmt: skip
    assert guess_config(frame, target="label", groups=["gender"]).audit == "predictions"


def test_models_that_differ_in_a_group_are_not_called_alike(tmp_path):
    base = EXAMPLES / "regression"
    out = tmp_path / "run"
    done = CliRunner().invoke(app, ["audit", str(base / "audit.yaml"), "--out", str(out)])
    assert done.exit_code == 0, done.output
    result = equipoise.compare(out)
    errors = {
        finding.group: finding.verdict
        for finding in result.findings
        if finding.metric == "mean_absolute_error"
    }
    assert errors[""] is Verdict.BELOW_THRESHOLD
    assert errors["woman"] is Verdict.DISPARITY
    assert "mean_absolute_error" not in result.conclusions[0].alike_in

"""The example configuration on real data: what it must find, and that it finds it twice."""

from pathlib import Path

import pytest

from equipoise import audits, report
from equipoise.core import Verdict

CONFIG = """
audit: predictions
data:
  table: {shared}/data/fairface3k/labels.csv
  id: image_id
  target: gender
  groups: [race, [race, gender]]
models:
  deepface: {{table: {shared}/data/fairface3k/deepface.csv, prediction: gender}}
  facellm: {{table: {shared}/data/fairface3k/facellm.csv, prediction: gender}}
resampling: {{method: bootstrap, replicates: 1000, seed: 7}}
gate:
  - {{metric: worst_group_accuracy, min: 0.6}}
"""


@pytest.fixture(scope="module")
def config(shared_dir, tmp_path_factory):
    path = tmp_path_factory.mktemp("config") / "fairface.yaml"
    path.write_text(CONFIG.format(shared=shared_dir))
    return audits.load_config(path)


@pytest.fixture(scope="module")
def result(config):
    return audits.run(config)


def found(result, model, metric, groups):
    return [
        one
        for one in result.findings
        if (one.model, one.metric, one.groups, one.subject) == (model, metric, groups, "")
    ]


# Counted from the data set's own files; its authors print the accuracies 68.48 and 88.29 %.
@pytest.mark.parametrize(
    ("model", "accuracy", "worst", "gap"),
    [("deepface", 0.6848, 0.1296, 0.5552), ("facellm", 0.8829, 0.6083, 0.2746)],
)
def test_figures(result, model, accuracy, worst, gap):
    both = "race × gender"
    assert found(result, model, "accuracy", "")[0].value == pytest.approx(accuracy, abs=5e-5)
    (lowest,) = found(result, model, "worst_group_accuracy", both)
    (between,) = found(result, model, "accuracy_gap", both)
    assert lowest.value == pytest.approx(worst, abs=5e-5)
    assert between.value == pytest.approx(gap, abs=5e-5)
    for finding in (lowest, between):
        assert finding.verdict is Verdict.DISPARITY
        assert "exchangeable over all rows" in finding.null
        assert finding.q_value < 0.05
        assert finding.ci_low < finding.value < finding.ci_high


def test_groups_that_do_not_determine_the_target_are_tested_within_class_too(
    result,
):
    nulls = [one.null for one in found(result, "deepface", "worst_group_accuracy", "race")]
    assert ["all rows" in nulls[0], "within each true class" in nulls[1]] == [True, True]


def test_notes_name_what_determines_the_target_and_what_has_no_label(result):
    text = "\n".join(result.manifest.notes)
    assert "race × gender: the groups determine the target" in text
    assert "deepface: 2 predictions have no label and are not used." in text


def test_gaps_that_base_rates_explain_get_no_verdict(result):
    (parity,) = found(result, "deepface", "demographic_parity", "race × gender")
    assert parity.verdict is Verdict.NONE
    assert parity.reason == (
        "the groups determine the target: a model without mistakes has this gap too"
    )


def test_report_says_who_is_worse_off(result):
    page = report.render(result)
    assert "is 13.0\xa0% (28 of 216) for Black, Female, 84.7 points below" in page
    assert "Black, Male (97.7\xa0%)" in page


def test_ages_with_a_class_mapping(shared_dir):
    folder = shared_dir / "data" / "fairface3k"
    config = audits.parse_config(
        {
            "audit": "predictions",
            "data": {
                "table": str(folder / "labels.csv"),
                "id": "image_id",
                "target": "age",
                "groups": ["gender", "race"],
            },
            "models": {
                "facellm": {
                    "table": str(folder / "facellm.csv"),
                    "prediction": "age",
                    "map": {"70+": "more than 70"},
                }
            },
        }
    )
    result = audits.run(config)
    skewsize = found(result, "facellm", "skewsize", "race")[0]
    assert skewsize.verdict is Verdict.NONE
    assert -3 < skewsize.value < 3
    assert {one.subject for one in result.findings if one.metric == "cramers_v"} >= {"20-29"}


def test_a_model_compared_with_another(config):
    data = audits.load(config)
    result = audits.compare({"fairface": (config, data)})
    (accuracy,) = [one for one in result.findings if one.metric == "accuracy"]
    assert accuracy.model == "facellm − deepface"
    assert accuracy.value == pytest.approx(0.8829 - 0.6848, abs=1e-4)
    assert accuracy.ci_low < accuracy.value < accuracy.ci_high
    assert accuracy.verdict is Verdict.DISPARITY
    assert accuracy.direction == "accuracy is worse for deepface"
    ranking = result.tables["ranking"].to_pylist()
    best = [row for row in ranking if row["metric"] == "accuracy" and row["rank"] == 1]
    assert [(row["model"], row["share_best"]) for row in best] == [("facellm", 1.0)]


def test_the_example_in_the_project_is_this_configuration(config, result, shared_dir):
    example = Path(__file__).parents[2] / "examples" / "predictions.yaml"
    found = audits.load_config(example)
    assert found.gate == config.gate
    again = audits.run(found, base=example.parent)
    assert repr(again.findings) == repr(result.findings)

"""Groups of bare codes: what audits call them, and which names of them a config may use."""

import polars as pl
import pytest

from audits.comparisons import images as predicted
from equipoise import audit, audits, metrics
from equipoise.core import Groups

FRAME = predicted(900).with_columns(male=pl.int_range(pl.len()) % 2)
QUICK = {"replicates": 20, "permutations": 199}


def dataset(**shares):
    values = {
        "audit": "dataset",
        "data": {"images": {"table": FRAME, "id": "id"}, "groups": ["male"], "labels": ["kind"]},
        "reference": {"shares": {"male": shares}},
        "resampling": QUICK,
    }
    return audits.run(audits.parse_config(values))


def test_no_group_of_predictions_is_a_bare_number():
    result = audit(FRAME, target="kind", pred="poor", groups=["male", "place"])
    names = {part.group for finding in result.findings for part in finding.by_group}
    assert {"male 0", "male 1", "male 0, x"} <= names
    assert not names & {"0", "1", "0, x"}
    assert not {finding.group for finding in result.findings} & {"0", "1"}
    sizes = result.tables["group_sizes"].to_pylist()
    assert {tuple(row["levels"]) for row in sizes if row["groups"] == "male"} == {("0",), ("1",)}


def test_a_reference_names_groups_by_labels_or_as_they_are_shown():
    by_label, by_name = dataset(**{"0": 0.2, "1": 0.8}), dataset(**{"male 0": 0.2, "male 1": 0.8})
    assert [repr(f) for f in by_label.findings] == [repr(f) for f in by_name.findings]
    assert {f.group for f in by_label.findings if f.metric == "representation"} & {"male 0"}


@pytest.mark.parametrize("reference", ["1", "male 1"])
def test_comparisons_take_either_name(reference):
    groups = Groups.of({"male": FRAME["male"]})
    table = metrics.rate_comparisons(FRAME["kind"], FRAME["poor"], groups, reference=reference)
    versus = {row["versus_group"] for row in table.to_pylist() if row["versus"] == "reference"}
    assert versus == {"male 1"}


@pytest.mark.parametrize("desired", [{"0": 0.3, "1": 0.7}, {"male 0": 0.3, "male 1": 0.7}])
def test_desired_shares_of_a_ranking_take_either_name(desired):
    groups = Groups.of({"male": [0, 1] * 20}, min_size=1)
    scores = pl.int_range(40, eager=True).to_numpy()[None, :] / 40.0
    estimate = metrics.max_skew(scores, groups, k=4, desired=desired, resampling=None)
    assert estimate.params["desired"] == {"male 0": 0.3, "male 1": 0.7}

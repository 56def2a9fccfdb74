"""Many classes and many groups: only estimable ones have findings."""

import math

import numpy as np
import polars as pl

from equipoise import audits
from equipoise.core import Aggregate


def audited(truth, group):
    rng = np.random.default_rng(0)
    label = np.where(rng.random(len(truth)) < 0.8, truth, rng.permutation(truth))
    frame = pl.DataFrame({
        "id": [f"i{place}" for place in range(len(truth))],
        "target": [f"class {code:03}" for code in truth],
        "group": [f"group {code:03}" for code in group],
        "said": [f"class {code:03}" for code in label],
    })  # fmt: skip
    config = {
        "audit": "predictions",
        "data": {"table": frame, "id": "id", "target": "target", "groups": ["group"]},
        "models": {"m": {"table": frame, "prediction": "said"}},
        "resampling": {"replicates": 50},
    }
    return audits.run(audits.parse_config(config))


def of_class(result, metric):
    return [finding for finding in result.findings if finding.metric == metric and finding.subject]


def test_only_estimable_classes_of_many_have_findings():
    # Of 120 classes ten are large; shares of labels are of all rows, rates of those of a class.
    truth = np.concatenate([np.arange(120).repeat(8), np.arange(10).repeat(150)])
    result = audited(truth, np.arange(len(truth)) % 2)
    assert len(of_class(result, "true_positive_rate")) == 10
    assert len(of_class(result, "demographic_parity")) == 120
    assert not any(math.isnan(finding.value) for finding in result.findings if finding.subject)
    (note,) = (note for note in result.manifest.notes if "have no finding" in note)
    assert "true_positive_rate of 110" in note
    assert "demographic_parity" not in note
    assert result.tables["classes"].num_rows == 120


def test_few_classes_have_findings_whatever_their_size():
    truth = np.concatenate([np.arange(20).repeat(8), np.arange(10).repeat(150)])
    result = audited(truth, np.arange(len(truth)) % 2)
    assert (
        len(
            [
                finding
                for finding in of_class(result, "true_positive_rate")
                if finding.aggregate is Aggregate.DIFFERENCE
            ]
        )
        == 20
    )
    assert not any("have no finding" in note for note in result.manifest.notes)


def test_many_small_groups_are_listed_once():
    group = np.concatenate([np.arange(3).repeat(400), np.arange(3, 153).repeat(4)])
    result = audited(np.arange(len(group)) % 4, group)
    gap = next(finding for finding in result.findings if finding.compared_to == "overall")
    assert [estimate.group for estimate in gap.by_group] == ["group 000", "group 001", "group 002"]
    assert {exclusion.reason: exclusion.count for exclusion in gap.excluded}[
        "groups under 30 rows"
    ] == 150
    assert result.tables["group_sizes"].num_rows == 153


def test_a_few_small_groups_are_listed_with_the_others():
    group = np.concatenate([np.arange(3).repeat(400), np.arange(3, 53).repeat(4)])
    result = audited(np.arange(len(group)) % 4, group)
    gap = next(finding for finding in result.findings if finding.compared_to == "overall")
    assert len(gap.by_group) == 53

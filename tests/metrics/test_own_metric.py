"""A metric of one's own, in one file: record, estimate, configuration, findings, sentence."""

import json

import numpy as np
import pytest

from equipoise import metrics as m
from equipoise.audits import parse_config, run
from equipoise.core.errors import InputError
from equipoise.metrics import table_metric
from equipoise.report.words import sentence

SPEC = m.MetricSpec(
    name="wrong_gap",
    title="Gap of wrong predictions",
    kinds=("predictions",),
    definition="Largest minus smallest share of wrong predictions over groups.",
    direction="Higher: one group is predicted wrongly more often.",
    reference="this test",
    unit="points",
    threshold=0.05,
    threshold_reason="a test's",
    null="groups are exchangeable over all rows",
)
ROWS = {
    "label": ["a", "b"] * 100,
    "said": ["a", "b"] * 80 + ["b", "a"] * 20,
    "group": ["x"] * 100 + ["y"] * 100,
}


def wrong_gap(counts, tables):
    wrong = counts.truth != counts.prediction
    shares = tables[:, wrong].sum(axis=1) / tables.sum(axis=1)
    return shares.max(axis=1) - shares.min(axis=1)


@pytest.fixture
def own(monkeypatch):
    made = m.metric(SPEC)(wrong_gap)
    yield made
    table_metric.remove(SPEC.name)


def test_an_audit_reports_it(own, tmp_path):
    lines = zip(*ROWS.values(), strict=True)
    table = "id,label,said,group\n" + "".join(
        f"{i},{','.join(row)}\n" for i, row in enumerate(lines)
    )
    (tmp_path / "rows.csv").write_text(table, encoding="utf-8")
    config = parse_config(
        {
            "audit": "predictions",
            "data": {"table": "rows.csv", "id": "id", "target": "label", "groups": ["group"]},
            "models": {"model": {"table": "rows.csv", "id": "id", "prediction": "said"}},
            "testing": {"thresholds": {"wrong_gap": 0.1}},
            "gate": [{"metric": "wrong_gap", "max": 0.2}],
        }
    )
    result = run(config, base=tmp_path)
    found = next(one for one in result.findings if one.metric == "wrong_gap")
    assert (found.value, found.threshold, found.verdict) == (0.4, 0.1, "disparity")
    assert sentence(found) == "Gap of wrong predictions of model is 40.0 points (group)."
    assert json.loads(found.parameters) == {}


def test_it_must_give_a_number_for_each_table(own):
    counts = m.count(ROWS["label"], ROWS["said"], ROWS["group"])
    wrong = table_metric.TableMetric(SPEC, lambda counts, tables: np.zeros(3), None)
    with pytest.raises(InputError, match="wrong_gap"):
        m.measure(counts, [wrong])

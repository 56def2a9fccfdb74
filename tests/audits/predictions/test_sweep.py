"""The aggregates over minimum expected counts that a config names, and the order of models."""

import numpy as np
import polars as pl
import pytest

from equipoise import audits
from equipoise.audits.labels.predictions.page import sweep
from equipoise.report.blocks import Table, Words

VALUES = (0, 3, 8, 25)


def audited(seed, **options):
    """Two models that name rare labels, more often for one group, for 4 classes of 120 rows."""
    rng = np.random.default_rng(seed)
    truth, group = np.arange(480) % 4, np.arange(480) // 4 % 2
    frame = pl.DataFrame({
        "id": [f"i{place}" for place in range(480)],
        "target": [f"class {code}" for code in truth],
        "group": [f"group {code}" for code in group],
    })  # fmt: skip
    for name, rate in (("a", 0.3), ("b", 0.15)):
        wrong = rng.random(480) < rate * (1 + group * rng.random(4)[truth])
        predicted = np.where(wrong, rng.choice(4, 480, p=[0.7, 0.2, 0.06, 0.04]), truth)
        frame = frame.with_columns(pl.Series(name, [f"class {code}" for code in predicted]))
    config = {
        "audit": "predictions",
        "data": {"table": frame, "id": "id", "target": "target", "groups": ["group"]},
        "models": {name: {"table": frame, "prediction": name} for name in ("a", "b")},
        "metrics": {"effect_sizes": options},
        "resampling": {"replicates": 20},
    }
    return audits.run(audits.parse_config(config))


@pytest.mark.parametrize("seed", range(4))
def test_the_report_states_changes_in_the_order_of_models(seed):
    result = audited(seed, sweep=[*VALUES])
    rows = result.tables["mev_sweep"].to_pylist()
    assert [row["min_expected"] for row in rows] == [*VALUES, *VALUES]
    at = {(row["model"], row["min_expected"]): row["skewsize"] for row in rows}
    orders = set()
    for value in VALUES:
        models = [name for name in ("a", "b") if at[name, value] == at[name, value]]
        if len(models) == 2:
            orders.add(tuple(sorted(models, key=lambda name: -at[name, value])))
    section = sweep(result)
    (table,) = (block for block in section.blocks if isinstance(block, Table))
    *_, words = (block for block in section.blocks if isinstance(block, Words))
    assert len(table.rows) == len(rows)
    assert ("changes" in words.items[0]) == (len(orders) > 1)


def test_nothing_is_swept_without_the_setting():
    result = audited(0)
    assert sweep(result) is None
    assert result.tables["mev_sweep"].num_rows == 10

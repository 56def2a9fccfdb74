"""`tools.frozen` prints each difference between runs by key, and nothing else."""

import json
from importlib import import_module
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).resolve().parents[2]
if not (ROOT / "tools").is_dir():
    pytest.skip("the tools are in no archive of sources", allow_module_level=True)

FINDING = {
    "audit": "predictions", "model": "ours", "metric": "accuracy_gap", "subject": "",
    "groups": "race", "version": "default", "value": 0.25, "ci_low": 0.125, "ci_high": float("nan"),
    "by_group": [
        {"group": "Black", "n": 40, "value": 0.5}, {"group": "White", "n": 60, "value": 0.75},
    ],
    "parameters": '{"null": "rows"}', "reason": "q 0.01 < 0.05", "verdict": "disparity",
}  # fmt: skip


@pytest.fixture
def frozen(monkeypatch, tmp_path, capsys):
    """Record or compare one example whose findings are those passed."""
    monkeypatch.syspath_prepend(ROOT)
    module = import_module("tools.frozen")
    (tmp_path / "inputs").mkdir()

    def call(*arguments, findings):
        def execute(run, inputs, runs):
            folder = runs / run.name / "run"
            folder.mkdir(parents=True)
            pq.write_table(pa.Table.from_pylist(findings), folder / "findings.parquet")
            counts = {"rows": len(findings)}
            (folder / "manifest.json").write_text(json.dumps({"counts": counts, "seconds": 1.5}))
            return folder.parent

        monkeypatch.setattr(module, "execute", execute)
        code = module.main([*arguments, "--only", "retrieval"])
        lines = capsys.readouterr().out.splitlines()
        return code, [line for line in lines if "->" in line]

    return call


def two():
    return [FINDING, {**FINDING, "parameters": '{"null": "class"}', "value": 0.5}]


def test_order_of_rows_and_new_columns_are_no_difference(frozen, tmp_path):
    frozen("record", "--out", str(tmp_path), findings=two())
    again = [{**row, "more": 1} for row in reversed(two())]
    assert frozen("compare", str(tmp_path), findings=again) == (0, [])


def test_each_changed_value_is_printed_with_its_key(frozen, tmp_path):
    frozen("record", "--out", str(tmp_path), findings=two())
    groups = [FINDING["by_group"][0], {"group": "White", "n": 61, "value": 0.75}]
    changed = {**FINDING, "ci_high": 0.5, "by_group": groups, "reason": "q 0.02 < 0.05"}
    code, lines = frozen("compare", str(tmp_path), findings=[changed, two()[1]])
    assert code == 1
    key = (
        "[audit=predictions, model=ours, metric=accuracy_gap, groups=race, version=default,"
        " parameters.null=rows]"
    )
    assert {*lines} == {
        f"retrieval findings {key} by_group.White.n: 60 -> 61",
        f"retrieval findings {key} ci_high: 'NaN' -> 0.5",
        f"retrieval findings {key} reason: 'q 0.01 < 0.05' -> 'q 0.02 < 0.05'",
    }
    assert len(frozen("compare", str(tmp_path), "--numbers", findings=[changed, two()[1]])[1]) == 2


def test_a_lost_row_is_a_difference_in_the_table_and_in_the_counts(frozen, tmp_path):
    frozen("record", "--out", str(tmp_path), findings=two())
    lines = frozen("compare", str(tmp_path), findings=two()[:1])[1]
    assert [line.rpartition("] ")[2] for line in lines] == [
        "value: 2 -> 1",
        "row: 'there' -> 'lost'",
    ]


def test_a_tolerance_is_relative(frozen, tmp_path):
    frozen("record", "--out", str(tmp_path), findings=[FINDING])
    near = [{**FINDING, "value": 0.25 * (1 + 1e-9)}]
    assert frozen("compare", str(tmp_path), findings=near)[0] == 1
    assert frozen("compare", str(tmp_path), "--rtol", "1e-8", findings=near)[0] == 0

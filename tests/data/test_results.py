"""What other evaluation tools write is a table with a row for each sample."""

import json
from pathlib import Path

import openpyxl
import polars as pl
import pytest

from equipoise.config.fields import TableConfig
from equipoise.core import DataError, InputError
from equipoise.data import LabelSource, PredictionSource, load_predictions
from equipoise.data.results import READERS, ResultsReader, guess_reader, reader_of
from equipoise.data.tables import TableRecipe, read_table
from result_layouts import LAYOUTS, OPTIONS, QUESTION, answers, write_detections

LOGS = Path(__file__).parent
COLUMNS = ("id", "answer", "target", "correct", "score", "question", "options", "model", "state",
           "metadata.gender")  # fmt: skip


def cells(path, results, *names):
    texts = read_table(TableRecipe(path, results=results), texts=names).texts
    return {name: texts[name].to_list() for name in names}


@pytest.mark.parametrize("tool", LAYOUTS)
def test_every_reader_gives_the_same_columns(tmp_path, tool):
    rows = answers(20)
    table = cells(LAYOUTS[tool](tmp_path, rows), tool, *COLUMNS)
    assert table["id"] == [row["id"] for row in rows]
    assert [answer or "" for answer in table["answer"]] == [row["answer"] for row in rows]
    assert table["target"] == [row["target"] for row in rows]
    assert table["correct"] == ["true" if row["score"] else "false" for row in rows]
    assert table["score"] == [str(int(row["score"])) for row in rows]
    assert table["metadata.gender"] == [row["gender"] for row in rows]
    assert {*table["question"]} == {QUESTION}
    assert {*table["options"]} == {"\n".join(OPTIONS)}
    assert {*table["model"]} == {"m"}
    assert {*table["state"]} == {"answered"}


@pytest.mark.parametrize("tool", LAYOUTS)
def test_the_tool_of_a_file_is_guessed(tmp_path, tool):
    assert guess_reader(LAYOUTS[tool](tmp_path, answers(3))) == tool


def test_every_file_is_a_reader():
    assert {*LAYOUTS} <= {*READERS}
    for place in READERS.values():
        assert place.load(ResultsReader).tool


def test_a_name_may_have_hyphens_and_another_name_is_an_error(tmp_path):
    assert reader_of("lm-eval") == reader_of("lm_eval")
    with pytest.raises(InputError, match="inspect_ai"):
        reader_of("inspect-a")
    with pytest.raises(ValueError, match="inspect_ai"):
        TableConfig.model_validate({"file": tmp_path, "results": "nowhere"})


@pytest.mark.parametrize("suffix", ["eval", "json"])
def test_logs_that_inspect_wrote_are_read(suffix):
    path = LOGS / f"inspect_log.{suffix}"
    assert guess_reader(path) == "inspect_ai"
    names = ("id", "sample", "epoch", "answer", "output", "correct", "state", "reason", "question",
             "metadata.gender")  # fmt: skip
    rows = pl.DataFrame(cells(path, "inspect_ai", *names)).sort("epoch", "sample")
    assert rows["id"].to_list() == [f"s{n} #{epoch}" for epoch in (1, 2) for n in range(6)]
    first = rows.filter(pl.col("epoch") == "1")
    assert first["answer"].to_list() == ["A", "B", "A", "I can't tell.", None, None]
    assert first["correct"].to_list() == ["true", "true", "true", "false", "false", None]
    assert first["state"].to_list() == ["answered"] * 4 + ["refused", "failed"]
    assert first["reason"].to_list()[:4] == [None] * 4
    assert "the server didn't answer" in first["reason"][5]
    assert first["metadata.gender"].to_list() == ["women"] * 3 + ["men"] * 3
    assert first["output"][0] == "ANSWER: A"
    # Long texts stand beside the sample, which refers to them.
    assert {*rows["question"].str.slice(0, 20)} == {"Which occupation is "}


def states_of(table, **options):
    labels = LabelSource(table, id="id", target="target", attributes=("metadata.gender",))
    models = {"m": PredictionSource(table, prediction="answer", **options)}
    return load_predictions(labels, models).models["m"]


def test_refusals_and_failures_are_neither_answers_nor_unmatched():
    table = TableRecipe(LOGS / "inspect_log.eval", results="inspect_ai")
    predictions = states_of(table, open_vocabulary=True)
    assert predictions.coded_state.sizes() == {
        "answered": 10, "missing": 0, "unknown": 0, "refused": 1, "unmatched": 1,
    }  # fmt: skip
    assert predictions.failed == 1


def edited(path, change):
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows[:5]:
        change(row)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize(
    ("error", "state", "failed"),
    [("refused", "refused", 0), ("unknown", "unknown", 0), ("timeout", "unmatched", 5)],
)
def test_errors_of_every_eval_ever_are_states(tmp_path, error, state, failed):
    path = LAYOUTS["every_eval_ever"](tmp_path, answers())
    edited(path, lambda row: row.update(error=error))
    predictions = states_of(TableRecipe(path, results="every_eval_ever"))
    assert predictions.coded_state.sizes()[state] == 5
    assert predictions.failed == failed


def test_failures_of_helm_and_vlmevalkit_are_states(tmp_path):
    run = LAYOUTS["helm"](tmp_path, answers(10))
    state = json.loads((run / "scenario_state.json").read_text())
    results = [entry["result"] for entry in state["request_states"]]
    results[1] |= {"success": False, "error": "timed out", "completions": []}
    results[2] |= {"success": False, "error": "Content blocked by the server", "completions": []}
    (run / "scenario_state.json").write_text(json.dumps(state))
    table = cells(run, "helm", "state", "reason", "answer")
    assert table["state"][:4] == ["answered", "failed", "refused", "answered"]
    assert table["reason"][1] == "timed out"
    rows = answers(10)
    rows[3]["answer"] = "Failed to obtain answer via API. "
    table = cells(LAYOUTS["vlmevalkit"](tmp_path, rows), "vlmevalkit", "state", "answer", "correct")
    assert table["state"][3] == "failed"
    assert (table["answer"][3], table["correct"][3]) == (None, None)


def test_what_helm_shows_is_read_without_its_requests(tmp_path):
    rows = answers(10)
    run = LAYOUTS["helm"](tmp_path, rows)
    complete = cells(run, "helm", "id", "target", "answer", "correct", "metadata.gender")
    state = json.loads((run / "scenario_state.json").read_text())["request_states"]
    shown = [
        {"instance_id": row["id"], "train_trial_index": 0, "predicted_text": row["answer"],
         "stats": {"exact_match": row["score"]}}
        for row in rows
    ]  # fmt: skip
    (run / "instances.json").write_text(json.dumps([entry["instance"] for entry in state]))
    (run / "display_predictions.json").write_text(json.dumps(shown))
    (run / "scenario_state.json").unlink()
    assert cells(run, "helm", *complete) == complete
    (run / "instances.json").unlink()
    with pytest.raises(DataError):
        cells(run, "helm", "id")


def test_the_likeliest_option_is_an_answer(tmp_path):
    path = LAYOUTS["lm_eval"](tmp_path, answers(3))
    row = {"doc_id": 0, "doc": {"choices": OPTIONS}, "filtered_resps": [[-2.5, False], [-1, True]]}
    for target, expected in ((1, "1"), ("chef", "chef"), ("B", "B")):
        path.write_text(json.dumps({**row, "target": target, "acc": 1.0}))
        assert cells(path, "lm_eval", "answer", "correct") == {
            "answer": [expected], "correct": ["true"],
        }  # fmt: skip


def test_samples_that_repeat_have_ids_of_their_own(tmp_path):
    rows = answers(4)
    path = LAYOUTS["evalscope"](tmp_path, [*rows, *rows])
    table = cells(path, "evalscope", "id", "sample", "epoch")
    assert len({*table["id"]}) == 8
    assert {*table["sample"]} == {"0", "1", "2", "3"}
    (path.parent / "other_default.jsonl").write_text(path.read_text())
    assert len({*cells(path.parent, "evalscope", "id")["id"]}) == 16


def test_a_table_of_excel_is_read(tmp_path):
    path = LAYOUTS["vlmevalkit"](tmp_path, answers(6))
    book = openpyxl.Workbook()
    for line in path.read_text().splitlines():
        book.active.append([cell or None for cell in line.split("\t")])
    book.save(path.with_suffix(".xlsx"))
    names = ("id", "answer", "target", "correct", "metadata.gender", "options")
    assert cells(path, "vlmevalkit", *names) == cells(path.with_suffix(".xlsx"), "vlmevalkit",
                                                      *names)  # fmt: skip


def test_without_a_reader_of_excel_the_error_names_it(tmp_path, monkeypatch):
    openpyxl.Workbook().save(tmp_path / "m_jobs.xlsx")
    monkeypatch.setitem(__import__("sys").modules, "fastexcel", None)
    with pytest.raises(DataError, match=r"pip install '\.\[xlsx\]'"):
        cells(tmp_path / "m_jobs.xlsx", "vlmevalkit", "id")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "r.json",
            '{"dataset": "fairface", "model": "ViT-B-32", "pretrained": "openai", '
            '"task": "zeroshot_classification", "metrics": {"acc1": 0.91}, "language": "en"}',
        ),
        ("r.csv", "acc1,dataset,model,pretrained,task\n0.91,fairface,ViT-B-32,openai,zeroshot\n"),
    ],
)
def test_metrics_of_whole_data_sets_are_refused_with_what_to_write(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert guess_reader(tmp_path / name) == "clip_benchmark"
    with pytest.raises(DataError, match="no prediction of an image.*run_classification"):
        cells(tmp_path / name, "clip_benchmark", "id")


@pytest.mark.parametrize("tool", LAYOUTS)
@pytest.mark.parametrize("other", LAYOUTS)
def test_a_file_of_another_tool_is_one_error(tmp_path, tool, other):
    if tool == other:
        return
    path = LAYOUTS[other](tmp_path, answers(3))
    with pytest.raises(DataError) as raised:
        cells(path, tool, "id")
    assert raised.value.file.startswith(str(path)), raised.value
    assert raised.value.fix


@pytest.mark.parametrize("tool", LAYOUTS)
@pytest.mark.parametrize("content", [b"[]", b"{}", b"null", b"\xff\xfe", b"PK\x03\x04", b" "])
def test_a_damaged_file_is_one_error(tmp_path, tool, content):
    path = LAYOUTS[tool](tmp_path, answers(3))
    file = path if path.is_file() else path / "scenario_state.json"
    file.write_bytes(content)
    with pytest.raises(DataError) as raised:
        cells(path, tool, "id")
    assert raised.value.expected
    assert raised.value.fix


def test_a_damaged_archive_is_one_error(tmp_path):
    whole = (LOGS / "inspect_log.eval").read_bytes()
    path = tmp_path / "log.eval"
    middle = len(whole) // 2
    for content in (whole[:middle], whole[:middle] + bytes(40) + whole[middle + 40 :]):
        path.write_bytes(content)
        with pytest.raises(DataError) as raised:
            cells(path, "inspect_ai", "id")
        assert raised.value.fix


def test_a_path_without_results_is_one_error(tmp_path):
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(DataError) as raised:
            cells(path, "inspect_ai", "id")
        assert raised.value.file == str(path)


def test_people_that_a_detector_found_and_missed_are_samples(tmp_path):
    names = ("id", "answer", "target", "correct", "model", "metadata.gender")
    table = cells(write_detections(tmp_path), "coco_detection", *names)
    assert table["id"] == [str(n) for n in range(120)]
    # Shifted by 3 of 10 the boxes have 7 of 13 in common, by 6 only 4 of 16.
    assert table["answer"] == ["missed" if n % 3 == 1 else "found" for n in range(120)]
    assert table["correct"] == ["false" if n % 3 == 1 else "true" for n in range(120)]
    assert {*table["target"]} == {"person"}
    assert {*table["model"]} == {"ours"}


def test_detections_without_annotations_are_one_error(tmp_path):
    (write_detections(tmp_path) / "annotations.json").unlink()
    with pytest.raises(DataError) as raised:
        cells(tmp_path, "coco_detection", "id")
    assert raised.value.file == str(tmp_path)

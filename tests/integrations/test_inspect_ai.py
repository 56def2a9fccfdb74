"""Evaluations with Inspect's mock model: scores by group in the log, and the log as a table."""

import gc
import re
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click import ClickException

import equipoise
from equipoise.core import InputError
from equipoise.data import read_table
from equipoise.data.tables import TableRecipe
from integrations.page import block

ROOT = Path(__file__).resolve().parents[2]
# Inspect warns about libraries that it uses.
pytestmark = pytest.mark.filterwarnings("ignore")
ROWS = 120


@pytest.fixture(scope="module", autouse=True)
def inspect_ai():
    """Import the library where its tests run: all workers read this file, and it's large."""
    return pytest.importorskip("inspect_ai")


class Words:
    """Counts words in place of tokens, whose table is read from the network."""

    def encode(self, text, **_):
        return text.split()


@pytest.fixture
def evaluate(tmp_path, monkeypatch, inspect_ai):
    """Give a function that evaluates a task, found by the entry point, with answers."""
    from inspect_ai._util.entrypoints import clear_entry_points_state
    from inspect_ai.model import ModelOutput, get_model

    monkeypatch.setattr("tiktoken.get_encoding", lambda _: Words())
    monkeypatch.chdir(tmp_path)
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    info = tmp_path / "site" / "equipoise_points-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: equipoise-points\nVersion: 1.0\n")
    lines = [f"{name} = {value}" for name, value in points["inspect_ai"].items()]
    (info / "entry_points.txt").write_text("\n".join(["[inspect_ai]", *lines]))
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site"), *sys.path])
    assert any(point.name == "equipoise" for point in entry_points(group="inspect_ai"))
    clear_entry_points_state()

    def run(task, answers, **options):
        outputs = (ModelOutput.from_content("mock", f"ANSWER: {letter}") for letter in answers)
        model = get_model("mockllm/model", custom_outputs=list(outputs))
        (log,) = inspect_ai.eval(
            task, model=model, max_samples=1, max_connections=1, log_dir="logs", display="none",
            task_args=options,
        )  # fmt: skip
        assert log.status == "success", log.error
        return log

    yield run
    # Inspect leaves a stream open for each sample. Collected later, these fail another test.
    gc.collect()


def people(path):
    """Write a table, and return the answers of a model that is wrong about a third of women."""
    letters = ["AB"[n // 2 % 2] for n in range(ROWS)]
    table = pl.DataFrame(
        {
            "id": [f"p{n}" for n in range(ROWS)],
            "label": [{"A": "chef", "B": "nurse"}[letter] for letter in letters],
            "gender": ["women" if n % 2 else "men" for n in range(ROWS)],
            "file": [f"{n}.png" for n in range(ROWS)],
        }
    )
    table.write_csv(path)
    wrong = [n % 2 and n % 3 == 0 for n in range(ROWS)]
    return ["AB"[(letter == "B") != bool(w)] for letter, w in zip(letters, wrong, strict=True)]


def test_an_evaluation_has_numbers_by_group_and_its_log_is_a_table(evaluate, tmp_path):
    answers = people("people.csv")
    log = evaluate("equipoise/label_images", answers, table="people.csv")
    values = {name: metric.value for name, metric in log.results.scores[0].metrics.items()}
    assert (values["women"], values["men"]) == (pytest.approx(2 / 3), 1.0)
    assert values["women low"] < values["women"] < values["women high"]
    assert values["difference"] == pytest.approx(1 / 3)
    assert values["difference low"] > 0.1
    assert values["verdict: disparity"] == 1.0
    # The audit of the log comes to the same.
    path = next(Path("logs").glob("*.eval"))
    recipe = TableRecipe(path, results="inspect_ai")
    table = read_table(recipe, texts=("sample", "answer", "target", "metadata.gender"))
    assert table.rows == ROWS
    assert table.texts["answer"].to_list() == [answers[int(name[1:])]
                                               for name in table.texts["sample"]]  # fmt: skip
    result = equipoise.audit(
        pl.DataFrame(table.texts), target="target", pred="answer", groups="metadata.gender"
    )
    finding = next(
        f for f in result.findings if (f.metric, f.aggregate) == ("accuracy", "worst_group")
    )
    assert finding.value == pytest.approx(2 / 3)


def test_the_command_of_the_page_has_options_of_the_task(evaluate, tmp_path):
    options = dict(re.findall(r"-T (\w+)=(\S+)", block("Inspect")))
    answers = people(options["table"])
    for n in range(ROWS):
        (tmp_path / f"{n}.png").write_bytes(b"\x89PNG\r\n")
    log = evaluate(re.search(r"eval (\S+)", block("Inspect"))[1], answers, **options)
    assert len(log.samples) == ROWS
    assert [part.type for part in log.samples[0].input[0].content] == ["text", "image"]
    # The log keeps the content of the picture.
    assert any(text.startswith("data:image/png") for text in log.samples[0].attachments.values())


def scores(numbers, groups):
    from inspect_ai.scorer import SampleScore, Score

    return [
        SampleScore(score=Score(value=number), sample_metadata={"gender": group})
        for number, group in zip(numbers, groups, strict=True)
    ]


def test_scores_of_any_scorer_are_compared():
    from equipoise.integrations.inspect_ai import group_difference

    numbers = np.tile([0.5, 1.0, 0.25, 0.75], 30)
    values = group_difference("gender")(scores(numbers, ["women", "men"] * 60))
    assert values["difference"] == pytest.approx(0.5)
    assert (values["women"], values["men"]) == (0.375, 0.875)
    few = group_difference("gender")(scores(["C", "I"] * 5, ["women", "men"] * 5))
    assert few["verdict: not estimable"] == 1.0
    assert "difference" not in few
    with pytest.raises(InputError, match="no sample has a group under 'age'"):
        group_difference("age")(scores([1.0], ["women"]))


def test_the_scorer_is_known_by_its_name():
    from inspect_ai._util.registry import registry_info

    from equipoise.integrations.inspect_ai import by_group

    assert registry_info(by_group()).name.endswith("by_group")


def test_a_missing_column_names_the_options_of_columns(tmp_path):
    from equipoise.integrations.inspect_ai import label_images

    pl.DataFrame({"file": ["a", "b"], "label": ["x", "y"], "gender": ["f", "m"]}).write_csv(
        tmp_path / "people.csv"
    )
    with pytest.raises(ClickException, match="-T id=id -T target=label") as caught:
        label_images(str(tmp_path / "people.csv"), image="file")
    assert "'id'" in str(caught.value)
    assert len(label_images(str(tmp_path / "people.csv"), image="file", id="file").dataset) == 2

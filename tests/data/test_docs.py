"""docs/data.md says what the code does."""

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from equipoise.data import LabelSource, Normalization, PredictionSource, load_predictions
from equipoise.data.tables import FORMATS
from equipoise.data.versions import STATES

HERE = Path(__file__).parent
PAGE = (HERE.parent.parent / "docs" / "data.md").read_text("utf-8")
# Pinned in test_bad_input.py, since they depend on the file system.
OF_FILES = ("does not exist", "is a directory", "may not be read", "cannot be read")


def errors() -> list[str]:
    """First cells of the table of errors."""
    table = PAGE.split("## Errors")[1].split("##")[0]
    return re.findall(r"^\| `(.+?)` \|", table, re.MULTILINE)


def messages() -> list[str]:
    pinned: dict[str, str] = json.loads((HERE / "messages.json").read_text("utf-8"))
    return [message.split(" Expected: ")[0] for message in pinned.values()]


def test_every_pinned_error_is_in_the_docs() -> None:
    assert [text for text in messages() if not any(error in text for error in errors())] == []


def test_every_error_in_the_docs_is_pinned() -> None:
    known = [*messages(), *OF_FILES]
    stale = [
        error for error in errors() if not any(error in text or text in error for text in known)
    ]
    assert stale == []


def test_states_formats_and_the_version_of_the_steps() -> None:
    assert [state for state in STATES if f"| `{state}` |" not in PAGE] == []
    assert [name for name in re.findall(r"\.\w+", FORMATS) if f"`{name}`" not in PAGE] == []
    assert f"`{Normalization().version}`" in PAGE


def test_every_count_is_in_the_docs() -> None:
    frame: dict[str, list[Any]] = {"id": [1, 2], "y": ["a", "b"], "a": [1, 0], "b": [0, 1]}
    table = pa.table(frame)
    shares = {"a": "a", "b": "b"}
    data = load_predictions(
        LabelSource(table, "id", "y", ("y",)),
        {
            "one": PredictionSource(table, "y", probabilities=shares),
            "two": PredictionSource(table, probabilities=shares),
        },
    )
    models = data.counts["models"].values()
    versions = [name for model in models for name in model["versions"]["default"]]
    names = {*data.counts["labels"], *data.counts["models"]["one"], *versions}
    section = PAGE.split("## What is counted")[1].split("##")[0]
    assert [name for name in sorted(names) if not re.search(rf"\b{name}\b", section)] == []


def test_the_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    labels, predictions = re.findall(r"```csv\n(.+?)```", PAGE, re.DOTALL)
    (tmp_path / "labels.csv").write_text(labels)
    (tmp_path / "model.csv").write_text(predictions)
    monkeypatch.chdir(tmp_path)
    scope: dict[str, Any] = {}
    exec(re.findall(r"```python\n(.+?)```", PAGE, re.DOTALL)[0], scope)
    assert scope["right"].tolist() == [True, False]

"""The tutorials: stored with outputs, small, on public names; `make docs` runs them again."""

import ast
import base64
import importlib
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))


def cells(path):
    return [
        cell
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
        if cell["cell_type"] == "code"
    ]


def test_there_is_a_tutorial_for_each_kind_of_user():
    names = [path.stem for path in TUTORIALS]
    assert names == ["clip", "dataset", "predictions", "text_to_image"]
    page = (ROOT / "docs" / "tutorials" / "index.md").read_text(encoding="utf-8")
    assert all(f"({name}.ipynb)" in page for name in names)
    assert "(people.md)" in page


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_is_stored_with_outputs(path):
    counts = [cell["execution_count"] for cell in cells(path)]
    assert counts == [*range(1, len(counts) + 1)]
    outputs = [output for cell in cells(path) for output in cell["outputs"]]
    assert not any(output["output_type"] == "error" for output in outputs)
    pictures = [
        base64.b64decode(content)
        for output in outputs
        for kind, content in output.get("data", {}).items()
        if kind.startswith("image/")
    ]
    assert len(pictures) >= 2
    assert max(map(len, pictures)) <= 60_000


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_imports_public_names(path):
    lines = "".join(line for cell in cells(path) for line in ["\n", *cell["source"]])
    code = "\n".join(line for line in lines.splitlines() if not line.startswith("!"))
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("equipoise"):
            module = importlib.import_module(str(node.module))
            assert module.__name__.count(".") <= 1
            assert all(hasattr(module, alias.name) for alias in node.names)

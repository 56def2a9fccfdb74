"""The tutorials run from start to end, show pictures, and are kept without their outputs."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parent.parent
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))


def test_there_is_a_tutorial_for_each_kind_of_user():
    names = [path.stem for path in TUTORIALS]
    assert names == ["clip", "dataset", "predictions", "text_to_image"]
    page = (ROOT / "docs" / "tutorials" / "index.md").read_text(encoding="utf-8")
    assert all(f"({name}.ipynb)" in page for name in names)


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
# Jupyter warns of its own transport, and its event loop of what it closes.
@pytest.mark.filterwarnings("default")
def test_a_tutorial_runs_and_shows_pictures(path, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    notebook = nbformat.read(path, as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.outputs for cell in cells] == [[]] * len(cells)
    where = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources=where).execute()
    outputs = [output.get("data", {}) for cell in cells for output in cell.outputs]
    assert sum("image/png" in data for data in outputs) >= 2
    assert any("<svg" in data.get("text/html", "") for data in outputs)

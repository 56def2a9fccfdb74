"""The tutorials are kept without their outputs; `make docs` runs them and looks at these."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))


def test_there_is_a_tutorial_for_each_kind_of_user():
    names = [path.stem for path in TUTORIALS]
    assert names == ["clip", "dataset", "predictions", "text_to_image"]
    page = (ROOT / "docs" / "tutorials" / "index.md").read_text(encoding="utf-8")
    assert all(f"({name}.ipynb)" in page for name in names)
    assert "(people.md)" in page


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_is_kept_without_outputs(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert not any(cell.get("outputs") for cell in cells)

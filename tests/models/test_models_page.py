"""docs/models.md names every prefix, extra, architecture, and option there is."""

import inspect
import re
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from equipoise.models import load_model
from equipoise.models.hf import ANSWERERS, ENCODERS, SCORERS
from equipoise.models.protocols import PROTOCOLS
from equipoise.models.python import load
from equipoise.models.registry import Options, adapters

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
ARCHITECTURES = [*ENCODERS, *SCORERS, *ANSWERERS]
OPTIONS = [name for name in inspect.signature(load_model).parameters if name != "name"]


@pytest.mark.parametrize("name", [*(f"{p}:" for p in adapters()), *ARCHITECTURES, *OPTIONS])
def test_every_name_is_on_the_page(name):
    assert f"`{name}" in PAGE


@pytest.mark.parametrize("kind", PROTOCOLS.values(), ids=lambda kind: kind.__name__)
def test_every_kind_is_on_the_page(kind):
    assert f"| `{kind.__name__}` |" in PAGE


def test_every_extra_on_the_page_exists():
    named = set(re.findall(r"equipoise\[(\w+)\]", PAGE))
    assert named == {"hf", "chat", "open_clip", "timm", "openvino"}
    assert named <= EXTRAS.keys()


def test_the_example_is_a_model(tmp_path, monkeypatch):
    code = next(b for b in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "Shades" in b)
    (tmp_path / "shades.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "shades", raising=False)
    model = load("shades:make", Options("python:shades:make"))
    images = [np.full((2, 3, 3), value, dtype=np.uint8) for value in (0, 255)]
    np.testing.assert_array_equal(model.predict_proba(images), [[1, 0], [0, 1]])
    assert model.features(images).shape == (2, 3)

"""The examples in the docstrings of the Python API run, and give what they say."""

import doctest
import importlib
import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "api.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"currentmodule:: (\S+)\n(.*?)(?=\.\. current|```)", PAGE, re.DOTALL)
NAMES = [
    (module, name)
    for module, block in BLOCKS
    for name in re.findall(r"^   (\w+)$", block, re.MULTILINE)
]
# Protocols and records that other functions take or return, and what needs data or a download.
WITHOUT = {
    "Answerer", "Classifier", "Cooccurrence", "DualEncoder", "Finding", "ImageGenerator",
    "Manifest", "ModelInfo", "NoAnswer", "PairScorer", "Plot", "Service", "StepImage",
    "SteppedGenerator", "TextTable",
    "amplification_change",
    "cooccurrence_amplification", "directional_amplification", "load_config", "load_generator",
}  # fmt: skip


@pytest.mark.parametrize(("module", "name"), NAMES, ids=[".".join(case) for case in NAMES])
def test_every_documented_name_has_an_example_that_runs(module, name):
    documented = getattr(importlib.import_module(module), name)
    (test,) = doctest.DocTestFinder(recurse=False).find(documented, name, globs={})
    assert bool(test.examples) != (name in WITHOUT)
    output = []
    doctest.DocTestRunner().run(test, out=output.append)
    assert output == []

"""A plan counts the tests that the run then has, of every model."""

import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from equipoise import audits
from equipoise.audits.kinds import KINDS

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(params=[*KINDS, "review"])
def example(request, tmp_path):
    """Return the config of an example; `examples/review` makes its data first."""
    if request.param == "predictions":
        return EXAMPLES / "predictions.yaml"
    if request.param != "review":
        return EXAMPLES / request.param / "audit.yaml"
    folder = shutil.copytree(EXAMPLES / "review", tmp_path / "review")
    subprocess.run([sys.executable, str(folder / "make.py")], check=True)
    return folder / "audit.yaml"


def test_plan_and_run_of_an_example_have_the_same_tests(example):
    config = audits.load_config(example)
    planned = audits.plan(config, base=example.parent)
    result = audits.run(config, base=example.parent)
    tested = Counter(finding.model for finding in result.findings if finding.tested)
    assert Counter(planned.tests_by_model) == tested
    assert planned.tests == max(tested.values()) > 0

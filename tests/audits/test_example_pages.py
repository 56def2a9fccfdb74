"""Examples: plans count their tests, pages stay, and scripts write their data."""

import shutil
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from audits.examples import written_again
from equipoise import audits, report
from equipoise.cli.runs import page_of
from equipoise.core import AuditResult
from equipoise.discovery import KINDS
from equipoise.report.appendix import trust
from equipoise.report.text import plural
from page_text import check_snapshot, page_text

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"
WHOLE = ("activations", "concepts", "dataset", "questions", "regression")
QUICK = ("associations", "counterfactuals", "retrieval", "similarity", "text_to_image")
WRITTEN = ("activations", "answers", "associations", "concepts", "dataset", "diversity",
           "generation", "jobs", "questions", "regression",
           "retrieval", "similarity", "text_to_image")  # fmt: skip


@pytest.fixture(scope="module")
def examples(tmp_path_factory):
    """Return the config of an example, its folder and the result: each runs once.

    The page of a few shows all draws; the others take few draws.
    """

    def ran(name):
        path = config_path(name, tmp_path_factory)
        config = audits.load_config(path)
        if name not in WHOLE:
            few = config.resampling.model_copy(update={"replicates": 20, "permutations": 99})
            config = config.model_copy(update={"resampling": few})
        return config, path.parent, audits.run(config, base=path.parent)

    return cache(ran)


def config_path(name, tmp_path_factory):
    """Return the path of an example's config; `examples/review` makes its data first."""
    if name == "predictions":
        return EXAMPLES / "predictions.yaml"
    if name != "review":
        return EXAMPLES / name / "audit.yaml"
    folder = shutil.copytree(EXAMPLES / name, tmp_path_factory.mktemp("examples") / name)
    subprocess.run([sys.executable, str(folder / "make.py")], check=True)
    return folder / "audit.yaml"


@pytest.mark.parametrize("name", [*KINDS, "review"])
def test_plan_and_run_of_an_example_have_the_same_tests(name, examples):
    config, folder, result = examples(name)
    planned = audits.plan(config, base=folder)
    tested = Counter(finding.model for finding in result.findings if finding.tested)
    assert Counter(planned.tests_by_model) == tested
    assert planned.tests == max(tested.values()) > 0
    assert plural(planned.tests, "test") in trust(result)


@pytest.mark.parametrize("kind", [*WHOLE, *QUICK])
def test_the_page_of_an_example(kind, examples):
    *_, result = examples(kind)
    page = page_of(result)
    check_snapshot(HERE / kind / "page.txt", page_text(report.render(result, page)))
    empty = AuditResult((), result.manifest, {})
    assert not [make for make in page.sections if make(empty) is not None]


@pytest.mark.parametrize("kind", WRITTEN)
def test_the_script_of_an_example_writes_its_data(kind, tmp_path):
    assert written_again(EXAMPLES / kind, tmp_path)

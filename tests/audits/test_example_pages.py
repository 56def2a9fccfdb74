"""The pages of the examples of some kinds, and the data that the scripts of examples write."""

from pathlib import Path

import pytest

from audits.examples import written_again
from equipoise import audits, report
from equipoise.cli.runs import page_of
from equipoise.core import AuditResult
from page_text import check_snapshot, page_text

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"
WHOLE = ("activations", "concepts", "dataset", "questions", "regression")
QUICK = ("associations", "counterfactuals", "retrieval", "similarity", "text_to_image")
WRITTEN = ("activations", "answers", "associations", "concepts", "dataset", "diversity",
           "generation", "jobs", "questions", "regression",
           "retrieval", "similarity", "text_to_image")  # fmt: skip


@pytest.mark.parametrize("kind", [*WHOLE, *QUICK])
def test_the_page_of_an_example(kind):
    config = audits.load_config(EXAMPLES / kind / "audit.yaml")
    if kind in QUICK:
        few = config.resampling.model_copy(update={"replicates": 20, "permutations": 99})
        config = config.model_copy(update={"resampling": few})
    result = audits.run(config, base=EXAMPLES / kind)
    page = page_of(result)
    check_snapshot(HERE / kind / "page.txt", page_text(report.render(result, page)))
    empty = AuditResult((), result.manifest, {})
    assert not [make for make in page.sections if make(empty) is not None]


@pytest.mark.parametrize("kind", WRITTEN)
def test_the_script_of_an_example_writes_its_data(kind, tmp_path):
    assert written_again(EXAMPLES / kind, tmp_path)

"""The page of an audit of retrieval."""

from pathlib import Path

from equipoise import audits
from equipoise.audits.retrieval.page import PAGE
from equipoise.report import render
from page_text import check_snapshot, page_text

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "retrieval" / "audit.yaml"


def test_the_page_of_the_example():
    config = audits.load_config(EXAMPLE)
    few = config.resampling.model_copy(update={"replicates": 20, "permutations": 99})
    result = audits.run(config.model_copy(update={"resampling": few}), base=EXAMPLE.parent)
    check_snapshot(Path(__file__).with_name("page.txt"), page_text(render(result, PAGE)))

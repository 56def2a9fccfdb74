"""The list of metrics on docs/metrics.md has the record of every metric."""

import re

import pytest

from equipoise.metrics import SPECS
from equipoise.metrics.spec import aliases_of
from tools.metric_page import DOCS, metric_list

ENTRIES = dict(re.findall(r"^### `(\w+)`\n(.*?)(?=^##|\Z)", metric_list(), re.DOTALL | re.M))


def test_every_metric_has_an_entry():
    assert {*ENTRIES} == {*SPECS}
    assert "# Metrics" in (DOCS / "metrics.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ENTRIES)
def test_an_entry_has_the_record_of_its_metric(name):
    spec, entry = SPECS[name], ENTRIES[name].replace("\\", "")
    for text in (spec.title, spec.definition, spec.range_text, spec.direction, spec.reference):
        assert text in entry
    assert all(f"`{alias}`" in entry for alias in aliases_of(name))
    threshold = "none" if spec.threshold is None else f"{spec.threshold:g} ("
    assert f"**Practical threshold:** {threshold}" in entry


def test_links_of_entries_go_to_pages():
    targets = re.findall(r"\]\(([\w/.]+)\)", metric_list())
    assert len({*targets}) > 10
    assert all((DOCS / target).is_file() for target in targets)

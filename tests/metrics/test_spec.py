"""Every metric has one whole record, and docs/metrics/README.md shows it."""

import sys
from dataclasses import FrozenInstanceError, fields
from pathlib import Path
from string import Formatter
from typing import get_args

import pytest

from equipoise.audits.kinds import KINDS
from equipoise.core import InputError
from equipoise.metrics import SPECS, register
from equipoise.metrics.spec import Unit

README = Path(__file__).parents[2] / "docs" / "metrics" / "README.md"
OPTIONAL = {
    "neutral",
    "fold",
    "mirror",
    "within_class",
    "rest",
    "symbol",
    "clause",
    "group_label",
    "group_metric",
    "threshold",
    "threshold_reason",
    "bands",
    "errata",
}
MARK = "<!-- written by tests/metrics/test_spec.py -->\n"


def table():
    """The table of metrics as the docs show it."""
    rows = [
        f"| `{spec.name}` | {spec.title} | {spec.range.replace('|', chr(92) + '|')} | {spec.unit} "
        f"| {spec.harm or 'neither'} | {'—' if spec.threshold is None else spec.threshold} "
        f"| {', '.join(spec.kinds)} |"
        for spec in sorted(SPECS.values(), key=lambda spec: (spec.kinds[0], spec.name))
    ]
    head = ["metric", "title", "range", "unit", "harm", "threshold", "audits"]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return "\n".join([*lines, *rows]) + "\n"


def whole(spec):
    return [name for name in (f.name for f in fields(spec)) if name not in OPTIONAL]


@pytest.mark.parametrize("spec", SPECS.values(), ids=lambda spec: spec.name)
def test_records_are_whole(spec):
    assert SPECS[spec.name] is spec
    assert all(str(getattr(spec, name)).strip() for name in whole(spec))
    assert spec.unit in get_args(Unit)
    assert {*spec.kinds} <= {*KINDS, "mitigation", "review"}
    assert spec.direction.lower().startswith(f"{spec.harm or 'neither'}:")
    assert (spec.threshold is None) == (not spec.threshold_reason)
    assert spec.range[0] in "[(at"
    assert spec.bounds is None or spec.bounds[0] < spec.bounds[1]
    assert [*spec.bands.values()] == sorted(spec.bands.values())
    names = ("title", "model", "subject", "value", "size", "groups", "direction", "about", "of")
    fields = dict.fromkeys((*names, "k"), "")
    assert spec.sentence.format(**fields | {"value": "1"})
    assert bool(spec.clause.format(**fields)) == bool(spec.clause)
    assert {"share", "group"} <= {name for _, name, *_ in Formatter().parse(spec.part)}
    assert "debias" not in spec.definition.lower()


def test_a_record_cannot_be_changed_or_registered_twice():
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'threshold'"):
        SPECS["phi"].threshold = 0.0
    with pytest.raises(InputError, match="'phi'"):
        register(SPECS["phi"])


def test_the_docs_show_every_record():
    assert README.read_text(encoding="utf-8").split(MARK)[1] == table()


if __name__ == "__main__":
    above = README.read_text(encoding="utf-8").split(MARK)[0]
    README.write_text(above + MARK + table(), encoding="utf-8")
    sys.exit()

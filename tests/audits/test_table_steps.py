"""Tables with steps in audits of every kind: the findings are those of the prepared table."""

import polars as pl
import pytest

from audits.test_metamorphic import on_frames, world
from equipoise import audits
from equipoise.audits.kinds import KINDS


def coded(frame):
    """Return a table whose texts are codes, and the step that gives their meanings."""
    meanings = {
        column.name: {
            f"code {place}": text for place, text in enumerate(column.unique().drop_nulls())
        }
        for column in frame
        if column.dtype == pl.String
    }
    codes = {
        name: pl.col(name).replace({text: code for code, text in texts.items()})
        for name, texts in meanings.items()
    }
    return {"file": frame.with_columns(**codes), "values": meanings}


FAST = ("dataset", "answers", "regression")


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=() if kind in FAST else pytest.mark.slow)
        for kind in sorted(KINDS, key=lambda kind: kind not in ("concepts", "retrieval"))
    ],
)
def test_steps_give_the_findings_of_the_prepared_table(kind):
    plain = world(kind)
    stepped = on_frames(plain, coded)
    assert "'values': {" in repr(stepped)
    result = audits.run(audits.parse_config(stepped))
    expected = audits.run(audits.parse_config(plain))
    assert repr(result.findings) == repr(expected.findings)

"""Parts of an estimate that are made when they are first read."""

from dataclasses import replace

import pyarrow as pa

from equipoise.core.estimate import Estimate
from equipoise.core.parts import Part, parts_to_table

TABLE = parts_to_table([Part("gap", "one", 0.5)])


class Maker:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> pa.Table:
        self.calls += 1
        return TABLE


def estimate(by: object) -> Estimate:
    return Estimate("gap", 0.5, n={}, method="", reference="", by=by)  # type: ignore[arg-type]


def test_parts_are_made_once_and_only_when_they_are_read() -> None:
    make = Maker()
    found = estimate(make)
    assert make.calls == 0
    assert found.by is TABLE
    assert found.by is TABLE
    assert [part.subject for part in found.parts] == ["one"]
    assert make.calls == 1


def test_an_estimate_has_no_parts_unless_it_gets_some() -> None:
    assert Estimate("gap", 0.5, n={}, method="", reference="").by is None
    assert estimate(None).by is None
    assert estimate(lambda: None).by is None
    assert estimate(TABLE).by is TABLE


def test_a_changed_estimate_has_the_same_parts() -> None:
    make = Maker()
    assert replace(estimate(make), value=1.0).by is TABLE
    assert replace(estimate(make), by=None).by is None

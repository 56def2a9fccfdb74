"""`equipoise planted`: a page, its figures, and what it says of them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from equipoise.planted import calibration

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Measure two quick cases instead of all, and note what was asked for."""
    measure, asked = calibration.calibrate, []
    cases = tuple(case for case in calibration.CASES if case.metric == "bias_at_k")[1::2]
    samples = calibration.Samples(alarms=4, concepts=2, rise=2, power=2, versions=0)

    def calibrate(*, quick: bool, progress: Any) -> calibration.Calibration:
        asked.append(quick)
        return measure(cases, quick=quick, samples=samples, progress=progress)

    monkeypatch.setattr(calibration, "calibrate", calibrate)
    return asked


def test_calibrate_writes_a_page_with_its_figures(
    command: Command, tmp_path: Path, few: list[bool]
) -> None:
    page = tmp_path / "docs" / "page.md"
    code, out, err = command("planted", "calibrate", "--quick", "--out", str(page))
    assert (code, err, few) == (0, "", [True])
    assert "tests: 2\n" in out
    assert f"page: {page}\n" in out
    text = page.read_text(encoding="utf-8")
    assert "calibrate --quick` (fixed seed: the same bytes; do not edit)" in text
    drawn = {path.name: path.read_bytes() for path in (page.parent / "figures").iterdir()}
    assert [*drawn] == [name for name in drawn if f"(figures/{name})" in text]
    assert len(drawn) == text.count("](figures/") == 2
    before = page.read_bytes(), drawn
    facts = json.loads(
        command("planted", "calibrate", "--quick", "--out", str(page), "--json", "--overwrite")[1]
    )
    assert facts["page"] == str(page)
    assert facts["estimates"] == 2
    assert sorted(Path(name).name for name in facts["figures"]) == sorted(drawn)
    drawn = {path.name: path.read_bytes() for path in (page.parent / "figures").iterdir()}
    assert (page.read_bytes(), drawn) == before


def test_the_page_lies_among_runs_unless_said_otherwise(
    command: Command, project: Path, few: list[bool]
) -> None:
    assert command("planted", "calibrate")[0] == 0
    assert few == [False]
    assert (project / "runs" / "calibration" / "calibration-families.md").is_file()


def test_an_unknown_action_is_an_error(command: Command) -> None:
    code, out, err = command("planted", "grow")
    assert (code, out) == (2, "")
    assert "'grow' is not 'calibrate'." in err

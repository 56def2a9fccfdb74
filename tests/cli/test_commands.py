"""`new`, `plan`, `compare`, `demo` and `metrics`."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from equipoise import audits
from equipoise.audits import load_config
from equipoise.core import AuditResult
from equipoise.metrics import SPECS, MetricSpec, metric
from equipoise.metrics.registry import remove
from report.synthetic import finding, manifest


def test_new_writes_a_configuration_that_reads(command, project):
    code, out, err = command("new", "sub/mine.yaml")
    assert (code, out) == (0, "wrote sub/mine.yaml\n")
    assert "equipoise plan sub/mine.yaml" in err
    config = load_config("sub/mine.yaml")
    assert config.data.groups == (("group",),)
    assert json.loads(command("new", "--json")[1]) == {"config": "equipoise.yaml"}


def test_new_writes_a_study_with_its_words(command, project):
    study = ("--study", "predicted-labels")
    assert command("new", "mine/study.yaml", *study)[0] == 0
    assert load_config("mine/study.yaml").sets
    Path("mine/occupations.csv").write_text("changed by its owner")
    again = command("new", "mine/other.yaml", *study)
    assert again[0] == 2
    assert again[2].startswith("error: mine/occupations.csv: exists already.")
    assert not Path("mine/other.yaml").exists()
    assert command("new", "b.yaml", *study, "--audit", "retrieval")[0] == 2


def result(**tables):
    return AuditResult((finding(),), manifest(resolved={"audit": "predictions"}), tables)


def _write_little(result, folder, page=None, place=None):
    for name in ("manifest.json", "findings.parquet"):
        (folder / name).touch()


def test_demo_replaces_a_run_only_with_overwrite(command, project, monkeypatch):
    def run_stub(**_):
        planted = {"model": "biased", "removed": "green heart", "found_effect_size": 0.81}
        labelled = audits.prepare(load_config("c.yaml")).data
        return result(planted=pa.Table.from_pylist([planted])), labelled

    monkeypatch.setattr(audits, "demo", run_stub)
    monkeypatch.setattr("equipoise.report.write", _write_little)
    code, out, _ = command("demo")
    assert code == 0
    assert "report runs/demo/report.html" in out
    assert command("demo")[2].startswith("error: runs/demo: holds a run already.")
    assert json.loads(command("demo", "--overwrite", "--json")[1])["run"] == "runs/demo"


def test_demo_of_mitigation_takes_models_and_a_seed(command, project, monkeypatch):
    calls = []

    def run_stub(*, progress, **options):
        calls.append(options)
        return result()

    monkeypatch.setattr("equipoise.cli.mitigation_world.run_demonstration", run_stub)
    monkeypatch.setattr("equipoise.cli.commands.mitigate.show", lambda *_, **__: None)
    monkeypatch.setattr("equipoise.report.write", _write_little)
    mitigation = ("demo", "--world", "mitigation")
    assert command(*mitigation)[0] == 0
    assert command(*mitigation, "--models", "mine", "--seed", "3", "--overwrite")[0] == 0
    assert calls == [{"models": None, "seed": 0}, {"models": Path("mine"), "seed": 3}]
    for option in ("--models", "--seed"):
        code, _, err = command("demo", "--world", "scenes", option, "1")
        assert code == 2
        assert f"{option}: goes with --world mitigation" in err


def test_metrics_lists_every_card(command):
    code, out, err = command("metrics")
    assert (code, err) == (0, "")
    listed = [line.split()[0] for line in out.splitlines()[2:-2]]
    assert {*listed} == {*SPECS}
    assert [*json.loads(command("metrics", "--json")[1])] == [*SPECS]


@pytest.mark.parametrize("name", SPECS)
def test_a_card_says_all_there_is(command, name):
    code, out, err = command("metrics", name)
    card = SPECS[name]
    assert (code, err) == (0, "")
    for part in (card.definition, card.range_text, card.direction, card.chance, card.reference):
        assert part in out
    facts = json.loads(command("metrics", name, "--json")[1])[name]
    assert facts["threshold"] == card.threshold


def test_metrics_are_found_by_alias_and_searched(command):
    record = MetricSpec(
        name="caught", aliases=("sensitive_share",), kinds=("predictions",),
        definition="A share of rows.", direction="Higher: more.", reference="an example",
    )  # fmt: skip
    metric(record)(len)
    try:
        for arguments in (("sensitive_share",), ("--search", "sensitive share")):
            assert "sensitive_share" in command("metrics", *arguments)[1]
            facts = json.loads(command("metrics", *arguments, "--json")[1])
            assert facts["caught"]["aliases"] == ["sensitive_share"]
        assert "sensitive_share" in command("metrics")[1]
    finally:
        remove("caught")
    assert "zzzzzz" in command("metrics", "--search", "zzzzzz")[1]
    assert json.loads(command("metrics", "--search", "zzzzzz", "--json")[1]) == {}
    assert command("metrics", "ndkl", "--search", "ndkl")[0] == 2


def test_an_unknown_metric_is_named_with_the_nearest(command):
    code, out, err = command("metrics", "skewsiz")
    assert (code, out) == (2, "")
    assert "; did you mean 'skewsize'?" in err

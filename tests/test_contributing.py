"""The files that docs/contributing.md includes run, from the package that has them."""

import re
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml
from click.testing import CliRunner

from equipoise import audits
from equipoise.audits import kind
from equipoise.audits.comparison import compare_results
from equipoise.cli.app import app
from equipoise.cli.runs import page_of
from equipoise.core import AuditResult, InputError, Manifest
from equipoise.metrics import registry
from equipoise.models import Classifier, load_model
from equipoise.models.registry import adapters
from equipoise.report import GateRule, gate, render
from equipoise.report.words import sentence
from equipoise.studies.conditions import Mark, StudyClaim, mark_of
from equipoise.studies.repetition import Repetition
from equipoise.studies.study import Study

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
PLUGIN = ROOT / "tests" / "plugin"
SHOWN = re.findall(r"```\{literalinclude\} \.\./tests/plugin/(\S+)", PAGE)
FILES = {name: (PLUGIN / name).read_text(encoding="utf-8") for name in SHOWN}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(PLUGIN)
    yield tmp_path
    for name in [*sys.modules]:
        if name.partition(".")[0] == "my_bias":
            del sys.modules[name]


def test_the_page_shows_every_file_of_the_package():
    files = {path.relative_to(PLUGIN).as_posix() for path in PLUGIN.rglob("*.*")}
    shown = {name for name in files if "__" not in name and Path(name).suffix}
    assert sorted(SHOWN) == sorted(shown)


def test_a_metric_is_one_file(folder):
    labels, groups = ["a", "b"] * 100, ["x"] * 100 + ["y"] * 100
    predicted = ["a", "b"] * 80 + ["b", "a"] * 20
    rows = labels, predicted, groups
    lines = "".join(f"{i},{','.join(row)}\n" for i, row in enumerate(zip(*rows, strict=True)))
    (folder / "rows.csv").write_text(f"id,label,said,group\n{lines}")
    wrong_gap = import_module("my_bias.wrong_gap").wrong_gap
    try:
        estimate = wrong_gap(*rows)
        config = {
            "audit": "predictions",
            "data": {"table": "rows.csv", "id": "id", "target": "label", "groups": ["group"]},
            "models": {"model": {"table": "rows.csv", "id": "id", "prediction": "said"}},
            "testing": {"thresholds": {"wrong_gap": 0.1}},
            "gate": [{"metric": "wrong_gap", "max": 0.2}],
        }
        result = audits.run(audits.parse_config(config), base=folder)
        (finding,) = (candidate for candidate in result.findings if candidate.metric == "wrong_gap")
        text = sentence(finding)
        off = audits.parse_config(config | {"metrics": {"wrong_gap": False}, "gate": []})
        assert audits.parse_config(off.resolved) == off
        others = audits.run(off, base=folder).findings
        with pytest.raises(InputError, match="wrong_gap"):
            replace(wrong_gap, statistic=lambda *_: np.zeros(3))(*rows)
    finally:
        registry.remove("wrong_gap")
    assert {item.metric for item in result.findings} - {item.metric for item in others} == {
        "wrong_gap"
    }
    assert estimate.value == pytest.approx(0.4)
    assert estimate.p_value is not None
    assert (finding.value, finding.threshold, finding.verdict) == (0.4, 0.1, "disparity")
    assert text == "Gap of wrong predictions of model is 40.0 points (group)."


@pytest.fixture
def top_share(folder):
    yield import_module("my_bias.top_share").top_share
    registry.remove("top_share")


def rankings(kind, **ranking):
    """Return the config of two models, of which one ranks group x first for eight queries."""
    subject, groups = np.repeat([*"abcdefgh"], 15), np.tile([*"xyz"], 40)
    columns = {"subject": subject, "group": groups, "set": np.arange(120) // 3}
    images = pl.DataFrame({"id": np.arange(120), **columns}).cast(pl.String)
    fair = np.random.default_rng(5).normal(size=(120, 8))
    scores = {"fair": fair, "biased": fair + 5 * (groups == "x")[:, None]}
    sets = {"sets": "set"} if kind == "counterfactuals" else {}
    return {
        "audit": kind,
        "data": {"images": {"table": images, "id": "id"}, "groups": ["group"],
                 "subject": "subject", **sets},
        "queries": {"table": pl.DataFrame({"id": [*"abcdefgh"]}), "id": "id", "subject": "id"},
        "models": {
            name: {"scores": {"file": file, "names": [*"abcdefgh"]}}
            for name, file in scores.items()
        },
        "ranking": {"k": 3, "curves": False, **ranking},
        "resampling": {"replicates": 100, "permutations": 400, "seed": 3},
        "testing": {"thresholds": {"top_share": 0.1}},
        "gate": [{"metric": "top_share", "max": 0.8}],
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["retrieval", "counterfactuals"])
def test_a_metric_of_rankings_is_one_file(folder, top_share, kind):
    config = audits.parse_config(rankings(kind))
    result = audits.run(config, base=folder)
    of_metric = [finding for finding in result.findings if finding.metric == "top_share"]
    fair, biased = (
        next(f for f in of_metric if f.model == model and not f.subject)
        for model in ("fair", "biased")
    )
    checks = gate(result, [GateRule("top_share", max=0.8)]).checks
    gated = {check.finding.model: check.outcome for check in checks if not check.finding.subject}
    compared = compare_results({"run": result})
    off = audits.parse_config(rankings(kind) | {"metrics": {"top_share": False}, "gate": []})
    others = audits.run(off, base=folder).findings
    configs = [audits.parse_config(rankings(kind) | {"metrics": names})
               for names in (["max_skew"], ["max_skew", "top_share"])]  # fmt: skip
    tests = [audits.plan(config, base=folder).tests for config in configs]
    assert (biased.value, biased.threshold, biased.verdict) == (1.0, 0.1, "disparity")
    assert biased.ci_low <= 1.0
    assert fair.value < 0.7
    assert [*sorted({finding.subject for finding in of_metric})] == ["", *"abcdefgh"]
    assert [group.value for group in of_metric[1].by_group]
    assert gated == {"fair": "passed", "biased": "breached"}
    assert sentence(biased).startswith("Largest share of the first images of biased is 100")
    assert "top_share" in {finding.metric for finding in compared.findings}
    assert tests[1] > tests[0]
    assert {"max_skew"} <= {finding.metric for finding in others}
    assert "top_share" not in {finding.metric for finding in others}
    assert "top_share" in CliRunner().invoke(app, ["metrics", "top_share"]).output


def test_a_metric_of_rankings_returns_a_number_for_each_draw_and_query(top_share):
    with pytest.raises(InputError, match="top_share"):
        replace(top_share, statistic=lambda ranked: ranked.shares)(range(8), ["x", "y"] * 4, k=2)


def test_a_metric_of_vectors_is_one_file(folder):
    random = np.random.default_rng(0)
    names = ["target"] * 30 + ["first"] * 20 + ["second"] * 20
    ids = [f"image {place}" for place in range(len(names))]
    vectors = random.normal(size=(70, 8)) + 1.5 * np.eye(8)[[0] * 50 + [1] * 20]
    np.save(folder / "vectors.npy", vectors)
    lines = "".join(f"{item},{name}\n" for item, name in zip(ids, names, strict=True))
    (folder / "images.csv").write_text(f"id,set\n{lines}")
    relative_norm = import_module("my_bias.relative_norm").relative_norm
    sets = {name: vectors[np.array(names) == name] for name in dict.fromkeys(names)}
    try:
        estimate = relative_norm(*sets.values())
        section = {"file": "vectors.npy"}
        question = {"targets": ["target"], "attributes": ["first", "second"]}
        config = audits.parse_config({
            "audit": "associations",
            "data": {"images": {"table": "images.csv", "id": "id", "kind": "image"}},
            "models": {"model": {"embeddings": {"images": section}}},
            "sets": {name: {"images": {"set": [name]}} for name in sets},
            "measure": [{"metric": "relative_norm", **question}],
            "gate": [{"metric": "relative_norm", "max": 0.01}],
        })  # fmt: skip
        plan, result = audits.plan(config, base=folder), audits.run(config, base=folder)
        gated = gate(result, [rule.as_rule for rule in config.gate])
        page = render(result, page_of(result))
        compared = audits.compare_results({"first": result, "second": result})
        turned = relative_norm(sets["target"], sets["second"], sets["first"])
        with pytest.raises(InputError, match="relative_norm"):
            replace(relative_norm, statistic=lambda targets, *_: targets)(*sets.values())
        with pytest.raises(InputError, match="relative_norm"):
            relative_norm(sets["target"])
    finally:
        registry.remove("relative_norm")
    (finding,) = result.findings
    assert finding.value == pytest.approx(estimate.value)
    assert (finding.subject, finding.verdict) == ("target", "disparity")
    assert finding.ci_low < finding.value < finding.ci_high
    assert finding.chance_low < 0 < finding.chance_high < finding.value
    assert turned.value == pytest.approx(-estimate.value)
    assert not gated.passed
    assert {candidate.metric for candidate in compared.findings} == {"relative_norm"}
    assert "Relative norm distance" in page
    assert plan.details["questions"][0]["numbers"] == 1


def test_a_kind_is_one_folder(folder):
    rows = [(i, "yes" if i % 10 < (7 if i % 2 else 3) else "no", "ab"[i % 2]) for i in range(400)]
    lines = "".join(f"{i},{rating},{group}\n" for i, rating, group in rows)
    (folder / "ratings.csv").write_text(f"row,rating,group\n{lines}")
    import_module("my_bias.ratings.audit")
    try:
        (folder / "ratings.yaml").write_text(FILES["my_bias/ratings/template.yaml"])
        config = audits.load_config(folder / "ratings.yaml")
        plan = audits.plan(config, base=folder)
        result = audits.run(config, base=folder)
        done = CliRunner().invoke(app, ["audit", str(folder / "ratings.yaml"), "--out",
                                        str(folder / "run")])  # fmt: skip
        page = render(result, page_of(result))
        checked = CliRunner().invoke(app, ["check", str(folder / "run")])
    finally:
        kind.unregister("ratings")
        registry.remove("rating_gap")
    (finding,) = result.findings
    assert (finding.metric, finding.verdict) == ("rating_gap", "disparity")
    assert [row["rows"] for row in plan.groups] == [200, 200]
    assert "Gap of ratings" in page
    assert done.exit_code == 0, done.output
    assert checked.exit_code == 1, checked.output


def test_an_adapter_is_one_file(folder):
    import_module("my_bias.brightness")
    try:
        model = load_model("brightness:v1")
    finally:
        adapters().remove("brightness")
    assert isinstance(model, Classifier)
    white = np.full((2, 2, 3), 255, dtype=np.uint8)
    np.testing.assert_array_equal(model.predict_proba([white]), [[0, 1]])


def test_a_study_is_one_file():
    study = Study.model_validate(yaml.safe_load(FILES["my_bias/study-of-shapes.yaml"]))
    shown, numbers = study.tables
    cells = [shown.quantity(row, column) for row in shown.rows for column in shown.columns]
    cells += [numbers.quantity(row, "all colours") for row in numbers.rows]
    claims = [condition for claim in study.claims for condition in claim.holds]
    section = PAGE.partition("## Add a published study")[2].partition("## Tests")[0]
    kinds = {type(quantity) for quantity in cells} | {type(condition) for condition in claims}
    keys = {key for kind in kinds for key in kind.model_fields} | {*StudyClaim.model_fields}
    assert {key for key in keys if f"`{key}`" not in section} <= {"of", "holds"}
    config = audits.parse_config(study.parsed_configs[0])
    rows = {"data": {"rows": 4}}
    run = Repetition(AuditResult((), Manifest(
        {}, config.model_dump(mode="json"), {}, "", False, {}, rows, 0, "", 0, {}
    )), study.parsed_configs)  # fmt: skip
    assert numbers.quantity("rows", "all colours").read(run).value == 4
    assert run.models({"prediction": "first"}) == ["all colours"]
    marks = {mark_of([*claim.comparisons(run)]) for claim in study.claims}
    assert marks == {Mark.OPEN}

"""The action for GitHub: its form, and its steps with the variables that GitHub sets."""

import json
import os
import re
import subprocess
import sys
import zipfile
from importlib.resources import files
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import pytest
import yaml

from integrations.page import block

ROOT = Path(__file__).resolve().parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS = {step["id"]: step for step in ACTION["runs"]["steps"] if "id" in step}
EXPRESSION = re.compile(r"\$\{\{ *([\w.-]+) *\}\}")

CONFIG = """\
audit: predictions
data: {table: t.csv, id: id, target: label, groups: [gender]}
models: {m: {table: t.csv, prediction: pred}}
resampling: {replicates: 200}
gate: [{metric: accuracy, of: worst_group, min: MIN}]
"""


def test_the_action_is_valid():
    pytest.importorskip("check_jsonschema")
    schemas = files("check_jsonschema") / "builtin_schemas" / "vendor"
    schema = json.loads((schemas / "github-actions.json").read_text(encoding="utf-8"))
    jsonschema.validate(ACTION, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**ACTION, "runs": {"using": "composite"}}, schema)


def test_every_expression_names_an_input_or_the_output_of_a_step():
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    written = re.findall(r'"(\w+)=\$', STEPS["gate"]["run"])
    for name in EXPRESSION.findall(text):
        kind, _, key = name.partition(".")
        if kind == "steps":
            step, _, output = key.partition(".outputs.")
            assert step in STEPS
            assert output in written
        else:
            assert name == "github.action_path" or key in ACTION["inputs"], name
    # A script holds no expression, whose text a shell would run.
    assert not any("${{" in step["run"] for step in STEPS.values())


def test_the_page_names_inputs_of_the_action():
    _, action = yaml.safe_load(block("GitHub Actions"))
    assert {*action["with"]} <= {*ACTION["inputs"]}
    needed = {name for name, item in ACTION["inputs"].items() if item.get("required")}
    assert needed <= {*action["with"]}


@pytest.fixture
def step(tmp_path):
    """Run a step as a runner does; return its exit code, outputs, summary and printed text."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, module in {"equipoise": " -m equipoise", "python": ""}.items():
        (tools / name).write_text(f'#!/bin/sh\nexec {sys.executable}{module} "$@"\n')
        (tools / name).chmod(0o755)
    work = tmp_path / "work"
    work.mkdir()

    def run(name, variables=(), **inputs):
        values = {key: str(item.get("default", "")) for key, item in ACTION["inputs"].items()}
        values |= inputs
        environment = {
            key: EXPRESSION.sub(lambda match: values[match[1].partition(".")[2]], text)
            for key, text in STEPS[name]["env"].items()
        }
        output, summary = tmp_path / "output", tmp_path / "summary.md"
        environment |= {
            "GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(summary),
            "RUNNER_TEMP": str(tmp_path), "PATH": f"{tools}:{os.environ['PATH']}",
            **dict(variables),
        }  # fmt: skip
        script = tmp_path / "step.sh"
        script.write_text(STEPS[name]["run"])
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", script], cwd=work,
            env=os.environ | environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        lines = output.read_text().splitlines() if output.exists() else []
        outputs = dict(line.split("=", 1) for line in lines)
        text = summary.read_text() if summary.exists() else ""
        return done.returncode, outputs, text, done.stdout + done.stderr

    run.folder = work
    return run


@pytest.mark.parametrize(("least", "code", "outcome"), [(0.5, 0, "passed"), (0.99, 1, "breached")])
def test_the_gate_decides_the_step(step, least, code, outcome):
    rows = [f"{n},{n // 2 % 2},{(n // 2 + (n % 10 == 0)) % 2},{'wm'[n % 2]}" for n in range(200)]
    (step.folder / "t.csv").write_text("\n".join(["id,label,pred,gender", *rows]))
    (step.folder / "a b.yaml").write_text(CONFIG.replace("MIN", str(least)))
    done, outputs, summary, printed = step("gate", config="a b.yaml", junit="out/checks.xml")
    assert (done, outputs["outcome"]) == (code, outcome), printed
    assert (step.folder / outputs["report"]).stat().st_size > 10_000
    suite = ET.parse(step.folder / outputs["junit"]).getroot()
    assert sum(1 for _ in suite.iter("failure")) == code
    assert summary.startswith("## Bias evaluation")
    assert f"### Gate: {outcome}" in summary
    assert "Gate: 1 check" in summary


def test_an_audit_that_fails_is_an_error(step):
    done, outputs, summary, _ = step("gate", config="missing.yaml")
    assert (done, outputs["outcome"]) == (2, "error")
    assert "### Gate: error" in summary
    assert "missing.yaml" in summary


def test_the_package_is_installed_with_its_extras(step, tmp_path):
    wheel, info = tmp_path / "tiny-1.0-py3-none-any.whl", "tiny-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n"
            "Provides-Extra: hf\nProvides-Extra: served\n",
        )  # fmt: skip
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    offline = {"PIP_NO_INDEX": "1", "PIP_TARGET": str(tmp_path / "site")}
    for extras in ("", "hf,served"):
        code, *_, printed = step("install", offline, package=str(wheel), extras=extras)
        assert code == 0, printed
    assert (tmp_path / "site" / info / "METADATA").is_file()
    assert step("install", offline, package=str(tmp_path / "none.whl"))[0] != 0

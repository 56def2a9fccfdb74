"""Run every example and demo, and keep findings, tables and plan of each."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
_EXAMPLES = (
    "activations", "answers", "associations", "concepts", "counterfactuals", "dataset", "diversity",
    "generation", "questions", "regression", "retrieval", "review", "similarity", "text_to_image",
)  # fmt: skip
RUNS: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "demo-colours": ("demo",),
    "demo-scenes": ("demo", "--world", "scenes"),
    "predictions": ("audit", str(EXAMPLES / "predictions.yaml")),
    **{kind: ("audit", str(EXAMPLES / kind / "audit.yaml")) for kind in _EXAMPLES},
})  # fmt: skip
"""Arguments of `equipoise` by the name of the run."""


def record_all(folder: Path, names: Iterable[str]) -> None:
    """Record some of `RUNS`, each in its own folder."""
    for name in names:
        target = folder / name
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        _record(name, target)
        sys.stdout.write(f"{name}\n")


def _record(name: str, target: Path) -> None:
    if name == "review":
        subprocess.run([sys.executable, str(EXAMPLES / "review" / "make.py")], check=True)
    arguments = RUNS[name]
    run = target / "run"
    _equipoise(*arguments, "--out", str(run))
    for findings in sorted(run.rglob("findings.parquet")):
        part = findings.parent.relative_to(run)
        copied = target / part
        copied.mkdir(parents=True, exist_ok=True)
        shutil.copy(findings, copied / "findings.parquet")
        if (findings.parent / "tables").is_dir():
            shutil.copytree(findings.parent / "tables", copied / "tables")
    shutil.rmtree(run)
    if arguments[0] == "audit":
        plan = json.loads(_equipoise("plan", *arguments[1:], "--json"))
        (target / "plan.json").write_text(json.dumps(plan, indent=1))


def _equipoise(*arguments: str) -> str:
    command = [sys.executable, "-m", "equipoise.cli", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout

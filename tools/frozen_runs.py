"""The runs that `tools.frozen` keeps: examples, demos, comparisons and other commands."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
# Examples of real data sets run on small data of the same layout and on tiny models.
REAL = {
    "fairface": "fairface/audit.yaml",
    "fairface_age": "fairface/age.yaml",
    "coco": "coco/audit.yaml",
    "dollar_street": "dollar_street/audit.yaml",
    "occupations": "occupations/audit.yaml",
    "domains": "domains/audit.yaml",
    "social_counterfactuals": "social_counterfactuals/audit.yaml",
    "stable_diffusion": "stable_diffusion/audit.yaml",
}
# The ids of models in these examples, and the folder of inputs/models that takes their place.
MODELS = {
    "hf:openai/clip-vit-base-patch32": "hf:{}/clip",
    "hf:openai/clip-vit-base-patch16": "hf:{}/clip",
    "hf:openai/clip-vit-large-patch14": "hf:{}/clip",
    "hf:google/vit-base-patch16-224": "hf:{}/vit",
    "timm:resnet50.a1_in1k": "timm:{}/resnet",
    "hf:Salesforce/blip2-opt-2.7b": "hf:{}/blip",
    "diffusers:stable-diffusion-v1-5/stable-diffusion-v1-5": "diffusers:{}/diffusion",
}
SMALL: dict[str, dict[str, Any]] = {
    "stable_diffusion": {
        "prompts": {"images": {"attributes": 1, "targets": 1}},
        "generators": {"stable_diffusion_1_5": {"steps": 2}},
        "resampling": {"replicates": 20},
    }
}
FEW = {"resampling": {"replicates": 20, "permutations": 99}}
GENERATE = """
prompts: {table: prompts.csv, images: 2}
generator: {model: "diffusers:MODELS/scenes", steps: 4, guidance: 3}
"""
PROMPTS = """prompt_id,prompt,hue,subject
red/solid-star,a red solid star,red,solid star
red/hollow-moon,a red hollow moon,red,hollow moon
blue/solid-star,a blue solid star,blue,solid star
blue/hollow-moon,a blue hollow moon,blue,hollow moon
"""
COMPARED = ("activations", "associations", "concepts", "counterfactuals", "predictions")


@dataclass(frozen=True)
class Run:
    """Commands of `equipoise` in a folder of their own.

    `{models}` stands for the folder of models, `{runs}` for that of all runs. What a command with
    `--json` prints is kept under the name of the command.
    """

    name: str
    commands: tuple[tuple[str, ...], ...]
    needs: tuple[str, ...] = ()
    config: str = ""
    world: str = ""


def all_runs() -> dict[str, Run]:
    """Return every run by name; a run that needs others comes after them."""
    runs = [*examples(), *real_examples(), *comparisons(), *others()]
    return {run.name: run for run in runs}


def examples() -> Iterator[Run]:
    """Yield the examples with data beside them, or beside the checkout."""
    configs = {path.parent.name: path.parent / "audit.yaml" for path in EXAMPLES.glob("*/make.py")}
    configs["predictions"] = EXAMPLES / "predictions.yaml"
    for name, path in sorted(configs.items()):
        config = str(path)
        commands = [("audit", config, "--out", "run"), ("plan", config, "--json")]
        if "gate:" in path.read_text(encoding="utf-8"):
            commands.append(("check", "run", "--json"))
        yield Run(name, tuple(commands))


def real_examples() -> Iterator[Run]:
    """Yield the examples that run models over data sets."""
    for name, config in REAL.items():
        commands = (("plan", "audit.yaml", "--json"), ("audit", "audit.yaml", "--out", "run"))
        yield Run(name, commands, config=config, world=config.partition("/")[0])


def comparisons() -> Iterator[Run]:
    """Yield comparisons of the models of one run, and of runs of several kinds."""
    for name in COMPARED:
        command = ("compare", f"{{runs}}/{name}/run", "--out", "run")
        yield Run(f"compare_{name}", (command,), (name,))
    needs = ("concepts", "counterfactuals", "predictions")
    folders = tuple(f"{{runs}}/{name}/run" for name in needs)
    yield Run("compare_kinds", (("compare", *folders, "--out", "run"),), needs)


def others() -> Iterator[Run]:
    """Yield the demos, and commands that audit nothing."""
    yield Run("demo_colours", (("demo", "--out", "run"),))
    yield Run("demo_scenes", (("demo", "--world", "scenes", "--out", "run"),))
    scenes = "{runs}/demo_scenes/run"
    kinds = tuple(f"{scenes}/{kind}" for kind in ("retrieval", "associations", "similarity"))
    yield Run("compare_scenes", (("compare", *kinds, "--out", "run"),), ("demo_scenes",))
    few = ("--networks", "cnn", "--images", "40", "--repeats", "2")
    yield Run("augment", (("augment", *few, "--out", "run"),))
    export = ("counterfactuals", "generate", "config.yaml", "--export", "run")
    yield Run("generate", (("counterfactuals", "plan", "config.yaml", "--json"), export))
    yield Run("metrics", (("metrics", "--json"),))
    yield Run("demo_mitigation", (("demo", "--world", "mitigation", "--out", "run"),))


def execute(run: Run, inputs: Path, runs: Path) -> Path:
    """Run the commands in a new folder of `runs` and return it."""
    folder = runs / run.name
    if run.world and (inputs / "worlds" / run.world).is_dir():
        shutil.copytree(inputs / "worlds" / run.world, folder)
    folder.mkdir(parents=True, exist_ok=True)
    models = (inputs / "models").resolve()
    if run.config:
        (folder / "audit.yaml").write_text(small_config(run, models), encoding="utf-8")
    if run.name == "generate":
        (folder / "config.yaml").write_text(GENERATE.replace("MODELS", str(models)))
        (folder / "prompts.csv").write_text(PROMPTS)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    for command in run.commands:
        words = [word.format(models=models, runs=runs) for word in command]
        found = subprocess.run(
            [sys.executable, "-m", "equipoise", *words],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        # A gate that is breached is a result: exit code 1.
        if found.returncode > (command[0] == "check"):
            raise SystemExit(f"{run.name}: equipoise {' '.join(words)}:\n{found.stderr[-3000:]}")
        if "--json" in command:
            (folder / f"{command[0]}.json").write_text(found.stdout, encoding="utf-8")
    return folder


def small_config(run: Run, models: Path) -> str:
    """Return the config of an example with tiny models and few replicates."""
    text = (EXAMPLES / run.config).read_text(encoding="utf-8")
    for name, other in MODELS.items():
        text = text.replace(name, other.format(models))
    return yaml.safe_dump(merged(yaml.safe_load(text), SMALL.get(run.name, FEW)), sort_keys=False)


def merged(values: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return values with changes, level by level."""
    return values | {
        key: merged(values.get(key) or {}, change) if isinstance(change, dict) else change
        for key, change in changes.items()
    }

"""Running models: where they lie, how they are loaded, how far they are, how they are stopped."""

import gc
import json
import shutil
import weakref
from pathlib import Path

import pytest

from alone import alone
from audits.live_models.worlds import diversity, retrieval, written
from equipoise import audits
from equipoise.cli.app import run
from equipoise.core import RunError
from equipoise.evidence import RunOptions, extraction
from equipoise.models import runtimes


def test_progress_names_the_model_its_inputs_and_the_count(world):
    steps = []
    config = audits.parse_config(retrieval() | {"extraction": {"part": 32}})
    audits.prepare(config, base=world, progress=lambda *step: steps.append(step))
    assert steps[0] == ("opening hf:clip", 0, None)
    images = [(done, total) for step, done, total in steps if step.startswith("m, images: ")]
    assert images[-1] == (96, 96)
    assert [done for done, _ in images] == sorted(done for done, _ in images)
    assert any(step.startswith("m, queries: ") for step, _, _ in steps)


STOPPED = """
import os, signal, sys, time
from pathlib import Path
from equipoise.cli.app import run
from equipoise.cli.terminal import Steps

world, stopped = Path(sys.argv[1]), []
signal.signal(signal.SIGINT, signal.default_int_handler)

def stop(_, step, done=0, total=None):
    if step.startswith("m, images") and done >= 24 and total == 96 and not stopped:
        stopped.append(done)
        # Told from where the model runs; parts are written beside it.
        while not [*world.rglob("part-0*.parquet")]:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

Steps.__call__ = stop
sys.exit(run(sys.argv[2:]))
"""


def test_a_stopped_run_continues_with_the_same_command(world):
    path = written(world, retrieval() | {"extraction": {"part": 8}})
    arguments = ["audit", str(path), "--out", str(world / "run")]
    # In a process of its own, as a user's: what other tests loaded has handlers of its own.
    done = alone(STOPPED, world, *arguments)
    assert done.returncode == 130, done.stderr
    assert " ".join(done.stderr.split()).endswith(
        f"interrupted; the outputs so far are kept in {world / 'evidence'}, and the same "
        "command continues from there"
    )
    assert not (world / "run").exists()
    parts = {path.name: path.stat().st_mtime_ns for path in world.rglob("part-0*")}
    assert parts
    assert run(arguments) == 0
    after = {path.name: path.stat().st_mtime_ns for path in world.rglob("part-0*")}
    assert parts.items() <= after.items()
    assert len(after) == 12


@pytest.mark.parametrize(("engine", "gpus"), [("ray", 0), ("native", 2)])
def test_each_of_several_workers_opens_the_model_by_name(world, monkeypatch, engine, gpus):
    """A loaded model stays in its process, and on its GPU."""
    passed = []

    def extract(_, model, store, **options):
        passed.append((model, options))
        raise RunError("seen")

    monkeypatch.setattr(extraction, "extract_embeddings", extract)
    monkeypatch.setattr(runtimes, "gpus", lambda: gpus)
    monkeypatch.chdir(world)
    config = audits.parse_config(
        diversity() | {"extraction": {"engine": engine, "dtype": "float32"}}
    )
    with pytest.raises(RunError, match="seen"):
        audits.prepare(config, base=Path())
    model, options = passed[0]
    if engine == "ray":
        assert model == f"hf:{world / 'clip'}"
        assert options["settings"].options == RunOptions(dtype="float32")
    else:  # on a processor the loaded model runs, however many GPUs there are
        assert model.info.device == "cpu"
        assert "options" not in options


def test_the_weights_of_one_model_at_a_time_are_in_memory(world, monkeypatch):
    alive = weakref.WeakSet()
    alive_counts = []
    load = RunOptions.load

    def counted(options, name):
        gc.collect()
        model = load(options, name)
        alive.add(model.model)
        alive_counts.append(len(alive))
        return model

    monkeypatch.setattr(RunOptions, "load", counted)
    for name in ("second", "third"):
        shutil.copytree(world / "clip", world / name)
        settings = json.loads((world / name / "preprocessor_config.json").read_text())
        changed = settings | {"image_mean": [0.1 * len(name)] * 3}
        (world / name / "preprocessor_config.json").write_text(json.dumps(changed))
    models = {name: {"model": f"hf:{name}"} for name in ("clip", "second", "third")}
    config = audits.parse_config(retrieval() | {"models": models})
    ready = audits.prepare(config, base=world)
    assert {*ready.data.models} == {*models}
    assert max(alive_counts) == 1
    assert len(alive_counts) <= 6

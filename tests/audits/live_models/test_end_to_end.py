"""From pictures and a model to a report, in one configuration and through the real command."""

import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from PIL import Image

from audits.live_models.worlds import KINDS, retrieval, written
from equipoise import report
from equipoise.cli.app import app, run
from equipoise.evidence import RunOptions


@pytest.fixture
def audit(world):
    """Run `equipoise audit` on a configuration; give the run."""

    def ran(values, name):
        config, out = written(world, values), world / name
        done = CliRunner().invoke(app, ["audit", str(config), "--out", str(out)])
        assert done.exit_code == 0, done.output
        return report.read(out)

    return ran


@pytest.fixture
def loads(monkeypatch):
    """The models that are loaded."""
    names = []
    load = RunOptions.load

    def counted(options, name):
        names.append(name)
        return load(options, name)

    monkeypatch.setattr(RunOptions, "load", counted)
    return names


@pytest.mark.parametrize("kind", KINDS)
def test_a_second_run_gives_the_same_bytes_and_runs_no_model(kind, audit, world, loads):
    first = audit(KINDS[kind](), "first")
    assert loads == [f"hf:{world / 'clip'}"]
    second = audit(KINDS[kind](), "second")
    assert len(loads) == 1
    assert first.findings
    for file in ("findings.parquet", "findings.json"):
        assert (world / "first" / file).read_bytes() == (world / "second" / file).read_bytes()
    manifest = first.manifest
    assert manifest.models == second.manifest.models
    assert manifest.inputs == second.manifest.inputs
    assert manifest.config["models"] == {"m": {"model": "hf:clip"}}
    about = manifest.models["m"]
    assert (about["family"], about["dimension"], about["dtype"]) == ("clip", 64, "float32")
    counts = manifest.counts["prepared"]["models"]["m"]
    assert counts["images"] == {"asked": 96, "failed": 0}


def test_a_model_that_is_run_and_the_files_it_wrote_give_the_same_numbers(audit, world):
    from equipoise.models import load_model

    clip = load_model(f"hf:{world / 'clip'}", device="cpu", dtype="float32")
    images = pl.read_csv(world / "images.csv")
    pixels = [np.asarray(Image.open(world / "pictures" / file)) for file in images["file"]]
    np.savez(world / "own.npz", vectors=clip.embed_images(pixels), ids=images["image_id"])
    texts = pl.read_csv(world / "queries.csv")["text"].to_list()
    np.save(world / "queries.npy", clip.embed_texts(texts))
    files = {
        "images": {"file": "own.npz", "array": "vectors", "ids": "ids"},
        "queries": {"file": "queries.npy"},
    }
    values = retrieval() | {"models": {"run": {"model": "hf:clip"}, "read": files}}
    result = audit(values, "mixed")
    by_model = {
        name: {(f.metric, f.subject, f.null): f.value for f in result.findings if f.model == name}
        for name in ("run", "read")
    }
    assert by_model["run"].keys() == by_model["read"].keys()
    for place, value in by_model["run"].items():
        assert value == pytest.approx(by_model["read"][place], abs=1e-5, nan_ok=True)
    assert result.manifest.models.keys() == {"run"}
    notes = [note for note in result.manifest.notes if "of length 1" in note]
    assert notes == ["read: the embeddings are not of length 1; they are normalised."]


@pytest.mark.parametrize("kind", KINDS)
def test_pictures_that_cannot_be_decoded_are_counted_by_group(kind, audit, world):
    images = pl.read_csv(world / "images.csv")
    level = images.filter(pl.col("frame") == "level")["file"].to_list()
    upright = images.filter(pl.col("frame") == "upright")["file"].to_list()
    for name in level[:3]:
        (world / "pictures" / name).write_bytes(b"\x89PNG no picture")
    (world / "pictures" / upright[0]).unlink()
    result = audit(KINDS[kind](), "run")
    groups = "sets" if kind == "associations" else "frame"
    failures = {
        (row["stage"], row["group"]): (row["n"], row["of"])
        for row in result.tables["failures"].to_pylist()
        if row["groups"] in ("", groups)
    }
    expected = {"decode": (3, 3, 0), "read": (1, 0, 1)}
    assert failures == {
        (stage, group): (n, of)
        for stage, counts in expected.items()
        for (group, of), n in zip((("", 96), ("level", 48), ("upright", 48)), counts, strict=True)
    }
    assert any("4 of 96 images failed" in warning for warning in result.manifest.warnings)


@pytest.mark.parametrize("kind", ["retrieval", "associations"])
def test_pictures_with_the_same_bytes_are_counted(kind, audit, world):
    files = pl.read_csv(world / "images.csv").filter(pl.col("frame") == "level")["file"].to_list()
    for name in files[1:3]:
        shutil.copy(world / "pictures" / files[0], world / "pictures" / name)
    manifest = audit(KINDS[kind](), "run").manifest
    (duplicates,) = manifest.counts["prepared"]["identical"].values()
    assert (duplicates["images"], duplicates["pictures"]) == (3, 1)
    assert any(note.startswith("images: 3 of 96 images have the same") for note in manifest.notes)


def test_more_failures_than_allowed_stop_the_run_and_leave_no_report(world, capsys):
    pictures = sorted((world / "pictures").iterdir())
    for picture in pictures[:6]:
        picture.write_bytes(b"")
    out = str(world / "run")
    assert run(["audit", str(written(world, retrieval())), "--out", out]) == 2
    message = capsys.readouterr().err
    assert "6 of 96 images failed" in message
    assert "raise max_failures" in message
    assert not Path(out).exists()
    more = written(world, retrieval() | {"extraction": {"max_failures": 0.1}})
    assert run(["audit", str(more), "--out", out]) == 0

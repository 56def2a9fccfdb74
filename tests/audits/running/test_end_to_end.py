"""From pictures and a model to a report, in one configuration and through the real command."""

import errno
import itertools
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from PIL import Image

from audits.running.worlds import CHOSEN, KINDS, diversity, retrieval, written
from equipoise import audits, report
from equipoise.cli.app import app, run
from equipoise.core import AuditResult
from equipoise.evidence import RunOptions

Audit = Callable[[dict[str, Any], str], AuditResult]


@pytest.fixture
def audit(world: Path) -> Audit:
    """Run `equipoise audit` on a configuration; give the run."""

    def ran(values: dict[str, Any], name: str) -> AuditResult:
        config, out = written(world, values), world / name
        done = CliRunner().invoke(app, ["audit", str(config), "--out", str(out)])
        assert done.exit_code == 0, done.output
        return report.read(out)

    return ran


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The models that are loaded."""
    found: list[str] = []
    load = RunOptions.load

    def counted(options: Any, name: str) -> Any:
        found.append(name)
        return load(options, name)

    monkeypatch.setattr(RunOptions, "load", counted)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_second_run_gives_the_same_bytes_and_runs_no_model(
    kind: str, audit: Audit, world: Path, loads: list[str]
) -> None:
    first = audit(KINDS[kind](), "first")
    assert loads == [f"hf:{world / 'clip'}"]
    second = audit(KINDS[kind](), "second")
    assert len(loads) == 1
    assert first.findings
    for file in ("findings.parquet", "findings.json"):
        assert (world / "first" / file).read_bytes() == (world / "second" / file).read_bytes()
    assert first.manifest.models == second.manifest.models
    assert first.manifest.inputs == second.manifest.inputs


@pytest.mark.parametrize("kind", KINDS)
def test_the_manifest_says_what_was_asked_what_ran_and_what_it_gave(
    kind: str, audit: Audit
) -> None:
    manifest = audit(KINDS[kind](), "run").manifest
    assert manifest.config["models"] == {"m": {"model": "hf:clip"}}
    assert manifest.resolved["extraction"]["store"] == "evidence"
    about = manifest.models["m"]
    assert (about["family"], about["dimension"], about["dtype"]) == ("clip", 64, "float32")
    assert len(about["weights_sha256"]) == 64
    evidence = {name: rows for name, rows in manifest.inputs.items() if "evidence/" in name}
    images = next(one for name, one in evidence.items() if "embeddings" in name)
    assert images["rows"] == 96
    asked = manifest.counts["prepared"]["models"]["m"]
    assert asked["images"] == {"asked": 96, "failed": 0}
    assert {name.split("/")[1] for name in evidence} == (
        {"embeddings"} if kind == "diversity" else {"embeddings", "texts"}
    )


def test_a_model_that_is_run_and_the_files_it_wrote_give_the_same_numbers(
    audit: Audit, world: Path
) -> None:
    from equipoise.models import load_model

    clip = load_model(f"hf:{world / 'clip'}", device="cpu", dtype="float32")
    images = pl.read_csv(world / "images.csv")
    pixels = [np.asarray(Image.open(world / "pictures" / one)) for one in images["file"]]
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
    told = [one for one in result.manifest.notes if "of length 1" in one]
    assert told == ["read: the embeddings are not of length 1; they are normalised."]


def test_a_changed_picture_is_embedded_anew_and_no_other_part(
    audit: Audit, world: Path, loads: list[str]
) -> None:
    values = retrieval() | {"extraction": {"part": 24}}
    before = audit(values, "before")
    parts = {path.name for path in (world / "evidence" / "embeddings").rglob("part-*")}
    picture = sorted((world / "pictures").iterdir())[30]
    Image.new("RGB", (64, 64), (255, 0, 0)).save(picture)
    after = audit(values, "after")
    changed = {path.name for path in (world / "evidence" / "embeddings").rglob("part-*")}
    assert len(parts) == len(changed) == 4
    assert [name[:10] for name in sorted(parts - changed)] == ["part-00001"]
    assert len(loads) == 2
    assert [f.value for f in before.findings] != [f.value for f in after.findings]


@pytest.mark.parametrize("kind", KINDS)
def test_pictures_that_cannot_be_decoded_are_counted_by_group(
    kind: str, audit: Audit, world: Path
) -> None:
    images = pl.read_csv(world / "images.csv")
    level = images.filter(pl.col("frame") == "level")["file"].to_list()
    upright = images.filter(pl.col("frame") == "upright")["file"].to_list()
    for name in level[:3]:
        (world / "pictures" / name).write_bytes(b"\x89PNG no picture")
    (world / "pictures" / upright[0]).unlink()
    result = audit(KINDS[kind](), "run")
    rows = result.tables["failures"].to_pylist()
    groups = "sets" if kind == "associations" else "frame"
    found = {
        (row["stage"], row["group"]): (row["n"], row["of"])
        for row in rows
        if row["groups"] in ("", groups)
    }
    assert {row["model"] for row in rows} == {"m"}
    assert found == {
        ("decode", ""): (3, 96),
        ("decode", "level"): (3, 48),
        ("decode", "upright"): (0, 48),
        ("read", ""): (1, 96),
        ("read", "level"): (0, 48),
        ("read", "upright"): (1, 48),
    }
    failed = [one for one in result.manifest.notes if "failed" in one]
    assert any("4 of 96 images failed and are in no number" in one for one in failed)
    assert not [one for one in result.manifest.notes if "no embedding" in one or "no vector" in one]
    assert not [one for one in result.manifest.notes if "without an embedding" in one]
    assert any(
        "3 of the 48 images of level failed, and 1 of the 48 of upright" in o for o in failed
    )
    page = (world / "run" / "report.html").read_text(encoding="utf-8")
    assert 'id="failures"' in page


@pytest.mark.parametrize("kind", ["retrieval", "associations"])
def test_pictures_with_the_same_bytes_are_counted_by_group(
    kind: str, audit: Audit, world: Path
) -> None:
    files = pl.read_csv(world / "images.csv").filter(pl.col("frame") == "level")["file"].to_list()
    for name in files[1:3]:
        shutil.copy(world / "pictures" / files[0], world / "pictures" / name)
    manifest = audit(KINDS[kind](), "run").manifest
    groups = "sets" if kind == "associations" else "frame"
    (found,) = manifest.counts["prepared"]["identical"].values()
    assert (found["images"], found["pictures"]) == (3, 1)
    assert (found["groups"][groups]["level"], found["groups"][groups]["upright"]) == (3, 0)
    assert any(note.startswith("images: 3 of 96 images have the same") for note in manifest.notes)
    assert any("the same bytes as another are level 3, upright 0" in one for one in manifest.notes)


def test_more_failures_than_allowed_stop_the_run_and_leave_no_report(
    world: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pictures = sorted((world / "pictures").iterdir())
    for picture in pictures[:6]:
        picture.write_bytes(b"")
    out = str(world / "run")
    assert run(["audit", str(written(world, retrieval())), "--out", out]) == 2
    said = capsys.readouterr().err
    assert "6 of 96 images failed" in said
    assert "raise max_failures" in said
    assert not Path(out).exists()
    more = written(world, retrieval() | {"extraction": {"max_failures": 0.1}})
    assert run(["audit", str(more), "--out", out]) == 0


def test_a_full_disk_is_one_error_and_the_same_command_goes_on(
    world: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    config = written(world, diversity() | {"extraction": {"part": 16}})
    real, calls = os.fsync, itertools.count()

    def full(descriptor: int) -> None:
        if next(calls) > 9:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(descriptor)

    def outcome(name: str) -> int:
        return run(["audit", str(config), "--out", str(tmp_path / name)])

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        assert outcome("a") == 2
    errors = capsys.readouterr().err
    assert errors.count("No space left on device. To do: free space") == 1
    assert "Traceback" not in errors
    assert not (tmp_path / "a").exists()
    kept = [*world.glob("evidence/embeddings/*/part-*")]
    assert 0 < len(kept) < 6
    assert outcome("a") == 0
    evidence = {path.name: path.read_bytes() for path in world.glob("evidence/embeddings/*/*")}
    shutil.rmtree(world / "evidence")
    assert outcome("b") == 0
    assert evidence == {
        path.name: path.read_bytes() for path in world.glob("evidence/embeddings/*/*")
    }
    findings = [(tmp_path / name / "findings.parquet").read_bytes() for name in "ab"]
    assert findings[0] == findings[1]


def test_two_names_of_one_model_are_computed_once(audit: Audit, world: Path) -> None:
    again = {"model": f"hf:{world / 'clip'}"}
    result = audit(retrieval() | {"models": {"a": {"model": "hf:clip"}, "b": again}}, "run")
    assert len([*(world / "evidence" / "embeddings").iterdir()]) == 1
    by_model = [[f.value for f in result.findings if f.model == name] for name in "ab"]
    np.testing.assert_equal(*by_model)


def test_templates_are_averaged_as_unit_vectors(audit: Audit, world: Path) -> None:
    from equipoise.models import load_model

    templates = ["a picture of {}", "{}"]
    values = retrieval()
    values["queries"] |= {"templates": templates}
    result = audit(values, "run")
    clip = load_model(f"hf:{world / 'clip'}", device="cpu", dtype="float32")
    texts = pl.read_csv(world / "queries.csv")["text"].to_list()
    every = np.stack([clip.embed_texts([one.format(text) for text in texts]) for one in templates])
    every /= np.linalg.norm(every, axis=-1, keepdims=True)
    mean = every.astype(np.float64).mean(axis=0)
    np.save(world / "q.npy", mean)
    prepared = audits.prepare(audits.load_config(world / "audit.yaml"), base=world)
    (queries,) = (one for one in prepared.models.outputs if one.on == "queries")
    expected = mean / np.linalg.norm(mean, axis=1, keepdims=True)
    np.testing.assert_allclose(queries.numbers, expected, atol=1e-6)
    assert queries.ids.to_list() == ["q0", "q1", "q2", "q3"]
    assert result.manifest.counts["prepared"]["models"]["m"]["queries"]["asked"] == len(CHOSEN)

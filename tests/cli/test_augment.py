"""`equipoise augment`: drawn faces, one's own images, and what is wrong with a configuration."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

from cli.faces_project import CONFIG, call, draw
from equipoise.models import load_model
from equipoise.report import read
from equipoise.report.words import conclusion_sentence


def test_one_s_own_images(tmp_path, command):
    draw(tmp_path)
    (tmp_path / "config.yaml").write_text(CONFIG.replace("repeats: 1", "repeats: 2"))
    run = tmp_path / "run"
    code, out, err = command(*call(tmp_path), "--json")
    assert code == 0, err
    output = json.loads(out)
    assert [row["arm"] for row in output["augmentation"]] == [
        "biased", "partial mixing", "uniform noise", "balanced"
    ]  # fmt: skip
    assert "Training on changed faces" in (run / "report.html").read_text(encoding="utf-8")
    states = [*(tmp_path / "evidence" / "augmentation").rglob("*.pt")]
    assert len(states) == 8
    stamps = {path: path.stat().st_mtime_ns for path in states}
    before = (run / "findings.parquet").read_bytes()
    assert command(*call(tmp_path), "--overwrite")[0] == 0
    assert stamps == {path: path.stat().st_mtime_ns for path in states}
    assert (run / "findings.parquet").read_bytes() == before


def test_each_training_is_saved_with_its_predictions_and_covered_faces(tmp_path, command):
    draw(tmp_path)
    text = CONFIG.replace("[cnn]", "{tiny one: 'timm:test_resnet'}").replace("size: 40", "size: 48")
    (tmp_path / "config.yaml").write_text(
        text.replace("repeats: 1", "repeats: 2") + "output: trained\nsave: all\n"
        "arms: [uniform noise, biased]\nkeep_originals: true\n"
        "noise: {kind: added, strength: 0.5, share: 1}\n"
    )
    code, _, err = command(*call(tmp_path))
    assert code == 0, err
    table = pl.read_parquet(tmp_path / "trained" / "predictions.parquet")
    assert table["image_id"].to_list() == [f"i{place:02d}" for place in range(32)]
    images, covered = (
        [np.asarray(Image.open(tmp_path / "trained" / file)) for file in table[name]]
        for name in ("whole", "covered")
    )
    left, top, right, bottom = table.select("left", "top", "right", "bottom").row(3)
    assert (covered[3][top:bottom, left:right] == 128).all()
    changed = (covered[3] != images[3]).any(axis=2)
    assert not np.delete(changed, np.s_[left:right], axis=1).any()
    trainings = [name for name in table.columns if name.startswith("tiny one")]
    assert trainings == [
        f"tiny one, {arm}{run}" for arm in ("biased", "uniform noise") for run in ("", ", run 2")
    ]
    for training in trainings:
        model = load_model(f"timm:{tmp_path / 'trained' / training}", device="cpu")
        codes = model.predict_proba(images).argmax(axis=1)
        assert [model.labels[code] for code in codes] == table[training].to_list()
    assert command(*call(tmp_path), "--overwrite")[0] == 0


def test_a_plan_counts_trainings_and_images_and_trains_nothing(tmp_path, command):
    draw(tmp_path)
    (tmp_path / "config.yaml").write_text(
        CONFIG.replace("repeats: 1", "repeats: 2").replace(
            "networks: [cnn]", "networks: [cnn, vit]"
        )
        + "arms: [biased, balanced]\nschedules: {vit: {stages: [{epochs: 2}, {epochs: 3}]}}\n"
    )
    code, out, err = command("augment", str(tmp_path / "config.yaml"), "--plan", "--json")
    assert code == 0, err
    planned = json.loads(out)
    assert (planned["trainings"], planned["epochs"], planned["models"]) == (8, 4 * 1 + 4 * 5, 0)
    rows = {(row["images"], row["class"]): row for row in planned["images"]}
    assert rows["biased", "bar"] == {
        "images": "biased", "class": "bar", "long hair": 8, "short hair": 0
    }  # fmt: skip
    assert not [*(tmp_path / "evidence").rglob("*")]
    assert command("augment", "--plan")[0] == 2
    code, _, err = command("augment", str(tmp_path / "config.yaml"), "--plan", "--open")
    assert (code, "--open: can't go with --plan" in err) == (2, True)


@pytest.mark.parametrize("other", ["plan", "audit"])
def test_commands_of_audits_name_the_command_of_a_configuration(tmp_path, command, other):
    path = tmp_path / "config.yaml"
    path.write_text(CONFIG)
    code, _, err = command(other, str(path))
    assert code == 2
    assert f"'equipoise augment {path}'" in err


def test_drawn_faces_in_words(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    arguments = ("augment", "--networks", "cnn", "--images", "40", "--repeats", "1")
    code, out, err = command(*arguments)
    assert code == 0, err
    result = read(Path("runs/augment"))
    first = result.conclusions[0]
    start = conclusion_sentence(result.findings[first.finding], first)[:40]
    assert out.strip().startswith(start)
    assert Path("runs/augment/report.html").is_file()
    assert command(*arguments)[2].startswith("error: runs/augment: holds a run already.")
    assert command(*arguments, "--overwrite")[0] == 0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("label: tool", "lable: tool", "lable"),
        ("networks: [cnn]", "networks: [resnet]", "networks: given 'resnet'"),
        ("networks: [cnn]", "networks: [cnn, cnn]", "'cnn' appears more than once"),
        (
            "faces: {columns",
            "faces: {detector: cascade, columns",
            "expected one of 'columns', 'detector'",
        ),
        (", bottom: bottom", "", "columns must name left, top, right, bottom"),
        ("repeats: 1", "repeats: 0", "repeats"),
        ("size: 40", "size: 40\nschedules: {vit: {epochs: 2}}", "schedules: given 'vit'"),
        ("repeats: 1", "repeats: 1\nfamilies: {CNN: [resnet]}", "families.CNN"),
        (
            "repeats: 1",
            "repeats: 1\noutput: trained",
            "networks.cnn: 'cnn'; 'output' needs networks of timm",
        ),
        ("repeats: 1", "repeats: 1\narms: [balanced]", "arms: expected 'biased' and others"),
        ("repeats: 1", "repeats: 1\nmixing: {share: 0}", "mixing.share"),
        ("repeats: 1", "repeats: 1\nnoise: {strength: 2}", "noise.strength"),
        ("repeats: 1", "repeats: 1\ndraws: {attributes: 3}", "draws.attributes: needs images"),
        ("repeats: 1", "repeats: 1\ndraws: {targets: 9}", "expected 1 runs of 9 different images"),
        ("label: tool", "label: job", "job"),
        ("right: right", "right: tool", "biased.csv"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, command, old, new, message):
    draw(tmp_path)
    path = tmp_path / "config.yaml"
    assert old in CONFIG
    path.write_text(CONFIG.replace(old, new))
    code, _, err = command(*call(tmp_path))
    assert code == 2
    assert err.startswith("error:")
    assert message in err
    assert not (tmp_path / "run").exists()

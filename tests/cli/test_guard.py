"""Ends of a command that it can't report itself: its model exits, crashes or hangs."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from alone import alone, environment
from picture_models import write_pictures

MODEL = """
import os, signal, sys, time
import numpy as np
from equipoise.models import ModelInfo

def exits(): sys.exit(0)
def leaves(): os._exit(0)
def crashes(): os.abort()
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


LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the guard is of Linux")


@pytest.mark.parametrize(
    ("act", "named"),
    [
        ("exits", "SystemExit: 0"),
        pytest.param("leaves", "from within (exit code 0)", marks=LINUX),
        pytest.param("crashes", "by SIGABRT", marks=LINUX),
    ],
)
def test_a_model_that_ends_the_command_is_an_error(act, named, tmp_path):
    with started(tmp_path, act) as process:
        out, err = process.communicate(timeout=120)
    errors = [line for line in err.splitlines() if line.startswith("error: ")]
    assert (process.returncode, out, len(errors)) == (2, "", 1), err
    assert named in errors[0]


@LINUX
def test_a_model_that_hangs_is_interrupted(tmp_path):
    with started(tmp_path, "hangs") as process:
        while "hangs" not in process.stderr.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.splitlines()[-1].startswith("interrupted; ")
    assert not (tmp_path / "run").exists()


GUARDED = """
import os, signal, sys, time
from equipoise.cli.guard import guarded
def work():
    print(os.getpid(), flush=True)
    {}
sys.exit(guarded(work))
"""


@LINUX
@pytest.mark.parametrize(
    ("work", "code", "errors"),
    [
        ("return 0", 0, 0),
        ("return 1", 1, 0),
        ("return 143", 143, 0),
        ("os._exit(1)", 2, 1),
        ("os.kill(os.getpid(), signal.SIGKILL)", 2, 1),
    ],
)
def test_only_an_end_without_a_word_is_reported(work, code, errors):
    done = alone(GUARDED.format(work))
    assert (done.returncode, done.stderr.count("error: ")) == (code, errors)


@LINUX
def test_the_command_ends_with_the_process_that_was_started():
    with subprocess.Popen(
        [sys.executable, "-c", GUARDED.format("time.sleep(60)")], stdout=subprocess.PIPE, text=True
    ) as process:
        inner = int(process.stdout.readline())
        process.kill()
    for _ in range(100):
        state = Path(f"/proc/{inner}/stat")
        if not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.1)
    pytest.fail("the command outlived its parent")

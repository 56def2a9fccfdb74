"""The command `transformers serve`: its answers are those of the same model loaded here."""

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager

import numpy as np
import polars as pl
from PIL import Image

from audits.predictions.models import numbers
from equipoise import audits
from equipoise.models import load_model
from model_checkpoints import in_hub_cache

NAME, QUESTION = "owner/tiny", "what is this ?"
LAST = "doctor"
"""The word that ends an answer of the tiny model."""


def test_a_served_model_answers_and_is_audited_as_the_same_model_loaded_here(
    checkpoint, tmp_path, monkeypatch
):
    in_hub_cache(tmp_path, monkeypatch, checkpoint("llava"))
    with transformers_serve(tmp_path / "cache") as url:
        pictures, answers = answered_pictures()
        write_pictures(tmp_path, pictures)
        local = audit(tmp_path, f"hf:{NAME}", "local")
        served = audit(tmp_path, f"served:{url}#{NAME}", "served")
    assert len({*answers}) > 4
    assert stored_answers(tmp_path / "local") == [*answers]
    assert stored_answers(tmp_path / "served") == [*answers]
    assert numbers(served) == numbers(local)


@contextmanager
def transformers_serve(cache):
    """Run the command on models of a cache of the hub; yields its URL when it answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "transformers.cli.transformers", "serve", NAME]
    command += ["--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    environment = {**os.environ, "HF_HUB_CACHE": str(cache), "HF_HUB_OFFLINE": "1"}
    log = cache / "serve.log"
    with log.open("wb") as file:
        process = subprocess.Popen(command, env=environment, stdout=file, stderr=file)
    try:
        while not is_healthy(port):
            assert process.poll() is None, log.read_text()
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait()


def is_healthy(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False


def answered_pictures():
    """Return pictures whose answers end before the longest that a loaded model gives."""
    pictures = list(np.random.default_rng(5).integers(0, 256, (40, 33, 47, 3), dtype=np.uint8))
    answers = load_model(f"hf:{NAME}", device="cpu").answer(pictures, QUESTION)
    pairs = [pair for pair in zip(pictures, answers, strict=True) if pair[1].endswith(LAST)]
    return zip(*pairs, strict=True)


def write_pictures(folder, pictures):
    (folder / "pictures").mkdir()
    files = [f"{place:02}.png" for place in range(len(pictures))]
    for file, picture in zip(files, pictures, strict=True):
        Image.fromarray(picture).save(folder / "pictures" / file)
    groups = ["ab"[place % 2] for place in range(len(files))]
    pl.DataFrame({"id": files, "file": files, "group": groups}).write_csv(folder / "images.csv")


def audit(folder, model, store):
    config = {
        "audit": "answers",
        "data": {"images": {"table": "images.csv", "id": "id", "root": "pictures",
                            "path": "file"}, "groups": ["group"], "min_group_size": 5},
        "models": {"tiny": {"model": model, "question": QUESTION}},
        "extraction": {"device": "cpu", "store": store},
        "resampling": {"replicates": 20, "permutations": 20},
    }  # fmt: skip
    return audits.run(audits.parse_config(config), base=folder)


def stored_answers(store):
    (part,) = store.glob("answers/*/part-*.parquet")
    return pl.read_parquet(part).sort("image_id")["answer"].to_list()

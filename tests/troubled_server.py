"""Audits of a served model in all kinds of trouble, killed many times."""

import base64
import hashlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import chdir, closing

import numpy as np
import polars as pl
import pytest
import yaml
from PIL import Image

from audits.predictions.models import NAMES, painted
from chat_server import completion
from equipoise.cli.app import run

KEY = "sk-that-nobody-may-see"
QUESTION = "Which colour is it?"
PRICES = {"tiny": {"input": 100.0, "output": 1000.0}}
REFUSALS = (
    (200, completion("", reason="content_filter"), {}),
    (200, completion(None, refusal="I can't help with that."), {}),
    (200, {"choices": [], "error": {"code": "content_filter"}}, {}),
    (400, {"error": {"code": "content_filter", "message": "filtered"}}, {}),
)
N = 120


def vary_pictures(folder):
    """Make each picture another one: its first pixel has its place in the table."""
    for place, path in enumerate(pl.read_csv(folder / "images.csv")["file"]):
        with Image.open(folder / "pictures" / path) as picture:
            pixels = np.asarray(picture).copy()
        pixels[0, 0] = place
        Image.fromarray(pixels).save(folder / "pictures" / path)


class Trouble:
    """Replies of a server: a picture's last reply is always the same, the first is often trouble.

    Attributes
    ----------
    charged : int
        Replies of status 200, whole or not, and requests that hung.
    answers : int
        Whole replies that are no trouble.
    """

    def __init__(self):
        self._seen, self._lock = set(), threading.Lock()
        self.charged = self.answers = 0

    def __call__(self, picture, _):
        place = int(picture[0, 0, 0])
        with self._lock:
            is_first = place not in self._seen
            self._seen.add(place)
            reply = self._trouble(place % 30) if is_first else None
            if reply is None:
                reply = self.last(picture, place)
                self.answers += 1
            cut = reply == "cut"
            self.charged += cut or reply == "hang" or reply[0] == 200
        if reply == "hang":
            time.sleep(2.5)
        return None if isinstance(reply, str) else reply

    @staticmethod
    def last(picture, place):
        """Return the colour that a picture has most of, or a refusal."""
        if place % 10 == 0:
            return REFUSALS[place // 10 % len(REFUSALS)]
        colour = NAMES[int(picture[1:].reshape(-1, 3).sum(axis=0).argmax())]
        return 200, completion(colour), {}

    @staticmethod
    def _trouble(kind):
        """Return a troubled reply, None for no trouble."""
        whole = json.dumps(completion("red")).encode()
        echo = {"error": {"message": f"too many requests with {KEY}"}}
        return {
            1: (429, echo, {"Retry-After": "1"}),
            2: (500, f"<html>{KEY}".encode(), {}),
            3: "hang",
            4: "cut",
            5: (200, whole, {"Content-Length": str(len(whole) + 9)}),
            6: (200, b'{"choices": [', {}),
            7: (200, {"choices": {"message": KEY}}, {}),
            8: (503, {}, {"Retry-After": "soon"}),
        }.get(kind)

    def slow(self, picture, number):
        """Return the last reply in pieces, as a slow server sends it."""
        status, body, headers = self.last(picture, int(picture[0, 0, 0]))
        data = json.dumps(body).encode()
        return status, [data[:20], data[20:]], headers


def digest_of(request):
    """Return the SHA-256 of the picture of a request."""
    url = request["messages"][0]["content"][0]["image_url"]["url"]
    return hashlib.sha256(base64.b64decode(url.partition(",")[2])).hexdigest()


def config_of(server, **service):
    """Return the configuration of an audit of the pictures of `painted`."""
    return {
        "audit": "answers",
        "data": {"images": {"table": "images.csv", "id": "id", "root": "pictures",
                            "path": "file"}, "groups": ["group"]},
        "models": {"tiny": {"model": f"served:{server.url}#tiny", "question": QUESTION,
                            "service": {"key": "SECRET", "prices": PRICES, "timeout": 2.0,
                                        "attempts": 9, **service}}},
        "extraction": {"part": 16},
        "resampling": {"replicates": 20, "permutations": 20},
    }  # fmt: skip


def stored(folder):
    """Return the digests of the pictures whose answers are in the store."""
    path = folder / "evidence" / "requests.sqlite"
    if not path.is_file():
        return set()
    with closing(sqlite3.connect(path, timeout=60)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master").fetchall()
        if ("exchanges",) not in tables:
            return set()
        rows = connection.execute("SELECT request FROM exchanges").fetchall()
    return {json.loads(request)["picture"] for (request,) in rows}


class KilledAudit:
    """An audit in a process of its own, killed when its server has got so many requests.

    Attributes
    ----------
    output : bytes
        Everything that the processes wrote to the terminal.
    repeated : list of str
        Digests of pictures that were asked about after their answer was in the store.
    """

    def __init__(self, server, folder, **service):
        self.server, self.folder = server, folder
        self.output, self.repeated = b"", []
        folder.mkdir()
        painted(folder, N)
        vary_pictures(folder)
        (folder / "audit.yaml").write_text(yaml.safe_dump(config_of(server, **service)))
        self.command = [sys.executable, "-m", "equipoise", "audit", "audit.yaml", "--out", "run"]

    def kill(self, goal):
        """Run the audit until the server has got so many requests, and kill it."""
        process, n_before, answered = self._start()
        while process.poll() is None and len(self.server.requests) < goal:
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        self._end(process, n_before, answered)

    def finish_here(self):
        """Run the audit to its end, in this process."""
        with chdir(self.folder), pytest.MonkeyPatch.context() as patch:
            patch.setenv("SECRET", KEY)
            assert run(self.command[3:]) == 0

    def finish(self):
        """Run the audit to its end, in a process of its own."""
        process, n_before, answered = self._start()
        self._end(process, n_before, answered)
        assert process.returncode == 0, self.output.decode()

    def _start(self):
        answered = stored(self.folder)
        options = {"cwd": self.folder, "env": {**os.environ, "SECRET": KEY}}
        process = subprocess.Popen(
            self.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options
        )
        return process, len(self.server.requests), answered

    def _end(self, process, n_before, answered):
        self.output += process.communicate()[0]
        later = self.server.requests[n_before:]
        self.repeated += answered.intersection(map(digest_of, later))

    def spending(self):
        """Return tokens and cost of all runs, as the manifest has them."""
        manifest = json.loads((self.folder / "run" / "manifest.json").read_text())
        return manifest["counts"]["prepared"]["spending"]["tiny"]["all_runs"]

    def files_with(self, text):
        """Return the files below the folder that have a text."""
        paths = [path for path in self.folder.rglob("*") if path.is_file()]
        return [path for path in paths if text.encode() in path.read_bytes()]


def tables_of(folder):
    """Return the bytes of the tables of a run and of its evidence, by name."""
    paths = [*(folder / "run").rglob("*.parquet"), *(folder / "evidence").rglob("*.parquet")]
    return {path.name: path.read_bytes() for path in sorted(paths)}


def check_kills(server, folder, goals, concurrency=4, **service):
    """Kill an audit at numbers of requests, and compare it with an undisturbed one."""
    server.reply = trouble = Trouble()
    audit = KilledAudit(server, folder / "killed", concurrency=concurrency, **service)
    for kills, goal in enumerate(goals, start=1):
        audit.kill(goal)
        assert trouble.answers - len(stored(audit.folder)) <= concurrency * kills
    audit.finish()
    assert trouble.answers <= N + concurrency * len(goals)
    assert audit.repeated == []
    assert {int(request["picture"][0, 0, 0]) for request in server.requests} == {*range(N)}
    assert 0 <= audit.spending()["requests"] - trouble.charged <= concurrency * len(goals)
    charged = trouble.charged * (10 * 100.0 + 1 * 1000.0) / 1e6
    assert audit.spending()["cost"] >= charged
    assert audit.spending()["requests_without_reply"] <= N + concurrency * len(goals)
    assert audit.files_with(KEY) == []
    assert KEY.encode() not in audit.output
    assert b"Traceback" not in audit.output
    server.reply = trouble.slow
    undisturbed = KilledAudit(server, folder / "undisturbed", concurrency=1)
    undisturbed.finish_here()
    tables, expected = tables_of(audit.folder), tables_of(undisturbed.folder)
    assert len(tables) > 5
    assert {*tables} == {*expected}
    assert {name for name in tables if tables[name] != expected[name]} == set()

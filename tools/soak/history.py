"""Judgements of people in a run that several processes change, are killed at, and find full.

Pages are served and answers are read by processes of their own. What a client was told is kept
is written down here, and looked for in the run afterwards.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import resource
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Barrier, BrokenBarrierError, Thread
from typing import Any
from urllib.parse import urlencode, urlsplit

import numpy as np
import polars as pl

from equipoise.core import RunError
from equipoise.evidence import LABELS, keep_labels, new_run
from equipoise.report import read
from equipoise.review import read_labels
from tests.cause_worlds import World
from tools.soak.table import Row
from tools.soak.work import FORKS

IMAGES = 300
QUESTION = "good"
Judgement = tuple[str, str]
"""Image and labeller."""


def label_history(folder: Path, *, kills: int = 40, rounds: int = 5, seed: int = 0) -> list[Row]:
    """Change the labels of a run from several processes; return whether accepted ones are there.

    Parameters
    ----------
    folder : Path
    kills : int
        Processes to kill.
    rounds : int
        How often two pages and two readings change the run at the same time.
    seed : int
    """
    folder.mkdir(parents=True, exist_ok=True)
    run = World("paintings", IMAGES, seed=seed).audited(folder)  # type: ignore[no-untyped-call]
    return [
        locked(folder / "locked"),
        concurrent(run, folder / "concurrent", rounds=rounds),
        killed(run, folder / "killed", kills=kills, seed=seed),
        full(run, folder / "full"),
    ]


def locked(folder: Path) -> Row:
    """Let two threads change a label that both have read, unless one has to wait."""
    folder.mkdir(parents=True)
    count, meeting = folder / LABELS / "count", Barrier(2, timeout=1.0)

    def counted() -> dict[str, bytes]:
        before = int(count.read_bytes())
        with suppress(BrokenBarrierError):
            meeting.wait()
        return {"count": str(before + 1).encode()}

    keep_labels(folder, lambda: {"count": b"0"})
    changes = [Thread(target=keep_labels, args=(folder, counted)) for _ in range(2)]
    for change in changes:
        change.start()
    for change in changes:
        change.join()
    changed = int(count.read_bytes())
    failures = () if changed == 2 else (f"{2 - changed} of 2 changes of a label are lost",)
    return Row("Locks", "Labels of people", 1, 1 - len(failures), failures)


def concurrent(run: Path, folder: Path, *, rounds: int, coded: int = 40, answers: int = 120) -> Row:
    """Judge on two pages and read answers in two processes, all at the same time."""
    failures: list[str] = []
    for number in range(rounds):
        copy = shutil.copytree(run, folder / f"{number}")
        shutil.copytree(run.parent / "photos", folder / "photos", dirs_exist_ok=True)
        accepted: set[Judgement] = set()
        files = [answer_file(folder, copy, f"reader {one}", 0, answers) for one in range(2)]
        with page(copy) as first, page(copy) as second:
            work = [
                Thread(target=judge, args=(address, copy, f"coder {one}", coded, accepted))
                for one, address in enumerate((first, second))
            ]
            work += [Thread(target=take, args=(copy, [file], accepted)) for file in files]
            for thread in work:
                thread.start()
            for thread in work:
                thread.join()
        expected = 2 * coded + 2 * answers
        if len(accepted) != expected:
            failures.append(f"round {number}: {len(accepted)} of {expected} were accepted")
        failures += [f"round {number}: {problem}" for problem in problems(copy, accepted)]
    return Row("Judgements at the same time", "Two pages, two readings", rounds,
               0 if failures else rounds, tuple(failures))  # fmt: skip


def killed(run: Path, folder: Path, *, kills: int, seed: int) -> Row:
    """Kill pages and readings at random moments while they write."""
    rng, failures, met = np.random.default_rng(seed), list[str](), 0
    copy = shutil.copytree(run, folder / "run")
    shutil.copytree(run.parent / "photos", folder / "photos")
    accepted: set[Judgement] = set()
    for number in range(kills):
        delay = float(rng.uniform(0.0, 0.5))
        if number % 2:
            files = [
                answer_file(folder, copy, f"reader {number}", at, 4) for at in range(0, IMAGES, 4)
            ]
            met += take(copy, files, accepted, delay) != 0
        else:
            with page(copy) as address:
                name = f"coder {number}"
                judging = Thread(target=judge, args=(address, copy, name, IMAGES, accepted))
                judging.start()
                time.sleep(delay)
            judging.join()
            met += 1
        failures += [f"kill {number}: {problem}" for problem in problems(copy, accepted)]
        failures += [f"kill {number}: {problem}" for problem in hindrances(copy, folder / "next")]
    if not accepted:
        failures.append("nothing was accepted")
    return Row("Random kills", "Labels of people", met, 0 if failures else met, tuple(failures))


def full(run: Path, folder: Path) -> Row:
    """Judge while files may not grow any more, and then again."""
    copy = shutil.copytree(run, folder / "run")
    shutil.copytree(run.parent / "photos", folder / "photos")
    size = (copy / "labels" / "labels.parquet").stat().st_size
    accepted: set[Judgement] = set()
    before = {path.name for path in (copy / "labels").iterdir()}
    with page(copy, size + 64) as address:
        refused = judge(address, copy, "coder", IMAGES, accepted)
    failures = problems(copy, accepted)
    if refused != HTTPStatus.INSUFFICIENT_STORAGE:
        failures.append(f"a full disk was answered by {refused}")
    if after := {path.name for path in (copy / "labels").iterdir()} - before:
        failures.append(f"left behind: {sorted(after)}")
    with page(copy) as address:
        judge(address, copy, "coder", 5, accepted)
    failures += problems(copy, accepted)
    return Row("Full disk", "Labels of people", 1, 0 if failures else 1, tuple(failures))


def problems(run: Path, accepted: set[Judgement]) -> list[str]:
    """Return what is wrong with the labels of a run, given those that were accepted."""
    try:
        labels = read_labels(run)
        listed = {name for name in read(run).manifest.inputs if name.startswith("labels/")}
    except RunError as error:
        return [str(error)]
    lost = accepted - {*labels.select("image_id", "labeller").iter_rows()}
    wrong = [f"{len(lost)} of {len(accepted)} judgements are lost"] if lost else []
    return wrong + ([] if "labels/labels.parquet" in listed else ["the labels are not listed"])


def hindrances(run: Path, place: Path) -> list[str]:
    """Return what a killed process left that keeps the next run from its place."""
    copy = shutil.copytree(run, place)
    try:
        with new_run(copy, overwrite=True) as partial:
            shutil.copytree(run, partial, ignore=_labels_of(run), dirs_exist_ok=True)
        left = [str(path) for path in copy.rglob("*.partial")]
    except RunError as error:
        left = [str(error)]
    shutil.rmtree(copy)
    return left


def _labels_of(run: Path) -> Callable[[Any, list[str]], set[str]]:
    """Return what `copytree` leaves out: an audit writes no labels, and leaves no partial file."""

    def ignored(folder: Any, names: list[str]) -> set[str]:
        own = {"labels", "lock"} if Path(folder) == run else set()
        return own | {name for name in names if name.endswith(".partial")}

    return ignored


def answer_file(folder: Path, run: Path, labeller: str, at: int, many: int) -> Path:
    """Write answers of a labeller to some images, as an export has them."""
    ids = _image_ids(run)[at : at + many]
    rows = [
        {"image_id": one, "question": QUESTION, "answer": "yes", "labeller": labeller,
         "at": "2026-11-28T09:00:00Z"} for one in ids
    ]  # fmt: skip
    path = folder / f"{labeller} {at}.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    return path


def take(run: Path, files: list[Path], accepted: set[Judgement], kill_after: float = -1) -> int:
    """Read files of answers in a process; return its exit code.

    Parameters
    ----------
    run : Path
    files : list of Path
    accepted : set
        Gets the judgements of each file that the process said it has read.
    kill_after : float
        Seconds after the process began to read; negative to let it end.
    """
    receiving, sending = FORKS.Pipe(duplex=False)
    process = FORKS.Process(target=_read, args=(sending, run, files))
    process.start()
    sending.close()
    with receiving, suppress(EOFError):
        receiving.recv()
        if kill_after >= 0:
            Thread(target=_kill, args=(process, kill_after)).start()
        while True:
            rows = json.loads(Path(receiving.recv()).read_bytes())
            accepted.update((row["image_id"], row["labeller"]) for row in rows)
    process.join()
    return process.exitcode or 0


def _kill(process: Any, delay: float) -> None:
    time.sleep(delay)
    process.kill()


def _read(sending: Connection, run: Path, files: list[Path]) -> None:
    from equipoise.cli.app import run as command

    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
    sending.send("began")
    for file in files:
        code = command(["label", "read", str(run), str(file), "--question", QUESTION])
        if code:
            sys.exit(code)
        sending.send(str(file))


@contextmanager
def page(run: Path, limit: int | None = None) -> Iterator[str]:
    """Serve the pages of a run in a process, and kill it in the end.

    Yields the address. Files of the process may not grow beyond `limit` bytes.
    """
    receiving, sending = FORKS.Pipe(duplex=False)
    process = FORKS.Process(target=_serve, args=(sending, run, limit))
    process.start()
    sending.close()
    with receiving:
        address = receiving.recv()
    try:
        _await(address)
        yield address
    finally:
        process.kill()
        process.join()


def _await(address: str, seconds: float = 60.0) -> None:
    """Wait until a page answers."""
    end = time.monotonic() + seconds
    while True:
        try:
            _ask(address, "/assets/review.css")
        except ConnectionRefusedError:
            if time.monotonic() > end:
                raise
            time.sleep(0.01)
        else:
            return


def _serve(sending: Connection, run: Path, limit: int | None) -> None:
    from equipoise.review.server import serve

    pages = serve(run)
    sending.send(next(pages))
    if limit is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    for _ in pages:
        pass


def judge(address: str, run: Path, coder: str, many: int, accepted: set[Judgement]) -> int:
    """Code images by the form until a page doesn't answer as usual; return its last status."""
    ids, status = _image_ids(run), 0
    with suppress(OSError, http.client.HTTPException):
        for _ in range(many):
            _, form = _ask(address, f"/code/0?{urlencode({'coder': coder})}")
            image = re.search(rb'name="image" value="(\d+)"', form)
            if image is None:
                break
            answer = {"coder": coder, "image": image[1].decode(), "code": "indiscernible"}
            status, _ = _ask(address, "/code/0", urlencode(answer))
            if status != HTTPStatus.SEE_OTHER:
                break
            accepted.add((ids[int(image[1])], coder))
    return status


def _ask(address: str, path: str, body: str | None = None) -> tuple[int, bytes]:
    """Send a request as the browser of a page does."""
    split = urlsplit(address)
    headers = {"Cookie": f"equipoise_review_{split.port}={split.query.partition('=')[2]}"}
    if body is not None:
        headers |= {"Origin": f"http://{split.netloc}"}
    connection = http.client.HTTPConnection(split.netloc, timeout=60)
    try:
        connection.request("GET" if body is None else "POST", path, body, headers)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def _image_ids(run: Path) -> list[str]:
    ids: list[str] = pl.read_parquet(run / "examples" / "images.parquet")["image_id"].to_list()
    return ids

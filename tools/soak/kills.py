"""Kill work at random moments, resume it, and compare it with work that nobody disturbed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from tools.soak.models import PAUSE
from tools.soak.table import Row
from tools.soak.work import (
    MEANS,
    Work,
    extract,
    generate,
    mitigate,
    stopped,
    write_pictures,
)


@dataclass(frozen=True)
class Task:
    """Work that is killed and resumed.

    Attributes
    ----------
    case : str
        Its name in the table.
    work : callable
        Takes a progress callback, the folder to write, and `arguments`; returns units done.
    arguments : tuple
    redone : int
        Most finished units that a kill may cost.
    pause : float
        Seconds that a unit takes longer while it may be killed.
    tail : float
        Seconds from the last unit to the end: the result is written in them.
    """

    case: str
    work: Work
    arguments: tuple[Any, ...]
    redone: int
    pause: float
    tail: float = 0.05


def extraction(folder: Path, *, pictures: int = 3000, part: int = 32) -> Task:
    """Return an extraction of small pictures, three of which are broken."""
    photos = folder / "photos"
    write_pictures(photos, pictures, broken=(5, pictures // 3, pictures - 1))
    return Task("Extraction", extract, (photos, MEANS, part), 2 * part, 0.0005)


def generation(*, candidates: int = 25, part: int = 12) -> Task:
    """Return a generation of candidates of 4 sets of 6 captions."""
    return Task("Generation", generate, (candidates, part), part, 0.002)


def fine_tuning(*, epochs: int = 8) -> Task:
    """Return a training of both towers that saves its state every epoch."""
    from equipoise.mitigate import Contrastive

    recipe = Contrastive(epochs=epochs, learning_rate=1e-4, patience=99)
    return Task("Mitigation, both towers", mitigate, (recipe,), 2, 0.02, 0.4)


ROUNDS = 3
"""Most rounds of kills until enough of them meet a process at work."""


def kill_and_resume(
    task: Task, folder: Path, *, kills: int, seed: int, number: int = signal.SIGKILL
) -> Row:
    """Kill a task at random moments, ever later, resume it and compare the files.

    The first kill comes before the first unit is done, the last two while the result is written.
    """
    rng = np.random.default_rng(seed)
    whole = folder / f"whole-{seed}"
    total = task.work(lambda _: None, whole, *task.arguments)
    inner = np.sort(rng.integers(1, total - 1, max(kills - 3, 0))).tolist()
    targets = [0, *inner, total - 1, total - 1][:kills]
    delays = rng.uniform(0, [task.tail if target == total - 1 else 0.05 for target in targets])
    codes: list[int] = []
    failures: list[str] = []
    met = 0
    # A process may end before a late kill meets it: another round on a new store makes up for it.
    for attempt in range(ROUNDS):
        store = folder / f"store-{seed}-{attempt}"
        # Models and trainings of child processes pause at each unit of work.
        with patch.dict(os.environ, {PAUSE: str(task.pause)}):
            codes += [
                stopped(
                    task.work, (store, *task.arguments), target=target, delay=delay, number=number
                )
                for target, delay in zip(targets, delays, strict=True)
            ]
        done = task.work(lambda _: None, store, *task.arguments)
        failures += differences(store, whole)
        most = total - targets[-1] + task.redone
        if done > most:
            failures.append(f"{done} units were done after the last kill, expected at most {most}")
        met = sum(code != 0 for code in codes)
        if met >= kills - 2:
            break
    else:
        failures.append(f"only {met} of {len(codes)} kills met the process at work: {codes}")
    return Row("Random kills", task.case, met, 0 if failures else met, tuple(failures))


def differences(folder: Path, expected: Path) -> Iterator[str]:
    """Yield what differs between the files of two folders."""
    mine, theirs = files(folder), files(expected)
    for name in sorted(mine.keys() | theirs.keys()):
        if name not in mine:
            yield f"{folder}: {name} is missing"
        elif name not in theirs:
            yield f"{folder}: {name} was left behind"
        elif mine[name] != theirs[name]:
            yield f"{folder}: {name} has other bytes"


def files(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every file in a folder, and b"" for a folder in it.

    `rate.json` is left out: it holds how long an image took.
    """
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else b""
        for path in folder.rglob("*")
        if path.name != "rate.json"
    }

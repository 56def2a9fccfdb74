"""Work that is stopped at random moments, in processes of its own.

They are forked from one that has imported what they need: a new interpreter would spend its time on
that, and many stops would meet it there.
"""

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

FORKS = get_context("forkserver")
FORKS.set_forkserver_preload(
    [
        "daft",
        "equipoise.counterfactuals.generating.generation",
        "equipoise.evidence.extraction",
        "inflect",
        "torch",
        "transformers.models.clip.modeling_clip",
    ]
)

Report = Callable[[int], None]
Work = Callable[..., None]


def extract(report: Report, photos: Path, store: Path, model: str, part: int) -> None:
    from equipoise.evidence import extract_embeddings, pictures_in_folder

    pictures = pictures_in_folder(photos)
    extract_embeddings(pictures, model, store, part=part, progress=lambda _, done, __: report(done))


def generate(report: Report, store: Path, model: str, how: dict[str, int]) -> None:
    from equipoise.counterfactuals import generate_sets
    from generator_models import captions

    generate_sets(captions(), model, store, **how, progress=lambda _, done, __: report(done))


def stopped(
    work: Work, given: tuple[Any, ...], *, target: int, delay: float, number: int = signal.SIGKILL
) -> int:
    """Run until so much is done and a moment more, then send a signal; return the exit code."""
    reading, writing = FORKS.Pipe(duplex=False)
    process = FORKS.Process(target=_worked, args=(writing, dict(os.environ), work, given))
    process.start()
    writing.close()
    with reading, suppress(EOFError):
        while reading.recv() < target:
            pass
        time.sleep(delay)
        # Who has finished cannot be stopped.
        with suppress(ProcessLookupError):
            os.kill(process.pid, number)
    process.join()
    code = process.exitcode
    process.close()
    return code


def _worked(
    writing: Connection, environment: dict[str, str], work: Work, given: tuple[Any, ...]
) -> None:
    os.environ.update(environment)
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    writing.send(0)
    work(writing.send, *given)

"""Work in processes of its own that are killed at a chosen moment.

The processes are forked from one that has imported what they need. A new interpreter would spend
its time on imports, and many kills would meet it there.
"""

from __future__ import annotations

import os
import signal
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests import picture_models as pictures
from tools.soak.models import PAUSE

FORKS = get_context("forkserver")
FORKS.set_forkserver_preload(
    [
        "equipoise.cli.mitigation_world",
        "equipoise.counterfactuals.generation",
        "equipoise.evidence.extraction",
        "inflect",
        "torch",
        "transformers.models.clip.modeling_clip",
    ]
)

Report = Callable[[int], None]
Work = Callable[..., int]
MEANS = "python:tools.soak.models:slow_means"
SWATCHES = "python:tools.soak.models:slow_swatches"


def write_pictures(folder: Path, n: int, *, broken: tuple[int, ...] = ()) -> None:
    """Write n small PNG files of noise, some of which are no pictures."""
    pictures.write_pictures(folder, n)
    for place in broken:
        (folder / f"{place:05d}.png").write_bytes(b"no picture")


def extract(report: Report, store: Path, photos: Path, model: str, part: int) -> int:
    """Embed a folder of pictures; return how many were computed."""
    from equipoise.evidence import ExtractionSettings, extract_embeddings, pictures_in_folder

    result = extract_embeddings(
        pictures_in_folder(photos),
        model,
        store,
        settings=ExtractionSettings(part=part, progress=lambda _, done, __: report(done)),
    )
    return result.computed


def generate(report: Report, store: Path, candidates: int, part: int) -> int:
    """Make caption sets of four subjects; return how many images were made."""
    from equipoise.counterfactuals import GenerationSettings, caption_sets, generate_sets

    values = {"race": ["Asian", "Black", "White"], "gender": ["male", "female"]}
    result = generate_sets(
        caption_sets(["doctor", "umpire", "nurse", "chef"], values),
        SWATCHES,
        store,
        candidates=candidates,
        settings=GenerationSettings(part=part, progress=lambda _, done, __: report(done)),
    )
    return result.computed


def mitigate(report: Report, store: Path, recipe: Any) -> int:
    """Train the planted CLIP by a recipe; return how many steps were trained."""
    import torch

    from equipoise.cli.mitigation_world import image_sets, subject_texts
    from equipoise.mitigate import Training
    from equipoise.planted.scenes.embed import load_clip
    from equipoise.planted.scenes.render import SUBJECTS
    from equipoise.planted.scenes.sets import render_sets

    learned, watched = SUBJECTS[:4], SUBJECTS[4:6]
    images = image_sets(render_sets(1, seed=11), seed=11)
    training = Training(
        tuple(map(subject_texts, learned)),
        tuple(map(subject_texts, watched)),
        images.of(learned),
        images.of(watched),
    )
    steps: list[int] = []

    def progress(step: str, done: int, _: int | None) -> None:
        if step == "training":
            steps.append(done)
            report(done)
            time.sleep(float(os.environ.get(PAUSE, "0")))

    # The same number of threads sums in the same order.
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        recipe.fit(load_clip("biased"), training, store / "made", seed=5, progress=progress)
    finally:
        torch.set_num_threads(threads)
    return len(steps)


def stopped(
    work: Work,
    arguments: tuple[Any, ...],
    *,
    target: int,
    delay: float,
    number: int = signal.SIGKILL,
) -> int:
    """Run until `target` units are done and `delay` more seconds, then send a signal.

    Returns
    -------
    int
        The exit code.
    """
    reading, writing = FORKS.Pipe(duplex=False)
    process = FORKS.Process(target=_run, args=(writing, dict(os.environ), work, arguments))
    process.start()
    writing.close()
    with reading, suppress(EOFError):
        while reading.recv() < target:
            pass
        time.sleep(delay)
        # A process that has finished can't be stopped.
        with suppress(ProcessLookupError):
            os.kill(process.pid or 0, number)
    process.join()
    code = process.exitcode
    process.close()
    return -1 if code is None else code


def _run(
    writing: Connection, environment: dict[str, str], work: Work, arguments: tuple[Any, ...]
) -> None:
    os.environ.update(environment)
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    writing.send(0)
    work(writing.send, *arguments)


def in_process(work: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a process of its own; return its result.

    Raises
    ------
    RuntimeError
        When it raises, or the process ends before.
    """
    reading, writing = FORKS.Pipe(duplex=False)
    process = FORKS.Process(target=_answer, args=(writing, dict(os.environ), work, arguments))
    process.start()
    writing.close()
    try:
        result, problem = reading.recv()
    except EOFError:
        result, problem = None, "its process ended"
    process.join()
    if problem:
        raise RuntimeError(f"{work.__name__}{arguments}: {problem}")
    return result


def _answer(
    writing: Connection, environment: dict[str, str], work: Callable[..., Any], arguments: Any
) -> None:
    os.environ.update(environment)
    try:
        writing.send((work(*arguments), ""))
    except BaseException:  # noqa: BLE001 - who waits for the result is told
        writing.send((None, traceback.format_exc()))

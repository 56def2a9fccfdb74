"""Make images of prompts, and of caption sets under control; or plan it without the model."""

import json
import math
import sys
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from threading import Event
from time import perf_counter
from typing import Any

import pyarrow as pa

from equipoise import __version__
from equipoise.core import Fields, InputError, ModelError, Progress, RunError
from equipoise.core.files import table_bytes
from equipoise.core.types import Json
from equipoise.core.writing import remove, write
from equipoise.counterfactuals.captions import CaptionSets
from equipoise.counterfactuals.control import generate_controlled
from equipoise.counterfactuals.parts import (
    COLUMNS,
    RATE,
    TABLE,
    Candidate,
    Generated,
    Piece,
    Request,
    Shares,
    cost_per_image,
    generated,
    images_of,
    join_parts,
    part_bytes,
    request_captions,
    request_prompts,
)
from equipoise.evidence import RunOptions
from equipoise.evidence.pictures import check_pillow
from equipoise.evidence.store import (
    hold_folder,
    is_sound,
    key_of,
    read_manifest,
    read_rows,
    write_manifest,
)
from equipoise.evidence.working import load_copies, map_workers
from equipoise.models.generators import (
    ControlledGenerator,
    ImageGenerator,
    Sampling,
    SteppedGenerator,
)
from equipoise.models.protocols import NoAnswer, ServiceError


@dataclass(frozen=True)
class GenerationSettings:
    """Settings of a generation.

    Attributes
    ----------
    sampling : Sampling
        Steps, guidance, negative prompt, size.
    options : RunOptions
        How a model is loaded by its name.
    part : int
        Most images in one file, unless a candidate has more: the work that a kill loses.
    max_failures : float
        Largest share of the images on which the model may fail. Refusals are no failures.
    progress : callable or None
        Progress callback: (step, images done, all images).
    """

    sampling: Sampling = field(default_factory=Sampling)
    options: RunOptions = field(default_factory=RunOptions)
    part: int = 64
    max_failures: float = 0.05
    progress: Progress | None = None


def generate_prompts(
    prompts: pa.Table,
    model: str | ImageGenerator | Sequence[ImageGenerator],
    store: Path,
    *,
    images: int = 1,
    seed: int = 0,
    at_steps: Sequence[int] = (),
    settings: GenerationSettings = GenerationSettings(),
) -> Generated:
    """Make images of prompts, each from a noise of its own.

    Images in the store for the same prompts, model and settings are read; missing ones are made. A
    killed run loses no finished part.

    Parameters
    ----------
    prompts : pyarrow.Table
        `prompt_id` (each once), `prompt`, and columns of any other name, which are kept. `set`
        may be one of them.
    model : str, ImageGenerator, or sequence of ImageGenerator
        A name for `load_generator`, a loaded model, or the same one on several devices.
    store : Path
        Folder of the evidence.
    images : int
        Of each prompt.
    seed : int
        That of an image depends on it, the prompt's id and the number of the image alone.
    at_steps : sequence of int
        Passes of the denoiser, from 1 to the number of steps, at which images are kept, too.
    settings : GenerationSettings

    Returns
    -------
    Generated

    Raises
    ------
    InputError
        When the table lacks a column, ids repeat, or a setting is out of range.
    ModelError
        When the model cannot be loaded, or fails on more images than `max_failures` allows.
    RunError
        When the store cannot be written, or another process writes it.
    """
    request = request_prompts(prompts, images, seed, tuple(at_steps))
    return generate(request, model, Path(store), settings)


def generate_sets(
    captions: CaptionSets | pa.Table,
    model: str | ImageGenerator | Sequence[ImageGenerator],
    store: Path,
    *,
    candidates: int = 100,
    shared: Shares | None = (0.1, 0.9),
    shared_self: Shares | float | None = None,
    seed: int = 0,
    settings: GenerationSettings = GenerationSettings(),
) -> Generated:
    """Make candidates of caption sets: images that differ in what their captions differ in.

    The images of a candidate start from one noise, and in the first steps attend to the words
    that they share as the image of one of them does, the base. The base is drawn for each
    candidate, so that no group is always the unchanged one.

    Parameters
    ----------
    captions : CaptionSets or pyarrow.Table
        With `caption_id` (each once), `set`, `caption`, and columns of any other name.
    model : str, ControlledGenerator, or sequence of ControlledGenerator
        A name for `load_generator`, a loaded model, or the same one on several devices.
    store : Path
        Folder of the evidence.
    candidates : int
        Of each set. Howard et al. 2024 make 100 and filter.
    shared : (float, float) or None
        Ends between which the share of the steps with shared maps of texts is drawn for each
        candidate. None: nothing is shared, each image starts from noise of its own, and any
        generator will do.
    shared_self : (float, float), float or None
        The same for maps of images to themselves, or one share for all; None for none.
    seed : int
        The draws of a candidate depend on it, the set's id and its number alone.
    settings : GenerationSettings
        Errors as of `generate_prompts`.

    Returns
    -------
    Generated
        A candidate is whole: it has a row for every caption of its set.

    References
    ----------
    Howard et al. 2024, SocialCounterfactuals, section 3.1; Hertz et al. 2023, Prompt-to-Prompt.
    """
    request = request_captions(captions, candidates, seed, shared, shared_self)
    return generate(request, model, Path(store), settings)


@dataclass(frozen=True)
class Planned:
    """Images of a request that are in a store, and the missing images.

    Attributes
    ----------
    prompts : int
        Prompts or captions.
    sets : int or None
        Of captions; None of prompts without control.
    candidates : int
        Of each set, or images of each prompt.
    images : int
        Requested.
    present : int
        Of them in finished parts, by a model of this name.
    to_do : int
    bytes : int or None
        To be written, about, by the images that are there; None before any was made.
    seconds : float or None
        About the time it takes, at the rate of earlier images; None before any was made.
    folder : Path or None
        Where they lie; None where nothing does yet: the name depends on the model's files.
    """

    prompts: int
    sets: int | None
    candidates: int
    images: int
    present: int
    to_do: int
    bytes: int | None
    seconds: float | None
    folder: Path | None


def plan(
    request: Request,
    model: str,
    store: Path,
    settings: GenerationSettings = GenerationSettings(),
) -> Planned:
    """Return counts of what `generate` would do; no model is loaded."""
    present, folder_of_run, cost = 0, None, None
    for path in sorted(store.glob("generations/*/manifest.json")):
        folder, manifest = path.parent, read_manifest(path.parent)
        key, name = manifest.get("key", {}), manifest.get("model", {}).get("name")
        facts = request.facts(key.get("model"), settings.sampling, settings.part)
        if name != model or key.get("sampling") != facts["sampling"]:
            continue
        # Other images by this model with these settings take as long, and as much room.
        cost = cost_per_image(folder) or cost
        if facts == key:
            parts = request.parts(folder, facts)
            present = sum(len(piece) for path, piece in parts.items() if path.exists())
            folder_of_run = folder
    to_do = request.images - present
    return Planned(
        prompts=request.table.num_rows,
        sets=None if request.shared is None else len(request.groups),
        candidates=request.candidates,
        images=request.images,
        present=present,
        to_do=to_do,
        bytes=None if cost is None else round(cost[1] * to_do),
        seconds=None if cost is None else cost[0] * to_do,
        folder=folder_of_run,
    )


def generate(
    request: Request,
    model: str | ImageGenerator | Sequence[ImageGenerator],
    store: Path,
    settings: GenerationSettings = GenerationSettings(),
) -> Generated:
    """Return the requested images, generating any that the store lacks."""
    check_pillow()
    if isinstance(model, Sequence) and not isinstance(model, str):
        models = [*model]
    else:
        models = load_copies(model, settings.options, RunOptions.load_generator)
    first = models[0]
    steps = range(1, settings.sampling.steps + 1)
    if sorted({*request.at_steps}) != [*request.at_steps] or not {*request.at_steps} <= {*steps}:
        raise InputError(
            f"at_steps {[*request.at_steps]}; expected steps from 1 to {len(steps)}, in ascending "
            "order, each once"
        )
    if request.at_steps and not isinstance(first, SteppedGenerator):
        raise ModelError(
            f"{first.info.name} shows no images at steps. To do: use a pipeline of diffusers, give "
            "the model a generate_steps, or leave at_steps out."
        )
    if request.shared is not None:
        if not isinstance(first, ControlledGenerator):
            raise ModelError(
                f"{first.info.name} makes images, and offers no control of its attention. To do: "
                "use Stable Diffusion 1.x or 2.x (diffusers:…), or generate prompts without sets."
            )
        first.check_control()
    if hasattr(first, "check_prompts"):
        # Texts that the model would cut are refused before any image is made.
        texts = [*chain.from_iterable(group.prompts for group in request.groups)]
        first.check_prompts(texts, settings.sampling)
    facts = request.facts(first.info.key, settings.sampling, settings.part)
    folder = store / "generations" / key_of(facts)[:16]
    about: dict[str, Json] = {
        "key": facts,
        "model": asdict(first.info),
        "id": request.id,
        "images": request.images,
        "versions": {"equipoise": __version__}
        | {name: version(name) for name in ("pillow", "pyarrow")},
    }
    with hold_folder(folder) as writable:
        parts = request.parts(folder, facts)
        computed = _run(parts, models, settings, folder, about, request.at_steps)
        paths = [*parts]
        table = join_parts(read_rows(paths, COLUMNS.names), request.table, request.id)
        if writable:
            write(folder / TABLE, table_bytes(table, compression="zstd"))
            counts: dict[str, Json] = {
                "states": Counter(table["state"].to_pylist()),
                "parts": [path.name for path in paths],
            }
            write_manifest(folder, about | counts | {"whole": True})
    return generated(folder, paths, table, asdict(first.info), computed, request.at_steps)


def _run(
    parts: Mapping[Path, Piece],
    models: Sequence[Any],
    settings: GenerationSettings,
    folder: Path,
    about: dict[str, Json],
    at_steps: tuple[int, ...],
) -> int:
    """Make the parts that are missing or damaged; return how many images that were.

    Raises
    ------
    ModelError
        When the model fails on too many images, or on all so far. Parts with failures are removed,
        so that the next run tries again.
    """
    images = sum(map(len, parts.values()))
    todo = {path: piece for path, piece in parts.items() if not is_sound(path, len(piece))}
    present = images - sum(map(len, todo.values()))
    if todo:
        write_manifest(folder, about | {"whole": False})
    failed: dict[Path, list[Fields]] = {}
    allowed = math.floor(settings.max_failures * images + 1e-9)

    def check(path: Path, so_far: int) -> None:
        rows = read_rows([path], COLUMNS.names).to_pylist()
        rows = [row for row in rows if row["state"] == "failed"]
        if rows:
            failed[path] = rows
        count = sum(map(len, failed.values()))
        if count <= min(allowed, so_far - 1):
            return
        first = failed[min(failed)][0]
        for part in failed:
            remove(part)
        raise ModelError(
            f"{models[0].info.name} failed on {count} of {images} images, and max_failures allows "
            f"{allowed}; the first is {first['image_id']!r}: {first['reason']}"
        )

    for path in parts:
        if path not in todo:
            check(path, images)
    began, computed = perf_counter(), 0
    with closing(_worked(models, todo, settings.sampling, at_steps)) as outcomes:
        for path, data in outcomes:
            write(path, data)
            computed += len(todo[path])
            rate = {"images": computed, "seconds": round(perf_counter() - began, 3)}
            write(folder / RATE, json.dumps(rate).encode())
            if settings.progress is not None:
                settings.progress("images generated", present + computed, images)
            check(path, present + computed)
    return computed


def _worked(
    models: Sequence[Any],
    todo: Mapping[Path, Piece],
    sampling: Sampling,
    at_steps: tuple[int, ...],
) -> Generator[tuple[Path, bytes]]:
    """Return each part, made by one model whole: images do not depend on how many there are."""

    def work(model: Any, item: tuple[Path, Piece]) -> tuple[Path, bytes]:
        images = _made(model, item[1], sampling, at_steps)
        return item[0], part_bytes(item[1], images, at_steps)

    if len(models) == 1:
        # In this thread: an interrupt ends it between two operators, not between two pieces.
        return (work(models[0], item) for item in todo.items())
    return map_workers(models, work, todo.items(), Event())


def _made(model: Any, piece: Piece, sampling: Sampling, at_steps: tuple[int, ...]) -> list[Any]:
    """Return an array for each image of a piece, None if refused, or its failure.

    A batch that fails is tried again candidate by candidate.
    """
    # Whole candidates go to the model together; all where it names no limit.
    room = int(model.room(sampling)) if hasattr(model, "room") else sys.maxsize
    batches: list[list[Candidate]] = []
    for candidate in piece.candidates:
        last = batches[-1] if batches else []
        # A model takes one strength of guidance at a time.
        fits = bool(last) and last[0].guidance == candidate.guidance
        if not fits or sum(map(len, last)) + len(candidate) > room:
            batches.append([])
        batches[-1].append(candidate)
    outputs: list[Any] = []
    while batches:
        batch = batches.pop(0)
        try:
            outputs += _images(model, batch, sampling, at_steps)
        except (ServiceError, RunError):
            raise
        except Exception as error:  # noqa: BLE001 - whatever the model raises is a reason
            if len(batch) > 1:
                batches[:0] = [[candidate] for candidate in batch]
                continue
            outputs += [str(error).partition("\n")[0] or type(error).__name__] * len(batch[0])
    return outputs


def _images(
    model: Any, batch: Sequence[Candidate], sampling: Sampling, at_steps: tuple[int, ...]
) -> list[Any]:
    if batch[0].guidance is not None:
        sampling = replace(sampling, guidance=batch[0].guidance)
    if batch[0].shared is not None:
        return generate_controlled(model, batch, sampling)
    prompts, seeds = images_of(batch)
    if at_steps:
        return [*model.generate_steps(prompts, seeds=seeds, sampling=sampling, at=at_steps)]
    images = model.generate(prompts, seeds=seeds, sampling=sampling)
    return [": ".join(image) if isinstance(image, NoAnswer) else image for image in images]

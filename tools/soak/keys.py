"""Change one byte or one setting: evidence is computed anew or refused. Move it: it is kept."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from PIL import Image

from equipoise.audits.model_cache import open_model
from equipoise.cli.mitigation_world import image_sets, subject_texts
from equipoise.core import EquipoiseError
from equipoise.counterfactuals import (
    GenerationSettings,
    caption_sets,
    generate_prompts,
    generate_sets,
)
from equipoise.evidence import (
    Decoding,
    ExtractionSettings,
    RunOptions,
    extract_answers,
    extract_embeddings,
    extract_probabilities,
    pictures_in_folder,
    pictures_of_table,
)
from equipoise.mitigate import Contrastive, Training
from equipoise.models import Sampling, load_model
from equipoise.models.onnx_settings import labels_path
from equipoise.planted.scenes import diffusion
from equipoise.planted.scenes.embed import WEIGHTS
from equipoise.planted.scenes.render import SUBJECTS as GLYPHS
from equipoise.planted.scenes.sets import render_sets
from tools.soak.table import Row
from tools.soak.work import SWATCHES

PICTURES = 8
CPU = RunOptions(device="cpu", dtype="float32")


@dataclass(frozen=True)
class Case:
    """One change, and whether it decides an output.

    Attributes
    ----------
    what : str
    change : callable
        Changes the files of a subject.
    settings : mapping
        Other settings than those of the first run.
    decides : bool
        Whether the evidence must be computed anew or refused; else it must be kept.
    """

    what: str
    change: Callable[[Path], object] = lambda _: None
    settings: Mapping[str, Any] = field(default_factory=dict)
    decides: bool = True


@dataclass(frozen=True)
class Subject:
    """Evidence of one kind of model.

    Attributes
    ----------
    name : str
    make : callable
        Writes the model and its inputs into a folder.
    run : callable
        Takes that folder, a store and settings; returns how many units were computed.
    cases : tuple of Case
    """

    name: str
    make: Callable[[Path], object]
    run: Callable[..., int]
    cases: tuple[Case, ...]


def key_tests(folder: Path, subjects: tuple[Subject, ...] | None = None) -> list[Row]:
    """Run every case of every subject; return a row for each subject."""
    return [_tested(subject, folder) for subject in subjects or SUBJECTS]


def _tested(subject: Subject, folder: Path) -> Row:
    own = folder / subject.name.replace(" ", "-").replace(":", "")
    files, store = own / "files", own / "store"
    files.mkdir(parents=True)
    subject.make(files)
    failures = []
    if not subject.run(files, store):
        failures.append(f"{subject.name}: the first run computed nothing")
    for number, case in enumerate(subject.cases):
        copy = own / f"files-{number}"
        shutil.copytree(files, copy)
        case.change(copy)
        failures += [
            f"{subject.name}, {case.what}: {one}" for one in _wrong(subject, case, copy, store)
        ]
    tried = len(subject.cases)
    return Row("Keys", subject.name, tried, tried - len(failures), tuple(failures))


def _wrong(subject: Subject, case: Case, files: Path, store: Path) -> list[str]:
    """Return what is wrong with the outcome of a case: a line, or nothing."""
    try:
        computed = subject.run(files, store, **case.settings)
    except EquipoiseError as error:
        return [] if case.decides else [f"refused: {error}"]
    except Exception as error:  # noqa: BLE001 - every other exception is a failure of the check
        return [f"{type(error).__name__}: {error}"]
    if case.decides and not computed:
        return ["old evidence was used"]
    return [] if case.decides or not computed else [f"{computed} units were computed anew"]


def flip(name: str) -> Callable[[Path], None]:
    """Return a change of one byte in the middle of a file, whose size and time stay the same."""

    def change(files: Path) -> None:
        path = files / name
        data, before = bytearray(path.read_bytes()), path.stat()
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    return change


def touch(files: Path) -> None:
    """Give every file another time."""
    for path in files.rglob("*"):
        os.utime(path, (1e9, 1e9))


def rename(name: str) -> Callable[[Path], None]:
    """Return a change of a folder's name, with a link left in its place."""

    def change(files: Path) -> None:
        (files / name).rename(files / "other")
        (files / name).symlink_to("other")

    return change


def bytes_of(*names: str) -> tuple[Case, ...]:
    """Return a case for one byte of each file."""
    return tuple(Case(f"a byte of {name}", flip(name)) for name in names)


def other(**settings: Any) -> tuple[Case, ...]:
    """Return a case for each setting."""
    return tuple(Case(name, settings={name: value}) for name, value in settings.items())


def fields_of(setting: str, base: Any, **values: Any) -> tuple[Case, ...]:
    """Return a case for each field of a setting that is a dataclass."""
    return tuple(
        Case(name, settings={setting: replace(base, **{name: value})})
        for name, value in values.items()
    )


KEPT = (Case("copied", decides=False), Case("touched", touch, decides=False))


def _photos(files: Path) -> None:
    rng = np.random.default_rng(0)
    (files / "photos").mkdir()
    for place in range(PICTURES):
        pixels = rng.integers(0, 256, (32, 32, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(files / "photos" / f"{place}.png")


def _planted(name: str) -> Callable[[Path], None]:
    """Return a maker of photos and a copy of a shipped model of the scenes in `model`."""

    def make(files: Path) -> None:
        _photos(files)
        shutil.copytree(WEIGHTS / name, files / "model")

    return make


def _clip(files: Path, store: Path, *, ids: int = PICTURES, crop: int = 0, **more: Any) -> int:
    names = [f"{place}.png" for place in range(ids)]
    crops = [[0, 0, 32 - crop, 32]] * ids if crop else None
    pictures = pictures_of_table(names, names, root=files / "photos", name="table", crops=crops)
    model = f"hf:{files / 'model'}"
    settings = replace(ExtractionSettings(options=CPU), **more)
    return extract_embeddings(pictures, model, store, settings=settings).computed


def _known_clip(files: Path, store: Path) -> int:
    """Run a model as an audit does: known by its files, without loading its weights."""
    model = open_model(f"hf:{files / 'model'}", CPU, store)
    return extract_embeddings(pictures_in_folder(files / "photos"), model, store).computed


def _vit(files: Path, store: Path, *, features: bool = False) -> int:
    extract = extract_embeddings if features else extract_probabilities
    pictures, options = pictures_in_folder(files / "photos"), replace(CPU, dtype="auto")
    settings = ExtractionSettings(options=options)
    return extract(pictures, f"hf:{files / 'model'}", store, settings=settings).computed


def _export(files: Path) -> None:
    """Write a shipped graph as torch exports it: its weights in a file beside it."""
    import onnx

    _photos(files)
    (files / "model").mkdir()
    graph, path = onnx.load(WEIGHTS / "cnn-biased.onnx"), files / "model" / "model.onnx"
    onnx.save(graph, path, save_as_external_data=True, location="weights")
    shutil.copy(WEIGHTS / "cnn-biased.labels.txt", labels_path(path))


def _onnx(files: Path, store: Path) -> int:
    pictures, options = pictures_in_folder(files / "photos"), replace(CPU, dtype="auto")
    model = open_model(f"onnx:{files / 'model'}", options, store)
    return extract_probabilities(pictures, model, store).computed


SOURCE = """
from equipoise.models import ModelInfo

class Widths:
    info = ModelInfo("python:soak_widths:make", "widths", weights_sha256="none")

    def answer(self, images, question):
        return [f"{question} {image.shape[1]}" for image in images]

def make(*, device, dtype):
    return Widths()
"""


def _code(files: Path) -> None:
    _photos(files)
    (files / "soak_widths.py").write_text(SOURCE, encoding="utf-8")


def _other_code(files: Path) -> None:
    # It still can be imported, so that the key alone can notice it.
    (files / "soak_widths.py").write_text(SOURCE.replace("} {", "}-{"), encoding="utf-8")


def _widths(files: Path, store: Path, *, question: str = "Who?", **more: Any) -> int:
    sys.modules.pop("soak_widths", None)
    sys.path.insert(0, str(files))
    importlib.invalidate_caches()
    try:
        pictures = pictures_in_folder(files / "photos")
        options = replace(CPU, dtype="auto", **more)
        name = "python:soak_widths:make"
        return extract_answers(
            pictures, question, name, store, settings=ExtractionSettings(options=options)
        ).computed
    finally:
        sys.path.remove(str(files))


def _swatches(files: Path, store: Path, **more: Any) -> int:
    subjects = json.loads((files / "subjects.json").read_text(encoding="utf-8"))
    captions = caption_sets(subjects, {"gender": ["male", "female"]})
    settings = GenerationSettings(sampling=more.pop("sampling", Sampling()))
    arguments = {"candidates": 2, "settings": settings, **more}
    return generate_sets(captions, SWATCHES, store, **arguments).computed


def _subjects(files: Path, second: str = "nurse") -> None:
    (files / "subjects.json").write_text(json.dumps(["doctor", second]), encoding="utf-8")


def _diffusion(files: Path) -> None:
    shutil.copytree(diffusion.WEIGHTS, files / "model")


def _diffused(files: Path, store: Path) -> int:
    prompts = pa.table({"prompt_id": ["a"], "prompt": ["a solid circle"]})
    model, sampling = f"diffusers:{files / 'model'}", Sampling(steps=1)
    return generate_prompts(
        prompts, model, store, settings=GenerationSettings(sampling=sampling, options=CPU)
    ).computed


def _trained(files: Path, store: Path, *, seed: int = 0, rate: float = 3e-4, texts: int = 3) -> int:
    steps: list[int] = []
    base = load_model(f"hf:{files / 'model'}", device="cpu", dtype="float32")
    learned = GLYPHS[:texts]
    images = image_sets(render_sets(1, seed=11), seed=11).of(learned)
    Contrastive(batch=12, learning_rate=rate).fit(
        base,
        Training(tuple(map(subject_texts, learned)), images=images),
        store / "made",
        seed=seed,
        progress=lambda step, done, _: steps.append(done) if step == "training" else None,
    )
    return len(steps)


CLIP_FILES = (
    "model/config.json",
    "model/model.safetensors",
    "model/preprocessor_config.json",
    "model/tokenizer.json",
    "model/tokenizer_config.json",
)
DIFFUSION_FILES = (
    "model/model_index.json",
    "model/scheduler/scheduler_config.json",
    "model/text_encoder/config.json",
    "model/text_encoder/model.safetensors",
    "model/tokenizer/tokenizer.json",
    "model/tokenizer/tokenizer_config.json",
    "model/unet/config.json",
    "model/unet/diffusion_pytorch_model.safetensors",
    "model/vae/config.json",
    "model/vae/diffusion_pytorch_model.safetensors",
)

SUBJECTS = (
    Subject(
        "CLIP",
        _planted("clip-biased"),
        _clip,
        (
            *KEPT,
            Case("renamed model", rename("model"), decides=False),
            Case("renamed photos", rename("photos"), decides=False),
            *bytes_of(*CLIP_FILES, "photos/3.png"),
            *fields_of("options", CPU, dtype="bfloat16", backend="openvino"),
            *fields_of("decoding", Decoding(), background=(0, 0, 0), max_pixels=1_000_000),
            *fields_of("decoding", Decoding(), max_ratio=50.0),
            *other(part=4, ids=PICTURES - 1, crop=2),
        ),
    ),
    Subject(
        "CLIP in an audit", _planted("clip-biased"), _known_clip, (*KEPT, *bytes_of(*CLIP_FILES))
    ),
    Subject(
        "ViT classifier",
        _planted("vit-biased"),
        _vit,
        (*KEPT, *bytes_of(*CLIP_FILES[:3]), *other(features=True)),
    ),
    Subject(
        "ONNX classifier",
        _export,
        _onnx,
        (*KEPT, *bytes_of("model/model.onnx", "model/weights", "model/model.labels.txt")),
    ),
    Subject(
        "python: factory",
        _code,
        _widths,
        (
            *KEPT,
            Case("a byte of soak_widths.py", _other_code),
            *other(revision="two", question="What?"),
        ),
    ),
    Subject(
        "Generated sets",
        _subjects,
        _swatches,
        (
            *KEPT,
            Case("caption", partial(_subjects, second="baker")),
            *other(seed=1, candidates=3, shared=(0.2, 0.9)),
            *fields_of("sampling", Sampling(), steps=49, guidance=7.0, negative_prompt="blue"),
            *fields_of("sampling", Sampling(), height=8),
        ),
    ),
    Subject("Diffusion", _diffusion, _diffused, (*KEPT, *bytes_of(*DIFFUSION_FILES))),
    Subject(
        "Mitigation",
        _planted("clip-biased"),
        _trained,
        (*KEPT, *bytes_of(*CLIP_FILES), *other(seed=1, rate=1e-4, texts=2)),
    ),
)
"""All subjects; tests/models/test_keyed_files.py changes a byte of any file of every adapter."""

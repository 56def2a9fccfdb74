"""Everything of equipoise that writes, small enough to be disturbed at each of its operations."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tools.soak.work import write_pictures

Work = Callable[[], object]


@dataclass(frozen=True)
class Writer:
    """Work that writes into the working directory.

    Attributes
    ----------
    case : str
        Its name in the table.
    begin : callable
        Writes inputs and the old state.
    run : callable
        Writes the new state.
    names : tuple of str
        Names of which an error has one.
    whole : tuple of str
        Folders that are there whole or not at all; files outside of them are whole each.
    once : bool
        Whether finished work is refused when it is run again.
    slow : bool
        Whether each operation has one fault instead of three.
    optional : str
        Folder of files that only save time: finished work may lack them, and the next run writes
        them.
    """

    case: str
    begin: Work
    run: Work
    names: tuple[str, ...]
    whole: tuple[str, ...] = ()
    once: bool = False
    slow: bool = False
    optional: str = ""


def command(*arguments: str) -> None:
    """Run the command line, silently; its errors pass."""
    from equipoise.cli.app import app

    with (
        redirect_stdout(io.StringIO()),
        redirect_stderr(io.StringIO()),
        app.make_context("equipoise", [*arguments]) as context,
    ):
        app.invoke(context)


def writers() -> tuple[Writer, ...]:
    """Return every writer."""
    run = ("runs/r",)
    older = Writer("Audit over an older run", _older_run, _audit, run, run, slow=True)
    return (
        Writer("A file", _older_file, _file, ("file.txt",)),
        Writer("Extraction", _photos, _extract, ("store",)),
        Writer("Extraction, changed images", _other_photos, _extract, ("store",)),
        Writer("Embeddings of texts", _nothing, _texts, ("store",)),
        Writer("Generation", _nothing, _generate, ("store",)),
        Writer("Exported images", _older_export, _export, ("photos", "store"), ("photos",)),
        Writer("Images of filtered sets", _made, _sets, ("sets", "store"), ("sets",)),
        Writer("New audit", _tables, _audit, run, run),
        older,
        Writer("Audit of a model", _scenes, _audit_model, (*run, "store"), run, slow=True,
               optional="store/models"),
        Writer("Comparison", _two_models, _compare, ("compared",), ("compared",), once=True,
               slow=True),
        Writer("Report written again", _run, _report, ("report.html", "files.json")),
        Writer("JUnit file", _older_junit, _junit, ("junit.xml",)),
        Writer("Labels", _labelled, _label, ("runs/r",)),
        Writer("Labels, two files", _run, _keep_labels, ("runs/r",)),
        Writer("Faces", _faces, _find_faces, ("faces.csv",), once=True),
        Writer("new", _nothing, _new, ("config.yaml",), once=True),
        Writer("new, a study", _nothing, _study, ("study",), once=True),
        Writer("train", _domains, _train, ("trained",), ("trained",), slow=True),
        Writer("augment", _drawn, _augment, ("run", "out", "evidence"), ("run", "out"), slow=True),
        Writer("Mitigation, wrapped", _nothing, _wrap, ("made",), ("made",), slow=True),
        Writer("Mitigation, trained", _nothing, _tune, ("made",), ("made",), slow=True),
        Writer("neurons", _marked, _neurons, ("out",), ("out/edits", "out/report"), once=True,
               slow=True),
    )  # fmt: skip


def writer_of(case: str) -> Writer:
    """Return the writer of a case."""
    return next(one for one in writers() if one.case == case)


def _nothing() -> None:
    pass


def _older_file() -> None:
    Path("file.txt").write_text("old", encoding="utf-8")


def _file() -> None:
    from equipoise.core import writing

    writing.write(Path("file.txt"), b"new")


def _photos() -> None:
    write_pictures(Path("photos"), 12, broken=(5,))


def _other_photos() -> None:
    write_pictures(Path("photos"), 12)
    _extract()
    (Path("photos") / "00005.png").write_bytes(b"no picture")


def _extract() -> None:
    from equipoise.evidence import ExtractionSettings, extract_embeddings, pictures_in_folder
    from tests.picture_models import Means

    pictures = pictures_in_folder(Path("photos"))
    extract_embeddings(
        pictures, Means(), Path("store"), settings=ExtractionSettings(part=4, max_failures=0.5)
    )


def _texts() -> None:
    from equipoise.evidence import embed_texts
    from tests.picture_models import Means

    embed_texts([f"word {number}" for number in range(10)], Means(), Path("store"), part=4)


def _generated(candidates: int) -> Any:
    from equipoise.counterfactuals import GenerationSettings, caption_sets, generate_sets
    from tests.generator_models import Swatches

    captions = caption_sets(["doctor", "nurse"], {"gender": ["male", "female"]})
    return generate_sets(
        captions,
        Swatches(),
        Path("store"),
        candidates=candidates,
        settings=GenerationSettings(part=6),
    )


def _generate() -> None:
    _generated(3)


def _older_export() -> None:
    from equipoise.counterfactuals import export_images

    export_images(_generated(1), Path("photos"))
    _generated(2)


def _export() -> None:
    from equipoise.counterfactuals import export_images

    export_images(_generated(2), Path("photos"), overwrite=True)


def _made() -> None:
    _generated(3)


def _sets() -> None:
    from equipoise.counterfactuals.candidates import Candidates
    from equipoise.counterfactuals.filters import Filtered, write_sets

    made = _generated(3)
    columns = ("caption_id", "prompt", "state", "reason", "candidate", "image_id", "set")
    table = {name: made.table[name].to_numpy(zero_copy_only=False) for name in columns}
    names = tuple(f"{one}/{number}" for one, number in zip(table["set"], table["candidate"]))  # noqa: B905
    distinct = tuple(dict.fromkeys(names))
    places = np.array([distinct.index(name) for name in names])
    candidates = _built(Candidates, columns=table, names=distinct, candidate=places)
    write_sets(_built(Filtered, candidates=candidates, kept=np.ones(len(distinct), bool)),
               made.pictures, Path("sets"))  # fmt: skip


def _built(kind: type[Any], **values: Any) -> Any:
    """Return a record with some of its fields."""
    made = object.__new__(kind)
    for name, value in values.items():
        object.__setattr__(made, name, value)
    return made


CONFIG = """\
audit: predictions
data: {table: labels.csv, id: id, target: y, groups: [g]}
models:
  good: {table: good.csv, prediction: p}
resampling: {replicates: 50, permutations: 99}
gate:
  - {metric: accuracy, of: worst_group, min: 0.8}
"""


def _csv(name: str, rows: Iterable[Iterable[object]]) -> None:
    with Path(name).open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)


def _tables() -> None:
    rng = np.random.default_rng(0)
    truth, group, wrong = (rng.integers(0, 2, 80).tolist() for _ in range(3))
    _csv("labels.csv", [("id", "y", "g"), *zip(range(80), truth, group, strict=True)])
    _csv("good.csv", [("id", "p"), *enumerate(wrong)])
    Path("c.yaml").write_text(CONFIG, encoding="utf-8")


def _audit() -> None:
    command("audit", "c.yaml", "--out", "runs/r", "--overwrite")


def _run() -> None:
    _tables()
    _audit()


def _older_run() -> None:
    from equipoise.evidence import keep_labels

    _run()
    keep_labels(Path("runs/r"), lambda: {"labels.parquet": b"labels"})
    Path("c.yaml").write_text(CONFIG.replace("50", "60"), encoding="utf-8")


def _two_models() -> None:
    _tables()
    _csv("bad.csv", [("id", "p"), *((place, place % 2) for place in range(80))])
    other = "models:\n  bad: {table: bad.csv, prediction: p}"
    Path("c.yaml").write_text(CONFIG.replace("models:", other), encoding="utf-8")
    _audit()


def _compare() -> None:
    command("compare", "runs/r", "--out", "compared")


def _report() -> None:
    command("report", "runs/r")


def _older_junit() -> None:
    _run()
    _junit()
    path = Path("junit.xml")
    path.write_bytes(path.read_bytes() + b"\n")


def _junit() -> None:
    from click.exceptions import Exit

    try:
        command("check", "runs/r", "--junit", "junit.xml")
    except Exit as end:
        if end.exit_code != 1:
            raise


def _labelled() -> None:
    _run()
    for labeller in ("ann", "bo"):
        rows = [
            {"image_id": str(image), "question": "good", "answer": "yes", "labeller": labeller,
             "at": "2026-11-28T09:00:00Z"} for image in range(20)
        ]  # fmt: skip
        Path(f"{labeller}.json").write_text(json.dumps(rows), encoding="utf-8")
    _read_labels("ann")


def _label() -> None:
    _read_labels("bo")


def _read_labels(labeller: str) -> None:
    command("label", "read", "runs/r", f"{labeller}.json", "--question", "good")


def _keep_labels() -> None:
    from equipoise.evidence import keep_labels

    keep_labels(Path("runs/r"), lambda: {"causes.parquet": b"causes", "samples.json": b"[]"})


def _faces() -> None:
    write_pictures(Path("photos"), 2, broken=(1,))


def _find_faces() -> None:
    command("faces", "photos", "--out", "faces.csv")


def _new() -> None:
    command("new", "config.yaml")


def _study() -> None:
    command("new", "study/mine.yaml", "--study", "predicted-labels")


def _domains() -> None:
    import yaml

    from tests import image_files

    sys.modules.setdefault("image_files", image_files)
    from tests import data_sets

    data_sets.domain_net(Path(), count=2)  # type: ignore[no-untyped-call]
    where = {"domain": ["clipart", "real"]}
    config = {
        "images": {"folder": "DomainNet", "levels": ["domain", "class"]},
        "label": "class",
        "networks": {"tiny": "timm:test_resnet"},
        "trainings": {"all": {"where": where}},
        "test": {"domain": "sketch"},
        "size": 32,
        "schedule": {"epochs": 2, "batch": 8},
    }
    Path("train.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")


def _train() -> None:
    command("train", "train.yaml", "--overwrite")


def _drawn() -> None:
    from tests.cli import faces_project

    faces_project.draw(Path())  # type: ignore[no-untyped-call]
    path = Path("config.yaml")
    text = path.read_text(encoding="utf-8").replace(
        "networks: [cnn]", "networks: [timm:test_resnet]"
    )
    path.write_text(f"{text}output: out\n", encoding="utf-8")


def _augment() -> None:
    # Killed between its two folders, augment asks for this flag.
    command("augment", "config.yaml", "--out", "run", "--overwrite")


def _training() -> tuple[Any, Any]:
    from equipoise.cli.mitigation_world import image_sets, subject_texts
    from equipoise.mitigate import Training
    from equipoise.planted.scenes.embed import load_clip
    from equipoise.planted.scenes.render import SUBJECTS
    from equipoise.planted.scenes.sets import render_sets

    learned = SUBJECTS[:2]
    images = image_sets(render_sets(1, seed=11), seed=11).of(learned)
    return load_clip("biased"), Training(tuple(map(subject_texts, learned)), images=images)


def _wrap() -> None:
    from equipoise.mitigate import PromptEnsemble

    base, training = _training()
    PromptEnsemble().fit(base, replace(training, images=None), Path("made"), seed=5)


def _tune() -> None:
    from equipoise.mitigate import Contrastive

    base, training = _training()
    Contrastive(epochs=2, batch=24, learning_rate=1e-4).fit(base, training, Path("made"), seed=5)


def _scenes() -> None:
    from equipoise.planted.scenes.embed import WEIGHTS

    write_pictures(Path("photos"), 12)
    rows = [(f"{place:05d}.png", ("a", "b")[place % 2], ("x", "y")[place // 2 % 2])
            for place in range(12)]  # fmt: skip
    _csv("images.csv", [("file", "g", "y"), *rows])
    Path("c.yaml").write_text(
        f"""\
audit: diversity
data:
  images: {{table: images.csv, id: file, path: file, root: photos}}
  sets: [g]
  min_set_size: 2
models: {{clip: {{model: "hf:{WEIGHTS / "clip-biased"}"}}}}
extraction: {{store: store, part: 6}}
resampling: {{replicates: 20, permutations: 99}}
""",
        encoding="utf-8",
    )


def _audit_model() -> None:
    _audit()


def _marked() -> None:
    from PIL import Image

    from equipoise.planted import scenes
    from equipoise.planted.scenes.captions import neutral_prompts
    from equipoise.planted.scenes.render import FRAMES, SUBJECTS

    drawn = scenes.render_sets(1, seed=3)
    table = drawn.table()
    Path("photos").mkdir()
    rows: list[tuple[Any, ...]] = []
    for row, name in enumerate(drawn.image_id[:48]):
        Image.fromarray(drawn.images[row]).save(Path("photos", f"{name}.png"))
        rows.append((name, f"{name}.png", table["frame"][row], table["set"][row]))
    _csv("images.csv", [("image_id", "path", "frame", "set"), *rows])
    concepts = {frame: [*neutral_prompts(SUBJECTS[place])] for place, frame in enumerate(FRAMES)}
    Path("neurons.yaml").write_text(
        f"""\
model: "hf:{scenes.WEIGHTS}/clip-biased"
images: {{table: images.csv, root: photos, group: frame, unit: set}}
concepts: {json.dumps(concepts)}
kinds: [heads]
counts: [1]
random: 2
replicates: 100
shown: 1
seeds: 1
steps: 1
k: 5
output: out
device: cpu
""",
        encoding="utf-8",
    )


def _neurons() -> None:
    command("neurons", "neurons.yaml")


def here(folder: Path, work: Work) -> None:
    """Do work in a folder."""
    before = Path.cwd()
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    try:
        work()
    finally:
        os.chdir(before)

"""Components chosen on one half of the images, and tested and changed on the other."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

from equipoise.audits.config_fields import ExtractionConfig, located
from equipoise.audits.findings import manifest_of
from equipoise.audits.gallery import SIDE, small_jpeg
from equipoise.audits.kinds import with_progress
from equipoise.core import AuditResult, InputError, Objects, Progress, record, table_of
from equipoise.core.types import FileFacts
from equipoise.core.wording import PERCEIVED
from equipoise.data import read_table
from equipoise.evidence import prompts
from equipoise.explain.visualisation import visualise
from equipoise.mitigate.loading import REPORT, read_images
from equipoise.mitigate.neurons.choosing import (
    Found,
    association_parts,
    choose_units,
    find_heads,
    find_units,
    sweep_units,
)
from equipoise.mitigate.neurons.config import Config, Kind
from equipoise.mitigate.neurons.recording import Items, read_dictionary, record_units
from equipoise.mitigate.neurons.selectivity import selectivity
from equipoise.mitigate.recipe import refuse_occupied
from equipoise.mitigate.sets import Lookup
from equipoise.mitigate.trials import Trial
from equipoise.models.edits import Site
from equipoise.stats.streams import stream

EDITS = "edits"
_MOST_ACTIVE = 6
_NOTES = (
    PERCEIVED,
    "Components were chosen, and their means and directions learned, on one half of the images. "
    "Everything shown is of the other half. q-values correct for the chosen components alone.",
    "Every number of components is shown, so the best of them is partly luck.",
)


@record
class _Half:
    """Half of some images or texts, with columns by their key in the configuration."""

    items: Any
    columns: Mapping[str, Objects]

    @property
    def within(self) -> Objects | None:
        return self.columns.get("within")


def _halves(items: Items, columns: Mapping[str, Objects], seed: int) -> list[_Half]:
    """Split at random: the half to choose from, and the other; a unit is never cut."""
    units = columns.get("unit", np.arange(len(items))).astype(str)
    names, places = np.unique(units, return_inverse=True)
    other = stream(seed, "neurons", "halves").permutation(len(names)) % 2
    halves = []
    for rows in (np.flatnonzero(other[places] == part) for part in (0, 1)):
        some = Lookup([(items, row) for row in rows.tolist()])
        halves.append(_Half(some, {name: column[rows] for name, column in columns.items()}))
    return halves


def _read(config: Config, base: Path, inputs: dict[str, FileFacts]) -> dict[str, list[_Half]]:
    """Return the halves of the images, and those of the texts."""
    about = config.images
    keys = [key for key in ("group", "within", "unit", "caption", "label") if getattr(about, key)]
    names = [getattr(about, key) for key in keys]
    pictures, values = read_images(about, names, base, "images", inputs)
    columns = dict(zip(keys, values, strict=True))
    halves = {"images": _halves(pictures, columns, config.seed)}  # type: ignore[arg-type]
    if config.texts is not None:
        own = {
            key: name for key in ("text", "group", "within") if (name := getattr(config.texts, key))
        }
        table = read_table(located(config.texts.table, base), texts=[*own.values()], role="texts")
        inputs[table.name] = table.digest
        columns = {key: np.array(table.texts[name], dtype=object) for key, name in own.items()}
        halves["texts"] = _halves(columns.pop("text").tolist(), columns, config.seed)
    return halves


def _trial(config: Config, half: _Half) -> Trial:
    columns, classes = half.columns, None
    if "label" in columns:
        made = prompts(sorted({*columns["label"].tolist()}), config.images.templates)
        texts = np.array(made.texts, dtype=object)
        classes = {name: texts[made.owner == row].tolist() for row, name in enumerate(made.names)}
    keys = {"captions": "caption", "units": "unit", "labels": "label"}
    optional = {name: columns[key].tolist() for name, key in keys.items() if key in columns}
    return Trial(
        half.items, columns["group"], config.concepts, **optional, classes=classes, k=config.k
    )


def _find(kind: Kind, config: Config, base: Path, model: Any, half: _Half) -> Found:
    given = (model, half.items, half.columns["group"])
    if kind == "heads":
        return find_heads(*given, config.concepts, within=half.within)
    named = {"units": config.layers, "texts": config.texts.layers if config.texts else None}
    layers: Sequence[str | Site] | None = named.get(kind)
    if kind == "features" and config.dictionary is not None:
        layers = [read_dictionary(base / config.dictionary.file, config.dictionary.layer)]
    return find_units(*given, layers=layers, within=half.within, text=config.text)


def run(config: Config, *, base: Path = Path(), progress: Progress | None = None) -> AuditResult:
    """Choose components on half of the images, test and change them on the other half.

    Writes each edit into the folder `edits` of the output.

    Parameters
    ----------
    config : Config
    base : Path
        Folder of relative paths.
    progress : callable, optional

    Returns
    -------
    AuditResult
        With the tables `neurons_components`, `neurons_sweep`, `neurons_parts` and `gallery`.

    Raises
    ------
    DataError
        When a table or an image cannot be used.
    ModelError
        When the model cannot be hooked, or lacks what a kind needs.
    RunError
        When something lies where the edits or the report are to be.
    """
    began, inputs = perf_counter(), dict[str, FileFacts]()
    folder = base / config.output / EDITS
    refuse_occupied(folder)
    refuse_occupied(base / config.output / REPORT)
    halves = _read(config, base, inputs)
    trial = _trial(config, halves["images"][1])
    options = replace(config.options(ExtractionConfig()), backend="torch")
    model = options.load(config.located(base))
    folder.mkdir(parents=True, exist_ok=True)
    tables: dict[str, list[dict[str, Any]]] = {"components": [], "sweep": [], "parts": []}
    gallery: list[dict[str, Any]] = []
    notes = [*_NOTES]
    for kind in with_progress(config.kinds, progress, "changing components"):
        chosen, tested = halves["texts" if kind == "texts" else "images"]
        found = _find(kind, config, base, model, chosen)
        tables["components"] += [{"kind": kind} | row for row in _components(found, tested, config)]
        if kind == "heads":
            more = {"replicates": config.replicates, "seed": config.seed}
            tables["parts"] = association_parts(model, trial, **more).to_pylist()
        try:
            tables["sweep"] += _swept(found, trial, config, folder, kind)
        except InputError as error:  # nothing responds
            notes.append(f"{kind}: {error}.")
            continue
        if kind != "texts":
            gallery += _pictures(found, tested, config)
    manifest = manifest_of(
        config=config.model_dump(mode="json", exclude_unset=True),
        resolved=config.model_dump(mode="json"),
        inputs=inputs,
        counts={name: [len(half.items) for half in both] for name, both in halves.items()},
        seed=config.seed,
        seconds=perf_counter() - began,
        notes=tuple(notes),
    )
    written = {f"neurons_{name}": pa.Table.from_pylist(rows) for name, rows in tables.items()}
    pictures = {"gallery": table_of(gallery, "section group caption *image")} if gallery else {}
    return AuditResult((), manifest, written | pictures)


def _components(found: Found, half: _Half, config: Config) -> Iterator[dict[str, Any]]:
    """Yield the first components: chosen on one half, tested on the other."""
    columns = [column for column, _ in found.ranked()[: max(config.counts)]]
    recorded = record_units(found.model, half.items, layers=found.recording.sites, text=found.text)
    groups = half.columns["group"]
    tested = selectivity(recorded.values[:, columns], groups, within=half.within)
    for place, row in enumerate(found.table(len(columns)).to_pylist()):
        group = tested.groups.index(row["group"])
        numbers = {
            name: float(getattr(tested, name)[group, place])
            for name in ("auroc", "p_value", "q_value")
        }
        yield row | {"auroc_chosen": row["auroc"]} | numbers


def _swept(
    found: Found, trial: Trial, config: Config, folder: Path, kind: Kind
) -> list[dict[str, Any]]:
    """Measure edits of more and more components, and write each."""
    swept = sweep_units(
        found, trial, config.counts, mode=config.mode, alpha=config.alpha, random=config.random,
        replicates=config.replicates, seed=config.seed,
    ).to_pylist()  # fmt: skip
    for units in dict.fromkeys(row["units"] for row in swept):
        edit = choose_units(found, units, mode=config.mode, alpha=config.alpha)
        edit.write(folder / f"{kind}-{units}.json")
    return [{"kind": kind, **row, "edit": f"{EDITS}/{kind}-{row['units']}.json"} for row in swept]


def _pictures(found: Found, half: _Half, config: Config) -> Iterator[dict[str, Any]]:
    """Yield images on which each component is most active, and images made for it."""
    recorded, ranked = found.recording, [column for column, _ in found.ranked()]
    shown, rest = ranked[: config.shown], ranked[config.shown :]
    rest = stream(config.seed, "neurons", "control").permutation(rest).tolist()
    layer = [recorded.layers[place] for place in recorded.layer.tolist()]
    rest.sort(key=lambda column: layer[column] != layer[ranked[0]])
    text = found.text or next(iter(config.concepts.values()))[0]
    for column in [*shown, *rest[:1]]:
        site = recorded.sites[recorded.layer[column]].select([int(recorded.unit[column])])
        values = record_units(found.model, half.items, layers=[site], text=found.text).values[:, 0]
        order = np.argsort(-values, kind="stable")
        images = [
            (title, values[row], half.items[row])
            for title, rows in (("Most active", order), ("Least active", order[::-1]))
            for row in rows[:_MOST_ACTIVE].tolist()
        ]
        made, activity = visualise(
            found.model, site, half.items[0], text=text,
            seeds=config.seeds, steps=config.steps, seed=config.seed,
        )  # fmt: skip
        images += [("Made for it", *pair) for pair in zip(activity, made, strict=True)]
        name = recorded.name(column) + (", a control at random" if column in rest[:1] else "")
        for title, active, image in images:
            yield {
                "section": name, "group": title, "caption": f"{active:.3g}",
                "image": small_jpeg(image, SIDE),
            }  # fmt: skip

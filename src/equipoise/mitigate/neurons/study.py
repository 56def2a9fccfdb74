"""Components chosen on one half of the images, and tested and changed on the other."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

from equipoise.audits.findings import manifest_of
from equipoise.audits.gallery import SIDE, small_jpeg
from equipoise.audits.outputs import prompts_of
from equipoise.config.fields import ExtractionConfig, Section, located
from equipoise.core import (
    AuditResult,
    InputError,
    Objects,
    Progress,
    record,
    table_of,
    with_progress,
)
from equipoise.core.columns import BYTES, TEXT
from equipoise.core.types import FileFacts
from equipoise.core.wording import PERCEIVED
from equipoise.data import read_table
from equipoise.evidence import Prompts, check_place, new_run, prompts
from equipoise.explain.visualisation import visualise
from equipoise.mitigate.config import REPORT
from equipoise.mitigate.loading import read_images, read_pairs
from equipoise.mitigate.neurons.choosing import (
    Components,
    association_parts,
    choose_units,
    find_directions,
    find_heads,
    find_units,
    join_edits,
    sweep_units,
)
from equipoise.mitigate.neurons.concluding import conclude_edits
from equipoise.mitigate.neurons.config import Config, Kind, Part, parts_of
from equipoise.mitigate.neurons.recording import Items, read_dictionary, record_units
from equipoise.mitigate.neurons.selectivity import selectivity
from equipoise.mitigate.recipe import refuse_occupied
from equipoise.mitigate.sets import Lookup
from equipoise.mitigate.trials import Trial
from equipoise.models.edits import Site
from equipoise.report.text import listed
from equipoise.stats.streams import stream
from equipoise.studies.claims import with_claims

EDITS = "edits"
_IMAGE_COLUMNS = ("group", "within", "unit", "pair", "caption", "neutral_caption", "label")
_TEXT_PARTS: tuple[Part, ...] = ("texts", "text_subspace")
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


def _split_halves(items: Items, columns: Mapping[str, Objects], seed: int) -> list[_Half]:
    """Split at random into the half to choose from and the half to test on."""
    units = columns.get("unit", columns.get("pair", np.arange(len(items)))).astype(str)
    names, places = np.unique(units, return_inverse=True)
    other = stream(seed, "neurons", "halves").permutation(len(names)) % 2
    halves = []
    for rows in (np.flatnonzero(other[places] == part) for part in (0, 1)):
        subset = Lookup([(items, row) for row in rows.tolist()])
        halves.append(_Half(subset, {name: column[rows] for name, column in columns.items()}))
    return halves


def _read(config: Config, base: Path, inputs: dict[str, FileFacts]) -> dict[str, list[_Half]]:
    """Return the halves of the images and of the texts."""
    names = _column_names(config.images, _IMAGE_COLUMNS)
    pictures, values = read_images(config.images, [*names.values()], base, "images", inputs)
    columns = dict(zip(names, values, strict=True))
    halves = {"images": _split_halves(pictures, columns, config.seed)}  # type: ignore[arg-type]
    if config.texts is not None:
        names = _column_names(config.texts, ("text", "group", "within", "pair"))
        table = read_table(located(config.texts.table, base), texts=[*names.values()], role="texts")
        inputs[table.name] = table.digest
        columns = {key: np.array(table.texts[name], dtype=object) for key, name in names.items()}
        halves["texts"] = _split_halves(columns.pop("text").tolist(), columns, config.seed)
    return halves


def _column_names(section: Section, keys: Sequence[str]) -> dict[str, str]:
    """Return the columns that a section of the configuration names, by key."""
    names = {}
    for key in keys:
        if name := getattr(section, key):
            names[key] = name
    return names


def _build_trial(config: Config, half: _Half, base: Path, inputs: dict[str, FileFacts]) -> Trial:
    columns, classes, retrieval = half.columns, None, None
    if "label" in columns:
        classes = _by_name(prompts(sorted({*columns["label"].tolist()}), config.images.templates))
    concepts: dict[str, Sequence[str]] = {**config.concepts}
    if config.words is not None:
        concepts |= _by_name(prompts_of(config.words, base, subject="words"))
    if config.retrieval is not None:
        retrieval = read_pairs("retrieval", config.retrieval, base, inputs)
    keys = {
        "captions": "caption", "neutral_captions": "neutral_caption", "units": "unit",
        "labels": "label",
    }  # fmt: skip
    optional = {name: columns[key].tolist() for name, key in keys.items() if key in columns}
    return Trial(
        half.items, columns["group"], concepts, **optional, classes=classes, k=config.k,
        retrieval=retrieval,
    )  # fmt: skip


def _by_name(named: Prompts) -> dict[str, list[str]]:
    """Return the texts of each name."""
    texts = np.array(named.texts, dtype=object)
    return {name: texts[named.owner == row].tolist() for row, name in enumerate(named.names)}


def _find(part: Part, config: Config, base: Path, model: Any, half: _Half) -> Components:
    arguments = (model, half.items, half.columns["group"])
    if part == "heads":
        return find_heads(*arguments, config.concepts, within=half.within)
    of_texts = part in _TEXT_PARTS
    layers: Sequence[str | Site] | None = config.layers
    if of_texts:
        layers = config.texts.layers if config.texts else None
    if part in ("subspace", "text_subspace") and layers:
        return find_directions(
            *arguments, str(layers[0]), pairs=half.columns.get("pair"), centre=config.centre,
            within=half.within,
        )  # fmt: skip
    if part == "features" and config.dictionary is not None:
        layers = [read_dictionary(base / config.dictionary.file, config.dictionary.layer)]
    text = "" if of_texts else config.text
    return find_units(*arguments, layers=layers, within=half.within, text=text, rank=config.rank)


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
    report = base / config.output / REPORT
    refuse_occupied(report)
    check_place(folder, overwrite=not report.exists())
    halves = _read(config, base, inputs)
    trial = _build_trial(config, halves["images"][1], base, inputs)
    options = replace(config.options(ExtractionConfig()), backend="torch")
    model = options.load(config.located(base))
    tables: dict[str, list[dict[str, Any]]] = {"components": [], "sweep": [], "parts": []}
    gallery: list[dict[str, Any]] = []
    notes = [*_NOTES, *trial.notes]
    # Edits without a report are those of a killed run.
    with new_run(folder, overwrite=not report.exists()) as edits:
        found = dict[Part, Components]()
        for kind in with_progress(config.kinds, progress, "changing components"):
            parts = parts_of(kind)
            for part in parts:
                if part in found:
                    continue
                chosen, tested = halves["texts" if part in _TEXT_PARTS else "images"]
                found[part] = _find(part, config, base, model, chosen)
                tables["components"] += [
                    {"kind": part} | row for row in _component_rows(found[part], tested, config)
                ]
                if part == "heads":
                    bootstrap = {"replicates": config.replicates, "seed": config.seed}
                    tables["parts"] = association_parts(model, trial, **bootstrap).to_pylist()
            try:
                tables["sweep"] += _sweep(
                    [found[part] for part in parts], trial, config, edits, kind
                )
            except InputError as error:  # nothing responds
                notes.append(f"{kind}: {error}.")
                continue
            if len(parts) == 1 and parts[0] not in _TEXT_PARTS:
                gallery += _gallery_rows(found[parts[0]], halves["images"][1], config)
    manifest = manifest_of(
        config=config.model_dump(mode="json", exclude_unset=True),
        resolved=config.model_dump(mode="json"),
        inputs=inputs,
        counts={name: [len(half.items) for half in pair] for name, pair in halves.items()},
        seed=config.seed,
        seconds=perf_counter() - began,
        notes=tuple(notes),
    )
    written = {f"neurons_{name}": pa.Table.from_pylist(rows) for name, rows in tables.items()}
    pictures = (
        {
            "gallery": table_of(
                gallery, {"section": TEXT, "group": TEXT, "caption": TEXT, "image": BYTES}
            )
        }
        if gallery
        else {}
    )
    n_images = len(halves["images"][1].items)
    findings, conclusions = conclude_edits(tables["sweep"], listed([*config.concepts]), n_images)
    return with_claims(AuditResult(findings, manifest, written | pictures, conclusions))


def _component_rows(
    components: Components, half: _Half, config: Config
) -> Iterator[dict[str, Any]]:
    """Yield the first components, tested on the other half."""
    columns = [column for column, _ in components.ranked()[: max(config.counts)]]
    recorded = record_units(
        components.model, half.items, layers=components.recording.sites, text=components.text
    )
    groups = half.columns["group"]
    tested = selectivity(recorded.values[:, columns], groups, within=half.within)
    for place, row in enumerate(components.table(len(columns)).to_pylist()):
        group = tested.groups.index(row["group"])
        yield row | {"auroc_chosen": row["auroc"]} | tested.numbers(group, place)


def _sweep(
    components: Sequence[Components], trial: Trial, config: Config, folder: Path, kind: Kind
) -> list[dict[str, Any]]:
    """Measure edits of more and more components in each mode, and write each."""
    rows = list[dict[str, Any]]()
    for mode in config.mode:
        swept = sweep_units(
            components, trial, config.counts, mode=mode, alpha=config.alpha,
            random=config.random, replicates=config.replicates, seed=config.seed,
        ).to_pylist()  # fmt: skip
        name = kind if len(config.mode) == 1 else f"{kind}-{mode}"
        files = {0: ""}
        for units in dict.fromkeys(row["units"] for row in swept if row["units"]):
            edits = [
                choose_units(part, units, mode=mode, alpha=config.alpha) for part in components
            ]
            files[units] = f"{name}-{units}.json"
            join_edits(edits).write(folder / files[units])
        rows += [
            {"kind": kind, "mode": mode, **row, "edit": _edit_path(files[row["units"]])}
            for row in swept
        ]
    return rows


def _edit_path(file: str) -> str:
    return f"{EDITS}/{file}" if file else ""


def _gallery_rows(components: Components, half: _Half, config: Config) -> Iterator[dict[str, Any]]:
    """Yield the images that activate each component most, and synthetic ones."""
    recorded, ranked = components.recording, [column for column, _ in components.ranked()]
    top_columns, other_columns = ranked[: config.shown], ranked[config.shown :]
    other_columns = stream(config.seed, "neurons", "control").permutation(other_columns).tolist()
    layer = [recorded.layers[place] for place in recorded.layer.tolist()]
    other_columns.sort(key=lambda column: layer[column] != layer[ranked[0]])
    text = components.text or next(iter(config.concepts.values()))[0]
    for column in [*top_columns, *other_columns[:1]]:
        site = recorded.sites[recorded.layer[column]].select([int(recorded.unit[column])])
        values = record_units(
            components.model, half.items, layers=[site], text=components.text
        ).values[:, 0]
        order = np.argsort(-values, kind="stable")
        images = []
        for title, rows in (("Most active", order), ("Least active", order[::-1])):
            for row in rows[:_MOST_ACTIVE].tolist():
                images.append((title, values[row], half.items[row]))
        synthetic, activity = visualise(
            components.model, site, half.items[0], text=text,
            seeds=config.seeds, steps=config.steps, seed=config.seed,
        )  # fmt: skip
        images += [("Made for it", *pair) for pair in zip(activity, synthetic, strict=True)]
        name = recorded.name(column)
        if column in other_columns[:1]:
            name += ", a control at random"
        for title, active, image in images:
            yield {
                "section": name, "group": title, "caption": f"{active:.3g}",
                "image": small_jpeg(image, SIDE),
            }  # fmt: skip

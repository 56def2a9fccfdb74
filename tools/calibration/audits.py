"""What whole audits conclude where the bias is known."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from copy import deepcopy
from itertools import product, repeat
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import yaml

from equipoise import audits
from equipoise.cli.runs import page_of
from equipoise.core import Finding, Verdict
from equipoise.report.summary import summarize
from equipoise.stats.streams import stream
from tools.calibration.tables import FOLDER, decimal, write

ROOT = Path(__file__).resolve().parents[2]
SEED, ALPHA = 29, 0.05
RESAMPLING = {"replicates": 20, "permutations": 400}

Change = Callable[[pl.DataFrame, np.random.Generator], pl.DataFrame]
World = Callable[[np.random.Generator, Path], dict[str, Any]]


def exchanged(*columns: str, within: tuple[str, ...] = (), unit: str = "row") -> Change:
    """Return a function that deals the groups of a table's rows out anew.

    Parameters
    ----------
    *columns : str
        The groups, which stay together.
    within : tuple of str
        Columns of strata within which groups are exchanged.
    unit : str, optional
        Column of units that have one group and one stratum each.
    """

    def change(table: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
        rows = table.with_row_index("row")
        units = rows.unique(unit, keep="first", maintain_order=True)
        strata = np.zeros(units.height)
        for column in within:
            strata = strata * units.height + units[column].rank("dense").to_numpy()
        order, dealt = np.argsort(strata), np.lexsort((rng.random(units.height), strata))
        dealt_units = units[order].select(unit).with_columns(units[dealt].select(columns))
        joined = rows.drop(columns).join(dealt_units, on=unit, how="left", maintain_order="left")
        return joined.select(table.columns)

    return change


def shown(table: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    """Draw what is said of images that show as many men as women, as of the labelled images."""
    labelled = pl.read_csv(ROOT / "examples" / "text_to_image" / "labelled.csv")["said"]
    return table.with_columns(said=labelled[rng.integers(0, len(labelled), table.height)])


def example(kind: str, tables: Mapping[str, Change], **config: Any) -> World:
    """Return the world of an example with one model.

    Parameters
    ----------
    kind : str
        The example's folder.
    tables : mapping of str to callable
        How tables are drawn anew, by their key in the config.
    **config : any
        Keys of the config in place of the example's.
    """

    def world(rng: np.random.Generator, folder: Path) -> dict[str, Any]:
        read = yaml.safe_load((folder / kind / "audit.yaml").read_text(encoding="utf-8"))
        values: dict[str, Any] = read | deepcopy(config)
        if "models" in values:
            values["models"] = dict([*values["models"].items()][:1])
        for path, change in tables.items():
            node: Any = values
            *parents, last = path.split(".")
            for key in parents:
                node = node[int(key)] if isinstance(node, list) else node[key]
            table = pl.read_csv(folder / kind / node[last], infer_schema=False)
            node[last] = change(table, rng)
        return values

    return world


def predictions(groups: int, images: int = 150, gap: float = 0.0, repeats: int = 1) -> World:
    """Return a world of labels of three classes, right for 85 of 100 images.

    Parameters
    ----------
    groups, images : int
        Groups, and images of each.
    gap : float
        How much more often labels of the first group are wrong.
    repeats : int
        Images of a person, labelled alike.
    """

    def world(rng: np.random.Generator, _: Path) -> dict[str, Any]:
        group = np.repeat(np.arange(groups), images // repeats)
        truth = rng.integers(0, 3, len(group))
        right = rng.random(len(group)) < 0.85 - gap * (group == 0)
        label = np.where(right, truth, (truth + rng.integers(1, 3, len(group))) % 3)
        columns = {"target": truth, "label": label, "group": group, "person": np.arange(len(group))}
        repeated = {name: np.repeat(column, repeats) for name, column in columns.items()}
        frame = pl.DataFrame(repeated).with_row_index("id").cast(pl.String)
        data = {"table": frame, "id": "id", "target": "target", "groups": ["group"]}
        data |= {"unit": "person"} if repeats > 1 else {}
        models = {"model": {"table": frame, "prediction": "label"}}
        return {"audit": "predictions", "data": data, "models": models}

    return world


_SETS = {"attributes": ["men", "women"], "targets": ["nurse", "doctor", "pilot", "baker"]}
_OF_PEOPLE = {"images": "people", "groups": "gender"}
_ASSOCIATIONS = [
    {"metric": "weat", "targets": ["men", "women"], "attributes": ["science", "arts"]},
    {"metric": "association_score", "modalities": ["II", "ITP"]} | _SETS,
    {"metric": "total_absolute_association", "modalities": ["II"]} | _SETS,
    {"metric": "mcas", "generated": True} | _SETS,
    {"metric": "label_concentration", "labels": "prompts", "k": 2} | _OF_PEOPLE,
]
_SHARES = {
    "of": "perceived gender",
    "classes": {"man": ["man"], "woman": ["woman"]},
    "said": {"painter": {"table": "said.csv"}},
    "labelled": {"table": "labelled.csv", "said": "said"},
}
_IMAGES = "data.images.table"

WORLDS: dict[str, World] = {
    "predictions, 2 groups": predictions(2),
    "predictions, 3 groups": predictions(3),
    "predictions, 3 groups of persons": predictions(3, 240, repeats=4),
    "answers": example("answers", {"data.table": exchanged("gender", "age")}),
    "concepts": example("concepts", {_IMAGES: exchanged("term")}, versions={}, gate=[]),
    "retrieval": example("retrieval", {_IMAGES: exchanged("race", "gender", within=("scene",))}),
    "similarity": example("similarity", {_IMAGES: exchanged("race", "gender", within=("scene",))}),
    "counterfactuals": example(
        "counterfactuals", {_IMAGES: exchanged("hue", "frame", within=("set",))}
    ),
    "associations": example(
        "associations",
        {
            "data.people.table": exchanged("gender", within=("region",), unit="person"),
            "data.words.table": exchanged("list"),
        },
        measure=_ASSOCIATIONS,
    ),
    "diversity": example("diversity", {_IMAGES: exchanged("region", within=("query",))}),
    "activations": example("activations", {_IMAGES: exchanged("gender", unit="person")}),
    "regression": example("regression", {_IMAGES: exchanged("gender", "band", unit="person")}),
    "questions": example(
        "questions", {"data.table": exchanged("race", "gender", within=("scene",))}
    ),
    "generation": example(
        "generation",
        {"images.table": exchanged("race", "gender", "age", within=("set", "candidate"))},
    ),
    "text_to_image": example(
        "text_to_image",
        {"shares.0.said.painter.table": shown},
        shares=[_SHARES],
        models={},
        associations=None,
    ),
}


def conclude(world: World, name: str, number: int) -> Iterator[tuple[list[Finding], list[Finding]]]:
    """Audit a world again and again; yield the findings that lead the report, and all.

    Parameters
    ----------
    world : callable
    name : str
        Key of its random numbers.
    number : int
        Of audits.
    """
    with tempfile.TemporaryDirectory() as folder:
        # Outside the repository: each run would ask git for what has changed.
        shutil.copytree(ROOT / "examples", folder, dirs_exist_ok=True)
        for sample in range(number):
            values = world(stream(SEED, "audits", name, sample), Path(folder))
            values |= {"resampling": RESAMPLING | {"seed": sample}, "testing": {"alpha": ALPHA}}
            config = audits.parse_config(values)
            result = audits.run(config, base=Path(folder) / config.audit)
            statements = summarize(result, page_of(result).leads).statements
            led = [statement.finding for statement in statements if statement.finding is not None]
            yield led, [*result.findings]


def _disparities(findings: Iterable[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.verdict is Verdict.DISPARITY]


def false_alarms(name: str, number: int) -> tuple[int, int]:
    """Return how many audits of one of `WORLDS` have a leading disparity, and how many any."""
    leading, anywhere = zip(
        *(map(_disparities, pair) for pair in conclude(WORLDS[name], name, number)), strict=True
    )
    return sum(map(bool, leading)), sum(map(bool, anywhere))


def power(groups: int, images: int, gap: float, number: int) -> tuple[float, float]:
    """Return how often the group that is worse off leads, and how often it has a disparity.

    Each is a share of audits of `predictions`, and of its findings against all other groups.
    """
    name = f"{groups} groups of {images}, {gap:g}"
    conclusions = conclude(predictions(groups, images, gap), name, number)
    hits = [
        [any(finding.group == "group 0" for finding in _disparities(findings)) for findings in pair]
        for pair in conclusions
    ]
    leading, overall = np.mean(hits, axis=0).tolist()
    return leading, overall


AUDITS = "world", "audits", "leading_disparity", "any_disparity"
POWERS = "groups", "images", "gap", "audits", "leads", "disparity"
POWER_AUDITS = 20


def write_tables(number: int, folder: Path = FOLDER) -> None:
    """Write the tables of whole audits, from so many audits of each world."""
    cells = [*product((3, 6), (50, 100, 200, 400), (0.1, 0.2))]
    with ProcessPoolExecutor(mp_context=get_context("forkserver")) as pool:
        alarms = pool.map(false_alarms, WORLDS, repeat(number))
        powers = pool.map(power, *zip(*cells, strict=True), repeat(POWER_AUDITS))
        counted = [(name, number, *counts) for name, counts in zip(WORLDS, alarms, strict=True)]
        write("audits", AUDITS, counted, folder)
        shares = zip(cells, powers, strict=True)
        write(
            "audit-power",
            POWERS,
            (
                (*cell, POWER_AUDITS, *(decimal(share, 2) for share in pair))
                for cell, pair in shares
            ),
            folder,
        )

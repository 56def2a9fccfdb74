"""Two models' responses, paired by item: changes of shares and of gaps between two groups."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from time import perf_counter

import numpy as np
import polars as pl
import pyarrow as pa

from equipoise.audits import group_sizes
from equipoise.audits.comparison import model_names, one_model_only, prefixed
from equipoise.audits.findings import UncorrectedFinding, conclude
from equipoise.audits.group_sizes import groups_by
from equipoise.audits.labels.questions.config import Config
from equipoise.audits.labels.questions.numbers import ITEM_METRICS, OUTCOME
from equipoise.audits.paired_numbers import RowPairs, Selection, change
from equipoise.core import (
    Aggregate,
    AuditResult,
    DataError,
    Floats,
    Groups,
    Labels,
    Objects,
    RunError,
    record,
)
from equipoise.core.files import decode_json, read_table, write_table
from equipoise.report.concluding import conclusions_of
from equipoise.report.result import Result

LEVELS = tuple(metric for metric in ITEM_METRICS if metric != OUTCOME)
"""Metrics of which one side is worse, so that models are compared in their means."""
_FILE, _NAMES = "item_numbers.parquet", b"equipoise"
Numbers = Mapping[str, Floats]
"""By metric, a number for each item, shape (n,); NaN without one."""


@record
class SavedNumbers:
    """The numbers of every item in a run.

    Attributes
    ----------
    ids : ndarray of str objects, shape (n,)
    columns : mapping of str to ndarray of objects, shape (n,)
        Attributes and units.
    models : mapping of str to mapping of str to ndarray
    """

    ids: Objects
    columns: Mapping[str, Labels]
    models: Mapping[str, Numbers]

    def groups(self, config: Config) -> list[Groups]:
        """Return the groups of the items, for each choice of attributes."""
        section = config.data
        units = None if section.unit is None else self.columns[section.unit]
        size = section.min_group_size
        return groups_by(section.groups, self.columns, min_size=size, units=units)


def write_numbers(folder: Path, saved: SavedNumbers) -> None:
    """Write every item with its groups, its unit and each model's numbers."""
    columns: dict[str, Labels] = {"item": saved.ids.astype(str)}
    for place, column in enumerate(saved.columns.values()):
        columns[f"column_{place}"] = column
    for place, numbers in enumerate(saved.models.values()):
        columns |= {f"model_{place}_{metric}": values for metric, values in numbers.items()}
    names = {"columns": [*saved.columns], "models": [*saved.models]}
    table = pl.DataFrame(columns).to_arrow()
    metadata = {_NAMES: json.dumps(names).encode()}
    write_table(table.replace_schema_metadata(metadata), folder / _FILE)


def read_numbers(folder: Path) -> SavedNumbers:
    """Read back what `write_numbers` wrote.

    Raises
    ------
    RunError
        When the file is missing or can't be read.
    """
    try:
        stored = read_table(folder / _FILE)
    except (OSError, pa.ArrowException) as error:
        raise RunError(
            f"{folder / _FILE}: {error}. To do: audit again, or compare with a run that is whole"
        ) from error
    names, table = decode_json(stored.schema.metadata[_NAMES]), pl.DataFrame(stored)
    columns = {
        name: table[f"column_{place}"].to_numpy() for place, name in enumerate(names["columns"])
    }
    models = {
        name: {metric: table[f"model_{place}_{metric}"].to_numpy() for metric in ITEM_METRICS}
        for place, name in enumerate(names["models"])
    }
    return SavedNumbers(table["item"].to_numpy(), columns, models)


@record
class PairedModels:
    """Two models' numbers of the same items.

    Attributes
    ----------
    config : Config
    saved : SavedNumbers
        Of the first run.
    names : tuple of str
    numbers : tuple of mapping
        Of the items of the first run.
    """

    config: Config
    saved: SavedNumbers
    names: tuple[str, str]
    numbers: tuple[Numbers, Numbers]

    def changes(self) -> Iterator[UncorrectedFinding]:
        """Yield changes of means over all items and of groups, then of gaps of two groups."""
        groups = self.saved.groups(self.config)
        for metric in LEVELS:
            if self._rows(metric) is not None:
                yield from self.levels(metric, groups)
        for compared in groups:
            draft = self.gap(compared)
            if draft is not None:
                yield draft

    def levels(self, metric: str, groups: Sequence[Groups] = ()) -> Iterator[UncorrectedFinding]:
        """Yield the change of the mean over all items, then of each group."""
        rows, level = self._rows(metric), self.config.resampling.level
        if rows is None:
            return
        places, pairs = rows
        yield change(metric, pairs, self.names, level)
        for choice in groups:
            shared = choice.take(places)
            tests = int(shared.usable.sum())
            for code in np.flatnonzero(shared.usable).tolist():
                selection = Selection(choice.name, shared.names[code], tests)
                group_rows = pairs.of(shared.codes == code)
                yield change(metric, group_rows, self.names, level, selection)

    def gap(self, groups: Groups) -> UncorrectedFinding | None:
        """Return the change of the gap of the outcome between two groups; None of others."""
        rows = self._rows(OUTCOME)
        if rows is None:
            return None
        shared = groups.take(rows[0])
        usable = np.flatnonzero(shared.usable)
        if len(usable) != 2:
            return None
        is_usable = np.isin(shared.codes, usable)
        first, second = (
            _gap_numbers(values[is_usable], shared.codes[is_usable] == usable[0])
            for values in (rows[1].first, rows[1].second)
        )
        units = None if rows[1].units is None else rows[1].units[is_usable]
        return change(
            OUTCOME, RowPairs(first, second, units), self.names, self.config.resampling.level,
            Selection(groups.name), aggregate=Aggregate.DIFFERENCE,
        )  # fmt: skip

    def _rows(self, metric: str) -> tuple[np.ndarray, RowPairs] | None:
        """Return the items with numbers of both models, and these; None of fewer than two."""
        first, second = (numbers[metric] for numbers in self.numbers)
        places = np.flatnonzero(~np.isnan(first + second))
        if len(places) < 2:
            return None
        unit = self.config.data.unit
        units = None if unit is None else np.asarray(self.saved.columns[unit])[places]
        return places, RowPairs(first[places], second[places], units)


def _gap_numbers(values: Floats, of_first: np.ndarray) -> Floats:
    """Return a number of each item, whose mean is the size of the gap of two groups.

    The variance of the mean is that of the gap.
    """
    means = np.where(of_first, values[of_first].mean(), values[~of_first].mean())
    n_group = np.where(of_first, of_first.sum(), (~of_first).sum())
    gap = values[of_first].mean() - values[~of_first].mean()
    sign = np.where(of_first, 1.0, -1.0) * (1.0 if gap >= 0.0 else -1.0)
    return np.asarray(sign * (values - means) * len(values) / n_group + abs(gap))


def compare(
    runs: Mapping[str, tuple[Config, SavedNumbers]], manifests: Mapping[str, AuditResult]
) -> AuditResult:
    """Compare the models of one run, or of several runs about the same items.

    Raises
    ------
    DataError
        When there is one model only, or runs have no item in common.
    """
    started = perf_counter()
    config, saved = next(iter(runs.values()))
    models = _aligned({run: numbers for run, (_, numbers) in runs.items()})
    drafts = [
        draft
        for pair in combinations(models, 2)
        for draft in PairedModels(
            config, saved, pair, (models[pair[0]], models[pair[1]])
        ).changes()
    ]  # fmt: skip
    findings = conclude(drafts, config.testing)
    manifest = replace(
        next(iter(manifests.values())).manifest,
        inputs=prefixed({run: result.manifest.inputs for run, result in manifests.items()}),
        counts={run: result.manifest.counts for run, result in manifests.items()},
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=round(perf_counter() - started, 3),
        notes=("Each pair of models is compared over the items that both have a number for.",),
    )
    sizes = (row for groups in saved.groups(config) for row in group_sizes.sizes_of(groups))
    tables = {"group_sizes": group_sizes.table(sizes)}
    return Result(findings, manifest, tables, conclusions_of(findings))


def _aligned(runs: Mapping[str, SavedNumbers]) -> dict[str, Numbers]:
    """Return each model's numbers of the items of the first run; NaN where it has none."""
    (first_name, first), *_ = runs.items()
    places = {item: place for place, item in enumerate(first.ids.tolist())}
    models = dict[str, Numbers]()
    for (run, model), name in model_names(
        {run: saved.models for run, saved in runs.items()}
    ).items():
        other = runs[run]
        positions = np.array([places.get(item, -1) for item in other.ids.tolist()])
        shared = positions >= 0
        if not shared.any():
            raise DataError(
                f"runs {first_name} and {run} have no item in common",
                expected="runs about the same items",
                fix="audit the models on the same table",
            )
        numbers = {}
        for metric, values in other.models[model].items():
            numbers[metric] = np.full(len(first.ids), np.nan)
            numbers[metric][positions[shared]] = values[shared]
        models[name] = numbers
    if len(models) < 2:
        raise one_model_only(models)
    return models

"""Two models' predicted numbers, paired by image: changes of all and of each group."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from itertools import combinations
from time import perf_counter

import numpy as np

from equipoise.audits import group_sizes
from equipoise.audits.comparison import model_names, one_model_only, prefixed
from equipoise.audits.findings import UncorrectedFinding, conclude
from equipoise.audits.paired_numbers import RowPairs, Selection, change
from equipoise.audits.regression.config import Config
from equipoise.audits.regression.data import RegressionData, groups_of, least_difference
from equipoise.core import (
    AuditResult,
    Booleans,
    DataError,
    Floats,
    record,
)
from equipoise.metrics.numbers import NumberMetric
from equipoise.metrics.registry import metrics_of
from equipoise.report.concluding import conclusions_of
from equipoise.report.result import Result

Runs = Mapping[str, tuple[Config, RegressionData]]


@record
class PairedModels:
    """Two models' numbers for the same images.

    Attributes
    ----------
    config : Config
        Of the first run.
    data : RegressionData
        Of the first run.
    names : tuple of str
    predicted : tuple of ndarray, shape (n,)
        NaN where a model has none.
    """

    config: Config
    data: RegressionData
    names: tuple[str, str]
    predicted: tuple[Floats, Floats]

    @property
    def shared(self) -> Booleans:
        """Images with a number of both models and a true one, shape (n,)."""
        first, second = self.predicted
        return np.asarray(~np.isnan(first + second + self.data.target))

    def changes(self, metric: NumberMetric) -> Iterator[UncorrectedFinding]:
        """Yield the change of the mean over all images, then of each group."""
        target, shared = self.data.target, self.shared
        options = {
            **metric.defaults(target),
            **(self.config.metrics.options(metric.spec.name) or {}),
        }
        first, second = (
            metric.numbers(target[shared], values[shared], options)[0] for values in self.predicted
        )
        unit = self.config.data.unit
        units = None if unit is None else self.data.images.columns[unit][shared]
        everyone = RowPairs(first, second, units)
        yield self._change(metric, everyone, Selection())
        for groups in groups_of(self.config, self.data):
            of_shared = groups.take(np.flatnonzero(shared))
            tests = int(of_shared.usable.sum())
            for code in np.flatnonzero(of_shared.usable).tolist():
                selection = Selection(groups.name, of_shared.names[code], tests)
                yield self._change(metric, everyone.of(of_shared.codes == code), selection)

    def _change(
        self, metric: NumberMetric, rows: RowPairs, selection: Selection
    ) -> UncorrectedFinding:
        """Return the second model's mean less the first's, of all images or of a group."""
        least = least_difference(self.data) if metric.in_unit else None
        level = self.config.resampling.level
        return change(metric.spec.name, rows, self.names, level, selection, threshold=least)


def compare(runs: Runs, manifests: Mapping[str, AuditResult]) -> AuditResult:
    """Compare the models of one run, or of several runs about the same images.

    Each pair is compared on the images for which both have a number. Metrics of which neither side
    is worse, such as the mean error, are not compared.

    Raises
    ------
    DataError
        When there is one model only, runs have no image in common, or true numbers differ.
    """
    started = perf_counter()
    config, data = next(iter(runs.values()))
    models = _aligned(runs)
    drafts = [
        draft
        for pair in combinations(models, 2)
        for metric in metrics_of(NumberMetric, "regression").values()
        if metric.spec.harm != "either" and config.metrics.options(metric.spec.name) is not None
        for draft in PairedModels(
            config, data, pair, (models[pair[0]], models[pair[1]])
        ).changes(metric)
    ]  # fmt: skip
    findings = conclude(drafts, config.testing)
    first = next(iter(manifests.values())).manifest
    manifest = replace(
        first,
        inputs=prefixed({run: result.manifest.inputs for run, result in manifests.items()}),
        counts={run: result.manifest.counts for run, result in manifests.items()},
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=round(perf_counter() - started, 3),
        notes=_notes(runs, models, config),
    )
    sizes = (row for groups in groups_of(config, data) for row in group_sizes.sizes_of(groups))
    tables = {"group_sizes": group_sizes.table(sizes)}
    return Result(findings, manifest, tables, conclusions_of(findings))


def _notes(runs: Runs, models: Mapping[str, Floats], config: Config) -> tuple[str, ...]:
    """Yield notes on images left out, and on the options of metrics."""
    missing = [
        f"{name}: {n} images of the first run have no predicted number and aren't compared."
        for name, values in models.items()
        if (n := int(np.isnan(values).sum()))
    ]
    others = [run for run, (other, _) in runs.items() if other.metrics != config.metrics]
    first = next(iter(runs))
    options = f"Options of metrics come from {first}; {', '.join(others)} has others."
    return (*missing, *([options] if others else []))


def _aligned(runs: Runs) -> dict[str, Floats]:
    """Return each model's numbers for the images of the first run; NaN where it has none."""
    (first_name, (_, data)), *_ = runs.items()
    places = {image: place for place, image in enumerate(data.ids.astype(str).tolist())}
    models = {}
    names = model_names({run: run_data.models for run, (_, run_data) in runs.items()})
    for (run, model), name in names.items():
        other = runs[run][1]
        positions = np.array([places.get(image, -1) for image in other.ids.astype(str).tolist()])
        shared = positions >= 0
        if not shared.any():
            raise DataError(
                f"runs {first_name} and {run} have no image in common",
                expected="runs about the same images",
                fix="audit the models on the same table",
            )
        truth = data.target[positions[shared]]
        differs = ~((truth == other.target[shared]) | np.isnan(truth + other.target[shared]))
        if differs.any():
            image = other.ids[shared][differs.argmax()]
            raise DataError(
                f"runs {first_name} and {run} have different true numbers, first for {image!r}",
                expected="the same true number for the same image",
                fix="audit both models against the same target",
            )
        models[name] = np.full(len(data.ids), np.nan)
        models[name][positions[shared]] = other.models[model][shared]
    if len(models) < 2:
        raise one_model_only(models)
    return models

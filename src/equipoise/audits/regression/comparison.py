"""Two models' predicted numbers, paired by image: changes of all and of each group."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import combinations
from time import perf_counter

import numpy as np
from scipy.special import stdtr

from equipoise.audits import group_sizes
from equipoise.audits.comparison import difference, model_names, one_model_only, prefixed
from equipoise.audits.findings import Place, UncorrectedFinding, conclude
from equipoise.audits.regression.config import Config
from equipoise.audits.regression.data import RegressionData, groups_of, least_difference
from equipoise.core import (
    AuditResult,
    Booleans,
    DataError,
    Family,
    Floats,
    IntervalKind,
    NullHypothesis,
    Objects,
    Part,
    record,
)
from equipoise.metrics.numbers import NumberMetric
from equipoise.metrics.numbers.means import RowValues
from equipoise.metrics.registry import metrics_of
from equipoise.report.concluding import conclusions_of
from equipoise.report.result import Result
from equipoise.report.words import COMPARISON, Pair

Runs = Mapping[str, tuple[Config, RegressionData]]
_METHOD = "Student's t over paired {unit}s"
_OF_GROUPS = ", simultaneous over {tests} groups (Šidák)"
_NULL = "the mean of paired differences is 0 over {unit}s; Student's t"


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
        self, metric: NumberMetric, rows: "RowPairs", selection: "Selection"
    ) -> UncorrectedFinding:
        """Return the second model's mean less the first's, of all images or of a group."""
        level, tests, lower = self.config.resampling.level, selection.tests, metric.spec.harm
        paired = RowValues.of(rows.second - rows.first, None, rows.units)
        mean = paired.mean()
        error, freedom = paired.error()
        low, high = paired.ends()(level ** (1.0 / tests))
        p = float(2.0 * stdtr(freedom, -abs(mean) / error)) if error > 0.0 else 1.0
        if error == 0.0 and mean:
            # Equal differences have no spread: all signs are the same.
            p = 0.5**freedom
        means = float(rows.first.mean()), float(rows.second.mean())
        worse = self.names[(mean < 0.0) == (lower == "lower")] if mean else ""
        pair = Pair(*self.names, means, worse)
        part = Part(
            metric.spec.name, "", mean, low, high, 0.0, low - mean, high - mean,
            1.0 - (1.0 - p) ** tests, len(rows.first),
        )  # fmt: skip
        draft = difference(
            part, pair, Place(COMPARISON, pair.name, selection.groups, "default", level),
            family=Family.COMPOSITE, unit=paired.unit, group=selection.group,
            method=(_METHOD + (_OF_GROUPS if selection.group else "")).format(
                unit=paired.unit, tests=tests
            ),
            null=NullHypothesis.MODELS, null_drawn=_NULL.format(unit=paired.unit),
            interval=(
                IntervalKind.SIMULTANEOUS if selection.group else IntervalKind.CONFIDENCE
            ),
        )  # fmt: skip
        least = least_difference(self.data) if metric.in_unit else None
        together = (pair.name, selection.groups, metric.spec.name) if selection.group else None
        return replace(draft, threshold=least, together=together)


@record
class RowPairs:
    """Numbers of two models for the same rows, and their units."""

    first: Floats
    second: Floats
    units: Objects | None

    def of(self, rows: Booleans) -> "RowPairs":
        """Return some rows."""
        units = None if self.units is None else self.units[rows]
        return RowPairs(self.first[rows], self.second[rows], units)


@dataclass(frozen=True)
class Selection:
    """A group, and how many groups are tested together; without a name all images."""

    groups: str = ""
    group: str = ""
    tests: int = 1


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
    options = f"Options of metrics are those of {first}; {', '.join(others)} has others."
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

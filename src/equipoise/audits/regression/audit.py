"""The audit of regression: predicted numbers against true ones, by group."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from equipoise.audits.against_rest import leaf
from equipoise.audits.config import parse_config
from equipoise.audits.findings import Place, UncorrectedFinding, conclude, parts, whole
from equipoise.audits.group_sizes import Row, lacking
from equipoise.audits.kind import Audit, Measured, audit_kind
from equipoise.audits.notes import Note
from equipoise.audits.outputs import Models
from equipoise.audits.regression.comparison import PairedModels, compare
from equipoise.audits.regression.config import Config
from equipoise.audits.regression.data import (
    RegressionData,
    groups_of,
    least_difference,
    read_numbers,
    read_regression,
    write_numbers,
)
from equipoise.core import (
    Aggregate,
    AuditResult,
    Facts,
    Family,
    Finding,
    Floats,
    Groups,
    Objects,
    Progress,
    record,
    table_of,
)
from equipoise.core.columns import INTEGER, NUMBER, TEXT
from equipoise.core.wording import number
from equipoise.data.problems import listed
from equipoise.metrics.numbers import NumberMetric
from equipoise.metrics.numbers.means import RowValues, mean_difference, mean_value
from equipoise.metrics.registry import metrics_of
from equipoise.metrics.spec import spec_for
from equipoise.stats import Resampling

# Standard errors of a difference that a test at 5 % detects with a power of 80 %.
_DETECTABLE = 2.8
# Seconds for a row and draw, and for a design: rough guides.
_SECONDS_PER_ROW, _SECONDS_PER_DESIGN = 2e-8, 0.1


_BANDS = 4
"""Bands of the target with as many images each."""


@record
class Design:
    """One model's numbers, compared between one choice of groups.

    Attributes
    ----------
    model : str
    groups : Groups
        Of all images.
    target, predicted : ndarray, shape (n,)
    units : ndarray of objects, shape (n,), or None
    lacking : mapping of str to int
    metrics : sequence of NumberMetric
    first : bool
        Whether these are the model's first groups.
    """

    model: str
    groups: Groups
    target: Floats
    predicted: Floats
    units: Objects | None
    lacking: Mapping[str, int]
    metrics: Sequence[NumberMetric]
    first: bool

    @property
    def resolved_tests(self) -> int:
        """Tests for which p-values are drawn finely enough."""
        compared = int(self.groups.usable.sum())
        return len(self.metrics) * (1 + (compared if compared > 2 else 0))

    def seconds(self, draws: int) -> float:
        """About how long it takes to measure."""
        return _SECONDS_PER_DESIGN + len(self.target) * draws * _SECONDS_PER_ROW

    @property
    def planned(self) -> Facts:
        """The design's row in a plan."""
        smallest = np.sort(self.groups.counts[self.groups.usable])[:2].tolist()
        detectable = _DETECTABLE * sum(1.0 / n for n in smallest) ** 0.5
        return {
            "model": self.model, "groups": self.groups.name, "smallest_groups": smallest,
            "detectable_difference_in_sd_of_errors": detectable,
        }  # fmt: skip


@audit_kind("regression")
class Regression(Audit[Config, RegressionData, Design]):
    """Audits of predicted numbers."""

    items = "images"

    def load(self, config: Config, models: Models) -> RegressionData:
        """Read the images, and each model's numbers by id."""
        _, images = models.read_items(config.data.pictures, config.data.columns)
        return models.once("numbers", lambda: read_regression(config, images, models.base))

    def groups(self, config: Config, data: RegressionData) -> list[Groups]:
        """Return the groups of all images."""
        return groups_of(config, data)

    def designs(self, config: Config, data: RegressionData) -> list[Design]:
        """Return every model with every choice of groups."""
        coded, unit = data.images.coded, config.data.unit
        units = None if unit is None else data.images.columns[unit]
        metrics = [
            metric
            for name, metric in metrics_of(NumberMetric, self.name).items()
            if config.metrics.options(name) is not None
        ]
        designs = []
        for model, predicted in data.models.items():
            used = np.flatnonzero(~np.isnan(predicted) & ~np.isnan(data.target))
            for place, groups in enumerate(self.groups(config, data)):
                codes = {name: coded[name].codes[used] for name in groups.attributes}
                designs.append(
                    Design(
                        model, groups.take(used), data.target[used], predicted[used],
                        None if units is None else units[used], lacking(codes), metrics,
                        first=place == 0,
                    )
                )  # fmt: skip
        return designs

    def measure(
        self, config: Config, data: RegressionData, design: Design, resampling: Resampling | None
    ) -> Measured:
        """Measure the mean of every metric, and how groups differ in it."""
        place = Place(
            self.name, design.model, design.groups.name, "default", config.resampling.level
        )
        least = least_difference(data)
        findings = list[UncorrectedFinding]()
        for metric in design.metrics:
            options = dict(config.metrics.options(metric.spec.name) or {})
            values, params = metric.numbers(
                design.target, design.predicted, {**metric.defaults(data.target), **options}
            )
            level = mean_value(
                metric.spec.name, values, units=design.units, params=params, resampling=resampling
            )
            gap = mean_difference(
                metric.spec.name, values, design.groups, units=design.units, params=params,
                resampling=resampling, rng=config.resampling.seed,
            )  # fmt: skip
            if design.first:
                findings.append(whole(level, replace(place, groups=""), Family.DESCRIPTIVE))
            spec = spec_for(metric.spec.name, gap.aggregate)
            threshold = least if metric.in_unit else None
            gap_finding, *leaves = parts(gap, place)
            tested = replace(gap_finding, harm=gap.harm).changed(family=Family.COMPOSITE)
            for draft in (tested, *(leaf(draft, spec) for draft in leaves)):
                findings.append(replace(draft, threshold=threshold))
        errors = _errors_over_target(design, self.name, config.resampling.level)
        return Measured(tuple(findings), {"errors_over_target": errors})

    def details(
        self,
        config: Config,
        data: RegressionData,
        designs: Sequence[Design],
        tests: Mapping[str, int],
    ) -> Facts:
        """Return the number of images, and the detectable differences."""
        return {"images": len(data.images), "comparisons": [design.planned for design in designs]}

    def notes(
        self, config: Config, data: RegressionData, designs: Sequence[Design]
    ) -> Iterable[Note | str]:
        """Return the notes on thresholds and on images without a number."""
        least = number(least_difference(data))
        yield (
            f"A difference of mean errors matters from {least} on: a tenth of the standard "
            f"deviation of {config.data.target}. `testing.thresholds` sets another."
        )
        yield from _missing(data, config.data.target)

    def warnings(
        self, config: Config, data: RegressionData, designs: Sequence[Design]
    ) -> Iterable[Note | str]:
        """Return how many images of each group a model has no number for."""
        for model, values in data.models.items():
            yield from _unanswered(config, data, model, values)

    def save(self, folder: Path, data: RegressionData) -> None:
        """Write the numbers of every image, which `compare` pairs."""
        write_numbers(folder, data)

    def contrast(
        self,
        config: Config,
        data: RegressionData,
        findings: Sequence[Finding],
        pair: tuple[Finding, Finding],
    ) -> Finding | None:
        """Compare one mean of two models over the images that both have numbers for."""
        first, second = (data.models[finding.model] for finding in pair)
        names = pair[0].model, pair[1].model
        metric = metrics_of(NumberMetric, "regression").get(pair[0].metric)
        if metric is None or pair[0].aggregate is not Aggregate.VALUE:
            return None
        draft = next(PairedModels(config, data, names, (first, second)).changes(metric))
        (finding,) = conclude([draft], config.testing)
        return finding

    def compare(
        self,
        runs: Mapping[str, AuditResult],
        folders: Mapping[str, Path],
        progress: Progress | None = None,
    ) -> AuditResult:
        """Compare models image by image."""
        pairs = {}
        for name, run in runs.items():
            source = str(folders[name] / "manifest.json")
            config = parse_config(run.manifest.resolved, source=source)
            assert isinstance(config, Config)  # noqa: S101 - the kind decides the schema
            pairs[name] = config, read_numbers(folders[name])
        return compare(pairs, runs)


def _errors_over_target(design: Design, kind: str, level: float) -> pa.Table:
    """Return the means of every group in bands of the target, with the interval of the first.

    They are those in the unit of the target.
    """
    metrics = metrics_of(NumberMetric, kind).values()
    errors = {
        metric.spec.name: metric.numbers(design.target, design.predicted, {})[0]
        for metric in metrics
        if metric.in_unit
    }
    first, *others = errors
    texts = dict.fromkeys(("model", "groups", "group"), TEXT)
    limits = {"least": NUMBER, "most": NUMBER, "n": INTEGER}
    numbers = dict.fromkeys((first, "low", "high", *others), NUMBER)
    rows = _means_over_target(design, errors, level)
    return table_of([*rows], texts | limits | numbers)


def _means_over_target(design: Design, errors: Mapping[str, Floats], level: float) -> Iterator[Row]:
    limits = np.unique(np.quantile(design.target, np.linspace(0.0, 1.0, _BANDS + 1)))
    bands = np.clip(np.searchsorted(limits, design.target, side="right") - 1, 0, len(limits) - 2)
    for code, group in enumerate(design.groups.names):
        for band in range(len(limits) - 1):
            rows = np.flatnonzero((design.groups.codes == code) & (bands == band))
            if not len(rows):
                continue
            units = None if design.units is None else design.units[rows]
            numbers, *others = (of_images[rows] for of_images in errors.values())
            first = RowValues.of(numbers, None, units)
            low, high = first.ends()(level)
            means = first.mean(), *(float(other.mean()) for other in others)
            yield {
                "model": design.model, "groups": design.groups.name, "group": group,
                "least": limits[band], "most": limits[band + 1], "n": len(rows),
                "low": low, "high": high, **dict(zip(errors, means, strict=True)),
            }  # fmt: skip


def _missing(data: RegressionData, target: str) -> Iterator[Note | str]:
    if n := int(np.isnan(data.target).sum()):
        yield f"{n} images have no {target} and take no part."


def _unanswered(
    config: Config, data: RegressionData, model: str, values: Floats
) -> Iterator[Note | str]:
    """Say how many images of each group have no predicted number: their errors are unknown."""
    missing = np.isnan(values) & ~np.isnan(data.target)
    for groups in groups_of(config, data) if missing.any() else ():
        counts = np.bincount(groups.codes[missing & (groups.codes >= 0)], minlength=len(groups))
        shares = listed(
            f"{name} {n} of {total}"
            for name, n, total in zip(groups.names, counts, groups.counts, strict=True)
            if n
        )
        yield Note(
            f"{model}, {groups.name}",
            f"images have no predicted number, so their errors are unknown: {shares}.",
        )

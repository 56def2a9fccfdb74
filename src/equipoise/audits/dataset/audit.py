"""The audit of a data set: who is in it, with which labels, and in what quality."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from equipoise.audits.against_rest import against_rest
from equipoise.audits.columns import ImageData, numbers_of, rows_of, tables_of
from equipoise.audits.config import FrequentOptions, resampling_of
from equipoise.audits.config_fields import columns_of, located
from equipoise.audits.dataset.config import DATA_SET, Config
from equipoise.audits.engines.labels import OTHER, label_gaps, with_folds
from equipoise.audits.findings import (
    Place,
    UncorrectedFinding,
    fact_of,
    more_alike,
    parts,
    whole,
    without_verdict,
)
from equipoise.audits.group_sizes import Row, groups_by, lacking
from equipoise.audits.kind import Audit, Measured, audit_kind
from equipoise.core import (
    Booleans,
    DataError,
    Facts,
    Family,
    Floats,
    Groups,
    GroupValue,
    Part,
    record,
)
from equipoise.core.types import FileFacts
from equipoise.core.wording import percent
from equipoise.data import Coded, Items, ItemSource, Vectors, load_items, load_vectors
from equipoise.data.problems import listed
from equipoise.data.tables import ROW_NUMBER
from equipoise.evidence import picture_facts
from equipoise.metrics.counts import Counts, count
from equipoise.metrics.counts.comparisons import AgainstRest
from equipoise.metrics.counts.effect_sizes import EffectSizes
from equipoise.metrics.counts.rates import SELECTION_RATE, Cells
from equipoise.metrics.counts.representation import representation
from equipoise.metrics.measure import measure
from equipoise.metrics.vectors.diversity import iss_difference, iss_intra
from equipoise.stats.intervals import scored

if TYPE_CHECKING:
    from equipoise.audits.images import Known
    from equipoise.audits.outputs import Models
    from equipoise.data import ArraySource
    from equipoise.data.labels import Outputs
    from equipoise.stats import Resampling

# Seconds for a design and for a cell of a resampled table, and numbers of a pass in a second.
_SECONDS, _SECONDS_PER_CELL, _PASS = 0.1, 2e-7, 5e8
_COLUMNS = {
    "representation": (
        "model groups group +n #share #low #high #reference #ratio #ratio_low #ratio_high reason"
    ),
    "label_shares": (
        "model groups version label group +count +n #share #low #high #rest #difference "
        "#difference_low #difference_high #ratio #ratio_low #ratio_high"
    ),
    "image_facts": "model groups group +n #width #height #pixels #ratio",
}
_SIDES = ("width", "height")
_NO_REFERENCE = "no reference population is given: groups are held against equal shares"


@record
class DatasetData(ImageData):
    """Images with their groups, labels and embeddings.

    Attributes
    ----------
    labels : mapping of str to Coded
        Label of each image by column.
    marks : mapping of str to ndarray of bool, shape (n,)
        Label of a data set to the images that have it; an image may have several.
    reference : mapping of str to Groups or mapping of str to float
        By name of groups: those of another data set, or the share of each group.
    sizes : ndarray, shape (n, 2), or None
        Width and height in pixels, NaN where they can't be read; None without files.
    repeated : ndarray of bool, shape (n,)
        Whether another image has the same bytes.
    models : mapping of str to Vectors
    """

    labels: Mapping[str, Coded]
    marks: Mapping[str, Booleans]
    reference: Mapping[str, Groups | Mapping[str, float]]
    sizes: Floats | None
    repeated: Booleans
    models: Mapping[str, Vectors]


@record
class Design:
    """The images, or their embeddings by a model, compared between one set of groups.

    Attributes
    ----------
    model : str
    groups : Groups
    lacking : mapping of str to int
    data : DatasetData
    units : Coded or None
    resolved_tests : int
    """

    model: str
    groups: Groups
    lacking: Mapping[str, int]
    data: DatasetData
    units: Coded | None
    resolved_tests: int

    def seconds(self, draws: int) -> float:
        """About how long it takes to measure."""
        vectors = self.data.models.get(self.model)
        if vectors is not None:
            return _SECONDS + 4.0 * len(self.data.ids) * vectors.dimension / _PASS
        return _SECONDS + self.resolved_tests * len(self.groups) * draws * _SECONDS_PER_CELL


@audit_kind("dataset")
class Dataset(Audit[Config, DatasetData, Design]):
    """Audits of data sets."""

    items = "images"

    def load(self, config: Config, models: Models) -> DatasetData:
        """Read the images with their labels and files, the reference, and embeddings."""
        section, base = config.data, models.base
        images, items = models.read_items(section.images, section.columns)
        reference, inputs = _reference(config, models)
        vectors: dict[str, Vectors] = {}
        for name, run in config.models.items():
            source: ArraySource | Outputs = (
                run.source(base)
                if run.model is None
                else models.embed_images(name, run, images.need_pictures(name))
            )
            limit = section.max_unmatched
            vectors[name] = load_vectors(source, items, subject=name, max_unmatched=limit)
        sizes, repeated = None, np.zeros(len(items), np.bool_)
        if config.metrics.image_defect_rate is not None and not models.dry:
            sizes, repeated = _pictures(images, items)
        for each in vectors.values():
            inputs |= each.inputs
        return DatasetData(
            items,
            {**items.inputs, **inputs},
            {"images": items.counts, "models": {n: one.counts for n, one in vectors.items()}},
            {name: items.coded[name] for name in section.labels},
            {} if section.labels else _marks(images, items, _options(config)),
            reference,
            sizes,
            repeated,
            vectors,
        )

    def groups(self, config: Config, data: DatasetData) -> list[Groups]:
        """Return the groups of all images."""
        section = config.data
        return groups_by(section.groups, data.images.coded, min_size=section.min_group_size)

    def designs(self, config: Config, data: DatasetData) -> list[Design]:
        """Return the data set and each model's embeddings, for each choice of groups."""
        coded, designs = data.images.coded, []
        units = None if config.data.unit is None else coded[config.data.unit]
        for groups in self.groups(config, data):
            left = lacking({name: coded[name].codes for name in groups.attributes})
            many = 2 + len(groups) + sum(map(len, _frequent(config, data).values()))
            designs.append(Design(DATA_SET, groups, left, data, units, many))
            pairs = len(groups) * (len(groups) - 1) // 2
            designs += [Design(name, groups, left, data, units, pairs) for name in data.models]
        return designs

    def check(self, config: Config, data: DatasetData, design: Design) -> None:
        """Refuse groups of which fewer than two are large, or none is in the reference."""
        super().check(config, data, design)
        reference = data.reference.get(design.groups.name)
        if reference is None:
            return
        known = reference.names if isinstance(reference, Groups) else tuple(map(str, reference))
        if not {*known} & {*design.groups.names}:
            raise DataError(
                f"groups {design.groups.name}: none is in the reference, which has {listed(known)}",
                file=data.images.name,
                expected=f"the same names in both, such as {listed(design.groups.names)}",
                fix="write them alike, or rename them with a rule `value_groups`",
            )

    def measure(
        self, config: Config, data: DatasetData, design: Design, resampling: Resampling | None
    ) -> Measured:
        """Measure one design with every metric whose inputs it has."""
        level, metrics = config.resampling.level, config.metrics
        place = Place(self.name, design.model, design.groups.name, "default", level)
        if design.model in data.models:
            if metrics.iss_difference is None:
                return Measured()
            return Measured((*_diversity(design, config, place, resampling),))
        drafts: list[UncorrectedFinding] = []
        rows: dict[str, Iterable[Row]] = {}
        if metrics.representation is not None:
            represented = _representation(design, config, place, resampling)
            drafts += represented
            rows["representation"] = _represented(represented)
        if metrics.label_gap is not None:
            labelled = [*_labels(design, config, place, resampling)]
            rows["label_shares"] = [row for _, some in labelled for row in some]
            drafts += [draft for found, _ in labelled for draft in found]
        drafts += _rates(design, config, place, resampling)
        if data.sizes is not None:
            rows["image_facts"] = _facts(design, data.sizes)
        return Measured(tuple(drafts), tables_of(rows, _COLUMNS))

    def details(
        self,
        config: Config,
        data: DatasetData,
        designs: Sequence[Design],
        tests: Mapping[str, int],
    ) -> Facts:
        """Return images, labels that are compared, and embeddings of each model."""
        return {
            "images": len(data.ids),
            "labels": {name: len(kept) for name, kept in _frequent(config, data).items()},
            "models": [
                {"model": name, "dimension": one.dimension, "usable": int(one.usable.sum())}
                for name, one in data.models.items()
            ],
        }

    def notes(self, config: Config, data: DatasetData, designs: Sequence[Design]) -> Iterator[str]:
        """Return the notes on the reference, and on what isn't compared."""
        for name in dict.fromkeys(design.groups.name for design in designs):
            if config.metrics.representation is not None and name not in data.reference:
                yield f"{name}: {_NO_REFERENCE}, without a verdict. Add `reference` to the config."
        if not data.labels and not data.marks:
            yield "No labels are compared. Name their columns under `data.labels`."
        for name, column in data.labels.items():
            if pooled := len(column.vocabulary) - len(_options(config).frequent(column)):
                yield f"{name}: {pooled} labels of few images are pooled."
        for each in data.models:
            yield f"{each}: distances show nothing that the embedding doesn't encode."


def _options(config: Config) -> FrequentOptions:
    return config.metrics.label_gap or FrequentOptions()


def _frequent(config: Config, data: DatasetData) -> dict[str, Sequence[str]]:
    """Return the labels that are compared by themselves, by column."""
    found: dict[str, Sequence[str]] = {
        n: _options(config).frequent(one) for n, one in data.labels.items()
    }
    return found | ({"labels": [*data.marks]} if data.marks else {})


def _marks(images: Known, items: Items, options: FrequentOptions) -> dict[str, Booleans]:
    """Return the images that have each frequent label of a data set, the most frequent first."""
    if images.labels is None:
        return {}
    many = images.labels["label"].value_counts(sort=False)
    kept = many.filter(pl.col("count") >= options.least).sort(
        "count", "label", descending=[True, False]
    )
    ids = pl.Series(items.ids.tolist(), dtype=pl.String)
    by_label = images.labels.group_by("label").agg("image_id")
    having = dict(by_label.iter_rows())
    return {name: ids.is_in(having[name]).to_numpy() for name in kept["label"].head(options.most)}


def _pictures(images: Known, items: Items) -> tuple[Floats | None, Booleans]:
    """Return the size of each image, and whether its bytes repeat.

    Without files, sizes are those that the data set states, if any.

    Raises
    ------
    DataError
        When no file can be read.
    """
    pictures = images.pictures
    if pictures is None:
        return _stated(images, items), np.zeros(len(items), np.bool_)
    found = picture_facts(pictures)
    if np.isnan(found.sizes).all():
        raise DataError(
            f"none of the {len(pictures)} images can be read, such as {pictures.where(0)!r}",
            file=items.name,
            expected="files of images",
            fix="correct `path` and `root`, or switch `image_defect_rate` off",
        )
    order = [pictures.places[name] for name in items.ids.tolist()]
    return found.sizes[order], found.repeated[order]


def _stated(images: Known, items: Items) -> Floats | None:
    """Return the sizes that a data set states, such as COCO; None where it doesn't."""
    frame = None if images.table is None else images.table.frame
    if frame is None or not {*_SIDES} <= {*frame.columns}:
        return None
    numbers = dict(
        zip(frame[images.id], frame.select(pl.col(_SIDES).cast(float)).rows(), strict=True)
    )
    nothing = (math.nan, math.nan)
    sizes = [numbers.get(name, nothing) for name in items.ids.tolist()]
    return np.array(sizes, dtype=np.float64)


def _reference(
    config: Config, models: Models
) -> tuple[dict[str, Groups | Mapping[str, float]], dict[str, FileFacts]]:
    """Return the reference of each choice of groups that has one, and the files read."""
    reference, choices = config.reference, config.data.groups
    if reference is None:
        return {}, {}
    if reference.shares is not None:
        return {**reference.shares}, {}
    columns = columns_of(choices)
    if reference.images is not None:
        place = "reference.images"
        images = models.read_images(reference.images, columns, name="reference", place=place)
        items = load_items(images.source(models.base, columns), subject="reference")
        every = groups_by(choices, items.coded)
        return {groups.name: groups for groups in every}, dict(items.inputs)
    table, number = located(reference.table, models.base), str(reference.count)
    options = reference.csv
    source = ItemSource(table, ROW_NUMBER, (*columns, number), **options)
    items = load_items(source, subject="reference")
    counts = np.nan_to_num(numbers_of(items, number))
    found: dict[str, Groups | Mapping[str, float]] = {}
    for groups in groups_by(choices, items.coded):
        known = groups.codes >= 0
        sums = np.bincount(groups.codes[known], counts[known], len(groups)).tolist()
        found[groups.name] = dict(zip(groups.names, sums, strict=True))
    return found, dict(items.inputs)


def _representation(
    design: Design, config: Config, place: Place, resampling: Resampling | None
) -> list[UncorrectedFinding]:
    """Hold the shares of groups against the reference, or describe them."""
    reference = design.data.reference.get(design.groups.name)
    given = dict.fromkeys(design.groups.names, 1.0) if reference is None else reference
    estimate = representation(
        design.groups, given, units=design.units, resampling=resampling, rng=config.resampling.seed
    )
    leaves = [
        replace(
            draft.changed(group=draft.finding.subject, direction=_against(draft.finding.by_group)),
            harm="either",
        )
        for draft in parts(estimate, place)
    ]
    known = [one for one in leaves if not math.isnan(one.finding.value)]
    widest = max(known, key=lambda one: abs(one.finding.by_group[0].value - _other(one)))
    gap = whole(
        estimate, place, Family.COMPOSITE, by_group=tuple(map(_ratio, estimate.parts))
    ).changed(direction=f"{widest.finding.subject}: {widest.finding.direction}")
    if reference is None:
        return [without_verdict(one, _NO_REFERENCE) for one in (gap, *leaves)]
    if len(known) == 2:
        # Both groups and their difference state one fact: that of the rarer than expected.
        first = min(known, key=lambda one: one.finding.value)
        fold = fact_of(first.finding)
        gap, *leaves = (one if one is first else replace(one, fold=fold) for one in (gap, *leaves))
    return [gap, *leaves]


def _other(draft: UncorrectedFinding) -> float:
    return draft.finding.by_group[1].value


def _against(by_group: Sequence[GroupValue]) -> str:
    own, other = by_group
    return f"{percent(own.value)} of the images, {percent(other.value)} of the reference"


def _ratio(part: Part) -> GroupValue:
    """Return a group's share over that of the reference."""
    own = part.by_group[0]
    value, low, high = map(math.exp, (part.value, part.low, part.high))
    return GroupValue(own.group, own.levels, own.n, value, low, high, part.reason)


def _represented(drafts: Sequence[UncorrectedFinding]) -> Iterator[Row]:
    """Yield the row of each group beside the reference."""
    gap, *leaves = (draft.finding for draft in drafts)
    for leaf, ratio in zip(leaves, gap.by_group, strict=True):
        own, other = leaf.by_group
        yield {
            "model": leaf.model, "groups": leaf.groups, "group": own.group, "n": own.n,
            "share": own.value, "low": own.low, "high": own.high, "reference": other.value,
            "ratio": ratio.value, "ratio_low": ratio.low, "ratio_high": ratio.high,
            "reason": leaf.reason,
        }  # fmt: skip


Found = tuple[list[UncorrectedFinding], list[Row]]


def _labels(
    design: Design, config: Config, place: Place, resampling: Resampling | None
) -> Iterator[Found]:
    """Yield the findings and rows of each column of labels, then of each label of a data set."""
    several = len(design.data.labels) > 1
    for name, column in design.data.labels.items():
        # A label that makes the groups says nothing about them.
        if name not in design.groups.attributes:
            own = replace(place, version=name) if several else place
            yield _column(design, column, config, own, resampling)
    for name, marked in design.data.marks.items():
        gaps, counts = _share(design, marked, config, place, resampling, ("label_gap", name))
        yield [*gaps, *against_rest(gaps)], [*_rows(counts, [name], place)]


def _column(
    design: Design, column: Coded, config: Config, place: Place, resampling: Resampling | None
) -> Found:
    """Compare how often groups have each label of a column."""
    kept, metrics = {*_options(config).frequent(column)}, config.metrics
    seed, groups, units = config.resampling.seed, design.groups, design.units
    pooled = column.relabel([one if one in kept else OTHER for one in column.vocabulary])
    counts = count(pooled, pooled, groups, units=units)
    drafts = []
    if metrics.cramers_v is not None:
        least = metrics.cramers_v.min_expected
        effect = EffectSizes("cramers_v", least, False, "independence")
        every = (
            counts
            if pooled.vocabulary == column.vocabulary
            else count(column, column, groups, units=units)
        )
        found = measure(every, [effect], resampling, seed)[0]
        drafts.append(whole(found, place, Family.COMPOSITE, metric="cramers_v"))
    if every_gap := label_gaps(counts, kept, "label_gap", place, resampling, seed):
        gap, *leaves = every_gap
        drafts = [one.changed(direction=gap.finding.direction) for one in drafts]
        classes = counts.classes if OTHER not in counts.classes else ()
        own = [gap, *(one for one in leaves if one.finding.subject in kept)]
        gaps = [*with_folds(own, classes=classes, determined=False)]
        drafts += [*gaps, *against_rest(gaps, counts)]
    return drafts, [*_rows(counts, [one for one in counts.classes if one in kept], place)]


def _rows(counts: Counts, labels: Sequence[str], place: Place) -> Iterator[Row]:
    """Yield the share of each label in each group, and what sets it apart from all others."""
    cells = Cells.of(counts, counts.observed)
    ((shown, n),) = SELECTION_RATE.effective(counts)
    own = scored(shown, n, place.level)
    apart = AgainstRest.of(np.rint(shown), np.rint(n), place.level)
    ratio = own.over(apart.rest)
    for label in labels:
        row = counts.classes.index(label)
        for group, name in enumerate(counts.groups.names):
            at = row, group
            yield {
                "model": place.model, "groups": place.groups, "version": place.version,
                "label": label, "group": name, "count": round(cells["prediction"][0][at]),
                "n": round(cells["total"][0][at]), "share": own.value[at], "low": own.low[at],
                "high": own.high[at], "rest": apart.rest.value[at],
                "difference": apart.difference.value[at],
                "difference_low": apart.difference.low[at],
                "difference_high": apart.difference.high[at],
                "ratio": ratio.value[at], "ratio_low": ratio.low[at], "ratio_high": ratio.high[at],
            }  # fmt: skip


def _share(
    design: Design,
    marked: Booleans,
    config: Config,
    place: Place,
    resampling: Resampling | None,
    names: tuple[str, str],
) -> tuple[list[UncorrectedFinding], Counts]:
    """Compare the share of marked images between groups, as a metric about a subject."""
    metric, subject = names
    column = Coded(np.where(marked, 0, 1).astype(np.int32), (subject, OTHER))
    counts = count(column, column, design.groups, units=design.units)
    gaps = label_gaps(counts, [subject], metric, place, resampling, config.resampling.seed)
    return [one for one in gaps if one.finding.subject == subject], counts


def _rates(
    design: Design, config: Config, place: Place, resampling: Resampling | None
) -> Iterator[UncorrectedFinding]:
    """Yield the shares of images without a value, and with a defect."""
    data, metrics = design.data, config.metrics
    marked: dict[tuple[str, str], Booleans] = {}
    if metrics.missing_rate is not None:
        for name in config.data.columns:
            if name not in design.groups.attributes and name != config.data.unit:
                marked["missing_rate", name] = data.images.coded[name].codes < 0
    if metrics.image_defect_rate is not None and data.sizes is not None:
        options, (width, height) = metrics.image_defect_rate, data.sizes.T
        unread, small = np.isnan(width), width * height < options.pixels
        longer, shorter = np.fmax(width, height), np.fmin(width, height)
        marked |= {
            ("image_defect_rate", "of unknown size"): unread,
            ("image_defect_rate", f"under {options.pixels:,} pixels"): small,
            ("image_defect_rate", f"longer than {options.ratio:g} : 1"): (
                longer > options.ratio * shorter
            ),
            ("image_defect_rate", "same bytes as another"): data.repeated,
        }
    for names, some in marked.items():
        if some.any() and not some.all():
            gaps, _ = _share(design, some, config, place, resampling, names)
            yield from [*gaps, *against_rest(gaps)]


def _facts(design: Design, sizes: Floats) -> Iterator[Row]:
    """Yield the median width, height, pixels and ratio of sides of the images of each group."""
    for code, name in enumerate(design.groups.names):
        own = sizes[(design.groups.codes == code) & ~np.isnan(sizes[:, 0])]
        if len(own):
            numbers = (*own.T, own.prod(axis=1), own.max(axis=1) / own.min(axis=1))
            medians = (float(np.median(one)) for one in numbers)
            yield {
                "model": design.model, "groups": design.groups.name, "group": name, "n": len(own),
                **dict(zip(("width", "height", "pixels", "ratio"), medians, strict=True)),
            }  # fmt: skip


def _diversity(
    design: Design, config: Config, place: Place, resampling: Resampling | None
) -> Iterator[UncorrectedFinding]:
    """Describe how diverse each group is, and test each pair."""
    vectors, groups = design.data.models[design.model], design.groups
    sets = {
        name: rows_of(vectors, np.flatnonzero((groups.codes == code) & vectors.usable))
        for code, name in enumerate(groups.names)
        if groups.usable[code]
    }
    alone = resampling_of(config, 1)
    for name, images in sets.items():
        one = iss_intra(images, resampling=alone)
        yield whole(one, place, Family.DESCRIPTIVE).changed(subject=name)
    pairs = parts(iss_difference(sets, resampling=resampling), place)
    for each in pairs:
        family = Family.COMPOSITE if len(pairs) == 1 else each.finding.family
        yield each.changed(family=family, direction=more_alike(each.finding.by_group))

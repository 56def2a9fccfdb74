"""The audit of a data set: groups, labels and image quality."""

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
from equipoise.audits.findings import (
    Place,
    UncorrectedFinding,
    more_alike,
    parts,
    whole,
    without_verdict,
)
from equipoise.audits.group_sizes import Row, groups_by, lacking
from equipoise.audits.kind import Audit, Measured, audit_kind
from equipoise.audits.labels.absent_states import absent_gaps
from equipoise.audits.labels.dataset.config import DATA_SET, Config, DataConfig, DefectOptions
from equipoise.audits.labels.dataset.files import (
    FILES,
    PROBLEMS,
    UNREADABLE,
    file_rows,
    values_of,
)
from equipoise.audits.labels.dataset.reference import (
    Reference,
    check_common_group,
    check_reference,
    outside_reference,
)
from equipoise.audits.labels.designs import OTHER, label_gaps, with_folds
from equipoise.audits.labels.label_gap import label_gap_of
from equipoise.audits.notes import Note, note_on_sample
from equipoise.audits.represented import (
    ADDITIONS,
    REPRESENTATION,
    SHARES,
    TO_ADD,
    representation_rows,
    represented,
    rows_to_add,
)
from equipoise.config.fields import columns_of, located
from equipoise.core import (
    Booleans,
    DataError,
    Facts,
    Family,
    Floats,
    Groups,
    record,
)
from equipoise.core.columns import INTEGER, NUMBER, TEXT
from equipoise.core.types import FileFacts
from equipoise.data import Coded, Items, ItemSource, Vectors, load_items, load_vectors
from equipoise.data.tables import ROW_NUMBER
from equipoise.evidence import picture_facts
from equipoise.evidence.pictures import check_pillow
from equipoise.metrics.labels import Counts, count
from equipoise.metrics.labels.answer_rates import image_defect_rate, missing_rate
from equipoise.metrics.labels.comparisons import AgainstRest
from equipoise.metrics.labels.effect_sizes import EffectSizes
from equipoise.metrics.labels.rate import Cells
from equipoise.metrics.labels.rates import SELECTION_RATE
from equipoise.metrics.labels.reference import ReferenceKind
from equipoise.metrics.labels.representation import representation, representation_gap
from equipoise.metrics.measure import measure
from equipoise.metrics.vectors.diversity import iss_difference, iss_intra
from equipoise.stats.intervals import scored

if TYPE_CHECKING:
    from equipoise.audits.images import AuditImages
    from equipoise.audits.outputs import Models
    from equipoise.data import ArraySource
    from equipoise.data.labels import Outputs
    from equipoise.stats import Resampling

# Seconds for a design and for a cell of a resampled table, and numbers of a pass in a second.
_SECONDS, _SECONDS_PER_CELL, _PASS = 0.1, 2e-7, 5e8
_COLUMNS = {
    SHARES: REPRESENTATION,
    ADDITIONS: TO_ADD,
    FILES: PROBLEMS,
    "label_shares": {
        "model": TEXT,
        "groups": TEXT,
        "version": TEXT,
        "label": TEXT,
        "group": TEXT,
        "count": INTEGER,
        "n": INTEGER,
        "share": NUMBER,
        "low": NUMBER,
        "high": NUMBER,
        "rest": NUMBER,
        "difference": NUMBER,
        "difference_low": NUMBER,
        "difference_high": NUMBER,
        "ratio": NUMBER,
        "ratio_low": NUMBER,
        "ratio_high": NUMBER,
    },
    "image_facts": {
        "model": TEXT,
        "groups": TEXT,
        "group": TEXT,
        "n": INTEGER,
        "width": NUMBER,
        "height": NUMBER,
        "pixels": NUMBER,
        "ratio": NUMBER,
    },
}
_SIDES = ("width", "height")
_ALL_ALIKE = "all images are alike in this, so there is nothing to test"
_NO_REFERENCE = "without a reference population, groups are compared with equal shares"


@record
class ImageFiles:
    """Sizes, copies and unreadable files of the images.

    Attributes
    ----------
    sizes : ndarray, shape (n, 2), or None
        Width and height in pixels, NaN where they can't be read; None without files.
    repeated : ndarray of bool, shape (n,)
        Whether another image has the same bytes.
    problems : sequence of mapping, or None
        Rows of the table of files; None where no file is opened.
    """

    sizes: Floats | None
    repeated: Booleans
    problems: Sequence[Row] | None = None


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
    files : ImageFiles
    models : mapping of str to Vectors
    """

    labels: Mapping[str, Coded]
    marks: Mapping[str, Booleans]
    reference: Mapping[str, Reference]
    files: ImageFiles
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
    compares_all_shares = True

    def load(self, config: Config, models: Models) -> DatasetData:
        """Read the images with their labels and files, the reference, and embeddings."""
        section, base = config.data, models.base
        images, items = models.read_items(section.images, section.columns)
        reference, inputs = _read_reference(config, models)
        vectors: dict[str, Vectors] = {}
        for name, run in config.models.items():
            source: ArraySource | Outputs = (
                run.source(base)
                if run.model is None
                else models.embed_images(name, run, images.need_pictures(name))
            )
            limit = section.max_unmatched
            vectors[name] = load_vectors(source, items, subject=name, max_unmatched=limit)
        files = ImageFiles(None, np.zeros(len(items), np.bool_))
        if config.metrics.image_defect_rate is not None:
            files = _read_files(images, items, section, dry=models.dry)
        for loaded in vectors.values():
            inputs |= loaded.inputs
        data = DatasetData(
            items,
            {**items.inputs, **inputs},
            {"images": items.counts, "models": {n: loaded.counts for n, loaded in vectors.items()}},
            {name: items.coded[name] for name in section.plain_labels},
            _images_by_label(images, items, config),
            reference,
            files,
            vectors,
        )
        for groups in self.groups(config, data):
            if (named_groups := reference.get(groups.name)) is not None:
                check_reference(groups, named_groups, _kind(config), file=items.name)
        return data

    def groups(self, config: Config, data: DatasetData) -> list[Groups]:
        """Return the groups of all images."""
        section, coded = config.data, data.images.coded
        units = None if section.unit is None else coded[section.unit]
        return groups_by(section.groups, coded, min_size=section.min_group_size, units=units)

    def designs(self, config: Config, data: DatasetData) -> list[Design]:
        """Return the data set and each model's embeddings, for each choice of groups."""
        coded, designs = data.images.coded, []
        units = None if config.data.unit is None else coded[config.data.unit]
        for groups in self.groups(config, data):
            without_groups = lacking({name: coded[name].codes for name in groups.attributes})
            n_tests = 2 + len(groups) + sum(map(len, _frequent_labels(config, data).values()))
            designs.append(Design(DATA_SET, groups, without_groups, data, units, n_tests))
            pairs = len(groups) * (len(groups) - 1) // 2
            designs += [
                Design(name, groups, without_groups, data, units, pairs) for name in data.models
            ]
        return designs

    def check(self, config: Config, data: DatasetData, design: Design) -> None:
        """Refuse fewer than two large groups, or no group in the reference."""
        super().check(config, data, design)
        reference = data.reference.get(design.groups.name)
        if reference is not None:
            check_common_group(design.groups, reference, file=data.images.name)

    def measure(
        self, config: Config, data: DatasetData, design: Design, resampling: Resampling | None
    ) -> Measured:
        """Measure one design with every metric that it has inputs for."""
        level, metrics = config.resampling.level, config.metrics
        place = Place(self.name, design.model, design.groups.name, "default", level)
        if design.model in data.models:
            if not metrics.has(iss_difference):
                return Measured()
            return Measured((*_measure_diversity(design, config, place, resampling),))
        drafts: list[UncorrectedFinding] = []
        rows: dict[str, Iterable[Row]] = {}
        of_groups = _measure_representation(design, config, place, resampling)
        drafts += of_groups
        if metrics.has(representation):
            share_rows = [*representation_rows(of_groups)]
            rows[SHARES] = share_rows
            if design.groups.name in data.reference:
                rows[ADDITIONS] = rows_to_add(share_rows)
        if metrics.label_gap is not None:
            label_shares = list[Row]()
            for findings, label_rows in _measure_labels(design, config, place, resampling):
                drafts += findings
                label_shares += label_rows
            rows["label_shares"] = label_shares
        drafts += _measure_rates(design, config, place, resampling)
        if data.files.sizes is not None:
            rows["image_facts"] = _size_rows(design, data.files.sizes)
        return Measured(tuple(drafts), tables_of(rows, _COLUMNS))

    def combine(self, config: Config, data: DatasetData, measured: Sequence[Measured]) -> Measured:
        """Merge the results of all designs, and add the table of files."""
        results = super().combine(config, data, measured)
        files = tables_of({FILES: data.files.problems or ()}, _COLUMNS)
        return replace(results, tables={**results.tables, **files})

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
            "labels": {
                name: len(labels) for name, labels in _frequent_labels(config, data).items()
            },
            "models": [
                {"model": name, "dimension": loaded.dimension, "usable": int(loaded.usable.sum())}
                for name, loaded in data.models.items()
            ],
        }

    def notes(
        self, config: Config, data: DatasetData, designs: Sequence[Design]
    ) -> Iterator[Note | str]:
        """Yield the notes on the reference, and on labels that aren't compared."""
        for name in dict.fromkeys(design.groups.name for design in designs):
            if config.metrics.has(representation) and name not in data.reference:
                yield Note(
                    name, f"{_NO_REFERENCE}, without a verdict. Add `reference` to the config."
                )
        yield from self.warnings(config, data, designs)
        for name, reference in data.reference.items():
            if not isinstance(reference, Groups):
                yield from note_on_sample(name, reference, _kind(config))
        if not data.labels and not data.marks:
            yield "No labels are compared. Name their columns under `data.labels`."
        for name, column in data.labels.items():
            if pooled := len(column.vocabulary) - len(_options(config).frequent(column)):
                yield Note(name, f"{pooled} labels of few images are pooled.")
        for model in data.models:
            yield Note(model, "distances show nothing that the embedding doesn't encode.")

    def warnings(
        self, config: Config, data: DatasetData, designs: Sequence[Design]
    ) -> Iterator[Note]:
        """Yield a warning for images of groups that the reference doesn't name."""
        for groups in self.groups(config, data):
            if (reference := data.reference.get(groups.name)) is not None:
                yield from outside_reference(groups, reference)


def _options(config: Config) -> FrequentOptions:
    return config.metrics.label_gap or FrequentOptions()


def _frequent_labels(config: Config, data: DatasetData) -> dict[str, Sequence[str]]:
    """Return the labels that are compared by themselves, by column."""
    frequent: dict[str, Sequence[str]] = {
        n: _options(config).frequent(column) for n, column in data.labels.items()
    }
    return frequent | ({"labels": [*data.marks]} if data.marks else {})


def _images_by_label(images: AuditImages, items: Items, config: Config) -> dict[str, Booleans]:
    """Return the images that have each frequent label of a data set, the most frequent first."""
    section, options, labels = config.data, _options(config), images.labels
    split = [name for name in section.labels if name not in section.plain_labels]
    if labels is None or (section.labels and not split):
        return {}
    if split and len(section.images.split_columns) > 1:
        named = (pl.col("label").str.starts_with(f"{name}: ") for name in split)
        labels = labels.filter(pl.any_horizontal(*named))
    label_counts = labels["label"].value_counts(sort=False)
    frequent = label_counts.filter(pl.col("count") >= options.least).sort(
        "count", "label", descending=[True, False]
    )
    ids = pl.Series(items.ids.tolist(), dtype=pl.String)
    by_label = labels.group_by("label").agg("image_id")
    having = dict(by_label.iter_rows())
    return {
        name: ids.is_in(having[name]).to_numpy() for name in frequent["label"].head(options.most)
    }


def _read_files(images: AuditImages, items: Items, section: DataConfig, *, dry: bool) -> ImageFiles:
    """Return the sizes of images, and their unreadable files and copies.

    Without files, sizes are those that the data set states, if any. A dry run opens no file.

    Raises
    ------
    DataError
        When no file can be read.
    MissingExtraError
        When files have to be opened, and Pillow is not installed.
    """
    pictures, no_copies = images.pictures, np.zeros(len(items), np.bool_)
    if pictures is None:
        return ImageFiles(None if dry else _stated_sizes(images, items), no_copies)
    if dry:
        check_pillow()
        return ImageFiles(None, no_copies)
    facts = picture_facts(pictures)
    if np.isnan(facts.sizes).all():
        raise DataError(
            f"none of the {len(pictures)} images can be read, such as {pictures.where(0)!r}",
            file=items.name,
            expected="files of images",
            fix="correct `path` and `root`, or switch `image_defect_rate` off",
        )
    ids = items.ids.tolist()
    names = [name for name in section.columns if name != section.unit]
    columns = {name: values_of(ids, items.coded[name]) for name in names}
    order = [pictures.places[name] for name in ids]
    problems = [*file_rows(pictures, facts, columns)]
    return ImageFiles(facts.sizes[order], facts.repeated[order], problems)


def _stated_sizes(images: AuditImages, items: Items) -> Floats | None:
    """Return the sizes that a data set such as COCO states, or None."""
    frame = None if images.table is None else images.table.frame
    if frame is None or not {*_SIDES} <= {*frame.columns}:
        return None
    numbers = dict(
        zip(frame[images.id], frame.select(pl.col(_SIDES).cast(float)).rows(), strict=True)
    )
    nothing = (math.nan, math.nan)
    sizes = [numbers.get(name, nothing) for name in items.ids.tolist()]
    return np.array(sizes, dtype=np.float64)


def _read_reference(
    config: Config, models: Models
) -> tuple[dict[str, Reference], dict[str, FileFacts]]:
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
        source = models.source(images, columns)
        items = models.once("reference", lambda: load_items(source, subject="reference"))
        choices_of_groups = groups_by(choices, items.coded)
        return {groups.name: groups for groups in choices_of_groups}, dict(items.inputs)
    table, number = located(reference.table, models.base), str(reference.count)
    options = reference.csv
    attributes = tuple(config.group_columns)
    source = ItemSource(table, ROW_NUMBER, (*columns, number), attributes=attributes, **options)
    items = models.once("reference", lambda: load_items(source, subject="reference"))
    counts = np.nan_to_num(numbers_of(items, number))
    references: dict[str, Reference] = {}
    for groups in groups_by(choices, items.coded):
        in_group = groups.codes >= 0
        sums = np.bincount(groups.codes[in_group], counts[in_group], len(groups)).tolist()
        references[groups.name] = dict(zip(groups.names, sums, strict=True))
    return references, dict(items.inputs)


def _measure_representation(
    design: Design, config: Config, place: Place, resampling: Resampling | None
) -> list[UncorrectedFinding]:
    """Hold the shares of groups against the reference, or describe them."""
    reference = design.data.reference.get(design.groups.name)
    expected_shares = dict.fromkeys(design.groups.names, 1.0) if reference is None else reference
    estimate = representation_gap(
        design.groups,
        expected_shares,
        kind="census" if reference is None else _kind(config),
        units=design.units,
        resampling=resampling,
        rng=config.resampling.seed,
    )
    return represented(estimate, place, described="" if reference is not None else _NO_REFERENCE)


def _kind(config: Config) -> ReferenceKind | None:
    return config.reference.kind if config.reference else None


FindingsAndRows = tuple[list[UncorrectedFinding], list[Row]]


def _measure_labels(
    design: Design, config: Config, place: Place, resampling: Resampling | None
) -> Iterator[FindingsAndRows]:
    """Yield the findings and rows of each column of labels, then of each label of a data set."""
    named_versions = len(design.data.labels) > 1
    for name, column in design.data.labels.items():
        # A label that makes the groups says nothing about them.
        if name not in design.groups.attributes:
            label_place = replace(place, version=name) if named_versions else place
            yield _measure_column(design, column, config, label_place, resampling)
    for name, marked in design.data.marks.items():
        gaps, counts = _measure_share(
            design, marked, config, place, resampling, (label_gap_of(place.audit), name)
        )
        yield [*gaps, *against_rest(gaps)], [*_label_rows(counts, [name], place)]


def _measure_column(
    design: Design, column: Coded, config: Config, place: Place, resampling: Resampling | None
) -> FindingsAndRows:
    """Compare how often groups have each label of a column."""
    frequent, metrics = {*_options(config).frequent(column)}, config.metrics
    seed, groups, units = config.resampling.seed, design.groups, design.units
    pooled = column.relabel([name if name in frequent else OTHER for name in column.vocabulary])
    counts = count(pooled, pooled, groups, units=units)
    drafts = []
    if metrics.cramers_v is not None:
        least = metrics.cramers_v.min_expected
        effect = EffectSizes(min_expected=least, formulation="independence")
        unpooled = (
            counts
            if pooled.vocabulary == column.vocabulary
            else count(column, column, groups, units=units)
        )
        effect_size = measure(unpooled, [effect], resampling, seed)[0]
        drafts.append(whole(effect_size, place, Family.COMPOSITE, metric=effect.statistic))
    gap_metric = label_gap_of(place.audit)
    if every_gap := label_gaps(counts, frequent, gap_metric, place, resampling, seed):
        gap, *leaves = every_gap
        drafts = [draft.changed(direction=gap.finding.direction) for draft in drafts]
        classes = counts.classes if OTHER not in counts.classes else ()
        label_findings = [gap, *(draft for draft in leaves if draft.finding.subject in frequent)]
        gaps = [*with_folds(label_findings, classes=classes, determined=False)]
        drafts += [*gaps, *against_rest(gaps, counts)]
    return drafts, [
        *_label_rows(counts, [name for name in counts.classes if name in frequent], place)
    ]


def _label_rows(counts: Counts, labels: Sequence[str], place: Place) -> Iterator[Row]:
    """Yield the share of each label in each group, and in all other groups."""
    cells = Cells.of(counts, counts.observed)
    ((label_counts, n),) = SELECTION_RATE.effective(counts)
    shares = scored(label_counts, n, place.level)
    against = AgainstRest.of(np.rint(label_counts), np.rint(n), place.level)
    ratio = shares.over(against.rest)
    for label in labels:
        row = counts.classes.index(label)
        for group, name in enumerate(counts.groups.names):
            at = row, group
            yield {
                "model": place.model, "groups": place.groups, "version": place.version,
                "label": label, "group": name, "count": round(cells["prediction"][0][at]),
                "n": round(cells["total"][0][at]), "share": shares.value[at], "low": shares.low[at],
                "high": shares.high[at], "rest": against.rest.value[at],
                "difference": against.difference.value[at],
                "difference_low": against.difference.low[at],
                "difference_high": against.difference.high[at],
                "ratio": ratio.value[at], "ratio_low": ratio.low[at], "ratio_high": ratio.high[at],
            }  # fmt: skip


def _measure_share(
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
    return [finding for finding in gaps if finding.finding.subject == subject], counts


def _measure_rates(
    design: Design, config: Config, place: Place, resampling: Resampling | None
) -> Iterator[UncorrectedFinding]:
    """Yield the shares of images without a value, and with a defect."""
    marked = {
        missing_rate: _missing_values(design, config),
        image_defect_rate: _defects(design.data, config.metrics.image_defect_rate),
    }
    for metric, of_subjects in marked.items():
        for subject, marks in of_subjects.items():
            names = metric.spec.name, subject
            if marks.any():
                gaps, _ = _measure_share(design, marks, config, place, resampling, names)
                if marks.all():
                    gaps = [without_verdict(draft, _ALL_ALIKE) for draft in gaps]
                yield from [*gaps, *against_rest(gaps)]
                continue
            everyone = np.ones(len(marks), np.bool_)
            for draft in absent_gaps(
                names[:1], everyone, design.groups, design.units, place, resampling
            ):
                yield draft.changed(subject=subject)


def _missing_values(design: Design, config: Config) -> dict[str, Booleans]:
    """Return the images without a value, by column."""
    if not config.metrics.has(missing_rate):
        return {}
    of_groups = {*design.groups.attributes, config.data.unit}
    columns = [name for name in config.data.columns if name not in of_groups]
    return {name: design.data.images.coded[name].codes < 0 for name in columns}


def _defects(data: DatasetData, options: DefectOptions | None) -> dict[str, Booleans]:
    """Return the images with each defect, by its name."""
    files = data.files
    if options is None or files.sizes is None:
        return {}
    width, height = files.sizes.T
    unknown = "of unknown size" if files.problems is None else UNREADABLE
    longer, shorter = np.fmax(width, height), np.fmin(width, height)
    return {
        unknown: np.isnan(width),
        f"under {options.pixels:,} pixels": width * height < options.pixels,
        f"longer than {options.ratio:g} : 1": longer > options.ratio * shorter,
        "same bytes as another": files.repeated,
    }


def _size_rows(design: Design, sizes: Floats) -> Iterator[Row]:
    """Yield the median width, height, pixels and ratio of sides of the images of each group."""
    for code, name in enumerate(design.groups.names):
        sizes_of_group = sizes[(design.groups.codes == code) & ~np.isnan(sizes[:, 0])]
        if len(sizes_of_group):
            numbers = (
                *sizes_of_group.T,
                sizes_of_group.prod(axis=1),
                sizes_of_group.max(axis=1) / sizes_of_group.min(axis=1),
            )
            medians = (float(np.median(values)) for values in numbers)
            yield {
                "model": design.model, "groups": design.groups.name, "group": name,
                "n": len(sizes_of_group),
                **dict(zip(("width", "height", "pixels", "ratio"), medians, strict=True)),
            }  # fmt: skip


def _measure_diversity(
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
        diversity = iss_intra(images, resampling=alone)
        yield whole(diversity, place, Family.DESCRIPTIVE).changed(subject=name)
    pairs = parts(iss_difference(sets, resampling=resampling), place)
    for pair in pairs:
        family = Family.COMPOSITE if len(pairs) == 1 else pair.finding.family
        yield pair.changed(family=family, direction=more_alike(pair.finding.by_group))

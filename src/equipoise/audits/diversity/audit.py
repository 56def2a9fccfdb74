"""The audit of diversity: how alike the images of each set are, and how far apart sets lie."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.audits.columns import ImageData, check_one_space, placed, rows_of
from equipoise.audits.config import resampling_of
from equipoise.audits.diversity.config import Config, reference_name
from equipoise.audits.findings import (
    Place,
    UncorrectedFinding,
    more_alike,
    parts,
    whole,
    without_verdict,
)
from equipoise.audits.group_sizes import Members, Row, groups_by, lacking, size
from equipoise.audits.kind import Audit, Measured, audit_kind
from equipoise.audits.notes import Note, first_of
from equipoise.audits.quality import ALL_IMAGES, Quality, measure_quality
from equipoise.core import (
    DataError,
    Estimate,
    Facts,
    Family,
    Fields,
    Groups,
    Integers,
    record,
)
from equipoise.core.finding import plain_parameters
from equipoise.core.sentences import Sentence
from equipoise.core.types import FileFacts
from equipoise.data import ArraySource, Items, Vectors, load_items, load_vectors
from equipoise.metrics.measure import NO_INTERVAL
from equipoise.metrics.vector_rows import ChosenRows, Table
from equipoise.metrics.vectors.diversity import (
    REFERENCE,
    Sets,
    iss_cross,
    iss_difference,
    iss_intra,
    mean_distance,
    mean_distances,
    principal_components,
)
from equipoise.metrics.vectors.image_components import image_components
from equipoise.stats import Resampling

if TYPE_CHECKING:
    from equipoise.audits.outputs import Models
    from equipoise.data.labels import Outputs


def _with_components(draft: UncorrectedFinding, components: int | None) -> UncorrectedFinding:
    """Add the number of components, which metrics of projections don't know."""
    parameters = {**draft.finding.parameters, "components": components}
    return draft.changed(parameters=plain_parameters(parameters))


def _measure_sets(
    design: Design, all_sets: Sets, config: Config, place: Place
) -> Iterator[UncorrectedFinding]:
    """Describe each set, all of them together and each reference: one has no groups to exchange."""
    options, resampling = config.metrics.iss_intra, resampling_of(config, 1)
    if options is None:
        return
    for name in design.sets:
        estimate = iss_intra(
            all_sets.only([name]), include_self=options.include_self, resampling=resampling
        )
        yield _of_set(design, name, estimate, place)
    if len(design.sets) > 1:
        pooled = _pooled(all_sets.only(design.sets).arrays)
        together = Sets.of({_TOGETHER: pooled}, resampling_of(config, 1))
        estimate = iss_intra(together, include_self=options.include_self, resampling=resampling)
        described = whole(estimate, place, Family.DESCRIPTIVE)
        yield described.changed(subject=design.within, version=_TOGETHER)
    # Beside sets of a value of `within` they would be the same again.
    for name in () if design.within else all_sets.names:
        if name not in design.sets:
            reference = all_sets.only([name])
            estimate = iss_intra(
                reference, include_self=options.include_self, resampling=resampling
            )
            yield _of_set(design, name, estimate, place)
    reason = f"fewer than {config.data.min_set_size} images with an embedding"
    for name, n in design.small.items():
        estimate = Estimate(
            "iss_intra", math.nan, {"images": n}, NO_INTERVAL, REFERENCE, reason=reason
        )
        yield _of_set(design, name, estimate, place)


_TOGETHER = "all sets together"


def _of_set(design: Design, name: str, estimate: Estimate, place: Place) -> UncorrectedFinding:
    """Return the finding of a set, a part of its value of `within`."""
    described = whole(estimate, place, Family.DESCRIPTIVE)
    return described.changed(subject=_subject(design, name), part_of=design.within)


def _pooled(arrays: Sequence[Table]) -> Table:
    """Return the embeddings of several sets in one table."""
    chosen = [array for array in arrays if isinstance(array, ChosenRows)]
    if len(chosen) == len(arrays) and len({id(array.table) for array in chosen}) == 1:
        return ChosenRows(chosen[0].table, np.concatenate([array.rows for array in chosen]))
    return np.concatenate([np.asarray(array) for array in arrays])


def _measure_pairs(
    design: Design, all_sets: Sets, config: Config, place: Place, resampling: Resampling | None
) -> Iterator[UncorrectedFinding]:
    """Test whether sets differ, and whether they are equally diverse."""
    if len(design.sets) < 2:
        return
    sets = all_sets.only(design.sets)
    cross = iss_cross(sets, resampling=resampling, rng=config.resampling.seed)
    family = Family.LEAF if design.within else Family.COMPOSITE
    together = whole(cross, place, family, by_group=sets.diversities(place.level))
    # Groups' values are distances within sets, and their order says nothing of the distance.
    yield together.changed(direction=Sentence(), subject=design.within)
    difference = iss_difference(sets, resampling=resampling)
    pairs = parts(difference, place)
    if len(pairs) > 1:
        pair = str(difference.params["pair"])
        groups = next((part.by_group for part in difference.parts if part.subject == pair), ())
        largest = whole(difference, place, Family.DESCRIPTIVE, by_group=groups).changed(
            direction=more_alike(groups), subject=design.within
        )
        yield without_verdict(largest, f"the largest of {len(pairs)} pairs; each pair is tested")
    for draft in pairs:
        finding = draft.finding
        only = len(pairs) == 1 and not design.within
        yield draft.changed(
            subject=_subject(design, finding.subject),
            part_of=design.within,
            direction=more_alike(finding.by_group) or finding.direction,
            family=Family.COMPOSITE if only else finding.family,
        )


def _measure_references(
    design: Design, all_sets: Sets, config: Config, place: Place
) -> Iterator[UncorrectedFinding]:
    """Measure the distance of each set from each reference data set."""
    references = [name for name in all_sets.names if name not in design.sets]
    if not references or not design.sets:
        return
    for pair in product(design.sets, references):
        sets = all_sets.only(pair)
        distance = mean_distance(sets, resampling=resampling_of(config, 1))
        diversities = sets.diversities(config.resampling.level)
        draft = whole(distance, place, Family.DESCRIPTIVE, by_group=diversities)
        yield draft.changed(direction=Sentence(), subject=_subject(design, " × ".join(pair)))


def _subject(design: Design, name: str) -> str:
    return f"{design.within}: {name}" if design.within else name


# Numbers read in a second by one pass over embeddings, and by a permutation: rough guides.
_PASS, _SHUFFLE = 5e8, 1e9


@record
class DiversityData(ImageData):
    """Images with their embeddings.

    Attributes
    ----------
    models : mapping of str to Vectors
    references : mapping of str to mapping of str to Vectors
        By reference data set and model.
    scores : mapping of str to Vectors
        Probabilities of the images, of models that have some, where quality is measured.
    """

    models: Mapping[str, Vectors]
    references: Mapping[str, Mapping[str, Vectors]]
    scores: Mapping[str, Vectors]

    def quality(self, model: str) -> Quality:
        """Return a model's outputs for the images and the references."""
        references = {
            reference_name(name): models[model]
            for name, models in self.references.items()
            if model in models
        }
        return Quality(self.models[model], self.scores.get(model), references)


@record
class Design:
    """The sets of one model, one choice of attributes and one value of `within`.

    Attributes
    ----------
    model : str
    groups : Groups
        Of the images with a usable embedding, whatever their value of `within`.
    lacking : mapping of str to int
    within : str
        "" where sets aren't split.
    images : mapping of str to ndarray of int
        Places in the table of each set's images, sorted by name; large enough ones.
    small : mapping of str to int
        Sizes of the other sets.
    vectors : Vectors
    permutations : int
    """

    model: str
    groups: Groups
    lacking: Mapping[str, int]
    within: str
    images: Mapping[str, Integers]
    small: Mapping[str, int]
    vectors: Vectors
    permutations: int

    @cached_property
    def sets(self) -> dict[str, Table]:
        """Embeddings of the sets that are large enough."""
        return {name: rows_of(self.vectors, places) for name, places in self.images.items()}

    @property
    def name(self) -> str:
        """Model, attributes and value of `within`, for notes and errors."""
        return ", ".join(text for text in (self.model, self.groups.name, self.within) if text)

    @property
    def resolved_tests(self) -> int:
        """Tests for which p-values are drawn finely enough."""
        n_sets = len(self.images)
        return 0 if n_sets < 2 else 1 + n_sets * (n_sets - 1) // 2

    def seconds(self, draws: int) -> float:
        """About how long it takes to measure."""
        numbers = self.vectors.dimension * sum(map(len, self.images.values()))
        passes = 2 * len(self.images) * numbers / _PASS
        return float(passes + self.permutations * numbers / _SHUFFLE)


def _facts_of_embeddings(
    items: Items, vectors: Mapping[str, Vectors]
) -> tuple[dict[str, FileFacts], Fields]:
    """Return the files of items and of each model's embeddings of them, and their counts."""
    inputs, counts = dict(items.inputs), dict[str, Any]()
    for model, loaded in vectors.items():
        inputs |= loaded.inputs
        counts[model] = loaded.counts
    return inputs, {"images": items.counts, "models": counts}


@audit_kind("diversity")
class Diversity(Audit["Config", DiversityData, Design]):
    """Audits of the diversity of image sets."""

    items = "images"

    def load(self, config: Config, models: Models) -> DiversityData:
        """Read the images and references; read or make every model's embeddings of them."""
        images, image_vectors = _read_embeddings("images", config, models)
        references = {}
        inputs, about = _facts_of_embeddings(images, image_vectors)
        counts: Fields = {}
        for name in config.references:
            items, references[name] = _read_embeddings(name, config, models)
            reference_inputs, counts[name] = _facts_of_embeddings(items, references[name])
            inputs |= reference_inputs
        for vectors in references.values():
            for model, loaded in vectors.items():
                check_one_space(loaded, image_vectors[model])
        about |= {"references": counts} if counts else {}
        scores = dict[str, Vectors]()
        for model in config.models if config.metrics.quality else ():
            read = _read_probabilities(images, config, models, model)
            if read is not None:
                inputs |= read.inputs
                scores[model] = read
        return DiversityData(images, inputs, about, image_vectors, references, scores)

    def groups(self, config: Config, data: DiversityData) -> list[Groups]:
        """Return the sets of all images, for each choice of attributes."""
        section = config.data
        return groups_by(section.sets, data.images.coded, min_size=section.min_set_size)

    def designs(self, config: Config, data: DiversityData) -> list[Design]:
        """Return the sets of every model, choice of attributes and value of `within`."""
        designs = list[Design]()
        for model in data.models:
            designs += self._designs_of_model(config, data, model)
        if not (config.metrics.quality or any(len(design.images) > 1 for design in designs)):
            raise DataError(
                f"no choice of sets leaves two with {config.data.min_set_size} images and an "
                "embedding",
                file=data.images.name,
                expected="at least two sets of that size",
                fix="choose other attributes under data.sets, or lower data.min_set_size",
            )
        return designs

    def check(self, config: Config, data: DiversityData, design: Design) -> None:
        """Refuse a projection on more components than the images or the model have."""
        components = config.vectors.components
        # All sets are projected together, and the references with them.
        sizes = {name: len(places) for name, places in design.images.items()}
        for name, models in data.references.items():
            if design.model in models:
                sizes[reference_name(name)] = int(models[design.model].usable.sum())
        dimension = design.vectors.dimension
        limit = min(sum(sizes.values()), dimension)
        if components is None or not design.images or components <= limit:
            return
        sizes_text = first_of(f"{name}: {n}" for name, n in sizes.items())
        raise DataError(
            f"vectors.components: {components} is more than the images of {design.name} "
            f"({sizes_text}) or the {dimension} numbers of an embedding allow",
            file=data.images.name,
            expected=f"at most {limit}",
            fix=f"lower vectors.components to {limit}, or leave it out",
        )

    def _designs_of_model(
        self, config: Config, data: DiversityData, model: str
    ) -> Iterator[Design]:
        vectors, coded, options = data.models[model], data.images.coded, config.resampling
        usable = np.flatnonzero(vectors.usable)
        rows = {"": usable}
        if config.data.within is not None:
            within = coded[config.data.within]
            codes = within.codes[usable]
            rows = {value: usable[codes == code] for code, value in enumerate(within.vocabulary)}
        for groups in self.groups(config, data):
            usable_groups = groups.take(usable)
            missing = lacking({name: coded[name].codes[usable] for name in groups.attributes})
            for value, set_rows in rows.items():
                images, small = _split_by_size(groups, set_rows)
                yield Design(
                    model, usable_groups, missing, value, images, small, vectors,
                    options.permutations or options.replicates,
                )  # fmt: skip

    def measure(
        self, config: Config, data: DiversityData, design: Design, resampling: Resampling | None
    ) -> Measured:
        """Measure each set, every pair, all sets together, and their distance to references."""
        level, options = config.resampling.level, config.metrics
        place = Place(self.name, design.model, design.groups.name, "default", level)
        references = {
            reference_name(name): reference.take(np.flatnonzero(reference.usable))
            for name, models in data.references.items()
            if (reference := models.get(design.model)) is not None
        }
        # One projection, so that every number is of one space.
        tables: Mapping[str, Table] = {**design.sets, **references}
        if config.vectors.components is not None and design.sets:
            tables = principal_components(tables, config.vectors.components)
        all_sets = (
            Sets.of(tables, resampling_of(config, 1))
            if tables
            else Sets((), (), (), without_spreads=True)
        )
        findings = (
            *_measure_sets(design, all_sets, config, place),
            *_measure_pairs(design, all_sets, config, place, resampling),
            *_measure_references(design, all_sets, config, place),
        )
        where = {"model": design.model, "groups": design.groups.name, "within": design.within}
        distances = placed(mean_distances(all_sets, level=level), where) if tables else None
        drafts = [_with_components(draft, config.vectors.components) for draft in findings]
        if options.quality:
            quality = data.quality(design.model)
            for name, rows in design.images.items():
                drafts += measure_quality(config, place, quality, rows, _subject(design, name))
        return Measured(tuple(drafts), {} if distances is None else {"distances": distances})

    def combine(
        self, config: Config, data: DiversityData, measured: Sequence[Measured]
    ) -> Measured:
        """Add the quality of all images."""
        drafts = list[UncorrectedFinding]()
        for model in data.models if config.metrics.quality else ():
            place = Place(self.name, model, "", "default", config.resampling.level)
            rows = np.arange(len(data.images))
            drafts += measure_quality(config, place, data.quality(model), rows, ALL_IMAGES)
        return Measured.together([Measured(tuple(drafts), {}), *measured])

    def details(
        self,
        config: Config,
        data: DiversityData,
        designs: Sequence[Design],
        tests: Mapping[str, int],
    ) -> Facts:
        """Return images, and the embeddings of each model."""
        return {
            "images": len(data.images),
            "models": [
                {
                    "model": name,
                    "dimension": vectors.dimension,
                    "usable": int(vectors.usable.sum()),
                    "without_embedding": int((vectors.rows < 0).sum()),
                    "zero": vectors.counts["zero"],
                    "not_finite": vectors.counts["not_finite"],
                }
                for name, vectors in data.models.items()
            ],
        }

    def notes(
        self, config: Config, data: DiversityData, designs: Sequence[Design]
    ) -> Iterable[Note | str]:
        """Return the notes on embeddings that can't be used, and on small sets."""
        yield "Distances ignore features that the embedding doesn't encode."
        yield "Intervals assume independent images; near duplicates make them too narrow."
        yield from _option_notes(config, designs)
        for name, vectors in data.models.items():
            yield from _embedding_notes(name, vectors)
        if n := data.images.counts["missing"].get(config.data.within, 0):
            yield f"Images without {config.data.within} ({n}) are in no set."
        for design in designs:
            if design.within and design.small:
                few = [f"{name} ({n})" for name, n in design.small.items()]
                yield Note(design.name, f"too small to be measured: {first_of(few)}.")

    def sizes(self, config: Config, data: DiversityData) -> Iterator[Row]:
        """Return the sets of the first model: others differ only in images without embedding."""
        for design in self._designs_of_model(config, data, next(iter(data.models))):
            levels = dict(zip(design.groups.names, design.groups.levels, strict=True))
            about = f"{design.within}: " if design.within else ""
            large = {name: len(places) for name, places in design.images.items()}
            for name, n in {**large, **design.small}.items():
                note = "too small to be measured" if name in design.small else ""
                yield size(
                    design.groups.attributes, f"{about}{name}", n, levels=levels[name],
                    usable=not note, note=note,
                )  # fmt: skip

    def members(self, config: Config, data: DiversityData, on: str) -> Members:
        """Return the ids in every set; a reference has none."""
        return super().members(config, data, on) if on == "images" else {}


def _read_embeddings(name: str, config: Config, models: Models) -> tuple[Items, dict[str, Vectors]]:
    """Read the images, or a reference's images, with their embeddings."""
    of_reference = config.references.get(name)
    section = of_reference.images if of_reference else config.data.images
    columns = () if of_reference else config.data.columns
    place = f"references.{name}.images" if of_reference else "data.images"
    images = models.read_images(section, columns, name=name, place=place)
    label = f"reference {name}" if of_reference else "images"
    items = models.once(name, lambda: load_items(models.source(images, columns), subject=label))
    vectors = {}
    for model, run in config.models.items():
        source: ArraySource | Outputs
        if of_reference and model in of_reference.models:
            source = of_reference.models[model].source(models.base)
        elif run.model is not None:
            pictures = images.need_pictures(model, place=place)
            source = models.embed_images(model, run, pictures, on=name)
        elif of_reference:
            continue
        else:
            source = run.source(models.base)
        limit = config.data.max_unmatched
        loaded = load_vectors(source, items, subject=model, max_unmatched=limit)
        # Stand-ins of a plan needn't have the length of the model's vectors.
        stands_in = models.dry and loaded.live
        vectors[model] = loaded if stands_in else _reduce(loaded, config.vectors.image_pca, model)
    return items, vectors


def _read_probabilities(items: Items, config: Config, models: Models, model: str) -> Vectors | None:
    """Read a model's probabilities of the images; a dual encoder has none."""
    run = config.models[model]
    source: ArraySource | Outputs
    if run.probabilities is not None:
        source = run.probabilities.source(models.base)
    elif run.model is None or models.capability(model, run, "classifier", "encoder") == "encoder":
        return None
    else:
        images = models.read_images(config.data.images, config.data.columns)
        source = models.predict(model, run, images.need_pictures(model))
    limit = config.data.max_unmatched
    return load_vectors(source, items, subject=f"{model}, probabilities", max_unmatched=limit)


def _reduce(vectors: Vectors, rows: int | None, model: str) -> Vectors:
    """Return the principal components of each vector's rows; the vectors where none are named.

    Raises
    ------
    DataError
        When the number of rows doesn't divide the numbers of a vector.
    """
    if rows is None:
        return vectors
    if vectors.dimension % rows:
        raise DataError(
            f"vectors.image_pca: {rows} rows don't divide the {vectors.dimension} numbers of a "
            "vector",
            file=model,
            expected="the rows of a feature map, whose cells and channels a vector lists",
            fix="name the height of the map, or leave it out",
        )
    stored = image_components(vectors.stored, rows)
    zero = (vectors.rows >= 0) & (stored[vectors.rows] == 0.0).all(axis=1) & ~vectors.not_finite
    counts = {**vectors.counts, "zero": int(zero.sum())}
    return replace(vectors, stored=stored, normalised=False, zero=zero, counts=counts)


def _split_by_size(groups: Groups, rows: Integers) -> tuple[dict[str, Integers], dict[str, int]]:
    """Return the places of the images of sets that are large enough, and sizes of the others."""
    set_groups = groups.take(rows)
    order = rows[np.argsort(set_groups.codes, kind="stable")][set_groups.n_missing :]
    members = zip(groups.names, np.split(order, np.cumsum(set_groups.counts)[:-1]), strict=True)
    sets = {name: places for name, places in sorted(members) if len(places)}
    large = {name: places for name, places in sets.items() if len(places) >= groups.min_size}
    return large, {name: len(places) for name, places in sets.items() if name not in large}


def _option_notes(config: Config, designs: Sequence[Design]) -> Iterator[Note | str]:
    """Yield the notes on options that change distances."""
    if config.metrics.iss_intra is not None and config.metrics.iss_intra.include_self:
        sizes = {len(places) for design in designs for places in design.images.values()}
        smallest, largest = min(sizes), max(sizes)
        yield (
            "With `include_self` ISS intra depends on the number of images: n zeros lower it by "
            f"1/n. Compare sets of one size, also with numbers from elsewhere. Sets here have "
            f"{smallest if smallest == largest else f'{smallest} to {largest}'} images."
        )
    if config.vectors.image_pca is not None:
        yield (
            "With `image_pca` each image has axes of its own: equal places of two vectors belong "
            "to different axes, and an image can be far from its own copy."
        )


def _embedding_notes(name: str, vectors: Vectors) -> Iterator[Note | str]:
    """Yield notes on embeddings that are changed or not used."""
    if vectors.rescaled:
        yield Note(name, "the embeddings are not of length 1; they are normalised.")
    for n, problem in (
        (vectors.unmatched, "no embedding"),
        (vectors.counts["zero"], "an embedding of zeros"),
        (vectors.counts["not_finite"], "an embedding that is not finite"),
    ):
        if n:
            yield Note(name, f"images with {problem} ({n}) are not used.")

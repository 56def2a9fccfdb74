"""The audit of similarity: how similar concepts are to images of each group, all else equal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from equipoise.audits import group_sizes
from equipoise.audits.audit import Audit, Measured, audit_kind
from equipoise.audits.engines.rankings.scores import load_scores, read_items
from equipoise.audits.similarity.config import Config
from equipoise.audits.similarity.hypotheses import Hypothesis
from equipoise.audits.similarity.measuring import Design, SimilarityData, measure_similarities
from equipoise.core.errors import DataError
from equipoise.core.groups import Groups
from equipoise.core.wording import images as count_images

if TYPE_CHECKING:
    from equipoise.audits.group_sizes import Row
    from equipoise.audits.outputs import Models
    from equipoise.data import Items
    from equipoise.stats.resampling import Resampling

_PREFERENCES = (
    "Every trained model has small preferences, and with many images even a small one has a small "
    "p. Read the size of a gap, and whether gaps follow a declared hypothesis."
)


@audit_kind("similarity")
class Similarity(Audit[Config, SimilarityData, Design]):
    """Audits of similarity."""

    items = "images"

    def load(self, config: Config, models: Models) -> SimilarityData:
        """Read images, queries and hypotheses, and read or compute every model's scores."""
        images = read_items(config, models)
        _check_units(config, images)
        data = load_scores(config, models, images, config.queries)
        concepts = {query for scored in data.models.values() for query in scored.queries}
        hypotheses = tuple(
            Hypothesis.read(f"hypotheses[{place}]", section, models.base, concepts)
            for place, section in enumerate(config.hypotheses)
        )
        inputs = {**data.inputs}
        for each in hypotheses:
            inputs |= each.items.inputs
        counts = {**data.counts, **{each.key: each.items.counts for each in hypotheses}}
        return SimilarityData(images, data.models, inputs, counts, hypotheses)

    def groups(self, config: Config, data: SimilarityData) -> list[Groups]:
        """Return the groups of all images."""
        columns, size = data.images.columns, config.data.min_group_size
        return [
            Groups.of({name: columns[name] for name in attributes}, min_size=size)
            for attributes in config.data.groups
        ]

    def designs(self, config: Config, data: SimilarityData) -> list[Design]:
        """Return every model with every choice of groups."""
        designs = [
            Design(model, attributes, data, config)
            for model in data.models
            for attributes in config.data.groups
        ]
        for design in designs:
            design.check("images that can be compared")
        for design in designs:
            for hypothesis in design.hypotheses:
                hypothesis.check(design.groups)
        return designs

    def measure(
        self,
        config: Config,
        data: SimilarityData,
        design: Design,
        resampling: Resampling | None,
    ) -> Measured:
        """Measure gaps, normalised similarities and hypotheses of one design."""
        measured = measure_similarities(design, resampling)
        return replace(measured, notes=(_PREFERENCES, *_scale_notes(design)))

    def sizes(self, config: Config, data: SimilarityData) -> Iterator[Row]:
        """Return the sizes of the groups that are compared in the first model."""
        for attributes in config.data.groups:
            design = Design(next(iter(data.models)), attributes, data, config)
            yield from group_sizes.sizes_of(design.groups)

    def details(
        self,
        config: Config,
        data: SimilarityData,
        designs: Sequence[Design],
        tests: Mapping[str, int],
    ) -> Mapping[str, Any]:
        """Return images, each model's concepts and images, and each design.

        Per design: concepts, groups, images of the two smallest groups of the smallest concept,
        and the gap in standard deviations that one test detects there with a power of 80 %.
        """
        return {
            "images": len(data.images),
            "models": [
                {
                    "model": name, "concepts": len(each.queries),
                    "scale": config.models[name].scale, "compared": len(each.used), **each.counts,
                }
                for name, each in data.models.items()
            ],
            "comparisons": [design.planned for design in designs],
        }  # fmt: skip

    def notes(
        self, config: Config, data: SimilarityData, designs: Sequence[Design]
    ) -> Iterable[str]:
        """Return the notes on images that aren't used, and on sets."""
        for name, scored in data.models.items():
            yield from scored.notes(name)
        for column in filter(None, (config.data.subject, config.data.sets, config.data.unit)):
            if count := data.images.counts["missing"][column]:
                yield f"{count_images(count, f'have no {column}', f'has no {column}')}."
        if config.data.sets is None:
            yield (
                "Images differ in more than their group, so a gap may come from what else they "
                "show. Counterfactual sets (data.sets) hold it fixed."
            )


def _check_units(config: Config, images: Items) -> None:
    """Refuse sets that are split over units, because sets are resampled whole."""
    sets, unit = config.data.sets, config.data.unit
    if sets is None or unit is None:
        return
    owners: dict[str, Any] = {}
    pairs = zip(images.columns[sets].tolist(), images.columns[unit].tolist(), strict=True)
    for row, (name, owner) in enumerate(pairs, start=1):
        if name is not None and owners.setdefault(name, owner) != owner:
            raise DataError(
                f"{sets} {name!r} has images of several units: {owners[name]!r} and {owner!r}",
                file=images.name,
                column=unit,
                row=row,
                expected=f"one {unit} in each {sets}",
                fix="name the unit that holds whole sets, or leave data.unit out",
            )


def _scale_notes(design: Design) -> Iterator[str]:
    name, own, scale = design.model, design.scored.scale, design.scale
    if scale is None:
        yield (
            f"{name}: the logit scale is unknown, so gaps are in the model's own scores, which "
            f"can't be compared between models. Set models.{name}.scale to get logits."
        )
    elif own not in (None, scale):
        yield (
            f"{name}: models.{name}.scale, {scale:g}, replaces the model's own scale, {own:.4g}, "
            "so gaps in logits are not those that the model itself sees."
        )

"""The designs: images of a generator in a space, and the shares of the classes they show."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import polars as pl

from equipoise.audits.associations.config import MeasureConfig, measured_metrics
from equipoise.audits.associations.measures import (
    for_intervals,
    mcas_by_target,
    measure_xmcas,
    report_mcas,
    without_chance,
)
from equipoise.audits.associations.spaces import (
    AssociationData,
    Question,
    Row,
    Space,
)
from equipoise.audits.associations.spaces import Result as AssociationResult
from equipoise.audits.associations.text_to_image.config import (
    AssociationsConfig,
    Config,
    PromptsConfig,
    SharesConfig,
)
from equipoise.audits.associations.text_to_image.loading import (
    IMAGE,
    Encoder,
    ExternalShares,
    GeneratedImages,
    ImageClasses,
    TextToImageData,
)
from equipoise.audits.associations.text_to_image.steps import II, MCAS, SHARE, CurvePoint, Quantity
from equipoise.audits.findings import Place, UncorrectedFinding, whole, without_verdict
from equipoise.audits.notes import Note
from equipoise.core import Estimate, Family, Groups, GroupValue, Integers, Variant, record
from equipoise.core.sentences import Sentence, named
from equipoise.data import Items, Vectors
from equipoise.data.labels import Coded
from equipoise.metrics.labels.shares import corrected_shares, mean_share_mad, share_gap
from equipoise.metrics.spec import MetricSpec
from equipoise.stats import Resampling

AUDIT = "text_to_image"
ALL = "all encoders"
"""The space in which a cosine is the mean of those of all encoders."""

# Seconds of a draw for a number in a space, and for the shares of a target: rough guides, from the
# example.
_SECONDS_PER_SCORE, _SECONDS_PER_SHARE = 1.7e-6, 2.5e-6
_ONE_OF_SEVERAL = f"one of several encoders: the test is of their average, {ALL}"
UNCHECKED = (
    "nobody checked the classifier on these images, so its mistakes may change the shares. "
    "To do: label a sample of the images, and name it under 'labelled'"
)
OWN_LEANING = (
    "an attribute's own lean is no disparity: it shows that generator and encoder tell the groups "
    "apart"
)

Sets = Mapping[str, Mapping[str, Integers]]
Result = AssociationResult | CurvePoint


def over_all_modalities() -> dict[str, MetricSpec]:
    """Return the metrics of this kind whose numbers are over all modalities."""
    metrics = measured_metrics(AUDIT).items()
    return {name: spec for name, spec in metrics if "modalities" not in spec.takes}


@record
class Design:
    """Images of a generator at one strength of guidance.

    Attributes
    ----------
    model : str
        The generator.
    guidance : float or None
    by : str
        The encoder or the source of the classes, in versions of findings.
    compared : str
        What findings call the groups.
    config : Config
    data : TextToImageData
    step : int or None
        A denoising step before the last; None for final images.
    lacking : mapping of str to int
        Items in no group: none.
    """

    model: str
    guidance: float | None
    by: str
    compared: str
    config: Config
    data: TextToImageData
    step: int | None = field(default=None, kw_only=True)
    lacking: Mapping[str, int] = field(default_factory=dict, kw_only=True)

    @property
    def curve(self) -> str:
        """How findings call the design at all steps together."""
        return self.by if self.guidance is None else f"{self.by}, guidance {self.guidance:g}"

    @property
    def version(self) -> str:
        """How findings call the design."""
        return self.curve if self.step is None else f"{self.curve}, step {self.step}"

    @property
    def position(self) -> int:
        """The step, that of final images being the last; 0 where images have no steps."""
        return self.generated.last if self.step is None else self.step

    def rows(self, texts: tuple[str, ...]) -> Integers:
        """Return the requested images of some prompts."""
        return self.generated.rows(texts, self.guidance, self.step)

    def point(
        self,
        groups: str,
        sides: tuple[str, ...],
        target: str,
        estimate: Estimate,
        quantity: Quantity,
    ) -> CurvePoint:
        """Return a number as a point of its curve over steps."""
        level = self.config.resampling.level
        place = Place(AUDIT, self.model, groups, self.curve, level, sides=sides)
        return CurvePoint(place, self.position, target, estimate, quantity)

    @property
    def generated(self) -> GeneratedImages:
        """The images of the generator."""
        return self.data.generated[self.model]

    @property
    def prompts(self) -> PromptsConfig:
        """The prompts of the generator's images."""
        return self.config.prompts_of(self.model)

    @property
    def groups(self) -> Groups:
        """Groups of no items: sets of images are compared."""
        return Groups((self.compared,), (), np.empty(0, dtype=np.int32))


@record
class SpaceDesign(Design):
    """Images and prompts in the space of one encoder, or of all of them (`ALL`)."""

    @property
    def resolved_tests(self) -> int:
        """Tests for which p-values are drawn finely enough."""
        return self.tested * len(self.pairs) * sum(map(len, self.targets.values()))

    def seconds(self, draws: int) -> float:
        """About how long it takes to measure."""
        return _SECONDS_PER_SCORE * draws * len(self.pairs) * len(self.prompts.texts)

    @cached_property
    def targets(self) -> dict[str, list[str]]:
        """Targets with images that can be used, by category."""
        sets = self.association.sets
        return {
            category: [name for name in texts if len(sets[name]["images"])]
            for category, texts in self.prompts.target_texts.items()
        }

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Pairs of attributes with images that can be used; none without a target."""
        sets, any_target = self.association.sets, any(self.targets.values())
        pairs = self.config.pairs if any_target else ()
        return [pair for pair in pairs if all(len(sets[name]["images"]) for name in pair)]

    @property
    def notes(self) -> Iterator[Note | str]:
        """Sentences on the pairs that are not measured."""
        for first, second in (pair for pair in self.config.pairs if pair not in self.pairs):
            yield Note(
                f"{self.model}, {self.version}",
                f"{first} against {second} is not measured. One of "
                "the sets, or every target, has no image that can be used.",
            )

    @property
    def tested(self) -> bool:
        """Whether its numbers are tested; a single encoder's among several aren't."""
        return self.by == ALL or len(self.config.encoders) == 1

    @cached_property
    def vectors(self) -> tuple[Vectors, Encoder]:
        """Vectors of the images, and the encoder with its texts."""
        if self.by != ALL:
            encoder = self.data.encoders[self.by]
            return encoder.images[self.model], encoder
        encoders = [self.data.encoders[name] for name in self.config.encoders]
        # Texts of associations come first in each.
        n_texts = len(self.config.texts)
        texts = _join_vectors(
            "texts in all encoders", [encoder.texts for encoder in encoders], n_texts
        )
        images = [encoder.images[self.model] for encoder in encoders]
        return _join_vectors("images in all encoders", images), Encoder(texts, {}, {}, None)

    @cached_property
    def association(self) -> AssociationData:
        """The images and texts as the associations of embeddings take them."""
        images, encoder = self.vectors
        ids, texts = encoder.texts.ids, self.config.texts
        named_texts = [texts.get(text, text) for text in ids.tolist()]
        columns = {"prompt": Coded.of(pl.Series(named_texts, dtype=pl.String))}
        by_prompt = {"images": "prompt", "texts": "prompt"}
        sets = {
            name: self.members(texts, self.config.words.get(name))
            for name, texts in self.prompts.attribute_texts.items()
        }
        for texts_by_target in self.prompts.target_texts.values():
            sets |= {name: self.members(texts) for name, texts in texts_by_target.items()}
        return AssociationData(
            items={
                "images": self.generated.items,
                "texts": Items(encoder.texts.name, "id", ids, columns, {}, {}),
            },
            kinds={"images": "image", "texts": "text"},
            units=by_prompt if self.config.over_prompts else {"images": "seed"},
            sets=sets,
            vectors={self.model: {"images": images, "texts": encoder.texts}},
            pairs={},
        )

    def members(
        self, prompts: Sequence[str], words: Sequence[str] | None = None
    ) -> dict[str, Integers]:
        """Return the images that were made of some prompts, and the prompts, or words for them."""
        images, encoder = self.vectors
        rows = self.rows(tuple(prompts))
        usable_rows = rows[(self.generated.state[rows] == IMAGE) & images.usable[rows]]
        return {
            "images": usable_rows,
            "texts": encoder.rows(self.config.embedded(words or prompts)),
        }

    def measure(self, resampling: Resampling | None) -> Iterator[Result]:
        """Measure every pair of attributes over the targets, and over prompts of attributes."""
        sets, targets = self.association.sets, self.targets
        for pair in self.pairs:
            if self.tested:
                offset, spaces = 0.0, self._single_spaces
                for result in self._measure_pair(pair, targets, resampling, sets, spaces):
                    if isinstance(result, UncorrectedFinding):
                        offset = result.finding.parameters.get("offset", offset)
                    yield result
                if self.step is None:
                    yield from self._measure_own_leaning(pair, for_intervals(resampling), offset)
            else:
                # Numbers of one encoder are in the findings and the table of encoders alone.
                for result in self._measure_pair(pair, targets, for_intervals(resampling), sets):
                    if isinstance(result, UncorrectedFinding):
                        descriptive = result.finding.family is Family.DESCRIPTIVE
                        untested = without_chance(result)
                        yield untested if descriptive else _leave_untested(result, _ONE_OF_SEVERAL)

    def _measure_pair(
        self,
        pair: tuple[str, str],
        targets: Mapping[str, list[str]],
        resampling: Resampling | None,
        sets: Sets,
        spaces: Sequence[Space] = (),
        offset: float | None = None,
    ) -> Iterator[Result]:
        """Measure MCAS, and the angle with all other sets of attributes as further groups.

        The offset of the angle is that of the neutral sets, unless it is known.
        """
        draws, section = self.config.resampling, self._section
        target_names = {*chain.from_iterable(targets.values())}
        declared = {
            side: tuple(name for name in names if name in target_names)
            for side, names in self.config.declared_sides.items()
        }
        further = [
            name
            for name in self.prompts.attribute_texts
            if name not in pair and len(sets[name]["images"])
        ]
        neutral = section.neutral if self.tested and offset is None else ()
        prompt_sets = self._prompt_sets(neutral)
        keys: dict[str, Any] = {
            "targets": targets, "attributes": pair, "version": self.version, "generated": True,
            "declared_sides": {side: names for side, names in declared.items() if names},
            "ddof": section.ddof, "resample_texts": self.config.over_prompts,
            "further": tuple(further), "centre": section.centre,
            "neutral": (*prompt_sets,) or neutral, "size_of_mean": bool(prompt_sets),
            "offset": offset or 0.0,
        }  # fmt: skip
        space = Space(self.model, replace(self.association, sets={**sets, **prompt_sets}))
        for metric, spec in over_all_modalities().items():
            allowed = (*spec.needs, *spec.takes, "version")
            if not all(map(keys.get, spec.needs)):
                continue
            options = MeasureConfig(
                metric=metric, **{key: value for key, value in keys.items() if key in allowed}
            )
            measure = self._measure_mcas if options.generated else measure_xmcas
            yield from measure(
                Question(
                    AUDIT, options, space, draws.seed, draws.level, resampling,
                    spaces=spaces, fixed_texts=not self.config.over_prompts,
                )
            )  # fmt: skip

    @property
    def _section(self) -> AssociationsConfig:
        return self.config.associations or AssociationsConfig()

    def _prompt_sets(self, names: Sequence[str]) -> Sets:
        """Return each prompt of some sets of attributes as a set of its own; none of targets."""
        texts = (self.prompts.attribute_texts.get(name, ()) for name in names)
        return {text: self.members((text,)) for text in chain.from_iterable(texts)}

    @property
    def _single_spaces(self) -> tuple[Space, ...]:
        """Spaces of single encoders where their values are averaged."""
        if self.by != ALL or self._section.average == "cosines":
            return ()
        sets = self.association.sets
        designs = (replace(self, by=name) for name in self.config.encoders)
        return tuple(
            Space(self.model, replace(design.association, sets=sets)) for design in designs
        )

    def _measure_mcas(self, question: Question) -> Iterator[Result]:
        """Measure MCAS of every target, with its points on curves over steps."""
        by_target = mcas_by_target(question)
        yield from report_mcas(question, by_target)
        if self.generated.last:
            compared = question.options.group_text, question.options.sides
            for target, (_, estimate) in by_target.items():
                quantities: tuple[Quantity, ...] = (MCAS, II)
                for quantity in quantities:
                    yield self.point(*compared, target, estimate, quantity)

    def _measure_own_leaning(
        self, pair: tuple[str, str], resampling: Resampling | None, offset: float
    ) -> Iterator[Result]:
        """Measure each prompt of an attribute as a target, without it in its own set."""
        words = self.config.words
        for name, texts in self.prompts.attribute_texts.items():
            if len(texts) == 1:
                yield (
                    f"{name} has one prompt, which can't be compared with itself, so its own MCAS "
                    "isn't measured."
                )
                continue
            for text in texts:
                own_members = self.members((text,))
                others = [other for other in texts if other != text]
                other_members = self.members(others, words.get(name))
                if len(own_members["images"]) and len(other_members["images"]):
                    sets = {**self.association.sets, name: other_members, text: own_members}
                    own_targets = {name: [text]}
                    for result in self._measure_pair(
                        pair, own_targets, resampling, sets, offset=offset
                    ):
                        if isinstance(result, Row) and "part" in result.values:
                            yield Row(result.table, result.place, {**result.values, "set": name})
                        elif (
                            isinstance(result, UncorrectedFinding)
                            and result.finding.metric in over_all_modalities()
                        ):
                            yield _leave_untested(result, OWN_LEANING).changed(
                                variant=Variant.OWN_LEAN
                            )


def _leave_untested(finding: UncorrectedFinding, reason: str) -> UncorrectedFinding:
    return without_verdict(without_chance(finding), reason)


def _join_vectors(name: str, vectors: Sequence[Vectors], n: int | None = None) -> Vectors:
    """Join the unit vectors of the first n items, so that their cosine is the mean of cosines."""
    usable, units = np.logical_and.reduce([part.usable[:n] for part in vectors]), []
    for part in vectors:
        usable_vectors = np.asarray(part.take(np.flatnonzero(usable)), dtype=np.float64)
        lengths = np.sqrt(np.einsum("ij,ij->i", usable_vectors, usable_vectors))
        units.append(usable_vectors / np.where(lengths > 0, lengths, 1.0)[:, None])
    rows, nothing = np.where(usable, np.cumsum(usable) - 1, -1), np.zeros(len(usable), dtype=bool)
    stored = np.concatenate(units, axis=1)
    return Vectors(name, vectors[0].ids[:n], rows, {}, {}, stored, False, nothing, nothing)


@record
class ShareDesign(Design):
    """One question about the classes of images.

    Attributes
    ----------
    share : SharesConfig
    """

    share: SharesConfig

    @property
    def resolved_tests(self) -> int:
        """Tests for which p-values are drawn finely enough."""
        if self.share.labelled is None:
            return 0
        return (1 + (self.share.outside is not None)) * len(self.config.prompts.target_names)

    def seconds(self, draws: int) -> float:
        """About how long it takes to measure."""
        return _SECONDS_PER_SHARE * draws * len(self.config.prompts.target_names)

    @property
    def place(self) -> Place:
        """Where its numbers were measured."""
        level = self.config.resampling.level
        return Place(AUDIT, self.model, self.share.of, self.version, level)

    @property
    def image_classes(self) -> ImageClasses:
        """The classes of the images."""
        return self.data.image_classes[self.share.of]

    @property
    def external(self) -> ExternalShares:
        """The shares to compare with, of no target where there are none."""
        return self.data.external.get(self.share.of, ExternalShares("", {}))

    @property
    def declared(self) -> Mapping[str, object]:
        """Targets whose shares are declared, so that an even split isn't expected of them."""
        return {} if self.share.outside == "uniform" else self.external.by_target

    def measure(self, resampling: Resampling | None) -> Iterator[Result]:
        """Measure the shares of every target."""
        estimates: dict[str, Estimate] = {}
        for category, targets in self.config.prompts.target_texts.items():
            for target, texts in targets.items():
                rows = self.rows(texts)
                estimates[target] = estimate = self._estimate_shares(target, rows, resampling)
                yield from self._count_states(target, rows)
                yield from self._report_shares(target, category, estimate)
                yield from self._measure_external_gap(target, estimate)
                if self.generated.last:
                    yield self._point(target, rows, estimate)
        if len(estimates) > 1 and any(estimate.estimable for estimate in estimates.values()):
            mean = whole(mean_share_mad(estimates), self.place, Family.COMPOSITE)
            yield self._describe(mean, leads=not self.declared)

    def _point(self, target: str, rows: Integers, estimate: Estimate) -> CurvePoint:
        """Return the shares of a target as a point of their curve over steps."""
        rows = rows[self.generated.state[rows] == IMAGE]
        return replace(
            self.point(self.share.of, (), target, estimate, SHARE),
            outcomes=self.image_classes.outcomes[self.model][rows],
            units=self.generated.items.columns["seed"][rows],
        )

    def _estimate_shares(
        self, target: str, rows: Integers, resampling: Resampling | None
    ) -> Estimate:
        images, share = self.generated, self.share
        rows = rows[images.state[rows] == IMAGE]
        return corrected_shares(
            self.image_classes.outcomes[self.model][rows],
            self.image_classes.confusion,
            classes=share.compared,
            aside=share.no_person,
            units=images.items.columns["seed"][rows] if images.seeded and len(rows) else None,
            max_condition=share.max_condition,
            min_labelled=share.min_labelled,
            resampling=resampling,
            rng=self.config.resampling.seed,
            name=target,
        )

    def _report_shares(self, target: str, category: str, estimate: Estimate) -> Iterator[Result]:
        by_group, raw_shares = _shares_by_class(estimate)
        corrected = self.image_classes.confusion
        finding = whole(
            estimate, self.place, Family.LEAF, by_group=by_group, about=target,
            shows="share" if corrected is None else "corrected share",
        )  # fmt: skip
        external_shares = self.external.by_target.get(target, {})
        yield self._describe(finding, subject=target, leads=target not in self.declared)
        total = sum(external_shares.get(name, 0.0) for name in self.share.compared)
        for class_share, raw in zip(by_group, raw_shares, strict=True):
            name = class_share.group
            yield Row("shares", self.place, {
                **vars(class_share), "target": target, "category": category, "class": name,
                "guidance": math.nan if self.guidance is None else self.guidance,
                "images": class_share.n, "share": class_share.value,
                "raw": raw.value, "raw_low": raw.low, "raw_high": raw.high,
                "outside": external_shares[name] / total if external_shares else math.nan,
                "outside_name": self.external.name, "corrected": corrected is not None,
                "reason": estimate.reason,
            })  # fmt: skip

    def _measure_external_gap(self, target: str, estimate: Estimate) -> Iterator[Result]:
        external_shares = self.external.by_target.get(target)
        if external_shares is None:
            return
        uniform = self.share.outside == "uniform"
        gap = share_gap(
            estimate,
            "uniform" if uniform else dict(external_shares),
            kind=self.external.kind,
        )
        by_group, _ = _shares_by_class(estimate)
        finding = whole(gap, self.place, Family.LEAF, by_group=by_group)
        direction = Sentence()
        if parts := [part for part in gap.parts if not math.isnan(part.value)]:
            largest = max(parts, key=lambda part: abs(part.value))
            often = "more often" if largest.value > 0 else "less often"
            direction = Sentence(
                named(largest.subject), f" is shown {often} than {self.external.name} say, by "
                f"{round(100 * abs(largest.value), 1):g} points",
            )  # fmt: skip
        yield self._describe(finding, subject=target, direction=direction)

    def _describe(self, uncorrected: UncorrectedFinding, **fields: Any) -> UncorrectedFinding:
        """Name a finding's subject; leave it untested without a check or a null."""
        named = uncorrected.changed(**fields)
        if self.image_classes.confusion is None:
            return without_verdict(named, UNCHECKED)
        if not math.isnan(named.finding.value) and math.isnan(named.finding.p_value):
            return without_verdict(named, "without resampling there is no chance level")
        return named

    def _count_states(self, target: str, rows: Integers) -> Iterator[Result]:
        outcomes = self.image_classes.outcomes[self.model]
        pairs = zip(self.generated.state[rows], outcomes[rows], strict=True)
        states = Counter(
            str(state if state != IMAGE else outcome or "not judged") for state, outcome in pairs
        )
        for name, n in sorted(states.items()):
            yield Row("image_states", self.place, {"target": target, "state": name, "count": n})


def _shares_by_class(
    estimate: Estimate,
) -> tuple[tuple[GroupValue, ...], tuple[GroupValue, ...]]:
    """Return the share of every class, corrected and as classified."""
    shares = dict[str, list[GroupValue]]()
    for part in estimate.parts:
        value = GroupValue(part.subject, (part.subject,), part.n, part.value, part.low, part.high)
        shares.setdefault(part.metric, []).append(value)
    corrected, raw = shares.values()
    return tuple(corrected), tuple(raw)

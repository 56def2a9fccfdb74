"""The audit of similarity: how similar concepts are to images of each group, all else equal."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from equipoise.audits.audit import Measured, audit_kind
from equipoise.audits.columns import numbers_of, tables_of
from equipoise.audits.config import group_name
from equipoise.audits.engines.rankings.audit import ByQuery, ScoreDesign, beside, tested
from equipoise.audits.engines.rankings.scores import RankingData, load_scores, read_items
from equipoise.audits.findings import Place, UncorrectedFinding, parts, whole, without_verdict
from equipoise.audits.similarity.config import Config
from equipoise.core.errors import DataError
from equipoise.core.estimate import Estimate
from equipoise.core.finding import Family, GroupValue
from equipoise.core.parts import Part
from equipoise.data import Items, load_items
from equipoise.metrics.spec import AGAINST_REST
from equipoise.metrics.values.alignment import alignment, favourite_gap, preferences
from equipoise.metrics.values.similarity import normalized_similarity_mad, similarity_gap

if TYPE_CHECKING:
    from equipoise.audits.outputs import Models
    from equipoise.audits.similarity.config import HypothesisConfig
    from equipoise.core.groups import Groups
    from equipoise.stats.resampling import Resampling


# Concepts that a rank correlation needs.
_MIN_RANKED = 3


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """A table of declared preferences.

    Attributes
    ----------
    key : str
        Of the config, such as "hypotheses[0]".
    section : HypothesisConfig
    items : Items
        The table, a row for each concept.
    favours : mapping of str to str
        Concept to the declared group.
    values : mapping of str to float
        Concept to the declared number.
    """

    key: str
    section: HypothesisConfig
    items: Items
    favours: Mapping[str, str]
    values: Mapping[str, float]

    @classmethod
    def read(
        cls, key: str, section: HypothesisConfig, base: Path, concepts: set[str]
    ) -> Hypothesis:
        """Read the table.

        Raises
        ------
        DataError
            When it names none of the concepts, or has a value that is no number.
        """
        items = load_items(section.source(base), what=key)
        names = [str(name) for name in items.ids.tolist()]
        if not concepts & {*names}:
            raise DataError(
                f"none of the {len(names)} concepts is compared, such as {names[0]!r}",
                file=items.name,
                column=section.concept,
                expected=f"names such as {min(concepts)!r}",
                fix="name concepts as the queries' subject, or the queries, are named",
            )
        values, favours = dict[str, float](), dict[str, str]()
        if section.value is not None:
            numbers = numbers_of(items, section.value).tolist()
            values = {
                n: each for n, each in zip(names, numbers, strict=True) if not math.isnan(each)
            }
        if section.favours is not None:
            cells = items.columns[section.favours].tolist()
            favours = {
                n: str(cell) for n, cell in zip(names, cells, strict=True) if cell is not None
            }
        if section.first is not None:
            favours = dict.fromkeys(values, section.first)
        return cls(key, section, items, favours, values)

    @property
    def name(self) -> str:
        """The column of the declared numbers, or of the declared groups."""
        return self.section.value or self.section.favours or ""

    def applies(self, groups: Groups) -> bool:
        """Return whether the hypothesis is about a choice of groups."""
        return self.section.groups is None or group_name(self.section.groups) == groups.name

    def check(self, groups: Groups) -> None:
        """Refuse declared groups that don't exist.

        Raises
        ------
        DataError
            With the concept and the group.
        """
        for concept, group in self.favours.items():
            if group not in groups.names:
                raise DataError(
                    f"{self.key}: {group!r}, declared for {concept!r}, is no group of "
                    f"{groups.name}",
                    expected=", ".join(groups.names),
                    fix="name the groups as findings do",
                )

    def compare(
        self,
        effects: Mapping[str, Mapping[str, float]],
        place: Place,
        resampling: Resampling | None,
        seed: int,
    ) -> tuple[list[UncorrectedFinding], list[dict[str, Any]]]:
        """Return findings on the model's preferences, and a row of them for each concept.

        Parameters
        ----------
        effects : mapping of concept to mapping of group to float
        place : Place
        resampling : Resampling or None
        seed : int

        Raises
        ------
        DataError
            When none of the concepts has images of its group and of another.
        """
        preferred = preferences(effects, self.favours)
        known = {name: value for name, value in preferred.items() if not math.isnan(value)}
        if not known:
            raise DataError(
                f"no concept of {self.key} has images of its group and of another",
                expected="concepts with several groups",
                fix="name other concepts, or add images",
            )
        findings = []
        if self.section.favours is not None:
            gap = favourite_gap(effects, self.favours, resampling=resampling, rng=seed)
            findings.append(_finding(gap, place, self.section.favours))
        numbers = {name: self.values[name] for name in known if name in self.values}
        ranked = self.section.statistic == "rank"
        if self.section.value is not None and len(numbers) >= (_MIN_RANKED if ranked else 1):
            aligned = alignment(
                known, numbers, statistic=self.section.statistic, resampling=resampling, rng=seed
            )
            findings.append(_finding(aligned, place, self.section.value))
        return findings, [*self._rows(preferred)]

    def _rows(self, preferred: Mapping[str, float]) -> Iterator[dict[str, Any]]:
        for concept in sorted(preferred):
            yield {
                "hypothesis": self.name,
                "concept": concept,
                "favourite": self.favours[concept],
                "declared": self.values.get(concept),
                "preference": preferred[concept],
            }


def _finding(estimate: Estimate, place: Place, column: str) -> UncorrectedFinding:
    drafted = whole(estimate, place, Family.COMPOSITE)
    direction = ""
    if estimate.value and not math.isnan(estimate.value):
        verb = "follow" if estimate.value > 0 else "run against"
        direction = f"preferences {verb} the column “{column}”"
    return drafted.changed(subject=column, direction=direction)


# Seconds for an image of a concept in a permutation or replicate, all measures together, and for
# a design whatever its size: rough guides, from the example.
_SECONDS_PER_ITEM, _SECONDS_PER_DESIGN = 2e-8, 0.2
# Standard errors of a gap that a test at 5 % detects with a power of 80 %.
_DETECTABLE = 2.8
_POOL_ORDER = "_pool_order"
_NUMBERS = ("low", "high", "chance_low", "chance_high")
_NORMALISED = ("normalised", "normalised_low", "normalised_high")
_COLUMNS = {
    "group_effects": "model groups version concept group unit +n #effect #low #high #chance_low "
    "#chance_high #normalised #normalised_low #normalised_high",
    "hypotheses": "model groups version hypothesis unit concept favourite #declared #preference",
}


@dataclass(frozen=True, eq=False)
class SimilarityData(RankingData):
    """The images, each model's similarities, and the hypotheses.

    Attributes
    ----------
    images, models, inputs, counts
        See `RankingData`.
    hypotheses : tuple of Hypothesis
        In the order of the config.
    """

    hypotheses: tuple[Hypothesis, ...] = ()


@dataclass(frozen=True, eq=False)
class Design(ScoreDesign):
    """One model's similarities, compared between one choice of groups.

    Attributes
    ----------
    model, attributes
        See `ScoreDesign`.
    data : SimilarityData
    config : Config
    """

    data: SimilarityData
    config: Config

    @property
    def scale(self) -> float | None:
        """Scale of the logits: that of the config, else the model's own, where it is known."""
        own = self.config.models[self.model].scale
        return self.scored.scale if own is None else own

    @property
    def hypotheses(self) -> list[Hypothesis]:
        """The hypotheses about these groups."""
        return [each for each in self.data.hypotheses if each.applies(self.groups)]

    @property
    def concepts(self) -> int:
        """How many concepts have images."""
        subject = self.config.data.subject
        if subject is None:
            return len(self.scored.queries)
        return len({*self.column(subject).tolist()} - {None})

    @property
    def compared(self) -> int:
        """How many groups are compared."""
        return int(self.groups.usable.sum())

    @property
    def tests(self) -> int:
        """About how many tests the design makes."""
        each = self.concepts + (self.concepts > 1)
        both, leaves = self.compared > 2 and self.scale is None, 0
        if self.compared > 2 and "similarity_gap" in self.config.measures:
            leaves = self.concepts * self.compared
        each *= len(self.config.measures) if both else 1
        return each + leaves + 2 * len(self.hypotheses)

    def seconds(self, draws: int) -> float:
        """About how long it takes to measure."""
        pools = 1 if self.config.data.subject else len(self.scored.queries)
        items = len(self.scored.used) * pools
        return _SECONDS_PER_DESIGN + draws * items * _SECONDS_PER_ITEM

    @property
    def smallest(self) -> list[int]:
        """Images of the two smallest groups, in the concept where they are smallest."""
        kept = self.complete(self.config.data.subject)
        kept = kept.filter(pl.Series(self.groups.usable[kept[""]])).with_columns(_=0)
        sizes = kept.group_by(pl.all()).len("n").group_by(pl.exclude("", "n"))
        pools = sizes.agg(pl.col("n").sort().head(2))["n"].to_list()
        return min((pool for pool in pools if len(pool) > 1), default=[])

    @property
    def planned(self) -> dict[str, Any]:
        """The design's row in a plan."""
        smallest = self.smallest
        gap = _DETECTABLE * math.sqrt(sum(1 / n for n in smallest)) if smallest else None
        return {
            "model": self.model,
            "groups": self.name,
            "concepts": self.concepts,
            "number_of_groups": self.compared,
            "smallest_groups": smallest,
            "detectable_gap_in_sd": gap,
        }


def measure_similarities(design: Design, resampling: Resampling | None) -> Measured:
    """Measure one design: gaps, normalised similarities, and its hypotheses."""
    config = design.config
    seed, level = config.resampling.seed, config.resampling.level
    place = Place("similarity", design.model, design.name, "default", level)
    compares = "similarity_gap" in config.measures
    gap = similarity_gap(
        **design.arguments, scale=design.scale, resampling=resampling if compares else None
    )
    findings = [*_gap_findings(gap, place, design.scale)] if compares else []
    spread = None
    if "normalized_similarity_mad" in config.measures:
        spread = normalized_similarity_mad(**design.arguments, resampling=resampling)
        findings += _spread_findings(spread, place, design, gap.metric if compares else "")
    unit = "score" if design.scale is None else "logit"
    at = {"model": design.model, "groups": design.name, "version": "default", "unit": unit}
    effects = {
        part.subject: {each.group: each.value for each in part.by_group} for part in _concepts(gap)
    }
    preferences: list[dict[str, Any]] = []
    for hypothesis in design.hypotheses:
        compared, own = hypothesis.compare(effects, place, resampling, seed)
        findings += compared
        preferences += [{**at, **row} for row in own]
    rows = {"group_effects": _effects(gap, spread, at), "hypotheses": preferences}
    return Measured(tuple(findings), tables_of(rows, _COLUMNS))


def _concepts(estimate: Estimate) -> list[Part]:
    """Return the parts of the estimate's own metric, one for each concept."""
    return [part for part in estimate.parts if part.metric == estimate.metric]


def _averages(gap: Estimate) -> list[Part]:
    """Return each group's effect on average over several concepts."""
    return [part for part in gap.parts if part.metric == "group_effect" and not part.subject]


def _gap_findings(gap: Estimate, place: Place, scale: float | None) -> Iterator[UncorrectedFinding]:
    """Yield the gap as a whole, of each concept, and against a random order of the pool."""
    own, every = _concepts(gap), parts(gap, place)
    several = len(own) > 1
    averages = _averages(gap) if several else []
    by_group = tuple(group for part in averages for group in part.by_group)
    first = whole(
        gap, place, Family.COMPOSITE,
        by_group=own[0].by_group if len(own) == 1 else by_group,
    )  # fmt: skip
    concepts = [each for each in every if each.finding.metric == gap.metric] if several else []
    for each in (first, *concepts):
        average = [] if each.finding.subject else averages
        yield tested(_with_direction(each, average, logits=scale is not None))
    for each in every:
        if each.finding.metric.endswith(_POOL_ORDER):
            yield beside(each, gap.metric)
        elif each.finding.metric.endswith(AGAINST_REST):
            drafted = replace(each, harm="either", parent=gap.metric)
            drafted = drafted.changed(group=each.finding.by_group[0].group)
            leaf = _with_direction(drafted, (), logits=scale is not None)
            yield tested(leaf if several else leaf.changed(subject=""))


def _with_direction(
    drafted: UncorrectedFinding, average: Sequence[Part], *, logits: bool
) -> UncorrectedFinding:
    """Say which group is favoured; without a chance level any difference counts."""
    finding = drafted.finding
    beyond = not finding.excess <= 0
    if average:
        # Concepts that favour different groups cancel, so the mean of gaps doesn't decide.
        beyond = any(not p.chance_low <= p.value <= p.chance_high for p in average)
    text = _favoured(finding.by_group, beyond_chance=beyond, logits=logits)
    where = "with opposite gaps cancelling over concepts, " if average and text else ""
    return drafted.changed(direction=where + text)


def _favoured(by_group: Sequence[GroupValue], *, beyond_chance: bool, logits: bool) -> str:
    """Say which group a concept is most similar to, and which least; "" where none differ."""
    known = [each for each in by_group if not math.isnan(each.value)]
    high = max(known, key=lambda each: each.value, default=None)
    low = min(known, key=lambda each: each.value, default=None)
    if high is None or low is None or high.value <= low.value:
        return ""
    if not beyond_chance:
        return "no group is favoured beyond what chance gives"
    text = f"“{high.group}” is favoured over “{low.group}”"
    if not logits:
        return text
    odds = math.exp(min(high.value - low.value, 50.0))
    return f"{text}: in a softmax, odds of {odds:.2f} to 1 where all else is equal"


def _spread_findings(
    spread: Estimate, place: Place, design: Design, gap: str
) -> Iterator[UncorrectedFinding]:
    """Yield spreads of normalised similarities, without a verdict where the gap's says the same.

    Logits decide where they are known: the spread, free of scale, is large for any preference,
    and would put a model's smallest ones above the threshold.
    """
    own = _concepts(spread)
    first = whole(
        spread, place, Family.COMPOSITE,
        by_group=own[0].by_group if len(own) == 1 else (), shows="normalised similarity",
    )  # fmt: skip
    for each in (first, *(parts(spread, place) if len(own) > 1 else ())):
        if gap and design.compared == 2:
            why = f"of two groups it is their gap in standard deviations: {gap} is tested"
            yield without_verdict(each, why)
        elif gap and design.scale is not None:
            yield without_verdict(each, f"has no scale, sees any preference: {gap} is tested")
        else:
            yield tested(each)


def _effects(
    gap: Estimate, spread: Estimate | None, at: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """Yield a row for each group and concept, with its normalised similarity."""
    own = _concepts(gap)
    only = own[0].subject if len(own) == 1 else None
    normalised = {
        (part.subject, group.group): (group.value, group.low, group.high)
        for part in ([] if spread is None else _concepts(spread))
        for group in part.by_group
    }
    unknown = (math.nan,) * len(_NORMALISED)
    for part in gap.parts:
        if part.metric == "group_effect":
            group = part.by_group[0]
            key = part.subject, group.group
            yield {
                **at,
                "concept": part.subject if only is None else only,
                "group": group.group,
                "n": group.n,
                "effect": part.value,
                **{name: getattr(part, name) for name in _NUMBERS},
                **dict(zip(_NORMALISED, normalised.get(key, unknown), strict=True)),
            }


@audit_kind("similarity")
class Similarity(ByQuery[Config, SimilarityData, Design]):
    """Audits of similarity."""

    def load(self, config: Config, models: Models) -> SimilarityData:
        """Read images, queries and hypotheses, and read or compute every model's scores."""
        images = read_items(config, models)
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

    def designs(self, config: Config, data: SimilarityData) -> list[Design]:
        """Return every model with every choice of groups."""
        return [
            Design(model, attributes, data, config)
            for model in data.models
            for attributes in config.data.groups
        ]

    def check(self, config: Config, data: SimilarityData, design: Design) -> None:
        """Refuse fewer than two groups, and hypotheses about groups that aren't there."""
        design.check("images that can be compared")
        for hypothesis in design.hypotheses:
            hypothesis.check(design.groups)

    def measure(
        self,
        config: Config,
        data: SimilarityData,
        design: Design,
        resampling: Resampling | None,
    ) -> Measured:
        """Measure gaps, normalised similarities and hypotheses of one design."""
        measured, name = measure_similarities(design, resampling), design.model
        if design.scale is not None:
            return measured
        note = (
            f"{name}: the logit scale is unknown, so gaps are in the model's own scores, which "
            f"can't be compared between models. Set models.{name}.scale to get logits."
        )
        return replace(measured, notes=(note,))

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
        yield from super().notes(config, data, designs)
        if config.data.sets is None:
            yield (
                "Images differ in more than their group, so a gap may come from what else they "
                "show. Counterfactual sets (data.sets) hold it fixed."
            )

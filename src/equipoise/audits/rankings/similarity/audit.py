"""The audit of similarity: how similar concepts are to images of each group, all else equal."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import polars as pl

from equipoise.audits.columns import tables_of
from equipoise.audits.findings import Place, UncorrectedFinding, parts, whole, without_verdict
from equipoise.audits.kind import Measured, audit_kind
from equipoise.audits.notes import Note
from equipoise.audits.rankings.designs import ScoreDesign
from equipoise.audits.rankings.hypotheses import HYPOTHESES
from equipoise.audits.rankings.measuring import ByQuery, beside, tested
from equipoise.audits.rankings.preferences import alike_notes, with_preferences
from equipoise.audits.rankings.scores import RankingData
from equipoise.audits.rankings.similarity.config import Config
from equipoise.core import Aggregate, Estimate, Family, GroupValue, Part, Variant, record
from equipoise.core.columns import INTEGER, NUMBER, TEXT
from equipoise.core.sentences import Sentence, quoted
from equipoise.core.types import Json
from equipoise.metrics.rankings.preference import systematic_preference
from equipoise.metrics.rankings.similarity import normalized_similarity_mad, similarity_gap
from equipoise.metrics.spec import is_main, spec_of
from equipoise.stats import Resampling

# Seconds for an image of a concept in a permutation or replicate, all measures together, and for
# a design whatever its size: rough guides, from the example.
_SECONDS_PER_ITEM, _SECONDS_PER_DESIGN = 4e-8, 0.5
# Standard errors of a gap that a test at 5 % detects with a power of 80 %.
_DETECTABLE = 2.8
# Most similar images that count unless the config says.
_MOST = 100
_COLUMNS = {
    "group_effects": {
        "model": TEXT,
        "groups": TEXT,
        "version": TEXT,
        "concept": TEXT,
        "group": TEXT,
        "unit": TEXT,
        "n": INTEGER,
        "effect": NUMBER,
        "low": NUMBER,
        "high": NUMBER,
        "chance_low": NUMBER,
        "chance_high": NUMBER,
        "normalised": NUMBER,
        "normalised_low": NUMBER,
        "normalised_high": NUMBER,
    },
    "hypotheses": HYPOTHESES,
}


@record
class Design(ScoreDesign):
    """One model's similarities, compared between one choice of groups.

    Attributes
    ----------
    model, attributes
        See `ScoreDesign`.
    data : RankingData
    config : Config
    """

    config: Config

    @property
    def compares_means(self) -> bool:
        """Whether gaps of means are measured."""
        return self.config.metrics.has(similarity_gap)

    @property
    def scale(self) -> float | None:
        """Scale of the logits: that of the config, else the model's own, where it is known."""
        config_scale = self.config.models[self.model].scale
        return self.scored.scale if config_scale is None else config_scale

    @property
    def concepts(self) -> int:
        """How many concepts have images."""
        subject = self.config.data.subject
        if subject is None:
            return len(self.scored.queries)
        return len({*self.column(subject).tolist()} - {None})

    @property
    def k(self) -> int:
        """How many of the most similar images count: half of the smallest pool, 100 at most."""
        if self.config.k is not None:
            return self.config.k
        images = self.complete(self.config.data.subject).with_columns(_=0)
        smallest = images.group_by(pl.exclude("")).len("n")["n"].min()
        return max(1, min(_MOST, int(str(smallest)) // 2))

    @property
    def resolved_tests(self) -> int:
        """Tests for which p-values are drawn finely enough."""
        tests_of_measure, compared = self.concepts + (self.concepts > 1), len(self.compared)
        counted_twice, leaves = compared > 2 and self.scale is None, compared + 2
        if compared > 2 and self.compares_means:
            leaves += self.concepts * compared
        tests_of_measure *= len(self.config.metrics.measured) if counted_twice else 1
        return tests_of_measure + leaves + 2 * len(self.hypotheses)

    def seconds(self, draws: int) -> float:
        """About how long it takes to measure."""
        pools = 1 if self.config.data.subject else len(self.scored.queries)
        items = len(self.scored.used) * pools
        return _SECONDS_PER_DESIGN + draws * items * _SECONDS_PER_ITEM

    @property
    def smallest(self) -> list[int]:
        """Images of the two smallest groups, in the concept where they are smallest."""
        images = self.complete(self.config.data.subject)
        images = images.filter(pl.Series(self.groups.usable[images[""]])).with_columns(_=0)
        sizes = images.group_by(pl.all()).len("n").group_by(pl.exclude("", "n"))
        pools = sizes.agg(pl.col("n").sort().head(2))["n"].to_list()
        return min((pool for pool in pools if len(pool) > 1), default=[])

    @property
    def planned(self) -> dict[str, Json]:
        """The design's row in a plan."""
        smallest = self.smallest
        gap = _DETECTABLE * math.sqrt(sum(1 / n for n in smallest)) if smallest else None
        return {
            "model": self.model,
            "groups": self.name,
            "concepts": self.concepts,
            "number_of_groups": len(self.compared),
            "smallest_groups": smallest,
            "detectable_gap_in_sd": gap,
        }


def _concepts(estimate: Estimate) -> list[Part]:
    """Return the parts of the estimate's own metric, one for each concept."""
    return [part for part in estimate.parts if is_main(part, estimate)]


def _gap_findings(gap: Estimate, place: Place, scale: float | None) -> Iterator[UncorrectedFinding]:
    """Yield the gap as a whole, of each concept, and against a random order of the pool."""
    concept_parts, drafts = _concepts(gap), parts(gap, place)
    several_concepts = len(concept_parts) > 1
    averages, concepts = list[Part](), list[UncorrectedFinding]()
    by_group = _groups_of_only_concept(concept_parts)
    if several_concepts:
        effects = (part for part in gap.parts if part.metric != gap.metric)
        averages = [part for part in effects if not part.subject]
        by_group = tuple(chain.from_iterable(part.by_group for part in averages))
        concepts = [draft for draft in drafts if is_main(draft.finding, gap)]
    overall = whole(gap, place, Family.COMPOSITE, by_group=by_group)
    for draft in (overall, *concepts):
        average = [] if draft.finding.subject else averages
        yield tested(_with_direction(draft, average, logits=scale is not None))
    for draft in drafts:
        if draft.finding.variant is Variant.POOL_ORDER:
            yield beside(draft)
        elif draft.finding.aggregate is Aggregate.AGAINST_REST:
            drafted = replace(draft, harm="either", parent=spec_of(gap.metric))
            drafted = drafted.changed(group=draft.finding.by_group[0].group)
            leaf = _with_direction(drafted, (), logits=scale is not None)
            yield tested(leaf if several_concepts else leaf.changed(subject=""))


def _groups_of_only_concept(concept_parts: Sequence[Part]) -> tuple[GroupValue, ...]:
    """Return the groups of the only concept; () where there are several."""
    return concept_parts[0].by_group if len(concept_parts) == 1 else ()


def _with_direction(
    drafted: UncorrectedFinding, average: Sequence[Part], *, logits: bool
) -> UncorrectedFinding:
    """Say which group is favoured; without a chance level any difference counts."""
    finding = drafted.finding
    beyond = not finding.excess <= 0
    if average:
        # Concepts that favour different groups cancel, so the mean of gaps doesn't decide.
        beyond = any(not p.chance_low <= p.value <= p.chance_high for p in average)
    text = _describe_preference(finding.by_group, beyond_chance=beyond, logits=logits)
    where = "with opposite gaps cancelling over concepts, " if average and text else ""
    return drafted.changed(direction=where + text)


def _describe_preference(
    by_group: Sequence[GroupValue], *, beyond_chance: bool, logits: bool
) -> Sentence:
    """Say which group a concept is most similar to, and which least; "" where none differ."""
    estimable = [group for group in by_group if not math.isnan(group.value)]
    high = max(estimable, key=lambda group: group.value, default=None)
    low = min(estimable, key=lambda group: group.value, default=None)
    if high is None or low is None or high.value <= low.value:
        return Sentence()
    if not beyond_chance:
        return Sentence("no group is favoured more than by chance")
    text = Sentence(quoted(high.group), " is favoured over ", quoted(low.group))
    if not logits:
        return text
    odds = math.exp(min(high.value - low.value, 50.0))
    return text + f": in a softmax, odds of {odds:.2f} to 1 where all else is equal"


def _spread_findings(
    spread: Estimate, place: Place, design: Design, gap: str
) -> Iterator[UncorrectedFinding]:
    """Yield spreads of normalised similarities, without a verdict where the gap's says the same.

    Logits decide where they are known: the spread, free of scale, is large for any preference,
    and would put a model's smallest ones above the threshold.
    """
    concept_parts = _concepts(spread)
    by_group = _groups_of_only_concept(concept_parts)
    drafts = [
        whole(spread, place, Family.COMPOSITE, by_group=by_group, shows="normalised similarity")
    ]
    if len(concept_parts) > 1:
        drafts += parts(spread, place)
    for draft in drafts:
        if gap and len(design.compared) == 2:
            reason = f"of two groups it is their gap in standard deviations: {gap} is tested"
            yield without_verdict(draft, reason)
        elif gap and design.scale is not None:
            yield without_verdict(draft, f"has no scale, sees any preference: {gap} is tested")
        else:
            yield tested(draft)


def _effects(
    gap: Estimate, spread: Estimate | None, at: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield a row for each group and concept, with its normalised similarity."""
    concept_parts = _concepts(gap)
    only = concept_parts[0].subject if len(concept_parts) == 1 else None
    normalised = dict[tuple[str, str], GroupValue]()
    for part in () if spread is None else _concepts(spread):
        for group in part.by_group:
            normalised[part.subject, group.group] = group
    unknown = GroupValue("", (), 0, math.nan, math.nan, math.nan)
    for part in gap.parts:
        if part.metric != gap.metric:
            group = part.by_group[0]
            spread_of = normalised.get((part.subject, group.group), unknown)
            yield {
                **vars(part),
                **at,
                "concept": part.subject if only is None else only,
                "group": group.group,
                "n": group.n,
                "effect": part.value,
                "normalised": spread_of.value,
                "normalised_low": spread_of.low,
                "normalised_high": spread_of.high,
            }


@audit_kind("similarity")
class Similarity(ByQuery[Config, Design]):
    """Audits of similarity."""

    def designs(self, config: Config, data: RankingData) -> list[Design]:
        """Return every model with every choice of groups."""
        return [
            Design(model, attributes, data, config)
            for model in data.models
            for attributes in config.data.groups
        ]

    def check(self, config: Config, data: RankingData, design: Design) -> None:
        """Refuse fewer than two groups, sets without two groups, and unknown groups."""
        design.check()

    def measure(
        self,
        config: Config,
        data: RankingData,
        design: Design,
        resampling: Resampling | None,
    ) -> Measured:
        """Measure gaps, normalised similarities and hypotheses of one design."""
        place, scale = design.at(), design.scale
        compares, arguments = design.compares_means, design.arguments()
        gap = similarity_gap(**arguments, scale=scale, resampling=resampling if compares else None)
        findings = [*_gap_findings(gap, place, scale)] if compares else []
        spread = None
        if config.metrics.has(normalized_similarity_mad):
            spread = normalized_similarity_mad(**arguments, resampling=resampling)
            findings += _spread_findings(spread, place, design, gap.metric if compares else "")
        unit = "score" if scale is None else "logit"
        at = {**vars(place), "unit": unit}
        preference = systematic_preference(**arguments, k=design.k, resampling=resampling)
        findings_with_preferences, declared = with_preferences(
            design, preference, findings, resampling,
            effects=_concepts(gap), unit=unit, gap=gap.metric,
        )  # fmt: skip
        rows = {"group_effects": _effects(gap, spread, at), "hypotheses": declared}
        note = (
            f"{design.model}: the logit scale is unknown, so gaps are in the model's own scores, "
            f"which can't be compared between models. Set models.{design.model}.scale to get "
            "logits."
        )
        notes: list[Note | str] = [*alike_notes(design, preference)]
        notes += [note] if scale is None else []
        return Measured(findings_with_preferences, tables_of(rows, _COLUMNS), tuple(notes))

    def details(
        self,
        config: Config,
        data: RankingData,
        designs: Sequence[Design],
        tests: Mapping[str, int],
    ) -> Mapping[str, Json]:
        """Return images, each model's concepts and images, and each design.

        Per design: concepts, groups, images of the two smallest groups of the smallest concept,
        and the gap in standard deviations that one test detects there with a power of 80 %.
        """
        return {
            "images": len(data.images),
            "models": [
                {
                    "model": name, "concepts": len(scored.queries),
                    "scale": config.models[name].scale, "compared": len(scored.used),
                    **scored.counts,
                }
                for name, scored in data.models.items()
            ],
            "comparisons": [design.planned for design in designs],
        }  # fmt: skip

    def notes(
        self, config: Config, data: RankingData, designs: Sequence[Design]
    ) -> Iterable[Note | str]:
        """Return the notes on images that aren't used, and on sets."""
        yield from super().notes(config, data, designs)
        if config.data.sets is None:
            yield (
                "Images differ in more than their group, and the rest may cause a gap. "
                "Counterfactual sets (data.sets) hold the rest fixed."
            )

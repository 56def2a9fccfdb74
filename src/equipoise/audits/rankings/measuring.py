"""The base of audits of rankings: groups, designs, measures, notes and plan."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import polars as pl

from equipoise.audits import group_sizes
from equipoise.audits.columns import placed, tables_of
from equipoise.audits.config import resampling_of, runs_models
from equipoise.audits.findings import Place, UncorrectedFinding, parts, whole, without_verdict
from equipoise.audits.kind import Audit, Design, Measured
from equipoise.audits.notes import Note
from equipoise.audits.outputs import Models
from equipoise.audits.rankings.config import (
    QueriesConfig,
    QueryAudit,
    RankingAudit,
    openings,
)
from equipoise.audits.rankings.designs import RankingDesign, check_designs
from equipoise.audits.rankings.hypotheses import HYPOTHESES
from equipoise.audits.rankings.preferences import alike_notes, with_preferences
from equipoise.audits.rankings.scores import RankingData, load_scores, read_items
from equipoise.core import (
    ConfigError,
    Estimate,
    Family,
    Groups,
    InputError,
    NullHypothesis,
    Variant,
)
from equipoise.core.columns import INTEGER, NUMBER, TEXT, TEXTS
from equipoise.core.finding import plain_parameters
from equipoise.core.sentences import Sentence, named
from equipoise.core.types import Json
from equipoise.data import Items
from equipoise.metrics.rankings.measures import (
    query_distribution,
    retrieval_curves,
    retrieval_measures,
)
from equipoise.metrics.rankings.metric import RankingMetric
from equipoise.metrics.rankings.preference import systematic_preference
from equipoise.metrics.rankings.similarity import normalized_similarity_mad
from equipoise.metrics.rankings.subjects import FEW_SUBJECTS
from equipoise.metrics.spec import is_main, spec_of
from equipoise.stats import Resampling

_VERSIONS = {
    Variant.POOL_ORDER: "null: pool order",
    Variant.UNIFORM_TARGET: "uniform target",
    Variant.POOL_TARGET: "pool's shares as target",
}
_COLUMNS = {
    "query_distributions": {
        "model": TEXT,
        "groups": TEXT,
        "version": TEXT,
        "metric": TEXT,
        "queries": INTEGER,
        "not_estimable": INTEGER,
        "mean": NUMBER,
        "sd": NUMBER,
        "lowest": NUMBER,
        "first_quartile": NUMBER,
        "median": NUMBER,
        "third_quartile": NUMBER,
        "highest": NUMBER,
        "lowest_queries": TEXTS,
        "highest_queries": TEXTS,
    },
    "hypotheses": HYPOTHESES,
}


def _measure_rankings(
    design: RankingDesign, arguments: Mapping[str, Any], resampling: Resampling | None
) -> Iterator[tuple[RankingMetric, str, Estimate]]:
    """Yield every metric at every K, with its version and its estimate."""
    opposed = design.opposed
    first, second = opposed or (None, None)
    for k in design.ks:
        metrics = {n: m for n, m in design.metrics_at(k).items() if opposed or not m.opposes}
        estimates = {} if not metrics else retrieval_measures(
            **arguments, k=k, measures=[*metrics], prefixes=design.prefixes,
            desired=design.desired, first=first, second=second, resampling=resampling,
        )  # fmt: skip
        for name, metric in metrics.items():
            version = design.version if metric.of_prefixes else design.version_at(k)
            yield metric, version, estimates[name]


def _has_parts(estimate: Estimate) -> bool:
    main_parts = [part for part in estimate.parts if is_main(part, estimate)]
    return len(main_parts) > 1 and any(not math.isnan(part.value) for part in main_parts)


def _findings(
    metric: RankingMetric, estimate: Estimate, place: Place, design: RankingDesign
) -> Iterator[UncorrectedFinding]:
    """Yield the findings of a metric; without a verdict where another tests the same share."""
    reason = f"of two groups' shares one follows from the other: {metric.repeats} is tested"
    numbers = _group_means if metric.of_groups else findings_of_estimate
    measured = design.config.metrics.rankings
    for draft in _with_absences(numbers(estimate, place), estimate):
        subject = draft.finding.subject
        repeated = _repeats_tested_share(metric, subject, design.compared, measured)
        yield without_verdict(draft, reason) if repeated else draft


def _with_absences(
    drafts: Iterable[UncorrectedFinding], estimate: Estimate
) -> Iterator[UncorrectedFinding]:
    """Add to a mean of −∞ for how many queries its group, or any, is absent from the first."""
    measured = [
        part for part in estimate.parts if is_main(part, estimate) and not math.isnan(part.value)
    ]
    for draft in drafts:
        finding = draft.finding
        if finding.value != -math.inf or finding.part_of is not None or len(measured) < 2:
            yield draft
            continue
        if any(part.subject == finding.subject for part in measured):
            yield draft
            continue
        absent = [
            any(
                group.n and group.value in (0.0, -math.inf)
                for group in part.by_group
                if finding.subject in ("", group.group)
            )
            for part in measured
        ]
        counts = {"queries_without_group": sum(absent), "queries_measured": len(measured)}
        yield draft.changed(parameters=plain_parameters({**finding.parameters, **counts}))


def _repeats_tested_share(
    metric: RankingMetric,
    subject: str,
    compared: Sequence[str],
    measured: Mapping[str, RankingMetric],
) -> bool:
    """Return whether of two groups' shares one is tested already: the other follows from it."""
    if len(compared) != 2 or metric.repeats not in measured:
        return False
    if metric.of_groups:
        return subject != compared[0] or any(other.opposes for other in measured.values())
    # The mean of signed numbers over queries has a sign, which that of unsigned ones has not.
    return metric.harm != "either" or bool(subject)


def findings_of_estimate(estimate: Estimate, place: Place) -> Iterator[UncorrectedFinding]:
    """Yield the findings on the mean, on each query and on other targets and nulls."""
    has_parts = _has_parts(estimate)
    main_part = next((part for part in estimate.parts if is_main(part, estimate)), None)
    yield tested(
        whole(
            estimate, place, Family.COMPOSITE,
            by_group=() if main_part is None or has_parts else main_part.by_group,
            shows="" if main_part is None else main_part.shows,
        )
    )  # fmt: skip
    for finding in parts(estimate, place):
        main = is_main(finding.finding, estimate)
        if main and has_parts:
            yield tested(finding)
        elif not main and not finding.finding.subject:
            yield beside(finding)


def _group_means(estimate: Estimate, place: Place) -> Iterator[UncorrectedFinding]:
    """Yield the mean of each group, and whether chance alone would make it as large.

    As a whole, the largest of any group is another metric. A mean of log shares lies below 0 where
    shares vary, so its own sign is no direction.
    """
    k, shares = estimate.params["k"], estimate.params.get("desired", "")
    for draft in parts(estimate, place):
        finding = draft.finding
        if finding.metric == estimate.metric:
            continue
        text, reason = Sentence(), finding.reason
        if math.isfinite(finding.excess) and finding.excess != 0:
            rarer = "rarer" if finding.excess < 0 else "more frequent"
            clause = f" is {rarer} among the first {k} than chance gives"
            text = Sentence(named(finding.subject), clause)
        if not isinstance(shares, str) and not shares[finding.subject] > 0:
            reason = "its desired share is 0, so the skew is infinite"
        finding = replace(finding, metric=estimate.metric, direction=text, reason=reason)
        yield tested(UncorrectedFinding(finding, "either"))


def tested(draft: UncorrectedFinding) -> UncorrectedFinding:
    """Take the test from numbers that chance alone makes infinite."""
    finding = draft.finding
    if math.inf in (finding.value, finding.chance):
        title = spec_of(finding.metric).title
        reason = (
            "a group whose desired share is 0 is among the first, which alone makes "
            f"{title} infinite"
        )
    elif math.isinf(finding.chance):
        reason = "by chance alone a group is often absent among the first, whose skew is −∞"
    elif not math.isnan(finding.value) and math.isnan(finding.p_value):
        reason = finding.reason or "there is nothing to exchange"
    else:
        return draft
    return without_verdict(draft, reason)


def beside(draft: UncorrectedFinding) -> UncorrectedFinding:
    """Return the untested finding of another target or another null."""
    finding = draft.finding
    name = _VERSIONS[finding.variant]
    pooled = finding.variant is Variant.POOL_ORDER
    described = replace(
        finding,
        null=NullHypothesis.POOL_ORDER if pooled else finding.null,
        version=name if finding.version == "default" else f"{finding.version}, {name}",
        family=Family.DESCRIPTIVE,
        reason=finding.reason or "the measure's own target is tested instead",
    )
    return replace(draft, finding=described)


# Images of a query that a person may look at, over all groups and in each.
_SHOWN = 100

ConfigT = TypeVar("ConfigT", bound=QueryAudit)
RankingT = TypeVar("RankingT", bound=RankingAudit)
DesignT = TypeVar("DesignT", bound=Design)


class ByQuery(Audit[ConfigT, RankingData, DesignT]):
    """Audits of images by query; a kind adds how its data are measured."""

    items = "images"

    def load(self, config: ConfigT, models: Models) -> RankingData:
        """Read images, queries and hypotheses, and read or compute every model's scores."""
        images = read_items(config, models)
        return load_scores(config, models, images, self.queries(config, images))

    def queries(self, config: ConfigT, images: Items) -> QueriesConfig | None:
        """Return the section of the queries."""
        return config.queries

    def groups(self, config: ConfigT, data: RankingData) -> list[Groups]:
        """Return the groups of all images."""
        section, columns = config.data, data.images.columns
        units = None if section.unit is None else columns[section.unit]
        return group_sizes.groups_by(
            section.groups, columns, min_size=section.min_group_size, units=units
        )

    def examples(self, config: ConfigT, data: RankingData) -> dict[str, pl.DataFrame]:
        """Return the images that each query ranks first, over all and in each group."""
        codes = self.groups(config, data)[0].codes
        subjects = None if config.data.subject is None else data.images.columns[config.data.subject]
        return {name: scored.best(codes, subjects, _SHOWN) for name, scored in data.models.items()}

    def sizes(self, config: ConfigT, data: RankingData) -> Iterator[group_sizes.Row]:
        """Return the sizes of the groups that the first model compares, of marginals, too."""
        by_name = {design.groups.name: design for design in reversed(self.designs(config, data))}
        for name in reversed(by_name):
            yield from group_sizes.sizes_of(by_name[name].groups)

    def warnings(
        self, config: ConfigT, data: RankingData, designs: Sequence[DesignT]
    ) -> Iterable[Note]:
        """Return which models have few queries."""
        for name, scored in data.models.items():
            if len(scored.queries) < FEW_SUBJECTS:
                yield Note(
                    name,
                    f"{len(scored.queries)} queries or subjects. With fewer than {FEW_SUBJECTS}, "
                    "intervals of their means are wide, and bands of curves over K too narrow.",
                )

    def notes(
        self, config: ConfigT, data: RankingData, designs: Sequence[DesignT]
    ) -> Iterable[Note | str]:
        """Return the notes on images and queries that aren't used."""
        for name, scored in data.models.items():
            yield from scored.notes(name)
        attributes = {name for group in config.data.groups for name in group}
        for column in config.data.columns:
            missing = data.images.counts["missing"][column]
            if column not in attributes and missing:
                yield f"Images without {column} ({missing}) are not compared."


class Rankings(ByQuery[RankingT, RankingDesign]):
    """Audits of rankings."""

    def queries(self, config: RankingT, images: Items) -> QueriesConfig | None:
        """Return the prompts of the config; neutral ones where models run without any."""
        if config.queries is None and config.makes_queries and runs_models(config):
            return _make_neutral_queries(config, images)
        return config.queries

    def designs(self, config: RankingT, data: RankingData) -> list[RankingDesign]:
        """Return every model with every choice of groups; intersections with their marginals."""
        choices: dict[tuple[tuple[str, ...], tuple[str, ...]], None] = {}
        for attributes in config.data.groups:
            choices[attributes, ()] = None
            for name in attributes if config.ranking.marginals and len(attributes) > 1 else ():
                choices[(name,), tuple(other for other in attributes if other != name)] = None
        designs = [
            RankingDesign(model, attributes, data, config, within)
            for model in data.models
            for attributes, within in choices
        ]
        check_designs(designs, config)
        return designs

    def check(self, config: RankingT, data: RankingData, design: RankingDesign) -> None:
        """Refuse fewer than two groups, sets without two groups, and unknown groups."""
        design.check()

    def measure(
        self,
        config: RankingT,
        data: RankingData,
        design: RankingDesign,
        resampling: Resampling | None,
    ) -> Measured:
        """Measure one design at every K, its normalised similarities and its curves."""
        findings: list[UncorrectedFinding] = []
        spreads: list[dict[str, Any]] = []
        at = {"model": design.model, "groups": design.name}
        arguments = design.arguments()
        for metric, version, estimate in _measure_rankings(design, arguments, resampling):
            findings += _findings(metric, estimate, design.at(version), design)
            if _has_parts(estimate) and not metric.of_groups:
                spread = query_distribution(estimate)
                spreads.append({**at, "version": version, "metric": estimate.metric, **spread})
        if config.metrics.has(normalized_similarity_mad):
            similarities = normalized_similarity_mad(**arguments, resampling=resampling)
            findings += findings_of_estimate(similarities, design.at())
        preference = systematic_preference(**arguments, k=design.ks[0], resampling=resampling)
        all_findings, rows = with_preferences(design, preference, findings, resampling)
        tables = tables_of({"query_distributions": spreads, "hypotheses": rows}, _COLUMNS)
        pool_sizes = design.pooled.filter(pl.col("groups") > 1)["n"]
        if config.ranking.curves and (pool_sizes > design.prefixes).any():
            curves = retrieval_curves(
                **arguments, k=design.prefixes, desired=design.desired,
                resampling=resampling_of(config, 1),
            )  # fmt: skip
            tables["curves"] = placed(curves, {**at, "version": design.version})
        return Measured(all_findings, tables, (*alike_notes(design, preference),))

    def details(
        self,
        config: RankingT,
        data: RankingData,
        designs: Sequence[RankingDesign],
        tests: Mapping[str, int],
    ) -> Mapping[str, Json]:
        """Return images, each model's queries and ranked images, and each design.

        Per design: groups, smallest pool, K, prefixes, and the MaxSkew@K that random order alone
        gives with groups of equal size.
        """
        return {
            "images": len(data.images),
            "models": [
                {
                    "model": name, "queries": len(scored.queries), "ranked": len(scored.used),
                    **scored.counts,
                }
                for name, scored in data.models.items()
            ],
            "rankings": [design.planned for design in designs],
        }  # fmt: skip

    def notes(
        self, config: RankingT, data: RankingData, designs: Sequence[RankingDesign]
    ) -> Iterable[Note | str]:
        """Return the notes on images and queries that aren't used, and on small pools."""
        yield from super().notes(config, data, designs)
        options = config.ranking
        if designs_without_target := dict.fromkeys(
            design.name for design in designs if not design.has_desired
        ):
            names = ", ".join(designs_without_target)
            yield f"ranking.desired has no shares of {names}: the pool's are the target."
        designs_without_target = dict.fromkeys(
            design.name for design in designs if design.opposed is None
        )
        for metric in config.metrics.rankings.values() if designs_without_target else ():
            if metric.opposes:
                names = ", ".join(designs_without_target)
                yield f"{metric.spec.title} compares two groups: it isn't measured for {names}."
        for design in designs:
            sizes = design.pool_sizes
            for limit_name, limit in (
                ("K", max(design.ks)),
                ("prefixes", (options.prefixes or 1) - 1),
            ):
                if n_small := sum(n <= limit for n in sizes):
                    yield Note(
                        design.place,
                        f"{n_small} of {len(sizes)} pools have too few images with a "
                        f"group for the {limit_name} ({limit}): not estimable there, and counted.",
                    )
            if not design.exchanges:
                yield Note(
                    design.place,
                    "no set holds images of two groups, so none are exchanged within sets.",
                )


def _make_neutral_queries(config: RankingAudit, images: Items) -> QueriesConfig:
    """Return the neutral prompts of every subject of the images.

    Raises
    ------
    ConfigError
        When no image has a subject, or prefixes make a prompt twice.
    """
    from equipoise.counterfactuals.captions import neutral_prompts

    column = str(config.data.subject)
    subjects = sorted({str(name) for name in images.columns[column] if name is not None})
    if not subjects:
        raise ConfigError(
            f"data.subject: no image has a {column!r}; name the column of the images' subject"
        )
    try:
        table = neutral_prompts(subjects, openings(config.prefixes or ()))
    except InputError as error:
        raise ConfigError(f"prefixes: {error}") from None
    return QueriesConfig(table=table, id="prompt", subject="subject")

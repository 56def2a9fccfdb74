"""The audit of questions: which options a model chooses for whom, and whether it reads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa

from equipoise.audits.against_rest import leaf
from equipoise.audits.columns import Row, stacked
from equipoise.audits.config import parse_config
from equipoise.audits.findings import (
    Place,
    UncorrectedFinding,
    conclude,
    gap_of,
    parts,
    whole,
    withheld,
    without_verdict,
)
from equipoise.audits.group_sizes import groups_by, lacking
from equipoise.audits.kind import Audit, Measured, audit_kind
from equipoise.audits.labels.absent_states import absent_gaps
from equipoise.audits.labels.answer_levels import few_answers
from equipoise.audits.labels.questions.comparison import (
    LEVELS,
    PairedModels,
    SavedNumbers,
    compare,
    read_numbers,
    write_numbers,
)
from equipoise.audits.labels.questions.config import Config
from equipoise.audits.labels.questions.items import QuestionItems, read_questions
from equipoise.audits.labels.questions.numbers import (
    ITEM_METRICS,
    ORDER,
    OUTCOME,
    RIGHT,
    STATES,
    UNANSWERED,
    UNRESOLVED,
    UNSOUND,
    WITHOUT_OPTION,
    ItemNumbers,
    goes_by_position,
    numbers_by_metric,
)
from equipoise.audits.labels.questions.responses import (
    INCOMPLETE,
    UNDECIDED,
    Responses,
    ask,
    read_responses,
    response_table,
)
from equipoise.audits.notes import Note
from equipoise.audits.outputs import Models
from equipoise.config.fields import columns_of
from equipoise.core import (
    Aggregate,
    AuditResult,
    Estimate,
    Facts,
    Family,
    Finding,
    Floats,
    Groups,
    Objects,
    Progress,
    Strings,
    record,
    table_of,
)
from equipoise.core.columns import INTEGER, NUMBER, TEXT
from equipoise.core.finding import MEAN_OF, plain_parameters
from equipoise.core.sentences import Sentence
from equipoise.core.types import FileFacts
from equipoise.core.wording import percent
from equipoise.data.option_answers import ANSWERED
from equipoise.metrics.numbers.means import RowValues, mean_difference, mean_value
from equipoise.metrics.numbers.order_inconsistency import inconsistency_of
from equipoise.metrics.numbers.paired_outcome_gap import paired_outcome_gap
from equipoise.metrics.numbers.variance_share import ORDER as ORDER_OF_OPTIONS
from equipoise.metrics.numbers.variance_share import PICTURE, REST, WORDING, variance_share
from equipoise.metrics.spec import spec_for
from equipoise.stats.exchange import varies

if TYPE_CHECKING:
    from equipoise.stats import Resampling

BY_POSITION = "answers follow the position of the options, not the pictures"
"""Why a model's content has no verdict."""
_READS = "answers don't change more often than random answers"
_NO_HARM = "position by itself harms no group"
_PAIRED = "groups are compared within units, by paired_outcome_gap"
# Standard errors of a difference that a test at 5 % detects with a power of 80 %.
_DETECTABLE = 2.8
# Seconds for an item and draw, and for a design: rough guides, from the example.
_SECONDS_PER_ROW, _SECONDS_PER_DESIGN = 6e-8, 0.15
_MOSTLY = 0.5
_SOURCES: Mapping[str, str] = MappingProxyType({
    "": "Wording and order make", PICTURE: "The picture makes", WORDING: "The wording makes",
    ORDER_OF_OPTIONS: "The order makes", REST: "Noise makes",
})  # fmt: skip
"""What makes up a share of variance, by the part of the metric."""


@record
class QuestionsData:
    """The data of an audit of questions.

    Attributes
    ----------
    items : QuestionItems
    models : mapping of str to Responses
    columns : tuple of str
        Attributes of the groups, and the unit.
    units : ndarray of objects, shape (n,), or None
    inputs, counts : mapping
        Of every file read.
    """

    items: QuestionItems
    models: Mapping[str, Responses]
    columns: Strings
    units: Objects | None
    inputs: Mapping[str, FileFacts]
    counts: Facts

    @property
    def ids(self) -> Objects:
        """Ids of the items."""
        return self.items.ids

    @property
    def saved(self) -> SavedNumbers:
        """Numbers of every item, as a run keeps them."""
        columns = {name: self.items.items.columns[name] for name in self.columns}
        models = {
            name: numbers_by_metric(ItemNumbers(self.items, responses), self.units)
            for name, responses in self.models.items()
        }
        return SavedNumbers(self.ids, columns, models)


@record
class Design:
    """One model's responses, compared between one choice of groups.

    Attributes
    ----------
    model : str
    groups : Groups
        Of all items.
    numbers : ItemNumbers
    units : ndarray of objects, shape (n,), or None
    lacking : mapping of str to int
    config : Config
    first : bool
        Whether these are the model's first groups.
    """

    model: str
    groups: Groups
    numbers: ItemNumbers
    units: Objects | None
    lacking: Mapping[str, int]
    config: Config
    first: bool

    @property
    def resolved_tests(self) -> int:
        """Tests for which p-values are drawn finely enough."""
        compared = int(self.groups.usable.sum())
        return 3 * (1 + (compared if compared > 2 else 0))

    def seconds(self, draws: int) -> float:
        """About how long it takes to measure."""
        return _SECONDS_PER_DESIGN + len(self.numbers.items.ids) * draws * _SECONDS_PER_ROW

    @cached_property
    def paired(self) -> bool:
        """Whether at least half of the items are in units of several groups."""
        if self.units is None:
            return False
        usable = np.append(self.groups.usable, False)[self.groups.codes]
        _, codes = np.unique(self.units[usable].astype(str), return_inverse=True)
        mixed = varies(codes, self.groups.codes[usable])[codes]
        return bool(mixed.mean() >= _MOSTLY) if len(mixed) else False

    @cached_property
    def by_position(self) -> bool:
        """Whether answers change with the order more often than random answers."""
        return goes_by_position(self.numbers, self.units, self.config.resampling.level)

    @property
    def planned(self) -> Facts:
        """The design's row in a plan."""
        smallest = np.sort(self.groups.counts[self.groups.usable])[:2].tolist()
        detectable = 0.5 * _DETECTABLE * sum(1.0 / n for n in smallest) ** 0.5
        return {
            "model": self.model, "groups": self.groups.name, "smallest_groups": smallest,
            "detectable_difference": detectable,
        }  # fmt: skip


@audit_kind("questions")
class Questions(Audit[Config, QuestionsData, Design]):
    """Audits of multiple-choice questions about images."""

    items = "items"

    def load(self, config: Config, models: Models) -> QuestionsData:
        """Read the items, and read or ask for the responses of each model."""
        data = config.data
        images, table = models.read_items(data.pictures, data.columns)
        items = models.once("questions", lambda: read_questions(data, table))
        responses = {
            name: read_responses(name, section, items, config, models.base)
            if section.model is None
            else ask(models, name, section, items, data, images.need_pictures(name))
            for name, section in config.models.items()
        }
        inputs = dict(table.inputs)
        for model in responses.values():
            inputs |= model.inputs
        counts: dict[str, object] = {
            name: {"responses": len(model), "without_item": model.without_item,
                   "states": _count_states(model)}
            for name, model in responses.items()
        }  # fmt: skip
        columns = columns_of(data.groups, data.unit)
        units = None if data.unit is None else table.columns[data.unit]
        return QuestionsData(
            items, responses, columns, units, inputs, {"items": table.counts, "models": counts}
        )

    def groups(self, config: Config, data: QuestionsData) -> list[Groups]:
        """Return the groups of all items."""
        section, coded = config.data, data.items.items.coded
        units = None if section.unit is None else coded[section.unit]
        return groups_by(section.groups, coded, min_size=section.min_group_size, units=units)

    def designs(self, config: Config, data: QuestionsData) -> list[Design]:
        """Return every model with every choice of groups."""
        items, units = data.items.items, data.units
        return [
            Design(
                model,
                groups,
                ItemNumbers(data.items, responses),
                units,
                lacking({name: items.coded[name].codes for name in groups.attributes}),
                config,
                first=place == 0,
            )
            for model, responses in data.models.items()
            for place, groups in enumerate(self.groups(config, data))
        ]

    def measure(
        self, config: Config, data: QuestionsData, design: Design, resampling: Resampling | None
    ) -> Measured:
        """Measure which options groups get, how consistently, and who gets none."""
        place = Place(
            self.name, design.model, design.groups.name, "default", config.resampling.level
        )
        content = [*_measure_content(design, place, resampling)]
        if design.by_position:
            content = [withheld(draft, BY_POSITION) for draft in content]
        drafts = [
            *_measure_order(design, place, resampling), *content,
            *_measure_unanswered(design, place, resampling),
        ]  # fmt: skip
        if design.numbers.are_means:
            drafts = [_of_means(draft) for draft in drafts]
        return Measured(tuple(drafts), _tables(design))

    def combine(
        self, config: Config, data: QuestionsData, measured: Sequence[Measured]
    ) -> Measured:
        """Add every response."""
        together = Measured.together(measured)
        parts = [
            {"responses": response_table(name, responses, data.items)}
            for name, responses in data.models.items()
        ]
        return replace(together, tables={**together.tables, **stacked(parts)})

    def details(
        self,
        config: Config,
        data: QuestionsData,
        designs: Sequence[Design],
        tests: Mapping[str, int],
    ) -> Facts:
        """Return items, requests and responses of each model, and the detectable differences."""
        wordings = len(data.items.wordings)
        requests = wordings * sum(len(question.orders) for question in data.items.questions)
        return {
            "items": len(data.ids),
            "wordings": wordings,
            "requests_of_a_model": requests,
            "comparisons": [design.planned for design in designs],
        }

    def notes(
        self, config: Config, data: QuestionsData, designs: Sequence[Design]
    ) -> Iterable[Note | str]:
        """Return the notes on what counts, and on responses that choose no option."""
        yield (
            "Each item counts once: its number is the mean over its wordings and orders of the "
            "options."
        )
        for name, responses in data.models.items():
            yield from _notes_of(name, responses, data.items)

    def warnings(
        self, config: Config, data: QuestionsData, designs: Sequence[Design]
    ) -> Iterable[Note | str]:
        """Return the models without a test of the order of the options, and why."""
        for design in designs:
            if not design.first or design.numbers.responses.planned:
                continue
            if design.by_position:
                yield Note(
                    design.model,
                    f"{BY_POSITION}, and no share of an option has a verdict. To do: try another "
                    "`prompt`, or another model.",
                )
            if np.isnan(design.numbers.changed).all():
                reason, fix = "Every question has one order of the options", "ask in every order"
                if not design.numbers.in_one_order:
                    reason = "No question has a usable answer in two orders of the options"
                    fix = "read the model's texts in the table `responses`"
                yield Note(
                    design.model,
                    f"{reason}, so the audit can't test whether answers follow their position. "
                    f"To do: {fix}.",
                )

    def save(self, folder: Path, data: QuestionsData) -> None:
        """Write the numbers of every item, which `compare` pairs."""
        write_numbers(folder, data.saved)

    def contrast(
        self,
        config: Config,
        data: QuestionsData,
        findings: Sequence[Finding],
        pair: tuple[Finding, Finding],
    ) -> Finding | None:
        """Compare one number of two models over the items that both have a number for."""
        names, metric = (pair[0].model, pair[1].model), pair[0].metric
        if metric not in LEVELS or pair[0].aggregate is not Aggregate.VALUE:
            return None
        saved = data.saved
        numbers = saved.models[names[0]], saved.models[names[1]]
        drafts = [*PairedModels(config, saved, names, numbers).levels(metric)]
        findings_of_pair = conclude(drafts, config.testing)
        return findings_of_pair[0] if findings_of_pair else None

    def compare(
        self,
        runs: Mapping[str, AuditResult],
        folders: Mapping[str, Path],
        progress: Progress | None = None,
    ) -> AuditResult:
        """Compare models item by item."""
        saved = {}
        for name, run in runs.items():
            source = str(folders[name] / "manifest.json")
            config = parse_config(run.manifest.resolved, source=source)
            assert isinstance(config, Config)  # noqa: S101 - the kind decides the schema
            saved[name] = config, read_numbers(folders[name])
        return compare(saved, runs)

    def examples(self, config: Config, data: QuestionsData) -> dict[str, pl.DataFrame]:
        """Return the items with the option that each response chose."""
        examples = {}
        for name, responses in data.models.items():
            chosen = np.flatnonzero(responses.chose)
            options = [
                data.items.questions[item].options[option]
                for item, option in zip(
                    responses.item[chosen].tolist(), responses.option[chosen].tolist(), strict=True
                )
            ]
            is_outcome = responses.option[chosen] == data.items.outcome[responses.item[chosen]]
            frame = pl.DataFrame({
                "place": responses.item[chosen],
                "outcome": np.where(is_outcome, "outcome", "other option"),
                "label": pl.Series(options, dtype=pl.String),
            })  # fmt: skip
            examples[name] = frame.unique(maintain_order=True).with_columns(subject=pl.lit(""))
        return examples


def _of_means(draft: UncorrectedFinding) -> UncorrectedFinding:
    """Return a draft that says that the number of an item is a mean over its responses."""
    parameters = {**draft.finding.parameters, MEAN_OF: "responses"}
    return draft.changed(parameters=plain_parameters(parameters))


def _count_states(responses: Responses) -> dict[str, int]:
    states, counts = np.unique(responses.state.astype(str), return_counts=True)
    return dict(zip(states.tolist(), counts.tolist(), strict=True))


def _notes_of(name: str, responses: Responses, items: QuestionItems) -> Iterator[Note]:
    """Yield what became of a model's responses that choose no option."""
    if responses.without_item:
        yield Note(name, f"{responses.without_item} responses are about no item and are not used.")
    states = _count_states(responses)
    unsure = {state: states[state] for state in WITHOUT_OPTION if states.get(state)}
    if unsure:
        listed = ", ".join(f"{n} {state}" for state, n in unsure.items())
        yield Note(name, f"responses that choose no option count in no share of one: {listed}.")
    if n_incomplete := len({*responses.item[responses.state == INCOMPLETE].tolist()}):
        yield Note(
            name,
            f"{n_incomplete} items lack a response in some wording or order, since asking failed. "
            "No number counts them. The table `response_states` has them by group.",
        )
    expected = len(items.wordings) * sum(len(question.orders) for question in items.questions)
    if not responses.planned and len(responses) < expected:
        yield Note(
            name, f"{len(responses)} responses to {expected} questions of every wording and order."
        )


def _measure_order(
    design: Design, place: Place, resampling: Resampling | None
) -> Iterator[UncorrectedFinding]:
    """Yield how often answers change with the order, and the sources of their variance."""
    metrics, numbers = design.config.metrics, design.numbers
    everyone = replace(place, groups="")
    if _n_numbers(numbers.changed) > 1:
        if design.first:
            yield _order_level(design, everyone, resampling)
        gap = mean_difference(
            ORDER, numbers.changed, design.groups, units=design.units,
            resampling=resampling, rng=design.config.resampling.seed,
        )  # fmt: skip
        yield without_verdict(parts(gap, place)[0], _NO_HARM)
    if metrics.has(variance_share) and design.first:
        units = numbers.items.ids if design.units is None else design.units
        estimate = variance_share(
            numbers.cube, units=units, resampling=resampling, rng=design.config.resampling.seed
        )
        for draft in (whole(estimate, everyone, Family.DESCRIPTIVE), *parts(estimate, everyone)):
            source = draft.finding.subject
            about = _SOURCES.get(
                source, f"The interaction of {source.replace(' × ', ' and ')} makes"
            )
            without = without_verdict(draft, "a share of variance compares no groups")
            yield without.changed(direction=Sentence(about))


def _order_level(design: Design, place: Place, resampling: Resampling | None) -> UncorrectedFinding:
    """Return how often answers change with the order; tested if they follow the position."""
    numbers = design.numbers
    estimate = inconsistency_of(
        numbers.changed, numbers.n_options, units=design.units, resampling=resampling
    )
    level = whole(estimate, place, Family.COMPOSITE)
    if estimate.chance is None or not design.by_position:
        return without_verdict(level, _READS)
    change, random = percent(estimate.value), percent(estimate.chance.mean)
    return level.changed(
        reason="more answers change with the order of the options than of answers at random",
        direction=Sentence(f"{change} of them change with the order, and {random} would at random"),
    )


def _n_numbers(values: Floats) -> int:
    return int((~np.isnan(values)).sum())


def _measure_content(
    design: Design, place: Place, resampling: Resampling | None
) -> Iterator[UncorrectedFinding]:
    """Yield the share of the outcome, accuracy and unsound answers, and their gaps."""
    metrics, numbers = design.config.metrics, design.numbers
    paired = design.paired and metrics.has(paired_outcome_gap)
    paired &= _n_numbers(numbers.outcome) > 1
    for draft in _measure_outcome(design, place, resampling, paired=paired):
        parameters = {**draft.finding.parameters, "outcome": numbers.items.outcome_name}
        yield draft.changed(parameters=parameters)
    if not np.isnan(numbers.right).all():
        yield from _level_and_gap(RIGHT, numbers.right, design, place, resampling)
    if not np.isnan(numbers.unsound).all():
        yield from _level_and_gap(UNSOUND, numbers.unsound, design, place, resampling)


def _measure_outcome(
    design: Design, place: Place, resampling: Resampling | None, *, paired: bool
) -> Iterator[UncorrectedFinding]:
    """Yield the share of the outcome, and its gap within units or over all items."""
    outcome = design.numbers.outcome
    for draft in _level_and_gap(OUTCOME, outcome, design, place, resampling):
        is_gap = draft.finding.aggregate is not Aggregate.VALUE
        if not (paired and draft.finding.group):
            yield without_verdict(draft, _PAIRED) if paired and is_gap else draft
    if paired:
        gap = paired_outcome_gap(
            outcome, design.groups, _units(design), resampling=resampling,
            rng=design.config.resampling.seed,
        )  # fmt: skip
        yield from _gap_and_leaves(gap, place)


def _units(design: Design) -> Objects:
    """Return the units of a paired design."""
    assert design.units is not None  # noqa: S101 - as `paired` says
    return design.units


def _level_and_gap(
    metric: str, values: Floats, design: Design, place: Place, resampling: Resampling | None
) -> Iterator[UncorrectedFinding]:
    """Yield the mean over all items, then the gap between groups, and each against the rest."""
    level = mean_value(metric, values, units=design.units, resampling=resampling)
    if design.first:
        yield whole(level, replace(place, groups=""), Family.DESCRIPTIVE)
    if _n_numbers(values) < 2:
        return
    gap = mean_difference(
        metric, values, design.groups, units=design.units, resampling=resampling,
        rng=design.config.resampling.seed,
    )  # fmt: skip
    yield from _gap_and_leaves(gap, place)


def _gap_and_leaves(gap: Estimate, place: Place) -> Iterator[UncorrectedFinding]:
    """Yield a gap that is tested, and each group against all others."""
    gap_finding, *leaves = parts(gap, place)
    yield replace(gap_finding, harm=gap.harm).changed(family=Family.COMPOSITE)
    spec = spec_for(gap.metric, gap.aggregate)
    for draft in leaves:
        yield leaf(draft, spec)


def _measure_unanswered(
    design: Design, place: Place, resampling: Resampling | None
) -> Iterator[UncorrectedFinding]:
    """Yield gaps in the shares of responses that choose no option, by what stands in its place."""
    numbers = design.numbers
    shares = {metric: ITEM_METRICS[metric](numbers) for metric in (UNANSWERED, UNRESOLVED)}
    if design.first:
        yield from few_answers(
            numbers.in_state(*WITHOUT_OPTION), design.groups, design.units,
            replace(place, groups=""),
            resampling, of="responses to {n} items",
        )  # fmt: skip
    shares |= {metric: numbers.in_state(state) for metric, state in STATES.items()}
    occurring = {metric: values for metric, values in shares.items() if np.nansum(values) > 0}
    no_answer = {metric: values for metric, values in occurring.items() if metric != UNRESOLVED}
    alone = len(no_answer) == 2 and _same(no_answer)
    for metric, values in occurring.items():
        for draft in _level_and_gap(metric, values, design, place, resampling):
            family = draft.finding.family
            if not alone or metric in (UNANSWERED, UNRESOLVED) or family is Family.DESCRIPTIVE:
                yield draft
            elif family is Family.COMPOSITE:
                # One state only: its gap is that of all responses without an answer.
                yield replace(draft, fold=gap_of(UNANSWERED, ""))
    absent = [metric for metric in shares if metric not in occurring]
    asked = ~np.isnan(shares[UNANSWERED])
    if asked.any():
        yield from absent_gaps(absent, asked, design.groups, design.units, place, resampling)
    for metric in absent if design.first else ():
        level = mean_value(metric, shares[metric], units=design.units, resampling=resampling)
        yield whole(level, replace(place, groups=""), Family.DESCRIPTIVE)


def _same(shares: Mapping[str, Floats]) -> bool:
    first, second = shares.values()
    return bool(np.array_equal(first, second, equal_nan=True))


def _tables(design: Design) -> dict[str, pa.Table]:
    """Return shares by wording and position, and states of responses, for the page."""
    tables = {"response_states": _state_table(design), "outcome_by_choice": _choice_table(design)}
    return {name: table for name, table in tables.items() if len(table)}


def _state_table(design: Design) -> pa.Table:
    """Count the responses of each group by state."""
    responses, rows = design.numbers.responses, list[Row]()
    codes = design.groups.codes[responses.item]
    for code, group in enumerate(design.groups.names):
        states = responses.state[codes == code]
        for state in sorted({*responses.state.tolist()}, key=_rank_state):
            n = int((states == state).sum())
            rows.append({
                "model": design.model, "groups": design.groups.name, "group": group,
                "state": state, "count": n, "n": len(states),
                "share": n / len(states) if len(states) else None,
            })  # fmt: skip
    columns = dict.fromkeys(("model", "groups", "group", "state"), TEXT)
    return table_of(rows, {**columns, "count": INTEGER, "n": INTEGER, "share": NUMBER})


def _rank_state(state: str) -> tuple[bool, str]:
    """Return the rank of a state in a table: chosen options come first."""
    return state not in (ANSWERED, UNDECIDED), state


def _choice_table(design: Design) -> pa.Table:
    """Return the share of the outcome of each group by wording and by its position."""
    numbers, rows = design.numbers, list[Row]()
    by_position = [("position", str(place + 1), column) for place, column in
                   enumerate(numbers.by_position.T)]  # fmt: skip
    by_wording = [("wording", name, column) for name, column in
                  zip(numbers.items.wordings, numbers.by_wording.T, strict=True)]  # fmt: skip
    for choice, value, column in (*by_wording, *by_position):
        means = RowValues.of(column, design.groups, design.units, shares=True).by_group(
            design.config.resampling.level
        )
        rows += [
            {
                "model": design.model, "groups": design.groups.name, "choice": choice,
                "value": value, "group": part.group, "share": part.value, "low": part.low,
                "high": part.high, "n": part.n,
            }
            for part in means if part.n
        ]  # fmt: skip
    columns = dict.fromkeys(("model", "groups", "choice", "value", "group"), TEXT)
    numbers_of_rows = dict.fromkeys(("share", "low", "high"), NUMBER)
    return table_of(rows, {**columns, **numbers_of_rows, "n": INTEGER})

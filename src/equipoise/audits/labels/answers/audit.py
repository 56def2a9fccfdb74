"""The audit of answers: who gets none, and who gets which."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from equipoise.audits.against_rest import against_rest
from equipoise.audits.cells import Mix, Rate
from equipoise.audits.columns import Row, numbers_of
from equipoise.audits.config import group_name
from equipoise.audits.findings import (
    Place,
    UncorrectedFinding,
    direction,
    gap_of,
    parts,
    whole,
    without_verdict,
)
from equipoise.audits.kind import Audit, Measured, audit_kind
from equipoise.audits.labels.absent_states import (
    UNANSWERED,
    absent_gaps,
    counted_rows,
    unanswered_share,
)
from equipoise.audits.labels.answer_levels import expected_answers, few_answers, one_answer
from equipoise.audits.labels.answers.config import (
    STATES,
    Config,
    FigureConfig,
    ModelConfig,
    rates_of_states,
)
from equipoise.audits.labels.designs import (
    LabelDesign,
    groups_of,
    label_gaps,
    list_comparisons,
    not_yet_known,
    notes_of_rows,
    notes_of_targets,
    notes_of_texts,
    right_or_wrong,
    state_gaps,
    with_folds,
)
from equipoise.audits.labels.label_gap import label_gap_of
from equipoise.audits.labels.mix import mix_of
from equipoise.audits.labels.unresolved import with_unresolved, worksheet_of
from equipoise.audits.notes import Note
from equipoise.audits.outputs import Models
from equipoise.config.fields import located
from equipoise.config.files import nearest
from equipoise.core import (
    Aggregate,
    ConfigError,
    DataError,
    Facts,
    Family,
    Floats,
    Groups,
    IntervalKind,
    Objects,
    record,
    table_of,
)
from equipoise.core.columns import INTEGER, NUMBER, TEXT
from equipoise.core.sentences import Sentence, named
from equipoise.core.types import FileFacts
from equipoise.core.wording import shortened
from equipoise.data import (
    ItemSource,
    PredictionData,
    Reading,
    join_predictions,
    load_items,
    read_predictions,
    read_table,
)
from equipoise.data.labels import read_labels
from equipoise.data.resolver import NO_CLASS, UNRESOLVED
from equipoise.evidence.examples import NO_ANSWER
from equipoise.metrics.labels import Counts, count
from equipoise.metrics.labels.accuracy import Accuracy
from equipoise.metrics.labels.effect_sizes import EffectSizes
from equipoise.metrics.measure import measure
from equipoise.metrics.rankings.subjects import correlation
from equipoise.metrics.spec import spec_of
from equipoise.metrics.vectors.predicted_labels import ASIDE, label_concentration, spread
from equipoise.report.text import listed, plural

if TYPE_CHECKING:
    from equipoise.data.labels import Outputs
    from equipoise.stats.resampling import Resampling

RARER = "(rarer answers)"
"""Answers that are too rare to be compared by themselves, together."""

# Seconds for a design and for a cell of a resampled table: rough guides, from the example.
_SECONDS_PER_DESIGN, _SECONDS_PER_CELL = 0.08, 2e-7
# Raw texts that are listed for each answer, and answers that a note lists.
_TEXTS, _LISTED = 5, 10
# Unresolved texts that are listed for each model and question.
_UNRESOLVED_TEXTS = 1000


@record
class AnswersData:
    """The data of an audit of answers.

    Attributes
    ----------
    rows : PredictionData
        Images by id, with one set of answers per model and question; without a true answer all
        targets are missing.
    questions : mapping of str to (str, str)
        Model and question of each set of answers; the question is "" where there is one only.
    figures : mapping of str to mapping of str to float
        Figure by answer as the table has it, by name.
    inputs, counts : mapping
        Of every file read.
    """

    rows: PredictionData
    questions: Mapping[str, tuple[str, str]]
    figures: Mapping[str, Mapping[str, float]]
    inputs: Mapping[str, FileFacts]
    counts: Facts

    @property
    def ids(self) -> Objects:
        """Ids of the images."""
        return self.rows.ids


@dataclass(frozen=True, eq=False, kw_only=True)
class AnswersDesign(LabelDesign):
    """One version of a model's answers to a question, compared between one set of groups.

    Attributes
    ----------
    config : Config
    question : str
        Its name; "" where there is one question only.
    leads : bool
        Whether it is tested; raw texts beside their normalised form are only shown.
    first : bool
        Whether it is the first design of its model, with which figures are counted as tests.
    """

    config: Config
    question: str = ""
    leads: bool = True
    first: bool = False

    @property
    def shown(self) -> str:
        """The version as findings call it: the question and the version, where several."""
        version = "" if self.version == "default" and self.question else self.version
        return ", ".join(part for part in (self.question, version) if part)

    @property
    def different(self) -> int:
        """How many different answers there are."""
        named = [name not in NO_CLASS for name in self.label.vocabulary]
        return int((self.label.counts[named] > 0).sum())

    @cached_property
    def frequent(self) -> list[str]:
        """The answers that are compared by themselves, the most frequent first."""
        compared = np.append(self.groups.usable, False)[self.groups.codes]
        return self.config.answers.frequent(self.label.take(compared))

    @cached_property
    def silent(self) -> bool:
        """Whether no row of a group has an answer."""
        return not ((self.label.codes >= 0) & (self.groups.codes >= 0)).any()

    @cached_property
    def unusable(self) -> Floats:
        """1 of each row without an answer or with one of no class; NaN where asking failed."""
        asked = np.isin(self.state.astype(str), ("answered", *STATES))
        no_class = np.any([self.label.equals(name) for name in NO_CLASS], axis=0)
        usable = (self.label.codes >= 0) & ~no_class
        return np.where(asked, ~usable, np.nan)

    @cached_property
    def by_answer(self) -> Counts:
        """Counts of answers by group, every answer by itself."""
        return count(self.label, self.label, self.groups, units=self.units)

    @cached_property
    def pooled(self) -> Counts:
        """Counts of answers by group, with rare and excess answers pooled."""
        if len(self.frequent) == self.different:
            return self.by_answer
        compared = {*self.frequent, *NO_CLASS}
        names = [name if name in compared else RARER for name in self.label.vocabulary]
        label = self.label.relabel(names)
        return count(label, label, self.groups, units=self.units)

    @property
    def figures(self) -> list[str]:
        """Names of the figures that the answers are compared with."""
        figures = self.config.figures.items() if self.leads and not self.silent else ()
        return [name for name, figure in figures if figure.first in self.allowed(figure)]

    def allowed(self, figure: FigureConfig) -> list[str]:
        """Return the compared groups if the figure may be about one of them."""
        about = self.groups.name if figure.groups is None else group_name(figure.groups)
        names = zip(self.groups.names, self.groups.usable.tolist(), strict=True)
        return [name for name, usable in names if usable and about == self.groups.name]

    @property
    def resolved_tests(self) -> int:
        """Tests for which p-values are drawn finely enough."""
        figures = len(self.config.figures) if self.first else 0
        compared = self.frequent if self.config.metrics.answer_gap else []
        return figures + (4 + len(compared) if self.leads else 0)

    def seconds(self, draws: int) -> float:
        """About how long it takes to measure."""
        return _SECONDS_PER_DESIGN + self.different * len(self.groups) * draws * _SECONDS_PER_CELL


_FIGURES = {
    **dict.fromkeys(("model", "groups", "version", "figure", "first", "answer"), TEXT),
    "n": INTEGER,
    **dict.fromkeys(("outside", "lean"), NUMBER),
}
"""Columns of the table of answers beside external figures."""


@audit_kind("answers")
class Answers(Audit[Config, AnswersData, AnswersDesign]):
    """Audits of free-text answers to questions about images."""

    def load(self, config: Config, models: Models) -> AnswersData:
        """Read the images, and read or ask for the answers to each question."""
        data, base = config.data, models.base
        images = models.read_images(data.pictures, data.columns)
        labels = data.labels(models.source(images, data.columns))
        questions: dict[str, tuple[str, str]] = {}
        outputs: dict[str, tuple[Outputs, Reading]] = {}
        for name, section in config.models.items():
            answered = (
                _read(name, section, labels.id, base)
                if section.model is None
                else _ask(models, name, section, images.need_pictures(name))
            )
            for question, answers in answered:
                key = f"{name}, {question}" if question else name
                questions[key] = name, question
                outputs[key] = (
                    answers,
                    section.reading(name, base, open_vocabulary=True, may_decline=True),
                )
        truth = models.once("labels", lambda: read_labels(labels))
        rows = join_predictions(truth, outputs, max_unmatched=data.max_unmatched)
        inputs, figures = dict(rows.inputs), {}
        for name, figure in config.figures.items():
            table = located(figure.table, base)
            items = load_items(
                ItemSource(table, figure.subject, (figure.value,), **figure.csv), subject="figures"
            )
            values = zip(items.ids, numbers_of(items, figure.value).tolist(), strict=True)
            figures[name] = {answer: value for answer, value in values if not math.isnan(value)}
            inputs |= items.inputs
        return AnswersData(rows, questions, figures, inputs, rows.counts)

    def groups(self, config: Config, data: AnswersData) -> list[Groups]:
        """Return the groups of all images."""
        return groups_of(config.data, data.rows)

    def examples(self, config: Config, data: AnswersData) -> dict[str, pl.DataFrame]:
        """Return the images with the answer to each question, or without one."""
        parts: dict[str, list[pl.DataFrame]] = {}
        for key, (model, question) in data.questions.items():
            labels = data.rows.models[key]
            answers = [*labels.versions.values()][-1].coded
            rows = pl.DataFrame(
                {
                    "place": np.arange(len(data.ids)),
                    "subject": pl.Series(answers.values.tolist(), dtype=pl.String),
                    "state": pl.Series(labels.coded_state.values.tolist(), dtype=pl.String),
                }
            )
            unanswered = pl.col("subject").is_null() & pl.col("state").is_in(STATES)
            outcome = (
                pl.when(unanswered).then(pl.lit(NO_ANSWER)).otherwise(pl.lit(question or "answer"))
            )
            label = pl.when(unanswered).then("state").otherwise("subject")
            rows = rows.select("place", "subject", outcome=outcome, label=label)
            parts.setdefault(model, []).append(rows.drop_nulls("label"))
        return {model: pl.concat(frames) for model, frames in parts.items()}

    def designs(self, config: Config, data: AnswersData) -> list[AnswersDesign]:
        """Return every combination of model, question, version and groups.

        Raises
        ------
        ConfigError
            When the first group of a figure is not compared.
        """
        designs: list[AnswersDesign] = []
        for key, version, groups, _, rows in list_comparisons(config.data, data.rows):
            model, question = data.questions[key]
            design = AnswersDesign(
                model, version, groups, data.rows, rows, config=config, key=key,
                question=question, leads=version == [*data.rows.models[key].versions][-1],
                first=all(earlier.model != model for earlier in designs),
            )  # fmt: skip
            designs.append(design)
        for name, figure in config.figures.items():
            allowed = dict[str, None]()
            for design in designs:
                allowed |= dict.fromkeys(design.allowed(figure))
            if figure.first not in allowed:
                raise ConfigError(
                    f"figures.{name}.first: given {figure.first!r}. Allowed: {', '.join(allowed)}"
                    f"{nearest(figure.first, allowed)}"
                )
        return designs

    def mix(self, config: Config, design: AnswersDesign) -> Mix | None:
        """Return the rates over all rows, and the classes and attributes of the rows."""
        if not design.leads:
            return None
        question = design.question or "default"
        mix = mix_of(design, version=design.shown, state_version=question, with_subject=False)
        states = (
            Rate(metric, "", question, (design.state == state).astype(np.int32))
            for state, metric in rates_of_states().items()
        )
        gaps = _rates_of_answers(design) if mix.strata[""].vocabulary else ()
        return replace(mix, rates=(*mix.rates, *states, *gaps))

    def measure(
        self,
        config: Config,
        data: AnswersData,
        design: AnswersDesign,
        resampling: Resampling | None,
    ) -> Measured:
        """Measure one design with everything that the config asks for."""
        place = design.place(self.name, config.resampling.level, design.shown)
        drafts: list[UncorrectedFinding] = []
        if not design.silent:
            design_resampling = resampling if design.leads else None
            answered = map(
                _without_spread_verdict, _measure_answers(design, place, design_resampling)
            )
            whole_list = RARER not in design.pooled.classes
            folded = with_folds(
                answered,
                classes=design.pooled.classes if whole_list else (),
                determined=design.determined,
            )
            gaps = [*folded]
            drafts += with_unresolved([*gaps, *against_rest(gaps, design.pooled)], design.pooled)
        if not design.leads:
            reason = "wording: the content of the texts is tested instead"
            untested = (
                without_verdict(draft, reason) for draft in drafts if not draft.finding.subject
            )
            return Measured(tuple(untested))
        question = replace(place, version=design.question or "default")
        drafts = [*_measure_unanswered(design, question, resampling), *drafts]
        if design.groups.name == group_name(config.data.groups[0]):
            drafts.append(unanswered_share(design, replace(question, groups=""), resampling))
            drafts += _measure_levels(design, config, place, resampling)
        points: list[Row] = []
        notes = []
        for name in design.figures:
            comparison = _compare_with_figure(design, place, name, data.figures[name])
            drafts += comparison.drafts
            points += comparison.points
            if unmatched := comparison.unmatched:
                notes.append(
                    f"{design.model}, {place.version}: {name} has no figure for {len(unmatched)} "
                    f"answers: {listed([*map(shortened, unmatched)], _LISTED)}."
                )
        tables = {"answer_states": _state_table(design), **worksheet_of(design)}
        if not design.silent:
            tables["answers"] = _answer_table(design)
        if points:
            tables["figures"] = table_of(points, _FIGURES)
        return Measured(tuple(drafts), tables, tuple(notes))

    def combine(self, config: Config, data: AnswersData, measured: Sequence[Measured]) -> Measured:
        """Add the raw texts behind each answer, and those without one."""
        together = Measured.together(measured)
        tables = {**together.tables, **_texts(data, config), **_unresolved_texts(data)}
        return replace(together, tables=tables)

    def details(
        self,
        config: Config,
        data: AnswersData,
        designs: Sequence[AnswersDesign],
        tests: Mapping[str, int],
    ) -> Facts:
        """Return rows, rows and answers of each model, and the smallest gaps to be seen.

        Per model, question and groups: the smallest difference in the share of an answer of 10 %
        that the two smallest groups would show with a power of 80 %.
        """
        models, detectable = [], []
        for design in designs:
            if not design.leads:
                continue
            place = {"model": design.model, "question": design.question}
            n_tests = max(tests[design.model], 1)
            difference = design.detectable(0.1, config.testing.alpha, n_tests)
            detectable.append(
                place | {"groups": design.groups.name, "share_difference": difference}
            )
            if design.groups.name == designs[0].groups.name:
                answered = design.labels.rows("answered")
                counts: dict[str, int | None] = {
                    "answered": answered,
                    "unanswered": len(design.state) - answered,
                    "without_answers": len(design.rows) - len(design.state),
                    "different_answers": design.different,
                    "compared": len(design.frequent),
                }
                unknown = not_yet_known(design.labels)
                models.append(place | (dict.fromkeys(counts) if unknown else counts))
        return {"rows": len(data.ids), "models": models, "detectable": detectable}

    def notes(
        self, config: Config, data: AnswersData, designs: Sequence[AnswersDesign]
    ) -> Iterable[Note | str]:
        """Return the notes on rows without an answer, and on answers that are pooled."""
        yield from notes_of_targets(designs)
        yield from notes_of_texts(data.rows.models)
        yield (
            "Shares of an answer are of the rows that have one; rows without an answer are "
            "compared by themselves."
        )
        yield from notes_of_rows(data.rows.models)
        options = config.metrics.label_concentration
        for design in designs:
            if not_yet_known(design.labels):
                continue
            different, pooled = design.different, design.different - len(design.frequent)
            if design.leads and design.silent:
                yield Note(
                    f"{design.key}, {design.groups.name}", "no row of a group has an answer."
                )
            elif design.leads and options is not None and different <= options.k:
                least = plural(options.k + 1, "different answer")
                yield Note(design.key, f"the label concentration needs at least {least}.")
            if design.leads and pooled:
                yield Note(
                    design.key,
                    f"{pooled} of {different} different answers are given too seldom "
                    "to be compared by themselves, and are pooled.",
                )


def _ask(
    models: Models, name: str, section: ModelConfig, pictures: Any
) -> Iterator[tuple[str, Outputs]]:
    """Ask a model each question about each image."""
    key = "questions" if section.questions else "question"
    for question, text in (section.questions or {"": section.question or ""}).items():
        on = f"images, {question}" if question else "images"
        outputs = models.answer(name, section, pictures, text, on=on)
        yield question, replace(outputs, source=f"models.{name}.{key}", rows=len(outputs.ids))


def _read(
    name: str, section: ModelConfig, id_column: str, base: Path
) -> Iterator[tuple[str, Outputs]]:
    """Read the answers to each question."""
    source = section.source(base, prediction=section.answer)
    column = section.by_question
    if column is None:
        yield "", read_predictions(source, model=name, id_column=id_column)
        return
    read = read_table(
        source.table,
        texts=tuple(
            dict.fromkeys((section.id or id_column, str(section.answer), column, *source.where))
        ),
        role=f"answers of {name}",
        encoding=section.encoding,
        delimiter=section.delimiter,
    )
    questions = read.texts[column]
    empty = questions.is_null().arg_true()
    if len(empty):
        raise DataError(
            "no question",
            file=read.name,
            column=column,
            row=int(empty[0]) + 1,
            expected="the name of the question in every row",
            fix="name the question, or remove the row",
        )
    frame = pl.DataFrame(dict(read.texts))
    for question in questions.unique().sort().to_list():
        part = replace(source, table=frame.filter(pl.col(column) == question))
        outputs = read_predictions(part, model=f"{name}, {question}", id_column=id_column)
        # Parts of one table are no files of their own.
        yield question, replace(outputs, inputs={read.name: read.digest})


def _without_spread_verdict(draft: UncorrectedFinding) -> UncorrectedFinding:
    """Describe ends that leave out their own value as a spread, not an interval."""
    finding = draft.finding
    inside = math.isnan(finding.ci_low) or finding.ci_low <= finding.value <= finding.ci_high
    if inside or finding.interval is not IntervalKind.PERCENTILE:
        return draft
    return draft.changed(method=spread(finding.method, ASIDE), interval=IntervalKind.SPREAD)


def _measure_answers(
    design: AnswersDesign, place: Place, resampling: Resampling | None
) -> Iterator[UncorrectedFinding]:
    """Measure the answers of the rows that have one."""
    metrics, seed = design.config.metrics, design.config.resampling.seed
    gaps = [] if metrics.answer_gap is None else [*_measure_gaps(design, place, resampling)]
    if metrics.cramers_v is not None:
        effect = EffectSizes(
            min_expected=metrics.cramers_v.min_expected, formulation="independence"
        )
        estimate = measure(design.by_answer, [effect], resampling, seed)[0]
        draft = whole(estimate, place, Family.COMPOSITE, metric=effect.statistic)
        about = gaps[0].finding.direction if gaps else Sentence()
        dropped = (excluded for part in estimate.parts for excluded in part.excluded)
        excluded = (*draft.finding.excluded, *dropped)
        yield draft.changed(direction=about, excluded=excluded)
    yield from gaps
    options = metrics.label_concentration
    if options is not None and design.different > options.k:
        # How far the answers of each group pile up on a few.
        estimate = label_concentration(
            design.label,
            design.groups,
            k=options.k,
            units=design.units,
            resampling=resampling,
            rng=seed,
        )
        share, *_ = estimate.parts
        shows = f"share of the {options.k} most frequent answers"
        yield whole(estimate, place, Family.COMPOSITE, by_group=share.by_group, shows=shows)
        for draft in parts(estimate, place):
            shape = spec_of(draft.finding.metric)
            reported = shape.name != estimate.metric and place.audit in shape.kinds
            if design.leads and reported:
                yield without_verdict(draft, "a shape of counts, without a chance level")
    if design.config.data.target is not None and not design.wording:
        overall = measure(design.overall, [Accuracy(Aggregate.VALUE, None)], resampling, seed)[0]
        differences = [
            Accuracy(Aggregate.DIFFERENCE, "rows"),
            Accuracy(Aggregate.DIFFERENCE, "rows", "overall"),
        ]
        accuracy_gaps = measure(design.counts, differences, resampling, seed)
        rates = accuracy_gaps[0].parts[0].by_group
        yield whole(overall, place, Family.DESCRIPTIVE, by_group=rates)
        for gap in accuracy_gaps:
            yield whole(gap, place, Family.COMPOSITE, by_group=rates)


def _rates_of_answers(design: AnswersDesign) -> Iterator[Rate]:
    """Yield the share of each frequent answer; the gap of all answers is that of the widest."""
    gap_metric = label_gap_of(design.config.audit)
    for answer in design.frequent:
        outcome = np.where(design.label.codes >= 0, design.label.equals(answer), -1)
        for subject in (answer, ""):
            yield Rate(gap_metric, subject, design.shown, outcome.astype(np.int32))


def _measure_gaps(
    design: AnswersDesign, place: Place, resampling: Resampling | None
) -> Iterator[UncorrectedFinding]:
    """Yield the gap of all answers together, then of each answer."""
    frequent, seed = {*design.frequent}, design.config.resampling.seed
    gap_metric, shows = label_gap_of(place.audit), "share of answers"
    for draft in label_gaps(
        design.pooled, frequent, gap_metric, place, resampling, seed, shows=shows
    ):
        alone = draft.finding.subject in ("", *frequent)
        yield draft if alone else without_verdict(draft, "many different answers together")


def _measure_levels(
    design: AnswersDesign, config: Config, place: Place, resampling: Resampling | None
) -> Iterator[UncorrectedFinding]:
    """Yield findings about the answers to all images, whatever the group."""
    everyone = replace(place, groups="")
    yield from few_answers(
        design.unusable, design.groups, design.units,
        replace(everyone, version=design.question or "default"), resampling, of="{n} images",
    )  # fmt: skip
    yield from one_answer(design, everyone)
    expected = {
        design.predictions.resolve(answer): share for answer, share in config.expected.items()
    }
    if expected:
        seed = config.resampling.seed
        yield from expected_answers(design, everyone, expected, resampling, seed)


def _measure_unanswered(
    design: AnswersDesign, place: Place, resampling: Resampling | None
) -> Iterator[UncorrectedFinding]:
    """Yield shares of rows with right, wrong and no answers, and why they have none, by group."""
    states, seed = design.state, design.config.resampling.seed
    kinds = {
        state: metric for state, metric in rates_of_states().items() if (states == state).any()
    }
    gaps = [*map(_about_rows, right_or_wrong(design, place, resampling, seed))]
    shares = [*gaps, *against_rest(gaps)]
    yield from shares if design.silent else with_unresolved(shares, design.pooled)
    states_of_rows = []
    if kinds:
        states_of_rows = state_gaps(design, states, kinds, place, resampling, seed)
    states_of_rows = [*map(_about_rows, states_of_rows)]
    if len(kinds) == 1:
        states_of_rows = [
            replace(draft, fold=gap_of(gaps[0].finding.metric, "")) for draft in states_of_rows
        ]
    yield from [*states_of_rows, *against_rest(states_of_rows)]
    present = {draft.finding.metric for draft in (*gaps, *states_of_rows)}
    absent = {UNANSWERED, *rates_of_states().values()} - present
    yield from absent_gaps(
        sorted(absent), counted_rows(design), design.groups, design.units, place, resampling
    )


def _about_rows(draft: UncorrectedFinding) -> UncorrectedFinding:
    """Make a finding about a state of rows one about all rows."""
    about = direction(draft.finding.metric, "", draft.finding.by_group)
    return draft.changed(subject="", family=Family.COMPOSITE, direction=about)


class _FigureComparison(NamedTuple):
    """Answers compared with a figure from outside.

    Attributes
    ----------
    drafts : list of UncorrectedFinding
    points : list of dict
        A row for each answer with its figure and its lean, in [0, 1]: the share of the first
        group's answers, over that share and the rest's together; 0.5 where both get it equally
        often, whatever the groups' sizes.
    unmatched : list of str
        Frequent answers without a figure.
    """

    drafts: list[UncorrectedFinding]
    points: list[Row]
    unmatched: list[str]


def _compare_with_figure(
    design: AnswersDesign, place: Place, name: str, figures: Mapping[str, float]
) -> _FigureComparison:
    """Correlate the lean of answers to a group with a figure from outside."""
    config, counts = design.config, design.by_answer
    first = config.figures[name].first
    figures = {design.predictions.resolve(answer): figure for answer, figure in figures.items()}
    table = counts.by_prediction(counts.observed)[0]
    mine = table[:, design.groups.names.index(first)]
    in_rest = [large and other != first for other, large
            in zip(design.groups.names, counts.groups.usable, strict=True)]  # fmt: skip
    rest_counts = table[:, in_rest].sum(axis=1)
    place_row = {**_place_columns(design), "figure": name, "first": first}
    points: list[Row] = []
    unmatched = []
    for answer, a, b in zip(counts.classes, mine.tolist(), rest_counts.tolist(), strict=True):
        if answer not in design.frequent or a + b == 0:
            continue
        if answer not in figures:
            unmatched.append(answer)
            continue
        share, other = a / mine.sum(), b / rest_counts.sum()
        numbers = {"outside": figures[answer], "lean": share / (share + other), "n": round(a + b)}
        points.append(place_row | {"answer": answer} | numbers)
    if not points:
        return _FigureComparison([], [], sorted(unmatched))
    leans = [point["lean"] for point in points]
    outside = [point["outside"] for point in points]
    estimate = correlation(leans, outside, level=config.resampling.level)
    verb = "rises" if estimate.value > 0 else "falls"
    about = Sentence()
    if not math.isnan(estimate.value):
        about = Sentence("the lean to ", named(first), f" {verb} with {name}")
    _, spearman = parts(estimate, place)
    pearson = whole(estimate, place, Family.COMPOSITE)
    spearman = without_verdict(spearman, "Pearson's correlation is tested instead")
    drafts = [draft.changed(subject=name, direction=about) for draft in (pearson, spearman)]
    return _FigureComparison(drafts, points, sorted(unmatched))


def _place_columns(design: AnswersDesign) -> Row:
    return {"model": design.model, "groups": design.groups.name, "version": design.shown}


def _answer_table(design: AnswersDesign) -> pa.Table:
    counts, rows = design.pooled, []
    table = counts.by_prediction(counts.observed)[0]
    totals, right = table.sum(axis=0), dict[str, Floats]()
    if design.data.classes:
        right = dict(
            zip(design.counts.classes, design.counts.hits(design.counts.observed)[0], strict=True)
        )
    for place in np.argsort(-table.sum(axis=1), kind="stable").tolist():
        answer = counts.classes[place]
        for group, name in enumerate(counts.groups.names):
            n, total = round(table[place, group]), round(totals[group])
            rows.append(_place_columns(design) | {
                "answer": answer, "group": name, "count": n, "n": total,
                "share": n / total if total else None,
                "right": round(right[answer][group]) if answer in right else 0 if right else None,
            })  # fmt: skip
    return table_of(
        rows,
        {
            "model": TEXT,
            "groups": TEXT,
            "version": TEXT,
            "answer": TEXT,
            "group": TEXT,
            "count": INTEGER,
            "n": INTEGER,
            "right": INTEGER,
            "share": NUMBER,
        },
    )


def _state_table(design: AnswersDesign) -> pa.Table:
    """Count the rows of each group by state."""
    states, rows = design.state, []
    kinds = [state for state in ("answered", *STATES) if (states == state).any()]
    for group, name in enumerate(design.groups.names):
        mine = states[design.groups.codes == group]
        for state in kinds:
            n = int((mine == state).sum())
            rows.append({
                "model": design.model, "groups": design.groups.name, "question": design.question,
                "group": name, "state": state, "count": n, "n": len(mine),
                "share": n / len(mine) if len(mine) else None,
            })  # fmt: skip
    return table_of(
        rows,
        {
            "model": TEXT,
            "groups": TEXT,
            "question": TEXT,
            "group": TEXT,
            "state": TEXT,
            "count": INTEGER,
            "n": INTEGER,
            "share": NUMBER,
        },
    )


def _texts(data: AnswersData, config: Config) -> dict[str, pa.Table]:
    """Return the raw texts behind each answer, the most frequent first, as the table `texts`."""
    rows = []
    for key, (model, question) in data.questions.items():
        versions = data.rows.models[key].versions
        if "raw" not in versions:
            continue
        raw, answers = versions["raw"].coded, [*versions.values()][-1].coded
        has_text = raw.codes >= 0
        pairs = np.stack([answers.codes[has_text], raw.codes[has_text]], axis=1)
        distinct, counts = np.unique(pairs, axis=0, return_counts=True)
        for answer in config.answers.frequent(answers):
            pairs_of_answer = np.flatnonzero(distinct[:, 0] == answers.vocabulary.index(answer))
            ranked = pairs_of_answer[np.argsort(-counts[pairs_of_answer], kind="stable")]
            for rank, index in enumerate(ranked[:_TEXTS].tolist(), 1):
                rows.append({
                    "model": model, "question": question, "answer": answer,
                    "text": raw.vocabulary[distinct[index, 1]], "rank": rank,
                    "count": int(counts[index]), "texts": len(pairs_of_answer),
                })  # fmt: skip
    columns = {
        "model": TEXT,
        "question": TEXT,
        "answer": TEXT,
        "text": TEXT,
        "rank": INTEGER,
        "count": INTEGER,
        "texts": INTEGER,
    }
    return {"texts": table_of(rows, columns)} if rows else {}


def _unresolved_texts(data: AnswersData) -> dict[str, pa.Table]:
    """Return the texts that are no class, neutral answer or refusal, the most frequent first."""
    rows = []
    for key, (model, question) in data.questions.items():
        versions = [*data.rows.models[key].versions.values()]
        raw, answers = versions[0].coded, versions[-1].coded
        counts = raw.take(answers.equals(UNRESOLVED)).counts
        ranked = np.argsort(-counts, kind="stable")[:_UNRESOLVED_TEXTS]
        answered = int((answers.codes >= 0).sum())
        rows += [
            {
                "model": model, "question": question, "text": raw.vocabulary[code],
                "count": int(counts[code]), "share": float(counts[code] / answered),
            }
            for code in ranked.tolist() if counts[code]
        ]  # fmt: skip
    columns = {
        "model": TEXT,
        "question": TEXT,
        "text": TEXT,
        "count": INTEGER,
        "share": NUMBER,
    }
    return {"unresolved_texts": table_of(rows, columns)} if rows else {}

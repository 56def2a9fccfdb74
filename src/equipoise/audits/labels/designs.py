"""Labels by group: designs over model, version and groups, and their findings."""

import math
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from equipoise.audits.config import LabelledImagesConfig
from equipoise.audits.findings import (
    Place,
    UncorrectedFinding,
    direction,
    fact_of,
    gap_of,
    parts,
    whole,
    without_verdict,
)
from equipoise.audits.group_sizes import groups_by, lacking
from equipoise.audits.notes import Note
from equipoise.audits.outputs import NOT_YET_KNOWN
from equipoise.core import (
    Aggregate,
    Booleans,
    DataError,
    Estimate,
    Family,
    Finding,
    Groups,
    Objects,
    Part,
    Strings,
    record,
)
from equipoise.core.wording import shortened
from equipoise.data import Coded, ModelPredictions, PredictionData, Predictions
from equipoise.data.resolver import AMBIGUOUS, NEUTRAL_ANSWER, NO_CLASS, UNRESOLVED
from equipoise.metrics.labels import Counts, count
from equipoise.metrics.labels.rates import MOST_FOLDED, DemographicParity, rate_named
from equipoise.metrics.measure import Measure, measure
from equipoise.metrics.spec import SPECS, spec_of_finding
from equipoise.stats import Resampling, minimum_difference

OTHER = "(no class)"
"""Labels that are no class of the target, together."""


@record
class LabelDesign:
    """One model's labels in one version, compared between one set of groups.

    Attributes
    ----------
    model : str
    version : str
        Of the labels in the data.
    groups : Groups
        Of the rows.
    data : PredictionData
    rows : ndarray of bool, shape (n,)
        Labelled rows for which the model has a row at all, answered or not.
    key : str
        Of the model's labels in `data.models`; the model's name unless given.
    """

    model: str
    version: str
    groups: Groups
    data: PredictionData
    rows: Booleans
    key: str = ""

    @property
    def labels(self) -> ModelPredictions:
        """The model's labels of all rows, in every version."""
        return self.data.models[self.key or self.model]

    @property
    def predictions(self) -> Predictions:
        """The labels of this version."""
        return self.labels.versions[self.version]

    @property
    def target(self) -> Coded:
        """True classes of the rows."""
        return self.data.coded_target.take(self.rows)

    @property
    def label(self) -> Coded:
        """First-ranked labels of the rows."""
        return self.predictions.coded.take(self.rows)

    @property
    def units(self) -> Coded | None:
        """Unit of each row, where the data name one."""
        unit = self.data.coded_unit
        return None if unit is None else unit.take(self.rows)

    @property
    def state(self) -> Objects:
        """State of each row in words: "answered", "missing", "unknown" or "refused"."""
        return np.asarray(self.labels.coded_state.take(self.rows).values)

    @property
    def lacking(self) -> dict[str, int]:
        """Rows in no group, by the attributes that they lack."""
        coded = self.data.coded_attributes
        return lacking({name: coded[name].codes[self.rows] for name in self.groups.attributes})

    @cached_property
    def determined(self) -> bool:
        """Whether every group holds one true class only: a model without mistakes differs too."""
        complete = (self.target.codes >= 0) & (self.label.codes >= 0) & (self.groups.codes >= 0)
        return bool(complete.any()) and self.counts.determines_target

    def splits_as(self, other: Groups) -> bool:
        """Whether groups of fewer attributes are the same within each true class.

        An attribute that determines the target, or is the target, splits no class.
        """
        if not {*other.attributes} < {*self.groups.attributes}:
            return False
        compared, cells = [], []
        for groups in (self.groups, other):
            usable = np.append(groups.usable, False)[groups.codes] & (self.target.codes >= 0)
            compared.append(usable)
            codes = (self.target.codes * len(groups) + groups.codes)[usable]
            cells.append(np.count_nonzero(np.bincount(codes)))
        # Groups of more attributes split those of fewer, or are as many and the same.
        return cells[0] == cells[1] and bool((compared[0] == compared[1]).all())

    @cached_property
    def counts(self) -> Counts:
        """Counts of the first-ranked label of each row."""
        return count(self.target, self.label, self.groups, units=self.units)

    @cached_property
    def overall(self) -> Counts:
        """Counts without groups: every row with a true class and a label."""
        return count(self.target, self.label, one_group(int(self.rows.sum())), units=self.units)

    @cached_property
    def wording(self) -> bool:
        """Whether the labels are raw texts; another version holds their classes."""
        return self.version not in self.labels.versions_with_verdicts

    @cached_property
    def by_class(self) -> Counts:
        """Counts of classes; texts that are none are counted together."""
        label, not_classes = self.label, (*NO_CLASS, NEUTRAL_ANSWER)
        classes = {*self.data.classes, *self.predictions.classes, *not_classes}
        if {*label.vocabulary} <= classes:
            return self.counts
        label = label.relabel(
            [label_name if label_name in classes else OTHER for label_name in label.vocabulary]
        )
        return count(self.target, label, self.groups, units=self.units)

    def ranked(self) -> Iterator[tuple[str, Counts]]:
        """Yield counts of the top k labels and of probabilities, where the model gives them."""
        labels, target, units = self.predictions, self.target, self.units
        if labels.coded_top is not None:
            top = labels.coded_top.take(self.rows)
            name = f"{self.version}, top {top.codes.shape[1]}"
            yield name, count(target, top, self.groups, units=units)
        if labels.probabilities is not None:
            scores = labels.probabilities[self.rows]
            codes = np.broadcast_to(np.arange(scores.shape[1], dtype=np.int32), scores.shape)
            answered: Booleans = np.asarray(np.isfinite(scores).all(axis=1))
            columns = Coded(np.where(answered[:, None], codes, -1), labels.probability_classes)
            weights = np.where(answered[:, None], scores, 0.0)
            name = f"{self.version}, probabilities"
            yield name, count(target, columns, self.groups, weights=weights, units=units)

    def detectable(self, share: float, alpha: float, tests: int) -> float:
        """Return the smallest difference from a share that the two smallest groups would show."""
        first, second = np.sort(self.groups.counts[self.groups.usable])[:2].tolist()
        return minimum_difference(first, second, share, alpha=alpha, tests=tests)

    def place(self, audit: str, level: float, version: str | None = None) -> Place:
        """Return where numbers of this design are measured."""
        return Place(audit, self.model, self.groups.name, version or self.version, level)


def one_group(n: int) -> Groups:
    """Return the groups of rows that are all in one."""
    return Groups(("all",), (("all",),), np.zeros(n, np.int32))


def groups_of(
    section: LabelledImagesConfig, data: PredictionData, rows: Booleans | None = None
) -> list[Groups]:
    """Return the groups of all or some rows for each choice of attributes."""
    selected: Any = slice(None) if rows is None else rows
    coded = {name: attribute.take(selected) for name, attribute in data.coded_attributes.items()}
    units = None if data.coded_unit is None else data.coded_unit.take(selected)
    return groups_by(section.groups, coded, min_size=section.min_group_size, units=units)


class LabelComparison(NamedTuple):
    """Groups to compare in one version of a model's labels.

    Attributes
    ----------
    key : str
        Of the model's labels in `data.models`.
    version : str
    groups : Groups
        Of the rows.
    all_groups : sequence of Groups
        Groups of the same rows by each choice of attributes.
    rows : ndarray of bool, shape (n,)
        Rows with output of the model.
    """

    key: str
    version: str
    groups: Groups
    all_groups: Sequence[Groups]
    rows: Booleans


def list_comparisons(
    section: LabelledImagesConfig, data: PredictionData
) -> Iterator[LabelComparison]:
    """Yield the comparisons of every model, version and choice of groups.

    Raises
    ------
    DataError
        When there are more classes than can be measured in about a minute.
    """
    if (n_classes := len(data.classes)) > MOST_CLASSES:
        raise DataError(
            f"{n_classes:,} classes",
            file=next(iter(data.inputs), None),
            expected=f"at most {MOST_CLASSES:,} classes",
            fix="merge classes with `map`, or leave the rows of rare classes out of the table",
        )
    groups_by_rows: dict[bytes, list[Groups]] = {}
    for key, model in data.models.items():
        rows = ~model.coded_state.equals("unmatched")
        # Mostly every model has all rows, and groups are large.
        packed = np.packbits(rows).tobytes()
        all_groups = groups_by_rows[packed] = groups_by_rows.get(packed) or groups_of(
            section, data, None if rows.all() else rows
        )
        for version in model.versions:
            for groups in all_groups:
                yield LabelComparison(key, version, groups, all_groups, rows)


MOST_CLASSES = 20_000
"""Classes of a target that can be measured."""

_STATES = {
    "unmatched": "have no output of the model and are not used",
    "missing": "have an empty output and count in no accuracy or share",
    "unknown": "were answered with “do not know” and count in no accuracy or share",
    "refused": "were refused and count in no accuracy or share",
}


def notes_of_rows(models: Mapping[str, ModelPredictions]) -> Iterator[Note | str]:
    """Yield how many rows have no label, or no output that counts."""
    for name, model in models.items():
        if model.without_label:
            yield Note(
                name, f"{model.without_label} outputs have no labelled row and are not used."
            )
        for state, consequence in _STATES.items():
            if n := model.rows(state):
                yield Note(name, f"{n} labelled rows {consequence}.")


def not_yet_known(model: ModelPredictions) -> bool:
    """Whether a plan has placeholders for the answers of a model that is yet to run."""
    first = next(iter(model.versions.values()))
    return first.coded.vocabulary == (NOT_YET_KNOWN,)


def notes_of_texts(models: Mapping[str, ModelPredictions]) -> Iterator[Note | str]:
    """Yield how many texts name no class for sure, or several; none of answers yet to be given."""
    for name, model in models.items():
        if not_yet_known(model):
            continue
        for version, predictions in model.versions.items():
            sizes = predictions.coded.sizes()
            unresolved, ambiguous = sizes.get(UNRESOLVED, 0), sizes.get(AMBIGUOUS, 0)
            if unresolved or ambiguous:
                yield Note(
                    f"{name}, {version}",
                    f"{unresolved} texts name no class for sure, and "
                    f"{ambiguous} several. The worksheet lists the former: enter their classes and "
                    "give it as `synonyms`.",
                )


def notes_of_targets(designs: Iterable[LabelDesign]) -> Iterator[Note | str]:
    """Yield notes on groups that determine the target."""
    for name in dict.fromkeys(design.groups.name for design in designs if design.determined):
        yield Note(
            name,
            "the groups determine the target. A model without mistakes gives them "
            "different labels, so shares of labels get no verdict, and accuracy is tested over all "
            "rows only. Differences in accuracy say which classes are found less often: bias "
            "against people only where the target is an attribute of people, such as gender.",
        )


class MeasuredLabels(NamedTuple):
    """Findings of measured counts.

    Attributes
    ----------
    findings : list of UncorrectedFinding
    effects : tuple of Part
        Effect size of each class.
    gaps : dict of str to tuple of Part
        By metric, the gap of each class.
    left_out : dict of str to int
        By metric, the number of classes that can't be estimated and have no finding.
    """

    findings: list[UncorrectedFinding]
    effects: tuple[Part, ...]
    gaps: dict[str, tuple[Part, ...]]
    left_out: dict[str, int]


def findings_of(
    counts: Counts,
    measures: Sequence[Measure],
    place: Place,
    resampling: Resampling | None,
    seed: int,
    *,
    texts: Counts | None = None,
    positive: str | None = None,
) -> MeasuredLabels:
    """Measure counts.

    Effect sizes are of `texts`, where every label has a column of its own. Where a class is the
    positive one, rates and gaps are of it alone.
    """
    of_labels = [measure for measure in measures if not measure.of_mistakes]
    of_texts = [measure for measure in measures if measure.of_mistakes]
    measured = [
        *zip(of_labels, measure(counts, of_labels, resampling, seed), strict=True),
        *zip(of_texts, measure(texts or counts, of_texts, resampling, seed), strict=True),
    ]
    summaries = [(metric, estimate) for metric, estimate in measured if metric.whole]
    gaps = {
        estimate.metric: estimate.parts
        for metric, estimate in summaries
        if metric.by_class and not metric.of_mistakes
    }
    effects = [
        part
        for metric, estimate in summaries
        if metric.by_class and metric.of_mistakes
        for part in estimate.parts
    ]
    left_out = dict[str, int]()
    findings = list[UncorrectedFinding]()
    for metric, estimate in measured:
        estimable = estimate
        if metric.by_class and len(counts.classes) > MOST_FOLDED:
            estimable, omitted = _estimable(estimate)
            left_out |= omitted
        findings += _findings(metric, estimable, counts, place, positive)
    return MeasuredLabels(findings, tuple(effects), gaps, left_out)


def _estimable(estimate: Estimate) -> tuple[Estimate, Mapping[str, int]]:
    """Leave out the parts that can't be estimated, and count them by metric."""
    if estimate.by is None:
        return estimate, {}
    estimable = np.isfinite(estimate.by["value"].to_numpy())
    omitted = Counter(estimate.by["metric"].filter(~estimable).to_pylist())
    return replace(estimate, by=estimate.by.filter(estimable)), omitted


def _findings(
    metric: Measure, estimate: Estimate, counts: Counts, place: Place, positive: str | None
) -> Iterator[UncorrectedFinding]:
    """Yield the findings of an estimate: the whole, and its parts where they are findings."""
    subjects = () if positive is None or metric.of_mistakes else (positive, "")
    if metric.whole:
        yield _whole(metric, estimate, counts, place, subjects)
    for draft in parts(estimate, place) if metric.by_class else ():
        if not subjects or draft.finding.subject in subjects:
            yield draft


def _whole(
    metric: Measure, estimate: Estimate, counts: Counts, place: Place, subjects: Strings
) -> UncorrectedFinding:
    """Return the finding of an estimate as a whole, with the groups of its widest part."""
    if estimate.by is None or metric.no_test:
        tested = estimate.chance is not None
        return whole(estimate, place, Family.COMPOSITE if tested else Family.DESCRIPTIVE)
    two = subjects and len(estimate.parts) == 2
    candidates = [part for part in estimate.parts if part.subject in subjects or not two]
    worst = widest_part(candidates) if candidates else Part("", "", math.nan)
    fact = next(iter(metric.facts(counts)), None)
    return whole(
        estimate, place, Family.COMPOSITE, metric=fact and fact.metric, by_group=worst.by_group,
        about=worst.subject, shows=worst.shows,
    )  # fmt: skip


def notes_left_out(place: Place, left_out: Mapping[str, int]) -> Iterator[Note | str]:
    """Say of how many classes there is no finding."""
    counts = ", ".join(
        f"{metric} of {n_omitted:,}" for metric, n_omitted in left_out.items() if n_omitted
    )
    if counts:
        yield Note(
            f"{place.model}, {place.groups}",
            f"classes that can't be estimated, mostly for lack of rows, have no finding: {counts}.",
        )


def state_gaps(
    design: LabelDesign,
    states: Objects,
    metrics: Mapping[str, str],
    place: Place,
    resampling: Resampling | None,
    seed: int,
) -> list[UncorrectedFinding]:
    """Return the gaps between groups in the shares of rows in each state.

    Parameters
    ----------
    design : LabelDesign
    states : ndarray of str objects, shape (rows of the design,)
        None of rows that don't count.
    metrics : mapping of str to str
        State to metric; states that it lacks have no finding.
    place, resampling, seed
        Of the measurement.
    """
    counts = count(states, states, design.groups, units=design.units)
    estimate = measure(counts, [DemographicParity()], resampling, seed)[0]
    return [
        draft
        for state, metric in metrics.items()
        for draft in parts(estimate, place, metric=metric)
        if draft.finding.subject == state
    ]


def label_gaps(
    counts: Counts,
    labels: Collection[str],
    metric: str,
    place: Place,
    resampling: Resampling | None,
    seed: int,
    *,
    shows: str = "",
) -> list[UncorrectedFinding]:
    """Return the largest gap in the share of labels that are kept, then the gap of every label."""
    estimate = measure(counts, [DemographicParity()], resampling, seed)[0]
    label_parts = [part for part in estimate.parts if part.subject in labels]
    if not label_parts:
        return []
    widest = widest_part(label_parts)
    gap = whole(
        estimate, place, Family.COMPOSITE, metric=metric, by_group=widest.by_group,
        about=shortened(widest.subject), shows=shows,
    )  # fmt: skip
    leaves = parts(estimate, place, metric=metric)
    ends = ((leaf.finding.subject, leaf.finding.by_group) for leaf in leaves)
    words = (direction(shows or metric, shortened(name), groups) for name, groups in ends)
    return [gap, *(leaf.changed(direction=text) for leaf, text in zip(leaves, words, strict=True))]


def right_or_wrong(
    design: LabelDesign, place: Place, resampling: Resampling | None, seed: int
) -> list[UncorrectedFinding]:
    """Return the gaps in the shares of right, wrong and unanswered rows, which sum to 1.

    None where every row has an answer, so that accuracy says the same. Only rows with a true
    class count, where there are true classes.
    """
    state = design.labels.coded_state.take(design.rows)
    answered, target = state.equals("answered"), design.target
    if answered.all():
        return []
    states = np.where(answered, "answered", "unanswered").astype(object)
    if target.vocabulary:
        right = target.values == design.label.values
        states[answered] = np.where(right, "right", "wrong")[answered]
        states[target.codes < 0] = None
    return state_gaps(design, states, rates_of_states(), place, resampling, seed)


def rates_of_states() -> dict[str, str]:
    """Return the metric that is the share of rows in each state, answered or not."""
    return {spec.state: name for name, spec in SPECS.items() if spec.state and not spec.of_answered}


def widest_part(candidates: Sequence[Part]) -> Part:
    """Return the part with the largest value."""
    return max(candidates, key=lambda part: -1.0 if math.isnan(part.value) else part.value)


def _follows_base_rates(finding: Finding) -> bool:
    """Whether base rates decide a finding where each group holds one true class only."""
    if spec_of_finding(finding).of_base_rates:
        return True
    return bool(finding.parameters.get("formulation", "separation") != "separation")


def _within_class(finding: Finding, classes: Sequence[str]) -> bool:
    """Whether a finding compares groups within each true class alone."""
    declared = spec_of_finding(finding).within_class
    conditional = declared == "always" or (declared == "two classes" and len(classes) == 2)
    return conditional and not _follows_base_rates(finding)


def with_folds(
    drafts: Iterable[UncorrectedFinding],
    *,
    classes: Sequence[str],
    determined: bool,
    equivalent_groups: str = "",
) -> Iterator[UncorrectedFinding]:
    """Fold findings that repeat another, and untest findings that base rates decide.

    Parameters
    ----------
    drafts : iterable of UncorrectedFinding
        Of one design, or of two models on the same rows.
    classes : sequence of str
        Every label that occurs as truth or prediction.
    determined : bool
        Whether every group holds one true class only.
    equivalent_groups : str
        Other groups that within each true class are the same; "" without any.
    """
    has_many_classes, is_binary = len(classes) > MOST_FOLDED, len(classes) == 2
    for draft in drafts:
        fact, notes = fact_of(draft.finding), [group.note for group in draft.finding.by_group]
        metric, subject, spec = fact.metric, fact.subject, spec_of_finding(draft.finding)
        rate = rate_named(metric)
        if is_binary and subject and rate is not None and rate.numerators == {"right"}:
            # One of two classes against the other is the accuracy of all.
            continue
        if determined and _follows_base_rates(draft.finding):
            reason = "the groups determine the target: a model without mistakes has this gap too"
            yield without_verdict(draft, reason)
        elif equivalent_groups and _within_class(draft.finding, classes):
            yield replace(draft, fold=fact._replace(groups=equivalent_groups))
        elif spec.fold and not (subject and has_many_classes):
            worst = fact.aggregate is Aggregate.WORST_GROUP
            yield replace(draft, fold=gap_of(spec.fold, subject, "overall" if worst else ""))
        elif fact.compared_to == "overall" and notes.count("") == 2:
            yield replace(draft, fold=fact._replace(compared_to=""))
        elif is_binary and spec.mirror and subject:
            opposite = classes[subject == classes[0]]
            same = spec.mirror == metric and subject == classes[0]
            yield draft if same else replace(draft, fold=gap_of(spec.mirror, opposite))
        elif not spec.fold:
            yield draft


def without_repeats(
    drafts: Iterable[tuple[UncorrectedFinding, Hashable]],
) -> Iterator[UncorrectedFinding]:
    """Take the verdict from drafts that stand on the same numbers as one of other groups before.

    Each draft comes with the numbers that it stands on; None where they are not known.
    """
    groups_by_numbers: dict[Hashable, str] = {}
    for draft, numbers in drafts:
        finding = draft.finding
        if finding.family is Family.DESCRIPTIVE or numbers is None:
            yield draft
            continue
        groups = groups_by_numbers.setdefault(numbers, finding.groups)
        same = groups == finding.groups
        yield draft if same else without_verdict(draft, f"the same numbers as for {groups}")

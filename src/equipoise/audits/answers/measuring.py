"""What is measured of one design of an audit of answers, and the tables beside the findings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from equipoise.audits.audit import Measured
from equipoise.audits.columns import Row, table_of
from equipoise.audits.engines.labels import state_gap, widest_part
from equipoise.audits.findings import (
    Place,
    UncorrectedFinding,
    direction,
    parts,
    whole,
    without_verdict,
)
from equipoise.core.finding import Family
from equipoise.core.wording import shortened
from equipoise.metrics.counts import count
from equipoise.metrics.counts.accuracy import Accuracy
from equipoise.metrics.counts.effect_sizes import EffectSizes
from equipoise.metrics.counts.rates import DemographicParity
from equipoise.metrics.measure import measure
from equipoise.metrics.values.outside import correlation
from equipoise.metrics.vectors.predicted_labels import ASIDE, label_concentration, spread

if TYPE_CHECKING:
    from equipoise.audits.answers.audit import AnswersData, AnswersDesign
    from equipoise.audits.answers.config import Config
    from equipoise.stats.resampling import Resampling

_RATES = {"unknown": "unknown_rate", "refused": "refused_rate", "missing": "empty_rate"}
# Raw texts that are listed for each answer, and answers that a note lists.
_TEXTS, _LISTED = 5, 10


def measure_design(
    one: AnswersDesign, figures: Mapping[str, Mapping[str, float]], resampling: Resampling | None
) -> Measured:
    """Measure one design with everything that the config asks for.

    Parameters
    ----------
    one : AnswersDesign
    figures : mapping of str to mapping of str to float
        Figures from outside by answer, by name.
    resampling : Resampling or None
    """
    place = one.place("answers", one.config.resampling.level, one.shown)
    drafts = [] if one.silent else [*map(_spread_aside, _answered(one, place, resampling))]
    if not one.leads:
        why = "raw texts, shown beside their normalised form, which is tested"
        shown = (without_verdict(draft, why) for draft in drafts if not draft.finding.subject)
        return Measured(tuple(shown))
    asked = replace(place, version=one.question or "default")
    drafts = [*_unanswered(one, asked, resampling), *drafts]
    points: list[Row] = []
    notes = []
    for name in one.figures:
        compared, some, lost = _against_figure(one, place, name, figures[name])
        drafts += compared
        points += some
        if lost:
            where = ", ".join(part for part in (one.model, place.version) if part)
            more = ", …" if len(lost) > _LISTED else ""
            notes.append(
                f"{where}: {name} has no figure for {len(lost)} answers: "
                f"{', '.join(map(shortened, lost[:_LISTED]))}{more}."
            )
    tables = {"answer_states": _state_table(one)}
    if not one.silent:
        tables["answers"] = _answer_table(one)
    if points:
        columns = "model groups version figure first answer n outside lean"
        tables["figures"] = table_of(points, columns, number="outside lean", whole="n")
    return Measured(tuple(drafts), tables, tuple(notes))


def _spread_aside(draft: UncorrectedFinding) -> UncorrectedFinding:
    """Call ends that leave out their own value what they are: no interval."""
    finding = draft.finding
    if math.isnan(finding.ci_low) or finding.ci_low <= finding.value <= finding.ci_high:
        return draft
    return replace(draft, finding=replace(finding, method=spread(finding.method, ASIDE)))


def _answered(
    one: AnswersDesign, place: Place, resampling: Resampling | None
) -> Iterator[UncorrectedFinding]:
    """Measure the answers of the rows that have one."""
    metrics, seed = one.config.metrics, one.config.resampling.seed
    gaps = [] if metrics.answer_gap is None else [*_gaps(one, place, resampling)]
    if metrics.cramers_v is not None:
        effect = EffectSizes("cramers_v", metrics.cramers_v.min_expected, False, "independence")
        estimate = measure(one.by_answer, [effect], resampling, seed)[0]
        draft = whole(estimate, place, Family.COMPOSITE, metric="cramers_v")
        about = gaps[0].finding.direction if gaps else ""
        dropped = (excluded for part in estimate.parts for excluded in part.excluded)
        excluded = (*draft.finding.excluded, *dropped)
        yield replace(draft, finding=replace(draft.finding, direction=about, excluded=excluded))
    yield from gaps
    if metrics.label_concentration is not None and one.different > metrics.label_concentration.k:
        yield from _concentration(one, place, metrics.label_concentration.k, resampling)
    if metrics.accuracy is not None and one.config.data.target is not None:
        overall = measure(one.overall, [Accuracy("accuracy", None)], resampling, seed)[0]
        gap = measure(one.counts, [Accuracy("accuracy_gap", "rows")], resampling, seed)[0]
        rates = gap.parts[0].by_group
        yield whole(overall, place, Family.DESCRIPTIVE, by_group=rates)
        yield whole(gap, place, Family.COMPOSITE, by_group=rates)


def _gaps(
    one: AnswersDesign, place: Place, resampling: Resampling | None
) -> Iterator[UncorrectedFinding]:
    """Yield how often each answer is given to each group, all answers together first."""
    counts, frequent = one.pooled, {*one.frequent}
    parity = DemographicParity()
    estimate = measure(counts, [parity], resampling, one.config.resampling.seed)[0]
    own = [part for part in estimate.parts if part.subject in frequent]
    if not own:
        return
    widest = widest_part(own)
    yield whole(
        estimate,
        place,
        Family.COMPOSITE,
        metric="answer_gap",
        by_group=widest.by_group,
        about=f"“{shortened(widest.subject)}”",
        shows="share of answers",
    )
    for draft in parts(estimate, place, metric="answer_gap"):
        finding = draft.finding
        about = direction("share of answers", f"“{shortened(finding.subject)}”", finding.by_group)
        named = replace(draft, finding=replace(finding, direction=about))
        why = "" if finding.subject in frequent else "many different answers together"
        if len(own) == len(counts.classes) == 2 and finding.subject == own[1].subject:
            why = f"the same gap as of {shortened(own[0].subject)}, which is tested"
        yield without_verdict(named, why) if why else named


def _concentration(
    one: AnswersDesign, place: Place, k: int, resampling: Resampling | None
) -> Iterator[UncorrectedFinding]:
    """Yield how far the answers of each group pile up on a few."""
    units = None if one.units is None else one.units.values
    estimate = label_concentration(
        one.answers.values, one.groups, k=k, units=units, resampling=resampling,
        rng=one.config.resampling.seed,
    )  # fmt: skip
    share, skewness, *_ = estimate.parts
    shows = f"share of the {k} most frequent answers"
    yield whole(estimate, place, Family.COMPOSITE, by_group=share.by_group, shows=shows)
    for draft in parts(estimate, place):
        if one.leads and draft.finding.metric == skewness.metric:
            yield without_verdict(draft, "a shape of counts, without a chance level")


def _unanswered(
    one: AnswersDesign, place: Place, resampling: Resampling | None
) -> Iterator[UncorrectedFinding]:
    """Yield whether a group is left without an answer more often than another, and how."""
    states = one.state
    kinds = [state for state in _RATES if (states == state).any()]
    if one.config.metrics.unanswered_rate is None or not kinds:
        return
    without: npt.NDArray[Any] = np.where(states == "answered", "answered", "unanswered")
    rates = {"unanswered_rate": (without, "unanswered")}
    rates |= {_RATES[state]: (np.where(states == state, state, "other"), state) for state in kinds}
    seed = one.config.resampling.seed
    for metric, (labels, state) in rates.items():
        counts = count(labels, labels, one.groups, units=one.units)
        draft = state_gap(counts, state, metric, place, resampling, seed)
        about = direction(metric, "", draft.finding.by_group)
        finding = replace(draft.finding, subject="", family=Family.COMPOSITE, direction=about)
        draft = replace(draft, finding=finding)
        same = metric != "unanswered_rate" and len(kinds) == 1
        why = "the same rows as unanswered_rate, which is tested"
        yield without_verdict(draft, why) if same else draft


def _against_figure(
    one: AnswersDesign, place: Place, name: str, known: Mapping[str, float]
) -> tuple[list[UncorrectedFinding], list[Row], list[str]]:
    """Correlate the lean of answers to a group with a figure from outside.

    Returns
    -------
    drafts : list of UncorrectedFinding
    points : list of dict
        A row for each answer with its figure and its lean, in [0, 1]: the share of the first
        group's answers, over that share and the rest's together; 0.5 where both get it equally
        often, whatever the groups' sizes.
    lost : list of str
        Frequent answers without a figure.
    """
    config, counts = one.config, one.by_answer
    first, normal = config.figures[name].first, config.models[one.model].normalize
    if normal is not None:
        steps = normal.steps
        known = {steps(answer): figure for answer, figure in known.items()}
    table = counts.by_prediction(counts.observed)[0]
    mine = table[:, one.groups.names.index(first)]
    rest = [large and other != first for other, large
            in zip(one.groups.names, counts.groups.usable, strict=True)]  # fmt: skip
    others = table[:, rest].sum(axis=1)
    place_row = {**_place(one), "figure": name, "first": first}
    points: list[Row] = []
    lost, frequent = [], {*one.frequent}
    for answer, a, b in zip(counts.classes, mine.tolist(), others.tolist(), strict=True):
        if answer not in frequent or a + b == 0:
            continue
        if answer not in known:
            lost.append(answer)
            continue
        share, other = a / mine.sum(), b / others.sum()
        numbers = {"outside": known[answer], "lean": share / (share + other), "n": round(a + b)}
        points.append(place_row | {"answer": answer} | numbers)
    if not points:
        return [], [], sorted(lost)
    leans, outside = ([point[key] for point in points] for key in ("lean", "outside"))
    estimate = correlation(leans, outside, level=config.resampling.level)
    verb = "rises" if estimate.value > 0 else "falls"
    about = "" if math.isnan(estimate.value) else f"the lean to {first} {verb} with {name}"
    drafts = [whole(estimate, place, Family.COMPOSITE)]
    drafts += [
        without_verdict(draft, "beside Pearson's correlation, which is tested")
        for draft in parts(estimate, place)
        if draft.finding.metric == "spearman"
    ]
    drafts = [
        replace(draft, finding=replace(draft.finding, subject=name, direction=about))
        for draft in drafts
    ]
    return drafts, points, sorted(lost)


def _place(one: AnswersDesign) -> Row:
    return {"model": one.model, "groups": one.groups.name, "version": one.shown}


def _answer_table(one: AnswersDesign) -> pa.Table:
    counts, rows = one.pooled, []
    table = counts.by_prediction(counts.observed)[0]
    totals, right = table.sum(axis=0), None
    if one.data.classes:
        hits = one.counts.hits(one.counts.observed)[0]
        right = {name: hits[place] for place, name in enumerate(one.counts.classes)}
    for place in np.argsort(-table.sum(axis=1), kind="stable").tolist():
        answer = counts.classes[place]
        for group, name in enumerate(counts.groups.names):
            n, total = round(table[place, group]), round(totals[group])
            rows.append(_place(one) | {
                "answer": answer, "group": name, "count": n, "n": total,
                "share": n / total if total else None,
                "right": None if right is None else round(right[answer][group])
                if answer in right else 0,
            })  # fmt: skip
    columns = "model groups version answer group count n right share"
    return table_of(rows, columns, number="share", whole="count n right")


def _state_table(one: AnswersDesign) -> pa.Table:
    """Count what became of the rows of each group, whichever states occur."""
    states, rows = one.state, []
    for group, name in enumerate(one.groups.names):
        mine = states[one.groups.codes == group]
        for state in ("answered", *_RATES):
            n = int((mine == state).sum())
            if (states == state).any():
                rows.append({
                    "model": one.model, "groups": one.groups.name, "question": one.question,
                    "group": name, "state": state, "count": n, "n": len(mine),
                    "share": n / len(mine) if len(mine) else None,
                })  # fmt: skip
    columns = "model groups question group state count n share"
    return table_of(rows, columns, number="share", whole="count n")


def texts(data: AnswersData, config: Config) -> dict[str, pa.Table]:
    """Return the raw texts behind each answer, the most frequent first, as the table `texts`."""
    rows = []
    for key, (model, question) in data.asked.items():
        versions = data.rows.models[key].versions
        if "raw" not in versions:
            continue
        raw, made = versions["raw"].coded, [*versions.values()][-1].coded
        known = raw.codes >= 0
        pairs = np.stack([made.codes[known], raw.codes[known]], axis=1)
        distinct, counts = np.unique(pairs, axis=0, return_counts=True)
        for answer in config.answers.frequent(made):
            own = np.flatnonzero(distinct[:, 0] == made.vocabulary.index(answer))
            ranked = own[np.argsort(-counts[own], kind="stable")]
            for rank, index in enumerate(ranked[:_TEXTS].tolist(), 1):
                rows.append({
                    "model": model, "question": question, "answer": answer,
                    "text": raw.vocabulary[distinct[index, 1]], "rank": rank,
                    "count": int(counts[index]), "texts": len(own),
                })  # fmt: skip
    columns = "model question answer text rank count texts"
    return {"texts": table_of(rows, columns, whole="rank count texts")} if rows else {}

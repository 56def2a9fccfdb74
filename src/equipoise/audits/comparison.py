"""Models of audits other than predictions, compared over the subjects that they share.

What such a run keeps of a model is a number per subject: a query, a concept, a target. Two models,
or a model before and after it was mitigated, are held against each other subject by subject. Where
a subject has several numbers, of its parts, their mean is what is paired. A query asked within the
values of another attribute has a number for each of them, and a concept one for each pair of its
sets of images: parts of one subject, which depend on each other and are no pairs of their own.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import combinations
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from equipoise.audits.columns import Row, table_of
from equipoise.audits.config import parse_config
from equipoise.audits.findings import UncorrectedFinding, conclude
from equipoise.core.errors import DataError
from equipoise.core.finding import Excluded, Family, Finding, Verdict
from equipoise.core.groups import Groups
from equipoise.core.result import AuditResult
from equipoise.metrics.spec import SPECS, spec_of
from equipoise.stats.chance import sign_flips
from equipoise.stats.intervals import mean_t

if TYPE_CHECKING:
    from equipoise.audits.config import AuditConfig

Measured = tuple[str, str, str]
"""Metric, groups and version of a number."""
Owners = dict[tuple[str, str, str, str], str | None]

FLIPS = 100_000
FEWEST = 6
"""Pairs from which on flipped signs can reach p 0.05: of 5 the smallest p is 2 / 32."""
PAIRS = "iss_difference"
"""The metric whose findings are about two sets of images of one concept."""


AUDIT = "comparison"


def one_model_only(models: Iterable[str]) -> DataError:
    """Return the error of a comparison without a second model."""
    return DataError(
        f"{', '.join(models)}: one model only",
        expected="at least two models to compare",
        fix="name several runs, or audit several models in one",
    )


def compare_results(runs: Mapping[str, AuditResult]) -> AuditResult:
    """Compare the models of finished audits of one kind, over the subjects that they share.

    Parameters
    ----------
    runs : mapping of str to AuditResult
        By name; as `equipoise.report.read` returns them. Audits of predictions are compared
        image by image instead, by `compare`.

    Returns
    -------
    AuditResult
        Per pair of models and measure the mean over subjects of how much farther from 0 the
        second model is, with Student's interval and a sign-flip test over subjects, each of which
        is one pair whatever parts it has; a measure of fewer than 6 subjects is described. The
        table `changes` has, per pair, measure and subject or part of one, both numbers, both
        verdicts, and whether the disparity went, came or stayed.

    Raises
    ------
    DataError
        When there are fewer than two models, or two have no measure in common.
    """
    started = perf_counter()
    name, first = next(iter(runs.items()))
    config = parse_config(first.manifest.resolved, source=f"{name}/manifest.json")
    models, owners = _models(runs), _owners([*runs.values()])
    if len(models) < 2:
        raise one_model_only(models)
    groups = frozenset(
        group
        for one in runs.values()
        if "group_sizes" in one.tables
        for group in one.tables["group_sizes"]["group"].to_pylist()
    )
    drafts: list[UncorrectedFinding] = []
    changes: list[Row] = []
    for pair in combinations(models, 2):
        both = _by_measure(models[pair[0]]), _by_measure(models[pair[1]])
        compared = [
            one
            for measured in both[0]
            if measured in both[1]
            and (one := Pairing.of(measured, pair, (both[0][measured], both[1][measured]), owners))
        ]
        if not compared:
            raise DataError(
                f"{pair[0]} and {pair[1]} have no measure of the same subjects in common",
                expected="runs with the same metrics, groups and subjects",
                fix="audit both models with one configuration",
            )
        drafts += [_draft(one, one.untested(groups), config) for one in compared]
        changes += [row for one in compared for row in one.changes()]
    manifest = replace(
        first.manifest,
        inputs=_prefixed({run: one.manifest.inputs for run, one in runs.items()}),
        counts={run: one.manifest.counts for run, one in runs.items()},
        models=_prefixed({run: one.manifest.models for run, one in runs.items()}),
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=round(perf_counter() - started, 3),
        notes=_notes(name, len(runs)),
    )
    tables = {"changes": changes_table(changes)}
    return AuditResult(conclude(drafts, config.testing), manifest, tables)


def _prefixed(
    by_run: Mapping[str, Mapping[str, Mapping[str, object]]],
) -> dict[str, Mapping[str, object]]:
    return {f"{run}: {name}": about for run, some in by_run.items() for name, about in some.items()}


def _notes(first: str, runs: int) -> tuple[str, ...]:
    notes = (
        "Compared subject by subject: each number is how far a model is from 0, where there is no "
        "disparity, on average over the subjects that both models have. The tests speak of "
        "subjects like these, not of these images.",
        "That a disparity went or came is a change of its verdict, and no test of the change.",
    )
    return notes if runs == 1 else (*notes, f"Level, thresholds and seed are those of run {first}.")


def _models(runs: Mapping[str, AuditResult]) -> dict[str, list[Finding]]:
    """Return the findings of each model, named after its run too where runs share its name.

    Findings about the images themselves are of no model, and compared with nothing.
    """
    names = [(run, model) for run, one in runs.items()
             for model in dict.fromkeys(f.model for f in one.findings) if model]  # fmt: skip
    models = [model for _, model in names]
    return {
        model if models.count(model) == 1 else f"{run}: {model}": [
            one for one in runs[run].findings if one.model == model
        ]
        for run, model in names
    }


def _by_measure(findings: Sequence[Finding]) -> dict[Measured, dict[str, Finding]]:
    """Return the findings that were tested, by measure and subject."""
    by_measure: dict[Measured, dict[str, Finding]] = {}
    for one in findings:
        if one.family is not Family.DESCRIPTIVE:
            by_measure.setdefault((one.metric, one.groups, one.version), {})[one.subject] = one
    return by_measure


@dataclass(frozen=True, eq=False)
class Pairing:
    """One measure of two models, by subject.

    Attributes
    ----------
    measured : tuple of str
        Metric, groups, version.
    models : tuple of str
        First and second; differences are second minus first.
    parts : tuple of (Finding, Finding)
        Subjects, or parts of them, that both have a finite number for; of a measure without
        subjects the whole.
    subjects : tuple of (str or None)
        The subject of each part; None where it isn't known.
    left : tuple of Excluded
        Subjects and parts without a number in one of the two.
    """

    measured: Measured
    models: tuple[str, str]
    parts: tuple[tuple[Finding, Finding], ...]
    subjects: tuple[str | None, ...]
    left: tuple[Excluded, ...]

    @classmethod
    def of(
        cls,
        measured: Measured,
        models: tuple[str, str],
        both: tuple[Mapping[str, Finding], Mapping[str, Finding]],
        owners: Owners,
    ) -> Pairing | None:
        """Line up two models' numbers; the whole counts only where there are no parts."""
        names = [*dict.fromkeys((*both[0], *both[1]))]
        names = [name for name in names if name] or names
        kept = [
            name for name in names
            if all(name in one and math.isfinite(one[name].value) for one in both)
        ]  # fmt: skip
        if not kept:
            return None
        subject = {name: owners.get((*measured, name), name) for name in names}
        known = {name: name if one is None else one for name, one in subject.items()}
        compared = {known[name] for name in kept}
        lost = len({*known.values()} - compared)
        split = sum(one in compared for one in known.values()) - len(kept)
        left = (("subjects", lost), ("parts of subjects", split))
        return cls(
            measured,
            models,
            tuple((both[0][name], both[1][name]) for name in kept),
            tuple(subject[name] for name in kept),
            tuple(Excluded(f"{what} without a number in both", n) for what, n in left if n),
        )

    def far(self) -> np.ndarray:
        """Return how far each subject is from 0, the mean over its parts: shape (2, subjects)."""
        # A part of which nobody knows whose it is stands for itself, and nothing is tested.
        names = [
            part[0].subject if one is None else one
            for part, one in zip(self.parts, self.subjects, strict=True)
        ]
        place = {name: index for index, name in enumerate(dict.fromkeys(names))}
        codes = [place[name] for name in names]
        values = np.abs([[one.value for one in part] for part in self.parts]).T
        return np.stack([np.bincount(codes, weights=row) for row in values]) / np.bincount(codes)

    def untested(self, groups: frozenset[str]) -> str:
        """Return why nothing is tested over the subjects; "" where they are."""
        names, several = {part[0].subject for part in self.parts}, len(self.parts) > 1
        if several and names <= groups:
            return "the numbers are those of the groups, which depend on each other: none is tested"
        if several and None in self.subjects:
            return "the numbers are of parts whose subjects cannot be told apart: none is tested"
        many = len({*self.subjects})
        if many >= FEWEST:
            return ""
        why = f"{many} subjects are too few to test over, {FEWEST} or more are needed"
        if many == 1:
            one = "one subject that both models have" if any(names) else "one number a model"
            why = f"{one}: nothing to pair"
        return f"{why}; read the intervals of both in their own reports"

    def changes(self) -> Iterator[Row]:
        """Yield both numbers and verdicts of each part, and what became of its disparity."""
        for before, after in self.parts:
            shown = before.verdict is Verdict.DISPARITY, after.verdict is Verdict.DISPARITY
            yield {
                "model_a": self.models[0], "model_b": self.models[1], "metric": before.metric,
                "groups": before.groups, "version": before.version, "subject": before.subject,
                "value_a": before.value, "value_b": after.value,
                "verdict_a": str(before.verdict), "verdict_b": str(after.verdict),
                "change": _CHANGES[shown],
            }  # fmt: skip


_CHANGES = {
    (True, True): "stayed", (True, False): "went", (False, True): "came",
    (False, False): "never there",
}  # fmt: skip


def changes_table(changes: Sequence[Row] = ()) -> pa.Table:
    """Return the table `changes`."""
    return table_of(
        changes,
        "model_a model_b metric groups version subject value_a value_b verdict_a verdict_b change",
        number="value_a value_b",
    )


def _draft(one: Pairing, untested: str, config: AuditConfig) -> UncorrectedFinding:
    metric, groups, version = one.measured
    level, far = config.resampling.level, one.far()
    apart, n = far[1] - far[0], far.shape[1]
    mean, tested = float(apart.mean()), not untested
    low = high = p = math.nan
    method = null = ""
    if tested:
        # An interval stays within what the metric can differ by.
        bounds = SPECS[metric].bounds if metric in SPECS else None
        most = max(map(abs, bounds)) if bounds else math.inf
        low, high = (float(np.clip(end, -most, most)) for end in mean_t(apart, level))
        flipped = sign_flips(apart, permutations=FLIPS, seed=config.resampling.seed)
        p = flipped.value
        null = f"signs of the differences are exchangeable over subjects; {flipped.method}"
        averaged = f", {len(one.parts)} parts averaged by subject" if len(one.parts) > n else ""
        method = f"Student's t over {n} subjects, paired{averaged}"
    worse = one.models[mean > 0] if mean else ""
    means = far.mean(axis=1)
    parameters = {
        "model_a": one.models[0], "model_b": one.models[1], "value_a": float(means[0]),
        "value_b": float(means[1]), "worse": worse, "over": n,
    }  # fmt: skip
    finding = Finding(
        audit=AUDIT, model=f"{one.models[1]} − {one.models[0]}", metric=metric, subject="",
        groups=groups, version=version,
        family=Family.COMPOSITE if tested else Family.DESCRIPTIVE,
        value=mean, ci_low=low, ci_high=high, level=level, chance=0.0 if tested else math.nan,
        chance_low=math.nan, chance_high=math.nan, excess=mean if tested else math.nan,
        p_value=p, q_value=math.nan, threshold=math.nan, n=n, by_group=(), excluded=one.left,
        unit="subject", method=method, null=null,
        parameters=json.dumps(parameters, ensure_ascii=False),
        direction=f"{spec_of(metric).label} over {groups} is worse for {worse}" if worse else "",
        verdict=Verdict.NONE, reason=untested, citation="",
    )  # fmt: skip
    return UncorrectedFinding(finding, "either")


@dataclass(frozen=True, eq=False)
class Fixed:
    """Groups that were compared within the values of other attributes.

    Attributes
    ----------
    groups, version : str
        As findings have them; versions may go on after a comma.
    labels : tuple of str
        What the values that are held fixed are called.
    queries : frozenset of str
        Subjects of the intersection that both come from, of which nothing is held fixed.
    """

    groups: str
    version: str
    labels: tuple[str, ...]
    queries: frozenset[str]

    def query(self, finding: Finding) -> set[str]:
        """Return the query of which a finding is a part; nothing where it is not known.

        Taken apart at a label that the run has: a query or a label may hold the mark itself.
        """
        version, subject = finding.version, finding.subject
        if finding.groups != self.groups or not f"{version}, ".startswith(f"{self.version}, "):
            return set()
        ends = [f" | {label}" for label in self.labels]
        names = {subject.removesuffix(end) for end in ends if subject.endswith(end)}
        # Without names of queries there is one, and its parts are called by their values alone.
        if not names and subject in self.labels:
            return {""}
        names = names & self.queries if len(names) > 1 else names
        return names if len(names) == 1 else set()


def _owners(results: Sequence[AuditResult]) -> Owners:
    """Return the subject of each finding that is about a part of one.

    Returns
    -------
    dict of (metric, groups, version, subject) to str or None
        None where the subject isn't known, or two runs say different ones.
    """
    owners: Owners = {}
    for result in results:
        table = result.tables.get("group_sizes")
        rows = [] if table is None else [row for row in table.to_pylist() if row["group"]]
        fixed, sets = [*_fixed(result, rows)], _sets(rows)
        for one in result.findings:
            subjects = {one.subject}
            if one.metric == PAIRS and one.subject:
                subjects = {
                    concept
                    for (groups, concept), names in sets.items()
                    if groups == one.groups and _is_pair(one.subject, concept, names)
                }
            elif one.version.startswith("within ") and one.subject:
                subjects = {query for each in fixed for query in each.query(one)}
            elif one.metric != PAIRS and not one.version.startswith("within "):
                continue
            key = one.metric, one.groups, one.version, one.subject
            owner = subjects.pop() if len(subjects) == 1 else None
            owners[key] = owner if owners.get(key, owner) == owner else None
    return owners


def _fixed(result: AuditResult, rows: Sequence[Row]) -> Iterator[Fixed]:
    """Read from a run what was held fixed, and what its values are called."""
    groups = result.manifest.resolved.get("data", {}).get("groups", ())
    for attributes in (tuple(one) for one in groups if not isinstance(one, str) and len(one) > 1):
        whole = " × ".join(attributes)
        levels = [tuple(row["levels"]) for row in rows if row["groups"] == whole]
        queries = frozenset(one.subject for one in result.findings if one.groups == whole)
        for place, one in enumerate(attributes):
            others = attributes[:place] + attributes[place + 1 :]
            kept = dict.fromkeys(row[:place] + row[place + 1 :] for row in levels)
            # Named as pools name them, quoted where two would share a name.
            labels = Groups(others, tuple(kept), np.zeros(0, np.int32)).names
            yield Fixed(one, f"within {' × '.join(others)}", labels, queries)


def _sets(rows: Sequence[Row]) -> dict[tuple[str, str], set[str]]:
    """Return names of the sets of images by groups and concept, "" where there is none."""
    sets: dict[tuple[str, str], set[str]] = {}
    for row in rows:
        name = ", ".join(row["levels"])
        concept = row["group"].removesuffix(name).removesuffix(": ")
        sets.setdefault((row["groups"], concept), set()).add(name)
    return sets


def _is_pair(subject: str, concept: str, names: set[str]) -> bool:
    start = f"{concept}: " if concept else ""
    pair = subject.removeprefix(start)
    firsts = [name for name in names if pair.startswith(f"{name} − ")]
    return subject.startswith(start) and any(pair[len(one) + 3 :] in names for one in firsts)


def check_kinds(runs: Mapping[str, AuditResult]) -> None:
    """Refuse runs of several kinds of which one has no two models: kinds are compared apart.

    Raises
    ------
    DataError
        Which says how many models there are of each kind.
    """
    kinds: dict[str, dict[tuple[str, str, str], str]] = {}
    for run, result in runs.items():
        kind = str(result.manifest.resolved.get("audit"))
        for one in result.findings:
            # Answers of one model that were read in two ways are compared as two.
            reading = one.version if kind == "predictions" else ""
            if one.model:
                kinds.setdefault(kind, {})[run, one.model, reading] = one.model
    few = [kind for kind, models in kinds.items() if len(models) < 2]
    if few and len(kinds) > 1:
        counted = ", ".join(
            f"{kind} with {'one model' if len(models) == 1 else f'{len(models)} models'} "
            f"({', '.join(dict.fromkeys(models.values()))})"
            for kind, models in kinds.items()
        )
        raise DataError(
            f"runs of {len(kinds)} kinds: {counted}",
            expected="at least two models of each kind, which are compared with each other alone",
            fix=f"name more runs of kind {few[0]}, or leave out those of it",
        )


def together(results: Sequence[AuditResult]) -> AuditResult:
    """Put comparisons of several kinds into one result; each keeps its own families of tests."""
    first, *others = results
    if not others:
        return first
    manifests = [one.manifest for one in results]
    note = "Runs of several kinds: q-values are corrected within each kind."
    manifest = replace(
        first.manifest,
        inputs={k: v for one in manifests for k, v in one.inputs.items()},
        counts={k: v for one in manifests for k, v in one.counts.items()},
        models={k: v for one in manifests for k, v in one.models.items()},
        seconds=round(sum(one.seconds for one in manifests), 3),
        notes=(*dict.fromkeys(text for one in manifests for text in one.notes), note),
    )
    tables: dict[str, list[pa.Table]] = {}
    for one in results:
        for name, table in one.tables.items():
            tables.setdefault(name, []).append(table)
    joined = {
        name: pa.concat_tables(some, promote_options="default") for name, some in tables.items()
    }
    return AuditResult(tuple(f for one in results for f in one.findings), manifest, joined)

"""A comparison of runs of any kinds as one result, for the report and the gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from time import perf_counter

import pyarrow as pa

from equipoise.audits.comparison.subjects import compare_subjects
from equipoise.audits.config import parse_config
from equipoise.core.errors import DataError
from equipoise.core.result import AuditResult


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
        A finding per pair of models and measure, see `compare_subjects`, and a table `changes`:
        which disparities went, came and stayed.

    Raises
    ------
    DataError
        When there are fewer than two models, or two have no measure in common.
    """
    started = perf_counter()
    name, first = next(iter(runs.items()))
    config = parse_config(first.manifest.resolved, source=f"{name}/manifest.json")
    findings, changes = compare_subjects(runs, config)
    manifest = replace(
        first.manifest,
        inputs={
            f"{run}: {file}": about
            for run, result in runs.items()
            for file, about in result.manifest.inputs.items()
        },
        counts={run: result.manifest.counts for run, result in runs.items()},
        models={
            f"{run}: {model}": about
            for run, result in runs.items()
            for model, about in result.manifest.models.items()
        },
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=round(perf_counter() - started, 3),
        notes=(*_notes(name, len(runs)),),
    )
    return AuditResult(findings, manifest, {"changes": changes})


def check_kinds(runs: Mapping[str, AuditResult]) -> None:
    """Refuse runs of several kinds of which one has no two models: kinds are compared apart.

    Raises
    ------
    DataError
        Which says how many models there are of each kind.
    """
    kinds: dict[str, dict[tuple[str, ...], str]] = {}
    for run, result in runs.items():
        kind = str(result.manifest.resolved.get("audit"))
        for one in result.findings:
            # Answers of one model that were read in two ways are compared as two.
            read = one.version if kind == "predictions" else ""
            if one.model:
                kinds.setdefault(kind, {})[run, one.model, read] = one.model
    few = [kind for kind, found in kinds.items() if len(found) < 2]
    if few and len(kinds) > 1:
        raise DataError(
            f"runs of {len(kinds)} kinds: {', '.join(_models(*one) for one in kinds.items())}",
            expected="at least two models of each kind, which are compared with each other alone",
            fix=f"name more runs of kind {few[0]}, or leave out those of it",
        )


def _models(kind: str, found: Mapping[tuple[str, ...], str]) -> str:
    names = ", ".join(dict.fromkeys(found.values()))
    return f"{kind} with {'one model' if len(found) == 1 else f'{len(found)} models'} ({names})"


def _notes(first: str, runs: int) -> Sequence[str]:
    notes = (
        "Compared subject by subject: each number is how far a model is from 0, where there is no "
        "disparity, on average over the subjects that both models have. The tests speak of "
        "subjects like these, not of these images.",
        "That a disparity went or came is a change of its verdict, and no test of the change.",
    )
    return notes if runs == 1 else (*notes, f"Level, thresholds and seed are those of run {first}.")


def together(results: Sequence[AuditResult]) -> AuditResult:
    """Put comparisons of several kinds into one result; each keeps its own families of tests."""
    first, *others = results
    if not others:
        return first
    manifest = replace(
        first.manifest,
        inputs={k: v for one in results for k, v in one.manifest.inputs.items()},
        counts={k: v for one in results for k, v in one.manifest.counts.items()},
        models={k: v for one in results for k, v in one.manifest.models.items()},
        seconds=round(sum(one.manifest.seconds for one in results), 3),
        notes=(
            *dict.fromkeys(note for one in results for note in one.manifest.notes),
            "Runs of several kinds: q-values are corrected within each kind.",
        ),
    )
    tables: dict[str, list[pa.Table]] = {}
    for one in results:
        for name, table in one.tables.items():
            tables.setdefault(name, []).append(table)
    joined = {
        name: pa.concat_tables(found, promote_options="default") for name, found in tables.items()
    }
    return AuditResult(tuple(f for one in results for f in one.findings), manifest, joined)

"""The demonstration: audit models whose bias was planted, and show it beside what was found."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from equipoise.audits.auditing import load, run
from equipoise.audits.kinds import Progress, with_progress
from equipoise.audits.predictions.config import Config
from equipoise.core.finding import Finding
from equipoise.planted.colours.models import SOURCE, VARIANTS, Variant, predict_table
from equipoise.planted.colours.render import SHAPES, render_test_set

if TYPE_CHECKING:
    from equipoise.core.result import AuditResult
    from equipoise.data import PredictionData

PER_CELL = 1000
SEED = 0


def demo(*, progress: Progress | None = None) -> tuple[AuditResult, PredictionData]:
    """Render held-out images, run the six shipped models on them, and audit what they say.

    Returns
    -------
    result : AuditResult
        With the table `planted`: what was planted in each class of each model, what the audit
        found, and what the source printed.
    data : PredictionData
    """
    table = _predict(progress)
    config = _config(table)
    data: PredictionData = load(config)
    result = run(config, data=data, progress=progress)
    planted = pa.Table.from_pylist([*_planted(result)], _PLANTED)
    notes = (*_notes(), *result.manifest.notes)
    manifest = replace(result.manifest, notes=notes)
    return replace(result, manifest=manifest, tables={**result.tables, "planted": planted}), data


def _predict(progress: Progress | None) -> pa.Table:
    scene = render_test_set(PER_CELL, seed=SEED)
    columns: dict[str, Any] = {}
    for variant in with_progress(VARIANTS, progress, "running the models"):
        columns |= predict_table(scene, [variant.name])
    return pa.table(columns)


def _config(table: pa.Table) -> Config:
    labels = table.select(["image_id", "shape", "colour"])
    models = {
        variant.name: {
            "table": table.select(["image_id", f"predicted_{variant.name}"]),
            "prediction": f"predicted_{variant.name}",
        }
        for variant in VARIANTS
    }
    effects = {"min_expected": 0.0}
    return Config.model_validate(
        {
            "audit": "predictions",
            "data": {"table": labels, "id": "image_id", "target": "shape", "groups": ["colour"]},
            "models": models,
            "metrics": {"effect_sizes": effects, "skewsize": effects},
            "report": {"title": "The planted colour world"},
        }
    )


_TEXT = ("model", "removed", "strength", "class")
_PLANTED = pa.schema(
    [(name, pa.string()) for name in _TEXT]
    + [("planted", pa.bool_())]
    + [
        (name, pa.float64())
        for name in (
            "found_effect_size",
            "low",
            "high",
            "paper_effect_size",
            "accuracy",
            "worst_group_accuracy",
            "gap",
            "demographic_parity",
            "equalized_odds",
            "paper_accuracy",
            "paper_worst_group_accuracy",
            "paper_gap",
        )
    ]
)


def _planted(result: AuditResult) -> Iterator[dict[str, Any]]:
    found = {
        (one.model, one.metric, one.subject): one
        for one in result.findings
        if one.metric != "accuracy" or not one.groups
    }
    for variant in VARIANTS:
        whole = _whole(found, variant)
        for place, shape in enumerate(SHAPES):
            effect = found[variant.name, "cramers_v", shape]
            yield {
                "model": variant.name,
                "removed": "" if variant.shape is None else f"{variant.colour} {variant.shape}",
                "strength": variant.strength,
                "class": shape,
                "planted": shape == variant.shape,
                "found_effect_size": effect.value,
                "low": effect.ci_low,
                "high": effect.ci_high,
                "paper_effect_size": variant.published.effect_sizes[place],
                "demographic_parity": found[variant.name, "demographic_parity", shape].value,
                "equalized_odds": found[variant.name, "equalized_odds", shape].value,
            } | whole


def _whole(found: Mapping[tuple[str, str, str], Finding], variant: Variant) -> dict[str, float]:
    published = variant.published
    printed = {
        "paper_accuracy": published.accuracy,
        "paper_worst_group_accuracy": published.worst_group_accuracy,
        "paper_gap": published.gap,
    }
    return {
        "accuracy": found[variant.name, "accuracy", ""].value,
        "worst_group_accuracy": found[variant.name, "worst_group_accuracy", ""].value,
        "gap": found[variant.name, "accuracy_gap", ""].value,
    } | {name: math.nan if value is None else value for name, value in printed.items()}


def _notes() -> Iterator[str]:
    yield (
        f"The images are drawn, the models are small, and their bias was planted: {PER_CELL} "
        "held-out images of every shape in every colour, run live. Class is the shape, group is "
        "the colour."
    )
    yield f"Figures marked as the paper's are from {SOURCE}; its images and network are larger."
    for variant in VARIANTS:
        yield f"{variant.name}: {variant.truth}"

"""Demonstrations: audits of models with planted bias, against the ground truth."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from equipoise.audits.config import parse_config
from equipoise.audits.opening import prepare
from equipoise.audits.running import run
from equipoise.config.files import parse_yaml
from equipoise.core import Aggregate, AuditResult, Floats32, Progress, with_progress
from equipoise.core.columns import FLAG, NUMBER, TEXT
from equipoise.data import PredictionData
from equipoise.metrics.spec import SPECS
from equipoise.planted.colours.models import SOURCE, VARIANTS, predict_table
from equipoise.planted.colours.render import SHAPES, render_test_set
from equipoise.planted.scenes.captions import neutral_prompts
from equipoise.planted.scenes.embed import CLIPS, embed_images, load_clip, neutral_queries
from equipoise.planted.scenes.render import SUBJECTS
from equipoise.planted.scenes.sets import Scenes, render_sets
from equipoise.planted.scenes.variants import BIASED
from equipoise.report.blocks import Row, rows

_FILE = Path(__file__).with_name("demonstrations.yaml")
PER_CELL = 1000
SEED = 0


def _configured(kind: str) -> dict[str, Any]:
    """Return the keys of a demonstration's config that are not about data."""
    configs: dict[str, dict[str, Any]] = parse_yaml(_FILE.read_bytes(), str(_FILE))[0]
    return configs[kind]


def demo(*, progress: Progress | None = None) -> tuple[AuditResult, PredictionData]:
    """Render held-out images, run the six shipped models, and audit their outputs.

    Returns
    -------
    result : AuditResult
        With the table `planted`: what was planted in each class of each model, what the audit
        found, and what the source printed.
    data : PredictionData
    """
    scene = render_test_set(PER_CELL, seed=SEED)
    columns: dict[str, Any] = {}
    for variant in with_progress(VARIANTS, progress, "running the models"):
        columns |= predict_table(scene, [variant.name])
    table = pa.table(columns)
    labels = table.select(["image_id", "shape", "colour"])
    predicted = {variant.name: f"predicted_{variant.name}" for variant in VARIANTS}
    configured = _configured("predictions")
    effect_size = configured["metrics"]["effect_sizes"]["statistic"]
    config = parse_config(
        configured
        | {
            "data": {"table": labels, "id": "image_id", "target": "shape", "groups": ["colour"]},
            "models": {
                name: {"table": table.select(["image_id", column]), "prediction": column}
                for name, column in predicted.items()
            },
        }
    )
    inputs = prepare(config)
    result = run(inputs, progress=progress)
    notes = (
        f"The images are drawn, the models are small, and their bias was planted: {PER_CELL} "
        "held-out images of every shape in every colour, run live. Class is the shape, group is "
        "the colour.",
        f"Figures marked as the paper's are from {SOURCE}; its images and network are larger.",
        *(f"{variant.name}: {variant.truth}" for variant in VARIANTS),
    )
    planted = pa.Table.from_pylist([*_planted(result, effect_size)], _PLANTED)
    return _with(result, {"planted": planted}, notes), inputs.data


_GAPS = [
    name
    for name, spec in SPECS.items()
    if spec.aggregate is Aggregate.DIFFERENCE
    and "predictions" in spec.kinds
    and (spec.of_labels or spec.combines)
]
"""Gaps of labels, and of rates together."""
_PLANTED = pa.schema(
    {
        "model": TEXT,
        "removed": TEXT,
        "strength": TEXT,
        "class": TEXT,
        "planted": FLAG,
        "found_effect_size": NUMBER,
        "low": NUMBER,
        "high": NUMBER,
        "paper_effect_size": NUMBER,
        **dict.fromkeys(_GAPS, NUMBER),
    }
)


def _planted(result: AuditResult, effect_size: str) -> Iterator[Row]:
    """Yield the effect size and gaps of every class of each model."""
    findings_by_measure = {
        (finding.model, finding.metric, finding.subject): finding for finding in result.findings
    }
    for variant in VARIANTS:
        name = variant.name
        for place, shape in enumerate(SHAPES):
            effect = findings_by_measure[name, effect_size, shape]
            yield {
                "model": name,
                "removed": "" if variant.shape is None else f"{variant.colour} {variant.shape}",
                "strength": variant.strength,
                "class": shape,
                "planted": shape == variant.shape,
                "found_effect_size": effect.value,
                "low": effect.ci_low,
                "high": effect.ci_high,
                "paper_effect_size": variant.published[place],
                **{gap: findings_by_measure[name, gap, shape].value for gap in _GAPS},
            }


SETS_PER_SUBJECT = 20
SCENES_SEED = 2

ATTRIBUTES = ("hue", "frame")
K, PREFIXES = 12, 144
"""Images that count, and the prefixes of NDKL: as many as combinations of attributes, squared."""


@dataclass(frozen=True)
class Embedded:
    """Images and neutral prompts in the space of one model.

    Attributes
    ----------
    images : ndarray of float32, shape (images, dimension)
    queries : ndarray of float32, shape (subjects, dimension)
    scale : float
        What makes a logit of a cosine.
    """

    images: Floats32
    queries: Floats32
    scale: float


def demo_scenes(*, progress: Progress | None = None) -> dict[str, AuditResult]:
    """Render counterfactual sets, embed them with the shipped CLIP models, and audit.

    Returns
    -------
    dict of str to AuditResult
        By kind of audit: retrieval, associations and similarity. Each has the table
        `planted_scenes`: what was planted for each subject and attribute, and the similarity gap
        and NDKL found.

    Raises
    ------
    MissingExtraError
        If torch or transformers is not installed.
    """
    scenes = render_sets(SETS_PER_SUBJECT, seed=SCENES_SEED)
    embedded: dict[str, Embedded] = {}
    for name in with_progress(CLIPS, progress, "running the models"):
        clip = load_clip(name)
        images, queries = embed_images(clip, scenes.images), neutral_queries(clip)
        embedded[name] = Embedded(images, queries, clip.info.scale or 1.0)
    shared = _by_query(scenes, embedded)
    ranking = {"ranking": {"k": K, "prefixes": PREFIXES}}
    retrieval = _configured("retrieval") | shared | ranking
    configs = retrieval, _associations(scenes, embedded), _similarity(shared, embedded)
    audited = [run(parse_config(config), progress=progress) for config in configs]
    planted = pa.Table.from_pylist([*_planted_scenes(audited[0], audited[2])], PLANTED)
    tables = {"planted_scenes": planted}
    return {result.findings[0].audit: _with(result, tables, _SCENE_NOTES) for result in audited}


def _with(
    result: AuditResult, tables: Mapping[str, pa.Table], notes: tuple[str, ...]
) -> AuditResult:
    manifest = replace(result.manifest, notes=(*notes, *result.manifest.notes))
    return replace(result, manifest=manifest, tables={**result.tables, **tables})


def _by_query(scenes: Scenes, embedded: Mapping[str, Embedded]) -> dict[str, Any]:
    """Return the keys that the configs of retrieval and similarity share."""
    images = pa.table(dict(scenes.table())).select(["image_id", "set", "subject", "hue", "frame"])
    planted = pa.Table.from_pylist([asdict(favourite) for favourite in BIASED.favourites])
    return {
        "data": {
            "images": {"table": images, "id": "image_id"},
            "groups": [*ATTRIBUTES],
            "subject": "subject",
            "sets": "set",
        },
        "queries": {"table": _queries(), "id": "prompt", "subject": "subject"},
        "models": {
            name: {"images": {"file": model_files.images}, "queries": {"file": model_files.queries}}
            for name, model_files in embedded.items()
        },
        "hypotheses": [
            {
                "table": planted, "concept": "subject", "favours": attribute,
                "value": f"{attribute}_strength", "groups": attribute,
            }
            for attribute in ATTRIBUTES
        ],
    }  # fmt: skip


def _associations(scenes: Scenes, embedded: Mapping[str, Embedded]) -> dict[str, Any]:
    images = pa.table(dict(scenes.table())).select(["image_id", "set", "frame"])
    strength = BIASED.frame_strength * np.where(BIASED.frame == 0, 1.0, -1.0)
    hypothesis = pa.table({"subject": [*SUBJECTS], "lean": strength})
    frames = ("level", "upright")
    compared = {"targets": [*SUBJECTS], "attributes": [*frames], "modalities": ["ITP"]}
    declared = {"hypothesis": {"table": hypothesis, "subject": "subject", "value": "lean"}}
    configured = _configured("associations")
    measures = [
        measure | compared | (declared if "statistic" in measure else {})
        for measure in configured["measure"]
    ]
    return configured | {
        "measure": measures,
        "data": {
            "images": {"table": images, "id": "image_id", "kind": "image", "unit": "set"},
            "prompts": {"table": _queries(), "id": "prompt", "kind": "text"},
        },
        "models": {
            name: {
                "embeddings": {
                    "images": {"file": model_files.images},
                    "prompts": {"file": model_files.queries},
                }
            }
            for name, model_files in embedded.items()
        },
        "sets": {frame: {"images": {"frame": frame}} for frame in frames}
        | {subject: {"prompts": {"subject": subject}} for subject in SUBJECTS},
    }


def _similarity(shared: dict[str, Any], embedded: Mapping[str, Embedded]) -> dict[str, Any]:
    models = {
        name: model | {"scale": embedded[name].scale} for name, model in shared["models"].items()
    }
    return _configured("similarity") | shared | {"models": models}


def _queries() -> pa.Table:
    prompts = [neutral_prompts(subject)[0] for subject in SUBJECTS]
    return pa.table({"prompt": prompts, "subject": [*SUBJECTS]})


_RANKED = "ndkl"
PLANTED = pa.schema(
    {
        "model": TEXT,
        "attribute": TEXT,
        "subject": TEXT,
        "favourite": TEXT,
        "strength": NUMBER,
        "gap": NUMBER,
        _RANKED: NUMBER,
    }
)


def _planted_scenes(ranked: AuditResult, similar: AuditResult) -> Iterator[dict[str, Any]]:
    ranked_by_subject = {
        (finding.model, finding.groups, finding.subject): finding.value
        for finding in ranked.findings
        if finding.metric == _RANKED
    }
    preferences = {
        (row["model"], row["groups"], row["concept"]): row for row in rows(similar, "hypotheses")
    }
    for model, attribute, subject in product(CLIPS, ATTRIBUTES, SUBJECTS):
        preference = preferences[model, attribute, subject]
        yield {
            "model": model,
            "attribute": attribute,
            "subject": subject,
            "favourite": preference["favourite"],
            "strength": preference["declared"] if model == BIASED.name else 0.0,
            "gap": preference["preference"],
            _RANKED: ranked_by_subject[model, attribute, subject],
        }


_SCENE_NOTES = (
    "The images are drawn, the models are small, and their bias was planted: "
    f"{SETS_PER_SUBJECT} sets of 12 images for each of {len(SUBJECTS)} subjects, embedded "
    f"live. Of one model, {BIASED.name}, each subject has a favourite hue and frame, "
    "with strengths from 0 to 0.9.",
    "A trained model has small preferences of its own, and tests find them in the model "
    f"{CLIPS[1]}, too: within subjects, and over all subjects for a few hues and the frame. They "
    "are real, as other scenes show them again. Planted preferences are larger (as gaps in logits) "
    "and follow the planted favourites: the audit of similarity tests both. Over all subjects the "
    f"preferences of {BIASED.name} cancel, as each subject has favourites of its own.",
)

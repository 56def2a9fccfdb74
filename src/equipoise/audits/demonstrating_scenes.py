"""The demonstration with images and prompts: CLIP models whose associations were planted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from equipoise.audits.associations.config import Config as AssociationsConfig
from equipoise.audits.auditing import run
from equipoise.audits.kinds import Progress, told
from equipoise.audits.retrieval.config import Config as RetrievalConfig
from equipoise.planted.scenes.captions import neutral_prompts
from equipoise.planted.scenes.embed import CLIPS, embed_images, load_clip, neutral_queries
from equipoise.planted.scenes.measure import (
    PREFIXES,
    THRESHOLD,
    AttributeFound,
    K,
    find_preferences,
)
from equipoise.planted.scenes.render import SUBJECTS
from equipoise.planted.scenes.sets import Scenes, render_sets
from equipoise.planted.scenes.variants import BIASED

if TYPE_CHECKING:
    from equipoise.audits.config_sections import AuditConfig
    from equipoise.core.result import AuditResult

SETS_PER_SUBJECT = 20
SEED = 2

ALIGNED = 0.3
"""From this rank correlation on, preferences follow what was planted to an extent that matters."""


@dataclass(frozen=True)
class Embedded:
    """Images and neutral prompts in the space of one model, and what was found there.

    Attributes
    ----------
    images : ndarray of float32, shape (images, dimension)
    queries : ndarray of float32, shape (subjects, dimension)
    found : tuple of AttributeFound
    """

    images: npt.NDArray[np.float32]
    queries: npt.NDArray[np.float32]
    found: tuple[AttributeFound, ...]


def demo_scenes(*, progress: Progress | None = None) -> dict[str, AuditResult]:
    """Render counterfactual sets, embed them with the shipped CLIP models, and audit what they say.

    Returns
    -------
    dict of str to AuditResult
        By kind of audit: retrieval and associations. Each has the table `planted_scenes`: what
        was planted for each subject and attribute, and the similarity gap and NDKL found.

    Raises
    ------
    MissingExtraError
        If torch or transformers is not installed.
    """
    scenes = render_sets(SETS_PER_SUBJECT, seed=SEED)
    embedded: dict[str, Embedded] = {}
    for name in told(CLIPS, progress, "running the models"):
        embedded[name] = _embed(name, scenes)
    planted = pa.Table.from_pylist([*_planted(embedded)], PLANTED)
    notes = tuple(_notes(embedded))
    return {
        config.audit: _with(run(config, progress=progress), planted, notes)
        for config in (_retrieval(scenes, embedded), _associations(scenes, embedded))
    }


def _embed(name: str, scenes: Scenes) -> Embedded:
    clip = load_clip(name)
    images, queries = embed_images(clip, scenes.images), neutral_queries(clip)
    return Embedded(images, queries, find_preferences(clip, BIASED, scenes))


def _with(result: AuditResult, planted: pa.Table, notes: tuple[str, ...]) -> AuditResult:
    manifest = replace(result.manifest, notes=(*notes, *result.manifest.notes))
    tables = {**result.tables, "planted_scenes": planted}
    return replace(result, manifest=manifest, tables=tables)


def _retrieval(scenes: Scenes, embedded: Mapping[str, Embedded]) -> AuditConfig:
    table = scenes.table()
    images = pa.table(
        {name: table[name] for name in ("image_id", "set", "subject", "hue", "frame")}
    )
    return RetrievalConfig.model_validate(
        {
            "audit": "retrieval",
            "data": {
                "images": {"table": images, "id": "image_id"},
                "groups": ["hue", "frame"],
                "subject": "subject",
                "sets": "set",
            },
            "queries": {"table": _queries(), "id": "prompt", "subject": "subject"},
            "models": {
                name: {"images": {"file": one.images}, "queries": {"file": one.queries}}
                for name, one in embedded.items()
            },
            "ranking": {"k": K, "prefixes": PREFIXES},
            "report": {"title": "The planted scenes: whom neutral prompts show first"},
        }
    )


def _associations(scenes: Scenes, embedded: Mapping[str, Embedded]) -> AuditConfig:
    table = scenes.table()
    images = pa.table({name: table[name] for name in ("image_id", "set", "frame")})
    strength = BIASED.frame_strength * np.where(BIASED.frame == 0, 1.0, -1.0)
    hypothesis = pa.table({"subject": [*SUBJECTS], "lean": strength})
    level, upright = ({"images": {"frame": one}} for one in ("level", "upright"))
    asked = {"targets": [*SUBJECTS], "attributes": ["level", "upright"], "modalities": ["ITP"]}
    declared = {"table": hypothesis, "subject": "subject", "value": "lean"}
    return AssociationsConfig.model_validate(
        {
            "audit": "associations",
            "data": {
                "images": {"table": images, "id": "image_id", "kind": "image", "unit": "set"},
                "prompts": {"table": _queries(), "id": "prompt", "kind": "text"},
            },
            "models": {
                name: {
                    "embeddings": {"images": {"file": one.images}, "prompts": {"file": one.queries}}
                }
                for name, one in embedded.items()
            },
            "sets": {"level": level, "upright": upright}
            | {subject: {"prompts": {"subject": subject}} for subject in SUBJECTS},
            "measure": [
                {"metric": "association_score", **asked},
                {"metric": "alignment", "hypothesis": declared, "statistic": "rank", **asked},
            ],
            "testing": {"thresholds": {"alignment": ALIGNED}},
            "report": {"title": "The planted scenes: which frame prompts lie close to"},
        }
    )


def _queries() -> pa.Table:
    prompts = [neutral_prompts(subject)[0] for subject in SUBJECTS]
    return pa.table({"prompt": prompts, "subject": [*SUBJECTS]})


PLANTED = pa.schema(
    [(name, pa.string()) for name in ("model", "attribute", "subject", "favourite")]
    + [(name, pa.float64()) for name in ("strength", "gap", "ndkl")]
)


def _planted(embedded: Mapping[str, Embedded]) -> Iterator[dict[str, Any]]:
    for name, one in embedded.items():
        for found in one.found:
            for place, favourite in enumerate(BIASED.favourites):
                yield {
                    "model": name,
                    "attribute": found.attribute,
                    "subject": favourite.subject,
                    "favourite": getattr(favourite, found.attribute),
                    "strength": float(found.strength[place]) if name == BIASED.name else 0.0,
                    "gap": float(found.gap[place]),
                    "ndkl": float(found.ndkl[place]),
                }


def _notes(embedded: Mapping[str, Embedded]) -> Iterator[str]:
    yield (
        "The images are drawn, the models are small, and their bias was planted: "
        f"{SETS_PER_SUBJECT} sets of 12 images for each of {len(SUBJECTS)} subjects, embedded "
        f"live. Of one model, {BIASED.name}, each subject has a favourite hue and frame, "
        "with strengths from 0 to 0.9."
    )
    yield (
        "A trained model has small preferences of its own: tests within a subject can find them "
        f"in the model {CLIPS[1]}, too. What tells the two apart is their size, and whether they "
        "follow the planted favourites."
    )
    for found in embedded[BIASED.name].found:
        yield (
            f"{BIASED.name}, {found.attribute}: over subjects, planted strength and similarity gap "
            f"correlate by rank at {found.rank_correlation_gap:.2f}, strength and NDKL at "
            f"{found.rank_correlation_ndkl:.2f}."
        )
    for found in embedded[CLIPS[1]].found:
        yield (
            f"{CLIPS[1]}, {found.attribute}: the largest gap for a favourite of {BIASED.name} is "
            f"{abs(found.gap).max():.2f} logits (of practical size: {THRESHOLD}); permuted over "
            f"subjects, these favourites are no closer than others (p = {found.p_value:.2f})."
        )

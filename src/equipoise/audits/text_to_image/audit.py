"""The audit of text-to-image models: leaning of targets, and groups that images show."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from equipoise.audits.audit import Audit, Measured, audit_kind
from equipoise.audits.columns import schema_of
from equipoise.audits.engines.associations.results import SCHEMAS as ASSOCIATIONS
from equipoise.audits.engines.associations.results import Row, measured
from equipoise.audits.text_to_image import loading
from equipoise.audits.text_to_image.config import Config
from equipoise.audits.text_to_image.designs import (
    ALL,
    CURVED,
    TARGETS,
    ShareDesign,
    SpaceDesign,
    version_of,
)
from equipoise.audits.text_to_image.loading import FAILED, IMAGE, REFUSED, TextToImageData

if TYPE_CHECKING:
    from equipoise.audits.group_sizes import Members
    from equipoise.audits.outputs import Models
    from equipoise.core.finding import Finding
    from equipoise.core.groups import Groups
    from equipoise.stats.resampling import Resampling

Design = SpaceDesign | ShareDesign

SCHEMAS: Mapping[str, str] = MappingProxyType(
    {
        **{name: ASSOCIATIONS[name] for name in ("amplification", "score_summaries")},
        "components": f"{ASSOCIATIONS['mcas_parts']} set",
        "plane": f"{ASSOCIATIONS['xmcas']} set",
        "shares": "target category class #guidance +images #share #low #high #raw #raw_low "
        "#raw_high #outside outside_name ?corrected reason",
        "share_gaps": "target category class outside_name #difference #low #high #p_value +n "
        "reason",
        "image_states": "target state +count",
    }
)
"""Columns by table; docs/audits/text_to_image.md explains them."""

_FURTHER = {
    "share_confusions": "groups label said +count +n #condition",
    "guidance": "model groups by metric subject #guidance #value #low #high",
    "encoders": "model groups target encoder #guidance #value #low #high #mean #sd",
}
_NAMES = {"mcas_parts": "components", "xmcas": "plane"}


@audit_kind("text_to_image")
class TextToImage(Audit[Config, TextToImageData, Design]):
    """Audits of text-to-image models."""

    items = "images"

    def load(self, config: Config, models: Models) -> TextToImageData:
        """Read or generate the images, and read or run the models on them."""
        return loading.load(config, models)

    def groups(self, config: Config, data: TextToImageData) -> list[Groups]:
        """Return no groups of all items: sets of prompts and classes are compared."""
        return []

    def members(self, config: Config, data: TextToImageData, on: str) -> Members:
        """Return the images of each prompt of a batch."""
        for images in data.made.values():
            for batch in images.batches:
                if on == batch.name or on.startswith(f"{batch.name}, "):
                    ids: dict[str, list[str]] = {}
                    for row in batch.rows:
                        name = row["image_id"].removeprefix(batch.prefix)
                        ids.setdefault(row["prompt"], []).append(name)
                    return {"prompt": ids}
        return {}

    def designs(self, config: Config, data: TextToImageData) -> list[Design]:
        """Return every generator and guidance in each space, then with each share."""
        encoders = [*config.encoders, *([ALL] if len(config.encoders) > 1 else [])]
        generated = [(name, g) for name, made in data.made.items() for g in made.guidances]
        return [
            *(SpaceDesign(*each, config, data, own) for each in generated for own in encoders),
            *(ShareDesign(*each, config, data, own) for own in config.shares for each in generated),
        ]

    def measure(
        self,
        config: Config,
        data: TextToImageData,
        design: Design,
        resampling: Resampling | None,
    ) -> Measured:
        """Measure associations in a space, or the shares of classes."""
        named = (
            Row(_NAMES.get(each.table, each.table), {"set": TARGETS, **each.values})
            if isinstance(each, Row)
            else each
            for each in design.measure(resampling)
        )
        return measured(named, SCHEMAS)

    def combine(
        self, config: Config, data: TextToImageData, measured_designs: Sequence[Measured]
    ) -> Measured:
        """Add errors of classifiers, results by guidance, and results by encoder."""
        every = Measured.together(measured_designs)
        findings = [each.finding for each in every.findings]
        further = {
            "share_confusions": [*_confusions(config, data)],
            "guidance": [*_curve(config, data, findings)],
            "encoders": [*_encoders(config, data, findings)],
        }
        tables = {
            name: pa.Table.from_pylist(rows, schema_of(_FURTHER[name]))
            for name, rows in further.items()
            if rows
        }
        return replace(every, tables={**every.tables, **tables})

    def details(
        self,
        config: Config,
        data: TextToImageData,
        designs: Sequence[Design],
        tests: Mapping[str, int],
    ) -> Mapping[str, Any]:
        """Return images by generator, prompts by set, and labelled images by share."""
        prompts, shares = config.prompts, []
        for design in designs:
            if isinstance(design, ShareDesign):
                confusion = design.judged.confusion
                labelled = None if confusion is None else int(confusion.labelled.min())
                shares.append(
                    {"of": design.share.of, "generator": design.model,
                     "guidance": design.guidance, "labelled_of_the_rarest": labelled}
                )  # fmt: skip
        images = []
        for name, made in data.made.items():
            for guidance in made.guidances:
                here = slice(None) if guidance is None else made.guidance == guidance
                states = made.state[here]
                there = "to be made" if made.planned else int((states == IMAGE).sum())
                images.append(
                    {"generator": name, "guidance": guidance, "asked": len(states), "there": there}
                )
        sizes = [(name, len(texts)) for name, texts in prompts.attribute_texts.items()]
        sizes.append(("targets", len(prompts.target_names)))
        return {
            "images": images,
            "prompts": [{"set": name, "prompts": n} for name, n in sizes],
            "shares": shares,
        }

    def notes(
        self, config: Config, data: TextToImageData, designs: Sequence[Design]
    ) -> Iterator[str]:
        """Yield the notes on groups, intervals, and images without outputs."""
        yield "Groups are as prompts name them and classifiers perceive them."
        if config.pairs:
            unit = "prompt" if config.over_prompts else "seed"
            yield f"Intervals of associations are over {unit}s: images of one {unit} go together."
        if len(config.encoders) > 1:
            yield f"“{ALL}” averages the cosines of {', '.join(config.encoders)}."
        for name, images in data.made.items():
            if not images.seeded:
                yield f"{name}: seeds are not known, so every image counts as independent."
            for state in (REFUSED, FAILED):
                if n := int((images.state == state).sum()):
                    yield (
                        f"{name}: {n} of {len(images.state)} images were {state}; they are in no "
                        "share and no score."
                    )
        for model, encoder in data.encoders.items():
            for generator, vectors in encoder.images.items():
                if lost := int(((data.made[generator].state == IMAGE) & ~vectors.usable).sum()):
                    yield f"{model}: {lost} images of {generator} have no usable vector."


def _confusions(config: Config, data: TextToImageData) -> Iterator[dict[str, Any]]:
    for share in config.shares:
        confusion = data.judged[share.of].confusion
        if confusion is None:
            continue
        for row, label in enumerate(confusion.classes):
            for column, outcome in enumerate(confusion.outcomes):
                yield {
                    "groups": share.of, "label": label, "said": outcome,
                    "count": int(confusion.counts[row, column]),
                    "n": int(confusion.labelled[row]), "condition": confusion.condition,
                }  # fmt: skip


def _curve(
    config: Config, data: TextToImageData, findings: Iterable[Finding]
) -> Iterator[dict[str, Any]]:
    """Yield numbers of generators that made images at several strengths of guidance."""
    targets = {"", *config.prompts.target_names}
    sources = [
        *(config.encoders if len(config.encoders) < 2 else (ALL,)),
        *(share.classifier for share in config.shares),
    ]
    at = {
        (name, version_of(by, guidance)): (by, guidance)
        for name, made in data.made.items()
        if len(made.guidances) > 1
        for by in sources
        for guidance in made.guidances
    }
    for each in findings:
        place = at.get((each.model, each.version))
        if place is not None and each.subject in targets and each.metric in CURVED:
            yield {
                "model": each.model, "groups": each.groups, "by": place[0], "metric": each.metric,
                "subject": each.subject, "guidance": place[1], "value": each.value,
                "low": each.ci_low, "high": each.ci_high,
            }  # fmt: skip


def _encoders(
    config: Config, data: TextToImageData, findings: Iterable[Finding]
) -> Iterator[dict[str, Any]]:
    """Yield MCAS of targets by encoder, with mean and spread over encoders."""
    if len(config.encoders) < 2:
        return
    places = {
        (name, version_of(encoder, guidance)): (encoder, guidance)
        for name, made in data.made.items()
        for guidance in made.guidances
        for encoder in config.encoders
    }
    by_target: dict[Any, dict[str, Finding]] = {}
    for each in findings:
        place = places.get((each.model, each.version))
        if place and each.metric == "mcas" and each.subject in config.prompts.target_names:
            key = (each.model, place[1], each.groups, each.subject)
            by_target.setdefault(key, {})[place[0]] = each
    for (model, guidance, groups, target), by_encoder in by_target.items():
        values = np.sort([each.value for each in by_encoder.values()])
        sd = float(values.std(ddof=1)) if len(values) > 1 else math.nan
        for encoder, each in by_encoder.items():
            yield {
                "model": model, "groups": groups, "target": target, "encoder": encoder,
                "guidance": math.nan if guidance is None else guidance, "value": each.value,
                "low": each.ci_low, "high": each.ci_high, "mean": float(values.mean()), "sd": sd,
            }  # fmt: skip

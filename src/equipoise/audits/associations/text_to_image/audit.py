"""The audit of text-to-image models: leaning of targets, and groups that images show."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import polars as pl

from equipoise.audits.associations.spaces import SCHEMAS as ASSOCIATIONS
from equipoise.audits.associations.spaces import measured
from equipoise.audits.associations.text_to_image import loading
from equipoise.audits.associations.text_to_image.config import Config
from equipoise.audits.associations.text_to_image.designs import (
    ALL,
    UNCHECKED,
    ShareDesign,
    SpaceDesign,
)
from equipoise.audits.associations.text_to_image.latents import LATENTS, LatentDesign
from equipoise.audits.associations.text_to_image.loading import (
    FAILED,
    IMAGE,
    REFUSED,
    TextToImageData,
)
from equipoise.audits.associations.text_to_image.steps import (
    ONSETS,
    STEP_SHARES,
    CurvePoint,
    MeasuredSteps,
    onsets,
)
from equipoise.audits.columns import tables_of
from equipoise.audits.group_sizes import Members, members_of
from equipoise.audits.kind import Audit, Measured, audit_kind
from equipoise.audits.notes import Note, note_on_sample
from equipoise.audits.outputs import Models
from equipoise.core import Groups, Objects
from equipoise.core.columns import FLAG, INTEGER, NUMBER, TEXT, Columns
from equipoise.core.types import Json
from equipoise.evidence import Pictures
from equipoise.evidence.examples import guidance_name
from equipoise.stats import Resampling

Design = SpaceDesign | ShareDesign

SCHEMAS: Mapping[str, Columns] = {
    **{name: ASSOCIATIONS[name] for name in ("amplification", "score_summaries")},
    **{
        name: {**columns, "set": TEXT}
        for name, columns in ASSOCIATIONS.items()
        if {"part", "target"} <= columns.keys()
    },
    "shares": {
        "target": TEXT,
        "category": TEXT,
        "class": TEXT,
        "guidance": NUMBER,
        "images": INTEGER,
        "share": NUMBER,
        "low": NUMBER,
        "high": NUMBER,
        "raw": NUMBER,
        "raw_low": NUMBER,
        "raw_high": NUMBER,
        "outside": NUMBER,
        "outside_name": TEXT,
        "corrected": FLAG,
        "reason": TEXT,
    },
    "image_states": {"target": TEXT, "state": TEXT, "count": INTEGER},
    "onsets": ONSETS,
    "step_shares": STEP_SHARES,
}
"""Columns by table; docs/audits/text_to_image.md explains them."""

_COLUMNS = {
    "share_confusions": {
        "groups": TEXT,
        "label": TEXT,
        "said": TEXT,
        "count": INTEGER,
        "n": INTEGER,
        "condition": NUMBER,
    },
    "versions": {"model": TEXT, "version": TEXT, "by": TEXT, "guidance": NUMBER},
    "steps": {
        "model": TEXT, "version": TEXT, "by": TEXT, "guidance": NUMBER, "step": INTEGER,
        "final": FLAG,
    },
}  # fmt: skip


@audit_kind("text_to_image")
class TextToImage(Audit[Config, TextToImageData, Design]):
    """Audits of text-to-image models."""

    items = "images"

    def load(self, config: Config, models: Models) -> TextToImageData:
        """Read or generate the images, and read or run the models on them."""
        return loading.load(config, models)

    def members(self, config: Config, data: TextToImageData, on: str) -> Members:
        """Return the images of each prompt of a batch."""
        for images in data.generated.values():
            names = [batch.name for batch in images.batches]
            if on in names or on.startswith(tuple(f"{name}, " for name in names)):
                return members_of(images.items.ids, images.items.columns, [("prompt",)])
        return {}

    def examples(self, config: Config, data: TextToImageData) -> dict[str, pl.DataFrame]:
        """Return the images of each target and attribute; their cosine with the prompt as score.

        The outcome is the strength of guidance.
        """
        tables, start = dict[str, pl.DataFrame](), 0
        for name, images in data.generated.items():
            named = [guidance_name(guidance) for guidance in images.guidance]
            rows = images.table.select(
                pl.int_range(start, start + pl.len()).alias("place"),
                "state",
                "step",
                label="prompt",
                outcome=pl.Series(named),
                score=pl.Series(loading.prompt_cosines(config, data, name)),
            )
            start += images.table.height
            shown = (pl.col("state") == IMAGE) & pl.col("step").is_null()
            made_images = rows.filter(shown).drop("state", "step")
            owners = config.prompts_of(name).owners
            subjects = pl.DataFrame(owners, ("label", "subject"), orient="row")
            tables[name] = made_images.join(subjects, on="label", maintain_order="left")
        return tables

    def pictured(
        self, config: Config, data: TextToImageData, models: Models
    ) -> tuple[Objects, list[Groups], list[Pictures]]:
        """Return the images of all generators; groups are classes, and sets of attributes."""
        ids: list[str] = []
        pictures: list[Pictures] = []
        for name, images in data.generated.items():
            # Images of two generators may have one id.
            prefix = f"{name}: " if len(data.generated) > 1 else ""
            ids += [prefix + image_id for image_id in images.items.ids]
            parts = [batch.pictures for batch in images.batches if batch.pictures is not None]
            pictures += [
                replace(batch_pictures, ids=prefix + batch_pictures.ids) for batch_pictures in parts
            ]
        classes = {of: image_classes.outcomes for of, image_classes in data.image_classes.items()}
        classes |= loading.nearest_attributes(config, data)
        groups = []
        for of, outcomes in classes.items():
            labels = np.concatenate([outcomes[name] for name in data.generated])
            groups.append(Groups.of({of: labels}))
        return np.array(ids, dtype=object), groups, pictures

    def designs(self, config: Config, data: TextToImageData) -> list[Design]:
        """Return every generator and guidance in each space, then with each share."""
        encoders = [*config.encoders]
        if len(encoders) > 1:
            encoders.append(ALL)
        generations = list[tuple[str, float | None, int | None]]()
        for name, images in data.generated.items():
            generations += product((name,), images.guidances, images.steps)
        pair = " against ".join(config.pairs[0]) if config.pairs else ""
        designs = list[Design]()
        for (name, guidance, step), encoder in product(generations, encoders):
            designs.append(SpaceDesign(name, guidance, encoder, pair, config, data, step=step))
        for name, guidance, step in generations:
            if encoders and data.generated[name].latents is not None:
                place = (name, guidance, LATENTS, pair)
                designs.append(LatentDesign(*place, config, data, step=step))
        for share, (name, guidance, step) in product(config.shares, generations):
            design = ShareDesign(
                name, guidance, share.source, share.of, config, data, share, step=step
            )
            designs.append(design)
        return designs

    def measure(
        self,
        config: Config,
        data: TextToImageData,
        design: Design,
        resampling: Resampling | None,
    ) -> Measured:
        """Measure associations in a space, or the shares of classes."""
        results = [*design.measure(resampling)]
        points = tuple(result for result in results if isinstance(result, CurvePoint))
        outcome = measured((r for r in results if not isinstance(r, CurvePoint)), SCHEMAS)
        findings = outcome.findings
        if design.step is not None or isinstance(design, LatentDesign):
            # Tables have the groups' values; what leads is about final images.
            findings = tuple(finding.changed(leads=False, by_group=()) for finding in findings)
        return MeasuredSteps(findings, outcome.tables, outcome.notes, points=points)

    def combine(
        self, config: Config, data: TextToImageData, measured_designs: Sequence[Measured]
    ) -> Measured:
        """Add the errors of classifiers, and the table of versions."""
        options = config.resampling
        curves = onsets(measured_designs, options.replicates, options.seed)
        together = Measured.together([*measured_designs, measured(curves, SCHEMAS)])
        versions = {
            (design.model, design.version): {
                **vars(design), "version": design.version, "step": design.position,
                "final": design.step is None,
            }
            for design in self.designs(config, data)
        }  # fmt: skip
        rows = {
            "share_confusions": _confusion_rows(config, data),
            "versions": versions.values(),
            "steps": [row for row in versions.values() if row["step"]],
        }
        return replace(together, tables={**together.tables, **tables_of(rows, _COLUMNS)})

    def details(
        self,
        config: Config,
        data: TextToImageData,
        designs: Sequence[Design],
        tests: Mapping[str, int],
    ) -> Mapping[str, Json]:
        """Return images by generator, and labelled images of the rarest class."""
        images = [
            {
                "generator": name, "asked": int(generated.final.sum()),
                "there": "to be made" if generated.planned else generated.n_images,
            }
            for name, generated in data.generated.items()
        ]  # fmt: skip
        rarest = {
            of: int(image_classes.confusion.labelled.min())
            for of, image_classes in data.image_classes.items()
            if image_classes.confusion is not None
        }
        return {"images": images, "labelled_of_the_rarest": rarest}

    def warnings(
        self, config: Config, data: TextToImageData, designs: Sequence[Design]
    ) -> Iterator[Note | str]:
        """Yield a warning for each share of an unchecked classifier."""
        for share in config.shares:
            if share.labelled is None:
                yield Note(share.of, f"shares have no verdict, because {UNCHECKED}.")

    def notes(
        self, config: Config, data: TextToImageData, designs: Sequence[Design]
    ) -> Iterator[Note | str]:
        """Yield the notes on groups, intervals, and images without outputs."""
        yield "Groups are as prompts name them and classifiers perceive them."
        if config.pairs:
            unit = "prompt" if config.over_prompts else "seed"
            yield f"Intervals of associations are over {unit}s: images of one {unit} go together."
        for external in data.external.values():
            for target, shares in external.by_target.items():
                yield from note_on_sample(target, shares, external.kind)
        for design in designs:
            if isinstance(design, SpaceDesign):
                yield from design.notes
        for name, images in data.generated.items():
            yield from _image_notes(name, images, [*config.prompts_of(name).texts])
        for model, encoder in data.encoders.items():
            for generator, vectors in encoder.images.items():
                if n_unusable := int(
                    ((data.generated[generator].state == IMAGE) & ~vectors.usable).sum()
                ):
                    yield Note(model, f"{n_unusable} images of {generator} have no usable vector.")


def _image_notes(
    name: str, images: loading.GeneratedImages, prompts: Sequence[str]
) -> Iterator[Note | str]:
    """Yield the notes on the prompts, seeds and states of a generator's images."""
    if not images.estimated:
        yield Note(
            name,
            "images at steps are decoded from latents with their noise, because its scheduler "
            "gives no estimate of the clean image.",
        )
    named = np.isin(images.items.columns["prompt"].astype(str), prompts)
    if n := int((~named).sum()):
        yield Note(
            name,
            f"{n} of {len(named)} images have a prompt that 'prompts' doesn't "
            "name; they are not used.",
        )
    if not images.seeded:
        yield Note(name, "seeds are not known, so every image counts as independent.")
    for state in (REFUSED, FAILED):
        if n := int((images.final & (images.state == state)).sum()):
            yield Note(
                name,
                f"{n} of {int(images.final.sum())} images were {state}; they are in no "
                "share and no score.",
            )


def _confusion_rows(config: Config, data: TextToImageData) -> Iterator[dict[str, Any]]:
    for share in config.shares:
        confusion = data.image_classes[share.of].confusion
        if confusion is None:
            continue
        counts = confusion.counts.tolist(), confusion.labelled.tolist()
        for label, row, n in zip(confusion.classes, *counts, strict=True):
            for outcome, count in zip(confusion.outcomes, row, strict=True):
                yield {
                    "groups": share.of, "label": label, "said": outcome, "count": count, "n": n,
                    "condition": confusion.condition,
                }  # fmt: skip

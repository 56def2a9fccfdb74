"""The audit of text-to-image models: leaning of targets, and groups that images show."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from equipoise.audits.columns import tables_of
from equipoise.audits.engines.associations.spaces import SCHEMAS as ASSOCIATIONS
from equipoise.audits.engines.associations.spaces import measured
from equipoise.audits.group_sizes import Members, members_of
from equipoise.audits.kind import Audit, Measured, audit_kind
from equipoise.audits.outputs import Models
from equipoise.audits.text_to_image import loading
from equipoise.audits.text_to_image.config import Config
from equipoise.audits.text_to_image.designs import ALL, UNCHECKED, ShareDesign, SpaceDesign
from equipoise.audits.text_to_image.loading import FAILED, IMAGE, REFUSED, TextToImageData
from equipoise.core import Groups, Objects
from equipoise.core.types import Json
from equipoise.evidence import Pictures
from equipoise.stats import Resampling

Design = SpaceDesign | ShareDesign

SCHEMAS: Mapping[str, str] = {
    **{name: ASSOCIATIONS[name] for name in ("amplification", "score_summaries")},
    **{name: f"{ASSOCIATIONS[name]} set" for name in ("mcas_parts", "xmcas")},
    "shares": "target category class #guidance +images #share #low #high #raw #raw_low "
    "#raw_high #outside outside_name ?corrected reason",
    "image_states": "target state +count",
}
"""Columns by table; docs/audits/text_to_image.md explains them."""

_COLUMNS = {
    "share_confusions": "groups label said +count +n #condition",
    "versions": "model version by #guidance",
}


@audit_kind("text_to_image")
class TextToImage(Audit[Config, TextToImageData, Design]):
    """Audits of text-to-image models."""

    items = "images"

    def load(self, config: Config, models: Models) -> TextToImageData:
        """Read or generate the images, and read or run the models on them."""
        return loading.load(config, models)

    def members(self, config: Config, data: TextToImageData, on: str) -> Members:
        """Return the images of each prompt of a batch."""
        for images in data.made.values():
            names = [batch.name for batch in images.batches]
            if on in names or on.startswith(tuple(f"{name}, " for name in names)):
                return members_of(images.items.ids, images.items.columns, [("prompt",)])
        return {}

    def examples(self, config: Config, data: TextToImageData) -> dict[str, pl.DataFrame]:
        """Return the images of each target and attribute; their cosine with the prompt as score.

        The outcome is the strength of guidance.
        """
        owners = pl.DataFrame(config.prompts.owners, ("label", "subject"), orient="row")
        found, start = dict[str, pl.DataFrame](), 0
        for name, made in data.made.items():
            named = [
                f"guidance {g:g}" if not np.isnan(g) else "generated image" for g in made.guidance
            ]
            rows = made.table.select(
                pl.int_range(start, start + pl.len()).alias("place"),
                "state",
                label="prompt",
                outcome=pl.Series(named),
                score=pl.Series(loading.likeness(config, data, name)),
            )
            start += made.table.height
            kept = rows.filter(state=IMAGE).drop("state")
            found[name] = kept.join(owners, on="label", maintain_order="left")
        return found

    def pictured(
        self, config: Config, data: TextToImageData, models: Models
    ) -> tuple[Objects, list[Groups], list[Pictures]]:
        """Return the images of all generators; groups are classes, and sets of attributes."""
        ids: list[str] = []
        pictures: list[Pictures] = []
        for name, made in data.made.items():
            # Images of two generators may have one id.
            prefix = f"{name}: " if len(data.made) > 1 else ""
            ids += [prefix + one for one in made.items.ids]
            parts = [batch.pictures for batch in made.batches if batch.pictures is not None]
            pictures += [replace(one, ids=prefix + one.ids) for one in parts]
        classes = {of: judged.outcomes for of, judged in data.judged.items()}
        classes |= loading.leaning(config, data)
        groups = [
            Groups.of({of: np.concatenate([own[name] for name in data.made])})
            for of, own in classes.items()
        ]
        return np.array(ids, dtype=object), groups, pictures

    def designs(self, config: Config, data: TextToImageData) -> list[Design]:
        """Return every generator and guidance in each space, then with each share."""
        encoders = [*config.encoders, *([ALL] if len(config.encoders) > 1 else [])]
        generated = [(name, g) for name, made in data.made.items() for g in made.guidances]
        return [
            *(
                SpaceDesign(*each, own, " against ".join(config.pairs[0]), config, data)
                for each in generated
                for own in encoders
            ),
            *(
                ShareDesign(*each, own.source, own.of, config, data, own)
                for own in config.shares
                for each in generated
            ),
        ]

    def measure(
        self,
        config: Config,
        data: TextToImageData,
        design: Design,
        resampling: Resampling | None,
    ) -> Measured:
        """Measure associations in a space, or the shares of classes."""
        return measured(design.measure(resampling), SCHEMAS)

    def combine(
        self, config: Config, data: TextToImageData, measured_designs: Sequence[Measured]
    ) -> Measured:
        """Add errors of classifiers, and what the versions of findings stand for."""
        every = Measured.together(measured_designs)
        versions = {
            (each.model, each.version): {**vars(each), "version": each.version}
            for each in self.designs(config, data)
        }
        rows = {"share_confusions": _confusions(config, data), "versions": versions.values()}
        return replace(every, tables={**every.tables, **tables_of(rows, _COLUMNS)})

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
                "generator": name, "asked": len(made.state),
                "there": "to be made" if made.planned else int((made.state == IMAGE).sum()),
            }
            for name, made in data.made.items()
        ]  # fmt: skip
        rarest = {
            of: int(judged.confusion.labelled.min())
            for of, judged in data.judged.items()
            if judged.confusion is not None
        }
        return {"images": images, "labelled_of_the_rarest": rarest}

    def warnings(
        self, config: Config, data: TextToImageData, designs: Sequence[Design]
    ) -> Iterator[str]:
        """Yield the shares whose classifier nobody checked."""
        for share in config.shares:
            if share.labelled is None:
                yield f"{share.of}: shares have no verdict, because {UNCHECKED}."

    def notes(
        self, config: Config, data: TextToImageData, designs: Sequence[Design]
    ) -> Iterator[str]:
        """Yield the notes on groups, intervals, and images without outputs."""
        yield "Groups are as prompts name them and classifiers perceive them."
        if config.pairs:
            unit = "prompt" if config.over_prompts else "seed"
            yield f"Intervals of associations are over {unit}s: images of one {unit} go together."
        spaces = (each for each in designs if isinstance(each, SpaceDesign))
        yield from (note for each in spaces for note in each.notes)
        for name, images in data.made.items():
            named = np.isin(images.items.columns["prompt"].astype(str), [*config.prompts.texts])
            if n := int((~named).sum()):
                yield (
                    f"{name}: {n} of {len(named)} images have a prompt that 'prompts' doesn't "
                    "name; they are not used."
                )
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
        counts = confusion.counts.tolist(), confusion.labelled.tolist()
        for label, row, n in zip(confusion.classes, *counts, strict=True):
            for outcome, count in zip(confusion.outcomes, row, strict=True):
                yield {
                    "groups": share.of, "label": label, "said": outcome, "count": count, "n": n,
                    "condition": confusion.condition,
                }  # fmt: skip

"""The audit of text-to-image models: leaning of targets, and groups that images show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from equipoise.audits.audit import Audit, Measured, audit_kind
from equipoise.audits.engines.associations.results import Note, Row
from equipoise.audits.findings import UncorrectedFinding
from equipoise.audits.text_to_image import loading
from equipoise.audits.text_to_image.associating import measure_associations
from equipoise.audits.text_to_image.config import Config
from equipoise.audits.text_to_image.designs import ALL, SpaceDesign, space_designs
from equipoise.audits.text_to_image.images import FAILED, IMAGE, REFUSED
from equipoise.audits.text_to_image.loading import TextToImageData
from equipoise.audits.text_to_image.sharing import ShareDesign, measure_shares, share_designs
from equipoise.audits.text_to_image.tables import further_tables, row_tables

if TYPE_CHECKING:
    from equipoise.audits.outputs import Models
    from equipoise.audits.running.failed import Members
    from equipoise.core.groups import Groups
    from equipoise.stats.resampling import Resampling

Design = SpaceDesign | ShareDesign


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
                    return {"prompt": batch.by_prompt}
        return {}

    def designs(self, config: Config, data: TextToImageData) -> list[Design]:
        """Return every generator and guidance in each space, then with each share."""
        return [*space_designs(config, data), *share_designs(config, data)]

    def measure(
        self,
        config: Config,
        data: TextToImageData,
        design: Design,
        resampling: Resampling | None,
    ) -> Measured:
        """Measure associations in a space, or the shares of classes."""
        results = [
            *(
                measure_associations(design, resampling)
                if isinstance(design, SpaceDesign)
                else measure_shares(design, resampling)
            )
        ]
        return Measured(
            tuple(each for each in results if isinstance(each, UncorrectedFinding)),
            row_tables(each for each in results if isinstance(each, Row)),
            tuple(each.text for each in results if isinstance(each, Note)),
        )

    def combine(
        self, config: Config, data: TextToImageData, measured: Sequence[Measured]
    ) -> Measured:
        """Add errors of classifiers, results by guidance, and results by encoder."""
        every = Measured.together(measured)
        further = further_tables(config, data, every.findings)
        return replace(every, tables={**every.tables, **further})

    def details(
        self,
        config: Config,
        data: TextToImageData,
        designs: Sequence[Design],
        tests: Mapping[str, int],
    ) -> Mapping[str, Any]:
        """Return images by generator, prompts by set, and labelled images by share."""
        prompts = [
            {"set": name, "prompts": len(texts)}
            for name, texts in config.prompts.attribute_texts.items()
        ]
        return {
            "images": [*_planned(data)],
            "prompts": [*prompts, {"set": "targets", "prompts": len(config.prompts.target_names)}],
            "shares": [_share(each) for each in designs if isinstance(each, ShareDesign)],
        }

    def notes(
        self, config: Config, data: TextToImageData, designs: Sequence[Design]
    ) -> Iterable[str]:
        """Return the notes on groups, intervals, and images without outputs."""
        yield "Groups are as prompts name them and classifiers perceive them."
        if config.pairs:
            yield (
                "Prompts are as declared: intervals are over images and seeds, not over other "
                "prompts."
                if config.associations is None or config.associations.clusters == "seed"
                else "Intervals are over prompts: images of one prompt are resampled together."
            )
        if len(config.encoders) > 1:
            yield (
                f"“{ALL}” averages the cosines of {', '.join(config.encoders)}: its scores are the "
                "means of theirs."
            )
        yield from _image_notes(data)


def _planned(data: TextToImageData) -> Iterator[dict[str, Any]]:
    for name, images in data.made.items():
        for guidance in images.guidances:
            here = slice(None) if guidance is None else images.guidance == guidance
            states = images.state[here]
            yield {
                "generator": name,
                "guidance": guidance,
                "asked": len(states),
                "there": "to be made" if images.planned else int((states == IMAGE).sum()),
            }


def _share(design: ShareDesign) -> dict[str, Any]:
    confusion = design.confusion
    return {
        "of": design.share.of,
        "generator": design.generator,
        "guidance": design.guidance,
        "labelled_of_the_rarest": None if confusion is None else int(confusion.labelled.min()),
    }


def _image_notes(data: TextToImageData) -> Iterator[str]:
    for name, images in data.made.items():
        if not images.seeded:
            yield f"{name}: seeds are not known, so every image counts as independent."
        for state in (REFUSED, FAILED):
            n = int((images.state == state).sum())
            if n:
                yield (
                    f"{name}: {n} of {len(images.state)} images were {state}; they are in no share "
                    "and no score."
                )
    for (model, generator), vectors in data.vectors.items():
        lost = int(((data.made[generator].state == IMAGE) & ~vectors.usable).sum())
        if lost:
            yield f"{model}: {lost} images of {generator} have no usable vector."

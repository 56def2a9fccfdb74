"""Associations of images in the latent space of the generator that made them."""

from collections.abc import Iterator, Sequence
from functools import cached_property

from equipoise.audits.associations.config import MeasureConfig, measured_metrics
from equipoise.audits.associations.measures import score_of
from equipoise.audits.associations.spaces import AssociationData, Question, Space
from equipoise.audits.associations.text_to_image.designs import AUDIT, Result, SpaceDesign
from equipoise.audits.associations.text_to_image.loading import IMAGE
from equipoise.audits.associations.text_to_image.steps import II
from equipoise.core import Integers, record
from equipoise.data import Vectors
from equipoise.stats import Resampling

LATENTS = "latents"
"""The space of what a generator's images are decoded from."""


@record
class LatentDesign(SpaceDesign):
    """Images of a generator in its latent space, which has no texts: II alone is measured."""

    @property
    def tested(self) -> bool:
        """Whether its numbers are tested: they are."""
        return True

    @cached_property
    def latents(self) -> Vectors:
        """The latents of all images."""
        latents = self.generated.latents
        assert latents is not None  # noqa: S101 - made for generators that have them
        return latents

    @cached_property
    def association(self) -> AssociationData:
        """The images as the associations of embeddings take them."""
        prompts = self.prompts
        texts_by_set = dict(prompts.attribute_texts)
        for texts in prompts.target_texts.values():
            texts_by_set |= texts
        return AssociationData(
            items={"images": self.generated.items},
            kinds={"images": "image"},
            units={"images": "prompt" if self.config.over_prompts else "seed"},
            sets={name: self.members(texts) for name, texts in texts_by_set.items()},
            vectors={self.model: {"images": self.latents}},
            pairs={},
        )

    def members(
        self,
        prompts: Sequence[str],
        words: Sequence[str] | None = None,  # noqa: ARG002 - latents have no texts
    ) -> dict[str, Integers]:
        """Return the images that were made of some prompts."""
        rows = self.rows(tuple(prompts))
        usable = (self.generated.state[rows] == IMAGE) & self.latents.usable[rows]
        return {"images": rows[usable]}

    def measure(self, resampling: Resampling | None) -> Iterator[Result]:
        """Measure the association of each target's latents with each pair's."""
        options = self.config.resampling
        targets = {category: tuple(names) for category, names in self.targets.items()}
        for pair in self.pairs:
            for metric, spec in measured_metrics(AUDIT).items():
                if "modalities" not in spec.takes or spec.targets != "each":
                    continue
                measure = MeasureConfig(
                    metric=metric, modalities=(II,), targets=targets, attributes=pair,
                    version=self.version,
                )  # fmt: skip
                space = Space(self.model, self.association)
                question = Question(AUDIT, measure, space, options.seed, options.level, resampling)
                for case in question.cases:
                    finding, estimate = score_of(question, case)
                    yield finding
                    compared = measure.group_text, measure.sides
                    yield self.point(*compared, case.targets[0], estimate, II)

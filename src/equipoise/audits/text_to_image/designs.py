"""What is measured in the space of encoders: generator × guidance × encoder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from equipoise.audits.engines.associations.spaces import AssociationData, Space
from equipoise.audits.text_to_image.images import IMAGE
from equipoise.core.groups import Groups
from equipoise.data import Items, ItemSource, Vectors, load_items

if TYPE_CHECKING:
    from equipoise.audits.text_to_image.config import Config
    from equipoise.audits.text_to_image.loading import TextToImageData

# Seconds of a draw for a number in a space, and for the shares of a target: rough guides, from the
# example.
SECONDS_PER_SCORE, SECONDS_PER_SHARE = 1.7e-6, 2.5e-6

ALL = "all encoders"
"""The space in which a cosine is the mean of those of all encoders."""

Indices = npt.NDArray[np.int64]
Sets = Mapping[str, Mapping[str, Indices]]


def version_of(what: str, guidance: float | None) -> str:
    """Return how findings call an encoder or a classifier at a strength of guidance."""
    return what if guidance is None else f"{what}, guidance {guidance:g}"


@dataclass(frozen=True, eq=False)
class SpaceDesign:
    """Images of a generator at one strength of guidance, in the space of one encoder.

    Attributes
    ----------
    generator : str
    guidance : float or None
    encoder : str
        Entry of `models`, or `ALL`.
    config : Config
    data : TextToImageData
    """

    generator: str
    guidance: float | None
    encoder: str
    config: Config
    data: TextToImageData = field(repr=False)

    @property
    def version(self) -> str:
        """How findings call the design."""
        return version_of(self.encoder, self.guidance)

    @property
    def model(self) -> str:
        """Name of the generator."""
        return self.generator

    @property
    def groups(self) -> Groups:
        """Groups of no items: sets of images are compared."""
        name = " against ".join(self.config.pairs[0]) if self.config.pairs else ""
        return Groups((name,), (), np.empty(0, dtype=np.int32))

    @property
    def lacking(self) -> Mapping[str, int]:
        """Items in no group: none."""
        return {}

    @property
    def tests(self) -> int:
        """How many tests the design makes."""
        return self.tested * len(self.config.pairs) * len(self.config.prompts.target_names)

    def seconds(self, draws: int) -> float:
        """About how long it takes to measure."""
        prompts = self.config.prompts
        own = len(prompts.target_names) + sum(map(len, prompts.attribute_texts.values()))
        return SECONDS_PER_SCORE * draws * len(self.config.pairs) * own

    @property
    def tested(self) -> bool:
        """Whether its numbers are tested: those of one of several encoders stand beside."""
        return self.encoder == ALL or len(self.config.encoders) == 1

    @cached_property
    def vectors(self) -> tuple[Vectors, Items, Vectors]:
        """Vectors of the images, the texts, and their vectors."""
        if self.encoder != ALL:
            data = self.data
            found = data.vectors[self.encoder, self.generator]
            return found, data.texts[self.encoder], data.text_vectors[self.encoder]
        return _together(self.config, self.data, self.generator)

    @cached_property
    def association(self) -> AssociationData:
        """The images and texts as the associations of embeddings take them."""
        images, text_items, texts = self.vectors
        made = self.data.made[self.generator]
        items = made.items
        unit = "prompt" if self._over_prompts else "seed"
        return AssociationData(
            items={"images": items, "texts": _with_prompts(text_items)},
            kinds={"images": "image", "texts": "text"},
            units={"images": unit} | ({"texts": "prompt"} if self._over_prompts else {}),
            sets=self.sets,
            vectors={self.generator: {"images": images, "texts": texts}},
            pairs={},
        )

    @property
    def _over_prompts(self) -> bool:
        given = self.config.associations
        return given is not None and given.clusters == "prompt"

    @property
    def space(self) -> Space:
        """The space as the associations of embeddings take it; findings are of the generator."""
        return Space(self.generator, self.association)

    @cached_property
    def sets(self) -> Sets:
        """Images with a usable vector and texts of every target and set of attributes."""
        prompts = self.config.prompts
        named = dict(prompts.attribute_texts)
        for texts in prompts.target_texts.values():
            named |= texts
        return {name: self.members(texts) for name, texts in named.items()}

    def members(self, texts: tuple[str, ...]) -> dict[str, Indices]:
        """Return the images that were made of some prompts, and the prompts."""
        images, text_items, _ = self.vectors
        made = self.data.made[self.generator]
        rows = made.rows(texts, self.guidance)
        kept = rows[(made.state[rows] == IMAGE) & images.usable[rows]]
        places = {one: row for row, one in enumerate(text_items.ids.tolist())}
        return {"images": kept, "texts": np.array([places[one] for one in texts], dtype=np.int64)}

    def known(self, name: str) -> bool:
        """Whether a set has images."""
        return len(self.sets[name]["images"]) > 0

    @property
    def targets(self) -> dict[str, list[str]]:
        """Targets that have images, by category."""
        found = {
            category: [name for name in texts if self.known(name)]
            for category, texts in self.config.prompts.target_texts.items()
        }
        return {category: names for category, names in found.items() if names}


def space_designs(config: Config, data: TextToImageData) -> Iterator[SpaceDesign]:
    """Yield every generator at every strength of guidance, in the space of every encoder."""
    every = [*config.encoders, *([ALL] if len(config.encoders) > 1 else [])]
    for generator, made in data.made.items():
        for guidance in made.guidances:
            for encoder in every:
                yield SpaceDesign(generator, guidance, encoder, config, data)


def _with_prompts(items: Items) -> Items:
    ids = pa.array(items.ids.tolist(), pa.string())
    frame = pa.table({"id": ids, "prompt": ids})
    return load_items(ItemSource(frame, "id", ("prompt",)), what=items.name)


def _together(
    config: Config, data: TextToImageData, generator: str
) -> tuple[Vectors, Items, Vectors]:
    """Join the unit vectors of all encoders: their cosine is the mean of the encoders' cosines."""
    names = config.encoders
    texts = [*config.prompts.texts]
    ids = np.empty(len(texts), dtype=object)
    ids[:] = texts
    items = Items("texts in all encoders", "id", ids, {}, {}, {"rows": len(ids)})
    images = [data.vectors[name, generator] for name in names]
    usable = np.logical_and.reduce([one.usable for one in images])
    rows = np.flatnonzero(usable)
    image_rows = np.concatenate([_unit(one, rows) for one in images], axis=1)
    blocks = []
    for name in names:
        places = {one: row for row, one in enumerate(data.texts[name].ids.tolist())}
        wanted = np.array([places[text] for text in texts], dtype=np.int64)
        blocks.append(_unit(data.text_vectors[name], wanted))
    where = np.full(len(usable), -1, dtype=np.int64)
    where[rows] = np.arange(len(rows))
    every = np.arange(len(texts))
    return (
        _vectors("images in all encoders", data.made[generator].items.ids, where, image_rows),
        items,
        _vectors("texts in all encoders", ids, every, np.concatenate(blocks, axis=1)),
    )


def _unit(vectors: Vectors, rows: Indices) -> npt.NDArray[np.float64]:
    found = np.asarray(vectors.take(rows), dtype=np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", found, found))
    return np.asarray(found / np.where(lengths > 0, lengths, 1.0)[:, None])


def _vectors(
    name: str, ids: npt.NDArray[np.object_], rows: Indices, stored: npt.NDArray[np.float64]
) -> Vectors:
    nothing = np.zeros(len(ids), dtype=bool)
    return Vectors(name, ids, rows, stored, False, nothing, nothing, {}, {})

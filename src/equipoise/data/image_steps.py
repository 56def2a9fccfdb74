"""Declared steps that leave images or labels out, or join two sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from equipoise.core import DataError, InputError
from equipoise.data.coded import Coded
from equipoise.data.gathered import Gathered, Marks, image_set
from equipoise.data.image_parts import Boxes, Flags, Pairs, Step
from equipoise.data.image_set import ImageSet


@dataclass(frozen=True)
class LeaveOutImages:
    """Images of some ids are left out.

    Attributes
    ----------
    ids : frozenset of str
    why : str
        Who they are, in words, as in "they are in Visual Genome".
    """

    ids: frozenset[str]
    why: str

    @property
    def description(self) -> str:
        """The rule in words."""
        return f"images are left out where {self.why}"

    def __call__(self, images: ImageSet, /) -> ImageSet:
        """Leave them out, counted."""
        out = np.array([one in self.ids for one in images.ids], dtype=np.bool_)
        counts = {"images_left_out": int(out.sum()), "ids_not_here": len(self.ids - {*images.ids})}
        return _kept(images, ~out, Step("left out", self.description, counts))


def leave_out_visual_genome(visual_genome: ImageSet) -> LeaveOutImages:
    """Return the rule of [Hall] that leaves images of Visual Genome out of COCO.

    Parameters
    ----------
    visual_genome : ImageSet
        With the column `coco_id`, as `read_visual_genome_images` reads it.

    References
    ----------
    Hall et al. 2023, case study 1.
    """
    ids = (one for one in visual_genome.column("coco_id").values if one is not None)
    return LeaveOutImages(frozenset(ids), "they are in Visual Genome too")


@dataclass(frozen=True)
class LeaveOutUnlabelled:
    """Images without a label are left out, as [Hall] does."""

    @property
    def description(self) -> str:
        """The rule in words."""
        return "images without a label are left out"

    def __call__(self, images: ImageSet, /) -> ImageSet:
        """Leave them out, counted.

        Raises
        ------
        InputError
            When the set has no labels at all.
        """
        kept = np.zeros(len(images), dtype=np.bool_)
        kept[images.need_labels().image] = True
        counts = {"images_left_out": int((~kept).sum())}
        return _kept(images, kept, Step("unlabelled", self.description, counts))


@dataclass(frozen=True)
class LeaveOutLabels:
    """Some labels are left out, such as those that define the groups.

    Attributes
    ----------
    labels : frozenset of str
    why : str
    """

    labels: frozenset[str]
    why: str

    @property
    def description(self) -> str:
        """The rule in words."""
        return f"labels are left out where {self.why}: {', '.join(sorted(self.labels))}"

    def __call__(self, images: ImageSet, /) -> ImageSet:
        """Leave them out, counted; images that lose every label stay."""
        pairs = images.need_labels()
        codes = [c for c, text in enumerate(pairs.label.vocabulary) if text in self.labels]
        kept = ~np.isin(pairs.label.codes, codes)
        label = Coded(pairs.label.codes[kept], pairs.label.vocabulary)
        counts = {"labels_left_out": len(codes), "pairs_left_out": int((~kept).sum())}
        step = Step("labels left out", self.description, counts)
        labels = Pairs(pairs.image[kept], label)
        return replace(images, labels=labels, steps=(*images.steps, step))


@dataclass(frozen=True)
class IdsFrom:
    """Images are named by a column, such as `file_name` where scores name files.

    Attributes
    ----------
    column : str
    """

    column: str

    @property
    def description(self) -> str:
        """The rule in words."""
        return f"images are named by the column {self.column}"

    def __call__(self, images: ImageSet, /) -> ImageSet:
        """Name them; the ids of before stand in the column `original_id`.

        Raises
        ------
        InputError
            When an image has no name there, or two have the same.
        """
        names = images.column(self.column).values.tolist()
        times = Counter(names)
        wrong = "an image has no name there" if None in times else None
        if not wrong and len(times) < len(names):
            wrong = f"{times.most_common(1)[0][0]!r} is there twice"
        if wrong:
            raise InputError(
                f"{images.name}, column {self.column!r}: {wrong}; expected a name for each image"
            )
        columns = {n: c.values.tolist() for n, c in images.columns.items() if n != self.column}
        gathered = Gathered(names, {**columns, "original_id": images.ids.tolist()})
        if images.labels:
            gathered.labels = _marks(images.labels)
        if images.captions:
            captions = images.captions
            gathered.captions = [*zip(captions.image.tolist(), captions.texts, strict=True)]
        if images.boxes:
            gathered.boxes = _marks(images.boxes)
        step = Step("ids", self.description, {"images": len(images)})
        return image_set(
            gathered,
            name=images.name,
            format=images.format,
            inputs=images.inputs,
            counts=images.counts,
            steps=(*images.steps, step),
        )


def _marks(part: Pairs | Boxes) -> Marks:
    marks = Marks()
    corners = part.corners.tolist() if isinstance(part, Boxes) else [()] * len(part.image)
    for image, text, four in zip(part.image.tolist(), part.label.values, corners, strict=True):
        marks.add(image, text, tuple(four))
    return marks


def combine(first: ImageSet, second: ImageSet) -> ImageSet:
    """Return the images that two sets share, with what either knows of them.

    Parameters
    ----------
    first, second : ImageSet
        As captions and instances of COCO. Where both have labels, captions, boxes or a column of
        one name, those of the first are used.

    Returns
    -------
    ImageSet
        With a step that counts the images of one set alone, which are left out.

    Raises
    ------
    DataError
        When they share no image.
    """
    shared = {*first.ids} & {*second.ids}
    if not shared:
        raise DataError(
            f"no image of {first.name} is in {second.name}",
            file=second.name,
            expected="sets of the same images",
            fix="read both files of one and the same part of the data (train or val)",
        )
    description = f"images of {first.format} that are images of {second.format} too"
    counts = {"images": len(shared), "only_first": len(first) - len(shared)}
    step = Step("combined", description, counts | {"only_second": len(second) - len(shared)})
    a, b = (one.take(_among(one, shared), step) for one in (first, second))
    return replace(
        a,
        name=f"{first.name}, {second.name}",
        format=f"{first.format}, {second.format}",
        columns={**b.columns, **a.columns},
        labels=a.labels or b.labels,
        captions=a.captions or b.captions,
        boxes=a.boxes or b.boxes,
        inputs={**first.inputs, **second.inputs},
        counts={first.format: first.counts, second.format: second.counts},
        steps=(*first.steps, *second.steps, step),
    )


def _among(images: ImageSet, ids: Iterable[str]) -> Flags:
    among = {*ids}
    return np.array([one in among for one in images.ids], dtype=np.bool_)


def _kept(images: ImageSet, kept: Flags, step: Step) -> ImageSet:
    """Return the images kept; a step that leaves none is an error."""
    if not kept.any():
        raise InputError(f"{images.name}: no image is left where {step.description}")
    return images.take(kept, step)

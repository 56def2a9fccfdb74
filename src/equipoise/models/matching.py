"""Neutral texts held against every image through the captions that fit what it shows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.models.ensembles import Ensemble, Rule, mean_vectors, naming

Floats = NDArray[np.float32]
Embed = Callable[[Sequence[str]], Floats]
NUMBERS = ("gate", "offset", "directions")
# Texts that are read in one go: each neutral one has a block of numbers for every value.
_AT_ONCE = 256


@dataclass(frozen=True)
class Said:
    """How neutral texts are said with one value of an attribute.

    Attributes
    ----------
    value : str
    rules : tuple of Rule
        As of an `Ensemble`: each neutral text, and its captions that name the value.
    """

    value: str
    rules: tuple[Rule, ...]


@dataclass(frozen=True, eq=False)
class Matching:
    """A neutral text's similarity to an image as a mean with that of captions that fit the image.

    score = w₀ · cos(image, text) + w₁ · cos(both without `directions`) + Σ wₐ · cos(image, captions
    of the text that name the value of attribute a that the image was told to have). Vectors that
    give this as their cosine have a block of numbers for the text itself, one for the text without
    directions, and one for each value; an image fills the first two and those of its own values.
    Texts that name a value, and others that fit no rule, fill the first alone.

    Attributes
    ----------
    attributes : mapping of str to tuple of Said
        By attribute, its values in the order of the gate's columns.
    weights : tuple of float
        Of the text itself, of it without directions (if there are any), of each attribute: 0 or
        above, 1 in all.
    gate : ndarray of float32, shape (dimension, values)
        An image of unit length times this, plus `offset`, is largest at its own values.
    offset : ndarray of float32, shape (values,)
    directions : ndarray of float32, shape (k, dimension)
        Orthonormal rows; none with k = 0.
    """

    attributes: Mapping[str, tuple[Said, ...]]
    weights: tuple[float, ...]
    gate: Floats = field(repr=False)
    offset: Floats = field(repr=False)
    directions: Floats = field(repr=False)

    @staticmethod
    def of(given: Mapping[str, Any], numbers: Mapping[str, Floats]) -> Matching:
        """Read what `facts` made of a matching.

        Raises
        ------
        ValueError, KeyError, TypeError
            If texts, weights and gate are missing, or do not belong together.
        """
        attributes = {
            str(one["attribute"]): tuple(
                Said(said["value"], Ensemble.of({"rules": said["rules"], "values": []}).rules)
                for said in one["values"]
            )
            for one in given["attributes"]
        }
        gate, offset, directions = (numbers[name] for name in NUMBERS)
        weights = tuple(map(float, given["weights"]))
        made = Matching(attributes, weights, gate, offset, directions)
        count = sum(map(len, attributes.values()))
        if gate.ndim != 2 or gate.shape[1] != count or offset.shape != (count,):
            raise ValueError(f"its gate of shape {gate.shape} does not tell {count} values")
        if directions.ndim != 2 or directions.shape[1] != len(gate):
            raise ValueError(f"its directions have the shape {directions.shape}")
        if not all(np.isfinite(numbers[name]).all() for name in NUMBERS):
            raise ValueError("its numbers are not all finite")
        if not np.allclose(directions @ directions.T, np.eye(len(directions)), atol=1e-3):
            raise ValueError("its directions are not of unit length and at right angles")
        named = [said["value"] for one in given["attributes"] for said in one["values"]]
        told = [said.rules for values in attributes.values() for said in values]
        if not all(isinstance(value, str) for value in named) or not all(told):
            raise ValueError("a value is no text, or nothing says it")
        whole = abs(sum(weights) - 1.0) < 1e-6 and min(weights, default=-1.0) >= 0.0
        if len(weights) != made._filled_blocks or not whole:
            raise ValueError(f"its weights are not {made._filled_blocks} that are 1 in all")
        return made

    @property
    def facts(self) -> dict[str, Any]:
        """All but the numbers of the gate, as JSON takes it."""
        # A list: the order of attributes is that of the weights and of the gate's columns.
        told = [
            {"attribute": name, "values": [asdict(one) for one in values]}
            for name, values in self.attributes.items()
        ]
        return {"attributes": told, "weights": list(self.weights)}

    @property
    def numbers(self) -> dict[str, Floats]:
        """The numbers, by name."""
        return {name: getattr(self, name) for name in NUMBERS}

    @property
    def dimension(self) -> int:
        """Numbers of a vector: a block for the text, one for each value, and what fills up."""
        return len(self.gate) * self._blocks + 1

    @property
    def stretch(self) -> float:
        """What a cosine is to be multiplied by to be the mean of cosines."""
        return self._length * math.sqrt(self._filled_blocks)

    def told(self, images: NDArray[np.float64]) -> dict[str, NDArray[np.intp]]:
        """Return the value of each attribute that images of unit length are told to have.

        Parameters
        ----------
        images : ndarray of float64, shape (n, dimension)

        Returns
        -------
        dict of str to ndarray of int, shape (n,)
            Places in `attributes`.
        """
        scores = images @ self.gate.astype(np.float64) + self.offset.astype(np.float64)
        return {name: scores[:, here].argmax(axis=1) for name, here in self._columns.items()}

    def cosines(
        self, images: NDArray[np.float64], blocks: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return what the weights weigh, of images of unit length and one neutral text.

        Parameters
        ----------
        images : ndarray of float64, shape (n, dimension)
        blocks : ndarray of float64
            See `blocks`.

        Returns
        -------
        ndarray of float64, shape (n, weights)
        """
        lead, every = self._lead, np.arange(len(images))
        columns = [images @ blocks[0], self.cleared(images) @ blocks[lead - 1]][:lead]
        near = images @ blocks[lead:].T
        told = self.told(images)
        columns += [near[every, self._columns[name].start + told[name]] for name in told]
        return np.column_stack(columns)

    def cleared(self, unit: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return vectors without the directions, at length 1."""
        rows = self.directions.astype(np.float64)
        return unit_vectors(unit - (unit @ rows.T) @ rows)

    def images(self, vectors: Floats) -> Floats:
        """Return vectors of images, (n, `dimension`), of those of the model inside."""
        unit = unit_vectors(vectors)
        blocks = np.zeros((len(unit), self._blocks, len(self.gate)), dtype=np.float32)
        blocks[:, 0] = unit
        if self._lead > 1:
            blocks[:, 1] = self.cleared(unit)
        every = np.arange(len(unit))
        for name, place in self.told(unit).items():
            blocks[every, self._lead + self._columns[name].start + place] = unit
        return np.pad(blocks.reshape(len(unit), self.dimension - 1), ((0, 0), (0, 1)))

    def texts(self, embed_texts: Embed, texts: Sequence[str]) -> Floats:
        """Return vectors of texts, (n, `dimension`), read by the model inside.

        Parameters
        ----------
        embed_texts : callable
        texts : sequence of str
        """
        found = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for start in range(0, len(texts), _AT_ONCE):
            some = texts[start : start + _AT_ONCE]
            for row, blocks in enumerate(self.blocks(embed_texts, some), start):
                weights = self._block_weights if len(blocks) > 1 else np.ones(1)
                found[row, : blocks.size] = (weights[:, None] * blocks).ravel()
                # All texts are equally long, so that cosines of neutral ones and others compare.
                if blocks.any():
                    room = self._length**2 - float(weights @ weights)
                    found[row, -1] = math.sqrt(max(room, 0.0))
        return found

    def blocks(self, embed_texts: Embed, texts: Sequence[str]) -> list[NDArray[np.float64]]:
        """Return unit vectors of each text, (1 or blocks, dimension).

        Those of a neutral text are its own, without directions, and for each value.
        """
        groups = [self._said(text) for text in texts]
        unit = unit_vectors(mean_vectors(embed_texts, [one for some in groups for one in some]))
        ends = np.cumsum([len(some) for some in groups])[:-1]
        return [self._led(part) for part in np.split(unit, ends)] if groups else []

    def _led(self, part: NDArray[np.float64]) -> NDArray[np.float64]:
        if len(part) == 1 or self._lead == 1:
            return part
        return np.concatenate([part[:1], self.cleared(part[:1]), part[1:]])

    def _said(self, text: str) -> list[tuple[str, ...]]:
        """Return a text, then, of a neutral one, its captions for each value."""
        if self._named.search(text):
            return [(text,)]
        captions = [one.said(text) for one in self._ensembles]
        if any(some == (text,) for some in captions):
            return [(text,)]
        return [(text,), *captions]

    @cached_property
    def _columns(self) -> dict[str, slice]:
        ends = np.cumsum([0, *map(len, self.attributes.values())]).tolist()
        return {
            name: slice(*two) for name, two in zip(self.attributes, pairwise(ends), strict=True)
        }

    @cached_property
    def _block_weights(self) -> NDArray[np.float64]:
        """Weights of all blocks: every value of an attribute has that of the attribute."""
        sizes = [*[1] * self._lead, *map(len, self.attributes.values())]
        return np.repeat(np.array(self.weights), sizes)

    @property
    def _lead(self) -> int:
        """Blocks that every image fills: its own, and that without directions."""
        return 2 if len(self.directions) else 1

    @property
    def _blocks(self) -> int:
        return self._lead + len(self.offset)

    @property
    def _filled_blocks(self) -> int:
        return self._lead + len(self.attributes)

    @cached_property
    def _length(self) -> float:
        weights = self._block_weights
        return math.sqrt(max(1.0, float(weights @ weights)))

    @cached_property
    def _ensembles(self) -> list[Ensemble]:
        every = [one for values in self.attributes.values() for one in values]
        return [Ensemble(one.rules, ()) for one in every]

    @cached_property
    def _named(self) -> Any:
        return naming([one.value for values in self.attributes.values() for one in values])


def unit_vectors(vectors: Any) -> NDArray[np.float64]:
    """Return vectors at length 1 in float64; one of zeros stays, and is similar to nothing."""
    wide = np.asarray(vectors, dtype=np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    found: NDArray[np.float64] = wide / np.where(lengths > 0, lengths, 1.0)
    return found

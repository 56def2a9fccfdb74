"""The prefix ``equipoise:``: a folder that says which model to wrap, and how."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import TypeAdapter

from equipoise.core import AnyArray, Floats, Floats32, ModelError, Positions, record
from equipoise.core.files import read_regular
from equipoise.core.types import Json
from equipoise.core.writing import write
from equipoise.models.hub import refuse_revision
from equipoise.models.images import Images
from equipoise.models.info import ModelInfo, digests, one_digest, write_settings
from equipoise.models.protocols import DualEncoder
from equipoise.models.registry import Options, Preview, absolute, adapter, load_nested, relative
from equipoise.stats.streams import stream

PLACE = "{}"


@dataclass(frozen=True)
class Rule:
    """A neutral text, and the same text with attributes.

    Attributes
    ----------
    neutral : str
        A whole text, or one with ``{}`` in the place of the subject: "a photo of a {}".
    attributed : tuple of str
        The same with attributes, ``{}`` in the same place: "a photo of an old {}", ….
    """

    neutral: str
    attributed: tuple[str, ...]


@dataclass(frozen=True)
class Ensemble:
    """Rules for neutral texts; a text that names an attribute is unchanged.

    Attributes
    ----------
    rules : tuple of Rule
        Of several that fit a text, the one with the longest words applies.
    values : tuple of str
        Words for attributes: a text that holds one is not neutral.
    """

    rules: tuple[Rule, ...]
    values: tuple[str, ...]

    def captions(self, text: str) -> tuple[str, ...]:
        """Return the captions of a neutral text; other texts stay alone."""
        for pattern, rule in self._patterns:
            match = pattern.fullmatch(text)
            # What stands for the subject, or of a whole text all of it, must name no value.
            if match and not self._value_pattern.search(match[pattern.groups]):
                subject = match[1] if pattern.groups else ""
                return tuple(caption.replace(PLACE, subject) for caption in rule.attributed)
        return (text,)

    @cached_property
    def _patterns(self) -> list[tuple[re.Pattern[str], Rule]]:
        longest = sorted(self.rules, key=lambda rule: (-len(rule.neutral), rule.neutral))
        return [
            (re.compile("(.+)".join(map(re.escape, rule.neutral.split(PLACE, 1)))), rule)
            for rule in longest
        ]

    @cached_property
    def _value_pattern(self) -> re.Pattern[str]:
        return word_pattern(self.values)


Embed = Callable[[Sequence[str]], Floats32]


def mean_vectors(embed_texts: Embed, caption_groups: Sequence[Sequence[str]]) -> Floats32:
    """Return the mean of the captions' unit vectors, for each group of captions.

    Of a single caption it is the vector itself, as long as it is. Every caption is read once.
    """
    distinct = [*dict.fromkeys(chain.from_iterable(caption_groups))]
    place = {text: row for row, text in enumerate(distinct)}
    vectors = embed_texts(distinct).astype(np.float64)
    unit = unit_vectors(vectors)
    means = []
    for captions in caption_groups:
        rows = [place[caption] for caption in captions]
        means.append(vectors[rows[0]] if len(rows) == 1 else unit[rows].mean(axis=0))
    return np.array(means, dtype=np.float32).reshape(len(caption_groups), vectors.shape[1])


def word_pattern(words: Sequence[str]) -> re.Pattern[str]:
    """Return a pattern that finds any of some words, whole and in any case."""
    alternatives = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
    return re.compile(
        rf"(?<!\w)(?:{alternatives})(?!\w)" if alternatives else r"(?!)", re.IGNORECASE
    )


SETTINGS, MATCHING = "equipoise_model.json", "matching.safetensors"
SHIFTS = "shifts.safetensors"
SUBSPACE = "subspace.safetensors"
FORMAT = 3


@dataclass(frozen=True)
class ValueCaptions:
    """Captions of neutral texts that name a value of an attribute.

    Attributes
    ----------
    value : str
    rules : tuple of Rule
        As of an `Ensemble`: each neutral text, and its captions that name the value.
    """

    value: str
    rules: tuple[Rule, ...]


@dataclass(frozen=True)
class Draws:
    """Combinations of attribute values, drawn for images of neutral prompts.

    Attributes
    ----------
    combinations : tuple of ValueCaptions
        Drawn with equal shares. Rules of each: neutral prompts, and captions that name its values.
    values : tuple of str
        A prompt that holds one of these words is not neutral.
    strength : float
        How far the embedding of a prompt moves towards that of its caption; 1: all the way.
    """

    combinations: tuple[ValueCaptions, ...]
    values: tuple[str, ...]
    strength: float = 1.0

    def place(self, seed: int) -> int:
        """Return the place of the combination that an image leans to."""
        return int(stream(seed, "balance").integers(len(self.combinations)))

    def text(self, prompt: str, seed: int) -> str:
        """Return the caption drawn for an image; a prompt that isn't neutral is unchanged."""
        rules = self.combinations[self.place(seed)].rules
        captions = Ensemble(rules, self.values).captions(prompt)
        return captions[int(stream(seed, "caption").integers(len(captions)))]


@record
class Subspace:
    """Directions that vectors lose.

    Attributes
    ----------
    images, texts : ndarray of float32, shape (k, dimension), optional
        Orthonormal rows, for vectors of images and of texts; None leaves these as they are.
    """

    images: AnyArray | None = None
    texts: AnyArray | None = None

    @property
    def numbers(self) -> dict[str, Floats32]:
        """The directions, by name."""
        named = {"images": self.images, "texts": self.texts}
        return {
            name: np.ascontiguousarray(rows, dtype=np.float32)
            for name, rows in named.items()
            if rows is not None
        }

    def remove(self, vectors: Floats32, side: Literal["images", "texts"]) -> Floats32:
        """Return vectors of a side without its directions."""
        rows = self.numbers.get(side)
        if rows is None:
            return vectors
        return (vectors - (vectors @ rows.T) @ rows).astype(np.float32)


@record
class Wrapping:
    """Changes to the texts and vectors of a model.

    Attributes
    ----------
    ensemble : Ensemble, optional
        Texts whose vector is the mean of those of several captions.
    matching : Matching, optional
        What becomes of all vectors in the end.
    draws : Draws, optional
        Of a generator: what its neutral prompts lean to.
    shifts : ndarray of float32, shape (combinations, 1, dimension), optional
        Added to every token of the embedding of a prompt, in place of captions.
    subspace : Subspace, optional
        Directions that vectors lose.
    record : mapping
        How it came about, for whoever reads the folder.
    """

    ensemble: Ensemble | None = None
    matching: Matching | None = None
    draws: Draws | None = None
    shifts: Floats32 | None = None
    subspace: Subspace | None = None
    record: Mapping[str, Any] = field(default_factory=dict)

    @property
    def facts(self) -> dict[str, Json]:
        """All that decides an output but the numbers, as JSON takes it."""
        if self.draws is not None:
            return {"draws": asdict(self.draws)}
        if self.subspace is not None:
            return {"subspace": {name: len(rows) for name, rows in self.subspace.numbers.items()}}
        return {
            "ensemble": None if self.ensemble is None else asdict(self.ensemble),
            "matching": None if self.matching is None else self.matching.facts,
        }

    @property
    def arrays(self) -> dict[str, dict[str, Floats32]]:
        """The numbers, by file and name."""
        if self.shifts is not None:
            return {SHIFTS: {"shifts": self.shifts}}
        if self.subspace is not None:
            return {SUBSPACE: self.subspace.numbers}
        return {} if self.matching is None else {MATCHING: self.matching.numbers}


@dataclass(frozen=True)
class WrappedEncoder:
    """A dual encoder with changed output vectors; made by `load_model`."""

    info: ModelInfo
    base: DualEncoder
    wrapping: Wrapping

    def embed_images(self, images: Images) -> Floats32:
        """Return projected vectors of n images, (n, dimension), not normalised."""
        vectors, matching = self.base.embed_images(images), self.wrapping.matching
        if self.wrapping.subspace is not None:
            return self.wrapping.subspace.remove(vectors, "images")
        return vectors if matching is None else matching.images(vectors)

    def embed_texts(self, texts: Sequence[str]) -> Floats32:
        """Return projected vectors of n texts, (n, dimension), not normalised."""
        matching = self.wrapping.matching
        if self.wrapping.subspace is not None:
            return self.wrapping.subspace.remove(self._read(texts), "texts")
        return self._read(texts) if matching is None else matching.texts(self._read, texts)

    def _read(self, texts: Sequence[str]) -> Floats32:
        ensemble = self.wrapping.ensemble
        if ensemble is None:
            return self.base.embed_texts(texts)
        return mean_vectors(self.base.embed_texts, [*map(ensemble.captions, texts)])


def save_wrapped(
    folder: Path, base: ModelInfo, wrapping: Wrapping, *, destination: Path | None = None
) -> None:
    """Write the folder that ``equipoise:folder`` loads as a model.

    Parameters
    ----------
    folder : Path
        There, and empty.
    base : ModelInfo
        Of the model to wrap. A folder or file is named relative to `destination`.
    wrapping : Wrapping
    destination : Path, optional
        Where the folder moves afterwards. Default: `folder`.
    """
    settings = {
        "format": FORMAT,
        "base": relative(base.name, destination or folder),
        "base_weights_sha256": base.weights_sha256,
        **wrapping.facts,
        "record": dict(wrapping.record),
    }
    for name, numbers in wrapping.arrays.items():
        from safetensors.numpy import save

        write(folder / name, save(numbers))
    write_settings(folder / SETTINGS, settings)


def _read_settings(target: str) -> Settings:
    try:
        content = read_regular(Path(target).expanduser() / SETTINGS)
        return TypeAdapter(Settings).validate_json(content)
    except (OSError, ValueError) as error:
        raise ModelError(f"{target} holds no {SETTINGS} that can be read: {error}.") from error


def preview(target: str) -> Preview:
    """Return an empty preview of a wrapped model.

    Raises
    ------
    ModelError
        If the folder holds none.
    """
    _read_settings(target)
    return Preview()


@adapter("equipoise", preview=preview)
def load(target: str, options: Options) -> WrappedEncoder:
    """Load a wrapped dual encoder.

    Parameters
    ----------
    target : str
        A folder that holds equipoise_model.json.
    options : Options
        As for the model inside.

    Raises
    ------
    ModelError
        If the folder is none of these, or the model inside is missing, another one than was
        wrapped, or made by code that is not trusted.
    """
    base, wrapping, info = open_wrapped(target, options)
    matching = wrapping.matching
    if matching is not None:
        # Without a scale of its own it is told what makes its cosines those of the model inside.
        scale = (info.scale or 1.0) * matching.stretch
        info = replace(info, dimension=matching.dimension, scale=scale)
    return WrappedEncoder(info, base, wrapping)


class OpenedModel(NamedTuple):
    """A wrapped model, read from its folder.

    Attributes
    ----------
    base : model
        The model inside.
    wrapping : Wrapping
    info : ModelInfo
        Facts of the model with its wrapping.
    """

    base: Any
    wrapping: Wrapping
    info: ModelInfo


def open_wrapped(target: str, options: Options, *, makes_images: bool = False) -> OpenedModel:
    """Open a folder with a wrapped model.

    Parameters
    ----------
    target, options
        As of an adapter.
    makes_images : bool
        Whether the model inside makes images.

    Raises
    ------
    ModelError
        See `load`.
    """
    refuse_revision(target, options)
    folder, settings = Path(target).expanduser(), _read_settings(target)
    base = _base(settings, folder, options, makes_images=makes_images)
    try:
        wrapping = _wrapping(settings, folder, base.info.dimension or 0)
    except Exception as error:
        raise ModelError(f"{target} cannot be read: {error}.") from error
    array_digests = digests(folder / name for name in wrapping.arrays)
    info = replace(
        base.info,
        name=options.name,
        weights_sha256=one_digest({"base": base.info.weights_sha256, **array_digests}),
        files={**base.info.files, **digests([folder / SETTINGS]), **array_digests},
        revision=None,
        preprocessing={**base.info.preprocessing, "wrapping": wrapping.facts},
    )
    return OpenedModel(base, wrapping, info)


def _base(settings: Settings, folder: Path, options: Options, *, makes_images: bool) -> Any:
    name = absolute(settings.base, folder)
    try:
        base = load_nested(name, options, makes_images=makes_images)
    except ModelError as error:
        raise ModelError(f"{options.name} wraps {name}, which is not loaded: {error}") from error
    if not (makes_images or isinstance(base, DualEncoder)):
        raise ModelError(f"{options.name} wraps {name}, which isn't a dual encoder.")
    if base.info.weights_sha256 != settings.base_weights_sha256:
        raise ModelError(
            f"{options.name} was made of another model than {name} is now: its weights differ. "
            "To do: put the model back, or mitigate this one again."
        )
    return base


def _wrapping(settings: Settings, folder: Path, dimension: int) -> Wrapping:
    matching, draws, shifts = None, settings.draws, None
    if settings.matching:
        from safetensors.numpy import load_file

        matching = Matching.from_numbers(settings.matching, load_file(folder / MATCHING), dimension)
    if draws and (folder / SHIFTS).is_file():
        from safetensors.numpy import load_file

        shifts = load_file(folder / SHIFTS)["shifts"]
        if len(shifts) != len(draws.combinations):
            raise ValueError(f"{SHIFTS} has not one shift for each combination")
    subspace = _subspace(settings.subspace, folder, dimension) if settings.subspace else None
    return Wrapping(settings.ensemble, matching, draws, shifts, subspace, settings.record)


def _subspace(
    sizes: Mapping[Literal["images", "texts"], int], folder: Path, dimension: int
) -> Subspace:
    from safetensors.numpy import load_file

    numbers = load_file(folder / SUBSPACE)
    if {name: rows.shape for name, rows in numbers.items()} != {
        name: (size, dimension) for name, size in sizes.items()
    }:
        raise ValueError(f"{SUBSPACE} has other directions than the settings name")
    return Subspace(numbers.get("images"), numbers.get("texts"))


NUMBERS = ("gate", "offset", "directions")
LEAD = 2
"""Blocks that every image fills: its own, and that without directions."""


@dataclass(frozen=True)
class Attribute:
    """Values of an attribute, in the order of the gate's columns."""

    attribute: str
    values: tuple[ValueCaptions, ...]


@dataclass(frozen=True)
class _Facts:
    attributes: tuple[Attribute, ...]
    weights: tuple[float, ...]


@dataclass(frozen=True)
class Settings:
    """Contents of the settings file."""

    format: Literal[3]
    base: str
    base_weights_sha256: str
    record: dict[str, Any]
    ensemble: Ensemble | None = None
    matching: _Facts | None = None
    draws: Draws | None = None
    subspace: dict[Literal["images", "texts"], int] | None = None


@record
class Matching:
    """Similarity averaged over a neutral text and captions that fit the image.

    score = w₀ · cos(image, text) + w₁ · cos(both without `directions`) + Σ wₐ · cos(image, captions
    of the text that name the value of attribute a that the image was told to have). Vectors that
    give this as their cosine have a block of numbers for the text itself, one for the text without
    directions, and one for each value; an image fills the first two and those of its own values.
    Texts that name a value, and others that fit no rule, fill the first alone.

    Attributes
    ----------
    attributes : tuple of Attribute
    weights : tuple of float
        Of the text itself, of it without directions, of each attribute: 0 or above, 1 in all.
    gate : ndarray of float32, shape (dimension, values)
        An image of unit length times this, plus `offset`, is largest at its own values.
    offset : ndarray of float32, shape (values,)
    directions : ndarray of float32, shape (k, dimension)
        Orthonormal rows.
    """

    attributes: tuple[Attribute, ...]
    weights: tuple[float, ...]
    gate: Floats32
    offset: Floats32
    directions: Floats32

    @staticmethod
    def from_numbers(facts: _Facts, numbers: Mapping[str, Floats32], dimension: int) -> Matching:
        """Return the matching that `facts` and `numbers` describe.

        Raises
        ------
        ValueError, KeyError
            If numbers are missing, or do not belong to the texts and weights.
        """
        parts = {name: numbers[name] for name in NUMBERS}
        matching = Matching(facts.attributes, facts.weights, **parts)
        count = sum(matching._sizes)
        shapes = [array.shape for array in parts.values()]
        shapes[2] = shapes[2][1:]
        fits = shapes == [(dimension, count), (count,), (dimension,)]
        if not fits or len(facts.weights) != LEAD + len(facts.attributes):
            raise ValueError(f"numbers that do not belong to {count} values of {dimension} numbers")
        return matching

    @property
    def facts(self) -> dict[str, Json]:
        """All but the numbers of the gate, as JSON takes it."""
        return asdict(_Facts(self.attributes, self.weights))

    @property
    def numbers(self) -> dict[str, Floats32]:
        """The numbers, by name."""
        return {
            name: np.ascontiguousarray(getattr(self, name), dtype=np.float32) for name in NUMBERS
        }

    @property
    def dimension(self) -> int:
        """Length of a vector: a block for the text, for each value, and a filler."""
        return len(self.gate) * self._blocks + 1

    @property
    def stretch(self) -> float:
        """Factor from a cosine to the mean of cosines."""
        return self._length * math.sqrt(LEAD + len(self.attributes))

    def gate_columns(self, images: Floats) -> list[Positions]:
        """Assign a value of each attribute to images of unit length.

        Parameters
        ----------
        images : ndarray of float64, shape (n, dimension)

        Returns
        -------
        list of ndarray of int, shape (n,)
            Columns of the gate, one for each attribute.
        """
        scores = images @ self.gate.astype(np.float64) + self.offset.astype(np.float64)
        ends = np.cumsum([0, *self._sizes]).tolist()
        return [scores[:, start:end].argmax(axis=1) + start for start, end in pairwise(ends)]

    def cosines(self, images: Floats, blocks: Floats) -> Floats:
        """Return the cosines of images with a neutral text, before weighting.

        Parameters
        ----------
        images : ndarray of float64, shape (n, dimension)
        blocks : ndarray of float64
            See `blocks`.

        Returns
        -------
        ndarray of float64, shape (n, weights)
        """
        caption_cosines, rows = images @ blocks[LEAD:].T, np.arange(len(images))
        fitting = [caption_cosines[rows, column] for column in self.gate_columns(images)]
        return np.column_stack(
            [images @ blocks[0], self.remove_directions(images) @ blocks[1], *fitting]
        )

    def remove_directions(self, unit: Floats) -> Floats:
        """Return vectors without the directions, at length 1."""
        rows = self.directions.astype(np.float64)
        return unit_vectors(unit - (unit @ rows.T) @ rows)

    def images(self, vectors: Floats32) -> Floats32:
        """Return extended vectors of images, (n, `dimension`)."""
        unit = unit_vectors(vectors)
        blocks = np.zeros((len(unit), self._blocks, len(self.gate)), dtype=np.float32)
        blocks[:, 0] = unit
        blocks[:, 1] = self.remove_directions(unit)
        for columns in self.gate_columns(unit):
            blocks[np.arange(len(unit)), LEAD + columns] = unit
        return np.pad(blocks.reshape(len(unit), self.dimension - 1), ((0, 0), (0, 1)))

    def texts(self, embed_texts: Embed, texts: Sequence[str]) -> Floats32:
        """Return vectors of texts, (n, `dimension`), read by the model inside.

        Parameters
        ----------
        embed_texts : callable
        texts : sequence of str
        """
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, blocks in enumerate(self.blocks(embed_texts, texts)):
            weights = self._block_weights if len(blocks) > 1 else np.ones(1)
            vectors[row, : blocks.size] = (weights[:, None] * blocks).ravel()
            # All texts are equally long, so that cosines of neutral ones and others compare.
            if blocks.any():
                vectors[row, -1] = math.sqrt(max(self._length**2 - float(weights @ weights), 0.0))
        return vectors

    def blocks(self, embed_texts: Embed, texts: Sequence[str]) -> list[Floats]:
        """Return unit vectors of each text, (1 or blocks, dimension).

        Those of a neutral text are its own, without directions, and for each value.
        """
        groups = [self._caption_groups(text) for text in texts]
        unit = unit_vectors(mean_vectors(embed_texts, [*chain.from_iterable(groups)]))
        ends = np.cumsum([len(group) for group in groups])
        parts = np.split(unit, ends[:-1]) if groups else []
        return [self._with_cleared_block(part) for part in parts]

    def _with_cleared_block(self, vectors: Floats) -> Floats:
        """Insert the text without directions after the text; a text alone stays alone."""
        if len(vectors) == 1:
            return vectors
        cleared = self.remove_directions(vectors[:1])
        return np.concatenate([vectors[:1], cleared, vectors[1:]])

    def _caption_groups(self, text: str) -> list[tuple[str, ...]]:
        """Return a text, followed by its captions for each value if it is neutral."""
        captions = [ensemble.captions(text) for ensemble in self._ensembles]
        fits = not self._value_pattern.search(text) and (text,) not in captions
        return [(text,), *captions] if fits else [(text,)]

    @property
    def _sizes(self) -> list[int]:
        return [len(attribute.values) for attribute in self.attributes]

    @cached_property
    def _block_weights(self) -> Floats:
        """Weights of all blocks: every value of an attribute has that of the attribute."""
        return np.repeat(np.array(self.weights), [*[1] * LEAD, *self._sizes])

    @property
    def _blocks(self) -> int:
        return LEAD + len(self.offset)

    @cached_property
    def _length(self) -> float:
        weights = self._block_weights
        return math.sqrt(max(1.0, float(weights @ weights)))

    @cached_property
    def _ensembles(self) -> list[Ensemble]:
        return [
            Ensemble(value.rules, ()) for attribute in self.attributes for value in attribute.values
        ]

    @cached_property
    def _value_pattern(self) -> Any:
        return word_pattern(
            [value.value for attribute in self.attributes for value in attribute.values]
        )


def unit_vectors(vectors: npt.ArrayLike) -> Floats:
    """Return vectors at length 1 in float64; zero vectors stay zero."""
    wide = np.asarray(vectors, dtype=np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    return wide / np.where(lengths > 0, lengths, 1.0)

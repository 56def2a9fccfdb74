"""Read the images, what models say of them, and shares from outside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from equipoise.audits.text_to_image.batches import IMAGE
from equipoise.audits.text_to_image.elsewhere import check_prompts, guidance_of, states_of
from equipoise.audits.text_to_image.judging import Judged, judged
from equipoise.audits.text_to_image.outside import Outside, outside_of
from equipoise.audits.text_to_image.wording import class_texts
from equipoise.core.errors import DataError
from equipoise.data import Items, ItemSource, Vectors, load_items, load_vectors

if TYPE_CHECKING:
    from equipoise.audits.text_to_image.config import Config

Objects = npt.NDArray[np.object_]


@dataclass(frozen=True, eq=False)
class Made:
    """The images of one generator, one row for each that was asked for.

    Attributes
    ----------
    items : Items
        With the columns `prompt`, `seed` (itself where none is given).
    state : ndarray of str objects, shape (n,)
        "image", "refused" or "failed".
    guidance : ndarray of float, shape (n,)
        NaN where it is not known.
    seeded : bool
        Whether seeds are known.
    """

    items: Items
    state: Objects = field(repr=False)
    guidance: npt.NDArray[np.float64] = field(repr=False)
    seeded: bool

    @property
    def prompt(self) -> Objects:
        """The prompt of each image."""
        return np.asarray(self.items.columns["prompt"])

    @property
    def guidances(self) -> tuple[float | None, ...]:
        """Strengths of guidance, weakest first; None alone where none is known."""
        known = sorted({*self.guidance[~np.isnan(self.guidance)].tolist()})
        return tuple(known) or (None,)

    def rows(self, prompts: tuple[str, ...], guidance: float | None) -> npt.NDArray[np.int64]:
        """Return the images of some prompts at a strength of guidance that were asked for."""
        here = np.isin(self.prompt.astype(str), prompts)
        if guidance is not None:
            here &= self.guidance == guidance
        return np.flatnonzero(here)


@dataclass(frozen=True, eq=False)
class TextToImageData:
    """What an audit of text-to-image models measures.

    Attributes
    ----------
    made : mapping of str to Made
        By generator.
    texts : mapping of str to Items
        Texts with a vector, by model.
    text_vectors : mapping of str to Vectors
    vectors : mapping of (str, str) to Vectors
        By model and generator.
    judged : mapping of str to Judged
        What was said of images, by entry of `shares`.
    outside : mapping of str to Outside
        Shares from outside, by entry of `shares` that has some.
    inputs, counts : mapping
        Of every file read.
    """

    made: Mapping[str, Made]
    texts: Mapping[str, Items]
    text_vectors: Mapping[str, Vectors]
    vectors: Mapping[tuple[str, str], Vectors]
    judged: Mapping[str, Judged]
    outside: Mapping[str, Outside]
    inputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    counts: Mapping[str, Any] = field(default_factory=dict)


def load(config: Config, *, base: Path) -> TextToImageData:
    """Read everything that the configuration names.

    Raises
    ------
    DataError
        When a file cannot be used, a prompt has no vector, or vectors have different lengths.
    """
    made = {name: _made(config, name, base) for name in config.generators}
    texts: dict[str, Items] = {}
    text_vectors: dict[str, Vectors] = {}
    vectors: dict[tuple[str, str], Vectors] = {}
    for name, given in config.models.items():
        texts[name], text_vectors[name] = _texts(config, name, base)
        for generator, source in given.images.items():
            vectors[name, generator] = load_vectors(
                source.source(base),
                made[generator].items,
                what=f"embeddings of images of {generator} by {name}",
                max_unmatched=1.0,
            )
    _check_vectors(config, texts, text_vectors, vectors)
    said = {
        one.of: judged(one, config, made, (texts, text_vectors, vectors), base)
        for one in config.shares
    }
    outside = {
        one.of: outside_of(one, config.prompts.target_names, base)
        for one in config.shares
        if one.outside is not None
    }
    return TextToImageData(
        made, texts, text_vectors, vectors, said, outside,
        dict(_inputs(made, text_vectors, vectors, said, outside)),
        dict(_counts(made, vectors, said)),
    )  # fmt: skip


def _made(config: Config, name: str, base: Path) -> Made:
    given = config.generators[name].images
    assert given is not None  # noqa: S101 - what was made is a table once the audit is prepared
    items = load_items(given.source(base, given.columns), what=f"images of {name}")
    check_prompts(config, given, items)
    own = [f"{one}" for one in items.ids.tolist()]
    seeds = own
    if given.seed is not None:
        seeds = [
            mine if one is None else f"seed {one}"
            for mine, one in zip(own, items.columns[given.seed].tolist(), strict=True)
        ]
    frame = pa.table(
        {
            "image_id": pa.array(own, pa.string()),
            "prompt": pa.array(items.columns[given.prompt].tolist(), pa.string()),
            "seed": pa.array(seeds, pa.string()),
        }
    )
    known = load_items(ItemSource(frame, "image_id", ("prompt", "seed")), what=items.name)
    told = Items(items.name, known.id, known.ids, known.coded, items.inputs, items.counts)
    guidance = np.array([np.nan if g is None else g for g in guidance_of(items, given)])
    state = np.array(states_of(given, items.columns), dtype=object)
    if not (state == IMAGE).any():
        raise DataError(
            f"none of {len(state)} rows has an image",
            file=items.name,
            column=given.state,
            expected=f"the state {' or '.join(map(repr, given.made))} in some rows",
            fix="name the states of images that are there under 'made'",
        )
    return Made(told, state, guidance, given.seed is not None)


def texts_of(config: Config, name: str) -> list[str]:
    """Return the texts that a model is to have vectors of: prompts, then those of classes."""
    found = dict.fromkeys(config.prompts.texts if name in config.encoders else ())
    for share in config.shares:
        if share.model == name and share.question is None:
            for texts in class_texts(share).values():
                found |= dict.fromkeys(texts)
    return [*found]


def _texts(config: Config, name: str, base: Path) -> tuple[Items, Vectors]:
    """Read vectors whose ids are the texts themselves."""
    source = config.models[name].texts
    assert source is not None  # noqa: S101 - the schema asks for them
    what = f"embeddings of texts by {name}"
    texts = texts_of(config, name)
    ids = np.empty(len(texts), dtype=object)
    ids[:] = texts
    items = Items(what, "id", ids, {}, {}, {"rows": len(ids)})
    return items, load_vectors(source.source(base), items, what=what, max_unmatched=1.0)


def _check_vectors(
    config: Config,
    texts: Mapping[str, Items],
    text_vectors: Mapping[str, Vectors],
    vectors: Mapping[tuple[str, str], Vectors],
) -> None:
    for name in config.encoders:
        known = {*texts[name].ids[text_vectors[name].usable].tolist()}
        for text in config.prompts.texts:
            if text not in known:
                raise DataError(
                    f"the prompt {text!r} has no usable vector",
                    file=text_vectors[name].name,
                    expected="a vector of each prompt, named by its text",
                    fix="embed it, or leave the prompt out",
                )
        for generator in config.generators:
            if (name, generator) not in vectors:
                raise DataError(
                    f"models.{name}.images: no vectors of the images of {generator}",
                    expected="vectors of the images of each generator",
                    fix="name them, or leave the model out of associations.encoders",
                )
    for (name, generator), found in vectors.items():
        if found.dimension != text_vectors[name].dimension:
            raise DataError(
                f"images of {generator} have vectors of {found.dimension} numbers, texts of "
                f"{text_vectors[name].dimension}",
                file=found.name,
                expected="images and texts in one space",
                fix="embed both with the same model",
            )


def _inputs(
    made: Mapping[str, Made],
    text_vectors: Mapping[str, Vectors],
    vectors: Mapping[tuple[str, str], Vectors],
    said: Mapping[str, Judged],
    outside: Mapping[str, Outside],
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for images in made.values():
        yield from images.items.inputs.items()
    for found in (*text_vectors.values(), *vectors.values()):
        yield from found.inputs.items()
    for one in said.values():
        yield from one.inputs.items()
    for beside in outside.values():
        yield from beside.inputs.items()


def _counts(
    made: Mapping[str, Made],
    vectors: Mapping[tuple[str, str], Vectors],
    said: Mapping[str, Judged],
) -> Iterator[tuple[str, Any]]:
    for name, one in made.items():
        states, many = np.unique(one.state.astype(str), return_counts=True)
        yield name, dict(zip(states.tolist(), many.tolist(), strict=True))
    for (model, generator), found in vectors.items():
        yield f"{model}, images of {generator}", dict(found.counts)
    for of, answer in said.items():
        yield f"shares of {of}", dict(answer.counts)

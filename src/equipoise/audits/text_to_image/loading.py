"""Read or generate the images, and read or run the models on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from equipoise.audits.running.config import AS_IT_IS
from equipoise.audits.text_to_image.images import Batch, GeneratedImages, images_of
from equipoise.audits.text_to_image.judging import (
    Judged,
    Labelled,
    Sources,
    Spaces,
    class_texts,
    judge_images,
    read_labelled,
)
from equipoise.audits.text_to_image.outside import Outside, outside_of
from equipoise.core.errors import DataError
from equipoise.data import Items, Outputs, Vectors, load_vectors
from equipoise.data.coded import Coded
from equipoise.evidence.prompts import prompts

if TYPE_CHECKING:
    from equipoise.audits.outputs import Models
    from equipoise.audits.text_to_image.config import Config, ModelConfig
    from equipoise.audits.text_to_image.config_shares import SharesConfig

Objects = npt.NDArray[np.object_]
Images = Mapping[str, GeneratedImages]


@dataclass(frozen=True, eq=False)
class TextToImageData:
    """What an audit of text-to-image models measures.

    Attributes
    ----------
    made : mapping of str to GeneratedImages
        By generator.
    texts : mapping of str to Items
        Texts with a vector, by model.
    text_vectors : mapping of str to Vectors
    vectors : mapping of (str, str) to Vectors
        By model and generator.
    judged : mapping of str to Judged
        Classes of images, by entry of `shares`.
    outside : mapping of str to Outside
        Shares from outside, by entry of `shares` that has some.
    inputs, counts : mapping
        Of every file read.
    """

    made: Images
    texts: Mapping[str, Items]
    text_vectors: Mapping[str, Vectors]
    vectors: Mapping[tuple[str, str], Vectors]
    judged: Mapping[str, Judged]
    outside: Mapping[str, Outside]
    inputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    counts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ids(self) -> Objects:
        """Ids of the images of all generators."""
        return np.concatenate([images.items.ids for images in self.made.values()])


def load(config: Config, models: Models) -> TextToImageData:
    """Read everything that the config names, and run its models.

    Raises
    ------
    ConfigError
        When a model lacks the capability, or nothing says where the pictures are.
    DataError
        When a file can't be used, a prompt has no vector, or vectors have different lengths.
    """
    made = {name: images_of(name, config, models) for name in config.generators}
    labelled = {
        share.of: read_labelled(share, models.base)
        for share in config.shares
        if share.labelled is not None
    }
    sources = _sources(config, models, made, labelled)
    texts = {name: _text_items(config, name) for name in sources.texts}
    text_vectors = {
        name: load_vectors(
            source, texts[name], what=f"embeddings of texts by {name}", max_unmatched=1.0
        )
        for name, source in sources.texts.items()
    }
    vectors = {
        (name, generator): load_vectors(
            source,
            made[generator].items,
            what=f"embeddings of images of {generator} by {name}",
            max_unmatched=1.0,
        )
        for (name, generator), source in sources.images.items()
    }
    _check_vectors(config, texts, text_vectors, vectors)
    spaces = Spaces(texts, text_vectors, vectors)
    judged = {
        share.of: judge_images(share, made, spaces, sources, labelled.get(share.of), models.base)
        for share in config.shares
    }
    outside = {
        share.of: outside_of(share, config.prompts.target_names, models.base)
        for share in config.shares
        if share.outside is not None
    }
    read: list[Items | Vectors | Judged | Outside] = [
        *(images.items for images in made.values()), *text_vectors.values(), *vectors.values(),
        *judged.values(), *outside.values(),
    ]  # fmt: skip
    return TextToImageData(
        made, texts, text_vectors, vectors, judged, outside,
        {file: digest for each in read for file, digest in each.inputs.items()},
        dict(_counts(made, vectors, judged)),
    )  # fmt: skip


def _sources(
    config: Config, models: Models, made: Images, labelled: Mapping[str, Labelled]
) -> Sources:
    """Run the models that are named; the others have files."""
    sources = Sources()
    for name, section in config.models.items():
        if section.model is None:
            for generator, array in section.images.items():
                sources.images[name, generator] = array.source(models.base)
            assert section.texts is not None  # noqa: S101 - the config requires them of files
            sources.texts[name] = section.texts.source(models.base)
            for of, array in section.labelled.items():
                sources.labelled[name, of] = array.source(models.base)
            sources.scales[name] = section.scale
            continue
        own = [share for share in config.shares if share.model == name]
        for share in own:
            if share.question is not None:
                _answer(name, section, share, models, made, labelled.get(share.of), sources)
        zero_shot = [share for share in own if share.question is None]
        if zero_shot or name in config.encoders:
            _embed(config, name, models, made, labelled, sources)
    return sources


def _answer(
    name: str,
    section: ModelConfig,
    share: SharesConfig,
    models: Models,
    made: Images,
    labelled: Labelled | None,
    sources: Sources,
) -> None:
    """Ask a model about every image, and about the labelled ones."""
    models.capability(name, section, "answerer")
    question = share.question or ""
    for generator, images in made.items():
        sources.answers[share.of, generator] = _joined(
            [
                (
                    batch,
                    models.answer(
                        name, section, batch.need_pictures(name), question,
                        on=f"{batch.name}, {share.of}",
                    ),
                )
                for batch in images.batches
            ]
        )  # fmt: skip
    if labelled is not None:
        pictures = labelled.need_pictures(name, models.base)
        sources.labelled[name, share.of] = models.answer(
            name, section, pictures, question, on=f"{share.of}, labelled"
        )


def _embed(
    config: Config,
    name: str,
    models: Models,
    made: Images,
    labelled: Mapping[str, Labelled],
    sources: Sources,
) -> None:
    """Embed all images and texts with a model, and the labelled images of its shares."""
    section = config.models[name]
    models.capability(name, section, "encoder")
    for generator, images in made.items():
        sources.images[name, generator] = _joined(
            [
                (
                    batch,
                    models.embed_images(name, section, batch.need_pictures(name), on=batch.name),
                )
                for batch in images.batches
            ]
        )
    words = {text: (text,) for text in texts_of(config, name)}
    texts = models.embed_texts(name, section, prompts(words, AS_IT_IS), on="texts")
    sources.texts[name] = texts
    sources.scales[name] = section.scale or texts.info.get("scale")
    for share in config.shares:
        own = labelled.get(share.of)
        if share.model == name and share.question is None and own is not None:
            pictures = own.need_pictures(name, models.base)
            on = f"{share.of}, labelled"
            sources.labelled[name, share.of] = models.embed_images(name, section, pictures, on=on)


def _joined(parts: Sequence[tuple[Batch, Outputs]]) -> Outputs:
    """Return the outputs of all batches of a generator as one, under the ids of its images."""
    if len(parts) == 1 and not parts[0][0].prefix:
        return parts[0][1]
    first = parts[0][1]
    ids = [batch.prefix + name for batch, each in parts for name in each.ids.to_list()]
    requested = [
        batch.prefix + name
        for batch, each in parts
        for name in (each.requested if each.requested is not None else ())
    ]
    values, labels = first.values, None
    if values is not None:
        # The rows of a dry run are the same.
        values = (
            np.broadcast_to(values[:1], (len(ids), values.shape[1]))
            if first.planned
            else np.concatenate([each.numbers for _, each in parts])
        )
    if first.labels is not None:
        texts = [
            None if code < 0 else each.labels.vocabulary[code]
            for _, each in parts
            if each.labels is not None
            for code in each.labels.codes[:, 0].tolist()
        ]
        labels = Coded.of(pl.Series("", texts, dtype=pl.String)).column()
    return replace(
        first,
        ids=pl.Series("", ids, dtype=pl.String),
        values=values,
        labels=labels,
        requested=np.array(requested, dtype=object),
        failed={
            batch.prefix + name: stage
            for batch, each in parts
            for name, stage in each.failed.items()
        },
        inputs={file: digest for _, each in parts for file, digest in each.inputs.items()},
        identical=(),
    )


def texts_of(config: Config, name: str) -> list[str]:
    """Return the texts that a model embeds: prompts, then those of classes."""
    texts = dict.fromkeys(config.prompts.texts if name in config.encoders else ())
    for share in config.shares:
        if share.model == name and share.question is None:
            for own in class_texts(share).values():
                texts |= dict.fromkeys(own)
    return [*texts]


def _text_items(config: Config, name: str) -> Items:
    texts = texts_of(config, name)
    ids = np.empty(len(texts), dtype=object)
    ids[:] = texts
    return Items(f"embeddings of texts by {name}", "id", ids, {}, {}, {"rows": len(ids)})


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
    for (name, generator), own in vectors.items():
        if own.dimension != text_vectors[name].dimension:
            raise DataError(
                f"images of {generator} have vectors of {own.dimension} numbers, texts of "
                f"{text_vectors[name].dimension}",
                file=own.name,
                expected="images and texts in one space",
                fix="embed both with the same model",
            )


def _counts(
    made: Images,
    vectors: Mapping[tuple[str, str], Vectors],
    judged: Mapping[str, Judged],
) -> Iterator[tuple[str, Any]]:
    for name, images in made.items():
        states, n = np.unique(images.state.astype(str), return_counts=True)
        yield name, dict(zip(states.tolist(), n.tolist(), strict=True))
    for (model, generator), own in vectors.items():
        yield f"{model}, images of {generator}", dict(own.counts)
    for of, each in judged.items():
        yield f"shares of {of}", dict(each.counts)

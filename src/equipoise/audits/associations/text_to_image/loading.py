"""The images of every generator, made now or read, their classes, and models that look at them."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow as pa

from equipoise.audits.associations.text_to_image.config import (
    Config,
    GeneratorConfig,
    ImagesConfig,
    LabelledConfig,
    ModelConfig,
    OutsideSharesConfig,
    SharesConfig,
)
from equipoise.audits.columns import check_one_space, numbers_of
from equipoise.audits.images import pictures_of, required
from equipoise.audits.outputs import Models, make_images
from equipoise.config.fields import AS_IT_IS, located
from equipoise.core import Booleans, DataError, Floats, Floats32, Integers, Objects, record
from equipoise.core.types import FileFacts
from equipoise.data import (
    ArraySource,
    Items,
    ItemSource,
    Outputs,
    Vectors,
    load_items,
    load_vectors,
    read_table,
)
from equipoise.data.problems import listed, nearest
from equipoise.evidence import class_vectors, zero_shot
from equipoise.evidence.pictures import NotMade, Pictures, sorted_by_id
from equipoise.evidence.zero_shot import prompts
from equipoise.metrics.labels.reference import ReferenceKind, sample_size
from equipoise.metrics.labels.shares import Confusion

if TYPE_CHECKING:
    from equipoise.counterfactuals import Generated
    from equipoise.counterfactuals.parts import Request

IMAGE, REFUSED, FAILED = "image", "refused", "failed"
UNKNOWN = "unknown"
"""The outcome of images whose class is not clear."""


@record
class Batch:
    """Images of one generator that models run on together.

    Attributes
    ----------
    name : str
        What plans and manifests call it.
    rows : DataFrame
        Per requested image `image_id`, `prompt`, `state`, `seed`, `guidance` and `step`, null of
        final images.
    pictures : Pictures or None
        None where the table has no paths.
    latents : ndarray of float32, shape (pictures, numbers), or None
        What the pictures are decoded from, of generators that are audited at steps.
    estimated : bool
        As of `GeneratedImages`.
    """

    name: str
    rows: pl.DataFrame
    pictures: Pictures | None
    latents: Floats32 | None = None
    estimated: bool = True


@record
class GeneratedImages:
    """The images of one generator, a row for each requested image.

    Attributes
    ----------
    items : Items
        With the columns `prompt` and `seed` (the id where the seed is unknown).
    table : DataFrame
        The rows of all batches.
    batches : tuple of Batch
    planned : bool
        Whether the images are yet to be generated.
    last : int
        Number of denoising steps; 0 where the images are not audited at steps.
    estimated : bool
        Whether images at steps show the estimate of the clean image; else they have their noise.
    """

    items: Items
    table: pl.DataFrame
    batches: tuple[Batch, ...]
    planned: bool = False
    last: int = 0
    estimated: bool = True

    @cached_property
    def state(self) -> Objects:
        """Return "image", "refused" or "failed" for each image."""
        return self.table["state"].to_numpy()

    @cached_property
    def guidance(self) -> Floats:
        """Strength of guidance of each image; NaN where unknown."""
        return self.table["guidance"].to_numpy()

    @cached_property
    def final(self) -> Booleans:
        """Whether each image is final: it is not of a step before the last."""
        return self.table["step"].is_null().to_numpy()

    @property
    def steps(self) -> tuple[int | None, ...]:
        """Steps before the last, then None for the final images."""
        return (*self.table["step"].drop_nulls().unique().sort().to_list(), None)

    @cached_property
    def latents(self) -> Vectors | None:
        """Latents of the images, None if unknown."""
        known = [(batch.pictures, batch.latents) for batch in self.batches]
        ids, values = list[Objects](), list[Floats32]()
        for pictures, latents in known:
            if pictures is not None and latents is not None:
                ids.append(pictures.ids)
                values.append(latents)
        if not ids:
            return None
        joined = np.concatenate(ids)
        source = Outputs(
            model="latents", content="embeddings", source="latents", on="latents",
            ids=pl.Series("", joined.tolist(), dtype=pl.String), values=np.concatenate(values),
        )  # fmt: skip
        return load_vectors(source, self.items, subject="latents", max_unmatched=1.0)

    @property
    def n_images(self) -> int:
        """Requested images that exist."""
        return int(((self.state == IMAGE) & self.final).sum())

    @property
    def seeded(self) -> bool:
        """Whether seeds are known."""
        return bool(self.table["seed"].is_not_null().any())

    @property
    def guidances(self) -> tuple[float | None, ...]:
        """Strengths of guidance, weakest first; None alone where none is known."""
        return tuple(np.unique(self.guidance[~np.isnan(self.guidance)]).tolist()) or (None,)

    def rows(
        self, texts: tuple[str, ...], guidance: float | None, step: int | None = None
    ) -> Integers:
        """Return the requested images of some prompts at a strength of guidance and a step."""
        matches = np.isin(self.items.columns["prompt"].astype(str), texts)
        matches &= self.final if step is None else self.table["step"].eq_missing(step).to_numpy()
        if guidance is not None:
            matches &= self.guidance == guidance
        return np.flatnonzero(matches)


@record
class Encoder:
    """Texts and images in the space of a model.

    Attributes
    ----------
    texts : Vectors
        Named by the texts.
    images : mapping of str to Vectors
        By generator.
    labelled : mapping of str to source
        Vectors of labelled images, by entry of `shares`.
    scale : float or None
        What makes a logit of a cosine.
    """

    texts: Vectors
    images: Mapping[str, Vectors]
    labelled: Mapping[str, ArraySource | Outputs]
    scale: float | None

    @cached_property
    def places(self) -> Mapping[str, int]:
        """Row of each text."""
        return {text: row for row, text in enumerate(self.texts.ids.tolist())}

    def rows(self, texts: Iterable[str]) -> Integers:
        """Return the row of each text."""
        return np.array([self.places[text] for text in texts], dtype=np.int64)


@record
class ImageClasses:
    """Classes of images.

    Attributes
    ----------
    outcomes : mapping of str to ndarray of objects, shape (n,)
        By generator: a class, another outcome, or None of an image without any.
    confusion : Confusion or None
        Errors on labelled images, the same for all generators.
    inputs : mapping
    """

    outcomes: Mapping[str, Objects]
    confusion: Confusion | None
    inputs: Mapping[str, FileFacts]


@record
class ExternalShares:
    """Shares of the world outside.

    Attributes
    ----------
    name : str
    by_target : mapping of str to mapping of str to float
        Share or count of each class, by target that has them.
    kind : "census", "sample" or None
        Whether they are exact, or counts of a sample.
    inputs : mapping
        Of the file.
    """

    name: str
    by_target: Mapping[str, Mapping[str, float]]
    kind: ReferenceKind | None = None
    inputs: Mapping[str, FileFacts] = field(default_factory=dict)


@record
class TextToImageData:
    """The data of an audit of text-to-image models.

    Attributes
    ----------
    generated : mapping of str to GeneratedImages
        By generator.
    encoders : mapping of str to Encoder
        By model.
    image_classes : mapping of str to ImageClasses
        Classes of images, by entry of `shares`.
    external : mapping of str to ExternalShares
        By entry of `shares` that has some.
    inputs, counts : mapping
        Of every file read.
    """

    generated: Mapping[str, GeneratedImages]
    encoders: Mapping[str, Encoder]
    image_classes: Mapping[str, ImageClasses]
    external: Mapping[str, ExternalShares]
    inputs: Mapping[str, FileFacts]
    counts: Mapping[str, Any]

    @property
    def ids(self) -> Objects:
        """Ids of the images of all generators."""
        return np.concatenate([images.items.ids for images in self.generated.values()])


def load(config: Config, models: Models) -> TextToImageData:
    """Read everything that the config names, and run its models.

    Raises
    ------
    ConfigError
        When a model lacks the capability, or nothing says where the pictures are.
    DataError
        When a file can't be used, a prompt has no vector, or vectors have different lengths.
    ModelError
        When a generator can't be loaded, or fails too often.
    """
    generated = {name: _load_generator_images(name, config, models) for name in config.generators}
    labelled = {
        share.of: _read_labelled(share, share.labelled, models.base)
        for share in config.shares
        if share.labelled is not None
    }
    zero_shot = {share.model for share in config.shares if share.zero_shot}
    encoders = {
        name: _load_encoder(name, config, models, generated, labelled)
        for name, section in config.models.items()
        if section.model is None or name in (*zero_shot, *config.encoders)
    }
    image_classes = {
        share.of: _classify_images(
            share, config, models, generated, encoders, labelled.get(share.of)
        )
        for share in config.shares
    }
    external = {
        share.of: _read_external_shares(
            share, share.outside, config.prompts.target_names, models.base
        )
        for share in config.shares
        if share.outside is not None
    }
    vectors = dict[str, Vectors]()
    for name, encoder in encoders.items():
        for generator, image_vectors in encoder.images.items():
            vectors[f"{name}, images of {generator}"] = image_vectors
    read: list[Items | Vectors | ImageClasses | ExternalShares] = [
        *(images.items for images in generated.values()),
        *(encoder.texts for encoder in encoders.values()),
        *vectors.values(), *image_classes.values(), *external.values(),
    ]  # fmt: skip
    counts: dict[str, Any] = {
        name: dict(Counter(images.state[images.final])) for name, images in generated.items()
    }
    counts |= {name: dict(image_vectors.counts) for name, image_vectors in vectors.items()}
    inputs = dict[str, FileFacts]()
    for source in read:
        inputs |= source.inputs
    return TextToImageData(generated, encoders, image_classes, external, inputs, counts)


def _load_generator_images(name: str, config: Config, models: Models) -> GeneratedImages:
    """Generate or read the images of one generator; a dry run generates none."""
    generator, label, read = config.generators[name], f"images of {name}", None
    if generator.images is None:
        batches = (*_generate(name, generator, config, models),)
    else:
        source = generator.images.source(models.base, generator.images.columns)
        read = load_items(source, subject=label)
        batches = (_read_batch(name, generator.images, read, config, models),)
    table = pl.concat(batch.rows for batch in batches)
    seed = pl.coalesce(pl.format("seed {}", "seed"), "image_id").alias("seed")
    frame = table.select("image_id", "prompt", seed)
    items = load_items(ItemSource(frame, "image_id", ("prompt", "seed")), subject=label)
    if read is not None:
        items = replace(items, name=read.name, inputs=read.inputs, counts=read.counts)
    planned = read is None and models.dry
    images = GeneratedImages(
        items, table, batches, planned,
        last=generator.steps if generator.passes else 0,
        estimated=all(batch.estimated for batch in batches),
    )  # fmt: skip
    if not images.n_images:
        raise DataError(
            f"none of {len(images.state)} rows has an image",
            file=images.items.name,
            column=None if generator.images is None else generator.images.state,
            expected="the state of an image in some rows",
            fix="name the states of images that exist under 'made'",
        )
    return images


def _generate(
    name: str, generator: GeneratorConfig, config: Config, models: Models
) -> Iterator[Batch]:
    """Yield the images of each strength of guidance, of attributes and of targets.

    A dry run yields stand-ins.
    """
    from equipoise.counterfactuals import request_prompts

    prompts = config.prompts_of(name)
    for guidance, role in product(generator.guidance, ("attributes", "targets")):
        texts = [text for text, text_role in prompts.texts.items() if text_role == role]
        if not texts or (role == "attributes" and not config.pairs):
            continue
        on, prefix = f"{name}, {role} at guidance {guidance:g}", f"{guidance:g}: "
        table = pa.table({"prompt_id": texts, "prompt": texts})
        n_images = getattr(prompts.counts, role)
        request = request_prompts(table, n_images, generator.seed, generator.passes)
        # Ids of several strengths of guidance are distinct.
        generated, outputs = make_images(
            generator, models, request, on, generator.sampling_at(guidance)
        )
        if generated is None:
            generated = _stand_in(on, request)
        rows = pl.DataFrame(generated.table.select(["image_id", "prompt", "state", "seed"]))
        source = f"generators.{name}.model"
        models.keep(name, "images", on, rows["image_id"].to_list(), source=source, **outputs)
        for step in (None, *generator.passes):
            at_step = "" if step is None else f"step {step}: "
            pictures = generated.pictures if step is None else generated.steps[step]
            batch_rows = rows.with_columns(
                image_id=pl.lit(prefix + at_step) + pl.col("image_id"),
                guidance=pl.lit(guidance),
                step=pl.lit(step, dtype=pl.Int64),
            )
            pictures = replace(pictures, ids=prefix + at_step + pictures.ids)
            latents = generated.latents.get(step)
            batch = on if step is None else f"{on}, step {step}"
            yield Batch(batch, batch_rows, pictures, latents, generated.estimated)


def _stand_in(name: str, request: "Request") -> "Generated":
    """Return the result of a generation without its images."""
    from equipoise.counterfactuals import Generated

    texts, steps = request.table["prompt"].to_pylist(), request.at_steps
    requested = [*product(texts, range(request.candidates))]
    ids = [f"{text}/{number:03d}" for text, number in requested]
    table = pa.table({
        "image_id": ids, "prompt": [text for text, _ in requested],
        "state": [IMAGE] * len(ids), "seed": ids,
    })  # fmt: skip
    pictures = sorted_by_id(name, ids, NotMade(), None)
    numbers = np.random.default_rng(0).random((len(ids), 8), dtype=np.float32)
    latents = dict.fromkeys((*steps, None), numbers) if steps else {}
    by_step = dict.fromkeys(steps, pictures)
    return Generated(Path(name), table, pictures, {}, {}, 0, by_step, latents)


def _read_batch(
    name: str, section: ImagesConfig, items: Items, config: Config, models: Models
) -> Batch:
    columns, unknown = items.columns, [None] * len(items)
    prompt_texts, texts = config.prompts_of(name).texts, columns[section.prompt].tolist()
    if not {*prompt_texts} & {*texts}:
        raise DataError(
            f"no row has a prompt of the configuration; the first has {texts[0]!r}",
            file=items.name,
            column=section.prompt,
            expected=f"prompts word for word, such as {next(iter(prompt_texts))!r}",
            fix="write prompts.template as it was, or name another column",
        )
    states = [IMAGE] * len(items)
    if section.state is not None:
        names = {**dict.fromkeys(section.refused, REFUSED), **dict.fromkeys(section.made, IMAGE)}
        states = [names.get(cell or "", FAILED) for cell in columns[section.state].tolist()]
    strengths = unknown
    if section.guidance is not None:
        strengths = numbers_of(items, section.guidance).tolist()
        lacking = [row for row, number in enumerate(strengths, start=1) if math.isnan(number)]
        if lacking:
            raise DataError(
                "no strength of guidance",
                file=items.name,
                column=section.guidance,
                row=lacking[0],
                expected="a number in every row, for each strength is audited by itself",
                fix="fill it in, or remove the row",
            )
    cells = {
        "image_id": items.ids.tolist(), "prompt": texts, "state": states,
        "seed": columns[section.seed].tolist() if section.seed else unknown,
        "guidance": strengths, "step": unknown,
    }  # fmt: skip
    types = dict.fromkeys(cells, pl.String) | {"guidance": pl.Float64, "step": pl.Int64}
    pictures = pictures_of(section, items, models.base, [state == IMAGE for state in states])
    return Batch(name, pl.DataFrame(cells, types), pictures)


def _load_encoder(
    name: str,
    config: Config,
    models: Models,
    generated: Mapping[str, GeneratedImages],
    labelled: Mapping[str, Items],
) -> Encoder:
    """Embed all images and texts with a model and the labelled images of its shares, or read."""
    section, measured = config.models[name], name in config.encoders
    shares = [share for share in config.shares if share.model == name and share.zero_shot]
    texts = dict.fromkeys(config.texts if measured else ())
    for share in shares:
        texts |= dict.fromkeys(prompts(share.classes, share.templates).texts)
    label = f"embeddings of texts by {name}"
    ids, scale = np.array([*texts], dtype=object), section.scale
    items = Items(label, "id", ids, {}, {}, {"rows": len(ids)})
    of_images, of_labelled = dict[str, Any](), dict[str, Any]()
    for generator, array in section.images.items():
        of_images[generator] = array.source(models.base)
    for of, array in section.labelled.items():
        of_labelled[of] = array.source(models.base)
    of_texts: Any = None if section.texts is None else section.texts.source(models.base)
    if section.model is not None:
        models.capability(name, section, "encoder")
        for generator, images in generated.items():
            place = f"generators.{generator}.images"
            of_images[generator] = _embed_batches(name, section, images, models, place)
        words = prompts([*texts], AS_IT_IS)
        of_texts = models.embed_texts(name, section, words, on="texts")
        scale = scale or of_texts.info.get("scale")
        for share in shares:
            if share.of in labelled:
                pictures = _labelled_pictures(share, labelled[share.of], models.base)
                on = f"{share.of}, labelled"
                of_labelled[share.of] = models.embed_images(name, section, pictures, on=on)
    if lacking := {*generated} - {*of_images} if measured else None:
        raise DataError(
            f"models.{name}.images: no vectors of the images of {min(lacking)}",
            expected="vectors of the images of each generator",
            fix="name them, or leave the model out of associations.encoders",
        )
    loaded = load_vectors(of_texts, items, subject=label, max_unmatched=1.0)
    vectors = dict[str, Vectors]()
    for generator, source in of_images.items():
        of_generator = f"embeddings of images of {generator} by {name}"
        vectors[generator] = load_vectors(
            source, generated[generator].items, subject=of_generator, max_unmatched=1.0
        )
    _check_vectors(loaded, vectors)
    return Encoder(loaded, vectors, of_labelled, scale)


def _check_vectors(texts: Vectors, images: Mapping[str, Vectors]) -> None:
    if not texts.usable.all():
        raise DataError(
            f"the text {texts.ids[int(texts.usable.argmin())]!r} has no usable vector",
            file=texts.name,
            expected="a vector of each prompt and each text of a class, named by the text",
            fix="embed it, or leave it out",
        )
    check_one_space(texts, *images.values())


def _embed_batches(
    name: str, section: ModelConfig, images: GeneratedImages, models: Models, place: str
) -> Outputs:
    """Return the vectors of all batches of a generator as one."""
    parts = list[Outputs]()
    for batch in images.batches:
        pictures = required(batch.pictures, place, name)
        parts.append(models.embed_images(name, section, pictures, on=batch.name))
    first, ids = parts[0], pl.concat(part.ids for part in parts)
    failed, inputs = dict(first.failed), dict(first.inputs)
    for part in parts[1:]:
        failed |= part.failed
        inputs |= part.inputs
    if first.planned:
        # The rows of a dry run are the same.
        values = np.broadcast_to(first.numbers[:1], (len(ids), first.numbers.shape[1]))
    else:
        values = np.concatenate([part.numbers for part in parts])
    return replace(first, ids=ids, values=values, failed=failed, inputs=inputs)


def _read_labelled(share: SharesConfig, section: LabelledConfig, base: Path) -> Items:
    """Read the labelled images of a share.

    Raises
    ------
    DataError
        When the table can't be read, or a label is no class.
    """
    items = load_items(
        section.source(base, section.columns), subject=f"labelled images, {share.of}"
    )
    for row, label in enumerate(items.columns[section.label].tolist(), start=1):
        if label not in (None, *share.classes):
            raise DataError(
                f"the label is {label!r}",
                file=items.name,
                column=section.label,
                row=row,
                expected=f"one of {', '.join(share.classes)}",
            )
    return items


def _labelled_pictures(share: SharesConfig, items: Items, base: Path) -> Pictures:
    """Return the pictures of labelled images; refuse to run a model without them."""
    pictures = None if share.labelled is None else pictures_of(share.labelled, items, base)
    fix = "name the column of files under 'labelled.path'"
    return required(pictures, f"shares ({share.of})", share.model or "", fix)


def _classify_images(
    share: SharesConfig,
    config: Config,
    models: Models,
    generated: Mapping[str, GeneratedImages],
    encoders: Mapping[str, Encoder],
    labelled: Items | None,
) -> ImageClasses:
    """Return the classes of the images of every generator, and the errors on labelled ones.

    Raises
    ------
    DataError
        When a table can't be used, or classes have no vectors.
    """
    encoder = encoders.get(share.model or "") if share.zero_shot else None
    classifier = _Classifier(share, config, models, encoder)
    outcomes = {name: classifier.of_generator(name, images) for name, images in generated.items()}
    confusion = None
    if labelled is not None and share.labelled is not None:
        classified = classifier.of_labelled(labelled, share.labelled)
        true = np.asarray(labelled.columns[share.labelled.label])
        confusion, _ = Confusion.of_labels(true, classified, outcomes=tuple(share.classes))
        classifier.inputs |= labelled.inputs
    return ImageClasses(outcomes, confusion, classifier.inputs)


@dataclass(eq=False)
class _Classifier:
    """Classifies images by an encoder, by a model's answers, or by answers in a file."""

    share: SharesConfig
    config: Config
    models: Models
    encoder: Encoder | None
    inputs: dict[str, Any] = field(default_factory=dict)

    def of_generator(self, name: str, images: GeneratedImages) -> Objects:
        """Return the outcome of each image of a generator."""
        share, answer_table = self.share, self.share.said.get(name)
        if self.encoder is not None:
            vectors = self.encoder.images.get(name)
            if vectors is None:
                return np.full(len(images.items), None, dtype=object)
            return self._classify(self.encoder, vectors)
        answers = dict[str, str | None]()
        if share.model is not None:
            for batch in images.batches:
                pictures = required(batch.pictures, f"generators.{name}.images", share.model)
                answers |= self._ask(pictures, f"{batch.name}, {share.of}")
        elif answer_table is not None:
            items = load_items(
                answer_table.source(self.models.base, (answer_table.said,)),
                subject=f"answers about {name}",
            )
            self.inputs |= items.inputs
            answers = dict(
                zip(items.ids.tolist(), items.columns[answer_table.said].tolist(), strict=True)
            )
            if answers.keys().isdisjoint(images.items.ids):
                raise DataError(
                    f"none of its ids is that of an image of {name}",
                    file=items.name,
                    column=answer_table.id,
                    expected=f"ids such as {images.items.ids[0]!r}",
                )
        return _outcomes_of_answers(share, images.items, answers)

    def of_labelled(self, labelled: Items, section: LabelledConfig) -> Objects:
        """Return the outcome of each labelled image."""
        share = self.share
        if self.encoder is not None:
            source = self.encoder.labelled.get(share.of)
            if source is None:
                raise DataError(
                    f"models.{share.model}.labelled: no vectors of the images of {share.of!r}",
                    expected="vectors of the labelled images",
                    fix="name them, or leave 'labelled' out: nothing is corrected then",
                )
            label = f"embeddings of labelled images by {share.model}"
            vectors = load_vectors(source, labelled, subject=label, max_unmatched=1.0)
            self.inputs |= vectors.inputs
            return self._classify(self.encoder, vectors)
        if share.model is not None:
            pictures = _labelled_pictures(share, labelled, self.models.base)
            return _outcomes_of_answers(
                share, labelled, self._ask(pictures, f"{share.of}, labelled")
            )
        texts = zip(labelled.ids, labelled.columns[section.said or ""], strict=True)
        return _outcomes_of_answers(share, labelled, dict(texts))

    def _classify(self, encoder: Encoder, vectors: Vectors) -> Objects:
        share = self.share
        return _classify(share.classes, share.templates, share.least, encoder, vectors)

    def _ask(self, pictures: Pictures, on: str) -> dict[str, str | None]:
        """Ask a model about every picture; None of one without an answer."""
        name, question = self.share.model or "", self.share.question or ""
        answers = self.models.answer(name, self.config.models[name], pictures, question, on=on)
        labels, ids = answers.labels, answers.ids.to_list()
        assert labels is not None  # noqa: S101 - answers are texts
        if answers.planned:
            # A plan takes every answer for the first class: it needs sizes alone.
            return dict.fromkeys(ids, next(iter(self.share.classes)))
        codes = labels.codes[:, 0].tolist()
        texts = [(labels.vocabulary[code] or None) if code >= 0 else None for code in codes]
        return dict(zip(ids, texts, strict=True))


def _outcomes_of_answers(
    share: SharesConfig, items: Items, answers: Mapping[str, str | None]
) -> Objects:
    """Return the outcome that the answer about each item means; None of one without an answer."""
    meanings = [(UNKNOWN, (*share.unknown, UNKNOWN)), ("refused an answer", share.refused)]
    meanings += [(name, (name, *texts)) for name, texts in share.classes.items()]
    outcome_of_text = dict[str, str]()
    for outcome, texts in meanings:
        for text in texts:
            outcome_of_text[_normalised_answer(text)] = outcome
    outcomes = np.full(len(items.ids), None, dtype=object)
    for row, image_id in enumerate(items.ids.tolist()):
        answer = answers.get(image_id)
        if answer is not None:
            outcomes[row] = outcome_of_text.get(_normalised_answer(answer), "other answer")
    return outcomes


def _normalised_answer(answer: str) -> str:
    """Return an answer without case, spaces around it and a full stop at its end."""
    return " ".join(answer.casefold().split()).rstrip(".!").strip()


def nearest_attributes(config: Config, data: TextToImageData) -> dict[str, dict[str, Objects]]:
    """Return the nearer attribute set of each pair, in the first encoder."""
    by_pair: dict[str, dict[str, Objects]] = {}
    for pair in config.pairs:
        encoder, outcomes = data.encoders[config.encoders[0]], dict[str, Objects]()
        for generator, vectors in encoder.images.items():
            sets = config.compared_texts(generator)
            texts = {name: config.embedded(sets[name]) for name in pair}
            outcomes[generator] = _classify(texts, AS_IT_IS, 0.0, encoder, vectors)
        by_pair[" against ".join(pair)] = outcomes
    return by_pair


def prompt_cosines(config: Config, data: TextToImageData, generator: str) -> Floats:
    """Return the cosine of each image with its prompt, in the first encoder; NaN without one."""
    image_prompts = np.array(
        config.embedded(data.generated[generator].table["prompt"].to_list()), dtype=object
    )
    cosines = np.full(len(image_prompts), np.nan)
    for name in config.encoders[:1]:
        encoder = data.encoders[name]
        images = encoder.images[generator]
        usable_rows = np.flatnonzero(
            images.usable & np.isin(image_prompts.astype(str), [*encoder.places])
        )
        rows = encoder.rows(image_prompts[usable_rows])
        pairs = images.take(usable_rows), encoder.texts.take(rows)
        units = [vectors / np.linalg.norm(vectors, axis=1, keepdims=True) for vectors in pairs]
        cosines[usable_rows] = np.einsum("nd,nd->n", *units)
    return cosines


def _classify(
    named: Mapping[str, Sequence[str]], templates: Sequence[str], least: float, encoder: Encoder,
    vectors: Vectors,
) -> Objects:  # fmt: skip
    """Return the likeliest class of each image; None of an image without a vector."""
    labels = np.full(len(vectors.usable), None, dtype=object)
    usable_rows = np.flatnonzero(vectors.usable)
    if len(usable_rows):
        words = prompts(named, templates)
        classes = class_vectors(encoder.texts.take(encoder.rows(words.texts)), words.owner)
        scale = 100.0 if encoder.scale is None else encoder.scale
        scores = zero_shot(vectors.take(usable_rows), classes, scale=scale)
        likeliest = np.array([*named], dtype=object)[scores.top[:, 0]]
        likeliest[scores.scores[:, 0] < least] = UNKNOWN
        labels[usable_rows] = likeliest
    return labels


def _read_external_shares(
    share: SharesConfig, section: OutsideSharesConfig | str, targets: tuple[str, ...], base: Path
) -> ExternalShares:
    """Read shares from outside, or take equal ones.

    Raises
    ------
    DataError
        When the table cannot be read, no target of the audit is in it, or a target that is lacks
        one share of each class, 0 or more.
    """
    if isinstance(section, str):
        equal = dict.fromkeys(share.compared, 1.0)
        return ExternalShares("equal shares", dict.fromkeys(targets, equal), "census")
    columns = {"target": section.target, "group": section.group, "value": section.value}
    table = read_table(
        located(section.table, base), texts=(*columns.values(),), encoding=section.encoding,
        delimiter=section.delimiter, role=f"outside shares of {share.of}",
    )  # fmt: skip
    cells = pl.DataFrame({name: table.texts[column] for name, column in columns.items()})
    cells = cells.with_columns(pl.col("value").cast(pl.Float64, strict=False))
    _check_spelling(cells, share, section, targets, table.name)
    cells = cells.filter(pl.col("target").is_in(targets), pl.col("group").is_in(share.compared))
    by_target = {}
    for (target,), rows in cells.group_by("target", maintain_order=True):
        shares = rows.select("group", "value").rows()
        values = rows["value"].fill_null(math.nan).to_numpy()
        named = rows["group"].sort().to_list() == sorted(share.compared)
        if not named or not ((values >= 0) & (values < math.inf)).all() or not values.any():
            raise DataError(
                f"{target!r} has the shares {shares}",
                file=table.name,
                column=section.value,
                expected=f"one share or count of each of {', '.join(share.compared)}, at least 0",
                fix="mend them, or leave the target out",
            )
        by_target[str(target)] = dict(shares)
        sample_size(by_target[str(target)].values(), section.kind)
    if not by_target:
        raise DataError(
            "it has none of the targets",
            file=table.name,
            column=section.target,
            expected=f"some of {', '.join(targets[:5])}",
        )
    return ExternalShares(section.name, by_target, section.kind, {table.name: table.digest})


_LIKE = 0.88
"""Similarity of two names from which one is likely a misspelt form of the other."""


def _check_spelling(
    cells: pl.DataFrame, share: SharesConfig, section: OutsideSharesConfig,
    targets: tuple[str, ...], file: str,
) -> None:  # fmt: skip
    """Refuse names of targets and classes that look like mistakes.

    A table may have more targets. A name is refused if it resembles a target that the table lacks,
    or if it is no class and rows of its target lack a class.

    Raises
    ------
    DataError
        With the row of the name.
    """
    lacking = [target for target in targets if target not in cells["target"]]
    for row, (target, group) in enumerate(cells.select("target", "group").iter_rows(), 1):
        if target is None or group is None:
            continue
        if target not in targets:
            column, name, near = section.target, target, nearest(target, lacking, cutoff=_LIKE)
            allowed = lacking if near else []
        elif group not in share.classes:
            groups = cells.filter(pl.col("target") == target)["group"]
            column, name = section.group, group
            allowed = [label for label in share.compared if label not in groups]
            near = nearest(group, allowed)
        else:
            continue
        if allowed:
            hint = f"; did you mean {near!r}?" if near else ""
            raise DataError(
                f"{name!r} isn't one of the names in the configuration{hint}",
                file=file,
                column=column,
                row=row,
                expected=f"one of {listed(allowed)}",
                fix="correct the name, or remove the row",
            )

"""Texts: prompts of classes, their vectors, which are computed once, and scores of images."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from equipoise.core import (
    Facts,
    Floats,
    Floats32,
    InputError,
    Integers,
    ModelError,
    Progress,
    Strings,
    floats,
    integers,
    record,
)
from equipoise.core.files import table_bytes
from equipoise.core.types import FileFacts
from equipoise.core.writing import sweep, write
from equipoise.data import filled
from equipoise.data import templates as named
from equipoise.evidence.store import is_sound, key_of, read_rows
from equipoise.evidence.working import RunOptions
from equipoise.models import DualEncoder


@record
class Prompts:
    """Texts, and the class that each stands for.

    Attributes
    ----------
    texts : tuple of str, length p
        All texts of the first class, then of the second, ...
    owner : ndarray of int64, shape (p,)
        Place of each text's class in `names`.
    names : tuple of str, length m
        The classes.
    """

    texts: Strings
    owner: Integers
    names: Strings


def prompts(
    classes: Mapping[str, Sequence[str]] | Sequence[str], templates: str | Sequence[str] = "plain"
) -> Prompts:
    """Put the words of each class into each template.

    Parameters
    ----------
    classes : mapping of str to sequence of str, or sequence of str
        Class to its words; or classes that are their own word.
    templates : str or sequence of str
        Name of a list of `equipoise.data.TEMPLATES`, or templates with one `{}` each; `("{}",)`
        takes the words as they are.

    Raises
    ------
    InputError
        When there is no class, no word of a class or no template, or one of them repeats.
    """
    chosen = named(templates).texts if isinstance(templates, str) else tuple(templates)
    _check("templates", chosen)
    names = _check("classes", tuple(classes))
    words_of_class = classes if isinstance(classes, Mapping) else {name: (name,) for name in names}
    words = [_check(f"words of {name!r}", tuple(words_of_class[name])) for name in names]
    texts = tuple(
        filled(template, word)
        for class_words in words
        for word in class_words
        for template in chosen
    )
    sizes = [len(class_words) * len(chosen) for class_words in words]
    return Prompts(texts, np.repeat(np.arange(len(names), dtype=np.int64), sizes), names)


def _check(subject: str, texts: Strings) -> Strings:
    if not texts or len({*texts}) < len(texts):
        raise InputError(f"{subject}: {[*texts]}; expected at least one, each once")
    return texts


def class_vectors(vectors: ArrayLike, owner: ArrayLike) -> Floats:
    """Return one vector of length 1 for each class.

    Every text's vector is brought to length 1, those of a class are averaged, and the mean is
    brought to length 1 again, as in the zero-shot classifiers of CLIP.

    Parameters
    ----------
    vectors : array_like of float, shape (p, d)
        Of the texts.
    owner : array_like of int, shape (p,)
        Class of each text; classes are 0 to m - 1 and each has a text.

    Returns
    -------
    ndarray of float64, shape (m, d)

    Raises
    ------
    InputError
        When a vector is zero or not finite, or the vectors of a class cancel out.

    References
    ----------
    Radford et al. 2021, "Learning Transferable Visual Models From Natural Language Supervision".
    """
    unit, place = units(vectors, subject="text"), integers(owner)
    classes = int(place.max()) + 1
    sums = np.zeros((classes, unit.shape[1]))
    np.add.at(sums, place, unit)
    means = sums / np.bincount(place, minlength=classes)[:, None]
    return units(means, subject="class")


def units(vectors: ArrayLike, *, subject: str, first: int = 0) -> Floats:
    """Return vectors at length 1, in float64.

    Parameters
    ----------
    vectors : array_like of float, shape (n, d)
    what : str
        What a row is, for the message.
    first : int
        Number of the first row, for the message.

    Raises
    ------
    InputError
        When there is no row, or one is zero or not finite.
    """
    array = floats(vectors)
    if array.ndim != 2 or not array.size:
        raise InputError(
            f"the vectors have shape {array.shape}; expected one row for each {subject}, and at "
            "least one"
        )
    lengths = np.sqrt(np.einsum("ij,ij->i", array, array))
    wrong = np.flatnonzero(~(np.isfinite(lengths) & (lengths > 0)))
    if len(wrong):
        row = int(wrong[0])
        state = "zero" if lengths[row] == 0 else "not finite"
        raise InputError(
            f"the vector of {subject} {first + row} is {state}: it has no direction. To do: leave "
            f"that {subject} out, or look at the model"
        )
    unit: Floats = array / lengths[:, None]
    return unit


Score = Literal["cosine", "logit", "sigmoid"]

# Rows at a time: memory is bounded, and the same rows meet in one product whatever the machine.
_ROWS = 4096

# Cosines that differ by less than what a float64 product can say are a tie.
_DIGITS = 12


@record
class ZeroShot:
    """The best classes of images.

    Attributes
    ----------
    top : ndarray of int64, shape (n, k)
        Places of the classes of rank 1 to k; of equal ones the first class is ranked first.
    scores : ndarray of float64, shape (n, k)
        Probability of each of these, over all classes.
    """

    top: Integers
    scores: Floats


def zero_shot(
    images: ArrayLike,
    classes: ArrayLike,
    *,
    scale: float,
    k: int = 1,
) -> ZeroShot:
    """Rank the classes of each image by the cosine of their vectors.

    Parameters
    ----------
    images : array_like of float, shape (n, d)
    classes : array_like of float, shape (m, d)
        One vector for each class, see `class_vectors`.
    scale : float
        The model's own: `scale * cosine` is its logit, apart from what is the same for all classes.
    k : int
        Ranks to keep; all classes where there are fewer.

    Returns
    -------
    ZeroShot
        The same for any number of threads; every number is computed in float64.

    Raises
    ------
    InputError
        When a vector is zero or not finite, dimensions differ, or k is below 1.

    References
    ----------
    Radford et al. 2021.
    """
    if k < 1:
        raise InputError(f"k is {k}; expected at least 1")
    tops, scores = [], []
    for cosines in _cosines(images, classes):
        tops.append(best(cosines, k))
        powers = np.exp(scale * (cosines - cosines.max(axis=1, keepdims=True)))
        shares = powers / powers.sum(axis=1, keepdims=True)
        scores.append(np.take_along_axis(shares, tops[-1], 1))
    return ZeroShot(np.concatenate(tops), np.concatenate(scores))


def concept_scores(
    images: ArrayLike,
    concepts: ArrayLike,
    *,
    scale: float = 1.0,
    bias: float = 0.0,
    of: Score = "cosine",
) -> Floats:
    """Return how well each concept fits each image, every concept for itself.

    Parameters
    ----------
    images : array_like of float, shape (n, d)
    concepts : array_like of float, shape (m, d)
    scale, bias : float
        The model's own, for "logit" and "sigmoid".
    of : str
        "cosine" in [-1, 1]; "logit" = `scale * cosine + bias`; "sigmoid" of the logit in (0, 1).

    Returns
    -------
    ndarray of float64, shape (n, m)
        Higher fits better.

    Raises
    ------
    InputError
        When a vector is zero or not finite, or dimensions differ.
    """
    if of not in get_args(Score):
        raise InputError(f"of={of!r}: expected one of {get_args(Score)}")
    blocks = []
    for cosines in _cosines(images, concepts):
        logits = cosines if of == "cosine" else scale * cosines + bias
        blocks.append(_sigmoid(logits) if of == "sigmoid" else logits)
    return np.concatenate(blocks)


def _cosines(images: ArrayLike, classes: ArrayLike) -> Iterator[Floats]:
    """Yield cosines of images with classes, a block of images at a time."""
    rows, unit = np.asarray(images), units(classes, subject="class")
    if rows.ndim != 2 or rows.shape[1] != unit.shape[1]:
        raise InputError(
            f"the images have shape {rows.shape} and the classes {unit.shape}; expected vectors "
            "of one space, as many numbers in each"
        )
    for start in range(0, max(len(rows), 1), _ROWS):
        block = units(rows[start : start + _ROWS], subject="image", first=start)
        yield np.round(block @ unit.T, _DIGITS)


def best(scores: ArrayLike, k: int) -> Integers:
    """Return the places of the k highest of each row, equal ones in the order of the columns.

    Parameters
    ----------
    scores : array_like of float, shape (n, m)
    k : int
        All columns where there are fewer.
    """
    order: Integers = np.argsort(-np.asarray(scores), axis=1, kind="stable")
    return order[:, :k]


def _sigmoid(logits: Floats) -> Floats:
    shares: Floats = np.exp(-np.logaddexp(0.0, -logits))
    return shares


DEFAULT = RunOptions()

# Raised whenever the same texts and model would give another file than before.
_VERSION = 1
_SHOWN = 60


@record
class Texts:
    """Texts with their vectors.

    Attributes
    ----------
    texts : tuple of str, length n
        In the order asked for.
    vectors : ndarray of float32, shape (n, d)
        Projected, not normalised.
    info : mapping
        Facts of the model, as `ModelInfo` has them.
    inputs : mapping
        For a manifest: the vectors under a name with their key, with `sha256`, `bytes`, `rows`.
    computed : int
        Texts that the model ran on now; 0 when all lay in the store.
    """

    texts: Strings
    vectors: Floats32
    info: Facts
    inputs: Mapping[str, FileFacts]
    computed: int


def embed_texts(
    texts: Sequence[str],
    model: str | DualEncoder,
    store: str | Path,
    *,
    options: RunOptions = DEFAULT,
    part: int = 256,
    progress: Progress | None = None,
) -> Texts:
    """Return the vectors of texts: read stored ones, compute and keep the others.

    Parameters
    ----------
    texts : sequence of n str
        A text may stand there several times; it is computed once.
    model : str or DualEncoder
        A name for `equipoise.models.load_model`, or a loaded model. Of a loaded one only its
        `info` is asked where every text lies in the store.
    store : str or Path
        Folder of the evidence. Vectors lie under `texts/<key of the model>`: another model, or
        the same with other weights, tokenizer or numbers, never reads them.
    options : RunOptions
        How a model is loaded that is named.
    part : int
        Texts in a file. A run that is interrupted goes on with the next part.
    progress : callable, optional
        Told the step, texts done and texts to do.

    Returns
    -------
    Texts

    Raises
    ------
    InputError
        When there is no text, or one is empty or no text.
    ModelError
        When the model has no text tower, or gives a vector that is not finite.
    RunError
        When the store cannot be written.
    """
    distinct_checked = _checked(texts)
    model = options.load(model) if isinstance(model, str) else model
    if not hasattr(model, "embed_texts"):
        raise ModelError(
            f"{model.info.name} embeds no texts. To do: name a model with a text tower, such as "
            "hf:openai/clip-vit-base-patch32"
        )
    distinct = [*dict.fromkeys(distinct_checked)]
    folder = Path(store) / "texts" / model.info.key[:16]
    sweep(folder)
    parts: list[Floats32] = []
    computed = 0
    for start in range(0, len(distinct), part):
        batch = distinct[start : start + part]
        path = folder / f"part-{_digest(model, batch)[:32]}.parquet"
        if not is_sound(path, len(batch)):
            if progress is not None:
                progress("embedding texts", start, len(distinct))
            vectors = _computed(model, batch)
            cells = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
            table = pa.table({"text": pa.array(batch, pa.string()), "embedding": cells})
            write(path, table_bytes(table))
            computed += len(batch)
        cells = read_rows([path])["embedding"].combine_chunks()
        parts.append(cells.flatten().to_numpy().reshape(len(batch), -1))
    place = {text: row for row, text in enumerate(distinct)}
    embeddings = np.concatenate(parts)[[place[text] for text in distinct_checked]]
    data = embeddings.astype("<f4", copy=False).tobytes()
    digest = hashlib.sha256(data).hexdigest()
    facts: FileFacts = {"sha256": digest, "bytes": len(data), "rows": len(distinct_checked)}
    inputs = {f"evidence/texts/{_digest(model, distinct_checked)[:16]}": facts}
    return Texts(distinct_checked, embeddings, asdict(model.info), inputs, computed)


def embed_classes(
    prompts: Prompts,
    model: str | DualEncoder,
    store: str | Path,
    *,
    options: RunOptions = DEFAULT,
    progress: Progress | None = None,
) -> tuple[Floats, Texts]:
    """Return one vector of length 1 for each class of prompts, and the texts it is made of.

    Parameters
    ----------
    prompts : Prompts
    model, store, options, progress
        As `embed_texts` has them.

    Returns
    -------
    ndarray of float64, shape (m, d)
        See `class_vectors`.
    Texts
    """
    texts = embed_texts(prompts.texts, model, store, options=options, progress=progress)
    return class_vectors(texts.vectors, prompts.owner), texts


def _checked(texts: Sequence[Any]) -> Strings:
    wrong = [text for text in texts if not isinstance(text, str) or not text.strip()]
    if isinstance(texts, str) or not len(texts) or wrong:
        raise InputError(f"texts: expected a list of texts that are not empty; got {wrong[:1]}")
    return tuple(texts)


def _computed(model: DualEncoder, texts: list[str]) -> Floats32:
    vectors = np.ascontiguousarray(model.embed_texts(texts), dtype=np.float32)
    if vectors.ndim != 2 or len(vectors) != len(texts):
        raise ModelError(
            f"{model.info.name} gave vectors of shape {vectors.shape} for {len(texts)} texts; "
            "expected one row for each"
        )
    wrong = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(wrong):
        text = texts[int(wrong[0])]
        raise ModelError(
            f"{model.info.name}: the vector of {text[:_SHOWN]!r} is not finite, and "
            f"{len(wrong)} of {len(texts)} are not. To do: ask for dtype float32"
        )
    return vectors


def _digest(model: DualEncoder, texts: Sequence[str]) -> str:
    """Return the SHA-256 of everything that decides the vectors of texts."""
    return key_of([_VERSION, model.info.key, texts])

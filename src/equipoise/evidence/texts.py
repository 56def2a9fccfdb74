"""Vectors of texts: computed once for a model, kept as evidence in parts that appear whole."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from equipoise.core import Floats, Floats32, InputError, ModelError
from equipoise.core.files import table_bytes
from equipoise.evidence.store import is_sound, key_of, read_rows, write
from equipoise.evidence.working import RunOptions
from equipoise.evidence.zero_shot import Prompts, class_vectors

if TYPE_CHECKING:
    from equipoise.models import DualEncoder

Progress = Callable[[str, int, int | None], None]

DEFAULT = RunOptions()

# Raised whenever the same texts and model would give another file than before.
_VERSION = 1
_SHOWN = 60


@dataclass(frozen=True, eq=False)
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

    texts: tuple[str, ...]
    vectors: Floats32
    info: Mapping[str, Any]
    inputs: Mapping[str, Mapping[str, Any]]
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
    """Return the vectors of texts; those that lie in the store are read, others computed and kept.

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
    asked = _checked(texts)
    model = options.load(model) if isinstance(model, str) else model
    if not hasattr(model, "embed_texts"):
        raise ModelError(
            f"{model.info.name} embeds no texts. To do: name a model with a text tower, such as "
            "hf:openai/clip-vit-base-patch32"
        )
    distinct = [*dict.fromkeys(asked)]
    folder = Path(store) / "texts" / model.info.key[:16]
    found: list[Floats32] = []
    computed = 0
    for start in range(0, len(distinct), part):
        some = distinct[start : start + part]
        path = folder / f"part-{_digest(model, some)[:32]}.parquet"
        if not is_sound(path, len(some)):
            if progress is not None:
                progress("embedding texts", start, len(distinct))
            vectors = _computed(model, some)
            cells = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
            table = pa.table({"text": pa.array(some, pa.string()), "embedding": cells})
            write(path, table_bytes(table))
            computed += len(some)
        cells = read_rows([path])["embedding"].combine_chunks()
        found.append(cells.flatten().to_numpy().reshape(len(some), -1))
    place = {text: row for row, text in enumerate(distinct)}
    every = np.concatenate(found)[[place[text] for text in asked]]
    data = every.astype("<f4", copy=False).tobytes()
    facts = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data), "rows": len(asked)}
    inputs = {f"evidence/texts/{_digest(model, asked)[:16]}": facts}
    return Texts(asked, every, asdict(model.info), inputs, computed)


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


def _checked(texts: Sequence[Any]) -> tuple[str, ...]:
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

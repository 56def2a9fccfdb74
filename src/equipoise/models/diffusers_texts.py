"""Texts that a pipeline of diffusers would cut: refused, since images would not show the rest."""

import inspect
from collections.abc import Iterable, Iterator
from typing import Any

from equipoise.core.errors import ModelError
from equipoise.models.runtimes import quiet, transformers

_TOKENIZERS = ("tokenizer", "tokenizer_2", "tokenizer_3")
# Tokenizers without a limit of their own say 1e30.
_NO_LIMIT = 1_000_000


def check_lengths(pipeline: Any, prompts: Iterable[object], name: str) -> None:
    """Refuse texts that are longer than a pipeline reads.

    Where a pipeline has several tokenizers, a text is read whole if one of them takes it whole.

    Parameters
    ----------
    pipeline : diffusers.DiffusionPipeline
    prompts : iterable of str
        A text that is there several times is looked at once; what is no text is left to the
        pipeline.
    name : str
        How errors call the model.

    Raises
    ------
    ModelError
        For the first text that every tokenizer would cut, with its tokens and the limit.
    """
    readers = [*_readers(pipeline)]
    texts = [*dict.fromkeys(one for one in prompts if isinstance(one, str))]
    if not readers or not texts:
        return
    tokenizer, limit = max(readers, key=lambda reader: reader[1])
    with quiet(transformers()):
        found = tokenizer(texts, truncation=False, padding=False, verbose=False).input_ids
    for text, tokens in zip(texts, found, strict=True):
        if len(tokens) > limit:
            raise ModelError(
                f"{name} reads {limit} tokens of a text, and {text!r} has {len(tokens)} (both with "
                "the marks of start and end): the rest would not be in its image. To do: shorten "
                "it."
            )


def _readers(pipeline: Any) -> Iterator[tuple[Any, int]]:
    """Yield the tokenizers of a pipeline with how many tokens of a text go to the model."""
    known = inspect.signature(pipeline.__call__).parameters.get("max_sequence_length")
    for name in _TOKENIZERS:
        tokenizer = getattr(pipeline, name, None)
        if tokenizer is None:
            continue
        limit = tokenizer.model_max_length
        if known is not None and name == _last(pipeline) and isinstance(known.default, int):
            # Of the T5 in Stable Diffusion 3 and Flux; the pipeline cuts before it.
            limit = known.default
        if limit < _NO_LIMIT:
            yield tokenizer, int(limit)


def _last(pipeline: Any) -> str:
    return [name for name in _TOKENIZERS if getattr(pipeline, name, None) is not None][-1]

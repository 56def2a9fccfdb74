"""Models behind an interface of embeddings, which embed texts and pictures in one space."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from equipoise.core import Facts, Floats32, ModelError
from equipoise.core.types import Json
from equipoise.models.images import Images, as_rgb
from equipoise.models.info import ModelInfo
from equipoise.models.journal import Reply
from equipoise.models.protocols import ServiceError
from equipoise.models.served import ServedModel, Session, data_url, image_part, longest_side
from equipoise.models.spending import Usage, estimate_tokens, estimate_usage

_PATH = "/embeddings"
_MOST_BYTES = 64 << 20
_MOST_TEXTS, _MOST_PICTURES = 32, 8
"""Texts and pictures of a request, at most."""
_PROBE = "a photo"
_REFUSALS = (400, 404, 405, 413, 415, 422, 501)
"""Statuses of servers without the interface, or without this form of it."""

PictureForm = Literal["messages", "input"]


@dataclass(frozen=True)
class ServedEncoder:
    """A dual encoder behind the interface of embeddings.

    Attributes
    ----------
    server : ServedModel
    dimension : int
        Length of its vectors.
    """

    server: ServedModel
    dimension: int

    @classmethod
    def of(cls, server: ServedModel) -> ServedEncoder:
        """Return the encoder of a server, which embeds a text to tell its dimension.

        Raises
        ------
        ServiceError
            When the server embeds no texts.
        """
        try:
            vectors = _embed(server, [_texts_request(server, [_PROBE])])
        except ServiceError as error:
            if error.status not in _REFUSALS:
                raise
            raise ServiceError(
                f"{error}. Expected: embeddings of texts and pictures, at {server.address.url}"
                f"{_PATH}. To do: name a server that embeds both, or a model to load here",
                status=error.status,
            ) from None
        return cls(server, vectors.shape[1])

    @property
    def info(self) -> ModelInfo:
        """Facts that identify the model: its address, its entry on the server, the dimension."""
        server = self.server
        digest = hashlib.sha256(json.dumps(server.facts, sort_keys=True).encode()).hexdigest()
        return ModelInfo(
            server.name, "served", digest, dimension=self.dimension,
            dtype="unknown", device="server", backend="served",
            preprocessing={
                "sent_to": server.address.host, "interface": "embeddings",
                "longest_side": server.service.longest_side, "image": "PNG",
            },
        )  # fmt: skip

    def embed_texts(self, texts: Sequence[str]) -> Floats32:
        """Return the vectors of n texts, (n, dimension), as the server gives them.

        Raises
        ------
        ModelError
            When a request fails each time, or vectors have another length.
        """
        parts = [texts[i : i + _MOST_TEXTS] for i in range(0, len(texts), _MOST_TEXTS)]
        return self._checked(_embed(self.server, [_texts_request(self.server, p) for p in parts]))

    def embed_images(self, images: Images) -> Floats32:
        """Return the vectors of n images, (n, dimension), as the server gives them.

        Raises
        ------
        ModelError
            When the server takes no pictures, a request fails each time, or vectors have another
            length than those of texts.
        """
        pictures = [self.server.encode(image) for image in as_rgb(images)]
        requests = _picture_requests(self.server, self._picture_form, pictures)
        return self._checked(_embed(self.server, requests))

    def _checked(self, vectors: Floats32) -> Floats32:
        if vectors.shape[1] != self.dimension:
            raise ServiceError(
                f"{self.server.name}: the server gives vectors of {vectors.shape[1]} numbers, and "
                f"its vectors of texts had {self.dimension}. Expected: one space for both"
            )
        return vectors

    @cached_property
    def _picture_form(self) -> PictureForm:
        """The form in which the server takes pictures, by two that differ.

        Raises
        ------
        ServiceError
            When it takes them in none, or gives both one vector.
        """
        black, grid = np.zeros((32, 32, 3), np.uint8), np.zeros((32, 32, 3), np.uint8)
        grid[::2], grid[:, ::2] = (255, 0, 0), (255, 255, 0)
        probes = [self.server.encode(picture) for picture in (black, grid)]
        problems = []
        forms: tuple[PictureForm, ...] = ("messages", "input")
        for form in forms:
            try:
                vectors = _embed(self.server, _picture_requests(self.server, form, probes))
            except ModelError as error:
                if isinstance(error, ServiceError) and error.status not in _REFUSALS:
                    raise
                problems.append(f"as {form!r}: {error}")
                continue
            if not np.array_equal(*vectors):
                return form
            problems.append(f"as {form!r}: two pictures have the same vector")
        raise ServiceError(
            f"{self.server.name}: the server takes no pictures ({'; '.join(problems)}). To do: "
            "name a server that embeds pictures and texts, such as vLLM with a CLIP; or a model to "
            "load here"
        )


@dataclass(frozen=True)
class _Request:
    """A request for vectors.

    Attributes
    ----------
    body : mapping
    n : int
        Vectors.
    facts : mapping
        Facts that identify it.
    estimate : Usage
    """

    body: Mapping[str, Any]
    n: int
    facts: Facts
    estimate: Usage


def _texts_request(server: ServedModel, texts: Sequence[str]) -> _Request:
    content: dict[str, Json] = {"input": [*texts]}
    estimate = Usage(requests=1, prompt_tokens=sum(map(estimate_tokens, texts)))
    return _Request(_body_of(server, content), len(texts), {**server.facts, **content}, estimate)


def _picture_requests(
    server: ServedModel, form: PictureForm, pictures: Sequence[bytes]
) -> list[_Request]:
    """Return requests for pictures: alone in a message, or several as input."""
    size = 1 if form == "messages" else _MOST_PICTURES
    requests = []
    for start in range(0, len(pictures), size):
        batch = pictures[start : start + size]
        content: dict[str, Any] = {"input": [{"image": data_url(picture)} for picture in batch]}
        if form == "messages":
            content = {"messages": [{"role": "user", "content": [*map(image_part, batch)]}]}
        digests: list[Json] = [hashlib.sha256(picture).hexdigest() for picture in batch]
        facts = {**server.facts, "form": form, "pictures": digests}
        estimate = estimate_usage("", [*map(longest_side, batch)], 0)
        requests.append(_Request(_body_of(server, content), len(batch), facts, estimate))
    return requests


def _body_of(server: ServedModel, content: Mapping[str, Any]) -> dict[str, Any]:
    return {"model": server.address.model, "encoding_format": "float", **content}


def _embed(server: ServedModel, requests: Sequence[_Request]) -> Floats32:
    """Return the vectors that requests ask for, in order.

    Raises
    ------
    ModelError
        When one fails each time, or vectors have several lengths.
    """
    server.check()
    with Session.of(server, _MOST_BYTES) as session:
        replies = server.ask_all(
            lambda request: session.post(
                _PATH, request.body, request.facts, _reader_of(request.n), request.estimate
            ),
            requests,
        )  # fmt: skip
    server.check_asked(replies)
    for reply in replies:
        if reply.outcome != "answered":
            raise ModelError(f"{server.name}: {reply.outcome}: {reply.text}")
    parts = [
        np.frombuffer(base64.b64decode(reply.text), "<f4").reshape(request.n, -1)
        for reply, request in zip(replies, requests, strict=True)
    ]
    lengths = sorted({part.shape[1] for part in parts})
    if len(lengths) > 1:
        raise ServiceError(
            f"{server.name}: the server gives vectors of {lengths[0]} and of {lengths[-1]} numbers"
        )
    return np.concatenate(parts).astype(np.float32, copy=False)


def _reader_of(n: int) -> Callable[[Facts], Reply | None]:
    """Return the reader of answers with n vectors."""

    def read(body: Facts) -> Reply | None:
        entries, model = body.get("data"), body.get("model")
        vectors = _vectors_of(entries, n) if isinstance(entries, list) else None
        if vectors is None:
            return None
        text = base64.b64encode(vectors.astype("<f4").tobytes()).decode()
        return Reply("answered", text, model if isinstance(model, str) else "")

    return read


def _vectors_of(entries: Sequence[Json], n: int) -> Floats32 | None:
    """Return n vectors in the order of their `index`; None of entries of another form."""
    named = [entry for entry in entries if isinstance(entry, Mapping)]
    if len(named) != n or len(entries) != n:
        return None
    indices = [entry.get("index") for entry in named]
    if indices != [None] * n:
        by_index = dict(zip(map(str, indices), named, strict=True))
        if by_index.keys() != {*map(str, range(n))}:
            return None
        named = [by_index[str(place)] for place in range(n)]
    vectors = [_vector_of(entry.get("embedding")) for entry in named]
    rows = [vector for vector in vectors if vector is not None and vector.size]
    if len(rows) != n or len({len(row) for row in rows}) != 1:
        return None
    return np.stack(rows)


def _vector_of(embedding: Json) -> Floats32 | None:
    """Read a list of numbers, or base64 of little-endian float32."""
    try:
        if isinstance(embedding, str):
            vector = np.frombuffer(base64.b64decode(embedding, validate=True), "<f4")
        else:
            with np.errstate(over="ignore"):  # an overflow is no vector
                vector = np.asarray(embedding, dtype=np.float32)
    except (binascii.Error, ValueError, TypeError, OverflowError):
        return None
    is_vector = vector.ndim == 1 and bool(np.isfinite(vector).all())
    return vector.astype(np.float32, copy=False) if is_vector else None

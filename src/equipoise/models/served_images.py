"""Text-to-image models behind the interface of image generations."""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from equipoise.core import Facts, InputError
from equipoise.core.types import Json
from equipoise.models.generators import Sampling
from equipoise.models.images import Image
from equipoise.models.info import ModelInfo
from equipoise.models.journal import Reply
from equipoise.models.protocols import NoAnswer, ServiceError
from equipoise.models.served import ServedModel, Session, is_filtered
from equipoise.models.service import Address
from equipoise.models.spending import Usage, estimate_tokens

_MOST_BYTES = 64 << 20
_SEEDS = 1 << 31
"""Servers hold a seed in 32 bits with a sign."""


@dataclass(frozen=True)
class ServedGenerator:
    """A text-to-image model behind the interface of image generations.

    Attributes
    ----------
    server : ServedModel
    """

    server: ServedModel

    @property
    def info(self) -> ModelInfo:
        """Facts that identify the model: its address, its entry on the server, the parameters."""
        server = self.server
        digest = hashlib.sha256(json.dumps(server.facts, sort_keys=True).encode()).hexdigest()
        return ModelInfo(
            server.name, "served", digest, dtype="unknown", device="server", backend="served",
            preprocessing={
                "sent_to": server.address.host,
                "image_parameters": [*server.service.image_parameters],
            },
        )  # fmt: skip

    def generate(
        self, prompts: Sequence[str], *, seeds: Sequence[int], sampling: Sampling
    ) -> list[Image | NoAnswer | None]:
        """Make an image for each prompt.

        Returns
        -------
        list
            Images; None where a filter of the server refused the prompt or its image; or why there
            is none: "cut" of a picture that can't be decoded, "request" that failed each time.

        Raises
        ------
        ServiceError
            When the server refuses the key, the model or the form of the requests, or another
            image may cost more than is left of the budget.
        """
        self.server.check()
        with Session.of(self.server, _MOST_BYTES) as session:
            replies = self.server.ask_all(
                lambda pair: self._ask(session, *pair, sampling),
                [*zip(prompts, seeds, strict=True)],
            )
        self.server.check_asked(replies)
        return [_image_of(reply) for reply in replies]

    def _ask(self, session: Session, prompt: str, seed: int, sampling: Sampling) -> Reply:
        parameters = self._parameters(seed, sampling)
        body: dict[str, Any] = {"model": self.server.address.model, "prompt": prompt, "n": 1}
        # Also where none is sent, the seed tells images of a prompt from each other.
        request = {**self.server.facts, "prompt": prompt, "parameters": parameters, "seed": seed}
        try:
            return session.post(
                "/images/generations", body | parameters, request,
                lambda answer: _reply_of(answer, session),
                Usage(requests=1, images=1, prompt_tokens=estimate_tokens(prompt)),
            )  # fmt: skip
        except ServiceError as error:
            if error.status not in (400, 422):
                raise
            raise ServiceError(
                f"{error}. To do: if it refuses a parameter, leave it out of "
                f"service.image_parameters ({', '.join(parameters)})",
                status=error.status,
            ) from None

    def _parameters(self, seed: int, sampling: Sampling) -> dict[str, Json]:
        """Return the parameters of a request that the server takes."""
        size = (sampling.width, sampling.height)
        if (size[0] is None) != (size[1] is None):
            raise InputError("height or width is missing; expected both, or none of them")
        values: dict[str, Json] = {
            "response_format": "b64_json",
            "size": None if size[0] is None else f"{size[0]}x{size[1]}",
            "seed": seed % _SEEDS,
            "num_inference_steps": sampling.steps,
            "guidance_scale": sampling.guidance,
            "negative_prompt": sampling.negative_prompt,
        }
        names = self.server.service.image_parameters
        return {name: values[name] for name in names if values[name] is not None}


def _reply_of(body: Facts, session: Session) -> Reply | None:
    """Read an answer: a picture in base64; None of another form."""
    entries = body.get("data")
    entry = entries[0] if isinstance(entries, list) and entries else {}
    encoded, url = (entry.get(name) for name in ("b64_json", "url"))
    model = body.get("model")
    name = model if isinstance(model, str) else ""
    if isinstance(url, str) and url.startswith("data:"):
        encoded = url.partition(",")[2]
    if isinstance(encoded, str) and encoded:
        try:
            data = base64.b64decode(encoded)
        except (binascii.Error, ValueError):
            return None
    elif isinstance(url, str) and url:
        fetched = fetch(url, session)
        if fetched is None:
            return Reply("request", f"no picture at {urlsplit(url).hostname}", name)
        data = fetched
    else:
        return Reply("refused", "a filter of the server", name) if is_filtered(body) else None
    problem = _problem_of(data)
    if problem:
        return Reply("cut", f"the picture can't be decoded: {problem}", name)
    return Reply("answered", base64.b64encode(data).decode(), name)


def fetch(url: str, session: Session) -> bytes | None:
    """Return the file at a URL of an answer, requested until it is there; else None.

    No key is sent.

    Raises
    ------
    ServiceError
        When the URL leads to a host that isn't allowed.
    """
    import httpx2

    server = session.model
    _check_url(url, server)
    for attempt in range(server.service.attempts):
        content, deadline = bytearray(), time.monotonic() + server.service.timeout
        try:
            with session.client.stream("GET", url) as response:
                for chunk in response.iter_bytes():
                    content += chunk
                    if len(content) > _MOST_BYTES or time.monotonic() > deadline:
                        return None
                if response.status_code == 200:
                    return bytes(content)
        except httpx2.HTTPError:
            pass
        time.sleep(min(0.5 * 2.0**attempt, 8.0))
    return None


def _check_url(url: str, server: ServedModel) -> None:
    """Refuse a URL at a host that isn't allowed."""
    place = Address(url, server.address.model)
    try:
        host, is_here, scheme = place.host, place.is_here, urlsplit(url).scheme
    except ValueError:
        host, is_here, scheme = "", False, ""
    is_allowed = is_here or host in map(str.lower, server.service.allow_hosts)
    if (is_allowed and scheme == "https") or (is_here and scheme == "http"):
        return
    raise ServiceError(
        f"{server.name}: the server answers with a URL at {host or 'no host'} ({scheme}). To do: "
        "ask for the picture itself, with 'response_format' in service.image_parameters; or, if "
        f"it may be asked by https, name it: service: {{allow_hosts: [{host}]}}"
    )


def _problem_of(data: bytes) -> str:
    """Return why a picture can't be decoded; "" where it can."""
    try:
        _decoded(data)
    except Exception as error:  # noqa: BLE001 - Pillow raises errors of many kinds
        return f"{type(error).__name__}: {error}"[:200]
    return ""


def _decoded(data: bytes) -> Image:
    from PIL import Image as pillow  # noqa: N813

    with pillow.open(io.BytesIO(data)) as picture:
        return np.asarray(picture.convert("RGB"))


def _image_of(reply: Reply) -> Image | NoAnswer | None:
    if reply.outcome == "refused":
        return None
    if reply.outcome != "answered":
        return NoAnswer(reply.outcome, reply.text)
    return _decoded(base64.b64decode(reply.text))

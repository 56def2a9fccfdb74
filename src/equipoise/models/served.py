"""The prefix ``served:``: chat models behind an interface, such as vLLM or a hosted one."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from equipoise.core import Facts, MissingExtraError, ModelError
from equipoise.core.files import decode_json
from equipoise.core.types import Json
from equipoise.models.images import Image, Images, as_rgb
from equipoise.models.info import ModelInfo
from equipoise.models.journal import Journal, Reply
from equipoise.models.protocols import NoAnswer, ServiceError
from equipoise.models.registry import Options, Preview, adapter
from equipoise.models.service import Address, Service

if TYPE_CHECKING:
    from httpx2 import Client, Response

_FILTERS = ("content_filter", "content_policy_violation", "responsibleaipolicyviolation")
_OVERLOADED = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_LONGEST_WAIT = 60.0
_SHOWN = 300
_REFUSED = "Refused to answer"
"""How an answer begins that a filter of the server stopped: audits count it as refused."""


@adapter(
    "served",
    preview=lambda _: Preview(offer="answerer"),
    identify=lambda target, options: {
        "address": asdict(Address.of(target)), "service": asdict(options.service or Service()),
    },
)  # fmt: skip
def load(target: str, options: Options) -> ServedModel:
    """Return a served model; its server is asked which models it has.

    Raises
    ------
    MissingExtraError
        Without httpx2.
    ModelError
        When the host isn't allowed, the key is missing, or the server has no such model.
    """
    model = ServedModel(Address.of(target), options.service or Service())
    model.check()
    return replace(model, reported=model.look_up())


@dataclass(frozen=True)
class ServedModel:
    """A chat model behind the chat-completions interface.

    Attributes
    ----------
    address : Address
    service : Service
    reported : mapping
        What the server says of the model, but for what differs from call to call.
    """

    address: Address
    service: Service
    reported: Mapping[str, Json] | None = None

    @property
    def facts(self) -> dict[str, Json]:
        """Address of the model, and its entry in the server's list."""
        return {**asdict(self.address), "reported": dict(self.reported or {})}

    @property
    def info(self) -> ModelInfo:
        """Facts that identify the model: its address, its entry on the server, the parameters."""
        digest = hashlib.sha256(json.dumps(self.facts, sort_keys=True).encode()).hexdigest()
        return ModelInfo(
            f"served:{self.address.url}#{self.address.model}", "served", digest,
            dtype="unknown", device="server", backend="served",
            preprocessing={
                "sent_to": self.address.host, "longest_side": self.service.longest_side,
                "image": "PNG", **self.service.parameters,
            },
        )  # fmt: skip

    def check(self) -> None:
        """Refuse a host that isn't allowed, or a key that isn't there.

        Raises
        ------
        ModelError
        """
        address, service = self.address, self.service
        if not address.is_here and address.host not in service.allow_hosts:
            raise ModelError(
                f"{self.info.name}: {address.host} isn't this machine, and pictures would be sent "
                f"there. To do: if they may be, name it: service: {{allow_hosts: [{address.host}]}}"
            )
        if service.key and not os.environ.get(service.key):
            raise ModelError(
                f"{self.info.name}: the environment variable {service.key} is empty. To do: set it "
                "to the key of the interface"
            )
        if service.key and not address.is_here and address.url.startswith("http:"):
            raise ModelError(
                f"{self.info.name}: the key would be sent unencrypted. Expected: a URL with https"
            )

    def look_up(self) -> Mapping[str, Json]:
        """Return the server's entry of the model.

        Raises
        ------
        ModelError
            When the server can't be reached, or lists other models.
        """
        with Session.of(self) as session:
            status, body = session.once("GET", "/models")
            if status in (401, 403) or 300 <= status < 400:
                raise ServiceError(session.refusal(status, body))
        entries = body.get("data") if isinstance(body, Mapping) else None
        if status != 200 or not isinstance(entries, list):
            return {}
        by_name = {entry.get("id"): entry for entry in entries if isinstance(entry, Mapping)}
        if by_name and self.address.model not in by_name:
            names = ", ".join(sorted(map(str, by_name))[:10])
            raise ModelError(f"{self.info.name}: the server has no such model. It has: {names}")
        entry = by_name.get(self.address.model, {})
        return {name: entry[name] for name in ("id", "root") if name in entry}

    def answer(self, images: Images, question: str) -> list[str | NoAnswer]:
        """Ask a question about each image.

        Returns
        -------
        list
            The text of each answer, "Refused to answer" where a filter of the server stopped it,
            or why there is none: "cut" at `max_tokens`, or "request" that failed each time.

        Raises
        ------
        ServiceError
            When the server refuses the key, the model or the form of the requests.
        """
        self.check()
        pictures = [self._encode(image) for image in as_rgb(images)]
        with Session.of(self) as session:
            replies = _concurrently(
                lambda picture: session.ask(picture, question), pictures, self.pace, self.service
            )
        models = sorted({reply.model for reply in replies if reply.model})
        if len({*models, *self._models}) > 1:
            names = ", ".join(sorted({*models, *self._models}))
            raise ServiceError(f"{self.info.name}: the server answers with several models: {names}")
        self._models.update(models)
        return [
            reply.text if reply.outcome in ("answered", "refused")
            else NoAnswer(reply.outcome, reply.text)
            for reply in replies
        ]  # fmt: skip

    @cached_property
    def _models(self) -> set[str]:
        """The names that the server has answered under."""
        return set()

    @cached_property
    def pace(self) -> Pace:
        """How many requests may be under way."""
        return Pace(self.service.concurrency)

    def _encode(self, image: Image) -> bytes:
        """Return a picture in the form that is sent."""
        from PIL import Image as Pillow

        picture, buffer = Pillow.fromarray(image), io.BytesIO()
        side = self.service.longest_side
        if max(picture.size) > side:
            picture.thumbnail((side, side), Pillow.Resampling.LANCZOS)
        picture.save(buffer, "PNG")
        return buffer.getvalue()


@dataclass(frozen=True)
class Session:
    """Requests to a served model over connections that are open meanwhile.

    Attributes
    ----------
    model : ServedModel
    client : httpx2.Client
    journal : Journal
    """

    model: ServedModel
    client: Client
    journal: Journal

    @classmethod
    @contextmanager
    def of(cls, model: ServedModel) -> Iterator[Session]:
        """Open connections to a model's server, and close them at the end."""
        try:
            import httpx2
        except ImportError as error:
            raise MissingExtraError("httpx2", "served") from error
        service = model.service
        # No proxy and no redirect: what is sent reaches the host that is named, or nobody.
        client = httpx2.Client(
            timeout=service.timeout, follow_redirects=False, trust_env=False,
            limits=httpx2.Limits(max_connections=service.concurrency),
        )  # fmt: skip
        folder = Path(service.store) if service.store else None
        with client, closing(Journal(folder)) as journal:
            yield cls(model, client, journal)

    def ask(self, picture: bytes, question: str) -> Reply:
        """Return the kept reply to a request, or that of the server."""
        request = {
            **self.model.facts, "question": question, "parameters": self.model.service.parameters,
            "picture": hashlib.sha256(picture).hexdigest(),
        }  # fmt: skip
        kept = self.journal.read(request)
        if kept is not None:
            return kept
        uri = f"data:image/png;base64,{base64.b64encode(picture).decode()}"
        content = [
            {"type": "image_url", "image_url": {"url": uri}}, {"type": "text", "text": question},
        ]  # fmt: skip
        body: dict[str, Any] = {
            "model": self.model.address.model, "messages": [{"role": "user", "content": content}],
            **self.model.service.parameters,
        }  # fmt: skip
        reply = self._send(body)
        if reply.outcome != "request":
            self.journal.write(request, reply)
        return reply

    def _send(self, body: Mapping[str, Any]) -> Reply:
        """Return the server's reply, asked again while it is overloaded or gives no answer."""
        problem = ""
        for attempt in range(1, self.model.service.attempts + 1):
            wait = min(0.5 * 2.0 ** (attempt - 1), _LONGEST_WAIT)
            try:
                status, answer, asked_wait = self._exchange("POST", "/chat/completions", body)
            except _unreachable() as error:
                status, problem = 0, f"{type(error).__name__}: {error}"
            else:
                reply = self._read(status, answer)
                if reply is not None:
                    return replace(reply, attempts=attempt)
                problem, wait = self.refusal(status, answer), max(wait, asked_wait)
            if status in _OVERLOADED or status == 0:
                self.model.pace.slow_down()
            if attempt < self.model.service.attempts:
                time.sleep(min(wait, _LONGEST_WAIT))
        text = f"no answer after {self.model.service.attempts} requests; the last: {problem}"
        return Reply("request", self._hide_key(text)[:_SHOWN], attempts=self.model.service.attempts)

    def _read(self, status: int, body: Json) -> Reply | None:
        """Read a reply; None where the request may be sent again.

        Raises
        ------
        ServiceError
            When no request of this kind can have an answer.
        """
        if status == 400 and _is_filtered(body):
            return Reply("refused", f"{_REFUSED}: a filter of the server refused the request")
        if 300 <= status < 500 and status not in _OVERLOADED:
            raise ServiceError(self.refusal(status, body))
        if status != 200 or not isinstance(body, Mapping):
            return None
        return reply_of(body)

    def once(self, method: str, path: str) -> tuple[int, Json]:
        """Return the status and the body of a reply to a request that is sent once.

        Raises
        ------
        ServiceError
            When there is none.
        """
        try:
            status, answer, _ = self._exchange(method, path, None)
        except _unreachable() as error:
            raise ServiceError(
                f"{self.model.info.name}: no answer of the server ({type(error).__name__}). To do: "
                "start it, or correct the URL"
            ) from None
        return status, answer

    def _exchange(self, method: str, path: str, body: Any) -> tuple[int, Json, float]:
        """Return the status, the body (None unless it is JSON) and the seconds to wait."""
        key = os.environ.get(self.model.service.key, "") if self.model.service.key else ""
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        response: Response = self.client.request(
            method, f"{self.model.address.url}{path}", json=body, headers=headers
        )
        try:
            content: Json = decode_json(response.content)
        except ValueError:
            content = None
        after = response.headers.get("retry-after", "")
        return response.status_code, content, float(after) if after.isdecimal() else 0.0

    def refusal(self, status: int, body: Json) -> str:
        """Return a server's message on one line, without the key."""
        error = body.get("error", body) if isinstance(body, Mapping) else ""
        message = error.get("message", "") if isinstance(error, Mapping) else error
        text = " ".join(str(message or "").split())[:_SHOWN] or "no message"
        return self._hide_key(f"{self.model.info.name}: status {status}, {text}")

    def _hide_key(self, text: str) -> str:
        key = os.environ.get(self.model.service.key, "") if self.model.service.key else ""
        return text.replace(key, "…") if key else text


def reply_of(body: Facts) -> Reply | None:
    """Read a chat completion; None where it has another form.

    A filter may stop an answer (`finish_reason`), stand in its place (`refusal`), or leave none.
    """
    choices, usage = body.get("choices"), body.get("usage")
    counts = usage if isinstance(usage, Mapping) else {}
    reply = partial(
        Reply,
        model=str(body.get("model") or ""),
        prompt_tokens=int(counts.get("prompt_tokens") or 0),
        completion_tokens=int(counts.get("completion_tokens") or 0),
    )
    if choices == [] and _is_filtered(body):
        return reply("refused", f"{_REFUSED}: a filter of the server left no answer")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        return None
    message, reason = choices[0].get("message"), choices[0].get("finish_reason")
    if not isinstance(message, Mapping):
        return None
    if message.get("refusal"):
        return reply("refused", f"{_REFUSED}: {message['refusal']}")
    if reason == "content_filter":
        return reply("refused", f"{_REFUSED}: a filter of the server stopped it")
    text = _text(message.get("content"))
    if text is None:
        return None
    if reason == "length":
        return reply("cut", f"the answer is longer than max_tokens: {text[:80]!r}")
    return reply("answered", text)


def _text(content: Json) -> str | None:
    """Return a message's text: given as one, or as a list of parts."""
    if isinstance(content, list):
        parts = [part.get("text", "") for part in content if isinstance(part, Mapping)]
        return "".join(map(str, parts)).strip()
    return (content or "").strip() if isinstance(content, str | None) else None


def _is_filtered(body: Json) -> bool:
    """Whether an error, or a reply without an answer, is of a content filter."""
    text = json.dumps(body).lower()
    return any(name in text for name in _FILTERS)


def _unreachable() -> tuple[type[Exception], ...]:
    import httpx2

    return (httpx2.HTTPError,)


class Pace:
    """How many requests may be under way: half as many after trouble, slowly more after answers."""

    def __init__(self, most: int) -> None:
        self._most, self._allowed, self._under_way = most, float(most), 0
        self._free = threading.Condition()

    def __enter__(self) -> None:
        with self._free:
            self._free.wait_for(lambda: self._under_way < max(1, int(self._allowed)))
            self._under_way += 1

    def __exit__(self, *_: object) -> None:
        with self._free:
            self._under_way -= 1
            self._allowed = min(self._most, self._allowed + 1.0 / max(1.0, self._allowed))
            self._free.notify_all()

    def slow_down(self) -> None:
        """Allow half as many requests from now on."""
        with self._free:
            self._allowed = max(1.0, self._allowed / 2.0)


def _concurrently(
    ask: Callable[[bytes], Reply], pictures: Sequence[bytes], pace: Pace, service: Service
) -> list[Reply]:
    """Return the replies to requests, in order; threads are no reason to wait at an exit.

    Raises
    ------
    Exception
        The first that a request raised; no further requests are sent.
    """
    waiting: SimpleQueue[int] = SimpleQueue()
    for place in range(len(pictures)):
        waiting.put(place)
    replies: dict[int, Reply] = {}
    errors: list[BaseException] = []

    def work() -> None:
        while not errors:
            try:
                place = waiting.get_nowait()
            except Empty:
                return
            try:
                with pace:
                    replies[place] = ask(pictures[place])
            except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
                errors.append(error)

    n_threads = min(service.concurrency, len(pictures))
    threads = [threading.Thread(target=work, daemon=True) for _ in range(n_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return [replies[place] for place in range(len(pictures))]

"""Chat models behind an interface, and requests to any served model."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from equipoise.core import Facts, MissingExtraError, ModelError
from equipoise.core.files import decode_json
from equipoise.core.types import Json
from equipoise.models.images import Image, Images, as_rgb
from equipoise.models.info import ModelInfo
from equipoise.models.journal import Journal, Reply
from equipoise.models.protocols import NoAnswer, ServiceError
from equipoise.models.service import Address, Service

if TYPE_CHECKING:
    from httpx2 import Client

T = TypeVar("T")
_FILTERS = (
    "content_filter", "content_policy_violation", "moderation_blocked",
    "responsibleaipolicyviolation",
)  # fmt: skip
_OVERLOADED = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_LONGEST_WAIT = 60.0
_SHOWN = 300
_MOST_BYTES, _MOST_TOKENS = 4 << 20, 1 << 53
_WITHOUT_LIST = frozenset({404, 405, 501})
"""Statuses of servers that list no models."""
_REFUSED = "Refused to answer"
"""How an answer begins that a filter of the server stopped: audits count it as refused."""


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
    def name(self) -> str:
        """Name of the model, with its prefix."""
        return f"served:{self.address.url}#{self.address.model}"

    @property
    def facts(self) -> dict[str, Json]:
        """Address of the model, and its entry in the server's list."""
        return {**asdict(self.address), "reported": dict(self.reported or {})}

    @property
    def info(self) -> ModelInfo:
        """Facts that identify the model: its address, its entry on the server, the parameters."""
        digest = hashlib.sha256(json.dumps(self.facts, sort_keys=True).encode()).hexdigest()
        return ModelInfo(
            self.name, "served", digest,
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
        if not address.is_here and address.host not in map(str.lower, service.allow_hosts):
            raise ModelError(
                f"{self.name}: {address.host} isn't this machine, and pictures or texts would be "
                "sent there. To do: if they may be, name it: service: "
                f"{{allow_hosts: [{address.host}]}}"
            )
        if service.secret and not address.is_here and not address.url.startswith("https:"):
            raise ModelError(
                f"{self.name}: the key would be sent unencrypted. Expected: a URL with https"
            )

    def look_up(self) -> Mapping[str, Json]:
        """Return the server's entry of the model.

        Raises
        ------
        ModelError
            When the server can't be reached, or lists other models.
        """
        with Session.of(self) as session:
            answer = session.list_models()
        if answer.status in _WITHOUT_LIST:
            return {}
        entries = answer.body.get("data") if isinstance(answer.body, Mapping) else None
        if answer.status != 200 or not isinstance(entries, list):
            raise ServiceError(f"{self.name}: no list of models: {answer.problem}")
        named = [entry for entry in entries if isinstance(entry, Mapping)]
        by_name = {entry["id"]: entry for entry in named if isinstance(entry.get("id"), str)}
        if by_name and self.address.model not in by_name:
            names = self.service.hide(", ".join(sorted(by_name)[:10]))
            raise ModelError(f"{self.name}: the server has no such model. It has: {names}")
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
        pictures = [self.encode(image) for image in as_rgb(images)]
        with Session.of(self) as session:
            replies = self.ask_all(lambda picture: session.ask(picture, question), pictures)
        return [
            reply.text if reply.outcome in ("answered", "refused")
            else NoAnswer(reply.outcome, reply.text)
            for reply in replies
        ]  # fmt: skip

    def ask_all(self, ask: Callable[[T], Reply], questions: Sequence[T]) -> list[Reply]:
        """Return the reply to each question, in order, asked at the model's pace.

        Raises
        ------
        ServiceError
            When several models reply, or a request can't be answered.
        """
        replies = _concurrently(ask, questions, self.pace, self.service)
        models = sorted({reply.model for reply in replies if reply.model})
        if len({*models, *self._models}) > 1:
            names = ", ".join(sorted({*models, *self._models}))
            raise ServiceError(
                f"{self.name}: the server answers with several models: {names}. To do: name "
                "one of them after the URL"
            )
        self._models.update(models)
        return replies

    @cached_property
    def _models(self) -> set[str]:
        """The names that the server has answered under."""
        return set()

    @cached_property
    def pace(self) -> Pace:
        """How many requests may be under way."""
        return Pace(self.service.concurrency)

    def encode(self, image: Image) -> bytes:
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
    most_bytes : int
        Largest answer.
    """

    model: ServedModel
    client: Client
    journal: Journal
    most_bytes: int = _MOST_BYTES

    @classmethod
    @contextmanager
    def of(cls, model: ServedModel, most_bytes: int = _MOST_BYTES) -> Iterator[Session]:
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
            yield cls(model, client, journal, most_bytes)

    def ask(self, picture: bytes, question: str) -> Reply:
        """Return the kept reply to a request, or that of the server."""
        request = {
            **self.model.facts, "question": question, "parameters": self.model.service.parameters,
            "picture": hashlib.sha256(picture).hexdigest(),
        }  # fmt: skip
        content = [image_part(picture), {"type": "text", "text": question}]
        body: dict[str, Any] = {
            "model": self.model.address.model, "messages": [{"role": "user", "content": content}],
            **self.model.service.parameters,
        }  # fmt: skip
        return self.post("/chat/completions", body, request, reply_of)

    def post(
        self,
        path: str,
        body: Mapping[str, Any],
        request: Facts,
        read: Callable[[Facts], Reply | None],
    ) -> Reply:
        """Return the kept reply to a request, or that of the server.

        Parameters
        ----------
        path : str
            Such as "/embeddings".
        body : mapping
        request : mapping
            Facts that identify the request.
        read : callable
            From an answer's JSON to a reply; None where it has another form.

        Raises
        ------
        ServiceError
            When no request of this kind can have an answer.
        """
        kept = self.journal.read(request)
        if kept is not None:
            return kept
        reply = self._send(path, body, read)
        if reply.outcome != "request":
            self.journal.write(request, reply)
        return reply

    def list_models(self) -> Answer:
        """Return the server's list of models, asked for again while it is overloaded.

        Raises
        ------
        ServiceError
            When there is no answer.
        """
        problem, attempts = "", self.model.service.attempts
        for wait in _waits(attempts):
            try:
                answer = self._exchange("GET", "/models", None)
            except _unreachable() as error:
                problem = type(error).__name__
                break
            if answer.status not in _OVERLOADED:
                return answer
            problem = answer.problem
            time.sleep(max(wait, answer.wait))
        raise ServiceError(
            f"{self.model.name}: no answer of the server ({problem}). To do: start it, or "
            "correct the URL"
        )

    def _send(
        self, path: str, body: Mapping[str, Any], read: Callable[[Facts], Reply | None]
    ) -> Reply:
        """Return the server's reply, asked again while it is overloaded or gives no answer."""
        problem, service = "", self.model.service
        for attempt, wait in enumerate(_waits(service.attempts), start=1):
            try:
                answer = self._exchange("POST", path, body)
            except _unreachable() as error:
                answer = Answer(0, None, problem=f"{type(error).__name__}: {error}")
            reply = self._read(answer, read)
            if reply is not None:
                return replace(reply, text=service.hide(reply.text), attempts=attempt)
            problem = service.hide(answer.problem)
            if answer.status in _OVERLOADED or answer.status == 0:
                self.model.pace.slow_down()
            time.sleep(max(wait, answer.wait) if wait else 0.0)
        text = f"no answer after {service.attempts} requests; the last: {problem}"
        return Reply("request", text[:_SHOWN], attempts=service.attempts)

    def _read(self, answer: Answer, read: Callable[[Facts], Reply | None]) -> Reply | None:
        """Read a reply; None where the request may be sent again.

        Raises
        ------
        ServiceError
            When no request of this kind can have an answer.
        """
        if answer.status == 400 and is_filtered(answer.body):
            return Reply("refused", f"{_REFUSED}: a filter of the server refused the request")
        if 300 <= answer.status < 500 and answer.status not in _OVERLOADED:
            raise ServiceError(f"{self.model.name}: {answer.problem}", status=answer.status)
        if answer.status != 200 or not isinstance(answer.body, Mapping):
            return None
        return read(answer.body)

    def _exchange(self, method: str, path: str, body: Any) -> Answer:
        """Send a request and read its answer, which has an end in time and in size."""
        import httpx2

        service = self.model.service
        headers = {"Accept-Encoding": "identity"}
        if service.secret:
            headers["Authorization"] = f"Bearer {service.secret}"
        deadline, content = time.monotonic() + service.timeout, bytearray()
        url = f"{self.model.address.url}{path}"
        with self.client.stream(method, url, json=body, headers=headers) as response:
            for chunk in response.iter_bytes():
                content += chunk
                if len(content) > self.most_bytes:
                    break
                if time.monotonic() > deadline:
                    raise httpx2.ReadTimeout(f"no whole answer after {service.timeout:g} s")
        try:
            read: Json = decode_json(bytes(content[: self.most_bytes + 1]))
        except ValueError:
            read = None
        after = response.headers.get("retry-after", "")
        wait = float(after) if after.isdecimal() and after.isascii() else 0.0
        form = str(response.headers.get("location") or response.headers.get("content-type"))
        problem = f"status {response.status_code}, {service.hide(_message(read, form))[:_SHOWN]}"
        return Answer(response.status_code, read, min(wait, _LONGEST_WAIT), problem)


@dataclass(frozen=True)
class Answer:
    """An answer over HTTP.

    Attributes
    ----------
    status : int
        0 without an answer.
    body : JSON
        None unless it is JSON.
    wait : float
        Seconds after which the server is to be asked again.
    problem : str
        Its status, and the message of the server.
    """

    status: int
    body: Json
    wait: float = 0.0
    problem: str = ""


def _waits(attempts: int) -> Iterator[float]:
    """Yield the seconds to wait after each attempt: doubled each time, none after the last."""
    for attempt in range(attempts - 1):
        yield min(0.5 * 2.0 ** min(attempt, 10), _LONGEST_WAIT)
    yield 0.0


def _message(body: Json, form: str) -> str:
    """Return the message of a server in a line; without one, the form or place of its answer."""
    error = body.get("error", body) if isinstance(body, Mapping) else None
    if isinstance(error, Mapping):
        error = error.get("message") or error.get("detail")
    return " ".join(str(error).split()) if error else f"no answer of this interface ({form})"


def data_url(picture: bytes) -> str:
    """Return a picture, a PNG, as a URL that holds it."""
    return f"data:image/png;base64,{base64.b64encode(picture).decode()}"


def image_part(picture: bytes) -> dict[str, Json]:
    """Return the part of a message that holds a picture, a PNG."""
    return {"type": "image_url", "image_url": {"url": data_url(picture)}}


def reply_of(body: Facts) -> Reply | None:
    """Read a chat completion; None where it has another form.

    A filter may stop an answer (`finish_reason`), stand in its place (`refusal`), or leave none.
    """
    choices, usage = body.get("choices"), body.get("usage")
    counts = usage if isinstance(usage, Mapping) else {}
    model = body.get("model")
    reply = partial(
        Reply,
        model=_written(model) if isinstance(model, str) else "",
        prompt_tokens=_count(counts.get("prompt_tokens")),
        completion_tokens=_count(counts.get("completion_tokens")),
    )
    if choices == [] and is_filtered(body):
        return reply("refused", f"{_REFUSED}: a filter of the server left no answer")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        return None
    message, reason = choices[0].get("message"), choices[0].get("finish_reason")
    if not isinstance(message, Mapping):
        return None
    if message.get("refusal"):
        return reply("refused", _written(f"{_REFUSED}: {message['refusal']}"))
    if reason == "content_filter":
        return reply("refused", f"{_REFUSED}: a filter of the server stopped it")
    text = _text(message.get("content"))
    if text is None:
        return None
    if reason == "length":
        return reply("cut", f"the answer is longer than max_tokens: {text[:80]!r}")
    return reply("answered", text)


def _text(content: Json) -> str | None:
    """Return a message's text: a text, or a list of parts."""
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, Mapping)]
        content = "".join(part for part in parts if isinstance(part, str))
    return _written(content or "").strip() if isinstance(content, str | None) else None


def _written(text: str) -> str:
    """Return a text without halves of characters, which no file can hold."""
    return text.encode("utf-8", "replace").decode()


def _count(value: Json) -> int:
    """Return a number of tokens; 0 of anything else."""
    if not isinstance(value, float | int) or not 0 <= value < _MOST_TOKENS:
        return 0
    return int(value)


def is_filtered(body: Json) -> bool:
    """Whether an error, or a reply without an answer, is of a content filter."""
    text = json.dumps(body).lower()
    return any(name in text for name in _FILTERS)


def _unreachable() -> tuple[type[Exception], ...]:
    import httpx2

    return (httpx2.HTTPError, httpx2.InvalidURL, UnicodeError)


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
    ask: Callable[[T], Reply], questions: Sequence[T], pace: Pace, service: Service
) -> list[Reply]:
    """Return the replies to requests, in order; threads are no reason to wait at an exit.

    Raises
    ------
    Exception
        The first that a request raised; no further requests are sent.
    """
    waiting: SimpleQueue[int] = SimpleQueue()
    for place in range(len(questions)):
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
                    replies[place] = ask(questions[place])
            except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
                errors.append(error)

    n_threads = min(service.concurrency, len(questions))
    threads = [threading.Thread(target=work, daemon=True) for _ in range(n_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return [replies[place] for place in range(len(questions))]

"""Chat models behind an interface, and requests to any served model."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import math
import struct
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from email.utils import parsedate_to_datetime
from functools import cached_property, partial
from pathlib import Path
from queue import Empty, SimpleQueue
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from equipoise.core import Facts, MissingExtraError, ModelError
from equipoise.core.files import decode_json
from equipoise.core.types import Json
from equipoise.models.images import Image, Images, as_rgb
from equipoise.models.info import ModelInfo
from equipoise.models.journal import Database, Journal, Reply
from equipoise.models.pacing import Pace
from equipoise.models.protocols import NoAnswer, ScoredAnswer, ServiceError
from equipoise.models.service import Address, Service
from equipoise.models.spending import (
    Basis,
    BudgetError,
    Spending,
    Usage,
    estimate_tokens,
    estimate_usage,
    request_size,
)

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
_FIRST_TOKENS, _ALTERNATIVES = 8, 20
_SETTINGS = ("parameters", "generation_settings", "sampling_params")
"""Places where servers repeat the parameters of a request."""
_MOST_BYTES, _MOST_TOKENS = 4 << 20, 1 << 53
_WITHOUT_LIST = frozenset({404, 405, 501})
"""Statuses of servers that list no models."""
_MALFORMED = frozenset({400, 422})
"""Statuses of requests whose parameters a server refuses."""
_WITHOUT_LOGPROBS = (
    ". To do: where the server refuses `logprobs`, set `letters: false` for the model"
)
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
            remedy = self.service.remedy(answer.status)
            hint = f". To do: {remedy}" if remedy else ""
            raise ServiceError(f"{self.name}: no list of models: {answer.problem}{hint}")
        named = [entry for entry in entries if isinstance(entry, Mapping)]
        by_name = {entry["id"]: entry for entry in named if isinstance(entry.get("id"), str)}
        if by_name and self.address.model not in by_name:
            names = self.service.hide(", ".join(sorted(by_name)[:10]))
            raise ModelError(f"{self.name}: the server doesn't have this model. It has: {names}")
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
        return [
            reply.text if reply.outcome in ("answered", "refused")
            else NoAnswer(reply.outcome, reply.text)
            for reply in self._replies(images, [question] * len(images), {})
        ]  # fmt: skip

    def answer_with_probabilities(
        self, images: Images, question: str, *, alternatives: int = _ALTERNATIVES
    ) -> list[ScoredAnswer | NoAnswer]:
        """Ask a question about each image, and for log probabilities of the first tokens.

        Parameters
        ----------
        images : n images
        question : str
        alternatives : int
            How many tokens to ask for at each place of an answer; servers allow 20 at most.

        Returns
        -------
        list
            Answers, as of `answer`, with the log probabilities of their first 8 tokens; these are
            None where the server gives none, and of refusals.

        Raises
        ------
        ServiceError
            As `answer`.
        """
        return self._scored(images, [question] * len(images), _log_parameters(alternatives))

    def answer_each(
        self, images: Images, questions: Sequence[str], *, probabilities: bool
    ) -> list[ScoredAnswer | NoAnswer]:
        """Ask about each image a question of its own, several at once.

        Parameters
        ----------
        images : n images
        questions : sequence of n str
        probabilities : bool
            Whether to ask for log probabilities of the first tokens.

        Returns
        -------
        list
            As of `answer_with_probabilities`.

        Raises
        ------
        ServiceError
            As `answer`.
        """
        parameters = _log_parameters(_ALTERNATIVES) if probabilities else {}
        return self._scored(images, questions, parameters)

    def _scored(
        self, images: Images, questions: Sequence[str], parameters: Mapping[str, Json]
    ) -> list[ScoredAnswer | NoAnswer]:
        return [
            ScoredAnswer(reply.text, reply.log_probabilities)
            if reply.outcome in ("answered", "refused")
            else NoAnswer(reply.outcome, reply.text)
            for reply in self._replies(images, questions, parameters)
        ]  # fmt: skip

    def _replies(
        self, images: Images, questions: Sequence[str], parameters: Mapping[str, Json]
    ) -> list[Reply]:
        """Return the reply about each image; `parameters` add to the service's."""
        self.check()
        pictures = [self.encode(image) for image in as_rgb(images)]
        with Session.of(self) as session:
            return self.ask_all(
                lambda pair: session.ask(*pair, parameters),
                [*zip(pictures, questions, strict=True)],
            )

    @contextmanager
    def opened_database(self) -> Iterator[Database]:
        """Open the file of the store, or the database in memory."""
        if not self.service.store:
            yield self._database
            return
        with closing(Database(Path(self.service.store))) as database:
            yield database

    def ask_all(self, ask: Callable[[T], Reply], questions: Sequence[T]) -> list[Reply]:
        """Return the reply to each question, in order, asked at the model's pace.

        Raises
        ------
        ServiceError
            When several models reply, or a request can't be answered.
        """
        replies = _concurrently(ask, questions, self.pace, self.service)
        with self.opened_database() as database:
            reported = {reply.model for reply in replies if reply.model}
            names = Journal(database).add_names(self.facts, reported)
        if len(names) > 1:
            raise ServiceError(
                f"{self.name}: the server answers with several models: {', '.join(names)}. To do: "
                "name one of them after the URL; if the server has another model now, choose "
                "another store"
            )
        return replies

    def check_asked(self, replies: Sequence[Reply]) -> None:
        """Refuse replies to requests that the budget didn't allow.

        Raises
        ------
        ServiceError
        """
        unasked = [reply for reply in replies if reply.outcome == "budget"]
        if unasked:
            raise ServiceError(
                f"{self.name}: {unasked[0].text}. To do: raise 'service.budget' and run again; "
                "replies so far are kept"
            )

    @cached_property
    def _database(self) -> Database:
        """Usage and names of the model without a store."""
        database = Database(None)
        weakref.finalize(self, database.close)
        return database

    @cached_property
    def shortages(self) -> list[tuple[float, float]]:
        """What ended the budget: no request is sent after it, also by later sessions."""
        return []

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
    spending : Spending
    most_bytes : int
        Largest answer.
    """

    model: ServedModel
    client: Client
    journal: Journal
    spending: Spending
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
        with client, model.opened_database() as database:
            journal = Journal(database, keeps_replies=bool(service.store))
            prices, budget = service.prices, service.budget
            account = model.address.account
            spending = Spending(database, account, prices, budget, model.shortages)
            yield cls(model, client, journal, spending, most_bytes)

    def ask(
        self, picture: bytes, question: str, parameters: Mapping[str, Json] = MappingProxyType({})
    ) -> Reply:
        """Return the kept reply to a request, or that of the server.

        Parameters
        ----------
        picture : bytes
            PNG.
        question : str
        parameters : mapping
            Of the request, beside those of the service.
        """
        all_parameters = {**self.model.service.parameters, **parameters}
        request: dict[str, Json] = {
            **self.model.facts, "question": question, "parameters": all_parameters,
            "picture": hashlib.sha256(picture).hexdigest(),
        }  # fmt: skip
        content = [image_part(picture), {"type": "text", "text": question}]
        body: dict[str, Any] = {
            "model": self.model.address.model, "messages": [{"role": "user", "content": content}],
            **all_parameters,
        }  # fmt: skip
        sides, max_tokens = [longest_side(picture)], self.model.service.max_tokens
        estimate = estimate_usage(question, sides, max_tokens)
        size = request_size(question, [sides_of(picture)])
        return self.post("/chat/completions", body, request, reply_of, estimate, size)

    def post(
        self,
        path: str,
        body: Mapping[str, Json],
        request: Facts,
        read: Callable[[Facts], Reply | None],
        estimate: Usage,
        size: float | None = None,
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
        estimate : Usage
            Of the request; its completion is the longest.
        size : float, optional
            As of `Spending.sending`.

        Raises
        ------
        ServiceError
            When no request of this kind can have an answer.
        """
        kept = self.journal.read(request)
        if kept is not None:
            return kept
        reply = self._send(path, body, read, estimate, size)
        if reply.outcome not in ("request", "budget"):
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
        self,
        path: str,
        body: Mapping[str, Json],
        read: Callable[[Facts], Reply | None],
        estimate: Usage,
        size: float | None,
    ) -> Reply:
        """Return the server's reply, asked again while it is overloaded or gives no answer."""
        problem, service, pace = "", self.model.service, self.model.pace
        for attempt, wait in enumerate(_waits(service.attempts), start=1):
            time.sleep(pace.wait())
            allowed = pace.allowed
            try:
                with self.spending.sending(estimate, size) as sending:
                    answer = self._attempt(path, body)
                    if answer.is_free:
                        sending.forget()
                    reply = self._read(answer, read, body)
                    if reply is not None and answer.is_free:
                        sending.settle(Usage(), "free")
                    elif reply is not None:
                        sending.settle(*_usage_of(reply, estimate))
            except BudgetError as error:
                return Reply("budget", _shortage(error, service))
            if reply is not None:
                pace.speed_up()
                ignored = _ignored(body, answer.body, reply)
                self.journal.add_ignored(self.model.address.account, service.parameters, ignored)
                return _hidden(replace(reply, attempts=attempt, ignored=ignored), service)
            problem = service.hide(answer.problem)
            if answer.status in _OVERLOADED or answer.status == 0:
                pace.slow_down(allowed, answer.wait)
            time.sleep(max(wait, answer.wait) if wait else 0.0)
        text = f"no answer after {service.attempts} requests; the last: {problem}"
        return Reply("request", text[:_SHOWN], attempts=service.attempts)

    def _attempt(self, path: str, body: Mapping[str, Json]) -> Answer:
        """Return the answer to a request; of status 0 where there is none."""
        try:
            return self._exchange("POST", path, body)
        except _unreachable() as error:
            problem = f"{type(error).__name__}: {error}"
            return Answer(0, None, problem=problem, is_sent=not _is_unsent(error))

    def _read(
        self, answer: Answer, read: Callable[[Facts], Reply | None], body: Facts
    ) -> Reply | None:
        """Read a reply to a request; None where the request may be sent again.

        Raises
        ------
        ServiceError
            When no request of this kind can have an answer.
        """
        if answer.status == 400 and is_filtered(answer.body):
            return Reply("refused", f"{_REFUSED}: a filter of the server refused the request")
        if 300 <= answer.status < 500 and answer.status not in _OVERLOADED:
            hint = _WITHOUT_LOGPROBS if answer.status in _MALFORMED and body.get("logprobs") else ""
            remedy = self.model.service.remedy(answer.status)
            hint = f". To do: {remedy}" if remedy else hint
            problem = f"{self.model.name}: {answer.problem}{hint}"
            raise ServiceError(problem, status=answer.status)
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
        wait = _seconds(response.headers.get("retry-after", ""))
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
    is_sent : bool
        Whether the request may have reached the server.
    """

    status: int
    body: Json
    wait: float = 0.0
    problem: str = ""
    is_sent: bool = True

    @property
    def is_free(self) -> bool:
        """Whether nothing is charged: the server refused the request, or never got it."""
        return not self.is_sent or self.status >= 300


def _seconds(after: str) -> float:
    """Return the seconds of a header Retry-After: a number, or a date; 0 of anything else."""
    if after.isdecimal() and after.isascii():
        return float(after)
    try:
        return max(0.0, parsedate_to_datetime(after).timestamp() - time.time())
    except (ValueError, OverflowError, OSError):
        return 0.0


def sides_of(picture: bytes) -> tuple[int, int]:
    """Return the width and the height of a PNG."""
    width, height = struct.unpack(">II", picture[16:24])
    return int(width), int(height)


def longest_side(picture: bytes) -> int:
    """Return the pixels of the longest side of a PNG."""
    return max(sides_of(picture))


def _usage_of(reply: Reply, estimate: Usage) -> tuple[Usage, Basis]:
    """Return the usage of a request, and its basis."""
    if not reply.prompt_tokens:
        return replace(estimate, completion_tokens=estimate_tokens(reply.text)), "estimated"
    prompt, completion = reply.prompt_tokens, reply.completion_tokens
    return replace(estimate, prompt_tokens=prompt, completion_tokens=completion), "counted"


def _shortage(error: BudgetError, service: Service) -> str:
    """Return why a request wasn't sent, with a budget that is enough for it."""
    left = (service.budget or 0.0) - error.spent
    return (
        f"a request may cost up to {service.at_least(error.cost)}, and {service.at_most(left)} is "
        f"left of the budget of {service.limit}; {service.at_least(error.spent + error.cost)} "
        "would be enough for it"
    )


def _ignored(request: Facts, answer: Json, reply: Reply) -> tuple[str, ...]:
    """Return the parameters of a request that had no effect, as far as the reply shows."""
    if not isinstance(answer, Mapping) or reply.outcome not in ("answered", "cut"):
        return ()
    names = set[str]()
    if request.get("logprobs") and reply.outcome == "answered" and not reply.log_probabilities:
        names.add("logprobs")
    if reply.completion_tokens > request.get("max_tokens", math.inf):
        names.add("max_tokens")
    for reported in (answer, *(answer.get(place) for place in _SETTINGS)):
        for name in ("max_tokens", "seed", "temperature"):
            value = reported.get(name) if isinstance(reported, Mapping) else None
            if isinstance(value, float | int) and value != request.get(name, value):
                names.add(name)
    return (*sorted(names),)


def _hidden(reply: Reply, service: Service) -> Reply:
    """Return a reply without the key, which a server may repeat."""
    places = [
        {service.hide(text): number for text, number in place.items()}
        for place in reply.log_probabilities or ()
    ]
    return replace(
        reply,
        text=service.hide(reply.text),
        model=service.hide(reply.model),
        log_probabilities=tuple(places) or None,
    )


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
    """Read a chat completion, or return None if it has another form.

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
    first_tokens = _log_probabilities(choices[0].get("logprobs"))
    return reply("answered", text, log_probabilities=first_tokens)


def _log_parameters(alternatives: int) -> dict[str, Json]:
    """Return the parameters of a request for log probabilities."""
    return {"logprobs": True, "top_logprobs": alternatives}


def _log_probabilities(read: Json) -> tuple[Mapping[str, float], ...] | None:
    """Return the log probabilities of the alternatives of each of the first tokens.

    None where a server gives none, or in another form.
    """
    tokens = read.get("content") if isinstance(read, Mapping) else None
    if not isinstance(tokens, list):
        return None
    places = [_alternatives(token) for token in tokens[:_FIRST_TOKENS]]
    return tuple(places) if places and all(places) else None


def _alternatives(token: Json) -> dict[str, float]:
    """Return the log probability of each alternative of a token; {} in another form.

    Tokens that are parts of a character may share a text: the largest number counts.
    """
    entries = token.get("top_logprobs") if isinstance(token, Mapping) else None
    numbers: dict[str, float] = {}
    for entry in entries if isinstance(entries, list) else ():
        text = entry.get("token") if isinstance(entry, Mapping) else None
        number = entry.get("logprob") if isinstance(entry, Mapping) else None
        if isinstance(text, str) and isinstance(number, float | int) and math.isfinite(number):
            numbers[_written(text)] = max(float(number), numbers.get(_written(text), -math.inf))
    return numbers


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


def _is_unsent(error: Exception) -> bool:
    """Whether a request never reached its server."""
    import httpx2

    return isinstance(
        error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout | httpx2.InvalidURL
    )


def _unreachable() -> tuple[type[Exception], ...]:
    import httpx2

    return (httpx2.HTTPError, httpx2.InvalidURL, UnicodeError)


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

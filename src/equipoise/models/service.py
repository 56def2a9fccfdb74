"""Where a model is served, and how it is asked."""

from __future__ import annotations

import ipaddress
import math
import os
import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from equipoise.core import InputError, ModelError
from equipoise.core.types import Json
from equipoise.models.spending import Prices

_HOST = re.compile(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*|[0-9a-f.]*:[0-9a-f:.]*")
_KEY = re.compile(r"[!-~]+")
_INEXACT = 1e-6
"""Part of the last place of an amount that is an error of its calculation."""

Interface = Literal["chat", "embeddings"]
ImageParameter = Literal[
    "response_format", "size", "seed", "num_inference_steps", "guidance_scale", "negative_prompt"
]
"""Parameters of a request for an image."""


def _places(cost: float) -> int:
    """Return the decimals with which an amount is shown."""
    return 2 if cost >= 1 else 4


@dataclass(frozen=True)
class Service:
    """How a served model is asked.

    Attributes
    ----------
    interface : str
        "chat" asks questions about pictures; "embeddings" gets vectors of texts and pictures.
    key : str
        Environment variable that has the key; "" for a server without one.
    allow_hosts : tuple of str
        Hosts other than this machine that pictures may be sent to.
    longest_side : int
        Pixels; larger pictures are shrunk before they are sent.
    max_tokens : int
        Longest answer.
    temperature : float
    seed : int or None
        None sends none: some servers refuse it.
    timeout : float
        Seconds that an answer may take.
    attempts : int
        Times that a request is sent before it counts as failed.
    concurrency : int
        Most requests at once; fewer while the server is overloaded.
    image_parameters : tuple of str
        What is sent with a prompt for an image; servers refuse parameters that they don't have.
    store : str
        Folder in which answers are kept as they arrive; "" keeps none.
    prices : Prices, optional
        Of the model.
    budget : float, optional
        Most that requests to the model may cost, those before included that the store has.
    currency : str
        Of prices and budget.

    Raises
    ------
    InputError
        When there is a budget without prices.
    """

    interface: Interface = "chat"
    key: str = ""
    allow_hosts: tuple[str, ...] = ()
    longest_side: int = 1024
    max_tokens: int = 64
    temperature: float = 0.0
    seed: int | None = 0
    timeout: float = 120.0
    attempts: int = 6
    concurrency: int = 8
    image_parameters: tuple[ImageParameter, ...] = ("response_format", "size", "seed")
    store: str = ""
    prices: Prices | None = None
    budget: float | None = None
    currency: str = ""

    def __post_init__(self) -> None:
        """Refuse a budget that nothing counts against."""
        if self.budget is not None and self.prices is None:
            raise InputError("budget is given without prices; expected the prices of the model")

    @property
    def secret(self) -> str:
        """The key of the interface; "" without one.

        Raises
        ------
        ModelError
            When the variable is empty, or holds what no header can.
        """
        if not self.key:
            return ""
        secret = os.environ.get(self.key, "").strip()
        if not _KEY.fullmatch(secret):
            problem = "has spaces or letters that no key has" if secret else "is empty"
            raise ModelError(
                f"the environment variable {self.key} {problem}. To do: set it to the key of the "
                "interface"
            )
        return secret

    def hide(self, text: str) -> str:
        """Return a text without the key."""
        secret = os.environ.get(self.key, "").strip() if self.key else ""
        return text.replace(secret, "…") if secret else text

    @property
    def parameters(self) -> dict[str, Json]:
        """Parameters of a request, without its model and messages."""
        seed: dict[str, Json] = {} if self.seed is None else {"seed": self.seed}
        return {"max_tokens": self.max_tokens, "temperature": self.temperature, **seed}

    @property
    def identity(self) -> dict[str, Json]:
        """Settings that decide outputs."""
        return {
            **self.parameters, "longest_side": self.longest_side, "interface": self.interface,
        }  # fmt: skip

    def remedy(self, status: int) -> str:
        """Return a remedy for a status of a server; "" where its message says enough."""
        if status in (401, 403):
            held = f"check the key in {self.key}" if self.key else "this server needs a key"
            return f"{held}: 'service.key' names the environment variable that has it"
        if status in (404, 405):
            return "check the URL, which often ends in /v1, and the model's name after '#'"
        if 300 <= status < 400:
            return "redirects aren't followed: name the address that it leads to"
        return ""

    @property
    def limit(self) -> str:
        """The budget with its currency."""
        return f"{self.budget:g} {self.currency}".strip()

    def amount(self, cost: float) -> str:
        """Return a cost with its currency."""
        return f"{cost:.{_places(cost)}f} {self.currency}".strip()

    def at_least(self, cost: float) -> str:
        """Return a cost with its currency, rounded up, so that the amount is enough."""
        scale = 10 ** _places(cost)
        return self.amount(math.ceil(cost * scale - _INEXACT) / scale)

    def at_most(self, cost: float) -> str:
        """Return a cost with its currency, rounded down, so that the amount is there."""
        scale = 10 ** _places(cost)
        return self.amount(math.floor(cost * scale + _INEXACT) / scale)


@dataclass(frozen=True)
class Address:
    """Where a model is served.

    Attributes
    ----------
    url : str
        Such as "http://127.0.0.1:8000/v1".
    model : str
        Its name there.
    """

    url: str
    model: str

    @classmethod
    def of(cls, target: str) -> Address:
        """Read "URL#model".

        Raises
        ------
        ModelError
            When one is missing, or the URL has a password.
        """
        url, _, model = target.partition("#")
        problem = ModelError(
            f"served:{target!r}: expected the URL of an interface and the model's name, URL#MODEL, "
            "such as served:http://127.0.0.1:8000/v1#llava"
        )
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port
        except ValueError:
            raise problem from None
        if parts.username or parts.password or parts.query:
            raise ModelError(
                f"served:{parts.scheme}://{host}: the URL has a password or a query. To do: name "
                "an environment variable that has the key, under 'service.key'"
            )
        is_plain = url.isprintable() and " " not in url and _HOST.fullmatch(host)
        if parts.scheme not in ("http", "https") or not is_plain or not model:
            raise problem
        named = f"[{host}]" if ":" in host else host
        place = named if port is None else f"{named}:{port}"
        return cls(f"{parts.scheme}://{place}{parts.path.rstrip('/')}", model)

    @property
    def account(self) -> str:
        """What requests are counted under: the URL and the model."""
        return f"{self.url}#{self.model}"

    @property
    def host(self) -> str:
        """The host that pictures are sent to."""
        return urlsplit(self.url).hostname or ""

    @property
    def is_here(self) -> bool:
        """Whether the host is this machine."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

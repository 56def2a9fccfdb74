"""Replies of served models, each kept as soon as it arrives."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from equipoise.core import Facts, RunError
from equipoise.core.files import decode_json
from equipoise.core.writing import make_folder

FILE = "requests.sqlite"
_WAIT = 60.0
_TABLE = """CREATE TABLE IF NOT EXISTS exchanges (
  key TEXT PRIMARY KEY, request TEXT, reply TEXT
)"""
_READ = "SELECT reply FROM exchanges WHERE key = ?"
_WRITE = "INSERT OR IGNORE INTO exchanges VALUES (?, ?, ?)"


@dataclass(frozen=True)
class Reply:
    """The reply of a server to a request.

    Attributes
    ----------
    outcome : str
        "answered"; "refused" by the model or by a filter of the server; "cut" at the longest
        answer; or "request", which failed each time.
    text : str
        The answer, or why there is none.
    model : str
        What the server says which model answered.
    prompt_tokens, completion_tokens : int
        As the server counts them; 0 where it doesn't.
    attempts : int
        How often the request was sent.
    log_probabilities : tuple of mapping, or None
        For each of the first tokens its likeliest alternatives; None where there are none.
    """

    outcome: Literal["answered", "refused", "cut", "request"]
    text: str
    model: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    attempts: int = 1
    log_probabilities: tuple[Mapping[str, float], ...] | None = None


class Journal:
    """Replies by request, in a file of a folder; without a folder none is kept.

    Parameters
    ----------
    folder : Path or None
    """

    def __init__(self, folder: Path | None) -> None:
        self._lock, self._connection = threading.Lock(), None
        self._path = FILE if folder is None else str(folder / FILE)
        if folder is not None:
            with self._translated():
                self._connection = self._open(folder)

    def close(self) -> None:
        """Close the file."""
        if self._connection is not None:
            self._connection.close()

    def read(self, request: Facts) -> Reply | None:
        """Return the reply to a request, or None.

        Raises
        ------
        RunError
            When the file can't be read.
        """
        if self._connection is None:
            return None
        with self._translated(), self._lock, closing(self._connection.cursor()) as cursor:
            cursor.execute(_READ, (_key(request),))
            row = cursor.fetchone()
        if row is None:
            return None
        fields = decode_json(row[0].encode())
        first_tokens = fields.pop("log_probabilities")
        return Reply(**fields, log_probabilities=first_tokens and tuple(first_tokens))

    def write(self, request: Facts, reply: Reply) -> None:
        """Keep the reply to a request.

        Raises
        ------
        RunError
            When the file can't be written.
        """
        if self._connection is None:
            return
        row = (_key(request), json.dumps(request, sort_keys=True), json.dumps(asdict(reply)))
        with self._translated(), self._lock, self._connection:
            self._connection.execute(_WRITE, row)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Raise errors of the file as those of a run."""
        try:
            yield
        except sqlite3.Error as error:
            raise RunError(
                f"{self._path}: can't be used ({error}). To do: see that it can be written; where "
                "it is damaged, remove it, and the server is asked again"
            ) from None

    @staticmethod
    def _open(folder: Path) -> sqlite3.Connection:
        make_folder(folder)
        connection = sqlite3.connect(folder / FILE, timeout=_WAIT, check_same_thread=False)
        with connection:
            connection.execute(_TABLE)
        return connection


def _key(request: Facts) -> str:
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()

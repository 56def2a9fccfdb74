"""Replies of served models, each kept as soon as it arrives."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from equipoise.core import Facts, RunError
from equipoise.core.files import decode_json
from equipoise.core.writing import make_folder

FILE = "requests.sqlite"
Row: TypeAlias = tuple[Any, ...]
_WAIT = 60.0
_LISTS = ("log_probabilities", "ignored")
"""Fields of a reply that JSON holds as lists."""
_TABLES = """
CREATE TABLE IF NOT EXISTS exchanges (key TEXT PRIMARY KEY, request TEXT, reply TEXT);
CREATE TABLE IF NOT EXISTS names (model TEXT, name TEXT, PRIMARY KEY (model, name));
CREATE TABLE IF NOT EXISTS ignored (
  account TEXT, parameters TEXT, name TEXT, PRIMARY KEY (account, parameters, name));
CREATE TABLE IF NOT EXISTS spending (
  account TEXT, basis TEXT, requests INTEGER, images INTEGER, prompt_tokens INTEGER,
  completion_tokens INTEGER, largest_estimate INTEGER, largest_prompt INTEGER,
  largest_completion INTEGER, PRIMARY KEY (account, basis));
CREATE TABLE IF NOT EXISTS unsettled (
  number INTEGER PRIMARY KEY, account TEXT, images INTEGER, prompt_tokens INTEGER,
  completion_tokens INTEGER);
CREATE TABLE IF NOT EXISTS trends (
  account TEXT, basis TEXT, requests INTEGER, size REAL, squares REAL, products REAL,
  prompt_tokens INTEGER, completion_tokens INTEGER, PRIMARY KEY (account, basis));
"""
_READ = "SELECT reply FROM exchanges WHERE key = ?"
_WRITE = "INSERT OR IGNORE INTO exchanges VALUES (?, ?, ?)"
_NAMES = "SELECT name FROM names WHERE model = ? ORDER BY name"
_ADD_NAME = "INSERT OR IGNORE INTO names VALUES (?, ?)"
_IGNORED = "SELECT name FROM ignored WHERE account = ? AND parameters = ? ORDER BY name"
_ADD_IGNORED = "INSERT OR IGNORE INTO ignored VALUES (?, ?, ?)"


@dataclass(frozen=True)
class Reply:
    """The reply of a server to a request.

    Attributes
    ----------
    outcome : str
        "answered"; "refused" by the model or by a filter of the server; "cut" at the longest
        answer; "request", which failed each time; or "budget", which was too small to ask.
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
    ignored : tuple of str
        Parameters of the request that had no effect, as far as the reply shows.
    """

    outcome: Literal["answered", "refused", "cut", "request", "budget"]
    text: str
    model: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    attempts: int = 1
    log_probabilities: tuple[Mapping[str, float], ...] | None = None
    ignored: tuple[str, ...] = ()


class Database:
    """A file of a store for threads and processes; in memory without a folder.

    Parameters
    ----------
    folder : Path or None
    must_exist : bool
        Whether to read a file that is there. What a killed run left undone in it is taken back
        where it can be written; where it can't, it is read as it is.

    Raises
    ------
    RunError
        When the file can't be read or written; so do the methods.
    """

    def __init__(self, folder: Path | None, *, must_exist: bool = False) -> None:
        self._lock, self._path = threading.Lock(), FILE if folder is None else str(folder / FILE)
        if folder is not None and not must_exist:
            make_folder(folder)
        path = ":memory:" if folder is None else (folder / FILE).absolute().as_uri()
        with self._translated():
            self._connection = sqlite3.connect(
                f"{path}?mode=rw" if must_exist else path, uri=folder is not None,
                timeout=_WAIT, check_same_thread=False, isolation_level=None,
            )  # fmt: skip
            self._connection.executescript(_TABLES)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def rows(self, query: str, *values: str) -> list[Row]:
        """Return the rows of a query."""
        with self._translated(), self._lock:
            return self._connection.execute(query, values).fetchall()

    @contextmanager
    def changing(self) -> Iterator[sqlite3.Cursor]:
        """Make changes that other threads and processes see together, or not at all."""
        with self._translated(), self._lock, closing(self._connection.cursor()) as cursor:
            cursor.execute("BEGIN IMMEDIATE")
            try:
                yield cursor
            except BaseException:
                cursor.execute("ROLLBACK")
                raise
            cursor.execute("COMMIT")

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Raise errors of the file as those of a run."""
        try:
            yield
        except sqlite3.Error as error:
            raise RunError(
                f"{self._path}: can't be used ({error}). To do: make it writable. If "
                "it is damaged, remove it, and the audit asks the server again"
            ) from None


class Journal:
    """Replies by request, in a file of a store.

    Parameters
    ----------
    database : Database
    keeps_replies : bool
    """

    def __init__(self, database: Database, *, keeps_replies: bool = True) -> None:
        self._database, self._keeps_replies = database, keeps_replies
        self._ignored = set[tuple[str, str, str]]()

    def read(self, request: Facts) -> Reply | None:
        """Return the reply to a request, or None.

        Raises
        ------
        RunError
            When the file can't be read.
        """
        if not self._keeps_replies:
            return None
        rows = self._database.rows(_READ, _key(request))
        if not rows:
            return None
        fields = decode_json(rows[0][0])
        lists = {name: value and tuple(value) for name, value in fields.items() if name in _LISTS}
        return Reply(**fields | lists)

    def write(self, request: Facts, reply: Reply) -> None:
        """Keep the reply to a request.

        Raises
        ------
        RunError
            When the file can't be written.
        """
        if self._keeps_replies:
            row = (_key(request), json.dumps(request, sort_keys=True), json.dumps(asdict(reply)))
            with self._database.changing() as cursor:
                cursor.execute(_WRITE, row)

    def add_names(self, model: Facts, names: Collection[str]) -> list[str]:
        """Add names that a model answers under, and return all that it has answered under."""
        key = _key(model)
        with self._database.changing() as cursor:
            cursor.executemany(_ADD_NAME, [(key, name) for name in names])
        return [name for (name,) in self._database.rows(_NAMES, key)]

    def add_ignored(self, account: str, parameters: Facts, names: Collection[str]) -> None:
        """Add parameters that had no effect on a reply."""
        rows = {(account, json.dumps(parameters, sort_keys=True), name) for name in names}
        if rows - self._ignored:
            self._ignored |= rows
            with self._database.changing() as cursor:
                cursor.executemany(_ADD_IGNORED, [*rows])


def ignored_parameters(database: Database, account: str, parameters: Facts) -> list[str]:
    """Return the parameters that had no effect on replies to requests with all of them."""
    key = json.dumps(parameters, sort_keys=True)
    return [name for (name,) in database.rows(_IGNORED, account, key)]


def answered_questions(database: Database, about: Facts, parameters: Facts) -> set[tuple[str, str]]:
    """Return the question and the digest of the picture of each chat request with a reply.

    Parameters
    ----------
    database : Database
    about : mapping
        Facts that the requests have, such as the URL and the model.
    parameters : mapping
        Parameters that they were sent with, among others.
    """
    pairs = set()
    for (text,) in database.rows("SELECT request FROM exchanges"):
        request = decode_json(text)
        is_same = about.items() <= request.items() and "question" in request
        if is_same and parameters.items() <= request["parameters"].items():
            pairs.add((request["question"], request["picture"]))
    return pairs


def _key(request: Facts) -> str:
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()

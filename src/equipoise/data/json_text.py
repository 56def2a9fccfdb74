"""The parser of all JSON that a user brings: lines, lists and whole files."""

from __future__ import annotations

import json
from typing import Any

from equipoise.core import DataError


class RepeatedKeyError(ValueError):
    """An object has the same key twice.

    Attributes
    ----------
    key : str
    """

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__("the key is there twice")

    def located(self, file: str, row: int | None = None) -> DataError:
        """Return the error that a user sees, with the place of the object."""
        return DataError(
            str(self),
            file=file,
            column=self.key,
            row=row,
            expected="every key once",
            fix="remove or rename one of them",
        )


def _unique_keys(members: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(members)
    if len(fields) < len(members):
        keys = [key for key, _ in members]
        raise RepeatedKeyError(next(key for key in keys if keys.count(key) > 1))
    return fields


_DECODER = json.JSONDecoder(object_pairs_hook=_unique_keys)


def parse_json(text: str) -> Any:
    """Return the value of a JSON text.

    Raises
    ------
    RepeatedKeyError
        When an object has the same key twice, at any depth.
    ValueError
        When the text is not JSON, or is nested too deep.
    """
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise ValueError("the nesting is too deep") from None


def parse_json_at(text: str, start: int) -> tuple[Any, int]:
    """Return the JSON value that starts at a character, and the character where it ends.

    Raises as `parse_json` does.
    """
    try:
        return _DECODER.raw_decode(text, start)
    except RecursionError:
        raise ValueError("the nesting is too deep") from None

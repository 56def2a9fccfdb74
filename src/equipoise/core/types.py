"""Types of texts, mappings and callbacks that every room shares."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypedDict

Strings = tuple[str, ...]
Facts = Mapping[str, Any]
Fields = dict[str, Any]
Span = tuple[float, float]

Json: TypeAlias = "Mapping[str, Json] | Sequence[Json] | str | float | None"
"""What a JSON file holds."""


class FileFacts(TypedDict, total=False):
    """Facts about a file in a manifest.

    Attributes
    ----------
    sha256 : str
        Of its bytes.
    bytes, rows : int
        Its size.
    matched_by : str
        Column of the ids by which its rows were matched, where the config named none.
    """

    sha256: str
    bytes: int
    rows: int
    matched_by: str


Progress = Callable[[str, int, int | None], None]
"""Told the step, what is done, and what there is to do."""

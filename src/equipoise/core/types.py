"""Types of texts, mappings and callbacks that every room shares."""

from collections.abc import Callable, Mapping
from typing import Any

Strings = tuple[str, ...]
Facts = Mapping[str, Any]
Fields = dict[str, Any]

Progress = Callable[[str, int, int | None], None]
"""Told the step, what is done, and what there is to do."""

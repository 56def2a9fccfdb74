"""Ids made of words: the same for the same words, and fit for names of files."""

from __future__ import annotations

import re
from collections.abc import Sequence


def word_id(texts: Sequence[str]) -> str:
    """Return texts as a path of plain words, fit for the name of a file on any system."""
    return "/".join(re.sub(r"[^\w]+", "-", text.casefold()).strip("-") for text in texts)

"""Texts of classes, and what answers mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from equipoise.audits.text_to_image.config_shares import SharesConfig

UNKNOWN, REFUSED, OTHER = "unknown", "refused an answer", "other answer"
"""Outcomes that are no class."""


def class_texts(share: SharesConfig) -> dict[str, tuple[str, ...]]:
    """Return the texts of every class, in the templates.

    Raises
    ------
    InputError
        When there is no such list of templates, or one makes a text twice.
    """
    from equipoise.evidence.prompts import prompts

    made = prompts(share.classes, share.templates)
    return {
        name: tuple(
            t for t, owner in zip(made.texts, made.owner.tolist(), strict=True) if owner == i
        )
        for i, name in enumerate(made.names)
    }


def plain(answer: str) -> str:
    """Return an answer without case, spaces around it and a full stop at its end."""
    return " ".join(answer.casefold().split()).rstrip(".!").strip()


def meanings(share: SharesConfig) -> Mapping[str, str]:
    """Return the outcome that each plain answer means."""
    found = {plain(text): UNKNOWN for text in (*share.unknown, UNKNOWN)}
    found |= {plain(text): REFUSED for text in share.refused}
    for name, texts in share.classes.items():
        found |= {plain(text): name for text in (name, *texts)}
    return found

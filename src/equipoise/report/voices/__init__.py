"""How the report speaks of each kind of audit: names, sentences, questions and sections."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from equipoise.core import AuditResult

if TYPE_CHECKING:
    from equipoise.report.blocks import Section

Sections = Callable[[], "tuple[Callable[[AuditResult], Section | None], ...]"]

KINDS: tuple[str, ...] = ()
"""Kinds of audit with a voice of their own; the report's own words are those of predictions."""


def no_sections() -> tuple[Callable[[AuditResult], Section | None], ...]:
    """No sections beside those of every report."""
    return ()


@dataclass(frozen=True)
class Voice:
    """What the report says of one kind of audit.

    Attributes
    ----------
    question : callable
        From a result to the question it answers, in a sentence.
    parts : str
        What findings with a subject are about, in the plural: "targets".
    foremost : tuple of str
        Metrics that a reader should hear of first, before those with a larger excess.
    in_short : callable
        From a result to the sentences that a reader takes away; none: how many disparities each
        model has, and the foremost.
    caveat : str
        What a reader must know before counting disparities; told in short where there are any.
    facts : callable
        From a result to (name, text) pairs on what was measured on what.
    sections : callable
        Returns the functions that make this kind's sections, in the order of the page; each
        gives None for results without its tables. Called when a page is made.
    """

    question: Callable[[AuditResult], str]
    parts: str
    foremost: tuple[str, ...] = ()
    in_short: Callable[[AuditResult], tuple[str, ...]] = lambda _: ()
    caveat: str = ""
    facts: Callable[[AuditResult], tuple[tuple[str, str], ...]] = lambda _: ()
    sections: Sections = no_sections


@cache
def voice(audit: str) -> Voice | None:
    """Return the voice of a kind of audit; None where the report's own words do."""
    if audit not in KINDS:
        return None
    found: Voice = import_module(f"equipoise.report.voices.{audit}").VOICE
    return found


def voices() -> list[Voice]:
    """Return every voice."""
    return [spoken for kind in KINDS if (spoken := voice(kind)) is not None]

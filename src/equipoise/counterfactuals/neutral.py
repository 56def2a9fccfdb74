"""Neutral prompts: a prefix and a subject, and no attribute."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from equipoise.core import InputError
from equipoise.counterfactuals.articles import agreeing


def neutral_prompts(subjects: Sequence[str], prefixes: Sequence[str]) -> pa.Table:
    """Return the prompts that name a subject and no attribute, one for each prefix.

    Parameters
    ----------
    subjects : sequence of str
        Such as occupations.
    prefixes : sequence of str
        What prompts start with, such as "A photo of a"; "a" and "an" follow the sound of the next
        word. With "{}" in it, the subject goes there: "A photo of a {} person".

    Returns
    -------
    pyarrow.Table
        `prompt` and `subject`, prefix after prefix for each subject.

    Raises
    ------
    InputError
        When a list is empty or repeats a text, a text is empty, or two prompts are the same.

    References
    ----------
    Howard et al. 2024, SocialCounterfactuals, section 4.
    """
    for name, words in (("subjects", subjects), ("prefixes", prefixes)):
        bad = [word for word in words if not word.strip()]
        if isinstance(words, str) or not words or bad or len({*words}) < len(words):
            raise InputError(f"{name}: {words!r}; expected a list of different texts")
    prompts = [_prompt(prefix, subject) for subject in subjects for prefix in prefixes]
    twice = sorted({one for one in prompts if prompts.count(one) > 1})
    if twice:
        raise InputError(f"the prompt {twice[0]!r} is made twice; expected prefixes that differ")
    owners = [subject for subject in subjects for _ in prefixes]
    return pa.table({"prompt": prompts, "subject": owners})


def _prompt(prefix: str, subject: str) -> str:
    before, _, after = prefix.partition("{}")
    before = before.rstrip()
    return " ".join(f"{agreeing(before, subject)} {subject}{after}".split())

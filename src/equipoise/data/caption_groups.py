"""Groups by the words of captions."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from equipoise.core import InputError
from equipoise.data.groups import (
    FrozenTerms,
    Terms,
    assigned,
    column_name,
    frozen_terms,
    in_words,
)
from equipoise.data.image_parts import Step
from equipoise.data.image_set import ImageSet
from equipoise.data.lexicons import lexicon

NEUTRAL = "a term that names no group"
NO_CAPTION = "no caption"


@dataclass(frozen=True)
class CaptionGroups:
    """Groups by terms in any caption of an image, as whole words without case.

    "man's" has the word "man"; "woman", "man-made" and "ten-man" do not. An image with terms of
    several groups has no group.

    Attributes
    ----------
    attribute : str
    groups : mapping of str to sequence of str
        Group to its terms; a term may be several words.
    neutral : sequence of str
        Terms that name a person and no group, such as "person" and "people".
    neutral_means : {"nothing", "no group"}
        Whether an image with a neutral term keeps the group that its other terms give it, or has
        none.
    source, version : str
    """

    attribute: str
    groups: Terms | FrozenTerms
    neutral: Sequence[str] = ()
    neutral_means: str = "nothing"
    source: str = ""
    version: str = ""

    def __post_init__(self) -> None:
        """Freeze and check the terms.

        Raises
        ------
        InputError
            When a term is empty or in two groups, or `neutral_means` is unknown.
        """
        object.__setattr__(self, "groups", frozen_terms(self.groups, "terms"))
        object.__setattr__(self, "neutral", tuple(sorted({one.casefold() for one in self.neutral})))
        if self.neutral_means not in ("nothing", "no group"):
            raise InputError(
                f"neutral_means is {self.neutral_means!r}; expected 'nothing' or 'no group'"
            )
        both = {term for _, terms in self.terms for term in terms} & {*self.neutral}
        if both:
            raise InputError(f"{min(both)!r} is neutral and in a group; expected one of the two")

    @property
    def terms(self) -> FrozenTerms:
        """Groups and their terms, sorted."""
        return frozen_terms(self.groups, "terms")

    @property
    def name(self) -> str:
        """The column that the rule adds."""
        return column_name(self.attribute, self.version)

    @property
    def description(self) -> str:
        """The rule in words."""
        text = (
            f"{self.attribute} by whole words of any caption, without case "
            f"({in_words(self.terms)}); "
            "terms of several groups: no group"
        )
        if self.neutral:
            means = {"nothing": "is passed over"}.get(self.neutral_means, "means no group")
            text += f"; {' or '.join(self.neutral)} {means}"
        return f"{text} ({self.source})" if self.source else text

    def __call__(self, images: ImageSet, /) -> ImageSet:
        """Add the column; images without a group are counted by reason.

        Raises
        ------
        InputError
            When the set has no captions.
        """
        captions = images.captions
        if captions is None:
            raise InputError(f"{images.name} has no captions; read the file of captions")
        names = [group for group, _ in self.terms]
        patterns = [pattern_of(terms) for _, terms in self.terms]
        member = np.zeros((len(images), len(names)), dtype=np.bool_)
        neutral = np.zeros(len(images), dtype=np.bool_)
        with_neutral = pattern_of(self.neutral) if self.neutral else None
        for image, caption in zip(captions.image.tolist(), captions.texts.tolist(), strict=True):
            text = folded(caption)
            for place, pattern in enumerate(patterns):
                member[image, place] |= pattern.search(text) is not None
            neutral[image] |= with_neutral is not None and with_neutral.search(text) is not None
        without = np.ones(len(images), dtype=np.bool_)
        without[captions.image] = False
        excluded = {NO_CAPTION: without}
        if self.neutral_means == "no group":
            excluded[NEUTRAL] = neutral
        groups, counts = assigned(names, member, excluded)
        counts["images_with_neutral_terms"] = int(neutral.sum())
        return images.with_column(self.name, groups, Step(self.name, self.description, counts))


def folded(text: str) -> str:
    """Return a text without case and in composed form."""
    return unicodedata.normalize("NFC", text).casefold()


def pattern_of(terms: Iterable[str]) -> re.Pattern[str]:
    """Return the pattern that finds any of some terms as whole words of a folded text.

    A hyphen joins words; an apostrophe ends one.
    """
    words = (r"\s+".join(map(re.escape, folded(term).split())) for term in terms)
    return re.compile(rf"(?<!\w)(?<!\w-)(?:{'|'.join(words)})(?!-?\w)")


def hall_captions(
    *, parents_and_children: bool = True, neutral_means: str = "nothing", version: str = ""
) -> CaptionGroups:
    """Return the rule of [Hall] for perceived gender by captions of COCO.

    Parameters
    ----------
    parents_and_children : bool
        False drops terms such as "father" and "daughter", as in evaluation V3.
    neutral_means : {"nothing", "no group"}
        What "person" and "people" do: the source lists them as excluded terms.
    version : str

    References
    ----------
    Hall et al. 2023, Table 2.
    """
    words = lexicon("hall_2023")
    dropped = () if parents_and_children else words.section("dropped_in_v3")["captions"]
    groups = {
        group: tuple(term for term in terms if term not in dropped)
        for group, terms in words.section("captions").items()
    }
    neutral = tuple(words.content["neutral"])
    return CaptionGroups("gender", groups, neutral, neutral_means, "Hall et al. 2023", version)

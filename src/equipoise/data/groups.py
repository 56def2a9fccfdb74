"""Groups from what a data set has: declared, frozen rules that add a column of groups.

Each rule says in words what it does, the same words for the same rule, so that an analysis of
design choices can compare the columns of several.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core import InputError
from equipoise.data.coded import Coded
from equipoise.data.image_set import Flags, ImageSet, Step
from equipoise.data.lexicons import lexicon

Terms = Mapping[str, Sequence[str]]
FrozenTerms = tuple[tuple[str, tuple[str, ...]], ...]
NO_GROUP = "no term of a group"
SEVERAL = "terms of several groups"


def frozen_terms(groups: Terms | FrozenTerms, what: str) -> FrozenTerms:
    """Return terms by group in a fixed order, checked.

    Raises
    ------
    InputError
        When there is no group, one has no terms, or a term belongs to two.
    """
    pairs = groups.items() if isinstance(groups, Mapping) else groups
    found = tuple(
        (group, tuple(sorted({term.strip().casefold() for term in terms})))
        for group, terms in pairs
    )
    if not found:
        raise InputError(f"{what} are empty; expected at least one group")
    owner: dict[str, str] = {}
    for group, terms in found:
        if not terms or not all(term.strip() for term in terms):
            raise InputError(f"the group {group!r} has no {what} or an empty one; expected some")
        for term in terms:
            if owner.setdefault(term, group) != group:
                raise InputError(
                    f"{term!r} is in the groups {owner[term]!r} and {group!r}; expected it in one"
                )
    return tuple(sorted(found))


def in_words(groups: FrozenTerms) -> str:
    """Return terms by group as text."""
    return "; ".join(f"{group}: {', '.join(terms)}" for group, terms in groups)


def assigned(
    names: Sequence[str], member: Flags, excluded: Mapping[str, Flags]
) -> tuple[Coded, dict[str, Any]]:
    """Give each image the one group that it is of, and count the others by reason.

    Parameters
    ----------
    names : sequence of str
        Of the groups.
    member : ndarray of bool, shape (images, groups)
    excluded : mapping of str to ndarray of bool, shape (images,)
        Reasons to leave an image without a group, the first that holds counts; beside those of no
        and of several groups, which come last.
    """
    open_ = np.ones(len(member), dtype=np.bool_)
    left: dict[str, int] = {}
    reasons = {**excluded, SEVERAL: member.sum(axis=1) > 1, NO_GROUP: ~member.any(axis=1)}
    for reason, holds in reasons.items():
        left[reason] = int((open_ & holds).sum())
        open_ &= ~holds
    order = np.argsort(np.array(names, dtype=object))
    codes = np.where(open_, np.argsort(order)[member.argmax(axis=1)], -1).astype(np.int32)
    groups = Coded(codes, tuple(sorted(names)))
    sizes = dict(zip(groups.vocabulary, groups.counts.tolist(), strict=True))
    return groups, {"groups": sizes, "left_out": left}


class GroupRule:
    """A declared rule that adds a column of groups.

    Attributes
    ----------
    attribute : str
        What the groups are of.
    version : str
        Tells rules of one attribute apart.
    """

    attribute: str
    version: str

    @property
    def name(self) -> str:
        """The column that the rule adds."""
        return f"{self.attribute} ({self.version})" if self.version else self.attribute

    @property
    def description(self) -> str:
        """The rule in words."""
        raise NotImplementedError

    def _add(self, images: ImageSet, groups: Coded, counts: Mapping[str, Any]) -> ImageSet:
        return images.with_column(self.name, groups, Step(self.name, self.description, counts))


class TermRule(GroupRule):
    """A rule with terms by group, which are frozen and checked.

    Raises
    ------
    InputError
        When there is no group, one has no terms, or a term belongs to two.
    """

    groups: Terms | FrozenTerms

    def __post_init__(self) -> None:
        """Freeze the terms."""
        object.__setattr__(self, "groups", frozen_terms(self.groups, "terms"))

    @property
    def terms(self) -> FrozenTerms:
        """Groups and their terms, sorted."""
        return frozen_terms(self.groups, "terms")


def design_choices(*rules: GroupRule) -> dict[str, dict[str, dict[str, str]]]:
    """Return the `versions:` of an audit of concepts that compare rules of one attribute.

    Parameters
    ----------
    *rules : CaptionGroups, BoxGroups, ValueGroups or BandGroups
        Each with a version; the audit's `groups:` names the attribute, whose column is that of a
        rule without a version.

    Returns
    -------
    dict
        Version to the column that stands for the attribute in it.

    Raises
    ------
    InputError
        When a rule has no version, or two have the same.
    """
    found: dict[str, dict[str, dict[str, str]]] = {}
    for rule in rules:
        if not rule.version:
            raise InputError(
                f"the rule of {rule.attribute!r} has no version; it is the baseline: leave it out"
            )
        if rule.version in found:
            raise InputError(
                f"two rules have the version {rule.version!r}; expected different ones"
            )
        found[rule.version] = {"columns": {rule.attribute: rule.name}}
    return found


ONLY_SMALL = "only boxes that are too small"
SMALL_OTHER = "a box of another group that is not small enough to be ignored"


@dataclass(frozen=True)
class BoxSize:
    """How large a box has to be.

    Attributes
    ----------
    name : str
    pixels : float
        Smaller boxes, in square pixels, are ignored.
    ignored : float in [0, 1]
        Boxes of a smaller share of the image are ignored.
    needed : float in [0, 1]
        A group needs a box of at least this share; a box between `ignored` and `needed` of another
        group leaves the image without a group.
    """

    name: str
    pixels: float = 0.0
    ignored: float = 0.0
    needed: float = 0.0

    def __post_init__(self) -> None:
        """Check the sizes.

        Raises
        ------
        InputError
            When a share is outside 0 to 1, or more is ignored than needed.
        """
        if self.pixels < 0 or not 0 <= self.ignored <= self.needed <= 1:
            raise InputError(
                f"the sizes of {self.name!r} are {self.pixels:g} pixels and the shares "
                f"{self.ignored:g} and {self.needed:g}; expected 0 or more pixels, and shares "
                "from 0 to 1 with ignored at most needed"
            )

    @property
    def description(self) -> str:
        """The rule in words."""
        if self.needed:
            return (
                f"at least one box of {self.needed:.0%} of the image; boxes under "
                f"{self.ignored:.0%} are ignored; one between of another group: no group"
            )
        return f"boxes of at least {self.pixels:g} pixels" if self.pixels else "all boxes"


ALL_BOXES = BoxSize("all boxes")
AT_LEAST_600_PIXELS = BoxSize("at least 600 pixels", pixels=600)
LARGE_BOXES = BoxSize("large boxes", ignored=0.02, needed=0.05)


@dataclass(frozen=True)
class BoxGroups(TermRule):
    """Groups by what the boxes of an image hold, under a rule of size.

    An image with boxes of several groups has no group.

    Attributes
    ----------
    attribute : str
    groups : mapping of str to sequence of str
        Group to the labels of boxes, such as synsets.
    size : BoxSize
    source, version : str
    """

    attribute: str
    groups: Terms | FrozenTerms
    size: BoxSize = ALL_BOXES
    source: str = ""
    version: str = ""

    @property
    def description(self) -> str:
        """The rule in words."""
        text = (
            f"{self.attribute} by boxes ({in_words(self.terms)}): {self.size.description}; "
            "boxes of several groups: no group"
        )
        return f"{text} ({self.source})" if self.source else text

    def __call__(self, images: ImageSet, /) -> ImageSet:
        """Add the column; images without a group are counted by reason.

        Raises
        ------
        InputError
            When the set has no boxes, or the rule needs sizes of images that it does not have.
        """
        boxes = images.boxes
        if boxes is None:
            raise InputError(f"{images.name} has no boxes; read a file of objects or instances")
        names = [group for group, _ in self.terms]
        group = self._group_of(boxes.label)
        area = boxes.corners[:, 2] * boxes.corners[:, 3]
        share = area / _areas(images, self.size)[boxes.image]
        counted = (group >= 0) & (area >= self.size.pixels) & (share >= self.size.ignored)

        def member(used: Flags) -> Flags:
            found = np.zeros((len(images), len(names)), dtype=np.bool_)
            found[boxes.image[used], group[used]] = True
            return found

        large = member(counted & (share >= self.size.needed))
        other = (member(counted) & ~large).any(axis=1)
        between = np.asarray(other & (large.sum(axis=1) == 1))
        small = np.asarray(member(group >= 0).any(axis=1) & ~large.any(axis=1))
        groups, counts = assigned(names, large, {ONLY_SMALL: small, SMALL_OTHER: between})
        counts["boxes"] = int((group >= 0).sum())
        counts["boxes_ignored"] = int((group >= 0).sum() - counted.sum())
        return self._add(images, groups, counts)

    def _group_of(self, label: Coded) -> npt.NDArray[np.int64]:
        owner = {one: place for place, (_, terms) in enumerate(self.terms) for one in terms}
        places = [owner.get(text.casefold(), -1) for text in label.vocabulary]
        return np.array([*places, -1], dtype=np.int64)[label.codes]


def _areas(images: ImageSet, size: BoxSize) -> npt.NDArray[np.float64]:
    """Return the area of each image in pixels; infinite where no share is asked for."""
    if not size.needed and not size.ignored:
        return np.full(len(images), np.inf)
    if not {"width", "height"} <= {*images.columns}:
        raise InputError(
            f"{images.name} has no widths and heights of images, which the rule {size.name!r} "
            "needs; for Visual Genome read image_data.json too"
        )
    area = np.prod([_numbers(images.column(side)) for side in ("width", "height")], axis=0)
    if not (area > 0).all():
        image = images.ids[int(np.argmax(~(area > 0)))]
        raise InputError(f"{images.name}: the image {image!r} has no width or height above 0")
    return np.asarray(area, dtype=np.float64)


def _numbers(column: Coded) -> npt.NDArray[np.float64]:
    return np.array([*map(float, column.vocabulary), np.nan])[column.codes]


def _hall_terms(section: str, parents_and_children: bool) -> Terms:
    words = lexicon("hall_2023")
    dropped = () if parents_and_children else words.section("dropped_in_v3")[section]
    return {
        group: tuple(term for term in terms if term not in dropped)
        for group, terms in words.section(section).items()
    }


def hall_boxes(
    size: BoxSize = ALL_BOXES, *, parents_and_children: bool = True, version: str = ""
) -> BoxGroups:
    """Return the rule of [Hall] for perceived gender by boxes of Visual Genome.

    Parameters
    ----------
    size : BoxSize
        `ALL_BOXES` (the baseline), `AT_LEAST_600_PIXELS` (V1) or `LARGE_BOXES` (V2).
    parents_and_children : bool
        False drops synsets such as "father.n.01", as in V3.
    version : str

    References
    ----------
    Hall et al. 2023, Table 2.
    """
    groups = _hall_terms("synsets", parents_and_children)
    return BoxGroups("gender", groups, size, "Hall et al. 2023", version)


NEUTRAL = "a term that names no group"
NO_CAPTION = "no caption"


@dataclass(frozen=True)
class CaptionGroups(TermRule):
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
        super().__post_init__()
        object.__setattr__(self, "neutral", tuple(sorted({one.casefold() for one in self.neutral})))
        if self.neutral_means not in ("nothing", "no group"):
            raise InputError(
                f"neutral_means is {self.neutral_means!r}; expected 'nothing' or 'no group'"
            )
        both = {term for _, terms in self.terms for term in terms} & {*self.neutral}
        if both:
            raise InputError(f"{min(both)!r} is neutral and in a group; expected one of the two")

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
        return self._add(images, groups, counts)


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
    groups = _hall_terms("captions", parents_and_children)
    neutral = tuple(lexicon("hall_2023").content["neutral"])
    return CaptionGroups("gender", groups, neutral, neutral_means, "Hall et al. 2023", version)


NO_VALUE = "a value of no group"
EMPTY = "the cell is empty"
_EXAMPLES = 5


@dataclass(frozen=True)
class ValueGroups(TermRule):
    """Groups by the values of a column: races merged, countries by continent.

    Attributes
    ----------
    attribute : str
        What the groups are of.
    column : str
        Where the values are.
    groups : mapping of str to sequence of str
        Group to its values, compared without case and outer spaces.
    source : str
        Where the grouping comes from.
    version : str
        Tells rules of one attribute apart.
    """

    attribute: str
    column: str
    groups: Terms | FrozenTerms
    source: str = ""
    version: str = ""

    @property
    def description(self) -> str:
        """The rule in words."""
        source = f" ({self.source})" if self.source else ""
        return f"{self.attribute} by the column {self.column}{source}: {in_words(self.terms)}"

    def __call__(self, images: ImageSet, /) -> ImageSet:
        """Add the column; images of other values have no group and are counted."""
        owner = {value: group for group, values in self.terms for value in values}
        known = {value: owner.get(value.strip().casefold()) for value in _vocabulary(images, self)}
        groups = _regrouped(images.column(self.column), known.get)
        other = sorted(value for value, group in known.items() if group is None)
        counts = _counted(images.column(self.column), groups) | {
            "values_without_group": len(other),
            "values_without_group_examples": other[:_EXAMPLES],
        }
        return self._add(images, groups, counts)


def _vocabulary(images: ImageSet, rule: ValueGroups | BandGroups) -> tuple[str, ...]:
    return images.column(rule.column).vocabulary


def _regrouped(column: Coded, group: Callable[[str], str | None]) -> Coded:
    return column.relabel([group(value) for value in column.vocabulary])


def _counted(column: Coded, groups: Coded) -> dict[str, Any]:
    known, grouped = column.codes >= 0, groups.codes >= 0
    sizes = dict(zip(groups.vocabulary, groups.counts.tolist(), strict=True))
    left = {EMPTY: int((~known).sum()), NO_VALUE: int((known & ~grouped).sum())}
    return {"groups": sizes, "left_out": left}


@dataclass(frozen=True)
class BandGroups(GroupRule):
    """Groups by bands of a number, such as income.

    Attributes
    ----------
    attribute, column : str
    bounds : tuple of float
        Where a band ends and the next begins, rising; a band holds its lower bound.
    names : tuple of str
        Of the bands, one more than bounds.
    source, version : str
    """

    attribute: str
    column: str
    bounds: tuple[float, ...]
    names: tuple[str, ...]
    source: str = ""
    version: str = ""

    def __post_init__(self) -> None:
        """Check the bounds.

        Raises
        ------
        InputError
            When they do not rise, or there is another number of names.
        """
        rising = all(low < high for low, high in zip(self.bounds, self.bounds[1:], strict=False))
        if not self.bounds or not rising or not np.isfinite(self.bounds).all():
            raise InputError(f"bounds are {self.bounds}; expected rising numbers")
        if len({*self.names}) != len(self.names) or len(self.names) != len(self.bounds) + 1:
            raise InputError(
                f"names are {self.names}; expected {len(self.bounds) + 1} different ones, one more "
                "than bounds"
            )

    @property
    def description(self) -> str:
        """The rule in words."""
        ends = (*(f"below {one:g}" for one in self.bounds), f"{self.bounds[-1]:g} and above")
        bands = ", ".join(f"{name} {end}" for name, end in zip(self.names, ends, strict=True))
        source = f" ({self.source})" if self.source else ""
        return f"{self.attribute} by the column {self.column}: {bands}{source}"

    def __call__(self, images: ImageSet, /) -> ImageSet:
        """Add the column; images without a number have no band and are counted.

        Raises
        ------
        InputError
            When a value of the column is no number.
        """
        bands = {value: self._band(value, images) for value in _vocabulary(images, self)}
        groups = _regrouped(images.column(self.column), bands.get)
        counts = _counted(images.column(self.column), groups)
        return self._add(images, groups, counts)

    def _band(self, value: str, images: ImageSet) -> str:
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if math.isnan(number):
            raise InputError(
                f"{images.name}, column {self.column!r}: {value!r} is no number; expected numbers"
            )
        return self.names[int(np.searchsorted(self.bounds, number, side="right"))]


def continents(
    column: str = "country", *, attribute: str = "continent", version: str = ""
) -> ValueGroups:
    """Return the rule that groups countries by continent (United Nations, M49).

    Parameters
    ----------
    column : str
        Names of countries.
    attribute, version : str
    """
    words = lexicon("continents")
    return ValueGroups(attribute, column, words.section("continents"), words.source, version)


def income_bands(
    scheme: str = "levels", column: str = "income", *, attribute: str = "income band",
    version: str = "",
) -> BandGroups:  # fmt: skip
    """Return a rule that groups households by monthly income.

    Parameters
    ----------
    scheme : {"levels", "quartiles"}
        Gapminder's four income levels, or the quartiles over images of Dollar Street.
    column : str
        Dollars a month, of equal purchasing power.
    attribute, version : str

    Raises
    ------
    InputError
        When there is no such scheme.
    """
    schemes = lexicon("income").content
    if scheme not in schemes:
        raise InputError(f"there is no scheme {scheme!r}; expected one of {', '.join(schemes)}")
    bands = schemes[scheme]
    bounds, names = tuple(map(float, bands["bounds"])), tuple(bands["names"])
    return BandGroups(attribute, column, bounds, names, bands["source"], version)

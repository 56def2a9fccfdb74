"""Frozen rules that derive a column of groups from a data set.

Each rule says in words what it does, the same words for the same rule, so that an analysis of
design choices can compare the columns of several.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, cast

import numpy as np
import polars as pl

from equipoise.core import Booleans, DataError, Floats, InputError, Strings, tally
from equipoise.data.image_set import LABEL, ImageSet, Step
from equipoise.data.lexicons import lexicon
from equipoise.data.problems import repeated, show

Terms = Mapping[str, Sequence[str]]
FrozenTerms = tuple[tuple[str, Strings], ...]
NO_GROUP = "no term of a group"
SEVERAL = "terms of several groups"
NO_VALUE = "a value of no group"
EMPTY = "the cell is empty"


def assign_groups(
    names: Sequence[str], member: Booleans, excluded: Mapping[str, Booleans]
) -> tuple[list[str | None], dict[str, int]]:
    """Assign each image to at most one group, and count the others by reason.

    Parameters
    ----------
    names : sequence of str
        Of the groups, sorted.
    member : ndarray of bool, shape (images, groups)
    excluded : mapping of str to ndarray of bool, shape (images,)
        Reasons to leave an image without a group, the first that holds counts; beside those of no
        and of several groups, which come last.
    """
    open_ = np.ones(len(member), dtype=np.bool_)
    left_out: dict[str, int] = {}
    reasons = {**excluded, SEVERAL: member.sum(axis=1) > 1, NO_GROUP: ~member.any(axis=1)}
    for reason, holds in reasons.items():
        left_out[reason] = tally(open_ & holds)
        open_ &= ~holds
    # The last name is that of no group.
    assigned = np.array([*names, None], dtype=object)[np.where(open_, member.argmax(axis=1), -1)]
    return assigned.tolist(), left_out


class GroupRule:
    """A declared rule that adds a column of groups.

    Attributes
    ----------
    attribute : str
        What the groups are of.
    source : str
        Where the grouping comes from.
    version : str
        Tells rules of one attribute apart.
    """

    attribute: str
    source: str
    version: str

    @property
    def name(self) -> str:
        """The column that the rule adds."""
        return f"{self.attribute} ({self.version})" if self.version else self.attribute

    @property
    def description(self) -> str:
        """The rule in words."""
        return f"{self._steps()} ({self.source})" if self.source else self._steps()

    def _steps(self) -> str:
        raise NotImplementedError

    def _add(
        self,
        images: ImageSet,
        groups: Sequence[str | None],
        names: Iterable[str],
        left_out: Mapping[str, int],
        **counts: Any,
    ) -> ImageSet:
        sizes = {name: groups.count(name) for name in sorted({*names})}
        step_counts = {"groups": sizes, "left_out": left_out, **counts}
        column = pl.Series(self.name, groups, dtype=pl.String)
        return images.with_column(column, Step(self.name, self.description, step_counts))

    def _add_by_value(
        self, images: ImageSet, values: pl.Series, groups: Mapping[str, str | None], **counts: Any
    ) -> ImageSet:
        """Add the groups of the values of a column."""
        assigned_groups = [None if value is None else groups[value] for value in values]
        left_out = {
            EMPTY: values.null_count(),
            NO_VALUE: assigned_groups.count(None) - values.null_count(),
        }
        names = filter(None, groups.values())
        return self._add(images, assigned_groups, names, left_out, **counts)


def _freeze_terms(groups: Terms | FrozenTerms) -> FrozenTerms:
    frozen = []
    for group, terms in dict(groups).items():
        frozen.append((group, tuple(sorted({term.strip().casefold() for term in terms}))))
    return tuple(sorted(frozen))


class TermRule(GroupRule):
    """A rule with terms by group, which are frozen, sorted and checked.

    Raises
    ------
    InputError
        When there is no group, one has no terms, or a term belongs to two.
    """

    groups: Terms | FrozenTerms

    def __post_init__(self) -> None:
        """Freeze the terms."""
        frozen_terms = _freeze_terms(self.groups)
        terms_by_group = dict(frozen_terms)
        all_terms = [*chain.from_iterable(terms_by_group.values())]
        twice = repeated(all_terms)
        complete = terms_by_group and all(terms_by_group.values()) and "" not in all_terms
        if twice or not complete:
            raise InputError(
                f"{self.attribute}: the terms are {terms_by_group}; expected groups with "
                f"terms, and each term in one group{f', but not {twice[0]!r}' if twice else ''}"
            )
        object.__setattr__(self, "groups", frozen_terms)

    @property
    def terms(self) -> FrozenTerms:
        """Groups and their terms, sorted."""
        return cast("FrozenTerms", self.groups)

    @property
    def group_names(self) -> list[str]:
        """Names of the groups, sorted."""
        return [*dict(self.terms)]

    @property
    def owners(self) -> dict[str, int]:
        """Term to the place of its group."""
        owners: dict[str, int] = {}
        for place, (_, terms) in enumerate(self.terms):
            owners |= dict.fromkeys(terms, place)
        return owners

    def _in_words(self) -> str:
        return "; ".join(f"{group}: {', '.join(terms)}" for group, terms in self.terms)


NEUTRAL = "a term that names no group"


class NeutralRule(TermRule):
    """A rule with terms by group, and neutral terms that name a person and no group."""

    neutral: Sequence[str]
    neutral_means: str

    def __post_init__(self) -> None:
        """Freeze and check the terms.

        Raises
        ------
        InputError
            When a term is empty or in two groups, or `neutral_means` is unknown.
        """
        super().__post_init__()
        object.__setattr__(
            self, "neutral", tuple(sorted({term.casefold() for term in self.neutral}))
        )
        conflicting = self.owners.keys() & {*self.neutral}
        if conflicting or self.neutral_means not in ("nothing", "no group"):
            raise InputError(
                f"neutral_means is {self.neutral_means!r}, and the groups have the neutral terms "
                f"{sorted(conflicting)}; expected 'nothing' or 'no group', and no term in both"
            )

    def _neutral_in_words(self) -> str:
        if not self.neutral:
            return ""
        means = "is passed over" if self.neutral_means == "nothing" else "means no group"
        return f"; {' or '.join(self.neutral)} {means}"

    def _excluded_by(self, neutral: Booleans) -> dict[str, Booleans]:
        """Return which images have no group for their neutral terms, by reason."""
        return {NEUTRAL: neutral} if self.neutral_means == "no group" else {}


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
class BoxGroups(NeutralRule):
    """Groups by the contents of an image's boxes, with a rule for box size.

    An image with boxes of several groups has no group.

    Attributes
    ----------
    attribute : str
    groups : mapping of str to sequence of str
        Group to the labels of boxes, such as synsets.
    size : BoxSize
        Of the boxes of groups; neutral boxes count at any size.
    neutral : sequence of str
        Labels of boxes that show a person of no group, such as "person.n.01".
    neutral_means : {"nothing", "no group"}
        Whether an image with a neutral box keeps the group that its other boxes give it, or has
        none.
    source, version : str
    """

    attribute: str
    groups: Terms | FrozenTerms
    size: BoxSize = ALL_BOXES
    neutral: Sequence[str] = ()
    neutral_means: str = "nothing"
    source: str = ""
    version: str = ""

    def _steps(self) -> str:
        return (
            f"{self.attribute} by boxes ({self._in_words()}): {self.size.description}; "
            f"boxes of several groups: no group{self._neutral_in_words()}"
        )

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
        names, owners = self.group_names, self.owners
        texts = [text.casefold() for text in boxes[LABEL]]
        group = np.array([owners.get(text, -1) for text in texts], dtype=np.int64)
        image, area = images.places(boxes), (boxes["width"] * boxes["height"]).to_numpy()
        neutral = np.zeros(len(images), dtype=np.bool_)
        neutral[image[np.isin(texts, self.neutral)]] = True
        share = area / _areas(images, self.size)[image]
        counted = (group >= 0) & (area >= self.size.pixels) & (share >= self.size.ignored)

        def member(used: Booleans) -> Booleans:
            membership = np.zeros((len(images), len(names)), dtype=np.bool_)
            membership[image[used], group[used]] = True
            return membership

        large = member(counted & (share >= self.size.needed))
        other = (member(counted) & ~large).any(axis=1)
        between = np.asarray(other & (large.sum(axis=1) == 1))
        small = np.asarray(member(group >= 0).any(axis=1) & ~large.any(axis=1))
        excluded = {**self._excluded_by(neutral), ONLY_SMALL: small, SMALL_OTHER: between}
        groups, left_out = assign_groups(names, large, excluded)
        used = tally(group >= 0)
        return self._add(
            images,
            groups,
            names,
            left_out,
            boxes=used,
            boxes_ignored=used - tally(counted),
            images_with_neutral_terms=tally(neutral),
        )


def _areas(images: ImageSet, size: BoxSize) -> Floats:
    """Return the area of each image in pixels; infinite if the rule needs no share."""
    if not size.needed and not size.ignored:
        return np.full(len(images), np.inf)
    width, height = images.column("width"), images.column("height")
    area = (width.cast(pl.Float64) * height.cast(pl.Float64)).fill_null(np.nan).to_numpy()
    if not (area > 0).all():
        image = images.ids[int(np.argmax(~(area > 0)))]
        raise InputError(f"{images.name}: the image {image!r} has no width or height above 0")
    return area


def _hall_terms(section: str, parents_and_children: bool) -> Terms:
    words = lexicon("hall_2023")
    groups = words.section(section)
    if parents_and_children:
        return groups
    dropped = words.section("dropped_in_v3")[section]
    for group, terms in groups.items():
        groups[group] = tuple(term for term in terms if term not in dropped)
    return groups


def _hall_neutral(section: str) -> Strings:
    return lexicon("hall_2023").section("neutral")[section]


def hall_boxes(
    size: BoxSize = ALL_BOXES,
    *,
    parents_and_children: bool = True,
    neutral_means: str = "no group",
    version: str = "",
) -> BoxGroups:
    """Return the rule of [Hall] for perceived gender by boxes of Visual Genome.

    Parameters
    ----------
    size : BoxSize
        `ALL_BOXES` (the baseline), `AT_LEAST_600_PIXELS` (V1) or `LARGE_BOXES` (V2).
    parents_and_children : bool
        False drops synsets such as "father.n.01", as in V3.
    neutral_means : {"no group", "nothing"}
        What boxes of "person.n.01" and "people.n.01" do: the source excludes these images.
    version : str

    References
    ----------
    Hall et al. 2023, Table 2.
    """
    groups = _hall_terms("synsets", parents_and_children)
    neutral = _hall_neutral("synsets")
    return BoxGroups("gender", groups, size, neutral, neutral_means, "Hall et al. 2023", version)


NO_CAPTION = "no caption"


@dataclass(frozen=True)
class CaptionGroups(NeutralRule):
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

    def _steps(self) -> str:
        return (
            f"{self.attribute} by whole words of any caption, without case ({self._in_words()}); "
            f"terms of several groups: no group{self._neutral_in_words()}"
        )

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
        names = self.group_names
        patterns = [term_pattern(terms) for terms in (*dict(self.terms).values(), self.neutral)]
        matches = np.zeros((len(images), len(patterns)), dtype=np.bool_)
        places = images.places(captions)
        for image, caption in zip(places.tolist(), captions["caption"], strict=True):
            text = fold_text(caption)
            matches[image] |= [pattern.search(text) is not None for pattern in patterns]
        member, neutral = matches[:, :-1], matches[:, -1]
        without = np.ones(len(images), dtype=np.bool_)
        without[places] = False
        excluded = {NO_CAPTION: without, **self._excluded_by(neutral)}
        groups, left_out = assign_groups(names, member, excluded)
        return self._add(images, groups, names, left_out, images_with_neutral_terms=tally(neutral))


def fold_text(text: str) -> str:
    """Return a text without case and in composed form."""
    return unicodedata.normalize("NFC", text).casefold()


def term_pattern(terms: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that finds any of the terms as whole words of a folded text.

    A hyphen joins words; an apostrophe ends one.
    """
    words = [r"\s+".join(map(re.escape, fold_text(term).split())) for term in terms]
    return re.compile(rf"(?<!\w)(?<!\w-)(?:{'|'.join(words)})(?!-?\w)" if words else r"(?!)")


def hall_captions(
    *, parents_and_children: bool = True, neutral_means: str = "no group", version: str = ""
) -> CaptionGroups:
    """Return the rule of [Hall] for perceived gender by captions of COCO.

    Parameters
    ----------
    parents_and_children : bool
        False drops terms such as "father" and "daughter", as in evaluation V3.
    neutral_means : {"no group", "nothing"}
        What "person" and "people" do: the source excludes images with these terms.
    version : str

    References
    ----------
    Hall et al. 2023, Table 2.
    """
    groups = _hall_terms("captions", parents_and_children)
    neutral = _hall_neutral("captions")
    return CaptionGroups("gender", groups, neutral, neutral_means, "Hall et al. 2023", version)


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

    def _steps(self) -> str:
        return f"{self.attribute} by the column {self.column}: {self._in_words()}"

    def __call__(self, images: ImageSet, /) -> ImageSet:
        """Add the column; images of other values have no group and are counted."""
        owners, names = self.owners, self.group_names
        values = images.column(self.column)
        group_by_value: dict[str, str | None] = {}
        other: list[str] = []
        for value in values.drop_nulls().unique().sort():
            place = owners.get(value.strip().casefold())
            group_by_value[value] = None if place is None else names[place]
            if place is None:
                other.append(value)
        return self._add_by_value(
            images, values, group_by_value,
            values_without_group=len(other), values_without_group_examples=other[:_EXAMPLES],
        )  # fmt: skip


@dataclass(frozen=True)
class BandGroups(GroupRule):
    """Groups by bands of a number, for example of income.

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
    names: Strings
    source: str = ""
    version: str = ""

    def __post_init__(self) -> None:
        """Check the bounds.

        Raises
        ------
        InputError
            When they do not rise, or there is another number of names.
        """
        bounds = np.array(self.bounds, dtype=np.float64)
        rising = len(bounds) and np.isfinite(bounds).all() and (bounds[:-1] < bounds[1:]).all()
        if not rising or not len({*self.names}) == len(self.names) == len(self.bounds) + 1:
            raise InputError(
                f"bounds are {self.bounds} and names {self.names}; expected rising numbers, and "
                "different names, one more than bounds"
            )

    def _steps(self) -> str:
        ends = (*(f"below {bound:g}" for bound in self.bounds), f"{self.bounds[-1]:g} and above")
        bands = ", ".join(f"{name} {end}" for name, end in zip(self.names, ends, strict=True))
        return f"{self.attribute} by the column {self.column}: {bands}"

    def __call__(self, images: ImageSet, /) -> ImageSet:
        """Add the column; images without a number have no band and are counted.

        Raises
        ------
        DataError
            When a value of the column is no finite number.
        """
        column = images.column(self.column)
        values = column.drop_nulls().unique()
        numbers = values.str.strip_chars().cast(pl.Float64, strict=False).fill_null(np.nan)
        if not numbers.is_finite().all():
            wrong = column.is_in(values.filter(~numbers.is_finite()).implode())
            row = int(wrong.fill_null(value=False).arg_max() or 0)
            raise DataError(
                f"the image {images.ids[row]!r} has {show(column[row])}", file=images.name,
                column=self.column, expected="finite numbers, which fall into bands",
            )  # fmt: skip
        bands = np.searchsorted(self.bounds, numbers, side="right")
        named = dict(zip(values, np.array(self.names, dtype=object)[bands], strict=True))
        return self._add_by_value(images, column, named)


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

"""Groups of a reference population and of the images."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import prod

from equipoise.audits.notes import Note, first_of
from equipoise.config.files import nearest
from equipoise.core import DataError, Groups, InputError, Strings
from equipoise.data.problems import listed
from equipoise.metrics.labels.reference import ReferenceKind, check_total, sample_size
from equipoise.report.text import count, enclose

Reference = Groups | Mapping[str, float]
"""Groups of another data set, or the share or count of each group."""

# Crossings of the values of attributes that are listed.
_MOST_CROSSINGS = 100_000


def check_reference(
    groups: Groups, reference: Reference, kind: ReferenceKind | None, *, file: str
) -> None:
    """Refuse names of groups that look like mistakes, and shares that don't sum to 1.

    Parameters
    ----------
    groups : Groups
        Of the images.
    reference : mapping of str to float, or Groups
    kind : "census", "sample" or None
        Of a mapping.
    file : str
        Where the images are from.

    Raises
    ------
    DataError
        When the reference names a group without an image and lacks a group of the images, or its
        shares sum to another number than 1.
    """
    if isinstance(reference, Groups):
        _check_spelling(groups, reference.names, file)
        return
    sizes = {groups.display_name(str(name)): size for name, size in reference.items()}
    _check_names(groups, sizes, file)
    try:
        check_total(sizes.values(), kind)
        sample_size(sizes.values(), kind)
    except InputError as error:
        unnamed = enclose(", and there is no share of ", listed(_unnamed(groups, sizes)))
        raise DataError(
            f"groups {groups.name}: {error}{unnamed}",
            expected="shares that sum to 1, percentages that sum to 100, or counts",
            fix="correct the numbers of the reference",
        ) from error


def _check_names(groups: Groups, sizes: Mapping[str, float], file: str) -> None:
    """Refuse a name without an image where the images have a group without a share."""
    unnamed = _unnamed(groups, sizes)
    possible = _crossings(groups)
    unknown = [name for name, size in sizes.items() if size and name not in possible]
    if unknown and unnamed:
        raise _mismatch(groups, unknown, unnamed, nearest(unknown[0], unnamed), file)


def _check_spelling(groups: Groups, names: Sequence[str], file: str) -> None:
    """Refuse a name of another data set that differs from a group in case or marks alone."""
    own = {_letters(name): name for name in groups.names if name not in names}
    for name in names:
        like = own.get(_letters(name))
        if like is not None and name not in groups.names:
            raise _mismatch(groups, [name], [like], f"; did you mean {like!r}?", file)


def _mismatch(
    groups: Groups, unknown: Sequence[str], unnamed: Sequence[str], hint: str, file: str
) -> DataError:
    return DataError(
        f"groups {groups.name}: the reference names {listed(unknown)}, which has no image, and "
        f"lacks {listed(unnamed)}, which has images{hint}",
        file=file,
        expected=f"the same names in both, such as {listed(groups.names)}",
        fix="write them alike, or rename them with a rule `value_groups`. If the names are right, "
        f"add {unnamed[0]!r} to the reference, with a share of 0 if it has none",
    )


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name.casefold()))


def _unnamed(groups: Groups, names: Iterable[str]) -> list[str]:
    """Return the groups with images that a reference doesn't name."""
    named = {*names}
    sizes = zip(groups.names, groups.counts.tolist(), strict=True)
    return [name for name, n in sizes if n and name not in named]


def _crossings(groups: Groups) -> set[str]:
    """Return the names of groups, and of crossings of their values without an image."""
    values = [{*column} for column in zip(*groups.levels, strict=True)]
    if len(values) < 2 or prod(map(len, values)) > _MOST_CROSSINGS:
        return {*groups.names}
    columns = zip(*product(*values), strict=True)
    crossings = Groups.of(dict(zip(groups.attributes, columns, strict=True)))
    return {*crossings.names, *map(", ".join, crossings.levels), *groups.names}


def check_common_group(groups: Groups, reference: Reference, *, file: str) -> None:
    """Refuse a reference without any group of the images.

    Raises
    ------
    DataError
        When no group is in both.
    """
    names = _names(groups, reference)
    if not {*names} & {*groups.names}:
        raise DataError(
            f"groups {groups.name}: not in the reference, which has {listed(names)}",
            file=file,
            expected=f"the same names in both, such as {listed(groups.names)}",
            fix="write them alike, or rename them with a rule `value_groups`",
        )


def _names(groups: Groups, reference: Reference) -> Strings:
    if isinstance(reference, Groups):
        return reference.names
    return tuple(groups.display_name(str(name)) for name in reference)


def outside_reference(groups: Groups, reference: Reference) -> Iterator[Note]:
    """Yield a note on the images of groups that shares or counts don't name."""
    if isinstance(reference, Groups):
        return
    unnamed = {*_unnamed(groups, _names(groups, reference))}
    sizes = [*zip(groups.names, groups.counts.tolist(), strict=True)]
    n, n_outside = sum(n for _, n in sizes), sum(n for name, n in sizes if name in unnamed)
    if n_outside:
        outside = first_of(f"{name} ({count(n)})" for name, n in sizes if name in unnamed)
        yield Note(
            groups.name,
            f"the reference has no share for {outside}: {count(n_outside)} of {count(n)} images. "
            f"Shares are of the other {count(n - n_outside)}. Add the group to the reference.",
        )

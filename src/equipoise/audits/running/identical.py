"""Images that are the same picture under several ids: how many of each group, and in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from equipoise.audits.running.failed import Members

Sets = Sequence[Sequence[str]]


def counted(identical: Sets, members: Members) -> dict[str, Any]:
    """Count the images that share their bytes with another, in all and by group.

    Parameters
    ----------
    identical : sequence of sequences of str
        The ids that stand for one picture together.
    members : Members
        Ids of the images of every group.
    """
    ids = {one for several in identical for one in several}
    groups = {
        name: {group: len(ids.intersection(own)) for group, own in made.items()}
        for name, made in members.items()
    }
    return {"images": len(ids), "pictures": len(identical), "groups": groups}


def told(what: str, identical: Sets, of: int, counts: Mapping[str, Any]) -> Iterator[str]:
    """Say how many images share their bytes with another, and of which groups.

    Parameters
    ----------
    what : str
        What models ran on: "images", or the name of a table.
    identical : sequence of sequences of str
        The ids that stand for one picture together.
    of : int
        Number of all images.
    counts : mapping
        What `counted` returned.
    """
    pictures = len(identical)
    first = " and ".join(repr(one) for one in identical[0][:2])
    yield (
        f"{what}: {counts['images']} of {of} images have the same bytes as another ("
        f"{pictures} {'picture' if pictures == 1 else 'pictures'} under several ids, the first "
        f"{first}); every id keeps its row and counts."
    )
    for name, groups in counts["groups"].items():
        shares = ", ".join(f"{group} {n}" for group, n in groups.items())
        yield f"{what}, {name}: images with the same bytes as another are {shares}."

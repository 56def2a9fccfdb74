"""Progress of steps over items."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

from equipoise.core.types import Progress

Item = TypeVar("Item")


def with_progress(items: Sequence[Item], progress: Progress | None, step: str) -> Iterator[Item]:
    """Yield items; before each, call `progress` with the number done."""
    for done, item in enumerate(items):
        if progress is not None:
            progress(step, done, len(items))
        yield item

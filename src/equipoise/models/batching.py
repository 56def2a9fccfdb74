"""Batches that shrink when the memory does not hold them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from equipoise.core.errors import ModelError

Item = TypeVar("Item")
Result = TypeVar("Result")


def nothing() -> None:
    """Free nothing."""


@dataclass
class Batches:
    """The size of batches that fits, found by trying.

    Attributes
    ----------
    size : int
        Items in a batch. It is halved, for good, each time a batch does not fit into memory. It
        never depends on the time that something took, so a machine makes the same batches again.
    exhausted : callable
        Whether an exception says that the memory was not enough; any other is passed on.
    free : callable
        Called before the next try, to hand memory back.
    """

    size: int
    exhausted: Callable[[Exception], bool]
    free: Callable[[], None] = nothing

    def map(
        self, function: Callable[[Sequence[Item]], Result], items: Sequence[Item]
    ) -> list[Result]:
        """Call a function on batches of the items, in order.

        Parameters
        ----------
        function : callable
            From some of the items to one result.
        items : sequence
            All items.

        Returns
        -------
        list
            One result a batch; none where there are no items.

        Raises
        ------
        ModelError
            If even one item does not fit into memory.
        """
        results: list[Result] = []
        start = 0
        while start < len(items):
            batch = items[start : start + self.size]
            try:
                results.append(function(batch))
            except Exception as error:
                if not self.exhausted(error):
                    raise
                self._halve(error)
            else:
                start += len(batch)
                continue
            # Outside the handler: the exception keeps the frames of the model, and their tensors.
            self.free()
        return results

    def _halve(self, error: Exception) -> None:
        if self.size == 1:
            raise ModelError(
                f"The memory does not hold a batch of one: {str(error).partition(chr(10))[0]} "
                "To do: choose device: cpu, a smaller model, or dtype: float16."
            ) from error
        self.size = max(self.size // 2, 1)
